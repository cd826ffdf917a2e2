with changes as (
    select to_json(struct(`shard`)) as _change_source, left(_change_sequence, 4) as generation, substring(_change_sequence, 8, char_length(_change_sequence) - 7 - 19) as place, _change_time
    from `demo`.`orders__changes`
    where _change_error is null and split_part(_change_sequence, '/', 2) = '1' and _change_time is not null
),

hours as (
    select _change_source, generation, date_trunc('HOUR', _change_time) as hour, min(_change_time) as began, max(place) as last_position, count(*) as changes
    from changes
    group by _change_source, generation, date_trunc('HOUR', _change_time)
),

compared as (
    select *, max(last_position) over (partition by _change_source, generation order by hour range between unbounded preceding and interval '2' hour preceding) as position_before
    from hours
)

select
    _change_source as source,
    min(began) as first_change_time,
    sum(changes) as changes,
    max(position_before) as position_before,
    max(last_position) as position_since,
    concat('changes from ', date_format(min(began), "yyyy-MM-dd HH:mm:ssXXX"), ' on are later in time, but earlier in the log: the log seems to have begun anew at this time or earlier; if it did, give this source a model of its own, with generations') as finding
from compared
where last_position < position_before
group by _change_source, generation
