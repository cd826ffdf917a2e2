select
    `value id` as `id`,
    `value tiny` as `tiny`,
    `value small` as `small`,
    `value whole` as `whole`,
    `value real` as `real`,
    `value wide` as `wide`,
    `value exact` as `exact`,
    `value is_it` as `is_it`,
    `value text` as `text`,
    `value short` as `short`,
    `value bytes` as `bytes`,
    `value day` as `day`,
    `value moment` as `moment`,
    `value local` as `local`,
    `value list` as `list`,
    `value pairs` as `pairs`,
    `value rounded` as `rounded`,
    change_type as _change_type,
    concat(section_taken_at, '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value bytes` is null, `value bytes`, `value day` is null, `value day`, `value exact` is null, `value exact`, `value id` is null, `value id`, `value is_it` is null, `value is_it`, `value list` is null, to_json(`value list`, map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), `value local` is null, `value local`, `value moment` is null, `value moment`, `value pairs` is null, to_json(array_sort(map_entries(`value pairs`)), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), `value real` is null, cast(`value real` as string), `value rounded` is null, `value rounded`, `value short` is null, `value short`, `value small` is null, `value small`, `value text` is null, `value text`, `value tiny` is null, `value tiny`, `value whole` is null, `value whole`, `value wide` is null, cast(`value wide` as string))), 16, '0'))) as _change_sequence,
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
                        concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'tinyint', 'smallint', 'int', 'float', 'double', 'decimal(38,10)', 'boolean', 'string', 'varchar(5)', 'binary', 'date', 'timestamp', 'timestamp_ntz', 'array<decimal(10,2)>', 'map<string,array<string>>', 'decimal(10,2)')[i]),
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
                            when i in (1) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when texts[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(texts[i]) in ('true', 'false') then 'declare boolean'
                                when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(texts[i] as tinyint), try_cast(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,0)), null) as tinyint)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (2) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when texts[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(texts[i]) in ('true', 'false') then 'declare boolean'
                                when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(texts[i] as smallint), try_cast(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,0)), null) as smallint)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
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
                            when i in (4, 5) then 'declare string'
                            when i in (6) then case
                                when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(28, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)))), ',', greatest(10, length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1))), ')\'')),
                                    if(length(regexp_extract(texts[i], '[.](\\d*?)0*$', 1)) > 10, ', or double if it is a float at the source', ''),
                                    if(if(texts[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[i] as decimal(38,10)), null) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (7) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                else 'declare string'
                            end
                            when i in (8) then case when left(texts[i], 1) = '[' then 'declare array<string>' end
                            when i in (9) then case when char_length(texts[i]) > 5 then 'declare string' when left(texts[i], 1) = '[' then 'declare array<string>' end
                            when i in (10) then case
                                when schema_of_variant(fields[i]) <> 'STRING' then if(try_cast(texts[i] as bigint) is null, 'declare string', 'declare bigint')
                                else 'declare string'
                            end
                            when i in (11) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(texts[i] as timestamp) is not null then 'it has a zone: declare timestamp'
                                when texts[i] like '%:%' and try_cast(texts[i] as timestamp) is not null then 'it has a time of day: declare timestamp or timestamp_ntz, or `meta: {round: true}`'
                                else 'declare string'
                            end
                            when i in (12) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(texts[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
                                else 'declare string'
                            end
                            when i in (13) then case
                                when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                when texts[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(texts[i] as timestamp) is not null then 'it has a zone: declare timestamp'
                                when texts[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(texts[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
                                else 'declare string'
                            end
                            when i in (14) then if(try_cast(if(schema_of_variant(fields[i]) like '%nestedArray%', try_variant_get(fields[i], '$.nestedArray', 'variant'), if(schema_of_variant(fields[i]) = 'STRING', try_parse_json(cast(fields[i] as string)), fields[i])) as array<variant>) is null, 'declare string', 'declare another type for its elements')
                            when i in (15) then if(try_cast(if(schema_of_variant(fields[i]) = 'STRING', try_parse_json(cast(fields[i] as string)), fields[i]) as map<string, variant>) is null, 'declare string', 'declare other types for its keys or values')
                            when i in (16) then case
                                when texts[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1)) + 2 > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(8, length(regexp_extract(texts[i], '^[-+]?0*(\\d*)', 1))) + 2), ',', 2, ')\''))
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
        texts[1] is not null and `value tiny` is null,
        texts[2] is not null and `value small` is null,
        texts[3] is not null and `value whole` is null,
        texts[4] is not null and `value real` is null,
        texts[5] is not null and `value wide` is null,
        texts[6] is not null and `value exact` is null,
        texts[7] is not null and `value is_it` is null,
        texts[8] is not null and `value text` is null,
        texts[9] is not null and `value short` is null,
        texts[10] is not null and `value bytes` is null,
        texts[11] is not null and `value day` is null,
        texts[12] is not null and `value moment` is null,
        texts[13] is not null and `value local` is null,
        texts[14] is not null and `value list` is null,
        texts[15] is not null and `value pairs` is null,
        texts[16] is not null and `value rounded` is null
    ) as lost
from (
select
    *,
    coalesce(try_cast(texts[0] as bigint), try_cast(if(texts[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[0] as decimal(38,0)), null) as bigint)) as `value id`,
    coalesce(try_cast(texts[1] as tinyint), try_cast(if(texts[1] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[1]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[1] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[1] as decimal(38,0)), null) as tinyint)) as `value tiny`,
    coalesce(try_cast(texts[2] as smallint), try_cast(if(texts[2] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[2]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[2] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[2] as decimal(38,0)), null) as smallint)) as `value small`,
    coalesce(try_cast(texts[3] as int), try_cast(if(texts[3] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[3]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[3] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[3] as decimal(38,0)), null) as int)) as `value whole`,
    if(texts[4] rlike '^[-+.0-9eE\\s]+$', nullif(nullif(try_cast(texts[4] as float), float('Infinity')), float('-Infinity')), if(lower(texts[4]) in ('nan', 'infinity', '-infinity', 'inf', '-inf'), try_cast(texts[4] as float), null)) as `value real`,
    if(texts[5] rlike '^[-+.0-9eE\\s]+$', nullif(nullif(try_cast(texts[5] as double), double('Infinity')), double('-Infinity')), if(lower(texts[5]) in ('nan', 'infinity', '-infinity', 'inf', '-inf'), try_cast(texts[5] as double), null)) as `value wide`,
    if(texts[6] rlike '^\\s*[-+]?\\d*\\.?\\d{0,10}\\s*$' or texts[6] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[6]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[6] as decimal(38,10)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[6] as decimal(38,10)), null) as `value exact`,
    case lower(texts[7]) when 'true' then true when 't' then true when '1' then true when 'false' then false when 'f' then false when '0' then false end as `value is_it`,
    if(left(texts[8], 1) in ('{', '[') and schema_of_variant(fields[8]) <> 'STRING', null, texts[8]) as `value text`,
    if(char_length(texts[9]) <= 5, if(left(texts[9], 1) in ('{', '[') and schema_of_variant(fields[9]) <> 'STRING', null, texts[9]), null) as `value short`,
    if(schema_of_variant(fields[10]) = 'STRING', try_to_binary(texts[10], 'base64'), null) as `value bytes`,
    if(texts[11] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]00:00(:00(\\.0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(texts[11] as date), null) as `value day`,
    case when texts[12] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(texts[12] as timestamp) when texts[12] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(texts[12] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', texts[12], concat(texts[12], if(texts[12] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value moment`,
    if(texts[13] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(regexp_replace(texts[13], '(:\\d\\d(\\.\\d*)?)(Z|[-+]00(:?00)?)$', '$1') as timestamp_ntz), null) as `value local`,
    if(exists(transform(try_cast(if(schema_of_variant(fields[14]) like '%nestedArray%', try_variant_get(fields[14], '$.nestedArray', 'variant'), if(schema_of_variant(fields[14]) = 'STRING', try_parse_json(cast(fields[14] as string)), fields[14])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY)', null, if(cast(x as string) rlike '^\\s*[-+]?\\d*\\.?\\d{0,2}\\s*$' or cast(x as string) rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(cast(x as string)), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(cast(x as string) as decimal(10,2)) as string)), 'E', 1), '+-. ', '')), try_cast(cast(x as string) as decimal(10,2)), null)) is null), null, transform(transform(try_cast(if(schema_of_variant(fields[14]) like '%nestedArray%', try_variant_get(fields[14], '$.nestedArray', 'variant'), if(schema_of_variant(fields[14]) = 'STRING', try_parse_json(cast(fields[14] as string)), fields[14])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY)', null, if(cast(x as string) rlike '^\\s*[-+]?\\d*\\.?\\d{0,2}\\s*$' or cast(x as string) rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(cast(x as string)), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(cast(x as string) as decimal(10,2)) as string)), 'E', 1), '+-. ', '')), try_cast(cast(x as string) as decimal(10,2)), null)))) as `value list`,
    if(exists(map_keys(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), k -> k is null) or exists(map_values(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), x -> cast(x as string) is not null and if(exists(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY|DECIMAL)', null, cast(x as string)) is null), null, transform(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY|DECIMAL)', null, cast(x as string)))) is null) or cardinality(array_distinct(transform(map_keys(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), k -> k))) < cardinality(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), null, map_from_arrays(transform(map_keys(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), k -> k), transform(map_values(try_cast(if(schema_of_variant(fields[15]) = 'STRING', try_parse_json(cast(fields[15] as string)), fields[15]) as map<string, variant>)), x -> if(exists(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY|DECIMAL)', null, cast(x as string)) is null), null, transform(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) rlike '^(DOUBLE|OBJECT|ARRAY|DECIMAL)', null, cast(x as string))))))) as `value pairs`,
    if(texts[16] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(texts[16] as decimal(10,2)), null) as `value rounded`
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
    array('id', 'tiny', 'small', 'whole', 'real', 'wide', 'exact', 'is_it', 'text', 'short', 'bytes', 'day', 'moment', 'local', 'list', 'pairs', 'rounded') as names,
    if(map_keys(payload) in (array('id', 'tiny', 'small', 'whole', 'real', 'wide', 'exact', 'is_it', 'text', 'short', 'bytes', 'day', 'moment', 'local', 'list', 'pairs', 'rounded'), array('ID', 'TINY', 'SMALL', 'WHOLE', 'REAL', 'WIDE', 'EXACT', 'IS_IT', 'TEXT', 'SHORT', 'BYTES', 'DAY', 'MOMENT', 'LOCAL', 'LIST', 'PAIRS', 'ROUNDED')), null, map_keys(payload)) as field_names,
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
select record, source, batch, origin, case source
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
