{#- The live rows of the base table, as people read them. `has_keyless_deletes`: whether the model has a table of
    keyless deletes. -#}
{%- macro live_rows(relations, settings, has_keyless_deletes) -%}
{{ reconcile.shown_rows(
      settings, reconcile.stored_rows(relations.base, settings),
      reconcile.stored_keyless_deletes(relations, settings.keyless, settings.file_format) if has_keyless_deletes) }}
{%- endmacro %}

{#- The live rows among `rows`, which have the base table's columns. `keyless_deletes`: a relation of the keyless
    deletes that undo rows, if there are any. -#}
{%- macro shown_rows(settings, rows, keyless_deletes=none) -%}
select
    {%- for column in reconcile.identifiers(settings.shown) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ rows }}{{ ' as base' if keyless_deletes }}
where
    {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'not _deleted' }}
    {%- if keyless_deletes %}
    and not exists (
        select 1
        from {{ keyless_deletes }} as keyless
        where {{ reconcile.delete_covers_row(settings.keyless, 'keyless.' ~ settings.keyless.place, 'base') }} and keyless._change_sequence > base._change_sequence
    )
    {%- endif %}
{%- endmacro %}
