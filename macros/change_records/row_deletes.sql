{#- The row deletes among checked records, one row for each address and sequence: of copies the earliest batch counts, and the least time and id. -#}
{%- macro row_deletes(changes, keys) -%}
select _row_id, _change_sequence, first._change_time, first._change_id, _change_batch, records as _change_records
from (
    select
        _row_id,
        _change_sequence,
        min(struct(_change_time, _change_id)) as first,
        min(_change_batch) as _change_batch,
        count(*) as records
    from {{ changes }}
    where {{ reconcile.is_row_delete_record(keys) }}
    group by _row_id, _change_sequence
)
{%- endmacro %}
