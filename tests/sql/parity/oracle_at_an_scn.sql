create schema if not exists `demo`;

show tables in `demo` like 'reconcile_parity';

create or replace table `demo`.`reconcile_parity` using delta
as
select columns.*
from (
    select from_json(
        cast(null as string),
        'run_id string comment \'invocation_id of the dbt run\', '
        'test string comment \'name of the test\', '
        'relation string comment \'schema.name of the model\', '
        'compared_to string comment \'schema.name of the relation with the rows of the source; of a proof by prove.py, the database and its table\', '
        'verdict string comment \'match if every row in scope matches; otherwise the worst verdict of a row: confirmed, unprovable, in_flight\', '
        'rechecked_run_id string comment \'the run whose rows in flight are the only rows that were compared again; NULL: all rows were compared\', '
        'rechecks bigint comment \'how often rows in flight have been compared again so far\', '
        'position_kind string, '
        'position string comment \'NULL: both sides were compared as they were\', '
        'uncertain_from timestamp comment \'it is uncertain whether the snapshot includes a change of this time or later; NULL: the position is exact\', '
        'uncertain_to timestamp, '
        'is_delivered boolean comment \'whether staging held everything up to the position\', '
        'not_delivered_because string, '
        'allowance string comment \'how late records may arrive, if the source does not report what it has delivered\', '
        'compared bigint comment \'the number of rows of both sides; a row on both sides counts once\', '
        'matched bigint, '
        'confirmed bigint, '
        'in_flight bigint, '
        'unprovable bigint, '
        'missing bigint comment \'rows that did not match: only in the source\', '
        'unexpected bigint comment \'rows that did not match: only in the model\', '
        'different bigint, '
        'tolerated map<string, bigint> comment \'by column, the number of values that match only by a tolerance\', '
        'model_version bigint comment \'the version of the base table\', '
        'source_version bigint comment \'the version of the snapshot\', '
        'model_digest string comment \'the sum of the hashes of the rows; equal on both sides if the rows are equal, except for versions and tolerances; of a proof, both sums of hashes\', '
        'source_digest string, '
        'seconds double, '
        'recorded_at timestamp'
    ) as columns
)
where false;

show tables in `demo` like 'reconcile_parity_differences';

create or replace table `demo`.`reconcile_parity_differences` using delta
as
select columns.*
from (
    select from_json(
        cast(null as string),
        'run_id string, '
        'test string, '
        'relation string, '
        'compared_to string, '
        'key string comment \'the key as JSON; NULL if the finding is not about one row\', '
        'verdict string, '
        'difference string comment \'missing: only in the source; unexpected: only in the model; different\', '
        'reason string comment \'why the verdict could not be decided\', '
        'columns array<struct<column: string, model: string, source: string>> comment \'the columns that differ; their values only with store_values\''
    ) as columns
)
where false;

show tblproperties `lake`.`orders_source`;

show tblproperties `lake`.`shop_changes`;

show tblproperties `demo`.`orders__base`;

show tblproperties `lake`.`shop_changes`;

set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

drop view if exists reconcile_verdicts_dc53585fb42f;

drop view if exists reconcile_touched_dc53585fb42f;

drop view if exists reconcile_recent_dc53585fb42f;

show tblproperties `lake`.`orders_source`;

describe history `demo`.`orders__base` limit 1;

describe history `lake`.`orders_source` limit 1;

select max(_change_batch) from `demo`.`orders__base` version as of 7;

select
    coalesce(max(batch), 0) as last,
    min(if(appended_at >= to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours' - interval '1 hour', batch, null)) as first,
    min(if(appended_at >= current_timestamp() - interval '3 hours', batch, null)) as recent
from `lake`.`shop_changes`;

select distinct _change_batch from `demo`.`orders__quarantine` where _change_batch < 3;

select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select
    current_timestamp() >= to_timestamp('2026-11-22T10:00:00Z') + interval '3 hours' as has_passed,
    (
        select count_if(coalesce(_change_happened_at <= to_timestamp('2026-11-22T10:00:00Z'), true))
        from `demo`.`orders__changes`
        lateral view explode(array(_change_time)) as _change_happened_at
        where _change_batch between 3 and 3
    ) as late;

cache table reconcile_recent_dc53585fb42f as
select *
from (
select `id`, _row_id, _change_transaction, _change_batch, _change_sequence, _change_error, _change_side
from (
    select
        `id`,
        `name`,
        `amount`,
        `ratio`,
        `at`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _row_id,
        nullif(_change_transaction, '') as _change_transaction,
        _change_side,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
        cast(null as string) as _change_origin
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
    select *, case when if(split_part(_change_place, '/', 2) = '0', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours' and array_join(slice(split(_change_place, '/'), 3, 1), '/') <= '00000E6ED1C47EDC') then 'before' when not split_part(_change_place, '/', 2) = '0' and array_join(slice(split(_change_place, '/'), 3, 1), '/') > '00000E6ED1C47EDC' then 'after' else 'uncertain' end as _change_side
            from `demo`.`orders__changes`
            lateral view explode(array(_change_sequence)) as _change_place
            where _change_batch between 3 and 3 or _change_batch in (1)
        )
        where _change_batch between 1 and 3
    )
)
lateral view explode(array(_change_error is not null)) as _change_has_error
where _change_side <> 'before' or _change_batch > 3 or _change_has_error
union all
select `id`, null, null, null, null, null, 'before'
from (
    select `id`
    from (
        select `id`, explode(concat(
            if(_change_is_insert, array(struct(_row_id as address, _change_transaction as transaction)), array()),
            coalesce(transform(_change_displaced, change -> struct(change.address, change.transaction)), array())
        )) as _change_place
        from `demo`.`orders__base` version as of 7 as base
        where _change_is_insert or _change_displaced is not null
    )
    left semi join (
        select _row_id, _change_transaction, _change_sequence, _change_batch
        from (
        select
            `id`,
            `name`,
            `amount`,
            `ratio`,
            `at`,
            _change_type,
            _change_sequence,
            _change_id,
            _change_time,
            _change_batch,
            _row_id,
            nullif(_change_transaction, '') as _change_transaction,
            _change_side,
            _change_complaint as _change_error,
            if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
            cast(null as string) as _change_origin
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
        select *, case when if(split_part(_change_place, '/', 2) = '0', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours' and array_join(slice(split(_change_place, '/'), 3, 1), '/') <= '00000E6ED1C47EDC') then 'before' when not split_part(_change_place, '/', 2) = '0' and array_join(slice(split(_change_place, '/'), 3, 1), '/') > '00000E6ED1C47EDC' then 'after' else 'uncertain' end as _change_side
                from `demo`.`orders__changes`
                lateral view explode(array(_change_sequence)) as _change_place
                where _change_batch between 3 and 3 or _change_batch in (1)
            )
            where _change_batch between 1 and 3
        )
        )
        where (_change_error is null and `id` is null) and _change_transaction is not null
    ) as undoing
        on _change_place.address = undoing._row_id and _change_place.transaction = undoing._change_transaction
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_recent_dc53585fb42f' is not null;

select
    count(distinct if(`id` is not null, struct(`id`), null)) as touched,
    count_if(_change_error is not null and not (`id` is not null)) as unreadable
from reconcile_recent_dc53585fb42f;

cache table reconcile_touched_dc53585fb42f as
select *
from (
select /*+ broadcast(touched) */ change.*
from (
    select
        `id`,
        `name`,
        `amount`,
        `ratio`,
        `at`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _row_id,
        nullif(_change_transaction, '') as _change_transaction,
        _change_side,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
        cast(null as string) as _change_origin
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
    select *, case when if(split_part(_change_place, '/', 2) = '0', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours', _change_time < to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours' and array_join(slice(split(_change_place, '/'), 3, 1), '/') <= '00000E6ED1C47EDC') then 'before' when not split_part(_change_place, '/', 2) = '0' and array_join(slice(split(_change_place, '/'), 3, 1), '/') > '00000E6ED1C47EDC' then 'after' else 'uncertain' end as _change_side
            from `demo`.`orders__changes`
            lateral view explode(array(_change_sequence)) as _change_place
            where _change_batch between 1 and 3
        )
        where _change_batch between 1 and 3
    )
) as change
left semi join reconcile_recent_dc53585fb42f as touched
    on touched.`id` = change.`id`
)
where '00000000-0000-0000-0000-000000000000 reconcile_touched_dc53585fb42f' is not null;

cache table reconcile_verdicts_dc53585fb42f as
select *
from (
select
    verdict,
    any_value(if(verdict = 'match', null, difference)) as difference,
    any_value(reason) as reason,
    if(verdict = 'match', null, to_json(named_struct('id', cast(key_columns.`id` as string)))) as key,
    if(verdict = 'match', null, key_columns) as key_columns,
    any_value(if(verdict = 'match', null, columns)) as columns,
    count(*) as rows,
    coalesce(sum(cast(model_hash as decimal(38, 0))), 0) as model_digest,
    coalesce(sum(cast(source_hash as decimal(38, 0))), 0) as source_digest,
    cast(map() as map<string, bigint>) as tolerated
from (
    select
        *,
        case
            when is_equal or is_version then 'match'
            when is_pending or quarantined > 0 or true then 'unprovable'
            when is_uncertain then 'in_flight'
            else 'confirmed'
        end as verdict,
        case when is_equal then null when not in_source then 'unexpected' when not in_model then 'missing' else 'different' end as difference,
        case
            when is_equal or is_version then null
            when is_pending then 'only some columns of the row are known'
            when quarantined > 0 then concat(quarantined, ' records of the row are in quarantine')
            when true then '1 records in quarantine do not show to which row they belong'
            when is_uncertain then 'the row changed so close to the position that it is unknown whether the position includes the change, and the source has none of the versions that the row had then'
        end as reason
    from (
        select
            named_struct('id', coalesce(model_rows.`id`, source_rows.`id`)) as key_columns,
            coalesce(model_rows._change_copy, source_rows._change_copy) as copy,
            model_rows._change_copy is not null as in_model,
            source_rows._change_copy is not null as in_source,
            model_rows._change_hash as model_hash,
            source_rows._change_hash as source_hash,
            model_rows._change_copy is not null and source_rows._change_copy is not null
            and (model_rows.`name` <=> source_rows.`name`)
            and (model_rows.`amount` <=> source_rows.`amount`)
            and (model_rows.`ratio` <=> source_rows.`ratio` and cast(model_rows.`ratio` as string) <=> cast(source_rows.`ratio` as string))
            and (model_rows.`at` <=> source_rows.`at`) as is_equal,
            coalesce(exists(doubts._change_versions, version -> case
                when source_rows._change_copy is null then version._deleted
                when source_rows._change_copy = 1 then not version._deleted and (version.`name` <=> source_rows.`name`) and (version.`amount` <=> source_rows.`amount`) and (version.`ratio` <=> source_rows.`ratio` and cast(version.`ratio` as string) <=> cast(source_rows.`ratio` as string)) and (version.`at` <=> source_rows.`at`)
                else false
            end), false) as is_version,
            coalesce(doubts._change_is_uncertain, false) as is_uncertain,
            coalesce(doubts._change_quarantined, 0) as quarantined,
            coalesce(doubts._change_is_pending, false) as is_pending,
            doubts._change_is_uncertain is not null as is_touched,
            array() as tolerated,
            if(model_rows._change_copy is null or source_rows._change_copy is null, null, filter(
                array(
                    if((model_rows.`name` <=> source_rows.`name`), null, named_struct('column', 'name', 'model', cast(model_rows.`name` as string), 'source', cast(source_rows.`name` as string))),
                    if((model_rows.`amount` <=> source_rows.`amount`), null, named_struct('column', 'amount', 'model', cast(model_rows.`amount` as string), 'source', cast(source_rows.`amount` as string))),
                    if((model_rows.`ratio` <=> source_rows.`ratio` and cast(model_rows.`ratio` as string) <=> cast(source_rows.`ratio` as string)), null, named_struct('column', 'ratio', 'model', cast(model_rows.`ratio` as string), 'source', cast(source_rows.`ratio` as string))),
                    if((model_rows.`at` <=> source_rows.`at`), null, named_struct('column', 'at', 'model', cast(model_rows.`at` as string), 'source', cast(source_rows.`at` as string)))
                ),
                difference -> difference is not null
            )) as columns
        from (
            select
                `id`,
                `name`,
                `amount`,
                `ratio`,
                `at`,
                xxhash64(`id` is null, `id`, `name` is null, `name`, `amount` is null, `amount`, `ratio` is null, cast(`ratio` as string), `at` is null, `at`) as _change_hash,
                row_number() over (
                    partition by `id`
                    order by `id`, `name`, `amount`, `ratio`, `at`
                ) as _change_copy
            from (
                select
                    `id`,
                    `name`,
                    `amount`,
                    `ratio`,
                    `at`
                from (
                    select /*+ broadcast(touched) */ `id`, `name`, `amount`, `ratio`, `at`, _change_sequence, _deleted, _row_id
                    from `demo`.`orders__base` version as of 7 as known
                    left anti join (
                        select `id`, bool_or(_change_side = 'uncertain') as _change_is_uncertain, count_if(_change_error is not null) as _change_quarantined
                        from reconcile_recent_dc53585fb42f
                        where `id` is not null
                        group by `id`
                    ) as touched
                        on touched.`id` = known.`id`
                    union all
                    select `id`, `name`, `amount`, `ratio`, `at`, _change_sequence, _deleted, _row_id
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
                                                    change -> struct(case when change._deleted then 'delete' when change._change_is_insert then 'insert' else 'update' end as type, change._change_sequence as sequence, change._change_time as time, change._change_batch as batch, change._row_id as address, change._change_transaction as transaction, if(change._deleted, null, struct(change.`amount` as `amount`, change.`at` as `at`, change.`name` as `name`, change.`ratio` as `ratio`)) as row)
                                                ),
                                                if(certain_written is null, array(), array(if(
                                                    exists(certain_later, change -> coalesce(certain_written._change_is_insert or change.address = certain_written._row_id, true)),
                                                    struct('insert' as type, certain_written._change_sequence as sequence, certain_written._change_time as time, certain_written._change_batch as batch, cast(null as string) as address, certain_written._change_transaction as transaction, cast(null as struct<`amount`:decimal(12,2),`at`:timestamp,`name`:string,`ratio`:double>) as row),
                                                    struct(case when certain_written._deleted then 'delete' when certain_written._change_is_insert then 'insert' else 'update' end as type, certain_written._change_sequence as sequence, certain_written._change_time as time, certain_written._change_batch as batch, certain_written._row_id as address, certain_written._change_transaction as transaction, if(certain_written._deleted, null, struct(certain_written.`amount` as `amount`, certain_written.`at` as `at`, certain_written.`name` as `name`, certain_written.`ratio` as `ratio`)) as row)
                                                ))),
                                                transform(array_sort(filter(certain_later, change -> not exists(certain_later, other -> other.address <=> change.address and struct(other.sequence, -other.batch) > struct(change.sequence, -change.batch)))), change -> struct('delete' as type, change.sequence as sequence, change.time as time, change.batch as batch, change.address as address, certain._change_transaction as transaction, cast(null as struct<`amount`:decimal(12,2),`at`:timestamp,`name`:string,`ratio`:double>) as row)),
                                                if(certain is null or certain._change_transaction is not null, array(), array(struct(case when certain._deleted then 'delete' when certain._change_is_insert then 'insert' else 'update' end as type, certain._change_sequence as sequence, certain._change_time as time, certain._change_batch as batch, certain._row_id as address, certain._change_transaction as transaction, if(certain._deleted, null, struct(certain.`amount` as `amount`, certain.`at` as `at`, certain.`name` as `name`, certain.`ratio` as `ratio`)) as row)))
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
                                                            if(_change_type = 'delete', null, `name`) as `name`,
                                                            if(_change_type = 'delete', null, `amount`) as `amount`,
                                                            if(_change_type = 'delete', null, `ratio`) as `ratio`,
                                                            if(_change_type = 'delete', null, `at`) as `at`,
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
                                                            if(_change_type = 'delete', null, `name`) as `name`,
                                                            if(_change_type = 'delete', null, `amount`) as `amount`,
                                                            if(_change_type = 'delete', null, `ratio`) as `ratio`,
                                                            if(_change_type = 'delete', null, `at`) as `at`,
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
                                                            if(_change_type = 'delete', null, `name`) as `name`,
                                                            if(_change_type = 'delete', null, `amount`) as `amount`,
                                                            if(_change_type = 'delete', null, `ratio`) as `ratio`,
                                                            if(_change_type = 'delete', null, `at`) as `at`,
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
                                                    select
                                                        record.*,
                                                        array_min(transform(filter(undone.deletes, change -> change.sequence > record._change_sequence), change -> change.batch)) as _change_undone_in
                                                    from (
                                                        select `id`, `name`, `amount`, `ratio`, `at`, _change_type, _change_sequence, _change_time, _change_batch, _row_id, _change_transaction
                                                        from (select * from reconcile_touched_dc53585fb42f where _change_side = 'before')
                                                        where _change_error is null and `id` is not null
                                                    ) as record
                                                    left join (
                                                        select _row_id, _change_transaction, collect_set(struct(_change_sequence as sequence, _change_batch as batch)) as deletes
                                                        from (
                                                            select _row_id, _change_transaction, _change_sequence, _change_batch
                                                            from reconcile_recent_dc53585fb42f
                                                            where (_change_error is null and `id` is null) and _change_transaction is not null
                                                            union all
                                                            select _row_id, _change_transaction, _change_sequence, _change_batch
                                                            from `demo`.`orders__row_deletes`
                                                            where _change_transaction is not null
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
                ) as base
                where
                    not _deleted
                    and not exists (
                        select 1
                        from (
                    select _row_id, _change_sequence
                    from reconcile_recent_dc53585fb42f
                    where (_change_error is null and `id` is null)
                    union all
                    select _row_id, _change_sequence
                    from `demo`.`orders__row_deletes`
                ) as keyless
                        where keyless._row_id = base._row_id and keyless._change_sequence > base._change_sequence
                    )
            )
        ) as model_rows
        full outer join (
            select
                `id`,
                `name`,
                `amount`,
                `ratio`,
                `at`,
                xxhash64(`id` is null, `id`, `name` is null, `name`, `amount` is null, `amount`, `ratio` is null, cast(`ratio` as string), `at` is null, `at`) as _change_hash,
                row_number() over (
                    partition by `id`
                    order by `id`, `name`, `amount`, `ratio`, `at`
                ) as _change_copy
            from `lake`.`orders_source` version as of 7
        ) as source_rows
            on model_rows.`id` <=> source_rows.`id` and model_rows._change_copy = source_rows._change_copy
        left join (
            select
                `id`,
                bool_or(_change_is_uncertain) as _change_is_uncertain,
                sum(_change_quarantined) as _change_quarantined,
                bool_or(_change_is_pending) as _change_is_pending,
                flatten(collect_list(_change_versions)) as _change_versions
            from (
                select `id`, _change_is_uncertain, _change_quarantined, false as _change_is_pending, cast(null as array<struct<_deleted: boolean, `id`: bigint, `name`: string, `amount`: decimal(12,2), `ratio`: double, `at`: timestamp>>) as _change_versions
                from (
                    select `id`, bool_or(_change_side = 'uncertain') as _change_is_uncertain, count_if(_change_error is not null) as _change_quarantined
                    from reconcile_recent_dc53585fb42f
                    where `id` is not null
                    group by `id`
                )
                union all
                select `id`, false, 0, false, array(struct(_change_type = 'delete' as _deleted, `id`, `name`, `amount`, `ratio`, `at`))
                from reconcile_touched_dc53585fb42f as change
                where _change_side = 'uncertain' and _change_error is null
                    and not exists (
                        select 1
                        from (
                            select _row_id, _change_sequence
                            from reconcile_recent_dc53585fb42f
                            where (_change_error is null and `id` is null)
                            union all
                            select _row_id, _change_sequence
                            from `demo`.`orders__row_deletes`
                        ) as row_delete
                        where row_delete._row_id = change._row_id and row_delete._change_sequence > change._change_sequence
                    )
            )
            group by `id`
        ) as doubts
            on doubts.`id` = coalesce(model_rows.`id`, source_rows.`id`)
    )
)
group by verdict, if(verdict = 'match', null, copy), if(verdict = 'match', null, to_json(named_struct('id', cast(key_columns.`id` as string)))), if(verdict = 'match', null, key_columns)
)
where '00000000-0000-0000-0000-000000000000 reconcile_verdicts_dc53585fb42f' is not null;

select
    coalesce(sum(rows), 0) as compared,
    coalesce(sum(if(verdict = 'match', rows, 0)), 0) as matched,
    coalesce(sum(if(verdict = 'confirmed', rows, 0)), 0) as confirmed,
    coalesce(sum(if(verdict = 'in_flight', rows, 0)), 0) as in_flight,
    coalesce(sum(if(verdict = 'unprovable', rows, 0)), 0) as unprovable,
    coalesce(sum(if(difference = 'missing', rows, 0)), 0) as missing,
    coalesce(sum(if(difference = 'unexpected', rows, 0)), 0) as unexpected,
    coalesce(sum(if(difference = 'different', rows, 0)), 0) as different,
    cast(coalesce(sum(model_digest), 0) as string) as model_digest,
    cast(coalesce(sum(source_digest), 0) as string) as source_digest,
    to_json(cast(map() as map<string, bigint>)) as tolerated
from reconcile_verdicts_dc53585fb42f;

insert into `demo`.`reconcile_parity_differences` by name
select
    '00000000-0000-0000-0000-000000000000' as run_id,
    'parity_orders' as test,
    'demo.orders' as relation,
    'lake.orders_source' as compared_to,
    key,
    verdict,
    difference,
    reason,
    transform(columns, difference -> named_struct('column', difference.column, 'model', cast(null as string), 'source', cast(null as string))) as columns
from reconcile_verdicts_dc53585fb42f
where verdict <> 'match';

insert into `demo`.`reconcile_parity` by name
select
    '00000000-0000-0000-0000-000000000000' as run_id,
    'parity_orders' as test,
    'demo.orders' as relation,
    'lake.orders_source' as compared_to,
    'confirmed' as verdict,
    cast(null as string) as rechecked_run_id,
    0L as rechecks,
    'scn' as position_kind,
    '15869128507100' as position,
    to_timestamp('2026-11-22T10:00:00Z') - interval '2 hours' as uncertain_from,
    to_timestamp('2026-11-22T10:00:00Z') + interval '2 hours' as uncertain_to,
    true as is_delivered,
    cast(null as string) as not_delivered_because,
    '3 hours' as allowance,
    9L as compared,
    6L as matched,
    1L as confirmed,
    1L as in_flight,
    1L as unprovable,
    1L as missing,
    1L as unexpected,
    1L as different,
    from_json('{}', 'map<string, bigint>') as tolerated,
    7L as model_version,
    '1' as model_digest,
    7L as source_version,
    '1' as source_digest,
    <seconds> as seconds,
    current_timestamp() as recorded_at;

select _change_difference.column, count(*) as rows
from reconcile_verdicts_dc53585fb42f
lateral view explode(columns) as _change_difference
where difference = 'different'
group by _change_difference.column
order by rows desc, _change_difference.column
limit 5;

select key_columns.*, verdict, difference, reason, columns
from reconcile_verdicts_dc53585fb42f
where verdict <> 'match'
