set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

drop view if exists reconcile_verdicts_04eccc2d616f;

cache table reconcile_verdicts_04eccc2d616f as
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
                    select /*+ broadcast(touched) */ `id`, `name`, `amount`, `ratio`, `at`, _change_sequence, _deleted
                    from `demo`.`orders__base` version as of 7 as known
                    left anti join (
                        select `id`, bool_or(_change_side = 'uncertain') as _change_is_uncertain, count_if(_change_error is not null) as _change_quarantined
                        from reconcile_recent_04eccc2d616f
                        where `id` is not null
                        group by `id`
                    ) as touched
                        on touched.`id` = known.`id`
                    union all
                    select `id`, `name`, `amount`, `ratio`, `at`, _change_sequence, _deleted
                    from (
                        select newest.*, records as _change_records, sequences as _change_sequences
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
                                        _change_type = 'delete' as _deleted
                                    ),
                                    struct(_change_sequence, -_change_batch)
                                ) as newest,
                                count(*) as records,
                                collect_set(_change_sequence) as sequences
                            from (select * from reconcile_touched_04eccc2d616f where _change_side = 'before')
                            where _change_error is null
                            group by `id`
                        )
                    )
                )
                where
                    not _deleted
            )
            where to_json(named_struct('id', cast(`id` as string))) in (select key from `global_temp`.`keys_that_differ`)
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
            from `global_temp`.`rows_of_the_source`
            where to_json(named_struct('id', cast(`id` as string))) in (select key from `global_temp`.`keys_that_differ`)
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
                    from reconcile_recent_04eccc2d616f
                    where `id` is not null
                    group by `id`
                )
                union all
                select `id`, false, 0, false, array(struct(_change_type = 'delete' as _deleted, `id`, `name`, `amount`, `ratio`, `at`))
                from reconcile_touched_04eccc2d616f
                where _change_side = 'uncertain' and _change_error is null
            )
            group by `id`
        ) as doubts
            on doubts.`id` = coalesce(model_rows.`id`, source_rows.`id`)
    )
)
group by verdict, if(verdict = 'match', null, copy), if(verdict = 'match', null, to_json(named_struct('id', cast(key_columns.`id` as string)))), if(verdict = 'match', null, key_columns)
)
where '00000000-0000-0000-0000-000000000000 reconcile_verdicts_04eccc2d616f' is not null;

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
from reconcile_verdicts_04eccc2d616f
