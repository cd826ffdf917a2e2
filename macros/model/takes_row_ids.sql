{#- Whether a model's base table keeps the address of each row. Its source macro says so, or its own `meta: {row_ids:
    ...}`. -#}
{%- macro takes_row_ids(node) -%}
  {%- set meta = node.config.get('meta') or {} -%}
  {{ return(meta.get('row_ids', reconcile.model_inputs(node).objects.values() | selectattr('row_ids', 'defined') | list | length > 0)) }}
{%- endmacro %}
