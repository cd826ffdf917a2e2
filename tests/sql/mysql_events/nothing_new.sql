show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select coalesce(max(last_batch), 0) as ledger_batch, coalesce(max_by(base_batch, recorded_at), 0) as ledger_base_batch
from (
    select last_batch, base_batch, recorded_at, max(if(kind = 'rebuild', recorded_at, null)) over () as rebuilt_at
    from `demo`.`reconcile_ledger`
    where relation = 'demo.orders'
)
where rebuilt_at is null or recorded_at >= rebuilt_at;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

-- nothing new
