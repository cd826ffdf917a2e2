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
    `born`,
    `seen`,
    `closed`,
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
    _change_zero_dates,
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

{the SELECT of mysql_zero_dates/change_records.sql}
    )
    where _change_batch between 4 and 5
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro,
    array_join(array_sort(collect_set(hex(_change_table))), ',') as tables,
    count_if(_change_error is null and cardinality(_change_zero_dates) > 0) as zero_dates
from reconcile_changes_da2f7fd25744;

cache lazy table reconcile_notes_da2f7fd25744 as
select *
from (
select *
from (
    select
        *,
        min(batch) over (partition by kind, subject, name, spelled, replace(form, 'whole ', '')) as first_batch,
        bool_or(not is_missing) over (partition by kind, subject) as was_present,
        max(if(is_missing, batch, null)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding)
            >= coalesce(max(if(is_missing, null, batch)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding), 0) as is_back,
        names_of_batch <> coalesce(max(struct(batch, names_of_batch)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding).names_of_batch, array()) as is_switch
    from (
        select *, array_sort(collect_set(name) over (partition by kind, subject, batch)) as names_of_batch
        from (
            select batch, kind, name, spelled, form, is_declared, records, form <=> 'missing' as is_missing, if(kind = 'column', name, kind) as subject, true as is_of_range
            from (
                select batch, kind, name, spelled, form, is_declared, sum(if(form <=> 'missing', whole_records, records)) as records
                from (
                    select *, case
                        when _change_fields is null then cast(array() as array<string>)
                        when substring(_change_fields, length(letters) + 1, 1) = '=' then from_json(substring(_change_fields, length(letters) + 2), 'array<string>')
                        when substring(_change_fields, length(letters) + 2) = 'id' then array('id', 'born', 'seen', 'closed')
                        else transform(array('id', 'born', 'seen', 'closed'), name -> upper(name))
                    end as names
                    from (
                        select
                            _change_batch as batch,
                            _change_fields,
                            _change_key,
                            _change_schema,
                            regexp_extract(_change_fields, '^[A-Z]*', 0) as letters,
                            count(*) as records,
                            count_if(_change_type <> 'delete') as whole_records
                        from reconcile_changes_da2f7fd25744
                        group by _change_batch, _change_fields, _change_key, _change_schema
                    )
                )
                lateral view inline(concat(
                    transform(names, (name, i) -> struct(
                        'column' as kind,
                        lower(name) as name,
                        name as spelled,
                        case
                            when substring(letters, 2 * i + 1, 2) = 'VO' then 'null'
                            when substring(letters, 2 * i + 1, 2) = 'ST' then 'text'
                            when substring(letters, 2 * i + 1, 2) = 'BI' then 'whole number'
                            when substring(letters, 2 * i + 1, 2) in ('DE', 'DO', 'FL') then 'number'
                            when substring(letters, 2 * i + 1, 2) = 'BO' then 'boolean'
                            else 'json'
                        end as form,
                        array_contains(array('id', 'born', 'seen', 'closed'), lower(name)) as is_declared
                    )),
                    transform(
                        if(_change_fields is null, array(), array_except(array('id', 'born', 'seen', 'closed'), transform(names, name -> lower(name)))),
                        name -> struct('column' as kind, name as name, cast(null as string) as spelled, 'missing' as form, true as is_declared)
                    ),
                    filter(
                        array(
                            struct('key' as kind, _change_key as name, cast(null as string) as spelled, cast(null as string) as form, true as is_declared),
                            struct('schema' as kind, _change_schema as name, cast(null as string) as spelled, cast(null as string) as form, true as is_declared)
                        ),
                        fact -> fact.name is not null
                    )
                )) fact as kind, name, spelled, form, is_declared
                where form is null or form <> 'missing' or whole_records > 0
                group by batch, kind, name, spelled, form, is_declared
            )
            union all
            select batch, kind, name, spelled, form, is_declared, records, form <=> 'missing', if(kind = 'column', name, kind), false
            from `demo`.`reconcile_columns_seen`
            where relation = 'demo.orders' and batch < 4
        )
    )
)
where is_of_range and (is_missing or kind = 'column' and not is_declared or kind = 'column' and batch = first_batch or is_back or kind <> 'column' and is_switch)
)
where '00000000-0000-0000-0000-000000000000 reconcile_notes_da2f7fd25744' is not null;

select kind, name, is_declared, bool_or(form <=> 'missing') as is_missing, bool_or(was_present) as was_present
from reconcile_notes_da2f7fd25744
group by kind, name, is_declared
order by kind, name;

set `spark.databricks.delta.commitInfo.userMetadata` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    newest.*,
    base._change_sequence as _change_base_sequence,
    base._deleted as _change_base_deleted,
    base._change_time as _change_base_time
from (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `id`,
                    if(_change_type = 'delete', null, `born`) as `born`,
                    if(_change_type = 'delete', null, `seen`) as `seen`,
                    if(_change_type = 'delete', null, `closed`) as `closed`,
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
    select /*+ broadcast(change) */ `id`, _change_sequence, _deleted, _change_time
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

select _change_zero_date, count(*) as zero_dates
from reconcile_changes_da2f7fd25744
lateral view explode(_change_zero_dates) zero_dates as _change_zero_date
where _change_error is null
group by _change_zero_date
order by _change_zero_date;

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
    `born` = newest.`born`,
    `seen` = newest.`seen`,
    `closed` = newest.`closed`,
    _change_sequence = newest._change_sequence,
    _change_time = newest._change_time,
    _change_batch = newest._change_batch,
    _deleted = newest._deleted
when not matched then insert (`id`, `born`, `seen`, `closed`, _change_sequence, _change_time, _change_batch, _deleted)
values (newest.`id`, newest.`born`, newest.`seen`, newest.`closed`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted);

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
    3 as zero_dates,
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

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined; zero dates that became NULL: 2 of born, 1 of seen
