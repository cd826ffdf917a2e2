{#- The rows of a table with the base table's columns, `known`, brought up to date by `newest`, the newest rows of change records as the fold gives
    them: what a MERGE of them would make of the table. `touched` names what `touched_rows` gives of these two; `columns` are those wanted, as SQL.
    The keys that change come to the table's rows, not these to them, so the table is scanned in place: by a hint, unless there are too many
    `records` for that. A view cannot know how many there will be. -#}
{%- macro folded_rows(known, newest, touched, settings, columns, records=1) -%}
select {{ reconcile.broadcast_hint('newest', records) }}{{ columns | join(', ') }}
from {{ known }} as known
left anti join {{ newest }} as newest
    on {{ reconcile.keys_match(settings.unique_key, 'newest', 'known') }}
union all
select {{ columns | join(', ') }}
from {{ touched }}
{%- endmacro %}

{#- The rows of the keys that `newest` names: whatever part of it the table holds already changes nothing. As a rule all of it is newer than any row
    there: the lowest sequence of `fold`, which names the same rows, lets files of the table be skipped. (Only what is deterministic reaches them,
    and `newest` may not be.) Where columns change apart, any row of these keys counts. The semi join asks for keys only, so that Spark has one broadcast
    for it and for the anti join of `folded_rows`. -#}
{%- macro touched_rows(known, newest, fold, settings, columns, records=1) -%}
{%- set hint = '' if settings.partial_records else (' ' ~ reconcile.broadcast_hint('base', records)).rstrip() -%}
{%- set joined = reconcile.joined_columns(settings.columns, settings.unique_key) if settings.partial_records -%}
select{{ hint }}
    {%- for column in columns %}
    {{ joined.get(column, 'newest.' ~ column) if settings.partial_records else 'if(base._change_sequence is null, newest.' ~ column ~ ', base.' ~ column ~ ')' }} as {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ newest }} as newest
left join (
    select {{ reconcile.broadcast_hint('touched', records) }}known.*
    from {{ known }} as known
    left semi join {{ newest }} as touched
        on {{ reconcile.keys_match(settings.unique_key, 'touched', 'known') }}
    {%- if not settings.partial_records %}
    where known._change_sequence >= (select min(_change_sequence) from {{ fold }})
    {%- endif %}
) as base
    on {{ reconcile.keys_match(settings.unique_key, 'newest', 'base') }}{{ ' and newest._change_sequence <= base._change_sequence' if not settings.partial_records }}
{%- endmacro %}
