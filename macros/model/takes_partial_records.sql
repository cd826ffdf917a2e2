{#- Whether a model takes partial records, which carry only some columns. Its source macro says so, or its own `meta:
    {partial_records: ...}`. -#}
{%- macro takes_partial_records(node) -%}
  {%- set meta = node.config.get('meta') or {} -%}
  {{ return(meta.get('partial_records', reconcile.model_inputs(node).objects.values() | selectattr('partial_records', 'defined') | list | length > 0)) }}
{%- endmacro %}
