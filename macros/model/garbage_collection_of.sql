{#- What happens to cells that garbage collection deleted, as the model says it; else `keep` for a history and
    `apply` for others. -#}
{%- macro garbage_collection_of(materialized, declared) -%}
  {{ return(declared or ('keep' if materialized == 'history' else 'apply')) }}
{%- endmacro %}
