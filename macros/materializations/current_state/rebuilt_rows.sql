{#- All rows of the rebuilt base table: the fold of all records. From a base snapshot: the snapshot's rows, merged with
    the fold of the records after the snapshot. `columns`: the columns of the base table, as SQL. -#}
{%- macro rebuilt_rows(relations, settings, range, columns) -%}
{%- if range.snapshot -%}
{%- set snapshot, fold = reconcile.stored_rows(range.snapshot, settings.form), relations.fold_cache -%}
{%- if reconcile.keys_may_shift(settings.form.keyless) -%}
{{ reconcile.folded_rows(snapshot, fold, fold, settings.form.unique_key, columns, range.delivered) }}
{%- else -%}
with touched as (
    {{ reconcile.touched_rows(snapshot, fold, fold, settings.form, columns, range.delivered) | indent(4) }}
)

{{ reconcile.folded_rows(snapshot, fold, 'touched', settings.form.unique_key, columns, range.delivered) }}
{%- endif -%}
{%- else -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- if settings.snapshot %}
where _change_is_merged
{%- endif %}
{%- endif -%}
{%- endmacro %}
