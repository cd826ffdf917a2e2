{#- The live rows as a merge of everything up to now would leave them: the rows of `known`, a table with the base table's columns that holds what was
    delivered up to `batch`, brought up to date by the change records behind it; or these alone, where `known` is none. The batch is a literal, so
    that files of the staging table are skipped. Should the table hold more by now, as between a MERGE and the new view, the records that it
    knows are only applied again. -#}
{%- macro fresh_rows(relations, settings, known, batch) -%}
select
    {%- for column in reconcile.identifiers(settings.columns) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ reconcile._rows_behind(relations, settings, known, batch) | indent(4) }}
)
where {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'not _deleted' }}
{%- endmacro %}

{#- The rows of a `current_view` of which only some columns are known. -#}
{%- macro pending_rows(relations, settings) -%}
select *
from (
    {{ reconcile._rows_behind(relations, settings, settings.known, settings.batch) | indent(4) }}
)
where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'false' }}
{%- endmacro %}

{%- macro _rows_behind(relations, settings, known, batch) -%}
{%- set fold = reconcile.newest_columns if settings.partial_records else reconcile.newest_records -%}
{%- set changes = reconcile.checked_records(
      'select * from ' ~ reconcile.qualified(relations.changes), [], settings.columns, settings.unique_key, batch + 1, none, settings.partial_records) -%}
{%- set columns = reconcile.identifiers(settings.columns) + ['_change_sequence', '_deleted'] + (['_change_row_sequence'] if settings.partial_records else []) -%}
with changes as (
    {{ changes | indent(4) }}
),

newest as (
    {{ fold('changes', settings.columns, settings.unique_key) | indent(4) }}
)

{% if known is none -%}
select {{ columns | join(', ') }}
from newest
{%- else -%}
{{ reconcile.folded_rows(reconcile.qualified(known), 'newest', settings, columns) }}
{%- endif -%}
{%- endmacro %}
