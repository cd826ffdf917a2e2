show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

select count(*) from `lake`.`shop_changes` where object = '#snapshot of shop.orders' and source = 'snapshot' and batch = 5;

select min(batch) from `lake`.`shop_changes` where appended_at >= to_timestamp('2026-11-21T11:33:13.215524000Z') - interval '1 hour';

select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 5;

describe history `demo`.`orders__base` limit 1;

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

set spark.sql.constraintPropagation.enabled = false;

set spark.sql.legacy.storeAnalyzedPlanForView = true;

set spark.sql.autoBroadcastJoinThreshold = -1;

set spark.sql.adaptive.autoBroadcastJoinThreshold = 10m;

cache table reconcile_changes_da2f7fd25744 as
select *
from (
select * except (_change_table, _change_fields, _change_key, _change_schema, _change_macro, _change_is_placed_anew), if(_change_batch < 4, null, _change_table) as _change_table, if(_change_batch < 4, null, _change_fields) as _change_fields, if(_change_batch < 4, null, _change_key) as _change_key, if(_change_batch < 4, null, _change_schema) as _change_schema, if(_change_batch < 4, null, _change_macro) as _change_macro
from (
    select
        `id`,
        `status`,
        `total`,
        `placed_at`,
        `ratio`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _change_table,
        _change_fields,
        _change_key,
        _change_schema,
        _change_macro,
        _change_snapshot,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, _change_record) as _change_record,
        _change_origin as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `id` is null, 'key id is missing or NULL', null),
                if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
                if(_change_error is null and _change_time is null, 'the record has no _change_time, which is the time from which its version is valid', null),
                if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
            ), '') as _change_complaint
        from (

    select
        `id`,
        `status`,
        `total`,
        `placed_at`,
        `ratio`,
        _change_type,
        concat(case when _change_snapshot <> 'before' then '0002' else left(_change_sequence, 4) end, substring(_change_sequence, 5)) as _change_sequence,
        _change_id,
        _change_time,
        _change_transaction,
        _change_batch,
        _change_columns,
        nullif(concat_ws('; ', _change_error, if(_change_error is null and split_part(_change_sequence, '/', 2) = '1' and try_cast(_change_transaction as bigint) is null, 'the record names no transaction, by which the snapshot beside the log tells whether it contains the change', null), if(_change_error is null and _change_snapshot = 'before' and split_part(_change_sequence, '/', 2) = '1' and _change_time > to_timestamp('2026-11-21T11:33:13.215524000Z') + interval '1 day', 'the snapshot beside the log contains the transaction by its id, and the change is a day or more later: the ids of 32 bits have begun anew since the snapshot; stage a new snapshot', null)), '') as _change_error,
        _change_table,
        _change_fields,
        _change_key,
        _change_schema,
        _change_macro,
        _change_record,
        _change_origin,
        _change_snapshot
    from (
    select
        `value id` as `id`,
        `value status` as `status`,
        `value total` as `total`,
        `value placed_at` as `placed_at`,
        `value ratio` as `ratio`,
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
                            concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'string', 'decimal(38,10)', 'timestamp', 'double')[i]),
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
                                when i in (1) then case
                                    when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                    when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                    when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                    when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
                                end
                                when i in (2) then case
                                    when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                        'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + greatest(10, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(28, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + greatest(10, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)))), ',', greatest(10, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ')\'')),
                                        if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 10, ', or double if it is a float at the source', ''),
                                        if(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(38,10)), null) is null, '', ', or `meta: {round: true}`')
                                    )
                                    else 'declare string'
                                end
                                when i in (3) then case
                                    when readable[i] in ('infinity', '-infinity') then 'it is infinity: declare string to keep it, or `meta: {infinity_is_null: true}` to make it NULL'
                                    when readable[i] like '{"date":%' then 'declare timestamp_ntz'
                                    when try_cast(readable[i] as bigint) is not null then 'declare bigint'
                                    when readable[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(readable[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
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
                if(is_backfill, concat('/0/', `section read_timestamp`), concat_ws('/', '/1', `section lsn`)),
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
        coalesce(try_cast(readable[0] as bigint), try_cast(if(readable[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[0] as decimal(38,0)), null) as bigint)) as `value id`,
        readable[1] as `value status`,
        if(readable[2] rlike '^\\s*[-+]?\\d*\\.?\\d{0,10}\\s*$' or readable[2] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[2]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[2] as decimal(38,10)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[2] as decimal(38,10)), null) as `value total`,
        case when readable[3] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(readable[3] as timestamp) when readable[3] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(readable[3] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', readable[3], concat(readable[3], if(readable[3] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value placed_at`,
        if(readable[4] rlike '^[-+.0-9eE\\s]+$', nullif(nullif(try_cast(readable[4] as double), double('Infinity')), double('-Infinity')), if(lower(readable[4]) in ('nan', 'infinity', '-infinity', 'inf', '-inf'), try_cast(readable[4] as double), null)) as `value ratio`
    from (
    -- the text that each type is read from
    select
        *,
        if(
            kinds is not null or left(texts[1], 1) in ('{', '[', '+', '-') or left(texts[3], 1) in ('{', '[', '+', '-'),
            transform(texts, (text, i) -> case
                when i in (1) then case
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
                when i in (3) then case when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '+294247-' then 'infinity' when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '-290308-' then '-infinity' else coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text) end
                else text
            end),
            texts
        ) as readable
    from (
    -- every value as the text that was delivered, digit for digit
    select
        *,
        if(
            schema_of_variant(fields[0]) = 'DOUBLE' or schema_of_variant(fields[1]) like 'D%' or schema_of_variant(fields[2]) = 'DOUBLE' or schema_of_variant(fields[4]) = 'DOUBLE' and cast(fields[4] as string) like '%Infinity',
            transform(fields, (field, i) -> case
                when i in (0, 2) and schema_of_variant(field) = 'DOUBLE' then coalesce(
            get(filter(
                array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
                digits -> try_cast(digits as double) = cast(field as double)
            ), 0),
            '{a number whose digits cannot be found in the record}'
        )
                when i in (1) and schema_of_variant(field) like 'D%' then coalesce(
            get(filter(
                array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
                digits -> try_cast(digits as double) = cast(field as double)
            ), 0),
            '{a number whose digits cannot be found in the record}'
        )
                when i in (4) and schema_of_variant(field) = 'DOUBLE' and cast(field as string) like '%Infinity' then coalesce(
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
        array('id', 'status', 'total', 'placed_at', 'ratio') as names,
        if(map_keys(payload) in (array('id', 'status', 'total', 'placed_at', 'ratio'), array('ID', 'STATUS', 'TOTAL', 'PLACED_AT', 'RATIO')), null, map_keys(payload)) as field_names,
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
    ) as of_log
    lateral view explode(array(_change_sequence)) as _change_place
    lateral view explode(array(case when if(split_part(_change_place, '/', 2) = '0', _change_time <= to_timestamp('2026-11-21T11:33:13.215524000Z') + interval '1 hour', (case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end < 18642 or (case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end < 18650 and case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end not in (18644,18646)))) then 'before' when not split_part(_change_place, '/', 2) = '0' and not (case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end < 18642 or (case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end < 18650 and case
        when try_cast(_change_transaction as bigint) >= 4294967296 then try_cast(_change_transaction as bigint)
        when 0 + try_cast(_change_transaction as bigint) < -2147464998 then 4294967296 + try_cast(_change_transaction as bigint)
        else 0 + try_cast(_change_transaction as bigint)
    end not in (18644,18646))) then 'after' else 'uncertain' end)) as _change_snapshot
    union all
    select
        `value id` as `id`,
        `value status` as `status`,
        `value total` as `total`,
        `value placed_at` as `placed_at`,
        `value ratio` as `ratio`,
        'insert' as _change_type,
        concat('0002/0/', if(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z')) >= 0, lpad(hex(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z'))), 16, '0'), null), '/', concat(if('insert' = 'delete', '0', '1'), '/', lpad(hex(xxhash64('insert', `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))) as _change_sequence,
        '0000' as _change_id,
        to_timestamp('2026-11-21T11:33:13.215524000Z') as _change_time,
        cast(null as string) as _change_transaction,
        batch as _change_batch,
        cast(null as array<string>) as _change_columns,
        nullif(error, '') as _change_error,
        cast(null as string) as _change_table,
        cast(null as string) as _change_fields,
        cast(null as string) as _change_key,
        cast(null as string) as _change_schema,
        cast(null as string) as _change_macro,
        record as _change_record,
        origin as _change_origin,
        'row' as _change_snapshot
    from (
    select
        *,
        inline(array(struct(
            concat_ws(
                '; ',
                if(_corrupt_record is not null or payload is null, 'the record does not have the form of a row of a snapshot', null),
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
    select *, row as payload
    from (
    select *
    from (
    select record, source, batch, origin
    from `lake`.`shop_changes`
    where object = '#snapshot of shop.orders' and source = 'snapshot' and batch = 5
    ) as staged
    lateral view inline(array(
        from_json(record, 'row map<string, variant>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
    )) read
    ) as rows
    ) as payloads
    ) as located
    ) as fields
    ) as texts
    ) as typed
    ) as checked
    ) as judged
        )
        where _change_batch between 2 and 5
    )
)
lateral view explode(array(
    _change_error is null and _change_snapshot <> 'row' and _change_sequence >= '0002'
)) as _change_is_placed_anew
where _change_batch >= 4 or _change_is_placed_anew
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

select count(*) as unreadable, min(_change_error) as reason from reconcile_changes_da2f7fd25744 where _change_snapshot = 'row' and _change_error is not null;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro,
    array_join(array_sort(collect_set(hex(_change_table))), ',') as tables
from reconcile_changes_da2f7fd25744;

cache lazy table reconcile_notes_da2f7fd25744 as
select *
from (
select *
from (
    select
        *,
        min(batch) over (partition by kind, subject, name, spelled, replace(form, 'whole ', '')) as first_batch,
        bool_or(not is_missing) over (partition by kind, subject) as was_present,
        max(if(is_missing, batch, null)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding)
            >= coalesce(max(if(is_missing, null, batch)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding), 0) as is_back,
        names_of_batch <> coalesce(max(struct(batch, names_of_batch)) over (partition by kind, subject order by batch range between unbounded preceding and 1 preceding).names_of_batch, array()) as is_switch
    from (
        select *, array_sort(collect_set(name) over (partition by kind, subject, batch)) as names_of_batch
        from (
            select batch, kind, name, spelled, form, is_declared, records, form <=> 'missing' as is_missing, if(kind = 'column', name, kind) as subject, true as is_of_range
            from (
                select batch, kind, name, spelled, form, is_declared, sum(if(form <=> 'missing', whole_records, records)) as records
                from (
                    select *, case
                        when _change_fields is null then cast(array() as array<string>)
                        when substring(_change_fields, length(letters) + 1, 1) = '=' then from_json(substring(_change_fields, length(letters) + 2), 'array<string>')
                        when substring(_change_fields, length(letters) + 2) = 'id' then array('id', 'status', 'total', 'placed_at', 'ratio')
                        else transform(array('id', 'status', 'total', 'placed_at', 'ratio'), name -> upper(name))
                    end as names
                    from (
                        select
                            _change_batch as batch,
                            _change_fields,
                            _change_key,
                            _change_schema,
                            regexp_extract(_change_fields, '^[A-Z]*', 0) as letters,
                            count(*) as records,
                            count_if(_change_type <> 'delete') as whole_records
                        from reconcile_changes_da2f7fd25744
                        group by _change_batch, _change_fields, _change_key, _change_schema
                    )
                )
                lateral view inline(concat(
                    transform(names, (name, i) -> struct(
                        'column' as kind,
                        lower(name) as name,
                        name as spelled,
                        case
                            when substring(letters, 2 * i + 1, 2) = 'VO' then 'null'
                            when substring(letters, 2 * i + 1, 2) = 'ST' then 'text'
                            when substring(letters, 2 * i + 1, 2) = 'BI' then 'whole number'
                            when substring(letters, 2 * i + 1, 2) in ('DE', 'DO', 'FL') then 'number'
                            when substring(letters, 2 * i + 1, 2) = 'BO' then 'boolean'
                            else 'json'
                        end as form,
                        array_contains(array('id', 'status', 'total', 'placed_at', 'ratio'), lower(name)) as is_declared
                    )),
                    transform(
                        if(_change_fields is null, array(), array_except(array('id', 'status', 'total', 'placed_at', 'ratio'), transform(names, name -> lower(name)))),
                        name -> struct('column' as kind, name as name, cast(null as string) as spelled, 'missing' as form, true as is_declared)
                    ),
                    filter(
                        array(
                            struct('key' as kind, _change_key as name, cast(null as string) as spelled, cast(null as string) as form, true as is_declared),
                            struct('schema' as kind, _change_schema as name, cast(null as string) as spelled, cast(null as string) as form, true as is_declared)
                        ),
                        fact -> fact.name is not null
                    )
                )) fact as kind, name, spelled, form, is_declared
                where form is null or form <> 'missing' or whole_records > 0
                group by batch, kind, name, spelled, form, is_declared
            )
            union all
            select batch, kind, name, spelled, form, is_declared, records, form <=> 'missing', if(kind = 'column', name, kind), false
            from `demo`.`reconcile_columns_seen`
            where relation = 'demo.orders' and batch < 4
        )
    )
)
where is_of_range and (is_missing or kind = 'column' and not is_declared or kind = 'column' and batch = first_batch or is_back or kind <> 'column' and is_switch)
)
where '00000000-0000-0000-0000-000000000000 reconcile_notes_da2f7fd25744' is not null;

select kind, name, is_declared, bool_or(form <=> 'missing') as is_missing, bool_or(was_present) as was_present
from reconcile_notes_da2f7fd25744
group by kind, name, is_declared
order by kind, name;

set `spark.databricks.delta.commitInfo.userMetadata` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

drop view if exists reconcile_removed_da2f7fd25744;

drop view if exists reconcile_records_da2f7fd25744;

drop view if exists reconcile_keys_da2f7fd25744;

drop view if exists reconcile_rows_da2f7fd25744;

cache table reconcile_keys_da2f7fd25744 as
select *
from (
select distinct `id`
from (
    select `id`
    from reconcile_changes_da2f7fd25744
    where _change_error is null and _change_snapshot <> 'row'
    union all
    select coalesce(staged.`id`, live.`id`) as `id`
    from (
        select *
        from reconcile_changes_da2f7fd25744
        where _change_error is null and _change_snapshot = 'row' and _change_batch = 5
    ) as staged
    full outer join (
        select *
        from `demo`.`orders__base`
        where valid_to is null and _change_type <> 'delete'
    ) as live
        on staged.`id` = live.`id`
    where staged._change_sequence is null or live._change_sequence is null or not (staged.`status` <=> live.`status` and staged.`total` <=> live.`total` and staged.`placed_at` <=> live.`placed_at` and cast(staged.`ratio` as string) <=> cast(live.`ratio` as string))
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_keys_da2f7fd25744' is not null;

cache table reconcile_records_da2f7fd25744 as
select *
from (
select
    *,
    coalesce(_change_is_of_snapshot and if(
        _change_type = 'delete',
        not coalesce(_change_preceding.is_live, false),
        coalesce(_change_preceding.is_live and _change_carried.`status` <=> _change_preceding.carried.`status` and _change_carried.`total` <=> _change_preceding.carried.`total` and _change_carried.`placed_at` <=> _change_preceding.carried.`placed_at` and cast(_change_carried.`ratio` as string) <=> cast(_change_preceding.carried.`ratio` as string), false)
    ), false) as _change_is_redundant
from (
    select
        *,
        lag(struct(_change_type <> 'delete' as is_live, _change_carried as carried)) over (partition by `id` order by _change_sequence) as _change_preceding
    from (
        select
            * except (_change_place, _change_knowns),
            get(filter(_change_knowns, known -> known.sequence = _change_sequence), 0).known as _change_known,
            transform(_change_knowns, known -> known.sequence) as _change_known_sequences,
            cardinality(_change_knowns) > 0 as _change_was_known
        from (
            select
                `id`,
                _change_place,
                _change_is_of_snapshot,
                max(_change_sequence) as _change_sequence,
                first(_change_type) as _change_type,
                min(struct(_change_time, _change_id))._change_time as _change_time,
                min(struct(_change_time, _change_id))._change_id as _change_id,
                min(_change_batch) as _change_batch,
                first(_change_carried) as _change_carried,
                max(_change_side) as _change_side,
                collect_list(if(_change_known is null, null, struct(_change_sequence as sequence, _change_known as known))) as _change_knowns,
                count_if(_change_is_of_range) as _change_records
            from (
                select
                    *,
                    _change_id in ('0000') as _change_is_of_snapshot,
                    if(_change_id in ('0000'), _change_sequence, substring(_change_sequence, 5)) as _change_place
                from (
                    select `id`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, if(_change_type = 'delete', null, struct(`status`, `total`, `placed_at`, `ratio`)) as _change_carried, cast(null as struct<valid_from: timestamp, valid_to: timestamp, _change_repeats: boolean, _change_valid_to: timestamp, _change_id: string, _change_time: timestamp>) as _change_known, _change_snapshot as _change_side, _change_snapshot <> 'row' and _change_batch >= 4 as _change_is_of_range
                    from reconcile_changes_da2f7fd25744
                    where _change_error is null
                    union all
                    select `id`, 'delete', _change_sequence, _change_id, _change_time, _change_batch, null, null, 'row', false
                    from (
                        select *
                        from reconcile_keys_da2f7fd25744
                        lateral view inline(array(
                            struct(concat('0002/0/', if(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z')) >= 0, lpad(hex(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z'))), 16, '0'), null), '/0/0000000000000000'), '0000', to_timestamp('2026-11-21T11:33:13.215524000Z'), 5)
                        )) as _change_sequence, _change_id, _change_time, _change_batch
                    ) as absent
                    left anti join (
                        select `id`, _change_batch
                        from reconcile_changes_da2f7fd25744
                        where _change_error is null and _change_snapshot = 'row'
                    ) as staged
                        on staged.`id` = absent.`id` and staged._change_batch = absent._change_batch
                    union all
                    select `id`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, struct(`status`, `total`, `placed_at`, `ratio`), struct(valid_from, valid_to, _change_repeats, _change_valid_to, _change_id, _change_time), null, false
                    from `demo`.`orders__base`
                ) as record
                left semi join reconcile_keys_da2f7fd25744 as touched
                    on touched.`id` = record.`id`
            )
            group by `id`, _change_place, _change_is_of_snapshot
        )
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_records_da2f7fd25744' is not null;

cache table reconcile_removed_da2f7fd25744 as
select *
from (
select `id`, _change_known_sequence as _change_sequence
from reconcile_records_da2f7fd25744
lateral view explode(_change_known_sequences) as _change_known_sequence
where _change_is_redundant or _change_known_sequence <> _change_sequence
)
where '00000000-0000-0000-0000-000000000000 reconcile_removed_da2f7fd25744' is not null;

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    *,
    _change_known is null as _change_is_new,
    _change_known is not null and not (
        valid_from <=> _change_known.valid_from and
        valid_to <=> _change_known.valid_to and
        _change_repeats <=> _change_known._change_repeats and
        _change_valid_to <=> _change_known._change_valid_to and
        _change_id <=> _change_known._change_id and
        _change_time <=> _change_known._change_time
    ) as _change_is_revised
from (
    select
        *,
        last_value(if(_change_is_version and not coalesce(_change_is_repeated, false), struct(valid_to), null), true) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and current row).valid_to as _change_valid_to
    from (
        select
            *,
            last_value(if(_change_is_version, _change_repeats, null), true) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as _change_is_repeated
        from (
            select
                *,
                coalesce(
                    _change_is_version and _change_before.valid_to = valid_from
                    and `status` <=> _change_before.`status`
                    and `total` <=> _change_before.`total`
                    and `placed_at` <=> _change_before.`placed_at`
                    and `ratio` <=> _change_before.`ratio`,
                    false
                ) as _change_repeats
            from (
                select
                    *,
                    last_value(if(_change_is_version, struct(valid_to, `status`, `total`, `placed_at`, `ratio`), null), true) over (partition by `id` order by _change_sequence rows between unbounded preceding and 1 preceding) as _change_before,
                    coalesce(lag(_change_is_version) over (partition by `id` order by _change_sequence), false) as _change_was_live
                from (
                    select * except (_change_carried), _change_carried.`status`, _change_carried.`total`, _change_carried.`placed_at`, _change_carried.`ratio`, _change_type <> 'delete' as _change_is_version
                    from (
                        select
                            *,
                            min(_change_time) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and current row) as valid_from,
                            min(_change_time) over (partition by `id` order by _change_sequence desc rows between unbounded preceding and 1 preceding) as valid_to
                        from (
                            select *
                            from reconcile_records_da2f7fd25744
                            where not _change_is_redundant
                        )
                    )
                )
            )
        )
    )
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select *, snapshot_rows - snapshot_inserted - snapshot_updated as snapshot_duplicate
from (
    select
        200 as delivered,
        (select count_if(_change_error is not null and _change_snapshot <> 'row') from reconcile_changes_da2f7fd25744) as quarantined,
        coalesce(sum(_change_records - if(_change_is_applied, 1, 0)), 0) as duplicate,
        0 as superseded,
        0 as pending,
        count_if(_change_is_applied) as applied,
        count_if(_change_is_applied and _change_effect = 'inserted') as inserted,
        count_if(_change_is_applied and _change_effect = 'updated') as updated,
        count_if(_change_is_applied and _change_effect = 'deleted') as deleted,
        count_if(_change_is_applied and _change_effect = 'tombstoned') as tombstoned,
        count_if(_change_is_new) as new_keys,
        count_if(_change_is_new or _change_is_revised) + (select count(*) from reconcile_removed_da2f7fd25744) as merged,
        max(if(_change_is_new, _change_batch, null)) as base_batch,
        (select count_if(_change_snapshot = 'row' and _change_batch = 5) from reconcile_changes_da2f7fd25744) as snapshot_rows,
        count_if(_change_is_of_snapshot and _change_is_new and left(_change_sequence, 4) = '0002' and _change_effect = 'inserted') as snapshot_inserted,
        count_if(_change_is_of_snapshot and _change_is_new and left(_change_sequence, 4) = '0002' and _change_effect = 'updated') as snapshot_updated,
        count_if(_change_is_of_snapshot and _change_is_new and left(_change_sequence, 4) = '0002' and _change_effect = 'deleted') as snapshot_deleted,
        0 as snapshot_superseded,
        (
            select count_if(
                newest.side = 'uncertain' and split_part(newest.sequence, '/', 2) = '1'
                and if(staged is null, newest.type <> 'delete', newest.type = 'delete' or not (newest.carried.`status` <=> staged.carried.`status` and newest.carried.`total` <=> staged.carried.`total` and newest.carried.`placed_at` <=> staged.carried.`placed_at` and cast(newest.carried.`ratio` as string) <=> cast(staged.carried.`ratio` as string))))
            from (
                select
                    max_by(struct(_change_side as side, _change_sequence as sequence, _change_type as type, _change_carried as carried), _change_sequence) as newest,
                    max_by(struct(_change_carried as carried), if(_change_side = 'row' and _change_type <> 'delete' and _change_batch = 5, _change_sequence, null)) as staged
                from reconcile_records_da2f7fd25744
                group by `id`
            )
        ) as snapshot_in_doubt
    from (
        select
            *,
            _change_records > 0 and not _change_was_known as _change_is_applied,
            case
                when _change_is_version then if(_change_was_live, 'updated', 'inserted')
                else if(_change_was_live, 'deleted', 'tombstoned')
            end as _change_effect
        from reconcile_fold_da2f7fd25744
    )
);

select count(*) as changes, date_format(min(_change_time), 'yyyy-MM-dd HH:mm:ssXXX') as first_time
from (
    select *, max(if(_change_is_new, null, struct(_change_sequence, _change_time))) over (partition by `id`) as known
    from reconcile_fold_da2f7fd25744
)
where
    _change_is_new and _change_sequence < known._change_sequence
    and split_part(_change_sequence, '/', 2) = '1'
    and left(_change_sequence, 4) = left(known._change_sequence, 4)
    and _change_time >= known._change_time + interval 1 hour;

alter table `demo`.`orders__base` set tblproperties (
    'reconcile.snapshot_applied' = '2 0000'
);

insert into `demo`.`orders__quarantine`
replace where _change_batch between 4 and 5
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

merge into `demo`.`orders__base` as base
using (
    select /*+ broadcast(record) */ `id`, `status`, `total`, `placed_at`, `ratio`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, valid_from, valid_to, _change_repeats, _change_valid_to, false as _change_is_removed
    from reconcile_fold_da2f7fd25744 as record
    where (_change_is_new or _change_is_revised)
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
    union all
    select `id`, null as `status`, null as `total`, null as `placed_at`, null as `ratio`, null as _change_type, _change_sequence, null as _change_id, null as _change_time, null as _change_batch, null as valid_from, null as valid_to, null as _change_repeats, null as _change_valid_to, true
    from reconcile_removed_da2f7fd25744
    where if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as version
on version.`id` = base.`id` and version._change_sequence = base._change_sequence
when matched and version._change_is_removed then delete
when matched then update set
    valid_from = version.valid_from,
    valid_to = version.valid_to,
    _change_repeats = version._change_repeats,
    _change_valid_to = version._change_valid_to,
    _change_id = version._change_id,
    _change_time = version._change_time
when not matched and not version._change_is_removed then insert (`id`, `status`, `total`, `placed_at`, `ratio`, _change_type, _change_sequence, _change_id, _change_time, _change_batch, valid_from, valid_to, _change_repeats, _change_valid_to)
values (version.`id`, version.`status`, version.`total`, version.`placed_at`, version.`ratio`, version._change_type, version._change_sequence, version._change_id, version._change_time, version._change_batch, version.valid_from, version.valid_to, version._change_repeats, version._change_valid_to);

reset `spark.databricks.delta.commitInfo.userMetadata`;

insert into `demo`.`reconcile_ledger` by name
select
    'demo.orders' as relation,
    'shop.orders' as object,
    'apply' as kind,
    4 as first_batch,
    5 as last_batch,
    200 as delivered,
    7 as applied,
    0 as superseded,
    0 as duplicate,
    1 as quarantined,
    0 as pending,
    2 as inserted,
    5 as updated,
    0 as deleted,
    0 as tombstoned,
    cast(null as timestamp) as cut_time,
    cast(null as timestamp) as watermark,
    5 as base_batch,
    cast(null as bigint) as retried,
    cast(null as bigint) as deletes_batch,
    <seconds> as seconds,
    '00000000-0000-0000-0000-000000000000' as invocation_id,
    current_timestamp() as recorded_at,
    account.entry + 1 as entry,
    timestamp_micros(1767225600000000) as last_appended_at,
    0 as zero_dates,
    (
        select array_sort(array_agg(struct(example.reason as reason, example.key as example_key, example.origin as example_origin, batches as batches)))
        from (
            select if(place > 100, null, form) as form, min(if(place > 100, null, example)) as example, array_sort(flatten(array_agg(batches))) as batches
            from (
                select *, row_number() over (order by records desc, form) as place
                from (
                    select form, sum(records) as records, min(example) as example, array_agg(struct(batch, records)) as batches
                    from (
                        select
                            regexp_replace(_change_error, '\'[^\']*\'', '') as form,
                            _change_batch as batch,
                            count(*) as records,
                            min(struct(_change_batch, _change_id, origin, _change_error as reason, nullif(to_json(transform(array(from_json(record, 'payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> map_filter(
            coalesce(parsed.payload, parsed.row, parsed.keys, if(parsed.mods is null, null, if(contains(_change_id, '/backfill/'), from_json(substring_index(_change_id, '/backfill/', -1), 'map<string,string>'), get(parsed.mods, coalesce(try_cast(substring_index(_change_id, '/', -1) as int), 0)).keys)), map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('id') and value is not null
        ))[0]), '{}') as key)) as example
                        from (
                            select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
                            from reconcile_changes_da2f7fd25744
                            where _change_error is not null
                        )
                        group by regexp_replace(_change_error, '\'[^\']*\'', ''), _change_batch
                    )
                    group by form
                )
            )
            group by if(place > 100, null, form)
        )
    ) as quarantine_reasons,
    (select count(*) from `demo`.`orders__base`) as stored_rows
from (
    select
        coalesce(max(last_batch), 0) as ledger_batch,
        coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
        coalesce(max(place.entry), 0) as entry,
        max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
        coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
        coalesce(max(retried), 0) as ledger_retried,
        max_by(invocation_id, place) as invocation
    from (
        select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
        from (
            select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, invocation_id, struct(coalesce(entry, 0) as entry, recorded_at) as place
            from `demo`.`reconcile_ledger`
            where relation = 'demo.orders'
        )
    )
    where rebuilt is null or place >= rebuilt
) as account
where if(account.ledger_batch = 3 and account.entry = 3, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
union all
select
    'demo.orders' as relation,
    'shop.orders' as object,
    'snapshot' as kind,
    5 as first_batch,
    5 as last_batch,
    0 as delivered,
    0 as applied,
    0 as superseded,
    0 as duplicate,
    0 as quarantined,
    0 as pending,
    0 as inserted,
    0 as updated,
    0 as deleted,
    0 as tombstoned,
    cast(null as timestamp) as cut_time,
    cast(null as timestamp) as watermark,
    5 as base_batch,
    cast(null as bigint) as retried,
    cast(null as bigint) as deletes_batch,
    <seconds> as seconds,
    '00000000-0000-0000-0000-000000000000' as invocation_id,
    current_timestamp() as recorded_at,
    account.entry + 2 as entry,
    timestamp_micros(1767225600000000) as last_appended_at,
    0 as zero_dates,
    cast(null as array<struct<reason: string, example_key: string, example_origin: string, batches: array<struct<batch: bigint, records: bigint>>>>) as quarantine_reasons,
    cast(null as bigint) as stored_rows
from (
    select
        coalesce(max(last_batch), 0) as ledger_batch,
        coalesce(max_by(base_batch, place), 0) as ledger_base_batch,
        coalesce(max(place.entry), 0) as entry,
        max_by(unix_micros(last_appended_at), struct(last_batch, place)) as last_appended_at,
        coalesce(max_by(deletes_batch, place) filter (where deletes_batch is not null), 0) as ledger_deletes_batch,
        coalesce(max(retried), 0) as ledger_retried,
        max_by(invocation_id, place) as invocation
    from (
        select *, max(if(kind = 'rebuild', place, null)) over () as rebuilt
        from (
            select kind, last_batch, base_batch, last_appended_at, deletes_batch, retried, invocation_id, struct(coalesce(entry, 0) as entry, recorded_at) as place
            from `demo`.`reconcile_ledger`
            where relation = 'demo.orders'
        )
    )
    where rebuilt is null or place >= rebuilt
) as account
where if(account.ledger_batch = 3 and account.entry = 3, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'));

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

drop view if exists reconcile_removed_da2f7fd25744;

drop view if exists reconcile_records_da2f7fd25744;

drop view if exists reconcile_keys_da2f7fd25744;

drop view if exists reconcile_rows_da2f7fd25744;

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined; repaired at pg_snapshot 18642:18650:18644,18646: 0 inserted, 0 updated, 0 deleted
