show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select name, min(batch) as first_batch from `demo`.`reconcile_columns_seen` where relation = 'demo.orders' and kind = 'column' and spelled is not null and name in ('product') group by name;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

select unix_micros(max(appended_at)) from `lake`.`shop_changes` where batch = 5;

create or replace table `demo`.`orders__base`
using iceberg


tblproperties (
    'format-version' = '3',
    'write.merge.mode' = 'merge-on-read',
    'write.update.mode' = 'merge-on-read',
    'write.delete.mode' = 'merge-on-read',
    'write.merge.isolation-level' = 'serializable',
    'write.metadata.metrics.column._change_sequence' = 'full',
    'reconcile.declaration' = '{"columns": "832e8f79f3901423205886c73476785e", "sequence": "c4ca4238a0b923820dcc509a6f75849b", "sources": "beaaebc91044f0269a8e7ec8ac42d299", "staging": "add1835c146bd9198e342164475daf7f", "unique_key": "b2f6a3b25d2b5c8ad1ce163558e81247"}',
    'reconcile.columns' = '5b7b226e616d65223a20226f726465725f6964222c202274797065223a2022626967696e74227d2c207b226e616d65223a20226c696e65222c202274797065223a2022696e74227d2c207b22686173686564223a207b226e616d65223a202261727469636c65222c202274797065223a20227661726368617228313029227d2c20226e616d65223a202270726f64756374222c202273746f726564223a202261727469636c65222c202274797065223a20227661726368617228323029222c2022776173223a205b2261727469636c65225d7d2c207b22686173686564223a207b226e616d65223a20227175616e74697479222c202274797065223a2022736d616c6c696e74227d2c20226e616d65223a20227175616e74697479222c202274797065223a2022696e74227d2c207b22686173686564223a207b226e616d65223a20227072696365222c202274797065223a2022646563696d616c2831302c3229227d2c20226e616d65223a20227072696365222c202274797065223a2022646563696d616c2831322c3429227d2c207b2264726f70706564223a20747275652c20226e616d65223a2022636f6c6f7572222c202272656d6f766564223a20747275652c202274797065223a2022737472696e67227d5d'
)
as
select
    `order_id`,
    `line`,
    `product` as `article`,
    `quantity`,
    `price`,
    _change_sequence,
    _change_time,
    _change_batch,
    _deleted as `_change_deleted`
from (
    select
        `order_id`,
        `line`,
        `product`,
        `quantity`,
        cast(`price` as decimal(12,4)) as `price`,
        _change_sequence,
        _change_time,
        _change_batch,
        _deleted
    from (select `order_id`, `line`, `article` as `product`, `quantity`, `price`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted from `demo`.`orders__base`)
);

select concat_ws(' ', latest_snapshot_id, latest_sequence_number) as snapshot from `demo`.`orders__base`.metadata_log_entries order by timestamp desc limit 1;

alter table `demo`.`orders__base` set tblproperties (
    'reconcile.declared_in' = '41 3'
);

show tblproperties `demo`.`orders__base`;

select history.snapshot_id, history.parent_id, snapshots.summary['reconcile'], history.is_current_ancestor from `demo`.`orders__base`.history as history left join `demo`.`orders__base`.snapshots as snapshots on snapshots.snapshot_id = history.snapshot_id order by history.made_current_at desc limit 100;

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
select
    `order_id`,
    `line`,
    `product`,
    `quantity`,
    `price`,
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
    _change_complaint as _change_error,
    if(_change_complaint is null, null, _change_record) as _change_record,
    _change_origin as _change_origin
from (
    select
        *,
        nullif(concat_ws(
            '; ',
            _change_error,
            if(_change_error is null and `order_id` is null, 'key order_id is missing or NULL', null),
            if(_change_error is null and `line` is null, 'key line is missing or NULL', null),
            if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
        ), '') as _change_complaint
    from (

select
    `value order_id` as `order_id`,
    `value line` as `line`,
    `value product` as `product`,
    `value quantity` as `quantity`,
    `value price` as `price`,
    change_type as _change_type,
    sequence as _change_sequence,
    uuid as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
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
            if(not is_backfill and `section log_file` is null, 'log_file, which orders changes, is missing or unreadable', null),
            if(not is_backfill and `section log_position` is null, 'log_position, which orders changes, is missing or unreadable', null),
            if(
                array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
                concat_ws('; ', transform(names, (name, i) -> case
                    when i = 5 then null
                    when lost[i] then concat_ws(
                        '; ',
                        concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'int', 'varchar(20)', 'int', 'decimal(12,4)', 'string')[i]),
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
                            when i in (1, 3) then case
                                when try_cast(readable[i] as bigint) is not null then 'declare bigint'
                                when readable[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when readable[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(readable[i]) in ('true', 'false') then 'declare boolean'
                                when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(readable[i] as int), try_cast(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(38,0)), null) as int)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (2) then case
                                when char_length(readable[i]) > 20 then 'declare string'
                                when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
                            end
                            when i in (4) then case
                                when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(8, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)))), ',', greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ')\'')),
                                    if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 4, ', or double if it is a float at the source', ''),
                                    if(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(12,4)), null) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (5) then case
                                when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
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
            if(is_backfill, concat('/0/', `section read_timestamp`), concat_ws('/', '/1', `section log_file`, `section log_position`)),
            '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value product` is null, `value product`, `value colour` is null, `value colour`, `value line` is null, `value line`, `value order_id` is null, `value order_id`, isnull(`value price`), if(try_cast(`value price` as decimal(10,2)) = `value price`, try_cast(`value price` as decimal(10,2)), null), if(try_cast(`value price` as decimal(10,2)) = `value price`, null, format_number(`value price`, 38)), isnull(`value quantity`), if(try_cast(`value quantity` as smallint) = `value quantity`, try_cast(`value quantity` as smallint), null), if(try_cast(`value quantity` as smallint) = `value quantity`, null, cast(`value quantity` as string)))), 16, '0'))
        ) as sequence
    )))
from (
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        texts[0] is not null and `value order_id` is null,
        texts[1] is not null and `value line` is null,
        texts[2] is not null and `value product` is null,
        texts[3] is not null and `value quantity` is null,
        texts[4] is not null and `value price` is null,
        false
    ) as lost
from (
select
    *,
    coalesce(try_cast(readable[0] as bigint), try_cast(if(readable[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[0] as decimal(38,0)), null) as bigint)) as `value order_id`,
    coalesce(try_cast(readable[1] as int), try_cast(if(readable[1] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[1]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[1] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[1] as decimal(38,0)), null) as int)) as `value line`,
    if(char_length(readable[2]) <= 20, readable[2], null) as `value product`,
    coalesce(try_cast(readable[3] as int), try_cast(if(readable[3] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[3]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[3] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[3] as decimal(38,0)), null) as int)) as `value quantity`,
    if(readable[4] rlike '^\\s*[-+]?\\d*\\.?\\d{0,4}\\s*$' or readable[4] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[4]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[4] as decimal(12,4)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[4] as decimal(12,4)), null) as `value price`,
    readable[5] as `value colour`
from (
-- the text that each type is read from
select
    *,
    if(
        kinds is not null or left(texts[2], 1) in ('{', '[', '+', '-') or left(texts[5], 1) in ('{', '[', '+', '-'),
        transform(texts, (text, i) -> case
            when i in (2, 5) then case
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
            else text
        end),
        texts
    ) as readable
from (
-- every value as the text that was delivered, digit for digit
select
    *,
    if(
        schema_of_variant(fields[0]) = 'DOUBLE' or schema_of_variant(fields[1]) = 'DOUBLE' or schema_of_variant(fields[2]) like 'D%' or schema_of_variant(fields[3]) = 'DOUBLE' or schema_of_variant(fields[4]) = 'DOUBLE' or schema_of_variant(fields[5]) like 'D%',
        transform(fields, (field, i) -> case
            when i in (0, 1, 3, 4) and schema_of_variant(field) = 'DOUBLE' then coalesce(
        get(filter(
            array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
            digits -> try_cast(digits as double) = cast(field as double)
        ), 0),
        '{a number whose digits cannot be found in the record}'
    )
            when i in (2, 5) and schema_of_variant(field) like 'D%' then coalesce(
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
    array('order_id', 'line', coalesce(get(filter(array('product', 'article'), name -> array_contains(transform(map_keys(payload), field -> lower(field)), lower(name))), 0), 'product'), 'quantity', 'price', 'colour') as names,
    if(map_keys(payload) in (array('order_id', 'line', 'product', 'quantity', 'price', 'colour'), array('ORDER_ID', 'LINE', 'PRODUCT', 'QUANTITY', 'PRICE', 'COLOUR')), null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
select
    *,
    if(regexp_extract(coalesce(metadata.log_file, metadata.binlog_file), '(\\d+)\\s*$', 1) rlike '^\\s*\\d{1,18}\\s*$', lpad(hex(try_cast(regexp_extract(coalesce(metadata.log_file, metadata.binlog_file), '(\\d+)\\s*$', 1) as bigint)), 16, '0'), null) as `section log_file`,
    if(coalesce(metadata.log_position, metadata.binlog_position) rlike '^\\s*\\d{1,18}\\s*$', lpad(hex(try_cast(coalesce(metadata.log_position, metadata.binlog_position) as bigint)), 16, '0'), null) as `section log_position`,
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
            when source_metadata.log_position is not null or source_metadata.binlog_position is not null or read_method like 'mysql%' then 'mysql'
            when source_metadata.scn is not null or source_metadata.row_id is not null or read_method like 'oracle%' then 'oracle'
            when source_metadata.lsn like '%/%' or read_method like 'postgres%' then 'postgresql'
            when source_metadata.lsn like '%:%' or read_method like 'sqlserver%' then 'sqlserver'
        end, 'mysql'))
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
    from_json(record, 'uuid string, schema_key string, read_method string, read_timestamp string, source_timestamp string, source_metadata struct<database string, schema string, table string, change_type string, is_deleted string, primary_keys variant, replication_index variant, log_file string, log_position string, binlog_file string, binlog_position string, scn string, row_id string, lsn string>, payload map<string, variant>, avro_types map<string, string>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
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
    )
    where _change_batch between 4 and 5
)
)
where '00000000-0000-0000-0000-000000000000 reconcile_changes_da2f7fd25744' is not null;

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
                        when substring(_change_fields, length(letters) + 2) = 'order_id' then array('order_id', 'line', 'product', 'quantity', 'price', 'colour')
                        else transform(array('order_id', 'line', 'product', 'quantity', 'price', 'colour'), name -> upper(name))
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
                        case lower(name) when 'article' then 'product' else lower(name) end as name,
                        name as spelled,
                        case
                            when substring(letters, 2 * i + 1, 2) = 'VO' then 'null'
                            when substring(letters, 2 * i + 1, 2) = 'ST' then 'text'
                            when substring(letters, 2 * i + 1, 2) = 'BI' then 'whole number'
                            when substring(letters, 2 * i + 1, 2) in ('DE', 'DO', 'FL') then 'number'
                            when substring(letters, 2 * i + 1, 2) = 'BO' then 'boolean'
                            else 'json'
                        end as form,
                        array_contains(array('order_id', 'line', 'product', 'quantity', 'price'), case lower(name) when 'article' then 'product' else lower(name) end) as is_declared
                    )),
                    transform(
                        if(_change_fields is null, array(), array_except(array('order_id', 'line', 'product', 'quantity', 'price'), transform(names, name -> case lower(name) when 'article' then 'product' else lower(name) end))),
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
            select batch, kind, if(kind = 'column', case name when 'article' then 'product' else name end, name), spelled, form, is_declared, records, form <=> 'missing', if(kind = 'column', if(kind = 'column', case name when 'article' then 'product' else name end, name), kind), false
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

set `spark.sql.iceberg.snapshot-property.reconcile` = `reconcile da2f7fd25744 5 1767225600000000 00000000-0000-0000-0000-000000000000`;

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    newest.*,
    base._change_sequence as _change_base_sequence,
    base._deleted as _change_base_deleted,
    base._change_time as _change_base_time
from (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `order_id`,
                    `line`,
                    if(_change_type = 'delete', null, `product`) as `product`,
                    if(_change_type = 'delete', null, `quantity`) as `quantity`,
                    if(_change_type = 'delete', null, `price`) as `price`,
                    _change_sequence,
                    _change_time,
                    _change_batch,
                    _change_type = 'delete' as _deleted
                ),
                struct(_change_sequence, -_change_batch)
            ) as newest,
            count(*) as records,
            collect_set(_change_sequence) as sequences
        from reconcile_changes_da2f7fd25744
        where _change_error is null
        group by `order_id`, `line`
    )
) as newest
left join (
    select /*+ broadcast(change) */ `order_id`, `line`, _change_sequence, _deleted, _change_time
    from (select `order_id`, `line`, `article` as `product`, `quantity`, `price`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted from `demo`.`orders__base`) as known
    left semi join reconcile_changes_da2f7fd25744 as change
        on change.`order_id` = known.`order_id` and change.`line` = known.`line`
) as base
    on newest.`order_id` = base.`order_id` and newest.`line` = base.`line`
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select
    200 as delivered,
    (select count_if(_change_error is not null) from reconcile_changes_da2f7fd25744) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + if(array_contains(_change_sequences, _change_base_sequence), 1, 0)), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and (sequence <> _change_sequence or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged) as merged,
    max(if(_change_is_merged, _change_batch, null)) as base_batch
from (
    select
        *,
        (_change_base_sequence is null or _change_sequence > _change_base_sequence) as _change_is_merged,
        _change_is_merged as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from reconcile_fold_da2f7fd25744
);

insert into `demo`.`orders__quarantine`
replace where _change_batch between 4 and 5
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from reconcile_changes_da2f7fd25744
where _change_error is not null;

set spark.sql.join.preferSortMergeJoin = false;

set spark.sql.autoBroadcastJoinThreshold = 100m;

merge into `demo`.`orders__base` as base
using (
    select /*+ broadcast(record) */ *
    from reconcile_fold_da2f7fd25744 as record
    where (_change_base_sequence is null or _change_sequence > _change_base_sequence)
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as newest
on newest.`order_id` = base.`order_id` and newest.`line` = base.`line`
when matched and newest._change_sequence > base._change_sequence then update set
    `order_id` = newest.`order_id`,
    `line` = newest.`line`,
    `article` = newest.`product`,
    `quantity` = newest.`quantity`,
    `price` = newest.`price`,
    _change_sequence = newest._change_sequence,
    _change_time = newest._change_time,
    _change_batch = newest._change_batch,
    `_change_deleted` = newest._deleted
when not matched then insert (`order_id`, `line`, `article`, `quantity`, `price`, _change_sequence, _change_time, _change_batch, `_change_deleted`)
values (newest.`order_id`, newest.`line`, newest.`product`, newest.`quantity`, newest.`price`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted);

set spark.sql.autoBroadcastJoinThreshold = -1;

reset `spark.sql.iceberg.snapshot-property.reconcile`;

merge into `demo`.`reconcile_ledger` as known
using (
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
                coalesce(parsed.payload, parsed.row, parsed.keys, if(parsed.mods is null, null, if(contains(_change_id, '/backfill/'), from_json(substring_index(_change_id, '/backfill/', -1), 'map<string,string>'), get(parsed.mods, coalesce(try_cast(substring_index(_change_id, '/', -1) as int), 0)).keys)), map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('order_id', 'line') and value is not null
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
) as incoming
on known.relation = 'demo.orders' and known.invocation_id = incoming.invocation_id and known.recorded_at = incoming.recorded_at
when matched then update set seconds = incoming.seconds
when not matched then insert *;

drop view if exists reconcile_notes_da2f7fd25744;

drop view if exists reconcile_fold_da2f7fd25744;

drop view if exists reconcile_changes_da2f7fd25744;

create or replace view `demo`.`orders__changes`
tblproperties ('reconcile.definition' = 'dfde83c50bfcc3e058fa45ac834220ee')
as

select
    `value order_id` as `order_id`,
    `value line` as `line`,
    `value product` as `product`,
    `value quantity` as `quantity`,
    `value price` as `price`,
    change_type as _change_type,
    sequence as _change_sequence,
    uuid as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
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
            if(not is_backfill and `section log_file` is null, 'log_file, which orders changes, is missing or unreadable', null),
            if(not is_backfill and `section log_position` is null, 'log_position, which orders changes, is missing or unreadable', null),
            if(
                array_contains(lost, true) or cardinality(array_distinct(lower_names)) < cardinality(lower_names),
                concat_ws('; ', transform(names, (name, i) -> case
                    when i = 5 then null
                    when lost[i] then concat_ws(
                        '; ',
                        concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'int', 'varchar(20)', 'int', 'decimal(12,4)', 'string')[i]),
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
                            when i in (1, 3) then case
                                when try_cast(readable[i] as bigint) is not null then 'declare bigint'
                                when readable[i] rlike '^[-+]?\\d{1,20}$' then 'declare decimal(20,0)'
                                when readable[i] rlike '^[-+]?\\d{1,38}$' then 'declare decimal(38,0)'
                                when lower(readable[i]) in ('true', 'false') then 'declare boolean'
                                when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(19, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ',', length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)), ')\'')),
                                    if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 0, ', or double if it is a float at the source', ''),
                                    if(coalesce(try_cast(readable[i] as int), try_cast(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(38,0)), null) as int)) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (2) then case
                                when char_length(readable[i]) > 20 then 'declare string'
                                when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
                            end
                            when i in (4) then case
                                when readable[i] rlike '^[-+]?\\d*[.]?\\d+$' then concat(
                                    'declare ', if(length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1)) + greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))) > 38, 'string for all digits', concat('\'decimal(', least(38, greatest(8, length(regexp_extract(readable[i], '^[-+]?0*(\\d*)', 1))) + greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)))), ',', greatest(4, length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1))), ')\'')),
                                    if(length(regexp_extract(readable[i], '[.](\\d*?)0*$', 1)) > 4, ', or double if it is a float at the source', ''),
                                    if(if(readable[i] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$', try_cast(readable[i] as decimal(12,4)), null) is null, '', ', or `meta: {round: true}`')
                                )
                                else 'declare string'
                            end
                            when i in (5) then case
                                when get(kinds, i) = 'json' and try_parse_json(texts[i]) is null and get_json_object(texts[i], '$') is not null and cardinality(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:')) > cardinality(array_distinct(regexp_extract_all(texts[i], '"([^"\\\\]*+)"\\s*:'))) then 'an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one'
                                when get(kinds, i) = 'json' and left(texts[i], 1) not in ('{', '[') and try_parse_json(texts[i]) is not null then 'declare it with `meta: {encoding: json}`'
                                when texts[i] like '%"nestedArray":%' then 'declare an array, for example array<string>'
                                when texts[i] like '{"srid":%' then 'declare variant, or keep string with `meta: {encoding: json}`'
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
            if(is_backfill, concat('/0/', `section read_timestamp`), concat_ws('/', '/1', `section log_file`, `section log_position`)),
            '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value product` is null, `value product`, `value colour` is null, `value colour`, `value line` is null, `value line`, `value order_id` is null, `value order_id`, isnull(`value price`), if(try_cast(`value price` as decimal(10,2)) = `value price`, try_cast(`value price` as decimal(10,2)), null), if(try_cast(`value price` as decimal(10,2)) = `value price`, null, format_number(`value price`, 38)), isnull(`value quantity`), if(try_cast(`value quantity` as smallint) = `value quantity`, try_cast(`value quantity` as smallint), null), if(try_cast(`value quantity` as smallint) = `value quantity`, null, cast(`value quantity` as string)))), 16, '0'))
        ) as sequence
    )))
from (
-- whether a column's type cannot hold the value that was delivered
select
    *,
    array(
        texts[0] is not null and `value order_id` is null,
        texts[1] is not null and `value line` is null,
        texts[2] is not null and `value product` is null,
        texts[3] is not null and `value quantity` is null,
        texts[4] is not null and `value price` is null,
        false
    ) as lost
from (
select
    *,
    coalesce(try_cast(readable[0] as bigint), try_cast(if(readable[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[0] as decimal(38,0)), null) as bigint)) as `value order_id`,
    coalesce(try_cast(readable[1] as int), try_cast(if(readable[1] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[1]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[1] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[1] as decimal(38,0)), null) as int)) as `value line`,
    if(char_length(readable[2]) <= 20, readable[2], null) as `value product`,
    coalesce(try_cast(readable[3] as int), try_cast(if(readable[3] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[3]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[3] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[3] as decimal(38,0)), null) as int)) as `value quantity`,
    if(readable[4] rlike '^\\s*[-+]?\\d*\\.?\\d{0,4}\\s*$' or readable[4] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[4]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[4] as decimal(12,4)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[4] as decimal(12,4)), null) as `value price`,
    readable[5] as `value colour`
from (
-- the text that each type is read from
select
    *,
    if(
        kinds is not null or left(texts[2], 1) in ('{', '[', '+', '-') or left(texts[5], 1) in ('{', '[', '+', '-'),
        transform(texts, (text, i) -> case
            when i in (2, 5) then case
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
            else text
        end),
        texts
    ) as readable
from (
-- every value as the text that was delivered, digit for digit
select
    *,
    if(
        schema_of_variant(fields[0]) = 'DOUBLE' or schema_of_variant(fields[1]) = 'DOUBLE' or schema_of_variant(fields[2]) like 'D%' or schema_of_variant(fields[3]) = 'DOUBLE' or schema_of_variant(fields[4]) = 'DOUBLE' or schema_of_variant(fields[5]) like 'D%',
        transform(fields, (field, i) -> case
            when i in (0, 1, 3, 4) and schema_of_variant(field) = 'DOUBLE' then coalesce(
        get(filter(
            array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), concat('"(?iu:\\Q', replace(names[i], '\\E', ''), '\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)'))), ' ')),
            digits -> try_cast(digits as double) = cast(field as double)
        ), 0),
        '{a number whose digits cannot be found in the record}'
    )
            when i in (2, 5) and schema_of_variant(field) like 'D%' then coalesce(
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
    array('order_id', 'line', coalesce(get(filter(array('product', 'article'), name -> array_contains(transform(map_keys(payload), field -> lower(field)), lower(name))), 0), 'product'), 'quantity', 'price', 'colour') as names,
    if(map_keys(payload) in (array('order_id', 'line', 'product', 'quantity', 'price', 'colour'), array('ORDER_ID', 'LINE', 'PRODUCT', 'QUANTITY', 'PRICE', 'COLOUR')), null, map_keys(payload)) as field_names,
    transform(field_names, name -> lower(name)) as lower_names
from (
select
    *,
    if(regexp_extract(coalesce(metadata.log_file, metadata.binlog_file), '(\\d+)\\s*$', 1) rlike '^\\s*\\d{1,18}\\s*$', lpad(hex(try_cast(regexp_extract(coalesce(metadata.log_file, metadata.binlog_file), '(\\d+)\\s*$', 1) as bigint)), 16, '0'), null) as `section log_file`,
    if(coalesce(metadata.log_position, metadata.binlog_position) rlike '^\\s*\\d{1,18}\\s*$', lpad(hex(try_cast(coalesce(metadata.log_position, metadata.binlog_position) as bigint)), 16, '0'), null) as `section log_position`,
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
            when source_metadata.log_position is not null or source_metadata.binlog_position is not null or read_method like 'mysql%' then 'mysql'
            when source_metadata.scn is not null or source_metadata.row_id is not null or read_method like 'oracle%' then 'oracle'
            when source_metadata.lsn like '%/%' or read_method like 'postgres%' then 'postgresql'
            when source_metadata.lsn like '%:%' or read_method like 'sqlserver%' then 'sqlserver'
        end, 'mysql'))
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
    from_json(record, 'uuid string, schema_key string, read_method string, read_timestamp string, source_timestamp string, source_metadata struct<database string, schema string, table string, change_type string, is_deleted string, primary_keys variant, replication_index variant, log_file string, log_position string, binlog_file string, binlog_position string, scn string, row_id string, lsn string>, payload map<string, variant>, avro_types map<string, string>, _corrupt_record string', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
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
) as judged;

create or replace view `demo`.`orders`
tblproperties ('reconcile.definition' = '0a18f5487e38cdf1ae217cb35504dc2b')
as
select
    `order_id`,
    `line`,
    `product`,
    `quantity`,
    `price`
from (select `order_id`, `line`, `article` as `product`, `quantity`, `price`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted from `demo`.`orders__base`)
where
    not _deleted;

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined
