select max(batch) as last, max(if(true, batch, null)) as as_of_batch from `lake`.`shop_changes` where batch <= 3;

select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select count(*) from `lake`.`shop_changes` where object = 'shop.orders' and batch between 1 and 2;

drop view if exists reconcile_notes_105c54038153;

drop view if exists reconcile_fold_105c54038153;

drop view if exists reconcile_changes_105c54038153;

set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

cache table reconcile_changes_105c54038153 as
select *
from (
select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    _change_type,
    _change_sequence,
    _change_id,
    _change_time,
    _change_batch,
    _change_table,
    _change_fields,
    _change_key,
    _change_schema,
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
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, if(split_part(_change_sequence, '/', 2) = '1' and try_cast(_change_transaction as bigint) is null, 'the record has no _change_transaction, which the variable as_of needs', null)), '') as _change_error
from (

{the SELECT of postgresql/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce((case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end < 18642 or (case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end < 18650 and case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end not in (18644,18646))), true)
    )
    where _change_batch between 1 and 2
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_105c54038153' is not null;

show tblproperties `lake`.`shop_changes`;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro,
    array_join(array_sort(collect_set(hex(_change_table))), ',') as tables
from reconcile_changes_105c54038153;

cache table reconcile_fold_105c54038153 as
select *
from (
select
    newest.*,
    cast(null as string) as _change_base_sequence,
    cast(null as boolean) as _change_base_deleted,
    cast(null as timestamp) as _change_base_time
from (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `id`,
                    if(_change_type = 'delete', null, `status`) as `status`,
                    if(_change_type = 'delete', null, `total`) as `total`,
                    if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                    if(_change_type = 'delete', null, `ratio`) as `ratio`,
                    _change_sequence,
                    _change_time,
                    _change_batch,
                    _change_type = 'delete' as _deleted
                ),
                struct(_change_sequence, -_change_batch)
            ) as newest,
            count(*) as records,
            collect_set(_change_sequence) as sequences
        from reconcile_changes_105c54038153
        where _change_error is null
        group by `id`
    )
) as newest
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_105c54038153' is not null;

select
    100 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_105c54038153) as quarantined,
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
    from reconcile_fold_105c54038153
);

create or replace table `demo_as_of`.`orders__quarantine`
using delta
tblproperties (
    'reconcile.quarantine' = 'demo_as_of.orders',
    'reconcile.as_of' = 'pg_snapshot 18642:18650:18644,18646'
)
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_105c54038153
where _change_error is not null;

create or replace table `demo_as_of`.`orders__base`
using delta


tblproperties (
    'delta.enableDeletionVectors' = 'true',
    'reconcile.declaration' = '{"columns": "ceb23bffee4dea245c03d0262ef1eea3", "sequence": "c81e728d9d4c2f636f067f89cc14862c", "sources": "de00264b714ba8af7e37b0784d8fc9be", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "f1bad39fc507eddafbda6175854b1fe5"}',
    'reconcile.columns' = '5b7b226e616d65223a20226964222c202274797065223a2022626967696e74227d2c207b226e616d65223a2022737461747573222c202274797065223a2022737472696e67227d2c207b226e616d65223a2022746f74616c222c202274797065223a2022646563696d616c2833382c313029227d2c207b226e616d65223a2022706c616365645f6174222c202274797065223a202274696d657374616d70227d2c207b226e616d65223a2022726174696f222c202274797065223a2022646f75626c65227d5d',
    'reconcile.as_of' = 'pg_snapshot 18642:18650:18644,18646'
)
as
select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, _deleted
from reconcile_fold_105c54038153;

show tblproperties `lake`.`shop_changes`;

drop view if exists reconcile_notes_105c54038153;

drop view if exists reconcile_fold_105c54038153;

drop view if exists reconcile_changes_105c54038153;

create view if not exists `demo_as_of`.`orders__changes`
tblproperties ('reconcile.definition' = '1fce86560b192142617a730248b72e34', 'reconcile.as_of' = 'pg_snapshot 18642:18650:18644,18646')
as
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, if(split_part(_change_sequence, '/', 2) = '1' and try_cast(_change_transaction as bigint) is null, 'the record has no _change_transaction, which the variable as_of needs', null)), '') as _change_error
from (

{the SELECT of postgresql/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce((case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end < 18642 or (case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end < 18650 and case
    when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
    when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
    else 0 + try_cast(_change_transaction as bigint)
end not in (18644,18646))), true);

create view if not exists `demo_as_of`.`orders`
tblproperties ('reconcile.definition' = '58b29d45a41cc8fd1a98166b68d7f7a0', 'reconcile.as_of' = 'pg_snapshot 18642:18650:18644,18646')
as
select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`
from `demo_as_of`.`orders__base`
where
    not _deleted;

-- AS OF pg_snapshot 18642:18650:18644,18646: batches 1-2: 0 of 100 applied
