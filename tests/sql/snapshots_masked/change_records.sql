select
    `value id` as `id`,
    `value name` as `name`,
    `value Email` as `Email`,
    `value it's` as `it's`,
    change_type as _change_type,
    concat(section_taken_at, '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value Email` is null, `value Email`, `value id` is null, `value id`, `value it's` is null, `value it's`, `value name` is null, `value name`)), 16, '0'))) as _change_sequence,
    snapshot as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fields_of_payload as _change_fields,
    to_json(json_object_keys(key)) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
select
    *,
    inline(array(struct(
        if(unix_seconds(changed_at) between 0 and 9223372035, lpad(hex(unix_seconds(changed_at) * 1000000000 + bigint(rpad(regexp_extract(taken_at, '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) as section_taken_at,
        concat_ws(
            '; ',
            case
                when fitting_macro is not null then concat('the record is of another source; the macro that fits is ', fitting_macro)
                when not source <=> 'snapshot' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
            end,
            case
                when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
                when startswith(record, '{"unmasked_record":') then 'the record was not masked for id, Email, it\'s, and is not shown'
                when contains(record, '}},"withheld_record":{') and get_json_object(record, '$.withheld_record.why') is not null then concat('the record could not be masked, and staging has no text of it (', get_json_object(record, '$.withheld_record.why'), ')')
                when _corrupt_record is not null then 'the record does not have the form of a difference between snapshots'
                when payload is null then 'the record has no row'
                when change_type is null then concat('change ', coalesce(concat('\'', change, '\' is unknown'), 'is missing'))
            end,
            if(if(unix_seconds(changed_at) between 0 and 9223372035, lpad(hex(unix_seconds(changed_at) * 1000000000 + bigint(rpad(regexp_extract(taken_at, '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) is null, 'taken_at, which orders snapshots, is missing or unreadable', null),
            if(
                array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
                concat_ws('; ', transform(names, (name, i) -> case
                    when lost[i] then concat_ws(
                        '; ',
                        concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('string', 'string', 'string', 'int')[i]),
                        case
                            when i in (0, 1, 2) then case when left(texts[i], 1) = '[' then 'declare array<string>' end
                            when i in (3) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when texts[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(texts[i]) in ('true', 'false') then 'declare boolean'
                                when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(texts[i] as int), try_cast(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,0)), null) as int)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            else cast(null as string)
                        end
                    )
                    when cardinality(filter(field_names, field -> field = name)) > 1
                        then concat(name, ': several fields have this name')
                    when not array_contains(field_names, name) and cardinality(filter(lower_names, key -> key = lower(name))) > 1
                        then concat(name, ': the names of several fields differ from it only in upper and lower case; declare the column with the exact name of one of them')
                end)),
                null
            )
        ) as error
    )))
from (
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        texts[0] is not null and `value id` is null,
        texts[1] is not null and `value name` is null,
        texts[2] is not null and `value Email` is null,
        texts[3] is not null and `value it's` is null
    ) as lost
from (
select
    *,
    if(left(texts[0], 1) in ('{', '[') and schema_of_variant(fields[0]) <> 'STRING', null, texts[0]) as `value id`,
    if(left(texts[1], 1) in ('{', '[') and schema_of_variant(fields[1]) <> 'STRING', null, texts[1]) as `value name`,
    if(left(texts[2], 1) in ('{', '[') and schema_of_variant(fields[2]) <> 'STRING', null, texts[2]) as `value Email`,
    coalesce(try_cast(texts[3] as int), try_cast(if(texts[3] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[3]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[3] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[3] as decimal(38,0)), null) as int)) as `value it's`
from (
-- every value as the text that was delivered, digit for digit
select
    *,
    cast(fields as array<string>) as texts
from (
select
    *,
    if(field_names is null, map_values(payload), transform(names, name -> coalesce(payload[name], get(map_values(payload), int(array_position(lower_names, lower(name))) - 1)))) as fields,
    concat(
        array_join(transform(map_values(payload), value -> coalesce(left(schema_of_variant(value), 2), 'VO')), ''),
        if(field_names is null, concat(':', coalesce(map_keys(payload)[0], '')), concat('=', to_json(field_names)))
    ) as fields_of_payload
from (
-- a field is found by its place where all are in their columns' places; else by its column's exact name, else by its name in any case
select
    *,
    array('id', 'name', 'Email', 'it\'s') as names,
    if(map_keys(payload) in (array('id', 'name', 'Email', 'it\'s'), array('ID', 'NAME', 'EMAIL', 'IT\'S')), null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
select
    *,
    case when change in ('insert', 'update', 'delete') then change end as change_type,
    row as payload,
    case when taken_at rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(taken_at as timestamp) when taken_at rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(taken_at rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', taken_at, concat(taken_at, if(taken_at like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as changed_at
from (
select *
from (
select if(coalesce(transform(array(from_json(case when startswith(record, '{"masked":{"by":') then concat(substring_index(record, '}}', 1), '}}}') when startswith(record, '{"long_record":') then record end, 'masked struct<fields map<string, string>>').masked.fields), masks -> masks['id'] = 'sha256' and masks['email'] = 'sha256' and masks['it\'s'] = 'drop')[0], false), record, concat('{"unmasked_record":{"bytes":', octet_length(record), '}', '}')) as record, source, batch, origin, case source
            when 'spanner' then 'spanner_change_stream'
            when 'bigtable' then 'bigtable_change_stream'
            when 'append table' then 'datastream_append'
            when 'datastream' then coalesce(concat('datastream_', transform(array(from_json(record, 'read_method string, source_metadata struct<scn string, row_id string, log_position string, binlog_position string, lsn string>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> case
            when parsed.source_metadata.scn is not null or parsed.source_metadata.row_id is not null or parsed.read_method like 'oracle%' then 'oracle'
            when parsed.source_metadata.lsn like '%/%' or parsed.read_method like 'postgres%' then 'postgresql'
            when parsed.source_metadata.lsn like '%:%' or parsed.read_method like 'sqlserver%' then 'sqlserver'
            when parsed.source_metadata.log_position is not null or parsed.source_metadata.binlog_position is not null or parsed.read_method like 'mysql%' then 'mysql'
        end)[0]), 'one that begins with datastream_')
        end as fitting_macro
from `lake`.`shop_changes`
where object = 'shop.orders'
) as staged
lateral view inline(array(
    from_json(record, 'snapshot string, taken_at string, change string, key string, row map<string, variant>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
)) difference
) as differences
) as payloads
) as located
) as fields
) as texts
) as typed
) as checked
) as judged
