{#- Prints YAML that declares the tables beside the built models as sources, so that dbt's docs show these tables with
    described columns. Run it with `dbt --quiet run-operation reconcile.tables_as_sources >
    models/reconcile_tables.yml`. -#}
{%- macro tables_as_sources() -%}
  {%- do print(toyaml({'sources': reconcile._sources_of_tables()})) if execute -%}
{%- endmacro %}

{#- One source for each schema. If a schema's name begins with the target's schema, the YAML refers to the target there,
    and so serves every target. -#}
{%- macro _sources_of_tables() -%}
  {%- set sources = {} -%}
  {%- for node in reconcile.reconciled_nodes() | sort(attribute='name') -%}
    {%- set schema = reconcile.schema_name(reconcile.relation_of(node)) -%}
    {%- set own = reconcile.schema_name(reconcile.ledger()) -%}
    {%- set of_target = schema.startswith(own) -%}
    {%- set rest = schema[own | length:] if of_target else '_' ~ schema -%}
    {%- set source = sources.setdefault(rest, {
        'name': 'reconcile_tables' ~ rest | replace('.', '_'), 'schema': '{{ target.schema }}' ~ rest if of_target else schema,
        'description': 'What the package reconcile keeps beside its models.', 'tables': []}) -%}
    {%- do source.tables.extend(reconcile._tables_of_node(node)) -%}
  {%- endfor -%}
  {{ return(sources.values() | selectattr('tables') | list) }}
{%- endmacro %}

{%- macro _tables_of_node(node) -%}
  {%- set relations = reconcile.model_relations(reconcile.relation_of(node)) -%}
  {%- set tables = [] -%}
  {%- for name, description in reconcile._descriptions_of_tables(node).items() if reconcile.existing_relation(relations[name]) -%}
    {%- set known = dict(reconcile._descriptions_of_columns(), **(reconcile._descriptions_in(node) if name in ['base', 'changes'] else {})) -%}
    {%- set columns = [] -%}
    {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relations[name]) ~ ' where false') -%}
      {#- Iceberg's tables have some columns under another name: see `stored_column`. -#}
      {%- do columns.append({'name': column.name, 'description': known.get(column.name | lower, known.get((column.name | lower)[7:], ''))}) -%}
    {%- endfor -%}
    {%- do tables.append({'name': relations[name].identifier, 'description': description, 'columns': columns}) -%}
  {%- endfor -%}
  {{ return(tables) }}
{%- endmacro %}

{%- macro _descriptions_in(node) -%}
  {%- set descriptions = {} -%}
  {%- for column in node.columns.values() -%}{%- do descriptions.update({column.name | lower: column.description}) -%}{%- endfor -%}
  {{ return(descriptions) }}
{%- endmacro %}

{%- macro _descriptions_of_tables(node) -%}
  {{ return({
      'base': 'Every version of every row of ' ~ node.name ~ ', one for each change record, deletes too.' if node.config.materialized == 'history'
          else 'Every row of ' ~ node.name ~ ' as of its newest change. Of a deleted row the key and the sequence stay, so that a late record cannot bring it back.',
      'changes': 'The change records of ' ~ node.name ~ ', of all of staging.',
      'quarantine': 'Records of ' ~ node.name ~ ' that could not be applied, and why.',
      'row_deletes': 'Deletes of ' ~ node.name ~ ' that name only the address of a row.',
      'range_deletes': 'Deletions of ranges of cells of ' ~ node.name ~ '.',
  }) }}
{%- endmacro %}

{%- macro _descriptions_of_columns() -%}
  {{ return({
      '_change_type': 'insert, update or delete',
      '_change_sequence': 'the place in the order of the changes of one key: the greater text is the newer change',
      '_change_id': 'identity of the event at its source',
      '_change_time': 'commit time at the source, as precise as the source gives it',
      '_change_transaction': "the source's transaction id; NULL where it has none",
      '_change_batch': 'the batch of the staging table that brought it',
      '_change_columns': 'the columns that the record carries; NULL: all of them',
      '_change_error': 'why the record cannot be applied; NULL: it can',
      '_change_fields': "the names and forms of the payload's fields",
      '_change_key': 'the key columns that the record names, as a list in JSON',
      '_change_schema': "Datastream's schema_key",
      '_change_record': 'the record as delivered',
      '_change_origin': 'the file, or the partition, that it came from',
      '_change_row_sequence': 'the _change_sequence of the record that last set the whole row',
      '_change_column_sequences': 'the _change_sequence of the record that last set a column, for those that changed since',
      '_change_repeats': 'whether the version changed no declared column',
      '_change_valid_to': 'valid_to where versions that changed nothing count with the one before',
      '_change_is_insert': 'whether an insert gave the row its key, where keys may pass from row to row',
      '_change_contenders': 'records of the transaction that may still decide on the row: address, sequence, time, batch',
      '_change_displaced': 'records that set the row if its transaction, or another one, turns out to have undone an insert',
      '_change_is_undone': 'whether the transaction of the record undid it: it is no version',
      '_change_is_known': 'whether every column of the version is known',
      '_change_snapshot': 'where the record stands to the snapshot beside the log: row, before, after or uncertain',
      '_deleted': 'whether the row is deleted',
      '_row_id': 'the address of the row at its source; NULL of backfill rows',
      '_range': 'the range of cells that is deleted: from start_time on, before end_time; NULL: without end, or any',
      'valid_from': 'when the version began, by the time of its source',
      'valid_to': 'when it ended; NULL: it is the newest',
      'record': 'the record as delivered',
      'origin': 'the file, or the partition, that it came from',
  }) }}
{%- endmacro %}
