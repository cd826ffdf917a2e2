select `id`, `a``b`, `it's`, _change_coordinates as coordinates, count(distinct _change_sequence) as payloads, sort_array(collect_set(_change_id)) as change_ids
from (
    select `id`, `a``b`, `it's`, _change_sequence, _change_id, left(_change_sequence, char_length(_change_sequence) - 17) as _change_coordinates
    from `demo`.`orders__changes`
    where _change_error is null
)
group by `id`, `a``b`, `it's`, _change_coordinates
having count(distinct _change_sequence) > 1 and count(`id`) > 0 and count(`a``b`) > 0 and count(`it's`) > 0
