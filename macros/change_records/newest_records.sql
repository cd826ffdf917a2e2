{#- The newest record of each key among checked records, as a row of the base table, and the account of the key's
    records: `_change_records` is their number, `_change_sequences` the set of their sequences. Copies of one record
    have the same sequence and values; their batches may differ, and so may their ids and times. The copy of the
    earliest batch counts, so that a rebuild gives what the increments gave. A record without a key is a keyless delete,
    and not a record of a row. -#}
{%- macro newest_records(changes, form) -%}
{%- set keys = form.unique_key -%}
select newest.*, records as _change_records, sequences as _change_sequences
from (
    select
        max_by(
            struct(
                {{ reconcile.columns_of_record(form.columns, keys, form.row_ids) | indent(16) }}
            ),
            struct(_change_sequence, -_change_batch)
        ) as newest,
        count(*) as records,
        collect_set(_change_sequence) as sequences
    from {{ changes }}
    where _change_error is null{{ ' and ' ~ reconcile.identifier(keys[0]) ~ ' is not null' if form.keyless }}
    group by {{ reconcile.key_columns(keys) }}
)
{%- endmacro %}

{#- The columns of a record as those of a row; a delete leaves only the key. `row_ids`: whether the records have the
    addresses of their rows. -#}
{%- macro columns_of_record(columns, keys, row_ids=false) -%}
{%- for column in columns -%}
{%- set name = reconcile.identifier(column.name) -%}
{{ name if column.name in keys else "if(_change_type = 'delete', null, " ~ name ~ ') as ' ~ name }},
{% endfor -%}
_change_sequence,
_change_time,
_change_batch,
_change_type = 'delete' as _deleted
{%- if row_ids %},
_row_id
{%- endif %}
{%- endmacro %}
