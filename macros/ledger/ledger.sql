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
    recorded_at timestamp,
    entry bigint comment 'the number of this row among those of its relation, by which they are ordered; of rows of before there was one, NULL',
    last_appended_at timestamp comment 'when the last batch was appended: which batch its number meant, should staging be restored or made anew',
    zero_dates bigint comment 'values that were zero dates and became NULL, as their columns declare it; of rows of before this was counted, NULL'
) using {{ file_format }}
partitioned by (relation){{ reconcile.format_properties_clause(file_format) }}
{%- endmacro %}

{#- Adds the columns that a ledger of an earlier version of this package lacks. -#}
{%- macro get_alter_ledger_statements() -%}
  {%- set ledger = reconcile.qualified(reconcile.ledger()) -%}
  {%- set names = adapter.get_column_schema_from_query('select * from ' ~ ledger ~ ' where false') | map(attribute='name') | list -%}
  {%- set missing = [] -%}
  {%- for name, type in [('entry', 'bigint'), ('last_appended_at', 'timestamp'), ('zero_dates', 'bigint')] if name not in names -%}{%- do missing.append(name ~ ' ' ~ type) -%}{%- endfor -%}
  {{ return(['alter table ' ~ ledger ~ ' add columns (' ~ missing | join(', ') ~ ')'] if missing else []) }}
{%- endmacro %}

{#- What has been applied: {ledger_batch, ledger_base_batch, entry, last_appended_at, base_batch}. `ledger_batch` is the
    last batch in the ledger, and `ledger_base_batch` the largest batch of the base table at that time. `entry` is the
    number of the ledger's last row. `last_appended_at` is when the last batch was appended, in microseconds.
    `base_batch` is the largest batch of the base table now. A rebuild begins a new account. -#}
{%- macro applied_batches(relations) -%}
  {%- set known = reconcile.known_of(relations.live) -%}
  {%- set account = dict(known or reconcile.one_row(reconcile._account(relations))) -%}
  {%- if not reconcile.is_idle(relations.live) -%}
    {%- do account.update({'base_batch': reconcile.largest_batch(relations.base, account.ledger_base_batch)}) -%}
    {#- Since this run began, another run may have applied the same batches, and their records may have been purged
        afterwards. -#}
    {%- if known and account.base_batch != account.ledger_base_batch -%}
      {%- do account.update(reconcile.one_row(reconcile._account(relations))) -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(account) }}
{%- endmacro %}

{%- macro _account(relations) -%}
{{ reconcile._accounts([reconcile.ledger_name(relations.live)]) }}
{%- endmacro %}

{%- macro _accounts(names, by_name=false) -%}
{%- set relations = [] -%}
{%- for name in names -%}{%- do relations.append(reconcile.literal(name)) -%}{%- endfor -%}
select
    {%- if by_name %}
    relation,
    {%- endif %}
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at
from (
    select *, max(if(kind = 'rebuild', place, null)) over ({{ 'partition by relation' if by_name }}) as rebuilt
    from (
        select {{ 'relation, ' if by_name }}kind, last_batch, base_batch, last_appended_at, {{ reconcile.place_in_ledger() }} as place
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where relation {{ 'in (' ~ relations | join(', ') ~ ')' if by_name else '= ' ~ relations[0] }}
    )
)
where rebuilt is null or place >= rebuilt
{%- if by_name %}
group by relation
{%- endif %}
{%- endmacro %}

{#- The order of the ledger's rows of one relation. The clock orders only rows without a number, which an earlier
    version wrote: a clock can be set back. -#}
{%- macro place_in_ledger() -%}
struct(coalesce(entry, 0) as entry, recorded_at)
{%- endmacro %}

{#- A table with deletion vectors does not answer a maximum from its statistics. But Spark skips the files whose
    statistics end before `known`, so only a restored base table is read whole. -#}
{%- macro largest_batch(table, known=0) -%}
  {%- set query = 'select max(_change_batch) from ' ~ reconcile.qualified(table) -%}
  {{ return(run_query(query ~ ' where _change_batch >= ' ~ known)[0][0] or run_query(query)[0][0] or 0) }}
{%- endmacro %}
