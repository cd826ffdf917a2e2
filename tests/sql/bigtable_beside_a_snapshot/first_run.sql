select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried,
    max_by(invocation_id, place) as invocation
from (
    select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
    from (
        select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, invocation_id, struct(coalesce(entry, 0) as entry, recorded_at) as place
        from `demo`.`reconcile_ledger`
        where relation = 'demo.orders'
    )
)
where rebuilt is null or place >= rebuilt;

select coalesce(sum(case source
    when 'bigtable' then greatest(cardinality(from_json(record, 'entries array<variant>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).entries), 1)
    else 1
end), 0) from `lake`.`shop_changes` where object = 'events' and batch between 1 and 5;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 5;

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

cache table reconcile_changes_da2f7fd25744 as
select *
from (
select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`,
    _change_type,
    _change_sequence,
    _change_id,
    _change_time,
    _change_batch,
    _range,
    _change_macro,
    _change_complaint as _change_error,
    if(_change_complaint is null, null, _change_record) as _change_record,
    _change_origin as _change_origin
from (
    select
        *,
        nullif(concat_ws(
            '; ',
            _change_error,
            if(_change_error is null and `row_key` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key row_key is missing or NULL', null),
            if(_change_error is null and `family` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key family is missing or NULL', null),
            if(_change_error is null and `qualifier` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key qualifier is missing or NULL', null),
            if(_change_error is null and `cell_time` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key cell_time is missing or NULL', null),
            if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (

-- what the snapshot beside the log contains is below everything, and sets no cell
select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`,
    _range,
    if(_change_is_contained, 'delete', _change_type) as _change_type,
    if(_change_is_contained, concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_macro,
    _change_record,
    _change_origin
from (
{the SELECT of bigtable/change_records.sql}
) as of_log
lateral view explode(array(coalesce(_change_sequence < '18EA0C2E02CC1CA1', false))) as _change_is_contained
    )
    where _change_batch between 1 and 5
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

show tblproperties `lake`.`shop_changes`;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from reconcile_changes_da2f7fd25744;

set `spark.databricks.delta.commitInfo.userMetadata` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    newest.*,
    cast(null as string) as _change_base_sequence,
    cast(null as boolean) as _change_base_deleted
from (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `row_key`,
                    `family`,
                    `qualifier`,
                    `cell_time`,
                    if(_change_type = 'delete', null, `value`) as `value`,
                    _change_sequence,
                    _change_time,
                    _change_batch,
                    _change_type = 'delete' as _deleted
                ),
                struct(_change_sequence, -_change_batch)
            ) as newest,
            count(*) as records,
            collect_set(_change_sequence) as sequences
        from reconcile_changes_da2f7fd25744
        where _change_error is null and `row_key` is not null
        group by `row_key`, `family`, `qualifier`, `cell_time`
    )
) as newest
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select count(*) from reconcile_changes_da2f7fd25744 where (_change_error is null and `row_key` is null);

select
    100 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_da2f7fd25744) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + if(array_contains(_change_sequences, _change_base_sequence), 1, 0)), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and (sequence <> _change_sequence or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged) as merged,
    max(if(_change_is_merged, _change_batch, null)) as base_batch
from (
    select
        *,
        (_change_base_sequence is null or _change_sequence > _change_base_sequence) as _change_is_merged,
        _change_is_merged as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from reconcile_fold_da2f7fd25744
);

create or replace table `demo`.`orders__quarantine`
using delta
tblproperties (
    'reconcile.quarantine' = 'demo.orders'
)
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

create or replace table `demo`.`orders__base`
using delta


tblproperties (
    'delta.enableDeletionVectors' = 'true',
    'reconcile.declaration' = '{"columns": "6dd5f7d8523bb887922b92faca4ce7bd", "range_deletes": "b326b5062b2f0e69046810717534cb09", "sequence": "c4ca4238a0b923820dcc509a6f75849b", "sources": "da5bb7311bdc2b9d13ac1db61ad86b75", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "9a42ae1b144e1f3ab08bc208a0190a8c"}',
    'reconcile.columns' = '5b7b226e616d65223a2022726f775f6b6579222c202274797065223a202262696e617279227d2c207b226e616d65223a202266616d696c79222c202274797065223a2022737472696e67227d2c207b226e616d65223a20227175616c6966696572222c202274797065223a202262696e617279227d2c207b226e616d65223a202263656c6c5f74696d65222c202274797065223a202274696d657374616d70227d2c207b226e616d65223a202276616c7565222c202274797065223a202262696e617279227d5d'
)
as
select `row_key`, `family`, `qualifier`, `cell_time`, `value`, _change_sequence, _change_time, _change_batch, _deleted
from reconcile_fold_da2f7fd25744;

reset `spark.databricks.delta.commitInfo.userMetadata`;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'events' as object,
    'rebuild' as kind,
    1 as first_batch,
    5 as last_batch,
    100 as delivered,
    0 as applied,
    0 as superseded,
    0 as duplicate,
    0 as quarantined,
    0 as pending,
    0 as inserted,
    0 as updated,
    0 as deleted,
    0 as tombstoned,
    cast(null as timestamp) as cut_time,
    (select min(case when get_json_object(record, '$.low_watermark') rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(get_json_object(record, '$.low_watermark') as timestamp) when get_json_object(record, '$.low_watermark') rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(get_json_object(record, '$.low_watermark') rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', get_json_object(record, '$.low_watermark'), concat(get_json_object(record, '$.low_watermark'), if(get_json_object(record, '$.low_watermark') like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as watermark
from `lake`.`shop_changes`
where object = '#cut' and batch = (select max(batch) from `lake`.`shop_changes` where object = '#cut' and batch <= 5)) as watermark,
    0 as base_batch,
    cast(null as bigint) as retried,
    cast(null as bigint) as deletes_batch,
    <seconds> as seconds,
    '00000000-0000-0000-0000-000000000000' as invocation_id,
    current_timestamp() as recorded_at,
    account.entry + 1 as entry,
    timestamp_micros(1767225600000000) as last_appended_at,
    0 as zero_dates,
    cast(null as array<struct<reason: string, example_key: string, example_origin: string, batches: array<struct<batch: bigint, records: bigint>>>>) as quarantine_reasons,
    (select count(*) from `demo`.`orders__base`) as stored_rows
from (
    select
        coalesce(max(last_batch), 0) as ledger_batch,
        coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
        coalesce(max(place.entry), 0) as entry,
        max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
        coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
        coalesce(max(retried), 0) as ledger_retried,
        max_by(invocation_id, place) as invocation
    from (
        select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
        from (
            select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, invocation_id, struct(coalesce(entry, 0) as entry, recorded_at) as place
            from `demo`.`reconcile_ledger`
            where relation = 'demo.orders'
        )
    )
    where rebuilt is null or place >= rebuilt
) as account;

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = '1e3fba27653829485325b69986140e59')
as

-- what the snapshot beside the log contains is below everything, and sets no cell
select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`,
    _range,
    if(_change_is_contained, 'delete', _change_type) as _change_type,
    if(_change_is_contained, concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_macro,
    _change_record,
    _change_origin
from (
{the SELECT of bigtable/change_records.sql}
) as of_log
lateral view explode(array(coalesce(_change_sequence < '18EA0C2E02CC1CA1', false))) as _change_is_contained;

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '774da8e1cdf021e937fa2e1635c17b12')
as
select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`
from `demo`.`orders__base`
where
    not _deleted;

-- REBUILD batches 1-5: 0 of 100 applied
