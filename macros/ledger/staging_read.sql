{#- The staging tables that models of this package read by a source macro, those that exist: {name: {relation, objects}}. -#}
{%- macro staging_read() -%}
  {%- set staging = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- for relation in inputs.relations if inputs.objects and load_relation(relation) -%}
      {%- do staging.setdefault(reconcile.ledger_name(relation), {'relation': relation, 'objects': []}).objects.extend(inputs.objects) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(staging) }}
{%- endmacro %}
