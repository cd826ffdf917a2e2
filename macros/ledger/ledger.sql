{%- macro ledger() -%}
  {{ return(api.Relation.create(schema=target.schema, identifier='reconcile_ledger', type='table')) }}
{%- endmacro %}

{#- One row for each model and range of batches that was applied; see docs/design.md. Counts are of change records. -#}
{%- macro get_create_ledger_statement(file_format) -%}
create table if not exists {{ reconcile.qualified(reconcile.ledger()) }} (
    relation string comment 'schema.name of the model',
    object string comment 'the source object, or several with commas',
    kind string comment 'apply: batches never seen; replay: batches applied again; rebuild: all batches, from nothing or a base snapshot; purge: of the staging table in relation, records of these batches were deleted',
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
    cut_time timestamp comment 'of Spanner: all that was committed up to then is in the batches up to the last one',
    watermark timestamp comment 'of Bigtable, an estimate: the lowest low watermark of all partitions after the last batch; changes of before it may yet come',
    seconds double,
    invocation_id string,
    recorded_at timestamp
) using {{ file_format }}
partitioned by (relation){{ reconcile.format_properties_clause(file_format) }}
{%- endmacro %}

{#- {ledger_batch, ledger_base_batch, base_batch}: the last batch that the ledger knows of, the base table's largest at that time, and
    its largest now. A rebuild begins a new account. -#}
{%- macro applied_batches(relations) -%}
  {%- set account = reconcile.one_row(reconcile._account(relations)) -%}
  {%- do account.update({'base_batch': reconcile.largest_batch(relations.base, account.ledger_base_batch)}) -%}
  {{ return(account) }}
{%- endmacro %}

{%- macro _account(relations) -%}
select coalesce(max(last_batch), 0) as ledger_batch, coalesce(max_by(base_batch, recorded_at), 0) as ledger_base_batch
from (
    select last_batch, base_batch, recorded_at, max(if(kind = 'rebuild', recorded_at, null)) over () as rebuilt_at
    from {{ reconcile.qualified(reconcile.ledger()) }}
    where relation = {{ reconcile.literal(reconcile.ledger_name(relations.live)) }}
)
where rebuilt_at is null or recorded_at >= rebuilt_at
{%- endmacro %}

{#- A table with deletion vectors answers no maximum from its statistics, but files that end before `known` are skipped by them: only
    a base table that was restored is read whole. -#}
{%- macro largest_batch(table, known=0) -%}
  {%- set query = 'select max(_change_batch) from ' ~ reconcile.qualified(table) -%}
  {{ return(run_query(query ~ ' where _change_batch >= ' ~ known)[0][0] or run_query(query)[0][0] or 0) }}
{%- endmacro %}

{%- macro ledger_name(relation) -%}
{{- relation.schema ~ '.' ~ relation.identifier -}}
{%- endmacro %}
