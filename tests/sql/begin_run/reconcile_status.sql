select
    cast(null as string) as kind,
    cast(null as string) as relation,
    cast(null as string) as object,
    cast(null as bigint) as records,
    cast(null as bigint) as first_batch,
    cast(null as bigint) as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    cast(null as string) as detail,
    cast(null as string) as state
from (
    select 1 where false
)
union all
select
    'appended' as kind,
    'lake.shop_changes' as relation,
    cast(null as string) as object,
    cast(null as bigint) as records,
    min(staged_batch) as first_batch,
    max_by(batch, struct(appended_at, batch)) as last_batch,
    cast(null as bigint) as batches,
    max(appended_at) as at,
    cast(null as string) as detail,
    cast(null as string) as state
from (
    select batch, appended_at, batch as staged_batch from `lake`.`shop_changes`
)
union all
select
    'unrouted' as kind,
    'lake.shop_changes' as relation,
    object as object,
    count(*) as records,
    min(batch) as first_batch,
    max(batch) as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    coalesce(min(proposal), min(reason)) as detail,
    if(object is null, 'wrong', 'look') as state
from (
    select
        'lake.shop_changes' as staging,
        object,
        case when object is null then 'the record names no object' else 'no model reads this object' end as reason,
        if(source = 'datastream', transform(array(from_json(record, 'read_method string, source_metadata struct<database string, schema string, table string, scn string, row_id string, log_position string, binlog_position string, lsn string, primary_keys array<string>, replication_index array<string>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> nullif(concat_ws(', ',
            concat(coalesce(nullif(regexp_replace(parsed.source_metadata.schema, '^\\["|"\\]$', ''), ''), parsed.source_metadata.database), '.', parsed.source_metadata.table),
            case
                when parsed.source_metadata.scn is not null or parsed.source_metadata.row_id is not null or parsed.read_method like 'oracle%' then 'oracle'
                when parsed.source_metadata.lsn like '%/%' or parsed.read_method like 'postgres%' then 'postgresql'
                when parsed.source_metadata.lsn like '%:%' or parsed.read_method like 'sqlserver%' then 'sqlserver'
                when parsed.source_metadata.log_position is not null or parsed.source_metadata.binlog_position is not null or parsed.read_method like 'mysql%' then 'mysql'
            end,
            concat('key ', nullif(array_join(coalesce(parsed.source_metadata.primary_keys, parsed.source_metadata.replication_index), ', '), ''))
        ), ''))[0], null) as proposal,
        record,
        origin,
        batch,
        appended_at
    from `lake`.`shop_changes`
    where object is null or (object not like '#%' or source = 'datastream') and not (object = 'events')
)
group by object
union all
select
    'never_built' as kind,
    relation as relation,
    cast(null as string) as object,
    cast(null as bigint) as records,
    cast(null as bigint) as first_batch,
    cast(null as bigint) as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    model as detail,
    'look' as state
from (
    select declared.*
    from values
        ('demo.orders', 'orders')
        as declared (relation, model)
    left anti join `demo`.`reconcile_ledger` as account on account.relation = declared.relation
)
