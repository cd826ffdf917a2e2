{#- Registers the project's models with the staging tables that they read, those also that this run does not select. A
    purge by `ingestion/maintain.py` never goes past a batch that a registered model has not applied. So a model is
    registered before its run asks what was purged: then either the purge sees the model, or the run sees the purge. A
    run asks once what is registered, and writes only if a model is missing or has changed. A view over a staging table
    has no table of readers: a purge is of tables. `cuts`: the last batch of each staging table. -#}
{%- macro register_models(cuts) -%}
  {%- set readers = reconcile._readers_by_staging(cuts) -%}
  {%- set existing, registered = [], {} -%}
  {%- for of_staging in readers.values() if reconcile.existing_relation(reconcile.readers_of(of_staging.staging)) -%}
    {%- do existing.append(of_staging.staging) -%}
  {%- endfor -%}
  {%- for row in (run_query(reconcile.registered_readers(existing)) if existing else []) -%}
    {%- do registered.setdefault(row[0], {}).update({row[1]: row[2]}) -%}
  {%- endfor -%}
  {%- for name, of_staging in readers.items() -%}
    {%- set missing = {} -%}
    {%- for relation, reader in of_staging.models.items() if registered.get(name, {}).get(relation) != reconcile.reader_text(reader) -%}
      {%- do missing.update({relation: reader}) -%}
    {%- endfor -%}
    {%- if missing -%}
      {%- set file_format = reconcile.format_of_catalog(reconcile.catalog_of(of_staging.staging), reconcile.file_format_of_all()) -%}
      {%- do reconcile.run_statements(reconcile.get_register_statements(of_staging.staging, file_format, missing)) -%}
      {%- do reconcile.note_relations([reconcile.readers_of(of_staging.staging)]) -%}
    {%- endif -%}
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
