show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 5;

show tblproperties `demo`.`orders__base`;

select history.snapshot_id, history.parent_id, snapshots.summary['reconcile'], history.is_current_ancestor from `demo`.`orders__base`.history as history left join `demo`.`orders__base`.snapshots as snapshots on snapshots.snapshot_id = history.snapshot_id order by history.made_current_at desc limit 100;

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
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    _change_type,
    _change_sequence,
    _change_id,
    _change_time,
    _change_batch,
    if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
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
            if(
                _change_error is null and _change_columns is not null
                and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
            )
        ), '') as _change_complaint
    from (

{the SELECT of spanner/change_records.sql}
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
                        when substring(_change_fields, length(letters) + 2) = 'id' then array('id', 'status', 'total', 'placed_at', 'ratio')
                        else transform(array('id', 'status', 'total', 'placed_at', 'ratio'), name -> upper(name))
                    end as names
                    from (
                        select
                            _change_batch as batch,
                            _change_fields,
                            _change_key,
                            _change_schema,
                            regexp_extract(_change_fields, '^[A-Z]*', 0) as letters,
                            count(*) as records,
                            count_if(_change_type <> 'delete' and _change_columns is null) as whole_records
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
                        array_contains(array('id', 'status', 'total', 'placed_at', 'ratio'), lower(name)) as is_declared
                    )),
                    transform(
                        if(_change_fields is null, array(), array_except(array('id', 'status', 'total', 'placed_at', 'ratio'), transform(names, name -> lower(name)))),
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

set `spark.sql.iceberg.snapshot-property.reconcile` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    *,
    filter(_change_contributors, record -> array_contains(array_distinct(array_compact(concat(array(_change_newest_after, _change_row_after), map_values(coalesce(_change_columns_after, cast(map() as map<string, string>)))))), record.sequence) and not array_contains(_change_known, record.sequence)) as _change_writers,
    (_change_row_after is null or (_change_deleted_after and _change_newest_after > _change_row_after)) as _change_is_pending,
    (_change_row_after is not null and not _change_deleted_after) as _change_is_live,
    coalesce((_change_base_row_sequence is not null and not _change_base_deleted), false) as _change_was_live
from (
    select
        *,
        greatest(_change_base_sequence, _change_sequence) as _change_newest_after,
        greatest(_change_base_row_sequence, _change_row_sequence) as _change_row_after,
        map_filter(map_zip_with(coalesce(_change_base_column_sequences, cast(map() as map<string, string>)), coalesce(_change_column_sequences, cast(map() as map<string, string>)), (name, sequence, rival) -> greatest(sequence, rival)), (name, sequence) -> sequence > coalesce(greatest(_change_base_row_sequence, _change_row_sequence), '')) as _change_columns_after,
        if(_change_row_sequence > coalesce(_change_base_row_sequence, ''), _deleted, coalesce(_change_base_deleted, false)) as _change_deleted_after,
        array_distinct(array_compact(concat(array(_change_base_sequence, _change_base_row_sequence), map_values(coalesce(_change_base_column_sequences, cast(map() as map<string, string>)))))) as _change_known
    from (
        select
            newest.*,
            base._change_sequence as _change_base_sequence,
            base._deleted as _change_base_deleted,
            base._change_row_sequence as _change_base_row_sequence,
            base._change_column_sequences as _change_base_column_sequences
        from (
            select
                `id`,
                if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last status`.value, _change_whole.`status`) as `status`,
                if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last total`.value, _change_whole.`total`) as `total`,
                if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last placed_at`.value, _change_whole.`placed_at`) as `placed_at`,
                if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last ratio`.value, _change_whole.`ratio`) as `ratio`,
                _change_newest._change_sequence,
                _change_newest._change_time,
                array_max(transform(_change_contributors, record -> record.batch)) as _change_batch,
                coalesce(_change_whole._deleted, false) as _deleted,
                _change_whole._change_sequence as _change_row_sequence,
                _change_column_sequences,
                _change_contributors,
                _change_records,
                _change_delivered
            from (
                select
                    *,
                    array_distinct(array_compact(array(
                        struct(_change_newest._change_sequence as sequence, _change_newest._change_batch as batch),
                        if(_change_whole is null, null, struct(_change_whole._change_sequence as sequence, _change_whole._change_batch as batch)),
                        if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last status`.sequence, `_change_last status`.batch), null),
                        if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last total`.sequence, `_change_last total`.batch), null),
                        if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last placed_at`.sequence, `_change_last placed_at`.batch), null),
                        if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last ratio`.sequence, `_change_last ratio`.batch), null)
                    ))) as _change_contributors,
                    map_filter(
                        cast(map('status', `_change_last status`.sequence, 'total', `_change_last total`.sequence, 'placed_at', `_change_last placed_at`.sequence, 'ratio', `_change_last ratio`.sequence) as map<string, string>),
                        (name, sequence) -> sequence > coalesce(_change_whole._change_sequence, '')
                    ) as _change_column_sequences
                from (
                    select
                        `id`,
                        max_by(
                            struct(_change_sequence, _change_time, _change_batch),
                            struct(_change_sequence, -_change_batch)
                        ) as _change_newest,
                        max_by(
                            struct(
                                if(_change_type = 'delete', null, `status`) as `status`,
                                if(_change_type = 'delete', null, `total`) as `total`,
                                if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                                if(_change_type = 'delete', null, `ratio`) as `ratio`,
                                _change_sequence,
                                _change_batch,
                                _change_type = 'delete' as _deleted
                            ),
                            struct(_change_sequence, -_change_batch)
                        ) filter (where _change_columns is null) as _change_whole,
                        max_by(
                            struct(`status` as value, _change_sequence as sequence, _change_batch as batch),
                            struct(_change_sequence, -_change_batch)
                        ) filter (where array_contains(_change_columns, 'status')) as `_change_last status`,
                        max_by(
                            struct(`total` as value, _change_sequence as sequence, _change_batch as batch),
                            struct(_change_sequence, -_change_batch)
                        ) filter (where array_contains(_change_columns, 'total')) as `_change_last total`,
                        max_by(
                            struct(`placed_at` as value, _change_sequence as sequence, _change_batch as batch),
                            struct(_change_sequence, -_change_batch)
                        ) filter (where array_contains(_change_columns, 'placed_at')) as `_change_last placed_at`,
                        max_by(
                            struct(`ratio` as value, _change_sequence as sequence, _change_batch as batch),
                            struct(_change_sequence, -_change_batch)
                        ) filter (where array_contains(_change_columns, 'ratio')) as `_change_last ratio`,
                        count(*) as _change_records,
                        collect_set(struct(_change_sequence as sequence, _change_columns as carried)) as _change_delivered
                    from reconcile_changes_da2f7fd25744
                    where _change_error is null
                    group by `id`
                )
            )
        ) as newest
        left join (
            select /*+ broadcast(change) */ `id`, _change_sequence, _deleted, _change_row_sequence, _change_column_sequences
            from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, _change_row_sequence, _change_column_sequences from `demo`.`orders__base`) as known
            left semi join reconcile_changes_da2f7fd25744 as change
                on change.`id` = known.`id`
        ) as base
            on newest.`id` = base.`id`
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select
    200 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_da2f7fd25744) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_delivered) + cardinality(filter(_change_delivered, record -> array_contains(_change_known, record.sequence)))), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_delivered, record -> not array_contains(_change_known, record.sequence) and (
        record.sequence < _change_row_after
        or record.sequence < _change_newest_after and forall(record.carried, name -> coalesce(_change_columns_after[name], _change_row_after) > record.sequence)
    )))), 0) as superseded,
    coalesce(sum(cardinality(filter(_change_writers, writer -> not _change_is_pending or writer.sequence <=> _change_row_after))), 0) as applied,
    coalesce(sum(cardinality(filter(_change_writers, writer -> _change_is_pending and not writer.sequence <=> _change_row_after))), 0) as pending,
    coalesce(sum(cardinality(filter(_change_writers, writer -> _change_is_live and not _change_was_live and writer.sequence = _change_row_after))), 0) as inserted,
    coalesce(sum(cardinality(filter(_change_writers, writer -> _change_is_live and (_change_was_live or writer.sequence <> _change_row_after)))), 0) as updated,
    coalesce(sum(cardinality(filter(_change_writers, writer -> not _change_is_live and _change_was_live and writer.sequence <=> _change_row_after))), 0) as deleted,
    coalesce(sum(cardinality(filter(_change_writers, writer -> not _change_is_live and not _change_was_live and writer.sequence <=> _change_row_after))), 0) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(cardinality(_change_writers) > 0) as merged,
    max(array_max(transform(_change_writers, writer -> writer.batch))) as base_batch
from reconcile_fold_da2f7fd25744;

insert into `demo`.`orders__quarantine`
replace where _change_batch between 4 and 5
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

set spark.sql.join.preferSortMergeJoin = false;

set spark.sql.autoBroadcastJoinThreshold = 100m;

merge into `demo`.`orders__base` as base
using (
    select /*+ broadcast(record) */ *
    from reconcile_fold_da2f7fd25744 as record
    where cardinality(_change_writers) > 0
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as newest
on newest.`id` = base.`id`
when matched then update set
    `status` = if(coalesce(newest._change_column_sequences['status'], newest._change_row_sequence, '') > coalesce(base._change_column_sequences['status'], base._change_row_sequence, ''), newest.`status`, base.`status`),
    `total` = if(coalesce(newest._change_column_sequences['total'], newest._change_row_sequence, '') > coalesce(base._change_column_sequences['total'], base._change_row_sequence, ''), newest.`total`, base.`total`),
    `placed_at` = if(coalesce(newest._change_column_sequences['placed_at'], newest._change_row_sequence, '') > coalesce(base._change_column_sequences['placed_at'], base._change_row_sequence, ''), newest.`placed_at`, base.`placed_at`),
    `ratio` = if(coalesce(newest._change_column_sequences['ratio'], newest._change_row_sequence, '') > coalesce(base._change_column_sequences['ratio'], base._change_row_sequence, ''), newest.`ratio`, base.`ratio`),
    _change_sequence = greatest(base._change_sequence, newest._change_sequence),
    _change_time = if(newest._change_sequence > coalesce(base._change_sequence, ''), newest._change_time, base._change_time),
    _change_batch = greatest(base._change_batch, array_max(transform(newest._change_writers, record -> record.batch))),
    `_change_deleted` = if(newest._change_row_sequence > coalesce(base._change_row_sequence, ''), newest._deleted, coalesce(base.`_change_deleted`, false)),
    _change_row_sequence = greatest(base._change_row_sequence, newest._change_row_sequence),
    _change_column_sequences = map_filter(map_zip_with(coalesce(base._change_column_sequences, cast(map() as map<string, string>)), coalesce(newest._change_column_sequences, cast(map() as map<string, string>)), (name, sequence, rival) -> greatest(sequence, rival)), (name, sequence) -> sequence > coalesce(greatest(base._change_row_sequence, newest._change_row_sequence), ''))
when not matched then insert (`id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted`, _change_row_sequence, _change_column_sequences)
values (newest.`id`, newest.`status`, newest.`total`, newest.`placed_at`, newest.`ratio`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted, newest._change_row_sequence, newest._change_column_sequences);

set spark.sql.autoBroadcastJoinThreshold = -1;

reset `spark.sql.iceberg.snapshot-property.reconcile`;

merge into `demo`.`reconcile_ledger` as known
using (
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
        (select max(case when get_json_object(record, '$.cut_time') rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(get_json_object(record, '$.cut_time') as timestamp) when get_json_object(record, '$.cut_time') rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(get_json_object(record, '$.cut_time') rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', get_json_object(record, '$.cut_time'), concat(get_json_object(record, '$.cut_time'), if(get_json_object(record, '$.cut_time') like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as cut_time
    from `lake`.`shop_changes`
    where object = '#cut' and batch = 5) as cut_time,
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
    where if(account.ledger_batch = 3 and account.entry = 3, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as incoming
on known.relation = 'demo.orders' and known.invocation_id = incoming.invocation_id and known.recorded_at = incoming.recorded_at
when matched then update set seconds = incoming.seconds
when not matched then insert *;

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined
