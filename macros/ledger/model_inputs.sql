{#- What a model reads: {relations, objects}: the staging tables it depends on, and the source objects whose records it takes, each with
    what orders them. A source macro leaves these in the model's meta while dbt parses, so they are known for models that do not run. -#}
{%- macro model_inputs(node) -%}
  {%- set relations = [] -%}
  {%- for unique_id in node.depends_on.nodes -%}
    {%- set input = graph.sources.get(unique_id) or graph.nodes.get(unique_id) -%}
    {%- if input -%}
      {%- do relations.append(api.Relation.create(schema=input.schema, identifier=input.get('identifier') or input.get('alias'))) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set objects = {} -%}
  {%- for key, order in node.config.get('meta', {}).items() if key.startswith('reconcile_object ') -%}
    {%- if 'garbage_collection' in order -%}
      {%- set order = dict(order, garbage_collection=reconcile.garbage_collection_of(node.config.materialized, order.garbage_collection)) -%}
    {%- endif -%}
    {%- do objects.update({key[17:]: order}) -%}
  {%- endfor -%}
  {{ return({'relations': relations, 'objects': objects}) }}
{%- endmacro %}

{#- The staging table that a model reads, or the relation itself where no model of this package makes it. -#}
{%- macro staging_of(relation) -%}
  {%- for node in reconcile.reconciled_nodes() if node.schema == relation.schema and node.alias == relation.identifier -%}
    {{ return(reconcile.model_inputs(node).relations[0]) }}
  {%- endfor -%}
  {{ return(relation) }}
{%- endmacro %}

{#- The nodes of all models that this package materializes, in this project and its packages; none while dbt parses. -#}
{%- macro reconciled_nodes() -%}
  {{ return([] if not execute else graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
      | selectattr('config.materialized', 'in', ['current_state', 'current_view', 'history']) | list) }}
{%- endmacro %}

{#- The node whose relation this is. -#}
{%- macro node_of(relation) -%}
  {%- for node in reconcile.reconciled_nodes() if node.schema == relation.schema and node.alias == relation.identifier -%}
    {{ return(node) }}
  {%- endfor -%}
  {{ exceptions.raise_compiler_error('No model of this package makes ' ~ reconcile.ledger_name(relation) ~ '; this test is for such models.') }}
{%- endmacro %}
