show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 5;

describe history `demo`.`orders__base` limit 1;

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
    where _change_batch between 4 and 5
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from reconcile_changes_da2f7fd25744;

set `spark.databricks.delta.commitInfo.userMetadata` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

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
                                        union all
                                        select /*+ broadcast(touched) */ `row_key`, `family`, `qualifier`, `cell_time`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, struct(`value`) as _change_carried, struct(valid_from, valid_to, _change_repeats, _change_valid_to, _change_id, _change_time) as _change_known
                                        from `demo`.`orders__base` as known
                                        left semi join (
                                            select `row_key`, `family`, `qualifier`, `cell_time`
                                            from reconcile_changes_da2f7fd25744
                                            where _change_error is null
                                            union all
                                            select /*+ broadcast(keyless) */ `row_key`, `family`, `qualifier`, `cell_time`
                                            from `demo`.`orders__base` as known
                                            left semi join (
                                                select _range
                                                from reconcile_changes_da2f7fd25744
                                                where (_change_error is null and `row_key` is null)
                                            ) as keyless
                                                on keyless._range.row_key = known.row_key and keyless._range.family = known.family and (keyless._range.qualifier is null or keyless._range.qualifier = known.qualifier) and keyless._range.start_time <= known.cell_time and (keyless._range.end_time is null or known.cell_time < keyless._range.end_time)
                                        ) as touched
                                            on touched.`row_key` = known.`row_key` and touched.`family` = known.`family` and touched.`qualifier` = known.`qualifier` and touched.`cell_time` = known.`cell_time`
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
    keyed.* except (duplicate, superseded, pending, applied, deleted, tombstoned),
    keyed.duplicate + keyless.duplicate as duplicate,
    keyed.superseded + keyless.superseded as superseded,
    keyed.pending + keyless.pending as pending,
    keyed.applied + keyless.applied as applied,
    keyed.deleted + keyless.deleted as deleted,
    keyed.tombstoned + keyless.tombstoned as tombstoned
from (
    select
        200 as delivered,
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
    )
) as keyed
cross join (
    select
        coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
        count_if(false and not is_known and ended = 0 and records_before > 0) as superseded,
        count_if(false and not is_known and ended = 0 and records_before = 0) as pending,
        count_if(not is_known and (ended > 0 or not false)) as applied,
        count_if(not is_known and ended > 0) as deleted,
        count_if(not is_known and ended = 0 and not false) as tombstoned
    from (
        select
            incoming._change_records as records,
            false as is_known,
            count_if(version._change_ended_by.sequence = incoming._change_sequence) as ended,
            count(version._change_sequence) as records_before
        from (
            select _range, _change_sequence, first._change_time, first._change_id, _change_batch, records as _change_records
            from (
                select
                    _range,
                    _change_sequence,
                    min(struct(_change_time, _change_id)) as first,
                    min(_change_batch) as _change_batch,
                    count(*) as records
                from reconcile_changes_da2f7fd25744
                where (_change_error is null and `row_key` is null)
                group by _range, _change_sequence
            )
        ) as incoming
        left join reconcile_fold_da2f7fd25744 as version
            on incoming._range.row_key = version.row_key and incoming._range.family = version.family and (incoming._range.qualifier is null or incoming._range.qualifier = version.qualifier) and incoming._range.start_time <= version.cell_time and (incoming._range.end_time is null or version.cell_time < incoming._range.end_time) and version._change_sequence < incoming._change_sequence
        group by incoming._range, incoming._change_sequence, incoming._change_records
    )
) as keyless;

show tables in `demo` like 'orders__range_deletes';

drop view if exists reconcile_rows_da2f7fd25744;

create or replace table `demo`.`orders__range_deletes`
using delta
tblproperties (
    'reconcile.range_deletes' = 'demo.orders'
)
as
select _range, _change_sequence, _change_time, _change_id, _change_batch
from (
    select _range, _change_sequence, first._change_time, first._change_id, _change_batch, records as _change_records
    from (
        select
            _range,
            _change_sequence,
            min(struct(_change_time, _change_id)) as first,
            min(_change_batch) as _change_batch,
            count(*) as records
        from reconcile_changes_da2f7fd25744
        where (_change_error is null and `row_key` is null)
        group by _range, _change_sequence
    )
)
where false;

merge into `demo`.`orders__range_deletes` as known
using (
    select _range, _change_sequence, _change_time, _change_id, _change_batch
    from (
        select _range, _change_sequence, first._change_time, first._change_id, _change_batch, records as _change_records
        from (
            select
                _range,
                _change_sequence,
                min(struct(_change_time, _change_id)) as first,
                min(_change_batch) as _change_batch,
                count(*) as records
            from reconcile_changes_da2f7fd25744
            where (_change_error is null and `row_key` is null)
            group by _range, _change_sequence
        )
    )
) as incoming
on incoming._range = known._range and incoming._change_sequence = known._change_sequence
when matched and struct(incoming._change_time, incoming._change_id) < struct(known._change_time, known._change_id) then update set _change_time = incoming._change_time, _change_id = incoming._change_id
when not matched then insert *;

select max(_change_batch) from `demo`.`orders__range_deletes`;

insert into `demo`.`orders__quarantine`
replace where _change_batch between 4 and 5
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

merge into `demo`.`orders__base` as base
using (
    select /*+ broadcast(record) */ *
    from reconcile_fold_da2f7fd25744 as record
    where (_change_is_new or _change_is_revised)
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as version
on version.`row_key` = base.`row_key` and version.`family` = base.`family` and version.`qualifier` = base.`qualifier` and version.`cell_time` = base.`cell_time` and version._change_sequence = base._change_sequence
when matched then update set
    valid_from = version.valid_from,
    valid_to = version.valid_to,
    _change_repeats = version._change_repeats,
    _change_valid_to = version._change_valid_to,
    _change_id = version._change_id,
    _change_time = version._change_time
when not matched then insert (`row_key`, `family`, `qualifier`, `cell_time`, `value`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, valid_from, valid_to, _change_repeats, _change_valid_to)
values (version.`row_key`, version.`family`, version.`qualifier`, version.`cell_time`, version.`value`, version._change_type, version._change_sequence, version._change_id, version._change_time, version._change_batch, version.valid_from, version.valid_to, version._change_repeats, version._change_valid_to);

reset `spark.databricks.delta.commitInfo.userMetadata`;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'events' as object,
    'apply' as kind,
    4 as first_batch,
    5 as last_batch,
    200 as delivered,
    7 as applied,
    0 as superseded,
    0 as duplicate,
    1 as quarantined,
    0 as pending,
    2 as inserted,
    5 as updated,
    0 as deleted,
    0 as tombstoned,
    cast(null as timestamp) as cut_time,
    (select min(case when get_json_object(record, '$.low_watermark') rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(get_json_object(record, '$.low_watermark') as timestamp) when get_json_object(record, '$.low_watermark') rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(get_json_object(record, '$.low_watermark') rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', get_json_object(record, '$.low_watermark'), concat(get_json_object(record, '$.low_watermark'), if(get_json_object(record, '$.low_watermark') like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as watermark
from `lake`.`shop_changes`
where object = '#cut' and batch = 5) as watermark,
    5 as base_batch,
    cast(null as bigint) as retried,
    0 as deletes_batch,
    <seconds> as seconds,
    '00000000-0000-0000-0000-000000000000' as invocation_id,
    current_timestamp() as recorded_at,
    account.entry + 1 as entry,
    timestamp_micros(1767225600000000) as last_appended_at,
    0 as zero_dates,
    (
        select array_sort(array_agg(struct(example.reason as reason, example.key as example_key, example.origin as example_origin, batches as batches)))
        from (
            select if(place > 100, null, form) as form, min(if(place > 100, null, example)) as example, array_sort(flatten(array_agg(batches))) as batches
            from (
                select *, row_number() over (order by records desc, form) as place
                from (
                    select form, sum(records) as records, min(example) as example, array_agg(struct(batch, records)) as batches
                    from (
                        select
                            regexp_replace(_change_error, '\'[^\']*\'', '') as form,
                            _change_batch as batch,
                            count(*) as records,
                            min(struct(_change_batch, _change_id, origin, _change_error as reason, nullif(to_json(transform(array(from_json(record, 'payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> map_filter(
            coalesce(parsed.payload, parsed.row, parsed.keys, if(parsed.mods is null, null, if(contains(_change_id, '/backfill/'), from_json(substring_index(_change_id, '/backfill/', -1), 'map<string,string>'), get(parsed.mods, coalesce(try_cast(substring_index(_change_id, '/', -1) as int), 0)).keys)), map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('row_key', 'family', 'qualifier', 'cell_time') and value is not null
        ))[0]), '{}') as key)) as example
                        from (
                            select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
                            from reconcile_changes_da2f7fd25744
                            where _change_error is not null
                        )
                        group by regexp_replace(_change_error, '\'[^\']*\'', ''), _change_batch
                    )
                    group by form
                )
            )
            group by if(place > 100, null, form)
        )
    ) as quarantine_reasons,
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
) as account
where if(account.ledger_batch = 3 and account.entry = 3, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'));

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

alter table `demo`.`orders__base` set tblproperties (
    'reconcile.kept_deletes' = 'range_deletes'
);

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined
