show tblproperties `demo`.`orders__base`;

show tblproperties `demo`.`orders`;

show tblproperties `demo`.`orders__changes`;

show tblproperties `demo`.`orders__quarantine`;

select max(_change_batch) from `demo`.`orders__base` where _change_batch >= 3;

select count(*) from `lake`.`shop_changes` where object = '#snapshot of shop.orders' and source = 'snapshot' and batch = 5;

select min(batch) from `lake`.`shop_changes` where appended_at >= to_timestamp('2026-11-21T11:33:13.215524000Z') - interval '1 day' - interval '1 hour';

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
select * except (_change_table, _change_fields, _change_key, _change_schema, _change_macro, _change_zero_dates, _change_is_placed_anew), if(_change_batch < 4, null, _change_table) as _change_table, if(_change_batch < 4, null, _change_fields) as _change_fields, if(_change_batch < 4, null, _change_key) as _change_key, if(_change_batch < 4, null, _change_schema) as _change_schema, if(_change_batch < 4, null, _change_macro) as _change_macro, if(_change_batch < 4, null, _change_zero_dates) as _change_zero_dates
from (
    select
        `id`,
        `born`,
        `seen`,
        `closed`,
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
        _change_zero_dates,
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
                if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
            ), '') as _change_complaint
        from (

    select
        `id`,
        `born`,
        `seen`,
        `closed`,
        if(_change_snapshot = 'before', 'delete', _change_type) as _change_type,
        if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), concat('0002', substring(_change_sequence, 5))) as _change_sequence,
        _change_id,
        _change_time,
        _change_transaction,
        _change_batch,
        _change_columns,
        nullif(concat_ws('; ', _change_error, if(_change_error is null and _change_snapshot = 'before' and split_part(_change_sequence, '/', 2) = '1' and _change_time > to_timestamp('2026-11-21T11:33:13.215524000Z') + interval '1 hour', 'the snapshot beside the log contains the change by its place in the binary log, and the change is an hour or more later: the log has begun anew since the snapshot, or the snapshot is of another server; take the snapshot back, and declare the new log as a generation, or stage a snapshot of the server of the log', null)), '') as _change_error,
        _change_table,
        _change_fields,
        _change_key,
        _change_schema,
        _change_macro,
        _change_zero_dates,
        _change_record,
        _change_origin,
        _change_snapshot
    from (
    select
        `value id` as `id`,
        `value born` as `born`,
        `value seen` as `seen`,
        `value closed` as `closed`,
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
        nullif(filter(names, (name, i) -> name in ('born', 'seen', 'closed') and texts[i] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$'), array()) as _change_zero_dates,
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
                        when lost[i] then concat_ws(
                            '; ',
                            concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'date', 'timestamp', 'timestamp_ntz')[i]),
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
                                    when readable[i] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$' then 'it is a zero date: declare string to keep it, or `meta: {zero_date: \'null\'}` to make it NULL'
                                    when try_cast(readable[i] as bigint) is not null then 'declare bigint'
                                    when readable[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(readable[i] as timestamp) is not null then 'it has a zone: declare timestamp'
                                    when readable[i] like '%:%' and try_cast(readable[i] as timestamp) is not null then 'it has a time of day: declare timestamp or timestamp_ntz, or `meta: {round: true}`'
                                    else 'declare string'
                                end
                                when i in (2) then case
                                    when readable[i] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$' then 'it is a zero date: declare string to keep it, or `meta: {zero_date: \'null\'}` to make it NULL'
                                    when readable[i] in ('infinity', '-infinity') then 'it is infinity: declare string to keep it, or `meta: {infinity_is_null: true}` to make it NULL'
                                    when readable[i] like '{"date":%' then 'declare timestamp_ntz'
                                    when try_cast(readable[i] as bigint) is not null then 'declare bigint, or for a TIME string with `meta: {encoding: microseconds}`'
                                    when readable[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(readable[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
                                    else 'declare string'
                                end
                                when i in (3) then case
                                    when readable[i] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$' then 'it is a zero date: declare string to keep it, or `meta: {zero_date: \'null\'}` to make it NULL'
                                    when readable[i] in ('infinity', '-infinity') then 'it is infinity: declare string to keep it, or `meta: {infinity_is_null: true}` to make it NULL'
                                    when readable[i] like '{"offset":%' then 'declare timestamp'
                                    when try_cast(readable[i] as bigint) is not null then 'declare bigint, or for a TIME string with `meta: {encoding: microseconds}`'
                                    when readable[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(readable[i] as timestamp) is not null then 'it has a zone: declare timestamp'
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
                if(is_backfill, concat('/0/', `section read_timestamp`), concat_ws('/', '/1', `section log_file`, `section log_position`)),
                '/', concat(if(change_type = 'delete', '0', '1'), '/', lpad(hex(xxhash64(change_type, `value born` is null, `value born`, `value closed` is null, `value closed`, `value id` is null, `value id`, `value seen` is null, `value seen`)), 16, '0'))
            ) as sequence
        )))
    from (
    -- whether a column's type cannot hold the value that was delivered
    select
        *,
        array(
            texts[0] is not null and `value id` is null,
            texts[1] is not null and `value born` is null and not texts[1] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$',
            texts[2] is not null and `value seen` is null and not texts[2] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$',
            texts[3] is not null and `value closed` is null and not texts[3] rlike '^0000-00-00([T ]00:00(:00([.]0*)?)?\\s*(Z|[-+]00(:?00)?)?)?$'
        ) as lost
    from (
    select
        *,
        coalesce(try_cast(readable[0] as bigint), try_cast(if(readable[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(readable[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(readable[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(readable[0] as decimal(38,0)), null) as bigint)) as `value id`,
        if(readable[1] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]00:00(:00(\\.0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(readable[1] as date), null) as `value born`,
        case when readable[2] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(readable[2] as timestamp) when readable[2] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(readable[2] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', readable[2], concat(readable[2], if(readable[2] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value seen`,
        if(readable[3] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(regexp_replace(readable[3], '(:\\d\\d(\\.\\d*)?)(Z|[-+]00(:?00)?)$', '$1') as timestamp_ntz), null) as `value closed`
    from (
    -- the text that each type is read from
    select
        *,
        if(
            kinds is not null or left(texts[2], 1) in ('{', '[', '+', '-') or left(texts[3], 1) in ('{', '[', '+', '-'),
            transform(texts, (text, i) -> case
                when i in (2) then case when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '+294247-' then 'infinity' when left(coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text), 8) = '-290308-' then '-infinity' else coalesce(try_variant_get(fields[i], '$.timestamp', 'string'), text) end
                when i in (3) then case when left(coalesce(concat(try_variant_get(fields[i], '$.date', 'string'), 'T', try_variant_get(fields[i], '$.time', 'string')), text), 8) = '+294247-' then 'infinity' when left(coalesce(concat(try_variant_get(fields[i], '$.date', 'string'), 'T', try_variant_get(fields[i], '$.time', 'string')), text), 8) = '-290308-' then '-infinity' else coalesce(concat(try_variant_get(fields[i], '$.date', 'string'), 'T', try_variant_get(fields[i], '$.time', 'string')), text) end
                else text
            end),
            texts
        ) as readable
    from (
    -- every value as the text that was delivered, digit for digit
    select
        *,
        if(
            schema_of_variant(fields[0]) = 'DOUBLE',
            transform(fields, (field, i) -> case
                when i in (0) and schema_of_variant(field) = 'DOUBLE' then coalesce(
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
        array('id', 'born', 'seen', 'closed') as names,
        if(map_keys(payload) in (array('id', 'born', 'seen', 'closed'), array('ID', 'BORN', 'SEEN', 'CLOSED')), null, map_keys(payload)) as field_names,
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
    ) as of_log
    lateral view explode(array(_change_sequence)) as _change_place
    lateral view explode(array(case when if(split_part(_change_place, '/', 2) = '0', _change_time <= to_timestamp('2026-11-21T11:33:13.215524000Z') + interval '1 hour', array_join(slice(split(_change_place, '/'), 3, 2), '/') < '00000000000F423F/0000000000026354' or array_join(slice(split(_change_place, '/'), 3, 2), '/') = '00000000000F423F/0000000000026354' and _change_time < to_timestamp('2026-11-21T11:33:13.215524000Z') - interval '1 day') then 'before' when not split_part(_change_place, '/', 2) = '0' and array_join(slice(split(_change_place, '/'), 3, 2), '/') > '00000000000F423F/0000000000026354' then 'after' else 'uncertain' end)) as _change_snapshot
    union all
    select
        `value id` as `id`,
        `value born` as `born`,
        `value seen` as `seen`,
        `value closed` as `closed`,
        'insert' as _change_type,
        concat('0002/0/', if(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z')) >= 0, lpad(hex(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z'))), 16, '0'), null), '/', concat(if('insert' = 'delete', '0', '1'), '/', lpad(hex(xxhash64('insert', `value born` is null, `value born`, `value closed` is null, `value closed`, `value id` is null, `value id`, `value seen` is null, `value seen`)), 16, '0'))) as _change_sequence,
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
        cast(null as array<string>) as _change_zero_dates,
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
                            concat(name, ': \'', left(texts[i], 200), '\' is not exactly a ', array('bigint', 'date', 'timestamp', 'timestamp_ntz')[i]),
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
                                    when texts[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(texts[i] as timestamp) is not null then 'it has a zone: declare timestamp'
                                    when texts[i] like '%:%' and try_cast(texts[i] as timestamp) is not null then 'it has a time of day: declare timestamp or timestamp_ntz, or `meta: {round: true}`'
                                    else 'declare string'
                                end
                                when i in (2) then case
                                    when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                    when texts[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(texts[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
                                    else 'declare string'
                                end
                                when i in (3) then case
                                    when try_cast(texts[i] as bigint) is not null then 'declare bigint'
                                    when texts[i] rlike ':.*[-+]\\d\\d(:?\\d\\d)?$' and try_cast(texts[i] as timestamp) is not null then 'it has a zone: declare timestamp'
                                    when texts[i] rlike '[.]\\d{6}\\d*[1-9]' and try_cast(texts[i] as timestamp) is not null then 'it is finer than a microsecond: declare string for all digits, or `meta: {round: true}`'
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
            texts[1] is not null and `value born` is null,
            texts[2] is not null and `value seen` is null,
            texts[3] is not null and `value closed` is null
        ) as lost
    from (
    select
        *,
        coalesce(try_cast(texts[0] as bigint), try_cast(if(texts[0] rlike '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d{1,3})?\\s*$' and trim('0' from translate(substring_index(upper(texts[0]), 'E', 1), '+-. ', '')) = trim('0' from translate(substring_index(upper(cast(try_cast(texts[0] as decimal(38,0)) as string)), 'E', 1), '+-. ', '')), try_cast(texts[0] as decimal(38,0)), null) as bigint)) as `value id`,
        if(texts[1] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]00:00(:00(\\.0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(texts[1] as date), null) as `value born`,
        case when texts[2] rlike '^\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?Z$' then try_cast(texts[2] as timestamp) when texts[2] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?\\s*(Z|[-+]\\d\\d(:?\\d\\d)?)?)?$' then try_cast(if(texts[2] rlike '\\d:.*(Z|[-+]\\d\\d(:?\\d\\d)?)$', texts[2], concat(texts[2], if(texts[2] like '%:%', 'Z', ' 00:00:00Z'))) as timestamp) end as `value seen`,
        if(texts[3] rlike '^[-+]?\\d{4,6}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{0,6}0*)?)?(Z|[-+]00(:?00)?)?)?$', try_cast(regexp_replace(texts[3], '(:\\d\\d(\\.\\d*)?)(Z|[-+]00(:?00)?)$', '$1') as timestamp_ntz), null) as `value closed`
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
        array('id', 'born', 'seen', 'closed') as names,
        if(map_keys(payload) in (array('id', 'born', 'seen', 'closed'), array('ID', 'BORN', 'SEEN', 'CLOSED')), null, map_keys(payload)) as field_names,
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
    array_join(array_sort(collect_set(hex(_change_table))), ',') as tables,
    count_if(_change_error is null and cardinality(_change_zero_dates) > 0) as zero_dates
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
                        when substring(_change_fields, length(letters) + 2) = 'id' then array('id', 'born', 'seen', 'closed')
                        else transform(array('id', 'born', 'seen', 'closed'), name -> upper(name))
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
                        array_contains(array('id', 'born', 'seen', 'closed'), lower(name)) as is_declared
                    )),
                    transform(
                        if(_change_fields is null, array(), array_except(array('id', 'born', 'seen', 'closed'), transform(names, name -> lower(name)))),
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

cache table reconcile_fold_da2f7fd25744 as
select *
from (
select
    `id`,
    if(_change_is_absent, null, `born`) as `born`,
    if(_change_is_absent, null, `seen`) as `seen`,
    if(_change_is_absent, null, `closed`) as `closed`,
    if(_change_is_absent, concat('0002/0/', if(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z')) >= 0, lpad(hex(unix_millis(to_timestamp('2026-11-21T11:33:13.215524000Z'))), 16, '0'), null), '/0/0000000000000000'), _change_sequence) as _change_sequence,
    if(_change_is_absent, to_timestamp('2026-11-21T11:33:13.215524000Z'), _change_time) as _change_time,
    if(_change_is_absent, 5, _change_batch) as _change_batch,
    if(_change_is_absent, true, _deleted) as _deleted,
    _change_snapshot,
    _change_records,
    _change_rows,
    _change_sequences,
    _change_known_sequences,
    _change_base_sequence,
    _change_base_deleted,
    _change_base_time,
    _change_is_absent,
    case
        when _change_is_absent then true
        when not _change_sets_row then false
        when _change_base_sequence is null then true
        when _change_snapshot = 'row' and _change_equals_base and not _change_base_deleted then false
        else _change_sequence > _change_base_sequence
    end as _change_is_merged,
    coalesce(
        not _change_is_absent and _change_snapshot = 'uncertain' and split_part(_change_sequence, '/', 2) = '1'
        and if(_change_row is null, not _deleted, _deleted or not (folded.`born` <=> folded._change_row.`born` and folded.`seen` <=> folded._change_row.`seen` and folded.`closed` <=> folded._change_row.`closed`)), false
    ) as _change_is_in_doubt
from (
    select
        *,
        coalesce(
            not _change_base_deleted and _change_base_sequence < '0002' and not _change_sets_row, false
        ) as _change_is_absent
    from (
        select
            coalesce(newest.`id`, base.`id`) as `id`,
            newest.`born`,
            newest.`seen`,
            newest.`closed`,
            newest._change_sequence,
            newest._change_time,
            newest._change_batch,
            newest._deleted,
            newest._change_snapshot,
            newest._change_row,
            newest._change_records is not null as _change_is_touched,
            coalesce(newest._change_records, 0) as _change_records,
            coalesce(newest._change_rows, 0) as _change_rows,
            coalesce(newest._change_sequences, cast(array() as array<string>)) as _change_sequences,
            coalesce(newest._change_known_sequences, cast(array() as array<string>)) as _change_known_sequences,
            coalesce(newest._change_sequence >= '0', false) as _change_sets_row,
            base._change_sequence as _change_base_sequence,
            base._deleted as _change_base_deleted,
            base._change_time as _change_base_time,
            newest.`born` <=> base.`born` and newest.`seen` <=> base.`seen` and newest.`closed` <=> base.`closed` as _change_equals_base
        from (
            select
                `id`,
                newest.* except (`id`),
                records as _change_records,
                sequences as _change_sequences,
                known_sequences as _change_known_sequences,
                snapshot_rows as _change_rows,
                snapshot_row as _change_row
            from (
                select
                    `id`,
                    max_by(
                        struct(
                            `id`,
                            if(_change_type = 'delete', null, `born`) as `born`,
                            if(_change_type = 'delete', null, `seen`) as `seen`,
                            if(_change_type = 'delete', null, `closed`) as `closed`,
                            _change_sequence,
                            _change_time,
                            _change_batch,
                            _change_type = 'delete' as _deleted,
                            _change_snapshot
                        ),
                        struct(_change_sequence, -_change_batch)
                    ) as newest,
                    count_if(_change_snapshot <> 'row' and _change_batch >= 4) as records,
                    collect_set(if(_change_snapshot <> 'row' and _change_batch >= 4, _change_sequence, null)) as sequences,
                    collect_set(if(_change_batch < 4, _change_sequence, null)) as known_sequences,
                    count_if(_change_snapshot = 'row') as snapshot_rows,
                    max_by(
                        struct(`born`, `seen`, `closed`),
                        if(_change_snapshot = 'row', _change_sequence, null)
                    ) as snapshot_row
                from reconcile_changes_da2f7fd25744
                where _change_error is null
                group by `id`
            )
        ) as newest
        full outer join `demo`.`orders__base` as base
            on newest.`id` = base.`id`
    )
) as folded
where _change_is_touched or _change_is_absent
)
where '00000000-0000-0000-0000-000000000000 reconcile_fold_da2f7fd25744' is not null;

select
    200 as delivered,
    (select count_if(_change_error is not null and _change_snapshot <> 'row') from reconcile_changes_da2f7fd25744) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + cardinality(filter(_change_sequences, sequence -> sequence <=> _change_base_sequence or array_contains(_change_known_sequences, sequence)))), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and not array_contains(_change_known_sequences, sequence) and (sequence <> _change_sequence or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged) as merged,
    max(if(_change_is_merged, _change_batch, null)) as base_batch,
    (select count_if(_change_snapshot = 'row') from reconcile_changes_da2f7fd25744) as snapshot_rows,
    count_if(_change_is_set_by_snapshot and _change_is_merged and not _change_was_live) as snapshot_inserted,
    count_if(_change_is_set_by_snapshot and _change_is_merged and _change_was_live) as snapshot_updated,
    count_if(_change_is_absent) as snapshot_deleted,
    coalesce(sum(if(_change_is_set_by_snapshot and not _change_is_merged, _change_rows, 0)), 0) as snapshot_duplicate,
    coalesce(sum(if(_change_is_set_by_snapshot, 0, _change_rows)), 0) as snapshot_superseded,
    count_if(_change_is_in_doubt) as snapshot_in_doubt
from (
    select
        *,
        not _change_is_absent and _change_snapshot = 'row' and not coalesce(_change_base_sequence > _change_sequence, false) as _change_is_set_by_snapshot,
        _change_is_merged and not _change_is_absent and _change_snapshot <> 'row' and not array_contains(_change_known_sequences, _change_sequence) as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from reconcile_fold_da2f7fd25744
);

select _change_zero_date, count(*) as zero_dates
from reconcile_changes_da2f7fd25744
lateral view explode(_change_zero_dates) zero_dates as _change_zero_date
where _change_error is null
group by _change_zero_date
order by _change_zero_date;

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
    select /*+ broadcast(record) */ *
    from reconcile_fold_da2f7fd25744 as record
    where _change_is_merged
    and if((select count(*) from `demo`.`orders__base` where _change_batch > 3) = 0 and (select count(*) from `demo`.`orders__base` where _change_batch = 3) > 0, true, raise_error('demo.orders: another run of this model wrote at the same time, or the table was restored, so this run stopped; the next `dbt run` applies the batches that are missing'))
) as newest
on newest.`id` = base.`id`
when matched and newest._change_sequence > base._change_sequence then update set
    `id` = newest.`id`,
    `born` = newest.`born`,
    `seen` = newest.`seen`,
    `closed` = newest.`closed`,
    _change_sequence = newest._change_sequence,
    _change_time = newest._change_time,
    _change_batch = newest._change_batch,
    _deleted = newest._deleted
when not matched then insert (`id`, `born`, `seen`, `closed`, _change_sequence, _change_time, _change_batch, _deleted)
values (newest.`id`, newest.`born`, newest.`seen`, newest.`closed`, newest._change_sequence, newest._change_time, newest._change_batch, newest._deleted);

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
    3 as zero_dates,
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

-- APPLY batches 4-5: 7 of 200 applied, 1 quarantined; repaired at binlog mysql-bin.999999:156500: 0 inserted, 0 updated, 0 deleted; zero dates that became NULL: 2 of born, 1 of seen
