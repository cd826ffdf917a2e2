{#- The live rows of the base table, as people read them. -#}
{%- macro live_rows(relations, settings, has_row_deletes) -%}
{{ reconcile.shown_rows(settings, reconcile.stored_rows(relations.base, settings), reconcile.stored_row_deletes(relations.row_deletes, settings) if has_row_deletes) }}
{%- endmacro %}

{#- The live ones of rows with the base table's columns; `row_deletes` names a relation of what undoes them, if there is any. -#}
{%- macro shown_rows(settings, rows, row_deletes=none) -%}
select
    {%- for column in reconcile.identifiers(settings.columns) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ rows }}{{ ' as base' if row_deletes }}
where
    {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'not _deleted' }}
    {%- if row_deletes %}
    and not exists (
        select 1
        from {{ row_deletes }} as row_delete
        where row_delete._row_id = base._row_id and row_delete._change_sequence > base._change_sequence
    )
    {%- endif %}
{%- endmacro %}
