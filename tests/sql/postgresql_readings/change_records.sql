select
    `value id` as `id`,
    `value whatever` as `whatever`,
    `value bytes` as `bytes`,
    `value list` as `list`,
    `value text` as `text`,
    `value hex` as `hex`,
    `value base64` as `base64`,
    `value parts` as `parts`,
    `value json` as `json`,
    `value span` as `span`,
    `value time` as `time`,
    `value clock` as `clock`,
    `value short` as `short`,
    `value hour` as `hour`,
    `value until` as `until`,
    change_type as _change_type,
    sequence as _change_sequence,
    uuid as _change_id,
    changed_at as _change_time,
    metadata.tx_id as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    if(fitting_macro is null, nullif(concat_ws('.', nullif(metadata.database, ''), nullif(regexp_replace(metadata.schema, '^\\["|"\\]$', ''), ''), nullif(metadata.table, '')), ''), null) as _change_table,
    fields_of_payload as _change_fields,
    to_json(coalesce(if(cardinality(try_cast(metadata.primary_keys as array<string>)) > 0, try_cast(metadata.primary_keys as array<string>), null), try_cast(metadata.replication_index as array<string>), try_cast(metadata.primary_keys as array<string>))) as _change_key,
    schema_key as _change_schema,
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
                when not source <=> 'datastream' then concat('source ', coalesce(concat('\'', source, '\' of the staging table is unknown'), 'of the staging table is NULL'))
            end,
            case
                when startswith(record, '{"long_record":{"bytes":') then concat('the record was too long for staging (\'', get_json_object(record, '$.long_record.bytes'), ' bytes', coalesce(concat(' at ', get_json_object(record, '$.long_record.place')), ''), '\'); staging has a note in its place, and append.py --longest-record accepts longer records')
                when _corrupt_record is not null and try_parse_json(record) is null and get_json_object(record, '$') is not null and cardinality(regexp_extract_all(record, '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(record, '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                when metadata is null then 'the record has no source_metadata'
                when fields is null then 'the record has no payload'
                when _corrupt_record is not null then 'the record does not have the form of a Datastream event'
                when change_type is null then concat('change type ', coalesce(concat('\'', metadata.change_type, '\' is unknown'), 'is missing'))
                when is_backfill is null then concat('read method ', coalesce(concat('\'', read_method, '\' is unknown'), 'is missing'))
                when is_backfill and `section read_timestamp` is null then 'read_timestamp, which orders backfill rows, is missing or unreadable'
            end,
            if(
                lower(metadata.is_deleted) = 'true' and change_type <> 'delete' or lower(metadata.is_deleted) = 'false' and upper(metadata.change_type) = 'DELETE',
                concat('is_deleted is ', lower(metadata.is_deleted), ', and the change type is \'', metadata.change_type, '\''), null
            ),
            if(contains(record, '\\u') and record rlike '(?<!\\\\)(?:\\\\\\\\)*(?:\\\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2})\\\\u[dD][c-fC-F][0-9a-fA-F]{2})', 'a text has half of a surrogate pair, which is not a character, and Spark would store it as ?; correct it at the source', null),
            if(not is_backfill and `section lsn` is null, 'lsn, which orders changes, is missing or unreadable', null),
            if(
                array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
                concat_ws('; ', transform(names, (name, i) -> case
                    when lost[i] then concat_ws(
                        '; ',
                        concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'variant', 'binary, and the column does not declare how text encodes bytes; declare `meta: {encoding: hex}` or `meta: {encoding: base64}`', 'array<binary>, and the column does not declare how text encodes bytes; declare `meta: {encoding: hex}` or `meta: {encoding: base64}`', 'string', 'binary in hex', 'array<binary> in base64', 'map<binary,array<binary>> in hex', 'string', 'string', 'string', 'string', 'varchar(5)', 'varchar(5)', 'timestamp')[i]),
                        case
                            when texts[i] = '{a number whose digits cannot be found in the record}' then cast(null as string)
                            when i in (0) then case
                                when readable[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when readable[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(readable[i]) in ('true', 'false') then 'declare boolean'
                                when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(readable[i] as bigint), try_cast(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(38,0)), null) as bigint)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (1) then case when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one' when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null then 'declare string' end
                            when i in (2) then case
                                when schema_of_variant(fields[i]) <> 'STRING' then if(try_cast(texts[i] as bigint) is null, 'declare string', 'declare bigint')
                            end
                            when i in (4) then case
                                when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
                            end
                            when i in (5) then case
                                when schema_of_variant(fields[i]) <> 'STRING' then if(try_cast(texts[i] as bigint) is null, 'declare string', 'declare bigint')
                                when if(length(readable[i]) % 4 = 0 or readable[i] rlike '\\s', try_to_binary(readable[i], 'base64'), null) is not null then 'if it is base64, declare it with `meta: {encoding: base64}`'
                                else 'declare string'
                            end
                            when i in (7) then if(try_cast(if(schema_of_variant(fields[i]) = 'STRING', try_parse_json(cast(fields[i] as string)), fields[i]) as map<string, variant>) is null, 'declare string', 'declare other types for its keys or values')
                            when i in (8) then case when try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one' when try_parse_json(texts[i]) is null then 'remove `encoding: json` from its meta' end
                            when i in (9) then 'remove `encoding: interval` from its meta'
                            when i in (10) then 'remove `encoding: microseconds` from its meta'
                            when i in (11) then 'remove `encoding: time` from its meta'
                            when i in (12) then case when char_length(readable[i]) > 5 then 'declare string' when try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one' when try_parse_json(texts[i]) is null then 'remove `encoding: json` from its meta' end
                            when i in (13) then if(char_length(readable[i]) > 5, 'declare string', 'remove `encoding: time` from its meta')
                            when i in (14) then case
                                when readable[i] in ('infinity', '-infinity') then 'it is infinity: declare string to keep it, or `meta: {infinity_is_null: true}` to make it NULL'
                                when readable[i] like '{"date":%' then 'declare timestamp_ntz'
                                when try_cast(readable[i] as bigint) is not null then 'declare bigint'
                                when readable[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(readable[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
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
        ) as error,
        concat(
            '0000',
            if(is_backfill, concat('/0/', `section read_timestamp`), concat_ws('/', '/1', `section lsn`)),
            '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value base64` is null, to_json(`value base64`, map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), `value bytes` is null, `value bytes`, `value clock` is null, `value clock`, `value hex` is null, `value hex`, `value hour` is null, `value hour`, `value id` is null, `value id`, `value json` is null, `value json`, `value list` is null, to_json(`value list`, map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), `value parts` is null, to_json(array_sort(map_entries(`value parts`)), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSX', 'timeZone', 'UTC', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), `value short` is null, `value short`, `value span` is null, `value span`, `value text` is null, `value text`, `value time` is null, `value time`, `value until` is null, `value until`, `value whatever` is null, to_json(`value whatever`))), 16, '0'))
        ) as sequence
    )))
from (
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        texts[0] is not null and `value id` is null,
        texts[1] is not null and `value whatever` is null,
        texts[2] is not null and `value bytes` is null,
        texts[3] is not null and `value list` is null,
        texts[4] is not null and `value text` is null,
        texts[5] is not null and `value hex` is null,
        texts[6] is not null and `value base64` is null,
        texts[7] is not null and `value parts` is null,
        texts[8] is not null and `value json` is null,
        texts[9] is not null and `value span` is null,
        texts[10] is not null and `value time` is null,
        texts[11] is not null and `value clock` is null,
        texts[12] is not null and `value short` is null,
        texts[13] is not null and `value hour` is null,
        texts[14] is not null and `value until` is null and readable[14] not in ('infinity', '-infinity')
    ) as lost
from (
select
    *,
    coalesce(try_cast(readable[0] as bigint), try_cast(if(readable[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[0] as decimal(38,0)), null) as bigint)) as `value id`,
    if(readable[1] is null or schema_of_variant(if(get(kinds, 1) = 'json', try_parse_json(readable[1]), fields[1])) rlike 'DOUBLE|VARIANT' and exists(regexp_extract_all(if(get(kinds, 1) = 'json', readable[1], record), '(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{38,}))(?=\\s*(?:[,\\]}\\\\]|$))'), number -> not (trim('0' from translate(substring_index(upper(number), 'E', 1), '+-. ', '')) <=> trim('0' from translate(substring_index(upper(to_json(try_parse_json(number))), 'E', 1), '+-. ', '')))), null, if(get(kinds, 1) = 'json', try_parse_json(readable[1]), fields[1])) as `value whatever`,
    if(schema_of_variant(fields[2]) = 'STRING', if(get(kinds, 2) in ('bytes', 'bytes[]'), try_to_binary(readable[2], 'base64'), cast(null as binary)), null) as `value bytes`,
    if(exists(transform(try_cast(if(schema_of_variant(fields[3]) like '%nestedArray%', try_variant_get(fields[3], '$.nestedArray', 'variant'), if(schema_of_variant(fields[3]) = 'STRING', try_parse_json(cast(fields[3] as string)), fields[3])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) = 'STRING', if(get(kinds, 3) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), cast(null as binary)), null) is null), null, transform(transform(try_cast(if(schema_of_variant(fields[3]) like '%nestedArray%', try_variant_get(fields[3], '$.nestedArray', 'variant'), if(schema_of_variant(fields[3]) = 'STRING', try_parse_json(cast(fields[3] as string)), fields[3])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) = 'STRING', if(get(kinds, 3) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), cast(null as binary)), null))) as `value list`,
    readable[4] as `value text`,
    if(schema_of_variant(fields[5]) = 'STRING', if(get(kinds, 5) in ('bytes', 'bytes[]'), try_to_binary(readable[5], 'base64'), if(readable[5] rlike '^[0-9a-fA-F]*$' and length(readable[5]) % 2 = 0, try_to_binary(readable[5], 'hex'), null)), null) as `value hex`,
    if(exists(transform(try_cast(if(schema_of_variant(fields[6]) like '%nestedArray%', try_variant_get(fields[6], '$.nestedArray', 'variant'), if(schema_of_variant(fields[6]) = 'STRING', try_parse_json(cast(fields[6] as string)), fields[6])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) = 'STRING', if(length(cast(x as string)) % 4 = 0 or cast(x as string) rlike '\\s', try_to_binary(cast(x as string), 'base64'), null), null) is null), null, transform(transform(try_cast(if(schema_of_variant(fields[6]) like '%nestedArray%', try_variant_get(fields[6], '$.nestedArray', 'variant'), if(schema_of_variant(fields[6]) = 'STRING', try_parse_json(cast(fields[6] as string)), fields[6])) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) = 'STRING', if(length(cast(x as string)) % 4 = 0 or cast(x as string) rlike '\\s', try_to_binary(cast(x as string), 'base64'), null), null))) as `value base64`,
    if(exists(map_keys(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), k -> if(k rlike '^[0-9a-fA-F]*$' and length(k) % 2 = 0, try_to_binary(k, 'hex'), null) is null) or exists(map_values(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), x -> cast(x as string) is not null and if(exists(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) = 'STRING', if(get(kinds, 7) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), if(cast(x as string) rlike '^[0-9a-fA-F]*$' and length(cast(x as string)) % 2 = 0, try_to_binary(cast(x as string), 'hex'), null)), null) is null), null, transform(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) = 'STRING', if(get(kinds, 7) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), if(cast(x as string) rlike '^[0-9a-fA-F]*$' and length(cast(x as string)) % 2 = 0, try_to_binary(cast(x as string), 'hex'), null)), null))) is null) or cardinality(array_distinct(transform(map_keys(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), k -> if(k rlike '^[0-9a-fA-F]*$' and length(k) % 2 = 0, try_to_binary(k, 'hex'), null)))) < cardinality(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), null, map_from_arrays(transform(map_keys(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), k -> if(k rlike '^[0-9a-fA-F]*$' and length(k) % 2 = 0, try_to_binary(k, 'hex'), null)), transform(map_values(try_cast(if(schema_of_variant(fields[7]) = 'STRING', try_parse_json(cast(fields[7] as string)), fields[7]) as map<string, variant>)), x -> if(exists(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> cast(x as string) is not null and if(schema_of_variant(x) = 'STRING', if(get(kinds, 7) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), if(cast(x as string) rlike '^[0-9a-fA-F]*$' and length(cast(x as string)) % 2 = 0, try_to_binary(cast(x as string), 'hex'), null)), null) is null), null, transform(transform(try_cast(if(schema_of_variant(x) like '%nestedArray%', try_variant_get(x, '$.nestedArray', 'variant'), if(schema_of_variant(x) = 'STRING', try_parse_json(cast(x as string)), x)) as array<variant>), x -> if(schema_of_variant(x) like '%elementValue%' and try_variant_get(x, '$.nestedArray', 'array<variant>') is null, try_variant_get(x, '$.elementValue', 'variant'), x)), x -> if(schema_of_variant(x) = 'STRING', if(get(kinds, 7) in ('bytes', 'bytes[]'), try_to_binary(cast(x as string), 'base64'), if(cast(x as string) rlike '^[0-9a-fA-F]*$' and length(cast(x as string)) % 2 = 0, try_to_binary(cast(x as string), 'hex'), null)), null)))))) as `value parts`,
    readable[8] as `value json`,
    readable[9] as `value span`,
    readable[10] as `value time`,
    readable[11] as `value clock`,
    if(char_length(readable[12]) <= 5, readable[12], null) as `value short`,
    if(char_length(readable[13]) <= 5, readable[13], null) as `value hour`,
    case when readable[14] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(readable[14] as timestamp) when readable[14] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(readable[14] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', readable[14], concat(readable[14], if(readable[14] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value until`
from (
-- the text that each type is read from
select
    *,
    if(
        kinds is not null or left(texts[4], 1) in ('{', '[', '+', '-') or texts[8] is not null or texts[9] is not null or texts[10] is not null or texts[11] is not null or texts[12] is not null or texts[13] is not null or left(texts[14], 1) in ('{', '[', '+', '-'),
        transform(texts, (text, i) -> case
            when i in (4) then case
                when get(kinds, i) is null or get(kinds, i) = 'bytes' then case
                    when left(text, 1) not in ('{', '[') or schema_of_variant(fields[i]) = 'STRING' then case when left(text, 8) = '+294247-' then 'infinity' when left(text, 8) = '-290308-' then '-infinity' else text end
                    when schema_of_variant(fields[i]) rlike '^(OBJECT|ARRAY)' then if(schema_of_variant(fields[i]) rlike 'DOUBLE|VARIANT' and exists(regexp_extract_all(record, '(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{38,}))(?=\\s*(?:[,\\]}\\\\]|$))'), number -> not (trim('0' from translate(substring_index(upper(number), 'E', 1), '+-. ', '')) <=> trim('0' from translate(substring_index(upper(to_json(try_parse_json(number))), 'E', 1), '+-. ', '')))), null, to_json(fields[i]))
                end
                when get(kinds, i) = 'json' then if(ltrim(text) rlike '^[{\\[]', if(schema_of_variant(try_parse_json(text)) rlike 'DOUBLE|VARIANT' and exists(regexp_extract_all(text, '(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{38,}))(?=\\s*(?:[,\\]}\\\\]|$))'), number -> not (trim('0' from translate(substring_index(upper(number), 'E', 1), '+-. ', '')) <=> trim('0' from translate(substring_index(upper(to_json(try_parse_json(number))), 'E', 1), '+-. ', '')))), null, to_json(try_parse_json(text))), null)
                when get(kinds, i) = 'varchar' then try_variant_get(fields[i], '$.value', 'string')
                when get(kinds, i) = 'time-interval-micros' then concat(if(try_cast(text as bigint) < 0, '-', ''), if(try_cast(text as bigint) div 36000000000 = 0, '0', ''), abs(try_cast(text as bigint) div 3600000000), ':', lpad(abs(try_cast(text as bigint) div 60000000 % 60), 2, '0'), ':', lpad(abs(try_cast(text as bigint) div 1000000 % 60), 2, '0'), '.', lpad(abs(try_cast(text as bigint) % 1000000), 6, '0'))
                when get(kinds, i) = 'timestampTz' then case when left(try_variant_get(fields[i], '$.timestamp', 'string'), 8) = '+294247-' then 'infinity' when left(try_variant_get(fields[i], '$.timestamp', 'string'), 8) = '-290308-' then '-infinity' else try_variant_get(fields[i], '$.timestamp', 'string') end
                when get(kinds, i) = 'datetime' then concat(try_variant_get(fields[i], '$.date', 'string'), 'T', try_variant_get(fields[i], '$.time', 'string'))
                when get(kinds, i) = 'timeTz' then concat(try_variant_get(fields[i], '$.time', 'string'), if(try_variant_get(fields[i], '$.offset', 'string') like '-%', '', '+'), regexp_replace(try_variant_get(fields[i], '$.offset', 'string'), '(:00)?([.]0*)?$', ''))
                when get(kinds, i) = 'interval' then concat('P', try_variant_get(fields[i], '$.months', 'bigint'), 'MT', try_variant_get(fields[i], '$.hours', 'bigint'), 'H', cast(try_variant_get(fields[i], '$.micros', 'bigint') / 1000000bd as decimal(25,6)), 'S')
            end
            when i in (8, 12) then to_json(if(text is null or schema_of_variant(if(get(kinds, i) = 'json', try_parse_json(text), fields[i])) rlike 'DOUBLE|VARIANT' and exists(regexp_extract_all(if(get(kinds, i) = 'json', text, record), '(?:^|[:\\[,])\\s*(-?[0-9](?:[0-9.]*+[eE][-+0-9]+|[0-9.]{38,}))(?=\\s*(?:[,\\]}\\\\]|$))'), number -> not (trim('0' from translate(substring_index(upper(number), 'E', 1), '+-. ', '')) <=> trim('0' from translate(substring_index(upper(to_json(try_parse_json(number))), 'E', 1), '+-. ', '')))), null, if(get(kinds, i) = 'json', try_parse_json(text), fields[i])))
            when i in (10) then concat(if(try_cast(text as bigint) < 0, '-', ''), if(try_cast(text as bigint) div 36000000000 = 0, '0', ''), abs(try_cast(text as bigint) div 3600000000), ':', lpad(abs(try_cast(text as bigint) div 60000000 % 60), 2, '0'), ':', lpad(abs(try_cast(text as bigint) div 1000000 % 60), 2, '0'), '.', lpad(abs(try_cast(text as bigint) % 1000000), 6, '0'))
            when i in (9) then if(get(kinds, i) = 'interval' or schema_of_variant(fields[i]) = 'OBJECT<hours: BIGINT, micros: BIGINT, months: BIGINT>', concat('P', try_variant_get(fields[i], '$.months', 'bigint'), 'MT', try_variant_get(fields[i], '$.hours', 'bigint'), 'H', cast(try_variant_get(fields[i], '$.micros', 'bigint') / 1000000bd as decimal(25,6)), 'S'), if(
                text rlike '^P(?=[-+0-9T])([-+]?[0-9]+Y)?([-+]?[0-9]+M)?([-+]?[0-9]+W)?([-+]?[0-9]+D)?(T(?=[-+0-9])([-+]?[0-9]+H)?([-+]?[0-9]+M)?([-+]?[0-9]+([.][0-9]{1,6})?S)?)?$',
                concat('P', 12 * try_cast(coalesce(nullif(regexp_extract(text, '^P[^T]*?([-+]?[0-9]+)Y', 1), ''), '0') as decimal(20,0)) + try_cast(coalesce(nullif(regexp_extract(text, '^P[^T]*?([-+]?[0-9]+)M', 1), ''), '0') as decimal(20,0)), 'MT', 168 * try_cast(coalesce(nullif(regexp_extract(text, '^P[^T]*?([-+]?[0-9]+)W', 1), ''), '0') as decimal(20,0)) + 24 * try_cast(coalesce(nullif(regexp_extract(text, '^P[^T]*?([-+]?[0-9]+)D', 1), ''), '0') as decimal(20,0)) + try_cast(coalesce(nullif(regexp_extract(text, 'T.*?([-+]?[0-9.]+)H', 1), ''), '0') as decimal(20,0)), 'H', cast(60 * try_cast(coalesce(nullif(regexp_extract(text, 'T.*?([-+]?[0-9.]+)M', 1), ''), '0') as decimal(20,0)) + try_cast(coalesce(nullif(regexp_extract(text, 'T.*?([-+]?[0-9.]+)S', 1), ''), '0') as decimal(26,6)) as decimal(30,6)), 'S'),
                null
            ))
            when i in (11, 13) then if(get(kinds, i) = 'timeTz', concat(try_variant_get(fields[i], '$.time', 'string'), if(try_variant_get(fields[i], '$.offset', 'string') like '-%', '', '+'), regexp_replace(try_variant_get(fields[i], '$.offset', 'string'), '(:00)?([.]0*)?$', '')), if(
                text rlike '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$',
                concat(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 1), ':', lpad(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 2), 2, '0'), '.', rpad(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 3), 6, '0'), case when regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 4) = 'Z' then '+00:00' when regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 5) = '' then '' else concat(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 5), ':', lpad(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 6), 2, '0'), if(regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 7) in ('', '00'), '', concat(':', regexp_extract(text, '^(\\d\\d:\\d\\d)(?::(\\d\\d)(?:[.](\\d{1,6})0*)?)?(?:(Z)|([-+]\\d\\d)(?::?(\\d\\d)(?::?(\\d\\d))?)?)?$', 7)))) end),
                null
            ))
            when i in (14) then case when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '+294247-' then 'infinity' when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '-290308-' then '-infinity' else coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text) end
            else text
        end),
        texts
    ) as readable
from (
-- every value as the text that was delivered, digit for digit
select
    *,
    if(
        schema_of_variant(fields[0]) = 'DOUBLE' or schema_of_variant(fields[4]) like 'D%' or schema_of_variant(fields[8]) like 'D%' or schema_of_variant(fields[9]) like 'D%' or schema_of_variant(fields[10]) like 'D%' or schema_of_variant(fields[11]) like 'D%' or schema_of_variant(fields[12]) like 'D%' or schema_of_variant(fields[13]) like 'D%',
        transform(fields, (field, i) -> case
            when i in (0) and schema_of_variant(field) = 'DOUBLE' then coalesce(
        get(filter(
            array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
            digits -> try_cast(digits as double) = cast(field as double)
        ), 0),
        '{a number whose digits cannot be found in the record}'
    )
            when i in (4, 8, 9, 10, 11, 12, 13) and schema_of_variant(field) like 'D%' then coalesce(
        get(filter(
            array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
            digits -> try_cast(digits as double) = cast(field as double)
        ), 0),
        '{a number whose digits cannot be found in the record}'
    )
            else cast(field as string)
        end),
        cast(fields as array<string>)
    ) as texts
from (
select
    *,
    if(field_names is null, map_values(payload), transform(names, name -> coalesce(payload[name], get(map_values(payload), int(array_position(lower_names, lower(name))) - 1)))) as fields,
    concat(
        array_join(transform(map_values(payload), value -> coalesce(left(schema_of_variant(value), 2), 'VO')), ''),
        if(field_names is null, concat(':', coalesce(map_keys(payload)[0], '')), concat('=', to_json(field_names)))
    ) as fields_of_payload,
    if(avro_types is null, null, transform(names, name -> coalesce(avro_types[name], get(map_values(avro_types), int(array_position(transform(map_keys(avro_types), key -> lower(key)), lower(name))) - 1)))) as kinds
from (
-- a field is found by its place where all are in their columns' places; else by its column's exact name, else by its name in any case
select
    *,
    array('id', 'whatever', 'bytes', 'list', 'text', 'hex', 'base64', 'parts', 'json', 'span', 'time', 'clock', 'short', 'hour', 'until') as names,
    if(map_keys(payload) in (array('id', 'whatever', 'bytes', 'list', 'text', 'hex', 'base64', 'parts', 'json', 'span', 'time', 'clock', 'short', 'hour', 'until'), array('ID', 'WHATEVER', 'BYTES', 'LIST', 'TEXT', 'HEX', 'BASE64', 'PARTS', 'JSON', 'SPAN', 'TIME', 'CLOCK', 'SHORT', 'HOUR', 'UNTIL')), null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
select
    *,
    if(metadata.lsn rlike '^ *(0[xX])?[0-9a-fA-F]{1,8}([/][0-9a-fA-F]{1,8}){1} *$', upper(concat_ws('/', lpad(substring_index(trim(leading ' 0xX' from rtrim(metadata.lsn)), '/', 1), 8, '0'), lpad(substring_index(substring_index(trim(leading ' 0xX' from rtrim(metadata.lsn)), '/', 2), '/', -1), 8, '0'))), null) as `section lsn`,
    if(unix_millis(read_at) >= 0, lpad(hex(unix_millis(read_at)), 16, '0'), null) as `section read_timestamp`
from (
select
    *,
    source_metadata as metadata,
    case source
            when 'spanner' then 'spanner_change_stream'
            when 'bigtable' then 'bigtable_change_stream'
            when 'snapshot' then 'snapshots'
            when 'append table' then 'datastream_append'
            when 'datastream' then concat('datastream_', nullif(case
            when source_metadata.lsn like '%/%' or read_method like 'postgres%' then 'postgresql'
            when source_metadata.scn is not null or source_metadata.row_id is not null or read_method like 'oracle%' then 'oracle'
            when source_metadata.lsn like '%:%' or read_method like 'sqlserver%' then 'sqlserver'
            when source_metadata.log_position is not null or source_metadata.binlog_position is not null or read_method like 'mysql%' then 'mysql'
        end, 'postgresql'))
        end as fitting_macro,
    case when read_method rlike '(?i)backfill|_dump$' then true when read_method rlike '(?i)(^|[-_])cdc([-_]|$)|supplementation' then false end as is_backfill,
    case
            when upper(source_metadata.change_type) = 'INSERT' or is_backfill and nullif(source_metadata.change_type, '') is null then 'insert'
            when upper(source_metadata.change_type) in ('UPDATE', 'UPDATE-INSERT') then 'update'
            when upper(source_metadata.change_type) in ('DELETE', 'UPDATE-DELETE') then 'delete'
        end as change_type,
    if(source_timestamp rlike '^\\d{10,15}$', timestamp_millis(try_cast(source_timestamp as bigint)), case when source_timestamp rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(source_timestamp as timestamp) when source_timestamp rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(source_timestamp rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', source_timestamp, concat(source_timestamp, if(source_timestamp like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end) as changed_at,
    if(is_backfill, if(read_timestamp rlike '^\\d{10,15}$', timestamp_millis(try_cast(read_timestamp as bigint)), case when read_timestamp rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(read_timestamp as timestamp) when read_timestamp rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(read_timestamp rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', read_timestamp, concat(read_timestamp, if(read_timestamp like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end), null) as read_at
from (
select *
from (
select record, source, batch, origin
from `lake`.`shop_changes`
where object = 'shop.orders'
) as staged
lateral view inline(array(
    from_json(record, 'uuid string, schema_key string, read_method string, read_timestamp string, source_timestamp string, source_metadata struct<database string, schema string, table string, change_type string, is_deleted string, primary_keys variant, replication_index variant, lsn string, tx_id string, scn string, row_id string, log_position string, binlog_position string>, payload map<string, variant>, avro_types map<string, string>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
)) event
) as events
) as parsed
) as payloads
) as located
) as fields
) as texts
) as readable
) as typed
) as checked
) as judged
