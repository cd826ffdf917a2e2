show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

-- nothing new
