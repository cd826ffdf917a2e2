select `order_id`, `line`, _change_id, _change_time, time_before, _change_sequence
from (
    select
        `order_id`, `line`,
        _change_id,
        _change_time,
        _change_sequence,
        max(_change_time) over (partition by `order_id`, `line` order by _change_sequence rows between unbounded preceding and 1 preceding) as time_before
    from `demo`.`orders__changes`
    where _change_error is null and split_part(_change_sequence, '/', 2) = '1'
)
where _change_time < time_before
