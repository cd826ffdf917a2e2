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

{the SELECT of oracle/change_records.sql}
    )
    where _change_batch between 4 and 5
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro,
    array_join(array_sort(collect_set(hex(_change_table))), ',') as tables
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

select count(*) from reconcile_changes_da2f7fd25744 where (_change_error is null and `id` is null);

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    winner.* except (_change_batch, _change_undone_in),
    batch as _change_batch,
    if(contenders is null and batch > winner._change_batch, array(struct(if(winner._deleted, winner._row_id, '') as address, winner._change_sequence as sequence, winner._change_time as time, winner._change_batch as batch)), contenders) as _change_contenders,
    displaced as _change_displaced,
    base._change_sequence as _change_base_sequence,
    base._change_time as _change_base_time,
    base._change_batch as _change_base_batch,
    base._deleted as _change_base_deleted,
    base._row_id as _change_base_row_id,
    base._change_transaction as _change_base_transaction,
    base._change_contenders as _change_base_contenders,
    base._change_displaced as _change_base_displaced,
    base is null or winner._change_sequence <> base._change_sequence as _change_replaces_base,
    winner._change_sequence <=> base._change_sequence
    and not struct(winner._change_transaction, if(contenders is null and batch > winner._change_batch, array(struct(if(winner._deleted, winner._row_id, '') as address, winner._change_sequence as sequence, winner._change_time as time, winner._change_batch as batch)), contenders), transform(displaced, change -> struct(change.type, change.sequence, change.batch, change.address, change.transaction)), batch) <=> struct(base._change_transaction, base._change_contenders, transform(base._change_displaced, change -> struct(change.type, change.sequence, change.batch, change.address, change.transaction)), base._change_batch) as _change_is_noted,
    if(array_contains(sequences, winner._change_sequence), winner._change_sequence, newest_of_range._change_sequence) as _change_applied_sequence,
    newest_of_range._change_sequence as _change_range_sequence,
    newest_of_range._change_time as _change_range_time,
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
            undone_in,
            base._change_batch
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
                            first(_change_base, true) as base,
                            max(if(_change_base is null and _change_undone_in is null, struct(_change_sequence, _change_time), null)) as newest_of_range,
                            count_if(_change_base is null) as records,
                            collect_set(if(_change_base is null, _change_sequence, null)) as sequences
                        from (
                            select
                                record.*,
                                array_min(transform(filter(undone.deletes, change -> change.sequence > record._change_sequence), change -> change.batch)) as _change_undone_in
                            from (
                                select `id`, `status`, `total`, `placed_at`, `ratio`, _change_type, _change_sequence, _change_time, _change_batch, _row_id, _change_transaction, null as _change_base
                                from reconcile_changes_da2f7fd25744
                                where _change_error is null and `id` is not null
                                union all
                                select
                                    `id`,
                                    _change_entry.row.`status` as `status`,
                                    _change_entry.row.`total` as `total`,
                                    _change_entry.row.`placed_at` as `placed_at`,
                                    _change_entry.row.`ratio` as `ratio`,
                                    _change_entry.type,
                                    _change_entry.sequence,
                                    _change_entry.time,
                                    _change_entry.batch,
                                    _change_entry.address,
                                    _change_entry.transaction,
                                    struct(_change_sequence, _change_time, _change_batch, _deleted, _row_id, _change_transaction, _change_contenders, _change_displaced)
                                from (
                                    select /*+ broadcast(touched) */ known.*
                                    from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, `_change_row_id` as _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced from `demo`.`orders__base`) as known
                                    left semi join (
                                        select `id`
                                        from reconcile_changes_da2f7fd25744
                                        union all
                                        select `id`
                                        from (
                                            select `id`, explode(concat(
                                                if(_change_is_insert, array(struct(_row_id as address, _change_transaction as transaction)), array()),
                                                coalesce(transform(_change_displaced, change -> struct(change.address, change.transaction)), array())
                                            )) as _change_place
                                            from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, `_change_row_id` as _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced from `demo`.`orders__base`) as base
                                            where _change_is_insert or _change_displaced is not null
                                        )
                                        left semi join (
                                            select _row_id, _change_transaction, _change_sequence, _change_batch
                                            from reconcile_changes_da2f7fd25744
                                            where (_change_error is null and `id` is null) and _change_transaction is not null
                                        ) as undoing
                                            on _change_place.address = undoing._row_id and _change_place.transaction = undoing._change_transaction
                                    ) as touched
                                        on touched.`id` = known.`id`
                                )
                                lateral view explode(concat(
                                    if(_deleted and _change_contenders is not null and _change_displaced is null, array(), array(struct(
                                        case when _deleted then 'delete' when _change_is_insert then 'insert' else 'update' end as type,
                                        _change_sequence as sequence,
                                        _change_time as time,
                                        coalesce(get(filter(_change_contenders, change -> change.sequence = _change_sequence), 0).batch, _change_batch) as batch,
                                        _row_id as address,
                                        _change_transaction as transaction, cast(null as struct<`placed_at`:timestamp,`ratio`:double,`status`:string,`total`:decimal(38,10)>) as row
                                    ))),
                                    coalesce(_change_displaced, transform(
                                        filter(coalesce(_change_contenders, array()), change -> not change.address <=> '' or _deleted),
                                        change -> struct(if(change.address = '', 'insert', 'delete') as type, change.sequence as sequence, change.time as time, change.batch as batch, nullif(change.address, '') as address, _change_transaction as transaction, cast(null as struct<`placed_at`:timestamp,`ratio`:double,`status`:string,`total`:decimal(38,10)>) as row)
                                    ))
                                )) entry as _change_entry
                            ) as record
                            left join (
                                select _row_id, _change_transaction, collect_set(struct(_change_sequence as sequence, _change_batch as batch)) as deletes
                                from (
                                    select _row_id, _change_transaction, _change_sequence, _change_batch
                                    from reconcile_changes_da2f7fd25744
                                    where (_change_error is null and `id` is null) and _change_transaction is not null
                                )
                                group by _row_id, _change_transaction
                            ) as undone
                                on record._row_id = undone._row_id and record._change_transaction = undone._change_transaction and record._change_type = 'insert'
                        )
                        group by `id`
                    )
                )
            )
        )
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

drop view if exists reconcile_rows_da2f7fd25744;

cache table reconcile_rows_da2f7fd25744 as
select *
from (
select
    *,
    _change_is_undone or _deleted and not _change_is_delete and coalesce(_change_base_deleted, true) as _change_is_lost
from (
    select
        fold.`id`,
        fold._row_id,
        fold._change_sequence,
        fold._change_batch,
        fold._change_records,
        fold._change_sequences,
        fold._change_base_sequence,
        fold._change_replaces_base,
        fold._change_is_noted,
        fold._change_applied_sequence,
        fold._deleted as _change_is_delete,
        fold._deleted or coalesce(greatest(cover.known, cover.incoming) > fold._change_sequence, false) as _deleted,
        fold._change_base_deleted or coalesce(base_cover.known > fold._change_base_sequence, false) as _change_base_deleted,
        not fold._deleted and coalesce(cover.incoming > greatest(fold._change_sequence, cover.known), false) as _change_is_undone
    from reconcile_fold_da2f7fd25744 as fold
    left join (
        select _row_id, max(known) as known, max(incoming) as incoming
        from (
            select _row_id, cast(null as string) as known, _change_sequence as incoming
            from reconcile_changes_da2f7fd25744
            where (_change_error is null and `id` is null)
        )
        group by _row_id
    ) as cover
        on fold._row_id = cover._row_id
    left join (
        select _row_id, max(known) as known, max(incoming) as incoming
        from (
            select _row_id, cast(null as string) as known, _change_sequence as incoming
            from reconcile_changes_da2f7fd25744
            where (_change_error is null and `id` is null)
        )
        group by _row_id
    ) as base_cover
        on fold._change_base_row_id = base_cover._row_id
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_rows_da2f7fd25744' is not null;

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
            _change_is_merged and _change_applied_sequence is not null and not _change_is_lost as _change_is_applied,
            coalesce(not _change_base_deleted, false) as _change_was_live
        from reconcile_rows_da2f7fd25744
    )
) as keyed
cross join (
    select
        coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
        count_if(is_new and not is_applied and (not is_latest or has_covered_records)) as superseded,
        count_if(is_new and not is_applied and is_latest and not has_covered_records) as pending,
        count_if(is_new and is_applied) as applied,
        count_if(is_new and is_applied and removes_live_row) as deleted,
        count_if(is_new and is_applied and not removes_live_row) as tombstoned
    from (
        select
            incoming.is_known,
            not incoming.is_known as is_new,
            incoming.is_latest,
            incoming.records,
            incoming.is_latest and coalesce(bool_or(covered.in_table and covered._change_sequence < incoming._change_sequence), false) as is_applied,
            coalesce(bool_or(covered.in_table and covered._change_sequence < incoming._change_sequence and covered.was_live), false) as removes_live_row,
            count(covered._change_sequence) > 0 as has_covered_records
        from (
            select
                *,
                _change_sequence = max(_change_sequence) over (partition by _row_id) as is_latest
            from (
                select _row_id, _change_sequence, sum(records) as records, bool_or(is_known) as is_known
                from (
                    select _row_id, _change_sequence, _change_records as records, false as is_known
                    from (
                        select _row_id, _change_sequence, first._change_time, first._change_id, _change_batch, _change_transaction, records as _change_records
                        from (
                            select
                                _row_id,
                                _change_sequence,
                                min(struct(_change_time, _change_id)) as first,
                                min(_change_batch) as _change_batch,
                                min(_change_transaction) as _change_transaction,
                                count(*) as records
                            from reconcile_changes_da2f7fd25744
                            where (_change_error is null and `id` is null)
                            group by _row_id, _change_sequence
                        )
                    )
                )
                group by _row_id, _change_sequence
            )
        ) as incoming
        left join (
            select _row_id, _change_sequence, true as in_table, _change_is_undone and not coalesce(_change_base_deleted, true) as was_live
            from reconcile_rows_da2f7fd25744
            where _change_replaces_base
            union all
            select _row_id, _change_sequence, false, false
            from reconcile_changes_da2f7fd25744
            where _change_error is null and `id` is not null
            union all
            select base._row_id, base._change_sequence, replaced.`id` is null, not base._deleted
            from (
                select /*+ broadcast(keyless) */ `id`, _row_id, _change_sequence, _deleted
                from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, `_change_row_id` as _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced from `demo`.`orders__base`) as known
                left semi join (
                    select _row_id
                    from reconcile_changes_da2f7fd25744
                    where (_change_error is null and `id` is null)
                ) as keyless
                    on keyless._row_id = known._row_id
            ) as base
            left join (
                select `id`
                from reconcile_rows_da2f7fd25744
                where _change_replaces_base
            ) as replaced
                on replaced.`id` = base.`id`
        ) as covered
            on incoming._row_id = covered._row_id
        group by incoming._row_id, incoming._change_sequence, incoming.is_known, incoming.is_latest, incoming.records
    )
) as keyless;

show tables in `demo` like 'orders__row_deletes';

drop view if exists reconcile_rows_da2f7fd25744;

create table if not exists `demo`.`orders__row_deletes`
using iceberg
tblproperties (
    'format-version' = '3',
    'write.merge.mode' = 'merge-on-read',
    'write.update.mode' = 'merge-on-read',
    'write.delete.mode' = 'merge-on-read',
    'write.merge.isolation-level' = 'serializable',
    'reconcile.row_deletes' = 'demo.orders'
)
as
select _row_id as `_change_row_id`, _change_sequence, _change_time, _change_id, _change_batch, _change_transaction
from (
    select _row_id, _change_sequence, first._change_time, first._change_id, _change_batch, _change_transaction, records as _change_records
    from (
        select
            _row_id,
            _change_sequence,
            min(struct(_change_time, _change_id)) as first,
            min(_change_batch) as _change_batch,
            min(_change_transaction) as _change_transaction,
            count(*) as records
        from reconcile_changes_da2f7fd25744
        where (_change_error is null and `id` is null)
        group by _row_id, _change_sequence
    )
)
where false;

merge into `demo`.`orders__row_deletes` as known
using (
    select _row_id as `_change_row_id`, _change_sequence, _change_time, _change_id, _change_batch, _change_transaction
    from (
        select _row_id, _change_sequence, first._change_time, first._change_id, _change_batch, _change_transaction, records as _change_records
        from (
            select
                _row_id,
                _change_sequence,
                min(struct(_change_time, _change_id)) as first,
                min(_change_batch) as _change_batch,
                min(_change_transaction) as _change_transaction,
                count(*) as records
            from reconcile_changes_da2f7fd25744
            where (_change_error is null and `id` is null)
            group by _row_id, _change_sequence
        )
    )
) as incoming
on incoming.`_change_row_id` = known.`_change_row_id` and incoming._change_sequence = known._change_sequence
when matched and struct(incoming._change_time, incoming._change_id) < struct(known._change_time, known._change_id) then update set _change_time = incoming._change_time, _change_id = incoming._change_id
when matched and known._change_transaction is null and incoming._change_transaction is not null then update set _change_transaction = incoming._change_transaction
when not matched then insert *;

select max(_change_batch) from `demo`.`orders__row_deletes`;

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
    where (_change_replaces_base or _change_is_noted)
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as newest
on newest.`id` = base.`id`
when matched and newest._change_replaces_base then update set
    `id` = newest.`id`,
    `status` = newest.`status`,
    `total` = newest.`total`,
    `placed_at` = newest.`placed_at`,
    `ratio` = newest.`ratio`,
    _change_sequence = newest._change_sequence,
    _change_time = newest._change_time,
    _change_batch = newest._change_batch,
    `_change_deleted` = newest._deleted,
    `_change_row_id` = newest._row_id,
    _change_transaction = newest._change_transaction,
    _change_is_insert = newest._change_is_insert,
    _change_contenders = newest._change_contenders,
    _change_displaced = transform(newest._change_displaced, change -> if(change.sequence = base._change_sequence and change.row is not null, struct(change.type as type, change.sequence as sequence, change.time as time, change.batch as batch, change.address as address, change.transaction as transaction, struct(base.`placed_at` as `placed_at`, base.`ratio` as `ratio`, base.`status` as `status`, base.`total` as `total`) as row), change))
when matched then update set
    _change_transaction = newest._change_transaction,
    _change_is_insert = newest._change_is_insert,
    _change_contenders = newest._change_contenders,
    _change_displaced = newest._change_displaced,
    _change_batch = newest._change_batch
when not matched then insert (`id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted`, `_change_row_id`, _change_transaction, _change_is_insert, _change_contenders, _change_displaced)
values (newest.`id`, newest.`status`, newest.`total`, newest.`placed_at`, newest.`ratio`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted, newest._row_id, newest._change_transaction, newest._change_is_insert, newest._change_contenders, newest._change_displaced);

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
        cast(null as timestamp) as cut_time,
        cast(null as timestamp) as watermark,
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

create or replace view `demo`.`orders`
tblproperties ('reconcile.definition' = '216d75be9c1359366358d9047ac19fb3')
as
select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`
from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, `_change_row_id` as _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced from `demo`.`orders__base`) as base
where
    not _deleted
    and not exists (
        select 1
        from (select `_change_row_id` as _row_id, _change_sequence, _change_time, _change_id, _change_batch, _change_transaction from `demo`.`orders__row_deletes`) as keyless
        where keyless._row_id = base._row_id and keyless._change_sequence > base._change_sequence
    );

alter table `demo`.`orders__base` set tblproperties (
    'reconcile.kept_deletes' = 'row_deletes'
);

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined
