set;

set spark.sql.extensions;

create schema if not exists `demo`;

create table if not exists `demo`.`reconcile_ledger` (
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
) using delta
partitioned by (relation);

create table if not exists `demo`.`reconcile_columns_seen` (
    relation string comment 'schema.name of the model',
    batch bigint,
    kind string comment 'column: a field of the payload; key: the key columns that a record names; schema: its schema_key',
    name string comment 'of a column, in lower case; of a key, its columns as a list in JSON',
    spelled string comment 'the column as the records spell it; NULL where they lack it',
    form string comment 'of the values: text, whole number, number, boolean, json, null; any, where the declaration takes any; missing, where records lack a column that is declared',
    is_declared boolean,
    records bigint comment 'of the batch; where they lack the column, those that set a whole row'
) using delta
partitioned by (relation);

select max(batch) from `lake`.`shop_changes`
