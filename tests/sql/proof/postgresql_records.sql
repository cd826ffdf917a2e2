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

insert into `demo`.`reconcile_parity_differences` by name
select
    '00000000-0000-0000-0000-000000000000' as run_id,
    'prove' as test,
    'demo.orders' as relation,
    'lake.orders_source' as compared_to,
    key,
    verdict,
    difference,
    reason,
    transform(columns, difference -> named_struct('column', difference.column, 'model', cast(null as string), 'source', cast(null as string))) as columns
from reconcile_verdicts_04eccc2d616f
where verdict <> 'match';

insert into `demo`.`reconcile_parity_differences` by name
select
    '00000000-0000-0000-0000-000000000000' as run_id,
    'prove' as test,
    'demo.orders' as relation,
    'lake.orders_source' as compared_to,
    cast(null as string) as key,
    'unprovable' as verdict,
    cast(null as string) as difference,
    'a reason' as reason,
    cast(null as array<struct<column: string, model: string, source: string>>) as columns;

insert into `demo`.`reconcile_parity` by name
select
    '00000000-0000-0000-0000-000000000000' as run_id,
    'prove' as test,
    'demo.orders' as relation,
    'lake.orders_source' as compared_to,
    'confirmed' as verdict,
    cast(null as string) as rechecked_run_id,
    0L as rechecks,
    'pg_snapshot' as position_kind,
    '20:30:25' as position,
    cast(null as timestamp) as uncertain_from,
    cast(null as timestamp) as uncertain_to,
    true as is_delivered,
    cast(null as string) as not_delivered_because,
    '10 minutes' as allowance,
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
    cast(null as bigint) as source_version,
    '1' as source_digest,
    <seconds> as seconds,
    current_timestamp() as recorded_at
