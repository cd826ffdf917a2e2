select `id`, count(distinct _change_source) as sources, sort_array(collect_set(_change_source)) as found_in
from (
    select `id`, to_json(struct(`db`, `orders of`)) as _change_source
    from `demo`.`orders`
    where is_current
)
group by `id`
having count(distinct _change_source) > 1 and count(`id`) > 0
