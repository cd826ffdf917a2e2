select
    `value id` as `id`,
    `value status` as `status`,
    `value total` as `total`,
    `value placed_at` as `placed_at`,
    `value ratio` as `ratio`,
    change_type as _change_type,
    sequence as _change_sequence,
    metadata.uuid as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fields_of_payload as _change_fields,
    cast(null as string) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
select
    *,
    inline(array(struct(
        concat_ws(
            '; ',
            case
                when fitting_macro is not null then concat('the record is of another source; the macro that fits is ', fitting_macro)
                when not source <=> 'append table' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
            end,
            case
                when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
                when _corrupt_record is not null or payload is null then 'the record does not have the form of a row of an append table'
                when change_type is null then concat('change type ', coalesce(concat('\'', metadata.change_type, '\' is unknown'), 'is missing'))
            end,
            if(
                lower(metadata.is_deleted) = 'true' and change_type <> 'delete' or lower(metadata.is_deleted) = 'false' and upper(metadata.change_type) = 'DELETE',
                concat('is_deleted is ', lower(metadata.is_deleted), ', and the change type is \'', metadata.change_type, '\''), null
            ),
            if(
                not is_backfill and `section change_sequence_number` is null,
                concat('change_sequence_number, which orders changes, ', coalesce(concat('does not consist of one to four sections of hex digits: \'', metadata.change_sequence_number, '\''), 'is missing')), null
            ),
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
        ) as error,
        concat(
            '0000',
            if(is_backfill, concat('/0/', coalesce(if(unix_millis(changed_at) >= 0, lpad(hex(unix_millis(changed_at)), 16, '0'), null), '0000000000000000')), concat('/1/', `section change_sequence_number`)),
            '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))
        ) as sequence
    )))
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
    changed_at as read_at,
    case
            when upper(source_metadata.change_type) = 'INSERT' or is_backfill and nullif(source_metadata.change_type, '') is null then 'insert'
            when upper(source_metadata.change_type) in ('UPDATE', 'UPDATE-INSERT') then 'update'
            when upper(source_metadata.change_type) in ('DELETE', 'UPDATE-DELETE') then 'delete'
        end as change_type,
    if(metadata.change_sequence_number rlike '^[0-9a-fA-F]{1,16}(/[0-9a-fA-F]{1,16}){0,3}\\z', concat_ws('/', lpad(upper(split_part(metadata.change_sequence_number, '/', 1)), 16, '0'), lpad(upper(split_part(metadata.change_sequence_number, '/', 2)), 16, '0'), lpad(upper(split_part(metadata.change_sequence_number, '/', 3)), 16, '0'), lpad(upper(split_part(metadata.change_sequence_number, '/', 4)), 16, '0')), null) as `section change_sequence_number`
from (
select
    *,
    row as payload,
    metadata.change_sequence_number is null and upper(coalesce(metadata.change_type, 'INSERT')) = 'INSERT' as is_backfill,
    if(metadata.source_timestamp rlike '^\\d{10,15}$', timestamp_millis(try_cast(metadata.source_timestamp as bigint)), case when metadata.source_timestamp rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(metadata.source_timestamp as timestamp) when metadata.source_timestamp rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(metadata.source_timestamp rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', metadata.source_timestamp, concat(metadata.source_timestamp, if(metadata.source_timestamp like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as changed_at
from (
select *, datastream_metadata as source_metadata, datastream_metadata as metadata
from (
select record, source, batch, origin, case source
            when 'spanner' then 'spanner_change_stream'
            when 'bigtable' then 'bigtable_change_stream'
            when 'snapshot' then 'snapshots'
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
    from_json(record, 'datastream_metadata struct<uuid string, source_timestamp string, change_sequence_number string, change_type string, is_deleted string>, row map<string, variant>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
)) appended_row
) as appended_rows
) as appended
) as payloads
) as located
) as fields
) as texts
) as typed
) as checked
) as judged
