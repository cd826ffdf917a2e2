set;

set spark.sql.extensions;

create schema if not exists `demo`;

show tables in `demo` like 'reconcile_ledger';

create or replace table `demo`.`reconcile_ledger` using delta
partitioned by (relation)
as
select columns.*
from (
    select from_json(
        cast(null as string),
        'relation string comment \'schema.name of the model\', '
        'object string comment \'the object, or several objects separated by commas\', '
        'kind string comment \'apply: new batches; replay: batches applied again; rebuild: all batches, from nothing or a base snapshot; snapshot: rows of a snapshot beside the log; purge: records deleted from the staging table in relation; erasure: counted records that were erased\', '
        'first_batch bigint, '
        'last_batch bigint, '
        'delivered bigint comment \'records of the object in these batches, counted in staging only\', '
        'applied bigint comment \'records that set their row: inserted + updated + deleted + tombstoned\', '
        'superseded bigint comment \'records that lost to a newer record of their row\', '
        'duplicate bigint comment \'additional copies of a record\', '
        'quarantined bigint comment \'records that could not be applied; see the quarantine table\', '
        'pending bigint comment \'records that wait for other records of their row\', '
        'inserted bigint, '
        'updated bigint, '
        'deleted bigint, '
        'tombstoned bigint comment \'deletes of rows that did not exist\', '
        'base_batch bigint comment \'the largest _change_batch of the base table after the run\', '
        'cut_time timestamp comment \'for Spanner: all commits up to this time are in the batches up to last_batch\', '
        'watermark timestamp comment \'for Bigtable, an estimate: the lowest low watermark of all partitions after last_batch; changes from before this time may still arrive\', '
        'seconds double, '
        'invocation_id string, '
        'recorded_at timestamp, '
        'entry bigint comment \'the number of this row among the rows of its relation, which orders them; NULL for rows of earlier versions without this column\', '
        'last_appended_at timestamp comment \'when last_batch was appended: identifies the batch if staging is restored or created again under the same numbers\', '
        'zero_dates bigint comment \'the number of zero dates that became NULL, as their columns declare; NULL for rows of earlier versions without this column\', '
        'retried bigint comment \'the number of the retry of the quarantine, or of another range after which the base table has such a mark; NULL without a mark, and for rows of earlier versions without this column\', '
        'deletes_batch bigint comment \'the largest _change_batch of the table of deletes without a key after the run; NULL without such a table, and for rows of earlier versions without this column\', '
        'quarantine_reasons array<struct<reason: string, example_key: string, example_origin: string, batches: array<struct<batch: bigint, records: bigint>>>> comment \'why records are in quarantine, one entry for each reason, with its records in each batch; NULL if none is, and for rows of earlier versions without this column\', '
        'stored_rows bigint comment \'the rows of the base table after the run, with deleted and pending rows; NULL for kind snapshot, and for rows of earlier versions without this column\''
    ) as columns
)
where false;

show tables in `demo` like 'reconcile_columns_seen';

create or replace table `demo`.`reconcile_columns_seen` using delta
partitioned by (relation)
as
select columns.*
from (
    select from_json(
        cast(null as string),
        'relation string comment \'schema.name of the model\', '
        'batch bigint, '
        'kind string comment \'column: a field of the payload; key: the key columns that a record names; schema: its schema_key\', '
        'name string comment \'for a column, its name in lower case; for a key, its columns as a JSON list\', '
        'spelled string comment \'the column as the records spell it; NULL if they lack it\', '
        'form string comment \'the form of the values: text, whole number, number, boolean, json, null; any, if the declaration accepts any form; missing, if records lack a declared column\', '
        'is_declared boolean, '
        'records bigint comment \'the number of records in the batch; for missing, of records that set a whole row\''
    ) as columns
)
where false;

select max(batch) from `lake`.`shop_changes`;

show tblproperties `lake`.`shop_changes`;

select
    relation,
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried
from (
    select *, max(if(kind = 'rebuild', place, null)) over (partition by relation) as rebuilt
    from (
        select relation, kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, struct(coalesce(entry, 0) as entry, recorded_at) as place
        from `demo`.`reconcile_ledger`
        where relation in ('demo.orders')
    )
)
where rebuilt is null or place >= rebuilt
group by relation
