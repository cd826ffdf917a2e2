{#- The live rows of the base table, as people read them. `has_keyless_deletes`: whether the model has a table of
    keyless deletes. -#}
{%- macro live_rows(relations, form, has_keyless_deletes) -%}
{{ reconcile.shown_rows(
      form, reconcile.stored_rows(relations.base, form),
      reconcile.stored_keyless_deletes(relations, form.keyless, form.file_format) if has_keyless_deletes) }}
{%- endmacro %}

{#- The live rows among `rows`, which have the base table's columns. `keyless_deletes`: a relation of the keyless
    deletes that undo rows, if there are any. -#}
{%- macro shown_rows(form, rows, keyless_deletes=none) -%}
select
    {%- for column in reconcile.identifiers(form.shown) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ rows }}{{ ' as base' if keyless_deletes }}
where
    {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if form.partial_records else 'not _deleted' }}
    {%- if keyless_deletes %}
    and not exists (
        select 1
        from {{ keyless_deletes }} as keyless
        where {{ reconcile.delete_covers_row(form.keyless, 'keyless.' ~ form.keyless.place, 'base') }} and keyless._change_sequence > base._change_sequence
    )
    {%- endif %}
{%- endmacro %}
