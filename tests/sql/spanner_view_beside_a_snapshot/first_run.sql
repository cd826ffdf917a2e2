select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select count(*) from `lake`.`shop_changes` where object = '#snapshot of shop.orders' and source = 'snapshot' and batch = 5;

select count(*) as unreadable, min(_change_error) as reason from (
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
    if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
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
            if(
                _change_error is null and _change_columns is not null
                and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
            )
        ), '') as _change_complaint
    from (

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    if(_change_snapshot = 'before', 'delete', _change_type) as _change_type,
    if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_fields,
    _change_key,
    _change_schema,
    _change_macro,
    _change_record,
    _change_origin,
    _change_snapshot
from (
{the SELECT of spanner/change_records.sql}
) as of_log
lateral view explode(array(_change_sequence)) as _change_place
lateral view explode(array(case when left(_change_place, 16) <= if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'before' when left(_change_place, 16) > if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'after' else 'uncertain' end)) as _change_snapshot
union all
select
    `value id` as `id`,
    `value status` as `status`,
    `value total` as `total`,
    `value placed_at` as `placed_at`,
    `value ratio` as `ratio`,
    'insert' as _change_type,
    concat('18EA0C2E02CC1CA1/1', '/', concat(if('insert' = 'delete', '0', '1'), '/', lpad(hex(xxhash64('insert', `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))) as _change_sequence,
    '0000' as _change_id,
    to_timestamp('2026-11-21T11:33:13.215524001Z') as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
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
    where _change_batch between 5 and 5
)
) where _change_snapshot = 'row' and _change_error is not null;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from (select _change_macro, _change_error from (

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    if(_change_snapshot = 'before', 'delete', _change_type) as _change_type,
    if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_fields,
    _change_key,
    _change_schema,
    _change_macro,
    _change_record,
    _change_origin,
    _change_snapshot
from (
{the SELECT of spanner/change_records.sql}
) as of_log
lateral view explode(array(_change_sequence)) as _change_place
lateral view explode(array(case when left(_change_place, 16) <= if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'before' when left(_change_place, 16) > if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'after' else 'uncertain' end)) as _change_snapshot
union all
select
    `value id` as `id`,
    `value status` as `status`,
    `value total` as `total`,
    `value placed_at` as `placed_at`,
    `value ratio` as `ratio`,
    'insert' as _change_type,
    concat('18EA0C2E02CC1CA1/1', '/', concat(if('insert' = 'delete', '0', '1'), '/', lpad(hex(xxhash64('insert', `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))) as _change_sequence,
    '0000' as _change_id,
    to_timestamp('2026-11-21T11:33:13.215524001Z') as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
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
) limit 1000);

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = 'de1b2b4bd828a4802af277211b6e42f7')
as

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`,
    if(_change_snapshot = 'before', 'delete', _change_type) as _change_type,
    if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_fields,
    _change_key,
    _change_schema,
    _change_macro,
    _change_record,
    _change_origin,
    _change_snapshot
from (
{the SELECT of spanner/change_records.sql}
) as of_log
lateral view explode(array(_change_sequence)) as _change_place
lateral view explode(array(case when left(_change_place, 16) <= if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'before' when left(_change_place, 16) > if(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) between 0 and 9223372035, lpad(hex(unix_seconds(to_timestamp('2026-11-21T11:33:13.215524001Z')) * 1000000000 + bigint(rpad(regexp_extract('2026-11-21T11:33:13.215524001Z', '[.]([0-9]{1,9})', 1), 9, '0'))), 16, '0'), null) then 'after' else 'uncertain' end)) as _change_snapshot
union all
select
    `value id` as `id`,
    `value status` as `status`,
    `value total` as `total`,
    `value placed_at` as `placed_at`,
    `value ratio` as `ratio`,
    'insert' as _change_type,
    concat('18EA0C2E02CC1CA1/1', '/', concat(if('insert' = 'delete', '0', '1'), '/', lpad(hex(xxhash64('insert', `value id` is null, `value id`, `value placed_at` is null, `value placed_at`, `value ratio` is null, cast(`value ratio` as string), `value status` is null, `value status`, `value total` is null, `value total`)), 16, '0'))) as _change_sequence,
    '0000' as _change_id,
    to_timestamp('2026-11-21T11:33:13.215524001Z') as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
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
) as judged;

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '5d5c063015d9ebe5774347ea290f31de')
as
with changes as (
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
        if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
        cast(null as string) as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `id` is null, 'key id is missing or NULL', null),
                if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
                if(
                    _change_error is null and _change_columns is not null
                    and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                    concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
                )
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 1
    )
),
fresh as (
    select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _deleted, _change_row_sequence
    from (
        select
            `id`,
            if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last status`.value, _change_whole.`status`) as `status`,
            if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last total`.value, _change_whole.`total`) as `total`,
            if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last placed_at`.value, _change_whole.`placed_at`) as `placed_at`,
            if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last ratio`.value, _change_whole.`ratio`) as `ratio`,
            _change_newest._change_sequence,
            _change_newest._change_time,
            array_max(transform(_change_contributors, record -> record.batch)) as _change_batch,
            coalesce(_change_whole._deleted, false) as _deleted,
            _change_whole._change_sequence as _change_row_sequence,
            _change_column_sequences,
            _change_contributors,
            _change_records,
            _change_delivered
        from (
            select
                *,
                array_distinct(array_compact(array(
                    struct(_change_newest._change_sequence as sequence, _change_newest._change_batch as batch),
                    if(_change_whole is null, null, struct(_change_whole._change_sequence as sequence, _change_whole._change_batch as batch)),
                    if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last status`.sequence, `_change_last status`.batch), null),
                    if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last total`.sequence, `_change_last total`.batch), null),
                    if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last placed_at`.sequence, `_change_last placed_at`.batch), null),
                    if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last ratio`.sequence, `_change_last ratio`.batch), null)
                ))) as _change_contributors,
                map_filter(
                    cast(map('status', `_change_last status`.sequence, 'total', `_change_last total`.sequence, 'placed_at', `_change_last placed_at`.sequence, 'ratio', `_change_last ratio`.sequence) as map<string, string>),
                    (name, sequence) -> sequence > coalesce(_change_whole._change_sequence, '')
                ) as _change_column_sequences
            from (
                select
                    `id`,
                    max_by(
                        struct(_change_sequence, _change_time, _change_batch),
                        struct(_change_sequence, -_change_batch)
                    ) as _change_newest,
                    max_by(
                        struct(
                            if(_change_type = 'delete', null, `status`) as `status`,
                            if(_change_type = 'delete', null, `total`) as `total`,
                            if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                            if(_change_type = 'delete', null, `ratio`) as `ratio`,
                            _change_sequence,
                            _change_batch,
                            _change_type = 'delete' as _deleted
                        ),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where _change_columns is null) as _change_whole,
                    max_by(
                        struct(`status` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'status')) as `_change_last status`,
                    max_by(
                        struct(`total` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'total')) as `_change_last total`,
                    max_by(
                        struct(`placed_at` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'placed_at')) as `_change_last placed_at`,
                    max_by(
                        struct(`ratio` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'ratio')) as `_change_last ratio`,
                    count(*) as _change_records,
                    collect_set(struct(_change_sequence as sequence, _change_columns as carried)) as _change_delivered
                from changes
                where _change_error is null
                group by `id`
            )
        )
    )
)

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`
from fresh
where
    (_change_row_sequence is not null and not _deleted);

create view if not exists `demo`.`orders__quarantine`
tblproperties ('reconcile.definition' = 'd46a3b27498e87cd77e30147cfc84161')
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
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
        if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
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
                if(
                    _change_error is null and _change_columns is not null
                    and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                    concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
                )
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 1
    )
)
where _change_error is not null;

-- MADE ANEW
