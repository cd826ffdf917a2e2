{#- The live rows of the base table, as people read them. -#}
{%- macro live_rows(relations, settings) -%}
select
    {%- for column in reconcile.identifiers(settings.columns) %}
    {{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ reconcile.qualified(relations.base) }}
where {{ reconcile.is_live(reconcile.order_of('_change'), '_deleted') if settings.partial_records else 'not _deleted' }}
{%- endmacro %}
