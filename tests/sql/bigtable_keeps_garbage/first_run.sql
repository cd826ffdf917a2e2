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

select coalesce(sum(case source
    when 'bigtable' then if(object in ('events') and get_json_object(record, '$.type') = 'garbage_collection' and cardinality(from_json(record, 'entries array<variant>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).entries) > 0, 0, greatest(cardinality(from_json(record, 'entries array<variant>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).entries), 1))
    else 1
end), 0) from `lake`.`shop_changes` where object = 'events' and batch between 1 and 3;

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
            if(_change_error is null and _change_time is null, 'the record has no _change_time, which is the time from which its version is valid', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (

{the SELECT of bigtable_keeps_garbage/change_records.sql}
    )
    where _change_batch between 1 and 3
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

show tblproperties `lake`.`shop_changes`;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from reconcile_changes_da2f7fd25744;

select count(*) from reconcile_changes_da2f7fd25744 where (_change_error is null and `row_key` is null);

cache table reconcile_fold_da2f7fd25744 as
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
        last_value(if(_change_is_version and not coalesce(_change_is_repeated, false), struct(valid_to), null), true) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc rows between unbounded preceding and current row).valid_to as _change_valid_to
    from (
        select
            *,
            last_value(if(_change_is_version, _change_repeats, null), true) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as _change_is_repeated
        from (
            select
                *,
                coalesce(
                    _change_is_version and _change_before.valid_to = valid_from
                    and `value` <=> _change_before.`value`,
                    false
                ) as _change_repeats
            from (
                select
                    *,
                    last_value(if(_change_is_version, struct(valid_to, `value`), null), true) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence rows between unbounded preceding and 1 preceding) as _change_before,
                    coalesce(lag(_change_is_version and _change_ended_by is null) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence), false) as _change_was_live
                from (
                    select * except (_change_carried), _change_carried.`value`, _change_type <> 'delete' as _change_is_version
                    from (
                        select
                            * except (valid_to, _change_next_sequence, _change_deletes, _change_ended_by),
                            _change_ended_by,
                            if(_change_ended_by is null, valid_to, greatest(valid_from, least(valid_to, _change_ended_by.time))) as valid_to
                        from (
                            select
                                *,
                                if(_change_type = 'delete', null, array_min(filter(
                                    _change_deletes,
                                    found -> found.sequence > _change_sequence and (_change_next_sequence is null or found.sequence < _change_next_sequence)
                                    and found.place.row_key = record.row_key and found.place.family = record.family and (found.place.qualifier is null or found.place.qualifier = record.qualifier) and found.place.start_time <= record.cell_time and (found.place.end_time is null or record.cell_time < found.place.end_time)
                                ))) as _change_ended_by
                            from (
                                select
                                    *,
                                    lag(_change_sequence) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc) as _change_next_sequence,
                                    min(_change_time) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc rows between unbounded preceding and current row) as valid_from,
                                    min(_change_time) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as valid_to
                                from (
                                    select
                                        `row_key`, `family`, `qualifier`, `cell_time`,
                                        _change_sequence,
                                        first(_change_type) as _change_type,
                                        min(struct(_change_time, _change_id))._change_time as _change_time,
                                        min(struct(_change_time, _change_id))._change_id as _change_id,
                                        min(_change_batch) as _change_batch,
                                        first(_change_carried) as _change_carried,
                                        first(_change_known, true) as _change_known,
                                        count_if(_change_known is null) as _change_records
                                    from (
                                        select `row_key`, `family`, `qualifier`, `cell_time`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, if(_change_type = 'delete', null, struct(`value`)) as _change_carried, cast(null as struct<valid_from: timestamp, valid_to: timestamp, _change_repeats: boolean, _change_valid_to: timestamp, _change_id: string, _change_time: timestamp>) as _change_known
                                        from reconcile_changes_da2f7fd25744
                                        where _change_error is null and not (_change_error is null and `row_key` is null)
                                    )
                                    group by `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence
                                )
                            ) as record
                            left join (
                                select _range.row_key as _change_row_key, _range.family as _change_family, collect_set(struct(_change_sequence as sequence, _change_time as time, _range as place)) as _change_deletes
                                from (
                                    select _range, _change_sequence, _change_time
                                    from reconcile_changes_da2f7fd25744
                                    where (_change_error is null and `row_key` is null)
                                )
                                group by _range.row_key, _range.family
                            ) as keyless
                                on record.row_key = keyless._change_row_key and record.family = keyless._change_family
                        )
                    )
                )
            )
        )
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select
    100 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_da2f7fd25744) as quarantined,
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
    'delta.enableChangeDataFeed' = 'false',
    'reconcile.declaration' = '{"columns": "6dd5f7d8523bb887922b92faca4ce7bd", "materialized": "34688aa54164101a7fe993c843fad4f8", "range_deletes": "b326b5062b2f0e69046810717534cb09", "sequence": "c4ca4238a0b923820dcc509a6f75849b", "sources": "98020a59bf231aa6ed3717534177109e", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "9a42ae1b144e1f3ab08bc208a0190a8c"}',
    'reconcile.columns' = '5b7b226e616d65223a2022726f775f6b6579222c202274797065223a202262696e617279227d2c207b226e616d65223a202266616d696c79222c202274797065223a2022737472696e67227d2c207b226e616d65223a20227175616c6966696572222c202274797065223a202262696e617279227d2c207b226e616d65223a202263656c6c5f74696d65222c202274797065223a202274696d657374616d70227d2c207b226e616d65223a202276616c7565222c202274797065223a202262696e617279227d5d'
)
as
select `row_key`, `family`, `qualifier`, `cell_time`, `value`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, valid_from, valid_to, _change_repeats, _change_valid_to
from reconcile_fold_da2f7fd25744;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'events' as object,
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
    (select min(case when get_json_object(record, '$.low_watermark') rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(get_json_object(record, '$.low_watermark') as timestamp) when get_json_object(record, '$.low_watermark') rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(get_json_object(record, '$.low_watermark') rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', get_json_object(record, '$.low_watermark'), concat(get_json_object(record, '$.low_watermark'), if(get_json_object(record, '$.low_watermark') like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as watermark
from `lake`.`shop_changes`
where object = '#cut' and batch = 3) as watermark,
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
tblproperties ('reconcile.definition' = '85c51236846f33543fad73289f977963')
as

{the SELECT of bigtable_keeps_garbage/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = 'e365b38c6c0e918f2360a8e9a9cd6ec7')
as
select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`,
    valid_from,
    _change_valid_to as valid_to,
    _change_valid_to is null as is_current,
    _change_type,
    _change_sequence,
    _change_id
from `demo`.`orders__base`
where
    _change_type <> 'delete'
    and not _change_repeats;

-- REBUILD batches 1-3: 0 of 100 applied
