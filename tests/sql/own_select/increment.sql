show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select max(_change_batch) from (
{the SELECT of own_select/change_records.sql}
);

select
    coalesce(max(last_batch), 0) as ledger_batch,
    coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
    coalesce(max(place.entry), 0) as entry,
    max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
    coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
    coalesce(max(retried), 0) as ledger_retried
from (
    select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
    from (
        select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, struct(coalesce(entry, 0) as entry, recorded_at) as place
        from `demo`.`reconcile_ledger`
        where relation = 'demo.orders'
    )
)
where rebuilt is null or place >= rebuilt;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

-- nothing new
