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
            if(_change_error is null and _change_time is null, 'the record has no _change_time, which is the time from which its version is valid', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, if(_change_time is null, 'the record has no _change_time, which the variable as_of needs', null)), '') as _change_error
from (

{the SELECT of postgresql/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce(_change_time <= to_timestamp('2026-11-21 12:00:00+00'), true)
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
    *,
    _change_known is null as _change_is_new,
    _change_known is not null and not (
        valid_from <=> _change_known.valid_from and
        valid_to <=> _change_known.valid_to and
        _change_repeats <=> _change_known._change_repeats and
        _change_valid_to <=> _change_known._change_valid_to and
        _change_id <=> _change_known._change_id and
        _change_time <=> _change_known._change_time
    ) as _change_is_revised
from (
    select
        *,
        last_value(if(_change_is_version and not coalesce(_change_is_repeated, false), struct(valid_to), null), true) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and current row).valid_to as _change_valid_to
    from (
        select
            *,
            last_value(if(_change_is_version, _change_repeats, null), true) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as _change_is_repeated
        from (
            select
                *,
                coalesce(
                    _change_is_version and _change_before.valid_to = valid_from
                    and `status` <=> _change_before.`status`
                    and `total` <=> _change_before.`total`
                    and `placed_at` <=> _change_before.`placed_at`
                    and `ratio` <=> _change_before.`ratio`,
                    false
                ) as _change_repeats
            from (
                select
                    *,
                    last_value(if(_change_is_version, struct(valid_to, `status`, `total`, `placed_at`, `ratio`), null), true) over (partition by `id` order by _change_sequence rows between unbounded preceding and 1 preceding) as _change_before,
                    coalesce(lag(_change_is_version) over (partition by `id` order by _change_sequence), false) as _change_was_live
                from (
                    select * except (_change_carried), _change_carried.`status`, _change_carried.`total`, _change_carried.`placed_at`, _change_carried.`ratio`, _change_type <> 'delete' as _change_is_version
                    from (
                        select
                            *,
                            min(_change_time) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and current row) as valid_from,
                            min(_change_time) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as valid_to
                        from (
                            select
                                `id`,
                                _change_sequence,
                                first(_change_type) as _change_type,
                                min(struct(_change_time, _change_id))._change_time as _change_time,
                                min(struct(_change_time, _change_id))._change_id as _change_id,
                                min(_change_batch) as _change_batch,
                                first(_change_carried) as _change_carried,
                                first(_change_known, true) as _change_known,
                                count_if(_change_known is null) as _change_records
                            from (
                                select `id`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, if(_change_type = 'delete', null, struct(`status`, `total`, `placed_at`, `ratio`)) as _change_carried, cast(null as struct<valid_from: timestamp, valid_to: timestamp, _change_repeats: boolean, _change_valid_to: timestamp, _change_id: string, _change_time: timestamp>) as _change_known
                                from reconcile_changes_105c54038153
                                where _change_error is null
                            )
                            group by `id`, _change_sequence
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
    coalesce(sum(_change_records - if(_change_is_new, 1, 0)), 0) as duplicate,
    0 as superseded,
    count_if(_change_is_new and _change_effect = 'none') as pending,
    count_if(_change_is_new and _change_effect <> 'none') as applied,
    count_if(_change_is_new and _change_effect = 'inserted') as inserted,
    count_if(_change_is_new and _change_effect = 'updated') as updated,
    count_if(_change_is_new and _change_effect = 'deleted') as deleted,
    count_if(_change_is_new and _change_effect = 'tombstoned') as tombstoned,
    count_if(_change_is_new) as new_keys,
    count_if(_change_is_new or _change_is_revised) as merged,
    max(if(_change_is_new, _change_batch, null)) as base_batch
from (
    select
        *,
        case
            when _change_is_version then if(_change_was_live, 'updated', 'inserted')
            when _change_type = 'delete' then if(_change_was_live, 'deleted', 'tombstoned')
            else 'none'
        end as _change_effect
    from reconcile_fold_105c54038153
);

create or replace table `demo_as_of`.`orders__quarantine`
using delta
tblproperties (
    'reconcile.quarantine' = 'demo_as_of.orders',
    'reconcile.as_of' = 'commit_time 2026-11-21 12:00:00+00'
)
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_105c54038153
where _change_error is not null;

create or replace table `demo_as_of`.`orders__base`
using delta


tblproperties (
    'delta.enableDeletionVectors' = 'true',
    'delta.enableChangeDataFeed' = 'false',
    'reconcile.declaration' = '{"columns": "ceb23bffee4dea245c03d0262ef1eea3", "materialized": "34688aa54164101a7fe993c843fad4f8", "sequence": "c81e728d9d4c2f636f067f89cc14862c", "sources": "de00264b714ba8af7e37b0784d8fc9be", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "f1bad39fc507eddafbda6175854b1fe5"}',
    'reconcile.columns' = '5b7b226e616d65223a20226964222c202274797065223a2022626967696e74227d2c207b226e616d65223a2022737461747573222c202274797065223a2022737472696e67227d2c207b226e616d65223a2022746f74616c222c202274797065223a2022646563696d616c2833382c313029227d2c207b226e616d65223a2022706c616365645f6174222c202274797065223a202274696d657374616d70227d2c207b226e616d65223a2022726174696f222c202274797065223a2022646f75626c65227d5d',
    'reconcile.as_of' = 'commit_time 2026-11-21 12:00:00+00'
)
as
select `id`, `status`, `total`, `placed_at`, `ratio`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, valid_from, valid_to, _change_repeats, _change_valid_to
from reconcile_fold_105c54038153;

show tblproperties `lake`.`shop_changes`;

drop view if exists reconcile_notes_105c54038153;

drop view if exists reconcile_fold_105c54038153;

drop view if exists reconcile_changes_105c54038153;

create view if not exists `demo_as_of`.`orders__changes`
tblproperties ('reconcile.definition' = '278ea567cf1c745916148dee5682081b', 'reconcile.as_of' = 'commit_time 2026-11-21 12:00:00+00')
as
select * except (_change_error, _change_place), nullif(concat_ws('; ', _change_error, if(_change_time is null, 'the record has no _change_time, which the variable as_of needs', null)), '') as _change_error
from (

{the SELECT of postgresql/change_records.sql}
)
lateral view explode(array(_change_sequence)) as _change_place
where _change_batch <= 2 and coalesce(_change_time <= to_timestamp('2026-11-21 12:00:00+00'), true);

create view if not exists `demo_as_of`.`orders`
tblproperties ('reconcile.definition' = '8479d0cbeaaf42b62f7da2def83c9776', 'reconcile.as_of' = 'commit_time 2026-11-21 12:00:00+00')
as
select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    valid_from,
    _change_valid_to as valid_to,
    _change_valid_to is null as is_current,
    _change_type,
    _change_sequence,
    _change_id
from `demo_as_of`.`orders__base`
where
    _change_type <> 'delete'
    and not _change_repeats;

-- AS OF commit_time 2026-11-21 12:00:00+00: batches 1-2: 0 of 100 applied
