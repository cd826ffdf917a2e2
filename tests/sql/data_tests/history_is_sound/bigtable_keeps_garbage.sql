with records as (
    select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, _change_time, valid_from, valid_to, _change_type <> 'delete' as is_version
    from `demo`.`orders__base`
),

neighbours as (
    select
        *,
        lead(valid_from) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence) as next_sequence,
        row_number() over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence desc) = 1 as is_newest,
        count(*) over (partition by `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence) as copies
    from records
),

-- the versions that a keyless delete ended
ended_versions as (
    select `row_key`, `family`, `qualifier`, `cell_time`, neighbours._change_sequence, keyless._change_sequence as ended_by
    from neighbours
    inner join `demo`.`orders__range_deletes` as keyless
        on
            keyless._range.row_key = neighbours.row_key and keyless._range.family = neighbours.family and (keyless._range.qualifier is null or keyless._range.qualifier = neighbours.qualifier) and keyless._range.start_time <= neighbours.cell_time and (keyless._range.end_time is null or neighbours.cell_time < keyless._range.end_time)
            and keyless._change_sequence > neighbours._change_sequence
            and (next_sequence is null or keyless._change_sequence < next_sequence)
    where is_version
),

versions as (
    select
        `row_key`, `family`, `qualifier`, `cell_time`,
        _change_sequence,
        valid_from,
        valid_to,
        is_current,
        lead(valid_from) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence) as next_from,
        lead(_change_sequence) over (partition by `row_key`, `family`, `qualifier`, `cell_time` order by _change_sequence) as next_sequence,
        count_if(is_current) over (partition by `row_key`, `family`, `qualifier`, `cell_time`) as current_versions
    from `demo`.`orders`
),

-- what ends a row without beginning another version
ends as (
    select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence as ended_by
    from records
    where not is_version
    union all
    select `row_key`, `family`, `qualifier`, `cell_time`, ended_by
    from ended_versions
),

gaps as (
    select versions.*
    from versions
    left anti join ends
        on versions.`row_key` = ends.`row_key` and versions.`family` = ends.`family` and versions.`qualifier` = ends.`qualifier` and versions.`cell_time` = ends.`cell_time` and ended_by > _change_sequence and ended_by < next_sequence
    where valid_to < next_from
)

select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'the record is stored more than once' as finding
from neighbours
where copies > 1
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'valid_to is not the valid_from of the next version, or valid_from is NULL or later than the change'
from neighbours
left anti join ended_versions using (`row_key`, `family`, `qualifier`, `cell_time`, _change_sequence)
where not valid_to <=> next_from or valid_from > _change_time or valid_from is null
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'a keyless delete ended the version, but valid_to is NULL or later than the next version'
from neighbours
left semi join ended_versions using (`row_key`, `family`, `qualifier`, `cell_time`, _change_sequence)
where valid_to is null or valid_to > next_from
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'ends before it begins'
from versions
where valid_to < valid_from
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'overlaps the next version'
from versions
where next_from < valid_to or (valid_to is null and next_from is not null)
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'a gap follows the version, and no delete explains it'
from gaps
union all
select `row_key`, `family`, `qualifier`, `cell_time`, _change_sequence, valid_from, valid_to, 'one of several current versions'
from versions
where is_current and current_versions > 1
union all
select `row_key`, `family`, `qualifier`, `cell_time`, newest._change_sequence, newest.valid_from, newest.valid_to, 'no version is current, although the newest record is not a delete'
from neighbours as newest
left anti join (select * from versions where is_current) as current using (`row_key`, `family`, `qualifier`, `cell_time`)
left anti join ended_versions on newest.`row_key` = ended_versions.`row_key` and newest.`family` = ended_versions.`family` and newest.`qualifier` = ended_versions.`qualifier` and newest.`cell_time` = ended_versions.`cell_time` and newest._change_sequence = ended_versions._change_sequence
where newest.is_newest and newest.is_version
