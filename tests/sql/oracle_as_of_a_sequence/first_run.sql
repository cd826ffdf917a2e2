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
    _row_id,
    nullif(_change_transaction, '') as _change_transaction,
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
            if(_change_error is null and `id` is null and not (_change_type <=> 'delete' and _row_id is not null and `id` is null), 'key id is missing or NULL', null),
            if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, cast(null as string)), '') as _change_error
from (

{the SELECT of oracle/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce(left(_change_place, 20) <= '1/1/00000E6ECEDFC05C', true)
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

select count(*) from reconcile_changes_105c54038153 where (_change_error is null and `id` is null);

cache table reconcile_fold_105c54038153 as
select *
from (
select
    *,
    cast(null as string) as _change_base_sequence,
    cast(null as timestamp) as _change_base_time,
    cast(null as boolean) as _change_base_deleted,
    cast(null as string) as _change_base_row_id,
    true as _change_replaces_base,
    false as _change_is_noted,
    _change_sequence as _change_applied_sequence
from (
    select
        winner.* except (_change_batch, _change_undone_in),
        batch as _change_batch,
        if(contenders is null and batch > winner._change_batch, array(struct(if(winner._deleted, winner._row_id, '') as address, winner._change_sequence as sequence, winner._change_time as time, winner._change_batch as batch)), contenders) as _change_contenders,
        displaced as _change_displaced,
        records as _change_records,
        sequences as _change_sequences
    from (
        select
            *,
            filter(kept, change -> change.sequence <> winner._change_sequence) as displaced,
            greatest(
                winner._change_batch,
                array_max(transform(contenders, change -> change.batch)),
                array_max(transform(kept, change -> change.batch)),
                undone_in
            ) as batch
        from (
            select
                *,
                if(written is null or exists(later, change -> coalesce(written._change_is_insert or change.address = written._row_id, true)), newest, written) as winner,
                if(cardinality(later) = 0, null, concat(
                    if(written is null, array(), array(struct('' as address, written._change_sequence as sequence, written._change_time as time, written._change_batch as batch))),
                    array_sort(filter(later, change -> not exists(later, other -> other.address <=> change.address and struct(other.sequence, -other.batch) > struct(change.sequence, -change.batch))))
                )) as contenders
            from (
                select
                    *,
                    if(certain is null or get(standing, 0)._change_sequence >= certain._change_sequence, get(standing, 0), certain) as newest,
                    coalesce(get(standing, 0), certain_written) as written,
                    transform(
                        filter(deletes, change -> change.transaction = if(certain is null or get(standing, 0)._change_sequence >= certain._change_sequence, get(standing, 0), certain)._change_transaction and change.sequence > coalesce(coalesce(get(standing, 0), certain_written)._change_sequence, '')),
                        change -> struct(change.address, change.sequence, change.time, change.batch)
                    ) as later,
                    if(cardinality(standing) = 0 or certain is null and undone is null and get(standing, 0)._change_sequence = get(standing, -1 + cardinality(standing))._change_sequence, null, array_sort(
                        concat(
                            transform(
                                filter(
                                    if(undone is null, standing, concat(standing, array(undone))),
                                    (change, place) -> place = 0 or place = cardinality(standing) or change._change_sequence <> get(standing, place - 1)._change_sequence
                                ),
                                change -> struct(case when change._deleted then 'delete' when change._change_is_insert then 'insert' else 'update' end as type, change._change_sequence as sequence, change._change_time as time, change._change_batch as batch, change._row_id as address, change._change_transaction as transaction, if(change._deleted, null, struct(change.`placed_at` as `placed_at`, change.`ratio` as `ratio`, change.`status` as `status`, change.`total` as `total`)) as row)
                            ),
                            if(certain_written is null, array(), array(if(
                                exists(certain_later, change -> coalesce(certain_written._change_is_insert or change.address = certain_written._row_id, true)),
                                struct('insert' as type, certain_written._change_sequence as sequence, certain_written._change_time as time, certain_written._change_batch as batch, cast(null as string) as address, certain_written._change_transaction as transaction, cast(null as struct<`placed_at`:timestamp,`ratio`:double,`status`:string,`total`:decimal(38,10)>) as row),
                                struct(case when certain_written._deleted then 'delete' when certain_written._change_is_insert then 'insert' else 'update' end as type, certain_written._change_sequence as sequence, certain_written._change_time as time, certain_written._change_batch as batch, certain_written._row_id as address, certain_written._change_transaction as transaction, if(certain_written._deleted, null, struct(certain_written.`placed_at` as `placed_at`, certain_written.`ratio` as `ratio`, certain_written.`status` as `status`, certain_written.`total` as `total`)) as row)
                            ))),
                            transform(array_sort(filter(certain_later, change -> not exists(certain_later, other -> other.address <=> change.address and struct(other.sequence, -other.batch) > struct(change.sequence, -change.batch)))), change -> struct('delete' as type, change.sequence as sequence, change.time as time, change.batch as batch, change.address as address, certain._change_transaction as transaction, cast(null as struct<`placed_at`:timestamp,`ratio`:double,`status`:string,`total`:decimal(38,10)>) as row)),
                            if(certain is null or certain._change_transaction is not null, array(), array(struct(case when certain._deleted then 'delete' when certain._change_is_insert then 'insert' else 'update' end as type, certain._change_sequence as sequence, certain._change_time as time, certain._change_batch as batch, certain._row_id as address, certain._change_transaction as transaction, if(certain._deleted, null, struct(certain.`placed_at` as `placed_at`, certain.`ratio` as `ratio`, certain.`status` as `status`, certain.`total` as `total`)) as row)))
                        ),
                        (one, other) -> case when one.sequence > other.sequence then -1 when one.sequence < other.sequence then 1 else 0 end
                    )) as kept
                from (
                    select
                        *,
                        if(certain is null and forall(recent, change -> change._change_undone_in is not null), slice(recent, 1, 1), filter(recent, change -> change._change_undone_in is null)) as standing,
                        if(certain is null and exists(recent, change -> change._change_undone_in is null), get(filter(recent, change -> change._change_undone_in is not null), 0), null) as undone,
                        array_max(transform(filter(recent, change -> change._change_undone_in > change._change_batch), change -> change._change_undone_in)) as undone_in,
                        transform(
                        filter(deletes, change -> change.transaction = certain._change_transaction and change.sequence > coalesce(certain_written._change_sequence, '')),
                        change -> struct(change.address, change.sequence, change.time, change.batch)
                    ) as certain_later
                    from (
                        select
                            * except (written, inserts),
                            if(written._change_transaction = certain._change_transaction, written, null) as certain_written,
                            array_sort(
                                filter(
                                    inserts,
                                    change -> certain is null
                                        or change._change_sequence >= certain._change_sequence
                                        or change._change_transaction = certain._change_transaction
                                        and change._change_sequence > coalesce(if(written._change_transaction = certain._change_transaction, written, null)._change_sequence, '')
                                ),
                                (one, other) -> case
                                    when one._change_sequence > other._change_sequence then -1
                                    when one._change_sequence < other._change_sequence then 1
                                    else int(sign(one._change_batch - other._change_batch))
                                end
                            ) as recent
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
                                        _change_type = 'delete' as _deleted,
                                        _row_id,
                                        _change_transaction,
                                        _change_type = 'insert' as _change_is_insert,
                                        _change_undone_in
                                    ),
                                    if(_change_type = 'insert' and _row_id is not null and _change_transaction is not null, null, struct(_change_sequence, _change_transaction is not null, -_change_batch))
                                ) as certain,
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
                                        _change_type = 'delete' as _deleted,
                                        _row_id,
                                        _change_transaction,
                                        _change_type = 'insert' as _change_is_insert,
                                        _change_undone_in
                                    ),
                                    if(_change_type = 'delete' or _change_type = 'insert' and _row_id is not null and _change_transaction is not null, null, struct(_change_sequence, _change_transaction is not null, -_change_batch))
                                ) as written,
                                collect_list(if(
                                    _change_type = 'insert' and _row_id is not null and _change_transaction is not null,
                                    struct(
                                        `id`,
                                        if(_change_type = 'delete', null, `status`) as `status`,
                                        if(_change_type = 'delete', null, `total`) as `total`,
                                        if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                                        if(_change_type = 'delete', null, `ratio`) as `ratio`,
                                        _change_sequence,
                                        _change_time,
                                        _change_batch,
                                        _change_type = 'delete' as _deleted,
                                        _row_id,
                                        _change_transaction,
                                        _change_type = 'insert' as _change_is_insert,
                                        _change_undone_in
                                    ),
                                    null
                                )) as inserts,
                                collect_set(if(
                                    _change_type = 'delete',
                                    struct(_change_transaction as transaction, _row_id as address, _change_sequence as sequence, _change_time as time, _change_batch as batch),
                                    null
                                )) as deletes,
                                count(*) as records,
                                collect_set(_change_sequence) as sequences
                            from (
                                select *, cast(null as bigint) as _change_undone_in
                                from (
                                    select `id`, `status`, `total`, `placed_at`, `ratio`, _change_type, _change_sequence, _change_time, _change_batch, _row_id, _change_transaction
                                    from reconcile_changes_105c54038153
                                    where _change_error is null and `id` is not null
                                )
                            )
                            group by `id`
                        )
                    )
                )
            )
        )
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_105c54038153' is not null;

select
    100 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_105c54038153) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + if(array_contains(_change_sequences, _change_base_sequence), 1, 0)), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and (sequence <> _change_applied_sequence or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged or _change_is_noted) as merged,
    max(if(_change_is_merged or _change_is_noted, _change_batch, null)) as base_batch
from (
    select
        *,
        _change_replaces_base as _change_is_merged,
        _change_is_merged and _change_applied_sequence is not null as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from reconcile_fold_105c54038153
);

create or replace table `demo_as_of`.`orders__quarantine`
using delta
tblproperties (
    'reconcile.quarantine' = 'demo_as_of.orders',
    'reconcile.as_of' = 'sequence 1/1/00000E6ECEDFC05C'
)
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_105c54038153
where _change_error is not null;

create or replace table `demo_as_of`.`orders__base`
using delta


tblproperties (
    'delta.enableDeletionVectors' = 'true',
    'reconcile.declaration' = '{"columns": "ceb23bffee4dea245c03d0262ef1eea3", "row_ids": "b326b5062b2f0e69046810717534cb09", "sequence": "c4ca4238a0b923820dcc509a6f75849b", "sources": "4fa18fe739afb5876174d9471824d038", "staging": "add1835c146bd9198e342164475daf7f", "transactions": "c81e728d9d4c2f636f067f89cc14862c", "unique_key": "f1bad39fc507eddafbda6175854b1fe5"}',
    'reconcile.columns' = '5b7b226e616d65223a20226964222c202274797065223a2022626967696e74227d2c207b226e616d65223a2022737461747573222c202274797065223a2022737472696e67227d2c207b226e616d65223a2022746f74616c222c202274797065223a2022646563696d616c2833382c313029227d2c207b226e616d65223a2022706c616365645f6174222c202274797065223a202274696d657374616d70227d2c207b226e616d65223a2022726174696f222c202274797065223a2022646f75626c65227d5d',
    'reconcile.as_of' = 'sequence 1/1/00000E6ECEDFC05C'
)
as
select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, _deleted, _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced
from reconcile_fold_105c54038153;

show tblproperties `lake`.`shop_changes`;

drop view if exists reconcile_notes_105c54038153;

drop view if exists reconcile_fold_105c54038153;

drop view if exists reconcile_changes_105c54038153;

create view if not exists `demo_as_of`.`orders__changes`
tblproperties ('reconcile.definition' = '3faca989671faa3a50520a948fdd97ad', 'reconcile.as_of' = 'sequence 1/1/00000E6ECEDFC05C')
as
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, cast(null as string)), '') as _change_error
from (

{the SELECT of oracle/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce(left(_change_place, 20) <= '1/1/00000E6ECEDFC05C', true);

create view if not exists `demo_as_of`.`orders`
tblproperties ('reconcile.definition' = 'a9a0547af6043f964de76ce3327596d2', 'reconcile.as_of' = 'sequence 1/1/00000E6ECEDFC05C')
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

-- AS OF sequence 1/1/00000E6ECEDFC05C: batches 1-2: 0 of 100 applied
