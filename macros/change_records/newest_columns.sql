{#- As `newest_records`, for a model that takes partial records. Each column has its value from the newest record that
    carries the column, unless a newer record sets the whole row. The result also has the order of the row (see
    `joined_order`); `_change_contributors`, the records that the row consists of; and `_change_delivered`, all records
    of the key, each with the columns that it carries (NULL for a whole row). -#}
{%- macro newest_columns(changes, columns, keys) -%}
select
    {%- for column in columns if column.name in keys %}
    {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    {%- for column in columns if column.name not in keys %}
    {%- set last = reconcile.identifier('_change_last ' ~ column.name) %}
    if({{ last }}.sequence > coalesce(_change_whole._change_sequence, ''), {{ last }}.value, _change_whole.{{ reconcile.identifier(column.name) }}) as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    _change_newest._change_sequence,
    _change_newest._change_time,
    array_max(transform(_change_contributors, record -> record.batch)) as _change_batch,
    coalesce(_change_whole._deleted, false) as _deleted,
    _change_whole._change_sequence as _change_row_sequence,
    _change_column_sequences,
    _change_contributors,
    _change_records,
    _change_delivered
from (
    select
        *,
        array_distinct(array_compact(array(
            struct(_change_newest._change_sequence as sequence, _change_newest._change_batch as batch),
            if(_change_whole is null, null, struct(_change_whole._change_sequence as sequence, _change_whole._change_batch as batch))
            {%- for column in columns if column.name not in keys %}
            {%- set last = reconcile.identifier('_change_last ' ~ column.name) %},
            if({{ last }}.sequence > coalesce(_change_whole._change_sequence, ''), struct({{ last }}.sequence, {{ last }}.batch), null)
            {%- endfor %}
        ))) as _change_contributors,
        map_filter(
            cast(map({% for column in columns if column.name not in keys %}{{ reconcile.literal(column.name) }}, {{ reconcile.identifier('_change_last ' ~ column.name) }}.sequence{{ ', ' if not loop.last }}{% endfor %}) as map<string, string>),
            (name, sequence) -> sequence > coalesce(_change_whole._change_sequence, '')
        ) as _change_column_sequences
    from (
        select
            {%- for column in columns if column.name in keys %}
            {{ reconcile.identifier(column.name) }},
            {%- endfor %}
            max_by(
                struct(_change_sequence, _change_time, _change_batch),
                struct(_change_sequence, -_change_batch)
            ) as _change_newest,
            max_by(
                struct(
                    {%- for column in columns if column.name not in keys %}
                    if(_change_type = 'delete', null, {{ reconcile.identifier(column.name) }}) as {{ reconcile.identifier(column.name) }},
                    {%- endfor %}
                    _change_sequence,
                    _change_batch,
                    _change_type = 'delete' as _deleted
                ),
                struct(_change_sequence, -_change_batch)
            ) filter (where _change_columns is null) as _change_whole,
            {%- for column in columns if column.name not in keys %}
            max_by(
                struct({{ reconcile.identifier(column.name) }} as value, _change_sequence as sequence, _change_batch as batch),
                struct(_change_sequence, -_change_batch)
            ) filter (where array_contains(_change_columns, {{ reconcile.literal(column.name) }})) as {{ reconcile.identifier('_change_last ' ~ column.name) }},
            {%- endfor %}
            count(*) as _change_records,
            collect_set(struct(_change_sequence as sequence, _change_columns as carried)) as _change_delivered
        from {{ changes }}
        where _change_error is null
        group by {{ reconcile.key_columns(keys) }}
    )
)
{%- endmacro %}
