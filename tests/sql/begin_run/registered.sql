select 'lake.shop_changes' as staging, relation, max_by(concat(materialized, ' ', objects), registered_at) as reader, unix_micros(max(registered_at)) as registered_at
from `lake`.`shop_changes__readers`
where ledger = 'demo.reconcile_ledger'
group by relation;

insert into `lake`.`shop_changes__readers` by name
select
    'lake.shop_changes' as staging,
    'demo.reconcile_ledger' as ledger,
    'demo.orders' as relation,
    'current_state' as materialized,
    '["shop.others"]' as objects,
    greatest(current_timestamp(), timestamp_micros(1767225601000000)) as registered_at
union all
select
    'lake.shop_changes' as staging,
    'demo.reconcile_ledger' as ledger,
    'demo.more' as relation,
    'current_state' as materialized,
    '["shop.more"]' as objects,
    current_timestamp() as registered_at
