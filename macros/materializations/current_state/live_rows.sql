{#- The live rows of the base table, as people read them. -#}
{%- macro live_rows(relations, settings) -%}
select
    {%- for column in reconcile.identifiers(settings.columns) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ reconcile.qualified(relations.base) }}{{ ' as base' if settings.built.row_deletes }}
where {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'not _deleted' }}
{%- if settings.built.row_deletes %}
    and not exists (
        select 1
        from {{ reconcile.qualified(relations.row_deletes) }} as row_delete
        where row_delete._row_id = base._row_id and row_delete._change_sequence > base._change_sequence
    )
{%- endif %}
{%- endmacro %}
