select 'lake.shop_changes' as staging, relation, max_by(concat(materialized, ' ', objects), registered_at) as reader
from `lake`.`shop_changes__readers`
where ledger = 'demo.reconcile_ledger'
group by relation
