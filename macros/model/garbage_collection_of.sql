{#- What happens to cells that garbage collection deleted, if a model does not say it. -#}
{%- macro garbage_collection_of(materialized, declared) -%}
  {{ return(declared or ('keep' if materialized == 'history' else 'apply')) }}
{%- endmacro %}
