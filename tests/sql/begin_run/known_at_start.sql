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
        where relation in ('demo.orders', 'demo.lines')
    )
)
where rebuilt is null or place >= rebuilt
group by relation;

show schemas;

show tables in `demo`;

select read.relation, count(*)
from `lake`.`shop_changes` as staged
inner join (
    select *
    from values
        ('demo.orders', 'shop.orders', cast(null as array<struct<database: string, schema: string, table: string>>), 4),
        ('demo.lines', 'shop_lines', array(named_struct('database', cast(null as string), 'schema', 'shop', 'table', 'lines')), 4),
        ('demo.lines', 'shop.lines', array(named_struct('database', cast(null as string), 'schema', 'shop', 'table', 'lines')), 4)
        as read (relation, takes, tables, first_batch)
) as read
    on staged.batch >= read.first_batch and staged.object = read.takes
    and (read.tables is null or exists(array(from_json(record, 'source_metadata struct<database string, schema string, table string>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).source_metadata), metadata ->
        array_contains(read.tables, named_struct('database', cast(null as string), 'schema', coalesce(nullif(regexp_replace(metadata.schema, '^\\["|"\\]$', ''), ''), metadata.database), 'table', metadata.table))
        or array_contains(read.tables, named_struct('database', metadata.database, 'schema', coalesce(nullif(regexp_replace(metadata.schema, '^\\["|"\\]$', ''), ''), metadata.database), 'table', metadata.table))))
-- so that Spark skips files and partitions
where staged.batch between 4 and 5 and staged.object in ('shop.orders', 'shop_lines', 'shop.lines')
group by read.relation;

select batch, unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch in (3) group by batch;

select 'demo.orders' as relation, coalesce(max(_change_batch), 0) as base_batch, 0 as deletes_batch from `demo`.`orders__base` where _change_batch >= 3
union all
select 'demo.lines' as relation, coalesce(max(_change_batch), 0) as base_batch, 0 as deletes_batch from `demo`.`lines__base` where _change_batch >= 3
