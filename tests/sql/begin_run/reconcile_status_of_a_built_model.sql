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
    union all
    select last_batch, last_appended_at, cast(null as bigint) from `demo`.`reconcile_ledger` where last_appended_at is not null and relation in ('demo.orders')
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
    where object is null or (object not like '#%' or source = 'datastream') and not (object = 'shop.orders')
)
group by object
union all
select
    'set_back' as kind,
    relation as relation,
    cast(null as string) as object,
    cast(null as bigint) as records,
    cast(null as bigint) as first_batch,
    batch as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    concat('batch ', batch, ' was applied, and ', 'lake.shop_changes', if(appended_at is null, ' has no record of it any more', ' has another batch under this number')) as detail,
    'wrong' as state
from (
    select account.relation, account.ledger_batch as batch, staged.appended_at
    from (
        select
            relation,
            coalesce(max(last_batch), 0) as ledger_batch,
            coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
            coalesce(max(place.entry), 0) as entry,
            max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
            coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
            coalesce(max(retried), 0) as ledger_retried
        from (
            select *, max(if(kind = 'rebuild', place, null)) over (partition by relation) as rebuilt
            from (
                select relation, kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, struct(coalesce(entry, 0) as entry, recorded_at) as place
                from `demo`.`reconcile_ledger`
                where relation in ('demo.orders')
            )
        )
        where rebuilt is null or place >= rebuilt
        group by relation
    ) as account
    left join (
        select batch, unix_micros(max(appended_at)) as appended_at
        from `lake`.`shop_changes`
        group by batch
    ) as staged
        on staged.batch = account.ledger_batch
    where
        coalesce(
            staged.appended_at <> account.last_appended_at,
            account.ledger_batch > greatest(
                if(account.last_appended_at is null, (select max(batch) from `lake`.`shop_changes`), null),
                (
                    select max(batch)
                    from (
                        select object, max(last_batch) as batch
                        from `demo`.`reconcile_ledger`
                        where relation = 'lake.shop_changes' and kind = 'purge'
                        group by object
                    )
                ),
                0
            )
        )
)
union all
select
    'not_applied' as kind,
    relation as relation,
    cast(null as string) as object,
    count(*) as records,
    min(batch) as first_batch,
    max(batch) as last_batch,
    count(distinct batch) as batches,
    min(appended_at) as at,
    cast(null as string) as detail,
    'wait' as state
from (
    select read.relation, staged.batch, staged.appended_at
    from `lake`.`shop_changes` as staged
    inner join (
        select read.*, coalesce(account.last_batch, 0) as last_batch
        from (
            select *
            from values
                ('demo.orders', 'shop.orders', cast(null as array<struct<database: string, schema: string, table: string>>))
                as read (relation, takes, tables)
        ) as read
        left join (
            select relation, max_by(last_batch, struct(coalesce(entry, 0) as entry, recorded_at)) as last_batch
            from `demo`.`reconcile_ledger`
            where kind not in ('purge', 'snapshot', 'erasure')
            group by relation
        ) as account
            on account.relation = read.relation
    ) as read
        on staged.batch > read.last_batch and staged.object = read.takes
        and (read.tables is null or exists(array(from_json(record, 'source_metadata struct<database string, schema string, table string>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).source_metadata), metadata ->
            array_contains(read.tables, named_struct('database', cast(null as string), 'schema', coalesce(nullif(regexp_replace(metadata.schema, '^\\["|"\\]$', ''), ''), metadata.database), 'table', metadata.table))
            or array_contains(read.tables, named_struct('database', metadata.database, 'schema', coalesce(nullif(regexp_replace(metadata.schema, '^\\["|"\\]$', ''), ''), metadata.database), 'table', metadata.table))))
)
group by relation
union all
select
    'pending' as kind,
    'demo.orders' as relation,
    cast(null as string) as object,
    count(*) as records,
    cast(null as bigint) as first_batch,
    cast(null as bigint) as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    cast(null as string) as detail,
    'look' as state
from (
    select *
    from `demo`.`orders__base`
    where false
)
having count(*) > 0
union all
select
    'quarantined' as kind,
    relation as relation,
    cast(null as string) as object,
    records as records,
    first_batch as first_batch,
    last_batch as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    concat(reason, coalesce(concat(' (for example the key ', example_key, ')'), '')) as detail,
    'wrong' as state
from (
    select
        relation,
        coalesce(example.reason, concat('reasons that only ', relation, '__quarantine has')) as reason,
        records,
        first_batch,
        last_batch,
        example.example_key,
        example.example_origin
    from (
        select
            relation,
            sum(records) as records,
            min(batch) as first_batch,
            max(batch) as last_batch,
            min_by(struct(reason, example_key, example_origin), batch) as example
        from (
            select relation, reason, example_key, example_origin, replayed_from, inline(batches)
            from (
                select
                    relation,
                    replayed_from,
                    inline(coalesce(quarantine_reasons, array(struct(cast(null as string) as reason, cast(null as string) as example_key, cast(null as string) as example_origin, array(struct(first_batch as batch, quarantined as records)) as batches))))
                from (
                    select
                        relation, first_batch, quarantined, quarantine_reasons,
                        min(first_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at) rows between 1 following and unbounded following) as replayed_from
                    from `demo`.`reconcile_ledger`
                    where kind in ('apply', 'replay', 'rebuild') and relation in ('demo.orders')
                )
                where quarantined > 0
            )
        )
        where batch < coalesce(replayed_from, batch + 1)
        group by relation, regexp_replace(reason, '\'[^\']*\'', '')
    )
)
union all
select
    'drift' as kind,
    relation as relation,
    cast(null as string) as object,
    records as records,
    since_batch as first_batch,
    last_batch as last_batch,
    cast(null as bigint) as batches,
    cast(null as timestamp) as at,
    concat(kind, ' ', name, ' is ', finding) as detail,
    'look' as state
from (
    select * from (select
        relation, object, kind, name, if(kind = 'column' and array_contains(ignored, name), 'ignored', finding) as finding, since_batch, last_batch, records, forms,
        concat('- {name: "', replace(replace(undeclared, '\\', '\\\\'), '"', '\\"'), '", data_type: ', if(data_type = 'json', json_type, concat(data_type, ', config: {meta: {added: true}}')), '}') as yaml
    from (
        select
            relation, 'column' as kind, name, last_batch,
            case when not is_declared then 'new' when cardinality(missing) > 0 then 'missing' when is_changed then 'changed form' end as finding,
            case when not is_declared then first_batch when cardinality(missing) > 0 then array_min(missing.batch) else element_at(observed_forms, -1).since end as since_batch,
            case when not is_declared then records when cardinality(missing) > 0 then aggregate(missing.records, 0L, (sum, number) -> sum + number) else element_at(observed_forms, -1).records end as records,
            array_join(transform(observed_forms, entry -> concat(entry.form, ' as ', entry.spelled, ' since batch ', entry.since)), ', ') as forms,
            if(not is_declared, spelled, null) as undeclared,
            case when exists(observed_forms, entry -> entry.form = 'json') then 'json' when is_changed then 'string' when observed_forms[0].form = 'whole number' then 'bigint' when observed_forms[0].form = 'boolean' then 'boolean' else 'string' end as data_type
        from (
            select
                *,
                filter(lacking, entry -> entry.batch > coalesce(last_whole, 0)) as missing,
                cardinality(array_distinct(transform(observed_forms, entry -> struct(entry.form, entry.spelled)))) > 1 as is_changed
            from (
                select
                    relation, name, is_declared,
                    min(since) as first_batch,
                    max(last_batch) as last_batch,
                    sum(if(form = 'missing', 0, records)) as records,
                    array_sort(collect_list(if(form in ('missing', 'null'), null, struct(since, form, spelled, records)))) as observed_forms,
                    coalesce(max(if(form = 'missing', batches, null)), array()) as lacking,
                    array_max(array_except(flatten(collect_list(if(form = 'missing', null, batches.batch))), lacking.batch)) as last_whole,
                    max(spelled) as spelled
                from (
                    select relation, kind, name, is_declared, spelled, min(form) as form, min(batch) as since, max(batch) as last_batch, sum(records) as records, collect_list(struct(batch, records)) as batches
                    from `demo`.`reconcile_columns_seen`
                    where kind = 'column'
                    group by relation, kind, name, is_declared, spelled, replace(form, 'whole ', '')
                )
                group by relation, name, is_declared
            )
        )
        union all
        -- of a key or schema that the source takes up again, the newest return counts
        select relation, kind, name, last_batch, if(kind = 'key', 'changed key', 'changed schema'), last_batch, records, null, null, null
        from (
            select *, row_number() over (partition by relation, kind order by since, name) as place
            from (
                select relation, kind, name, is_declared, spelled, min(form) as form, min(batch) as since, max(batch) as last_batch, sum(records) as records, collect_list(struct(batch, records)) as batches
                from `demo`.`reconcile_columns_seen`
                where kind <> 'column'
                group by relation, kind, name, is_declared, spelled, replace(form, 'whole ', '')
            )
        )
        where place > 1 or cardinality(batches) > 1
    )
    inner join (
        select *
        from values
            ('demo.orders', 'shop.orders', cast(array() as array<string>), 'string, config: {meta: {encoding: json, added: true}}')
            as models (relation, object, ignored, json_type)
    ) using (relation)
    where finding is not null) where finding <> 'ignored'
)
