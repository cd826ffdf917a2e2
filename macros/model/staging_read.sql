{#- The existing staging tables that models of this package read by a source macro: {name: {relation, objects, models}}.
    `models` are the ids of the models' nodes; `objects` are as `model_inputs` has them. An object that one model takes
    whole has no list of tables here. -#}
{%- macro staging_read() -%}
  {%- set staging = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- for relation in inputs.relations if inputs.objects and reconcile.existing_relation(relation) -%}
      {%- set entry = staging.setdefault(reconcile.ledger_name(relation), {'relation': relation, 'objects': {}, 'models': []}) -%}
      {%- do entry.models.append(node.unique_id) -%}
      {%- for object, properties in inputs.objects.items() -%}
        {%- set known = entry.objects.get(object) -%}
        {%- set tables = properties.tables or [] if known is none else known.tables + properties.tables if known.tables and properties.tables else [] -%}
        {%- do entry.objects.update({object: {'tables': tables}}) -%}
      {%- endfor -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(staging) }}
{%- endmacro %}
