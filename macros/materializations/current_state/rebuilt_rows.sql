{#- All rows of the rebuilt base table: the fold of all records. From a base snapshot: the snapshot's rows, merged with
    the fold of the records after the snapshot. -#}
{%- macro rebuilt_rows(relations, settings, range, columns) -%}
{%- if range.snapshot -%}
{%- set snapshot = reconcile.stored_rows(range.snapshot, settings) -%}
with touched as (
    {{ reconcile.touched_rows(snapshot, relations.fold_cache, relations.fold_cache, settings, columns, range.delivered) | indent(4) }}
)

{{ reconcile.folded_rows(snapshot, relations.fold_cache, 'touched', settings.unique_key, columns, range.delivered) }}
{%- else -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- endif -%}
{%- endmacro %}
