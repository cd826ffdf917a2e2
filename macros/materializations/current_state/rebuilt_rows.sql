{#- All rows of the rebuilt base table: the fold of all records. From a base snapshot: the snapshot's rows, merged with
    the fold of the records after the snapshot. `columns`: the columns of the base table, as SQL. `beside_snapshot`:
    whether staging has a snapshot beside the log. -#}
{%- macro rebuilt_rows(relations, form, range, columns, beside_snapshot) -%}
{%- if range.snapshot -%}
{%- set snapshot, fold = reconcile.stored_rows(range.snapshot, form), relations.fold_cache -%}
{%- if reconcile.keys_may_shift(form.keyless) -%}
{{ reconcile.folded_rows(snapshot, fold, fold, form.unique_key, columns, range.delivered) }}
{%- else -%}
with touched as (
    {{ reconcile.touched_rows(snapshot, fold, fold, form, columns, range.delivered) | indent(4) }}
)

{{ reconcile.folded_rows(snapshot, fold, 'touched', form.unique_key, columns, range.delivered) }}
{%- endif -%}
{%- else -%}
select {{ columns | join(', ') }}
from {{ relations.fold_cache }}
{%- if beside_snapshot %}
where _change_is_merged
{%- endif %}
{%- endif -%}
{%- endmacro %}
