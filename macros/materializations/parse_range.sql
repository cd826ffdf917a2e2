{#- Parses and checks the records of a range, and keeps them in `changes_cache`. Refuses a range of another source's or
    of several tables' records, or of records that were not masked, and writes down what is new of their columns. Then nothing more is refused, and a retry
    of the quarantine begins. Returns {facts, messages}: the facts of the records, see `facts_of_changes`, and what the
    run reports about their columns, a list of sentences. -#}
{%- macro parse_range(relations, settings, range) -%}
  {%- do reconcile.refuse_unaccounted_rows(relations, settings, range) -%}
  {%- do reconcile.compare_buckets(relations, settings, range) -%}
  {%- do reconcile.run_statements(reconcile._get_changes_statements(relations, settings, range)) -%}
  {%- do reconcile.refuse_purge_meanwhile(settings.inputs, range) -%}
  {%- do reconcile.refuse_unreadable_rows(relations.changes_cache, range.repair.snapshot) if range.repair -%}
  {%- do reconcile.refuse_rows_of_other_records(relations, settings, range) -%}
  {%- set facts = reconcile.facts_of_changes(relations.changes_cache, settings.fields, settings.inputs.objects, settings.form.columns) -%}
  {%- do reconcile.refuse_unmasked(settings.inputs, settings.form.columns, facts) -%}
  {%- do reconcile.refuse_other_source(settings.inputs, facts) if not range.base_batch -%}
  {%- do settings.update({'tables': reconcile.refuse_ambiguous_objects(
        settings.inputs.objects, none if range.kind == 'rebuild' else settings.built.tables, facts)}) -%}
  {%- set notes = {'statements': [], 'messages': []} if settings.as_of or range.last < range.first
        else reconcile.note_columns(relations, settings.form, settings.fields, range) -%}
  {%- do reconcile.refuse_records_that_no_longer_fit(relations, range) if range.retry and range.retry.whole -%}
  {%- do reconcile.refuse_purge_meanwhile(settings.inputs, range, range.retry) if range.retry -%}
  {%- do reconcile.run_statements(notes.statements) -%}
  {%- do reconcile.begin_noted_writes(relations, settings, range) -%}
  {%- do reconcile.run_statements(reconcile.get_begin_retry_statements(relations, settings, range.retry)) -%}
  {{ return({'facts': facts, 'messages': notes.messages}) }}
{%- endmacro %}

{#- Statements that drop the caches of an earlier run, set up the session, and parse and check the records of a range
    once, into `changes_cache`. Whatever is asked about the records afterwards reads this cache. -#}
{%- macro _get_changes_statements(relations, settings, range) -%}
  {%- set fields = reconcile.fields_of_model(settings.form.row_ids, settings.form.keyless) -%}
  {%- do settings.update({'fields': fields}) -%}
  {%- set noted = ['_change_table', '_change_fields', '_change_key', '_change_schema', '_change_macro', '_change_zero_dates'] -%}
  {%- set records = (
        reconcile.checked_records_beside_snapshot(range.repair.sql or sql, fields, settings.form, range, fields | select('in', noted) | list) if settings.snapshot
        else reconcile.checked_records(
            reconcile.records_as_of(sql, settings.as_of), fields, settings.form, range.first, range.last,
            extra_columns=fields | select('in', noted) | list)) -%}
  {{ return(reconcile.get_uncache_statements(relations) + reconcile.get_session_statements()
      + [reconcile.cached(relations.changes_cache, records)]) }}
{%- endmacro %}

{#- The statements that set how the session plans what follows. -#}
{%- macro get_session_statements() -%}
  {{ return(adapter.dispatch('get_session_statements', 'reconcile')()) }}
{%- endmacro %}

{#- These settings are needed however the session was configured. Spark takes half a minute to infer filters from the
    source macro's chain of projections, and gains nothing from them. Spark parses and analyzes a cached view that is
    kept as text, with its whole chain, each time the view is read. Hive's metastore keeps the size that a base table
    had when it was made, and by that size Spark would broadcast a table of any size: only sizes that Spark has seen
    count. -#}
{%- macro default__get_session_statements() -%}
  {{ return([
      'set spark.sql.constraintPropagation.enabled = false',
      'set spark.sql.legacy.storeAnalyzedPlanForView = true',
      'set spark.sql.autoBroadcastJoinThreshold = -1',
      'set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m']) }}
{%- endmacro %}

{#- A SQL warehouse of Databricks refuses the settings of Spark. -#}
{%- macro databricks__get_session_statements() -%}
  {{ return([]) }}
{%- endmacro %}

{%- macro get_uncache_statements(relations) -%}
  {{ return([
      'drop view if exists ' ~ relations.notes_cache,
      'drop view if exists ' ~ relations.fold_cache,
      'drop view if exists ' ~ relations.changes_cache]) }}
{%- endmacro %}

{#- The names of the columns that the model's SELECT has. It is refused without those that `row_ids` and `keyless`,
    {kind, place} or none, call for. -#}
{%- macro fields_of_model(row_ids, keyless) -%}
  {%- set fields = adapter.get_column_schema_from_query(sql) | map(attribute='name') | list -%}
  {%- set complaints = [] -%}
  {%- for field in ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_batch', '_change_columns',
                    '_change_error'] if field not in fields -%}
    {%- do complaints.append('its SELECT has no column ' ~ field ~ '; add it, see "Change records" in docs/design.md') -%}
  {%- endfor -%}
  {%- for column in reconcile.declared_columns(model.columns.values() | list) if column.name not in fields -%}
    {%- do complaints.append('its SELECT has no column ' ~ column.name ~ ', which its YAML declares; add it to the SELECT, or remove it from the YAML') -%}
  {%- endfor -%}
  {%- if row_ids and '_row_id' not in fields -%}
    {%- do complaints.append('its SELECT has no column _row_id, which `meta: {row_ids: true}` requires; add the column, or remove row_ids from meta') -%}
  {%- endif -%}
  {%- if reconcile.keys_may_shift(keyless) and '_change_transaction' not in fields -%}
    {%- do complaints.append('its SELECT has no column _change_transaction, the transaction of a change; select it, or add `cast(null as string) as _change_transaction` if the source has no transactions') -%}
  {%- endif -%}
  {%- if keyless.kind == 'range_deletes' and '_range' not in fields -%}
    {%- do complaints.append('its SELECT has no column _range, which `meta: {range_deletes: true}` requires; add the column, or remove range_deletes from meta') -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(fields) }}
{%- endmacro %}
