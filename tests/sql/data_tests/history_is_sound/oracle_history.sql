with records as (
    select `id`, _change_sequence, _change_time, valid_from, valid_to, _change_type <> 'delete' as is_version, _row_id
    from `demo`.`orders__base` as record
    -- without the deletes of other rows than the one that had taken the key by an update
    left anti join (
        select `id`, _change_sequence as _change_of_other_row
        from (
            select `id`, deletes._change_sequence, deletes._row_id, max_by(struct(writes._change_type, writes._row_id), writes._change_sequence) as _change_last_write
            from `demo`.`orders__base` as deletes
            inner join `demo`.`orders__base` as writes using (`id`, _change_transaction)
            where deletes._change_type = 'delete' and writes._change_type <> 'delete' and not coalesce(writes._change_is_undone, false) and writes._change_sequence < deletes._change_sequence
            group by `id`, deletes._change_sequence, deletes._row_id
        )
        where _change_last_write._change_type = 'update' and _change_last_write._row_id <> _row_id
    ) as deletes
        on deletes.`id` = record.`id` and _change_of_other_row = _change_sequence
    where not coalesce(_change_is_undone, false)
),

neighbours as (
    select
        *,
        lead(valid_from) over (partition by `id` order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by `id` order by _change_sequence) as next_sequence,
        row_number() over (partition by `id` order by _change_sequence desc) = 1 as is_newest,
        count(*) over (partition by `id`, _change_sequence) as copies
    from records
),

-- the versions that a keyless delete ended
ended_versions as (
    select `id`, neighbours._change_sequence, keyless._change_sequence as ended_by
    from neighbours
    inner join `demo`.`orders__row_deletes` as keyless
        on
            keyless._row_id = neighbours._row_id
            and keyless._change_sequence > neighbours._change_sequence
            and (next_sequence is null or keyless._change_sequence < next_sequence)
    where is_version
),

versions as (
    select
        `id`,
        _change_sequence,
        valid_from,
        valid_to,
        is_current,
        lead(valid_from) over (partition by `id` order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by `id` order by _change_sequence) as next_sequence,
        count_if(is_current) over (partition by `id`) as current_versions
    from `demo`.`orders`
),

-- what ends a row without beginning another version
ends as (
    select `id`, _change_sequence as ended_by
    from records
    where not is_version
    union all
    select `id`, ended_by
    from ended_versions
),

gaps as (
    select versions.*
    from versions
    left anti join ends
        on versions.`id` = ends.`id` and ended_by > _change_sequence and ended_by < next_sequence
    where valid_to < next_from
)

select `id`, _change_sequence, valid_from, valid_to, 'the record is stored more than once' as finding
from neighbours
where copies > 1
union all
select `id`, _change_sequence, valid_from, valid_to, 'valid_to is not the valid_from of the next version, or valid_from is NULL or later than the change'
from neighbours
left anti join ended_versions using (`id`, _change_sequence)
where not valid_to <=> next_from or valid_from > _change_time or valid_from is null
union all
select `id`, _change_sequence, valid_from, valid_to, 'a keyless delete ended the version, but valid_to is NULL or later than the next version'
from neighbours
left semi join ended_versions using (`id`, _change_sequence)
where valid_to is null or valid_to > next_from
union all
select `id`, _change_sequence, valid_from, valid_to, 'ends before it begins'
from versions
where valid_to < valid_from
union all
select `id`, _change_sequence, valid_from, valid_to, 'overlaps the next version'
from versions
where next_from < valid_to or (valid_to is null and next_from is not null)
union all
select `id`, _change_sequence, valid_from, valid_to, 'a gap follows the version, and no delete explains it'
from gaps
union all
select `id`, _change_sequence, valid_from, valid_to, 'one of several current versions'
from versions
where is_current and current_versions > 1
union all
select `id`, newest._change_sequence, newest.valid_from, newest.valid_to, 'no version is current, although the newest record is not a delete'
from neighbours as newest
left anti join (select * from versions where is_current) as current using (`id`)
left anti join ended_versions on newest.`id` = ended_versions.`id` and newest._change_sequence = ended_versions._change_sequence
where newest.is_newest and newest.is_version
