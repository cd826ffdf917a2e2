{#- What becomes of what garbage collection deleted, where a model does not say it. -#}
{%- macro garbage_collection_of(materialized, said) -%}
  {{ return(said or ('keep' if materialized == 'history' else 'apply')) }}
{%- endmacro %}
