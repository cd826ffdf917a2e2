create schema if not exists `demo`;

show tables in `demo` like 'reconcile_parity';

create table if not exists `demo`.`reconcile_parity` (
    run_id string comment 'invocation_id of the dbt run',
    test string comment 'name of the test',
    relation string comment 'schema.name of the model',
    compared_to string comment 'schema.name of the relation with the rows of the source; of a proof by prove.py, the database and its table',
    verdict string comment 'match if every row in scope matches; otherwise the worst verdict of a row: confirmed, unprovable, in_flight',
    rechecked_run_id string comment 'the run whose rows in flight are the only rows that were compared again; NULL: all rows were compared',
    rechecks bigint comment 'how often rows in flight have been compared again so far',
    position_kind string,
    position string comment 'NULL: both sides were compared as they were',
    uncertain_from timestamp comment 'it is uncertain whether the snapshot includes a change of this time or later; NULL: the position is exact',
    uncertain_to timestamp,
    is_delivered boolean comment 'whether staging held everything up to the position',
    not_delivered_because string,
    allowance string comment 'how late records may arrive, if the source does not report what it has delivered',
    compared bigint comment 'the number of rows of both sides; a row on both sides counts once',
    matched bigint,
    confirmed bigint,
    in_flight bigint,
    unprovable bigint,
    missing bigint comment 'rows that did not match: only in the source',
    unexpected bigint comment 'rows that did not match: only in the model',
    different bigint,
    tolerated map<string, bigint> comment 'by column, the number of values that match only by a tolerance',
    model_version bigint comment 'the version of the base table',
    source_version bigint comment 'the version of the snapshot',
    model_digest string comment 'the sum of the hashes of the rows; equal on both sides if the rows are equal, except for versions and tolerances; of a proof, both sums of hashes',
    source_digest string,
    seconds double,
    recorded_at timestamp
) using iceberg
tblproperties (
    'format-version' = '3',
    'write.merge.mode' = 'merge-on-read',
    'write.update.mode' = 'merge-on-read',
    'write.delete.mode' = 'merge-on-read',
    'write.merge.isolation-level' = 'serializable'
);

show tables in `demo` like 'reconcile_parity_differences';

create table if not exists `demo`.`reconcile_parity_differences` (
    run_id string,
    test string,
    relation string,
    compared_to string,
    key string comment 'the key as JSON; NULL if the finding is not about one row',
    verdict string,
    difference string comment 'missing: only in the source; unexpected: only in the model; different',
    reason string comment 'why the verdict could not be decided',
    columns array<struct<column: string, model: string, source: string>> comment 'the columns that differ; their values only with store_values'
) using iceberg
tblproperties (
    'format-version' = '3',
    'write.merge.mode' = 'merge-on-read',
    'write.update.mode' = 'merge-on-read',
    'write.delete.mode' = 'merge-on-read',
    'write.merge.isolation-level' = 'serializable'
);

show tblproperties `lake`.`orders_source`;

show tblproperties `lake`.`shop_changes`;

set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

drop view if exists reconcile_verdicts_dc53585fb42f;

drop view if exists reconcile_touched_dc53585fb42f;

drop view if exists reconcile_recent_dc53585fb42f;

show tblproperties `lake`.`orders_source`;

select snapshot_id from `demo`.`orders__base`.refs where name = 'main';

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
            when is_equal then 'match'
            else 'confirmed'
        end as verdict,
        case when is_equal then null when not in_source then 'unexpected' when not in_model then 'missing' else 'different' end as difference,
        cast(null as string) as reason
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
            from `demo`.`orders`
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
            from `lake`.`orders_source`
        ) as source_rows
            on model_rows.`id` <=> source_rows.`id` and model_rows._change_copy = source_rows._change_copy
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
    cast(null as string) as position_kind,
    cast(null as string) as position,
    cast(null as timestamp) as uncertain_from,
    cast(null as timestamp) as uncertain_to,
    true as is_delivered,
    cast(null as string) as not_delivered_because,
    cast(null as string) as allowance,
    9L as compared,
    6L as matched,
    1L as confirmed,
    1L as in_flight,
    1L as unprovable,
    1L as missing,
    1L as unexpected,
    1L as different,
    from_json('{}', 'map<string, bigint>') as tolerated,
    77L as model_version,
    '1' as model_digest,
    cast(null as bigint) as source_version,
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
