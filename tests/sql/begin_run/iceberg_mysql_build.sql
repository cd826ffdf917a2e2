set;

set spark.sql.catalog.spark_catalog;

create schema if not exists `demo`;

show tables in `demo` like 'reconcile_ledger';

show tables in `demo` like 'reconcile_columns_seen';

select max(batch) from `lake`.`shop_changes`;

show tblproperties `lake`.`shop_changes`;

select
    relation,
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried,
    max_by(invocation_id, place) as invocation
from (
    select *, max(if(kind = 'rebuild', place, null)) over (partition by relation) as rebuilt
    from (
        select relation, kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, invocation_id, struct(coalesce(entry, 0) as entry, recorded_at) as place
        from `demo`.`reconcile_ledger`
        where relation in ('demo.orders')
    )
)
where rebuilt is null or place >= rebuilt
group by relation
