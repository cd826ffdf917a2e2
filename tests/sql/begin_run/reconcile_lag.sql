select
    staging,
    source,
    object,
    row_range,
    up_to,
    is_estimate,
    (unix_micros(current_timestamp()) - unix_micros(up_to)) / 1000000 as lag_seconds,
    unchanged_since,
    if(is_estimate, appended_at - unchanged_since >= interval '10 minutes', null) as is_stalled,
    batch,
    appended_at
from (
    select 'lake.shop_changes' as staging, source, cast(null as string) as object, row_range, up_to, source = 'bigtable' as is_estimate, unchanged_since, batch, appended_at
    from (
        select
            *,
            max(batch) over (partition by source) as last_batch,
            min(appended_at) over (partition by source, row_range, up_to) as unchanged_since
        from (
            select source, mark.row_range, min(case when mark.up_to rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(mark.up_to as timestamp) when mark.up_to rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(mark.up_to rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', mark.up_to, concat(mark.up_to, if(mark.up_to like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as up_to, batch, min(appended_at) as appended_at
            from `lake`.`shop_changes`
            lateral view explode(concat(
                array(struct(cast(null as string) as row_range, coalesce(get_json_object(record, '$.cut_time'), get_json_object(record, '$.low_watermark')) as up_to)),
                coalesce(transform(
                    from_json(record, 'partitions array<struct<start_key: string, end_key: string, low_watermark: string>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).partitions,
                    place -> struct(lower(concat(hex(try_to_binary(place.start_key, 'base64')), '-', hex(try_to_binary(place.end_key, 'base64')))) as row_range, place.low_watermark as up_to)
                ), array())
            )) as mark
            where object = '#cut' and batch > (select max(batch) - 1000 from `lake`.`shop_changes` where object = '#cut')
            group by source, mark.row_range, batch
        )
    )
    where batch = last_batch
    union all
    select 'lake.shop_changes', 'datastream', object, null, max(if(get_json_object(record, '$.source_timestamp') rlike '^\\d{10,15}$', timestamp_millis(try_cast(get_json_object(record, '$.source_timestamp') as bigint)), case when get_json_object(record, '$.source_timestamp') rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(get_json_object(record, '$.source_timestamp') as timestamp) when get_json_object(record, '$.source_timestamp') rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(get_json_object(record, '$.source_timestamp') rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', get_json_object(record, '$.source_timestamp'), concat(get_json_object(record, '$.source_timestamp'), if(get_json_object(record, '$.source_timestamp') like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end)), false, null, max(batch), max(appended_at)
    from `lake`.`shop_changes`
    inner join (
        select object as object_of_last, max(batch) as last_batch
        from `lake`.`shop_changes`
        where source = 'datastream'
        group by object
    ) as last
        on object <=> object_of_last and batch = last_batch
    where source = 'datastream'
    group by object
    
)
