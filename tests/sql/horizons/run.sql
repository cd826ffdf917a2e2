select relation, kind, first_batch, declaration, max(sequence) as sequence
from `demo`.`reconcile_horizons`
left join (
    select relation, max(entry) as rebuilt
    from `demo`.`reconcile_ledger`
    where relation in ('demo.orders') and kind = 'rebuild'
    group by relation
) using (relation)
where relation in ('demo.orders') and (kind = 'taken' or kind = 'proposed' and entry >= coalesce(rebuilt, 0))
group by relation, kind, first_batch, declaration
order by relation, kind, first_batch, declaration
