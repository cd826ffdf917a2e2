{#- The rows of a table with the base table's columns, `known`, brought up to date by `newest`, the newest rows of change records as the fold gives
    them: what a MERGE of them would make of the table, in either of two arms. `newer` names what `newer_rows` gives of these two; `columns` are
    those wanted, as SQL. The keys that change come to the table's rows, not these to them, so the table is scanned in place: by a hint, unless
    there are too many `records` for that. A view cannot know how many there will be. -#}
{%- macro folded_rows(known, newest, newer, settings, columns, records=1) -%}
select {{ reconcile.broadcast_hint('touched', records) }}{{ columns | join(', ') }}
from {{ known }} as known
left anti join {{ newest if settings.partial_records else newer }} as touched
    on {{ reconcile.keys_match(settings.unique_key, 'touched', 'known') }}
union all
select {{ columns | join(', ') }}
from {{ newer }}
{%- endmacro %}

{#- The rows that take the place of those of `known`, or are new. Whatever part of `newest` the table holds already changes nothing. As a rule all of it
    is newer than any row there: the lowest sequence of `fold`, which names the same rows, lets files of the table be skipped. (Only what is
    deterministic reaches them, and `newest` may not be.) -#}
{%- macro newer_rows(known, newest, fold, settings, columns, records=1) -%}
{%- set hint = reconcile.broadcast_hint('touched', records) -%}
{%- if settings.partial_records -%}
{%- set joined = reconcile.joined_columns(settings.columns, settings.unique_key) -%}
select
    {%- for column in columns %}
    {{ joined.get(column, 'newest.' ~ column) }} as {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ newest }} as newest
left join (
    select {{ hint }}known.*
    from {{ known }} as known
    left semi join {{ newest }} as touched
        on {{ reconcile.keys_match(settings.unique_key, 'touched', 'known') }}
) as base
    on {{ reconcile.keys_match(settings.unique_key, 'newest', 'base') }}
{%- else -%}
select {{ reconcile.broadcast_hint('kept', records) }}{{ columns | join(', ') }}
from {{ newest }} as newest
left anti join (
    select {{ hint }}{{ reconcile.key_columns(settings.unique_key) }}
    from {{ known }} as known
    left semi join {{ newest }} as touched
        on {{ reconcile.keys_match(settings.unique_key, 'touched', 'known') }} and touched._change_sequence <= known._change_sequence
    where known._change_sequence >= (select min(_change_sequence) from {{ fold }})
) as kept
    on {{ reconcile.keys_match(settings.unique_key, 'newest', 'kept') }}
{%- endif -%}
{%- endmacro %}
