{%- macro ledger() -%}
  {{ return(api.Relation.create(schema=target.schema, identifier='reconcile_ledger', type='table')) }}
{%- endmacro %}

{#- One row for each model and range of batches that was applied; see docs/design.md. Counts are of change records. -#}
{%- macro get_create_ledger_statement() -%}
create table if not exists {{ reconcile.qualified(reconcile.ledger()) }} (
    relation string comment 'schema.name of the model',
    object string comment 'the source object, or several with commas',
    kind string comment 'apply: batches never seen; replay: batches applied again; rebuild: all batches, from nothing',
    first_batch bigint,
    last_batch bigint,
    delivered bigint comment 'records of the object in these batches, counted from staging alone',
    applied bigint comment 'set their row: inserted + updated + deleted + tombstoned',
    superseded bigint comment 'lost to a newer record',
    duplicate bigint comment 'further copies of a record',
    quarantined bigint comment 'could not be applied; see the quarantine table',
    pending bigint comment 'wait for something',
    inserted bigint,
    updated bigint,
    deleted bigint,
    tombstoned bigint comment 'deletes of rows that were not there',
    base_batch bigint comment 'the largest _change_batch of the base table afterwards',
    cut_time timestamp,
    watermark timestamp,
    seconds double,
    invocation_id string,
    recorded_at timestamp
) using {{ config.get('file_format') or 'delta' }}
{%- endmacro %}

{#- The last batch that the ledger knows of for a relation, and the base table's largest batch after it: {last, base} or zeros.
    A rebuild begins a new account. -#}
{%- macro ledger_state(relation) -%}
  {%- set rows = run_query(
      'select max(last_batch) as last_batch, max_by(base_batch, recorded_at) as base_batch from '
      ~ reconcile.qualified(reconcile.ledger()) ~ ' where relation = ' ~ reconcile.literal(reconcile.ledger_name(relation))
      ~ ' and recorded_at >= (select coalesce(max(recorded_at), timestamp\'1970-01-01\') from ' ~ reconcile.qualified(reconcile.ledger())
      ~ ' where kind = \'rebuild\' and relation = ' ~ reconcile.literal(reconcile.ledger_name(relation)) ~ ')') -%}
  {{ return({'last': rows[0][0] | int(0), 'base': rows[0][1] | int(0)}) }}
{%- endmacro %}

{%- macro ledger_name(relation) -%}
{{- relation.schema ~ '.' ~ relation.identifier -}}
{%- endmacro %}
