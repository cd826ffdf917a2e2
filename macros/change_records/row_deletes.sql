{#- The row deletes among checked records, one row for each address and sequence: of copies the earliest batch counts, and in it the least time and id. -#}
{%- macro row_deletes(changes, keys) -%}
select _row_id, _change_sequence, first._change_time, first._change_id, first._change_batch, records as _change_records
from (
    select
        _row_id,
        _change_sequence,
        min(struct(_change_batch, _change_time, _change_id)) as first,
        count(*) as records
    from {{ changes }}
    where _change_error is null and {{ reconcile.identifier(keys[0]) }} is null
    group by _row_id, _change_sequence
)
{%- endmacro %}
