{#- Registers the project's models with the staging tables that they read, those also that this run does not select. A
    purge by `ingestion/maintain.py` never goes past a batch that a registered model has not applied. So a model is
    registered before its run asks what was purged: then either the purge sees the model, or the run sees the purge. A
    run asks once what is registered, and writes only if a model is missing or has changed. The job makes the table of
    readers when it is first called. Where that table does not exist, the run asks and writes nothing. A view over a
    staging table has no table of readers: a purge is of tables. `cuts`: the last batch of each staging table. -#}
{%- macro register_models(cuts) -%}
  {%- if not reconcile._registers_models() -%}{{ return(none) }}{%- endif -%}
  {%- set readers = reconcile._readers_by_staging(cuts) -%}
  {%- set existing, registered = [], {} -%}
  {%- for of_staging in readers.values() if reconcile.existing_relation(reconcile.readers_of(of_staging.staging)) -%}
    {%- do existing.append(of_staging.staging) -%}
  {%- endfor -%}
  {%- for row in (run_query(reconcile.registered_readers(existing)) if existing else []) -%}
    {%- do registered.setdefault(row[0], {}).update({row[1]: {'reader': row[2], 'micros': row[3]}}) -%}
  {%- endfor -%}
  {%- for name, of_staging in readers.items() if of_staging.staging in existing -%}
    {%- set missing = {} -%}
    {%- for relation, reader in of_staging.models.items() -%}
      {%- set before = registered.get(name, {}).get(relation, {'reader': none, 'micros': none}) -%}
      {%- do missing.update({relation: dict(reader, after=before.micros)}) if before.reader != reconcile.reader_text(reader) -%}
    {%- endfor -%}
    {%- do reconcile.run_statements(reconcile.get_register_statements(of_staging.staging, missing)) if missing -%}
  {%- endfor -%}
{%- endmacro %}

{#- The models that read each staging table: {name: {staging, models: {name in the ledger: reader}}}. -#}
{%- macro _readers_by_staging(cuts) -%}
  {%- set readers = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- for staging in reconcile.model_inputs(node).relations
          if cuts.get(reconcile.ledger_name(staging)) is not none and reconcile.existing_relation(staging).type != 'view' -%}
      {%- set of_staging = readers.setdefault(reconcile.ledger_name(staging), {'staging': staging, 'models': {}}) -%}
      {%- do of_staging.models.update({reconcile.ledger_name(reconcile.relation_of(node)): reconcile.reader_of(node)}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(readers) }}
{%- endmacro %}

{#- Whether the runs of this target register their models: what the variable `reconcile_register_models` says. Targets of
    CI have a schema for each change, and nobody runs their models again. -#}
{%- macro _registers_models() -%}
  {%- set said = var('reconcile_register_models', true) -%}
  {%- if said in [true, false] -%}{{ return(said) }}{%- endif -%}
  {%- if said is string or said is mapping or said is not iterable -%}
    {{ exceptions.raise_compiler_error('The variable reconcile_register_models is ' ~ said ~ '; write true, false, or a list of names of targets.') }}
  {%- endif -%}
  {{ return(target.name in said) }}
{%- endmacro %}
