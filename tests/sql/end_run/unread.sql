select concat_ws(': ', object, concat(concat_ws(', ', proposal, format_number(count(*), 0)), if(count(*) = 1, ' record', ' records'))) as unread
from (
    {the SELECT of begin_run/reconcile_unrouted.sql}
)
where batch between 1 and 5
group by object, proposal
order by count(*) desc, unread
limit 100
