{#- The rows that a MERGE of `newest` into `known` would give. `known` is a table with the base table's columns.
    `newest` has the newest rows of change records, as the fold gives them. `touched` names what `touched_rows` gives
    for these two; `columns` are the wanted columns, as SQL. By a hint, Spark broadcasts the changed keys and scans the
    table in place, unless there are too many `records` for that. A view cannot know how many records there will be. -#}
{%- macro folded_rows(known, newest, touched, keys, columns, records=1) -%}
select {{ reconcile.broadcast_hint('newest', records) }}{{ columns | join(', ') }}
from {{ known }} as known
left anti join {{ newest }} as newest
    on {{ reconcile.keys_match(keys, 'newest', 'known') }}
union all
select {{ columns | join(', ') }}
from {{ touched }}
{%- endmacro %}

{#- The rows of the keys that `newest` names. A record of `newest` that the table already holds changes nothing. As a
    rule, all of `newest` is newer than any row of the table. So the lowest sequence of `fold`, which names the same
    rows, lets Spark skip files of the table. (Spark applies only a deterministic filter to files, and `newest` may not
    be deterministic.) Where partial records are taken, every row of these keys counts. The semi join asks for keys
    only, so Spark uses one broadcast for it and for the anti join of `folded_rows`. -#}
{%- macro touched_rows(known, newest, fold, form, columns, records=1) -%}
{%- set hint = '' if form.partial_records else (' ' ~ reconcile.broadcast_hint('base', records)).rstrip() -%}
{%- set joined = reconcile.joined_columns(form.columns, form.unique_key) if form.partial_records -%}
select{{ hint }}
    {%- for column in columns %}
    {%- if form.partial_records %}
    {{ joined.get(column, 'newest.' ~ column) }}
    {%- else %}
    if(base._change_sequence is null, newest.{{ column }}, base.{{ column }})
    {%- endif %} as {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ newest }} as newest
left join (
    select {{ reconcile.broadcast_hint('touched', records) }}known.*
    from {{ known }} as known
    left semi join {{ newest }} as touched
        on {{ reconcile.keys_match(form.unique_key, 'touched', 'known') }}
    {%- if not form.partial_records %}
    where known._change_sequence >= (select min(_change_sequence) from {{ fold }})
    {%- endif %}
) as base
    on {{ reconcile.keys_match(form.unique_key, 'newest', 'base') }}
    {{- ' and newest._change_sequence <= base._change_sequence' if not form.partial_records }}
{%- endmacro %}
