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
    coalesce(max(retried), 0) as ledger_retried
from (
    select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
    from (
        select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, struct(coalesce(entry, 0) as entry, recorded_at) as place
        from `demo`.`reconcile_ledger`
        where relation = 'demo.orders'
    )
)
where rebuilt is null or place >= rebuilt;

select count(*) from `lake`.`shop_changes` where object = 'shop.orders' and batch between 1 and 3;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 3;

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
    `id`,
    `name`,
    `Email`,
    `it's`,
    _change_type,
    _change_sequence,
    _change_id,
    _change_time,
    _change_batch,
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
            if(_change_error is null and `id` is null, 'key id is missing or NULL', null),
            if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (

{the SELECT of snapshots_masked/change_records.sql}
    )
    where _change_batch between 1 and 3
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

show tblproperties `lake`.`shop_changes`;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro,
    count_if(startswith(_change_record, '{"unmasked_record":')) as unmasked,
    min(if(startswith(_change_record, '{"unmasked_record":'), _change_batch, null)) as unmasked_batch
from reconcile_changes_da2f7fd25744;

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
                    `id`,
                    if(_change_type = 'delete', null, `name`) as `name`,
                    if(_change_type = 'delete', null, `Email`) as `Email`,
                    if(_change_type = 'delete', null, `it's`) as `it's`,
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
        where _change_error is null
        group by `id`
    )
) as newest
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

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
    'reconcile.declaration' = '{"columns": "c480d8d6b424577616531c5c0a1d4aa8", "sequence": "c4ca4238a0b923820dcc509a6f75849b", "sources": "3bd241c3be34ed2a0fa5cca2146f0787", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "f1bad39fc507eddafbda6175854b1fe5"}',
    'reconcile.columns' = '5b7b226d61736b223a2022736861323536222c20226e616d65223a20226964222c202274797065223a2022737472696e67227d2c207b226e616d65223a20226e616d65222c202274797065223a2022737472696e67227d2c207b226d61736b223a2022736861323536222c20226e616d65223a2022456d61696c222c202274797065223a2022737472696e67227d2c207b226d61736b223a202264726f70222c20226e616d65223a202269742773222c202274797065223a2022696e74227d5d'
)
as
select `id`, `name`, `Email`, `it's`, _change_sequence, _change_time, _change_batch, _deleted
from reconcile_fold_da2f7fd25744;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'shop.orders' as object,
    'rebuild' as kind,
    1 as first_batch,
    3 as last_batch,
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
    cast(null as timestamp) as watermark,
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
        coalesce(max(retried), 0) as ledger_retried
    from (
        select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
        from (
            select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, struct(coalesce(entry, 0) as entry, recorded_at) as place
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
tblproperties ('reconcile.definition' = 'b69d040d0bc6feb8d33830f39b6a5ec7')
as

{the SELECT of snapshots_masked/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = 'da3aa89694c1400328a446c474fe692d')
as
select
    `id`,
    `name`,
    `Email`,
    `it's`
from `demo`.`orders__base`
where
    not _deleted;

-- REBUILD batches 1-3: 0 of 100 applied
