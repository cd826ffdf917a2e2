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
    `id`,
    `tiny`,
    `small`,
    `whole`,
    `real`,
    `wide`,
    `exact`,
    `is_it`,
    `text`,
    `short`,
    `bytes`,
    `day`,
    `moment`,
    `local`,
    `list`,
    `pairs`,
    `rounded`,
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

{the SELECT of snapshots/change_records.sql}
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

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    newest.*,
    base._change_sequence as _change_base_sequence,
    base._deleted as _change_base_deleted
from (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `id`,
                    if(_change_type = 'delete', null, `tiny`) as `tiny`,
                    if(_change_type = 'delete', null, `small`) as `small`,
                    if(_change_type = 'delete', null, `whole`) as `whole`,
                    if(_change_type = 'delete', null, `real`) as `real`,
                    if(_change_type = 'delete', null, `wide`) as `wide`,
                    if(_change_type = 'delete', null, `exact`) as `exact`,
                    if(_change_type = 'delete', null, `is_it`) as `is_it`,
                    if(_change_type = 'delete', null, `text`) as `text`,
                    if(_change_type = 'delete', null, `short`) as `short`,
                    if(_change_type = 'delete', null, `bytes`) as `bytes`,
                    if(_change_type = 'delete', null, `day`) as `day`,
                    if(_change_type = 'delete', null, `moment`) as `moment`,
                    if(_change_type = 'delete', null, `local`) as `local`,
                    if(_change_type = 'delete', null, `list`) as `list`,
                    if(_change_type = 'delete', null, `pairs`) as `pairs`,
                    if(_change_type = 'delete', null, `rounded`) as `rounded`,
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
left join (
    select /*+ broadcast(change) */ `id`, _change_sequence, _deleted
    from `demo`.`orders__base` as known
    left semi join reconcile_changes_da2f7fd25744 as change
        on change.`id` = known.`id`
) as base
    on newest.`id` = base.`id`
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select
    200 as delivered,
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

insert into `demo`.`orders__quarantine`
replace where _change_batch between 4 and 5
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

merge into `demo`.`orders__base` as base
using (
    select /*+ broadcast(record) */ *
    from reconcile_fold_da2f7fd25744 as record
    where (_change_base_sequence is null or _change_sequence > _change_base_sequence)
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as newest
on newest.`id` = base.`id`
when matched and newest._change_sequence > base._change_sequence then update set
    `id` = newest.`id`,
    `tiny` = newest.`tiny`,
    `small` = newest.`small`,
    `whole` = newest.`whole`,
    `real` = newest.`real`,
    `wide` = newest.`wide`,
    `exact` = newest.`exact`,
    `is_it` = newest.`is_it`,
    `text` = newest.`text`,
    `short` = newest.`short`,
    `bytes` = newest.`bytes`,
    `day` = newest.`day`,
    `moment` = newest.`moment`,
    `local` = newest.`local`,
    `list` = newest.`list`,
    `pairs` = newest.`pairs`,
    `rounded` = newest.`rounded`,
    _change_sequence = newest._change_sequence,
    _change_time = newest._change_time,
    _change_batch = newest._change_batch,
    _deleted = newest._deleted
when not matched then insert (`id`, `tiny`, `small`, `whole`, `real`, `wide`, `exact`, `is_it`, `text`, `short`, `bytes`, `day`, `moment`, `local`, `list`, `pairs`, `rounded`, _change_sequence, _change_time, _change_batch, _deleted)
values (newest.`id`, newest.`tiny`, newest.`small`, newest.`whole`, newest.`real`, newest.`wide`, newest.`exact`, newest.`is_it`, newest.`text`, newest.`short`, newest.`bytes`, newest.`day`, newest.`moment`, newest.`local`, newest.`list`, newest.`pairs`, newest.`rounded`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted);

reset `spark.databricks.delta.commitInfo.userMetadata`;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'shop.orders' as object,
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
    cast(null as timestamp) as watermark,
    5 as base_batch,
    cast(null as bigint) as retried,
    cast(null as bigint) as deletes_batch,
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
            coalesce(parsed.payload, parsed.row, parsed.keys, if(parsed.mods is null, null, if(contains(_change_id, '/backfill/'), from_json(substring_index(_change_id, '/backfill/', -1), 'map<string,string>'), get(parsed.mods, coalesce(try_cast(substring_index(_change_id, '/', -1) as int), 0)).keys)), map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('id') and value is not null
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

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined
