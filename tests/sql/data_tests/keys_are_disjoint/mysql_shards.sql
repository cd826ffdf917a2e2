select `order_id`, `line`, count(distinct _change_source) as sources, sort_array(collect_set(_change_source)) as found_in
from (
    select `order_id`, `line`, to_json(struct(`shard`)) as _change_source
    from `demo`.`orders`
)
group by `order_id`, `line`
having count(distinct _change_source) > 1 and count(`order_id`) > 0 and count(`line`) > 0
