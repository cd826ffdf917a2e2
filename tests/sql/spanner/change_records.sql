select
    `value id` as `id`,
    `value status` as `status`,
    `value total` as `total`,
    `value placed_at` as `placed_at`,
    `value ratio` as `ratio`,
    change_type as _change_type,
    concat(
        `section commit_timestamp`,
        if(is_backfill, '/1', concat_ws('/', '/0', `section server_transaction_id`, `section record_sequence`, `section place`)),
        '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, coalesce(to_json(array_sort(nullif(verdict.carried, names))), ''), `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))
    ) as _change_sequence,
    concat_ws('/', commit_timestamp, if(is_backfill, concat('backfill/', to_json(key_values)), concat_ws('/', server_transaction_id, record_sequence, cast(place as string)))) as _change_id,
    committed_at as _change_time,
    nullif(server_transaction_id, '') as _change_transaction,
    batch as _change_batch,
    nullif(verdict.carried, names) as _change_columns,
    nullif(verdict.error, '') as _change_error,
    fields_of_payload as _change_fields,
    to_json(map_keys(key_values)) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
select
    *,
    explode(array(
        struct(
            if(change_type = 'update', filter(names, name -> lower_names is null or array_contains(lower_names, lower(name))), null) as carried,
            concat_ws(
                '; ',
                case
                    when fitting_macro is not null then concat('the record is of another source; the macro that fits is ', fitting_macro)
                    when not source <=> 'spanner' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
                end,
                case
                    when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
                    when _corrupt_record is not null then 'the record does not have the form of a data change record'
                    when mods is null or cardinality(mods) = 0 then 'the record holds no mods'
                    when mod is null then 'the mod is not an object'
                    when change_type is null then concat('mod_type ', coalesce(concat('\'', mod_type, '\' is unknown'), 'is missing'))
                    when value_capture_type is null or value_capture_type not in ('OLD_AND_NEW_VALUES', 'NEW_VALUES', 'NEW_ROW', 'NEW_ROW_AND_OLD_VALUES') then concat('value_capture_type ', coalesce(concat('\'', value_capture_type, '\' is unknown'), 'is missing'))
                    when is_backfill and change_type <> 'insert' then concat('a backfill record is an INSERT, and this one \'', mod_type, '\'')
                    when key_values is null then 'the mod has no keys'
                    when new_values is null and change_type <> 'delete' then 'the mod has no new_values'
                    when payload is null then concat('the mod has ', array_join(array_intersect(map_keys(key_values), map_keys(new_values)), ', '), ' among its keys and its new_values')
                end,
                if(`section commit_timestamp` is null, 'commit_timestamp, which orders changes, is missing or unreadable', null),
                if(not is_backfill and `section server_transaction_id` is null, 'server_transaction_id, which orders changes, is missing or unreadable', null),
                if(not is_backfill and `section record_sequence` is null, 'record_sequence, which orders changes, is missing or unreadable', null),
                if(
                    array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
                    concat_ws('; ', transform(names, (name, i) -> case
                        when lost[i] then concat_ws(
                            '; ',
                            concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'string', 'decimal(38,10)', 'timestamp', 'double')[i]),
                            case
                                when i in (0) then case
                                    when texts[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                    when texts[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                    when lower(texts[i]) in ('true', 'false') then 'declare boolean'
                                    when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                        'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                        if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                        if(coalesce(try_cast(texts[i] as bigint), try_cast(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,0)), null) as bigint)) is null, '', ', or `meta: {round: true}`')
                                    )
                                    else 'declare string'
                                end
                                when i in (1) then case when left(texts[i], 1) = '[' then 'declare array<string>' end
                                when i in (2) then case
                                    when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                        'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(28, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)))), ',', greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ')\'')),
                                        if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 10, ', or double if it is a float at the source', ''),
                                        if(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,10)), null) is null, '', ', or `meta: {round: true}`')
                                    )
                                    else 'declare string'
                                end
                                when i in (3) then case
                                    when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                    when texts[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(texts[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
                                    else 'declare string'
                                end
                                when i in (4) then 'declare string'
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
        )
    )) as verdict
from (
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        texts[0] is not null and `value id` is null,
        texts[1] is not null and `value status` is null,
        texts[2] is not null and `value total` is null,
        texts[3] is not null and `value placed_at` is null,
        texts[4] is not null and `value ratio` is null
    ) as lost
from (
select
    *,
    coalesce(try_cast(texts[0] as bigint), try_cast(if(texts[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[0] as decimal(38,0)), null) as bigint)) as `value id`,
    if(left(texts[1], 1) in ('{', '[') and schema_of_variant(fields[1]) <> 'STRING', null, texts[1]) as `value status`,
    if(texts[2] rlike '^\\s*[-+]?\\d*\\.?\\d{0,10}\\s*$' or texts[2] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[2]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[2] as decimal(38,10)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[2] as decimal(38,10)), null) as `value total`,
    case when texts[3] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(texts[3] as timestamp) when texts[3] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(texts[3] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', texts[3], concat(texts[3], if(texts[3] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value placed_at`,
    if(texts[4] rlike '^[-+.0-9eE\\s]+$', nullif(nullif(try_cast(texts[4] as double), double('Infinity')), double('-Infinity')), if(lower(texts[4]) in ('nan', 'infinity', '-infinity', 'inf', '-inf'), try_cast(texts[4] as double), null)) as `value ratio`
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
    array('id', 'status', 'total', 'placed_at', 'ratio') as names,
    if(map_keys(payload) in (array('id', 'status', 'total', 'placed_at', 'ratio'), array('ID', 'STATUS', 'TOTAL', 'PLACED_AT', 'RATIO')), null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
select
    *,
    case
        when change_type = 'delete' then key_values
        when not arrays_overlap(map_keys(key_values), map_keys(new_values)) then map_concat(key_values, new_values)
    end as payload,
    if(unix_seconds(committed_at) between 0 and 9223372035, lpad(hex(unix_seconds(committed_at) * 1000000000 + bigint(rpad(regexp_extract(commit_timestamp, '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) as `section commit_timestamp`,
    if(server_transaction_id <> '', lpad(hex(xxhash64(server_transaction_id)), 16, '0'), null) as `section server_transaction_id`,
    if(record_sequence rlike '^[0-9a-fA-F]{1,16}$', lpad(upper(record_sequence), 16, '0'), null) as `section record_sequence`,
    lpad(hex(place), 8, '0') as `section place`
from (
select
    *,
    case mod_type when 'INSERT' then 'insert' when 'UPDATE' then 'update' when 'DELETE' then 'delete' end as change_type,
    coalesce(backfill = 'true', false) as is_backfill,
    case when commit_timestamp rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(commit_timestamp as timestamp) when commit_timestamp rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(commit_timestamp rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', commit_timestamp, concat(commit_timestamp, if(commit_timestamp like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as committed_at,
    try_cast(if(schema_of_variant(mod['keys']) = 'STRING', try_parse_json(cast(mod['keys'] as string)), mod['keys']) as map<string, variant>) as key_values,
    try_cast(if(schema_of_variant(mod['new_values']) = 'STRING', try_parse_json(cast(mod['new_values'] as string)), mod['new_values']) as map<string, variant>) as new_values
from (
-- a record without mods, of another source, or that cannot be read, is one change record, which goes to quarantine
select *
from (
select record, source, batch, origin, fitting_macro, data_change_record.*
from (
select record, source, batch, origin, case source
            when 'bigtable' then 'bigtable_change_stream'
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
where object = 'shop.orders'
) as staged
lateral view explode(array(
    from_json(record, 'commit_timestamp string, server_transaction_id string, record_sequence string, mod_type string, value_capture_type string, backfill string, mods array<variant>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
)) as data_change_record
) as data_change_records
lateral view posexplode(
    transform(if(source = 'spanner' and cardinality(mods) > 0, mods, array(cast(null as variant))), mod -> try_cast(mod as map<string, variant>))
) as place, mod
) as mods
where not coalesce(map_contains_key(mod, 'erased'), false)
) as parsed
) as payloads
) as located
) as fields
) as texts
) as typed
) as checked
) as judged
