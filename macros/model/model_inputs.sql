{#- What a model reads: {relations, objects}. `relations` are the relations on which it depends: its staging table comes
    first. `objects` are the source objects whose records it takes, each with what orders the records. A source macro
    writes the objects into the model's meta while dbt parses (see `note_objects`), so they are also known for models
    that do not run. -#}
{%- macro model_inputs(node) -%}
  {%- set relations = [] -%}
  {%- for unique_id in node.depends_on.nodes -%}
    {%- set input = graph.sources.get(unique_id) or graph.nodes.get(unique_id) -%}
    {%- if input -%}
      {%- do relations.append(reconcile.relation_of(input)) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set objects = {} -%}
  {%- for key, order in node.config.get('meta', {}).items() if key.startswith('reconcile reads ') -%}
    {%- if 'garbage_collection' in order -%}
      {%- set order = dict(order, garbage_collection=reconcile.garbage_collection_of(node.config.materialized, order.garbage_collection)) -%}
    {%- endif -%}
    {%- do objects.update({key.removeprefix('reconcile reads '): order}) -%}
  {%- endfor -%}
  {{ return({'relations': relations, 'objects': objects}) }}
{%- endmacro %}

{#- The staging table that a model reads, or the relation itself if no model of this package makes it. -#}
{%- macro staging_of(relation) -%}
  {%- for node in reconcile.reconciled_nodes() if reconcile.is_made_by(relation, node) -%}
    {{ return(reconcile.model_inputs(node).relations[0]) }}
  {%- endfor -%}
  {{ return(relation) }}
{%- endmacro %}

{#- The nodes of all models that this package materializes, in this project and its packages; none while dbt parses. -#}
{%- macro reconciled_nodes() -%}
  {{ return([] if not execute else graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
      | selectattr('config.materialized', 'in', ['current_state', 'current_view', 'history']) | list) }}
{%- endmacro %}

{#- Whether models of this package read a relation as their staging table. -#}
{%- macro is_staging_read(relation) -%}
  {{ return(reconcile.ledger_name(relation) in reconcile.staging_read()) }}
{%- endmacro %}

{#- The nodes that a test of a relation covers: the node of a model, or, for a staging table, the nodes of all built
    models that read it. -#}
{%- macro nodes_to_test(relation) -%}
  {%- set staging = reconcile.staging_read().get(reconcile.ledger_name(relation)) -%}
  {%- if not staging -%}{{ return([reconcile.node_of(relation)]) }}{%- endif -%}
  {%- set nodes = reconcile.built_nodes() | selectattr('unique_id', 'in', staging.models) | list -%}
  {#- dbt build runs the tests of a source before any model. -#}
  {%- if not nodes and flags.WHICH == 'build' -%}
    {%- do log(reconcile.ledger_name(relation) ~ ': no model that reads it has been built yet, so there is nothing to test', info=true) -%}
    {{ return([]) }}
  {%- elif not nodes -%}
    {{ exceptions.raise_compiler_error('No model that reads ' ~ reconcile.ledger_name(relation) ~ ' has been built yet; build one by `dbt run` first.') }}
  {%- endif -%}
  {{ return(nodes) }}
{%- endmacro %}

{#- The nodes of the models that an earlier run or this one has built. dbt does not see a relation that is made beside a
    model during the run, and a model that has begun may have failed: so Spark is asked. -#}
{%- macro built_nodes() -%}
  {%- set nodes = [] -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- set quarantine = reconcile.model_relations(reconcile.relation_of(node)).quarantine -%}
    {%- set is_built = reconcile.existing_relation(quarantine) or (node.unique_id in graph.get('reconcile_ranges', {}) and not reconcile.is_missing(quarantine)) -%}
    {%- do nodes.append(node) if is_built -%}
  {%- endfor -%}
  {{ return(nodes) }}
{%- endmacro %}

{#- The nodes of models that are declared and not built. -#}
{%- macro missing_nodes(built, declared) -%}
  {{ return(declared | rejectattr('unique_id', 'in', built | map(attribute='unique_id') | list) | list) }}
{%- endmacro %}

{#- The node whose relation this is. -#}
{%- macro node_of(relation) -%}
  {%- for node in reconcile.reconciled_nodes() if reconcile.is_made_by(relation, node) -%}
    {{ return(node) }}
  {%- endfor -%}
  {{ exceptions.raise_compiler_error(reconcile.ledger_name(relation) ~ ' is not a model of this package, and this test is only for such models; remove the test from it.') }}
{%- endmacro %}
