{#- Runs before every `dbt run`, `dbt build` and `dbt test`, in every project that installs the package. The macro
    checks the Spark session and makes the ledger. It takes the cut: the last batch of each staging table, at which all
    models of this run stop, and registers the models with these tables. It also makes the tables of results, which tests
    in several threads would otherwise make at the same time. -#}
{%- macro begin_run() -%}
  {%- do graph.update({'reconcile_listed': {}, 'reconcile_found': {}, 'reconcile_settings_of_catalogs': {}, 'reconcile_formats_of_catalogs': {}, 'reconcile_notes': {}}) if execute -%}
  {%- if execute and flags.WHICH in ['test', 'build'] and reconcile.has_parity_tests() -%}
    {%- do reconcile.create_parity_tables(reconcile.file_format_of_own_tables()) -%}
  {%- endif -%}
  {%- if execute and flags.WHICH in ['run', 'build'] and reconcile.reconciled_nodes() -%}
    {%- do reconcile._refuse_names_that_differ_in_case() -%}
    {%- do reconcile.check_session(reconcile._formats_of_tables()) -%}
    {%- set file_format = reconcile.file_format_of_own_tables() -%}
    {%- do run_query('create schema if not exists ' ~ reconcile.qualified_schema(reconcile.ledger())) -%}
    {%- do reconcile.create_if_missing(reconcile.ledger(), reconcile.get_create_ledger_statement(file_format)) -%}
    {%- do reconcile.run_statements(reconcile.get_alter_ledger_statements()) -%}
    {%- do reconcile.create_if_missing(reconcile.columns_seen(), reconcile.get_create_columns_seen_statement(file_format)) -%}
    {%- set cuts = {} -%}
    {%- do graph.update({'reconcile_dated': {}}) -%}
    {%- for node in reconcile.reconciled_nodes() -%}
      {%- for relation in reconcile.model_inputs(node).relations if reconcile.ledger_name(relation) not in cuts -%}
        {%- do cuts.update({reconcile.ledger_name(relation): reconcile._last_batch(relation)}) -%}
      {%- endfor -%}
    {%- endfor -%}
    {%- do graph.update({'reconcile_cuts': cuts, 'reconcile_appended_at': {}}) -%}
    {%- if not reconcile.as_of() and not flags.EMPTY -%}
      {%- do reconcile.register_models(cuts) -%}
    {%- endif -%}
    {%- do reconcile.begin_restore(cuts) if reconcile.restored_batch() is not none -%}
    {%- if reconcile.is_asked('only_new_records') and reconcile.is_asked('retry_quarantine') -%}
      {{ exceptions.raise_compiler_error('only_new_records leaves models without new records as they are, and retry_quarantine applies records that came before; use one of the two variables.') }}
    {%- endif -%}
    {%- do graph.update({'reconcile_snapshots': reconcile.snapshots_in_staging(cuts)}) -%}
    {%- do graph.update({'reconcile_known': reconcile.known_at_start(cuts)}) -%}
    {%- do graph.update({'reconcile_horizons': reconcile._horizons_of_run()}) -%}
    {%- if reconcile.as_of() -%}{%- do reconcile._begin_as_of() -%}{%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- dbt takes `orders` and `Orders` for two models, and Spark takes them for one table: each run of one would find the
    rows of the other. Other catalogs than Spark's own may keep them apart. -#}
{%- macro _refuse_names_that_differ_in_case() -%}
  {%- set names = {} -%}
  {%- for node in reconcile.reconciled_nodes() if reconcile.catalog_of(reconcile.relation_of(node)) is none -%}
    {%- set name = reconcile.ledger_name(reconcile.relation_of(node)) -%}
    {%- set other = names.get(name | lower) -%}
    {%- if other -%}
      {{ exceptions.raise_compiler_error('The models ' ~ other.node ~ ' and ' ~ node.name ~ ' build ' ~ other.name ~ ' and ' ~ name ~ ', which Spark takes for one table; give one of them another name or alias.') }}
    {%- endif -%}
    {%- do names.update({name | lower: {'node': node.name, 'name': name}}) -%}
  {%- endfor -%}
{%- endmacro %}

{#- The catalogs in which the run builds tables, those of the ledger and of the models, each with its file format:
    {catalog: format}, none for the session's own catalog. -#}
{%- macro _formats_of_tables() -%}
  {%- set of_ledger = reconcile.catalog_of(reconcile.ledger()) -%}
  {%- set formats = {none if of_ledger == 'spark_catalog' else of_ledger: reconcile.file_format_of_own_tables()} -%}
  {%- do formats.update(reconcile.file_formats()) -%}
  {{ return(formats) }}
{%- endmacro %}

{#- A run at an earlier moment writes only to the schemas for that moment. -#}
{%- macro _begin_as_of() -%}
  {%- set as_of = reconcile.as_of() -%}
  {%- if flags.WHICH != 'run' -%}
    {{ exceptions.raise_compiler_error('The variable as_of works only with dbt run: tests would read the present tables, and seeds and snapshots have no earlier state. Use dbt run, or remove as_of.') }}
  {%- endif -%}
  {%- if reconcile.is_asked('retry_quarantine') -%}
    {{ exceptions.raise_compiler_error('retry_quarantine is of the present tables, and as_of builds others; use one of the two variables.') }}
  {%- endif -%}
  {%- set reconciled = reconcile.reconciled_nodes() | map(attribute='unique_id') | list -%}
  {%- set others = [] -%}
  {%- for id in selected_resources if id.startswith('model.') and id not in reconciled and graph.nodes[id].config.materialized != 'ephemeral' -%}{%- do others.append(id) -%}{%- endfor -%}
  {%- if others -%}
    {{ exceptions.raise_compiler_error('The variable as_of builds only models of this package, and ' ~ others | sort | join(', ') ~ (' is' if others | length == 1 else ' are')
        ~ ' selected too; select only models of this package with --select.') }}
  {%- endif -%}
  {%- set present = [] -%}
  {%- for node in reconcile.reconciled_nodes() -%}{%- do present.append(reconcile.ledger_name(reconcile.relation_of(node)) | lower) -%}{%- endfor -%}
  {%- set schemas, staging, orders, reads_postgresql, built = [], [], [], [], {} -%}
  {%- for node in reconcile.reconciled_nodes() if node.unique_id in selected_resources -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- set destination = reconcile.destination(reconcile.relation_of(node)) -%}
    {%- set name = reconcile.ledger_name(destination) | lower -%}
    {%- if name in present -%}
      {{ exceptions.raise_compiler_error('as_of would build ' ~ node.name ~ ' as ' ~ name ~ ', which is a model of the present state; name another schema in the variable as_of_schema.') }}
    {%- elif name in built -%}
      {{ exceptions.raise_compiler_error('as_of would build both ' ~ built[name] ~ ' and ' ~ node.name ~ ' as ' ~ name ~ '; build them in separate runs, each with its own as_of_schema.') }}
    {%- endif -%}
    {%- do built.update({name: node.name}) -%}
    {%- do schemas.append(reconcile.qualified_schema(destination)) -%}
    {%- do staging.extend(inputs.relations | map('string') | list) -%}
    {%- for object in inputs.objects.values() -%}{%- do orders.append(object.coordinates | join(', ') ~ (' of PostgreSQL' if 'snapshots' in object else '')) -%}{%- do reads_postgresql.append('snapshots' in object) -%}{%- endfor -%}
  {%- endfor -%}
  {%- if as_of.position == 'batch' and staging | unique | list | length > 1 -%}
    {{ exceptions.raise_compiler_error('as_of: {batch: ' ~ as_of.value ~ '} is a batch of one staging table, and the selected models read ' ~ staging | unique | sort | join(', ')
        ~ ', each with its own batch numbers; select models of one staging table with --select, or give a time.') }}
  {%- elif as_of.position == 'sequence' and orders | unique | list | length > 1 -%}
    {{ exceptions.raise_compiler_error('as_of: {sequence: ...} is a position in one order, and the selected models have several orders (' ~ orders | unique | sort | join('; ')
        ~ '); select models of one source with --select.') }}
  {%- elif as_of.position == 'pg_snapshot' and false in reads_postgresql -%}
    {{ exceptions.raise_compiler_error('as_of: {pg_snapshot: ...} is a position of PostgreSQL, and a selected model reads another source; select models of PostgreSQL with --select.') }}
  {%- endif -%}
  {%- for schema in schemas | unique -%}
    {%- do run_query('create schema if not exists ' ~ schema) -%}
  {%- endfor -%}
{%- endmacro %}

{#- The last batch of a staging table; none if there is no such table or it is not a staging table. A model may also
    read tables that users write themselves. Batches that are texts would be compared as texts: 9 after 10. -#}
{%- macro _last_batch(relation) -%}
  {%- set table = reconcile.existing_relation(relation) -%}
  {%- if not table -%}{{ return(none) }}{%- endif -%}
  {%- set types = {} -%}
  {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relation) ~ ' where false') -%}{%- do types.update({column.name: column.dtype | lower}) -%}{%- endfor -%}
  {%- if 'record' not in types or modules.re.match('string|varchar|char', types.get('batch', 'string')) -%}{{ return(none) }}{%- endif -%}
  {%- do graph.reconcile_dated.update({reconcile.ledger_name(relation): none}) if types.get('appended_at') == 'timestamp' and table.type != 'view' -%}
  {{ return(run_query('select max(batch) from ' ~ reconcile.qualified(relation))[0][0] | int(0)) }}
{%- endmacro %}

{#- The horizons of the models that this run builds, see `horizons_of_models`. -#}
{%- macro _horizons_of_run() -%}
  {%- set names = [] -%}
  {%- for node in reconcile.reconciled_nodes() if node.unique_id in selected_resources and node.config.materialized == 'current_state' -%}
    {%- do names.append(reconcile.ledger_name(reconcile.relation_of(node))) -%}
  {%- endfor -%}
  {{ return(reconcile.horizons_of_models(names)) }}
{%- endmacro %}
