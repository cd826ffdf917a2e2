select relation, first_batch, declaration, max(sequence) as sequence
from `demo`.`reconcile_horizons`
where relation in ('demo.orders') and kind in ('proposed', 'taken')
group by relation, first_batch, declaration
order by relation, first_batch, declaration
