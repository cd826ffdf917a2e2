{#- All rows of the base table, rebuilt: what the fold of all records gives, or of those behind a base snapshot with the rows of that. -#}
{%- macro rebuilt_rows(relations, settings, range, columns) -%}
{%- if range.snapshot -%}
{%- set snapshot = reconcile.stored_rows(range.snapshot, settings) -%}
with touched as (
    {{ reconcile.touched_rows(snapshot, relations.fold_cache, relations.fold_cache, settings, columns, range.delivered) | indent(4) }}
)

{{ reconcile.folded_rows(snapshot, relations.fold_cache, 'touched', settings, columns, range.delivered) }}
{%- else -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- endif -%}
{%- endmacro %}
