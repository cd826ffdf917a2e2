{#- The newest record of each key among checked records, as a row of the base table, and the account of the key's
    records: `_change_records` is their number, `_change_sequences` the set of their sequences. Copies of one record
    differ only in their batch. The earliest copy counts, so that a rebuild gives what the increments gave. A record
    without a key is a keyless delete, and not a record of a row. -#}
{%- macro newest_records(changes, settings) -%}
{%- set columns, keys = settings.columns, settings.unique_key -%}
select newest.*, records as _change_records, sequences as _change_sequences
from (
    select
        max_by(
            struct(
                {%- for column in columns %}
                {% if column.name in keys %}{{ reconcile.identifier(column.name) }}{% else %}if(_change_type = 'delete', null, {{ reconcile.identifier(column.name) }}) as {{ reconcile.identifier(column.name) }}{% endif %},
                {%- endfor %}
                _change_sequence,
                _change_time,
                _change_batch,
                _change_type = 'delete' as _deleted
                {%- if settings.row_ids %},
                _row_id
                {%- endif %}
            ),
            struct(_change_sequence, -_change_batch)
        ) as newest,
        count(*) as records,
        collect_set(_change_sequence) as sequences
    from {{ changes }}
    where _change_error is null{{ ' and ' ~ reconcile.identifier(keys[0]) ~ ' is not null' if settings.keyless }}
    group by {{ reconcile.key_columns(keys) }}
)
{%- endmacro %}
