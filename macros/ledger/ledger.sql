{%- macro ledger() -%}
  {{ return(reconcile.own_table('reconcile_ledger')) }}
{%- endmacro %}

{#- One row for each model and applied range of batches, one for each applied snapshot beside the log (kind snapshot),
    and one for each purged object (kind purge); see docs/design.md. Counts are of change records. In kind snapshot,
    `applied` and `deleted` also count the rows that the snapshot lacks, of which there is no record. -#}
{%- macro get_create_ledger_statement(file_format) -%}
{{ reconcile.create_table_statement(reconcile.ledger(), reconcile._columns_of_ledger(), file_format, ['relation']) }}
{%- endmacro %}

{%- macro _columns_of_ledger() %}
relation string comment 'schema.name of the model',
object string comment 'the object, or several objects separated by commas',
kind string comment 'apply: new batches; replay: batches applied again; rebuild: all batches, from nothing or a base snapshot; snapshot: rows of a snapshot beside the log; purge: records deleted from the staging table in relation; erasure: counted records that were erased',
first_batch bigint,
last_batch bigint,
delivered bigint comment 'records of the object in these batches, counted in staging only',
applied bigint comment 'records that set their row: inserted + updated + deleted + tombstoned',
superseded bigint comment 'records that lost to a newer record of their row',
duplicate bigint comment 'additional copies of a record',
quarantined bigint comment 'records that could not be applied; see the quarantine table',
pending bigint comment 'records that wait for other records of their row',
inserted bigint,
updated bigint,
deleted bigint,
tombstoned bigint comment 'deletes of rows that did not exist',
base_batch bigint comment 'the largest _change_batch of the base table after the run',
cut_time timestamp comment 'for Spanner: all commits up to this time are in the batches up to last_batch',
watermark timestamp comment 'for Bigtable, an estimate: the lowest low watermark of all partitions after last_batch; changes from before this time may still arrive',
seconds double,
invocation_id string,
recorded_at timestamp,
entry bigint comment 'the number of this row among the rows of its relation, which orders them; NULL for rows of earlier versions without this column',
last_appended_at timestamp comment 'when last_batch was appended: identifies the batch if staging is restored or created again under the same numbers',
zero_dates bigint comment 'the number of zero dates that became NULL, as their columns declare; NULL for rows of earlier versions without this column',
retried bigint comment 'the number of the retry of the quarantine, or of another range after which the base table has such a mark; NULL without a mark, and for rows of earlier versions without this column',
deletes_batch bigint comment 'the largest _change_batch of the table of deletes without a key after the run; NULL without such a table, and for rows of earlier versions without this column',
quarantine_reasons {{ reconcile._type_of_reasons() }} comment 'why records are in quarantine, one entry for each reason, with its records in each batch; NULL if none is, and for rows of earlier versions without this column',
stored_rows bigint comment 'the rows of the base table after the run, with deleted and pending rows; NULL for kind snapshot, and for rows of earlier versions without this column'
{%- endmacro %}

{#- Adds the columns that a ledger of an earlier version of this package lacks. -#}
{%- macro get_alter_ledger_statements() -%}
  {%- set ledger = reconcile.qualified(reconcile.ledger()) -%}
  {%- set names = adapter.get_column_schema_from_query('select * from ' ~ ledger ~ ' where false') | map(attribute='name') | list -%}
  {%- set missing = [] -%}
  {%- for name, type in [('entry', 'bigint'), ('last_appended_at', 'timestamp'), ('zero_dates', 'bigint'), ('retried', 'bigint'), ('deletes_batch', 'bigint'), ('quarantine_reasons', reconcile._type_of_reasons()), ('stored_rows', 'bigint')] if name not in names -%}{%- do missing.append(name ~ ' ' ~ type) -%}{%- endfor -%}
  {{ return(['alter table ' ~ ledger ~ ' add columns (' ~ missing | join(', ') ~ ')'] if missing else []) }}
{%- endmacro %}

{#- What has been applied: {ledger_batch, ledger_base_batch, entry, last_appended_at, ledger_deletes_batch, ledger_retried,
    base_batch, deletes_batch}. `ledger_batch` is the last batch in the ledger, `ledger_base_batch` the largest batch of the base
    table at that time, and `ledger_deletes_batch` that of the table of keyless deletes, 0 without such a table. `entry`
    is the number of the ledger's last row. `last_appended_at` is when the last batch was appended, in microseconds, and
    `ledger_retried` the greatest number of a mark of the base table, see `marked_range`.
    `base_batch` and `deletes_batch` are the largest batches of the two tables now. A rebuild begins a new account.
    `keyless`: {kind, place}, or none. `of_ledger`: as `account_of` gives it. -#}
{%- macro applied_batches(relations, keyless, of_ledger) -%}
  {%- set known = reconcile.known_of(relations.live) -%}
  {%- set account = dict(of_ledger) -%}
  {%- if not reconcile.is_idle(relations.live) -%}
    {%- do account.update({'base_batch': reconcile.largest_batch(relations.base, account.ledger_base_batch), 'deletes_batch': account.ledger_deletes_batch}) -%}
    {%- if keyless and account.ledger_deletes_batch -%}
      {%- do account.update({'deletes_batch': reconcile.largest_batch(relations[keyless.kind], account.ledger_deletes_batch)}) -%}
    {%- endif -%}
    {#- Since this run began, another run may have applied the same batches, and their records may have been purged
        afterwards. -#}
    {%- if known and account.base_batch != account.ledger_base_batch -%}
      {%- do account.update(reconcile.one_row(reconcile._account(relations))) -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(account) }}
{%- endmacro %}

{#- What the ledger has of a model, as `applied_batches` describes it. -#}
{%- macro account_of(relations) -%}
  {{ return(reconcile.known_of(relations.live) or reconcile.one_row(reconcile._account(relations))) }}
{%- endmacro %}

{%- macro _account(relations) -%}
{{ reconcile._accounts([reconcile.ledger_name(relations.live)]) }}
{%- endmacro %}

{#- What the ledger has of models since their last rebuild, as a SELECT of the columns that `applied_batches` describes.
    `names`: the models' names in the ledger. `by_name`: one row for each model, with its name; otherwise one row. -#}
{%- macro _accounts(names, by_name=false) -%}
select
    {%- if by_name %}
    relation,
    {%- endif %}
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried
from (
    select *, max(if(kind = 'rebuild', place, null)) over ({{ 'partition by relation' if by_name }}) as rebuilt
    from (
        select {{ 'relation, ' if by_name }}kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, {{ reconcile.ledger_order() }} as place
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where relation {{ 'in (' ~ reconcile.literals(names) ~ ')' if by_name else '= ' ~ reconcile.literal(names[0]) }}
    )
)
where rebuilt is null or place >= rebuilt
{%- if by_name %}
group by relation
{%- endif %}
{%- endmacro %}

{#- The order of the ledger's rows of one relation: by `entry`. Rows that an earlier version wrote have no `entry`; they
    come first, in the order of `recorded_at`. Newer rows do not use the clock, because a clock can be set back. -#}
{%- macro ledger_order() -%}
struct(coalesce(entry, 0) as entry, recorded_at)
{%- endmacro %}

{#- The largest batch of a base table; 0 if it has no row. A table with deletion vectors does not answer a maximum from
    its statistics. But Spark skips the files whose statistics end before `known`, the largest batch as the ledger has
    it. So only a restored base table is read whole. -#}
{%- macro largest_batch(table, known=0) -%}
  {%- set query = 'select max(_change_batch) from ' ~ reconcile.qualified(table) -%}
  {{ return((run_query(query ~ ' where _change_batch >= ' ~ known)[0][0] if known) or run_query(query)[0][0] or 0) }}
{%- endmacro %}
