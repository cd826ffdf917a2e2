select
    `value row_key` as `row_key`,
    `value family` as `family`,
    `value qualifier` as `qualifier`,
    `value cell_time` as `cell_time`,
    `value value` as `value`,
    if(
        change_type = 'delete',
        struct(
            key_of_row as row_key,
            entry.family as family,
            if(entry.kind = 'delete_from_column', entry.qualifier, null) as qualifier,
            timestamp_micros(coalesce(entry.begins, 0)) as start_time,
            timestamp_micros(nullif(entry.ends, 0)) as end_time
        ),
        null
    ) as _range,
    change_type as _change_type,
    concat_ws('/', `section commit_timestamp`, `section tiebreaker`, lpad(hex(place), 8, '0'), concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value cell_time` is null, `value cell_time`, `value family` is null, `value family`, `value qualifier` is null, `value qualifier`, `value row_key` is null, `value row_key`, `value value` is null, `value value`)), 16, '0'))) as _change_sequence,
    concat_ws('/', commit_timestamp, tiebreaker, nullif(source_cluster_id, ''), cast(row_key as string), cast(place as string)) as _change_id,
    committed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
select
    *,
    case when entry.kind = 'set_cell' then 'insert' when entry.kind like 'delete%' then 'delete' end as change_type,
    if(entry.kind = 'set_cell', key_of_row, null) as `value row_key`,
    if(entry.kind = 'set_cell', entry.family, null) as `value family`,
    if(entry.kind = 'set_cell', entry.qualifier, null) as `value qualifier`,
    if(entry.kind = 'set_cell', timestamp_micros(entry.time), null) as `value cell_time`,
    if(entry.kind = 'set_cell', entry.value, null) as `value value`
from (
-- a data change without entries, of another source, or that cannot be read, is one change record, which goes to quarantine
select *
from (
select
    *,
    explode(array(
    concat_ws(
        '; ',
        case
                when fitting_macro is not null then concat('the record is of another source; the macro that fits is ', fitting_macro)
                when not source <=> 'bigtable' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
            end,
        case
            when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
            when _corrupt_record is not null then 'the record does not have the form of a data change'
            when entries is null or cardinality(entries) = 0 then 'the data change holds no entries'
            when type is null or type not in ('user', 'garbage_collection', 'backfill') then concat('type ', coalesce(concat('\'', type, '\' is unknown'), 'is missing'))
        end,
        if(key_of_row is null, 'row_key is missing or is not base64', null),
        if(`section commit_timestamp` is null, 'commit_timestamp, which orders changes, is missing or unreadable', null),
        if(`section tiebreaker` is null, 'tiebreaker, which orders changes, is missing or unreadable', null),
        array_join(slice(filter(transform(read_entries, (entry, place) -> concat('entry ', place + 1, ' of the change ', case
    when entry.kind is null then 'is not an object with one member'
    when entry.kind not in ('set_cell', 'delete_from_column', 'delete_from_family') then concat('is of the kind \'', left(entry.kind, 100), '\', which is unknown')
    when not entry.is_object then concat('is a ', entry.kind, ' that is not an object')
    else nullif(concat_ws(
        ', ',
        if(entry.family is null, 'has no family', null),
        if(entry.kind <> 'delete_from_family' and entry.qualifier is null, 'has no qualifier in base64', null),
        if(entry.kind = 'set_cell' and entry.time is null, 'has no timestamp_micros', null),
        if(entry.kind = 'set_cell' and entry.value is null, 'has no value in base64', null),
        if(entry.kind = 'delete_from_column' and (entry.begins is null or entry.ends is null), 'has no start_timestamp_micros and end_timestamp_micros', null)
    ), '')
end)), complaint -> complaint is not null), 1, 3), '; ')
    )
)) as error
from (
select *, if(unix_seconds(committed_at) between 0 and 9223372035, lpad(hex(unix_seconds(committed_at) * 1000000000 + bigint(rpad(regexp_extract(commit_timestamp, '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) as `section commit_timestamp`
from (
select
    *,
    if(schema_of_variant(row_key) = 'STRING', try_to_binary(cast(row_key as string), 'base64'), null) as key_of_row,
    case when commit_timestamp rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(commit_timestamp as timestamp) when commit_timestamp rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(commit_timestamp rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', commit_timestamp, concat(commit_timestamp, if(commit_timestamp like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as committed_at,
    if(tiebreaker rlike '^-?[0-9]{1,19}$', lpad(hex(try_cast(tiebreaker as bigint) ^ bigint('-9223372036854775808')), 16, '0'), null) as `section tiebreaker`
from (
-- an entry is an object of one member, which is named after its kind
select
    *,
    explode(array(
    transform(
        transform(
            transform(entries, entry -> try_cast(entry as map<string, variant>)),
            entry -> struct(if(cardinality(entry) = 1, get(map_keys(entry), 0), null) as kind, try_cast(get(map_values(entry), 0) as map<string, variant>) as fields)
        ),
        entry -> struct(
            entry.kind,
            entry.fields is not null as is_object,
            if(schema_of_variant(entry.fields['family']) = 'STRING', nullif(cast(entry.fields['family'] as string), ''), null) as family,
            if(schema_of_variant(entry.fields['qualifier']) = 'STRING', try_to_binary(cast(entry.fields['qualifier'] as string), 'base64'), null) as qualifier,
            if(schema_of_variant(entry.fields['value']) = 'STRING', try_to_binary(cast(entry.fields['value'] as string), 'base64'), null) as value,
            if(cast(entry.fields['timestamp_micros'] as string) rlike '^[0-9]{1,19}$', try_cast(cast(entry.fields['timestamp_micros'] as string) as bigint), null) as time,
            if(cast(entry.fields['start_timestamp_micros'] as string) rlike '^[0-9]{1,19}$', try_cast(cast(entry.fields['start_timestamp_micros'] as string) as bigint), null) as begins,
            if(cast(entry.fields['end_timestamp_micros'] as string) rlike '^[0-9]{1,19}$', try_cast(cast(entry.fields['end_timestamp_micros'] as string) as bigint), null) as ends
        )
    )
)) as read_entries
from (
select record, source, batch, origin, fitting_macro, data_change.*
from (
select record, source, batch, origin, case source
            when 'spanner' then 'spanner_change_stream'
            when 'snapshot' then 'snapshots'
            when 'append table' then 'datastream_append'
            when 'datastream' then coalesce(concat('datastream_', transform(array(from_json(record, 'read_method string, source_metadata struct<scn string, row_id string, log_position string, binlog_position string, lsn string>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> case
            when parsed.source_metadata.scn is not null or parsed.source_metadata.row_id is not null or parsed.read_method like 'oracle%' then 'oracle'
            when parsed.source_metadata.lsn like '%/%' or parsed.read_method like 'postgres%' then 'postgresql'
            when parsed.source_metadata.lsn like '%:%' or parsed.read_method like 'sqlserver%' then 'sqlserver'
            when parsed.source_metadata.log_position is not null or parsed.source_metadata.binlog_position is not null or parsed.read_method like 'mysql%' then 'mysql'
        end)[0]), 'one that begins with datastream_')
        end as fitting_macro
from `lake`.`shop_changes`
where object = 'events'
) as staged
lateral view explode(array(
    from_json(record, 'row_key variant, type string, source_cluster_id string, commit_timestamp string, tiebreaker string, entries array<variant>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
)) as data_change
) as data_changes
) as decoded_changes
) as parsed
) as placed
) as judged
lateral view posexplode(
    if(source = 'bigtable' and cardinality(read_entries) > 0, read_entries, array(cast(null as struct<kind: string, is_object: boolean, family: string, qualifier: binary, value: binary, time: bigint, begins: bigint, ends: bigint>)))
) as place, entry
) as entries
) as cells
