{#- Runs before every `dbt run` and `dbt build`, in every project that installs the package: checks the Spark session, makes the
    ledger, and takes the cut: the last batch of each staging table, at which all models of this run stop. -#}
{%- macro begin_run() -%}
  {%- if execute and flags.WHICH in ['run', 'build'] and reconcile.reconciled_nodes() -%}
    {%- do reconcile._check_spark() -%}
    {%- do run_query('create schema if not exists ' ~ reconcile.identifier(target.schema)) -%}
    {%- do run_query(reconcile.get_create_ledger_statement()) -%}
    {%- set cuts = {} -%}
    {%- for node in reconcile.reconciled_nodes() -%}
      {%- for relation in reconcile.model_inputs(node).relations if reconcile.ledger_name(relation) not in cuts -%}
        {%- do cuts.update({reconcile.ledger_name(relation): reconcile._last_batch(relation)}) -%}
      {%- endfor -%}
    {%- endfor -%}
    {%- do graph.update({'reconcile_cuts': cuts}) -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _check_spark() -%}
  {%- set extensions = run_query('set spark.sql.extensions')[0][1] | string -%}
  {%- if 'DeltaSparkSessionExtension' not in extensions -%}
    {{ exceptions.raise_compiler_error(
        "This Spark session does not know Delta: set SPARK_CONF_DIR to the package's conf/ directory "
        ~ "(dbt_packages/reconcile/conf) and run again.") }}
  {%- endif -%}
{%- endmacro %}

{#- NULL where there is no such table or it is no staging table: a model may also read what users write themselves. -#}
{%- macro _last_batch(relation) -%}
  {%- set table = adapter.get_relation(database=none, schema=relation.schema, identifier=relation.identifier) -%}
  {%- if not table -%}{{ return(none) }}{%- endif -%}
  {%- set names = adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relation) ~ ' where false') | map(attribute='name') | list -%}
  {%- if 'batch' not in names or 'record' not in names -%}{{ return(none) }}{%- endif -%}
  {{ return(run_query('select max(batch) from ' ~ reconcile.qualified(relation))[0][0] | int(0)) }}
{%- endmacro %}
