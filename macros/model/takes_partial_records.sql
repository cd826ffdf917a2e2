{#- Whether a model takes records that carry only some columns: as its source macro has it, or its own `meta: {partial_records: ...}`. -#}
{%- macro takes_partial_records(node) -%}
  {%- set meta = node.config.get('meta') or {} -%}
  {{ return(meta.get('partial_records', reconcile.model_inputs(node).objects.values() | selectattr('partial_records', 'defined') | list | length > 0)) }}
{%- endmacro %}
