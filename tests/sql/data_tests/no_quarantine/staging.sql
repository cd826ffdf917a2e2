select relation, example.reason, records, first_batch, last_batch, example.key as example_key, example.origin as example_origin
from (
    select
        'demo.orders' as relation,
        count(*) as records,
        min(_change_batch) as first_batch,
        max(_change_batch) as last_batch,
        min(struct(_change_batch, _change_id, origin, _change_error as reason, nullif(to_json(transform(array(from_json(record, 'payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> map_filter(
        coalesce(parsed.payload, parsed.row, parsed.keys, get(parsed.mods, 0).keys, map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('order_id', 'line') and value is not null
    ))[0]), '{}') as key)) as example
    from `demo`.`orders__quarantine`
    group by regexp_replace(_change_error, '\'[^\']*\'', '')
)
union all
select relation, example.reason, records, first_batch, last_batch, example.key as example_key, example.origin as example_origin
from (
    select
        'demo.lines' as relation,
        count(*) as records,
        min(_change_batch) as first_batch,
        max(_change_batch) as last_batch,
        min(struct(_change_batch, _change_id, origin, _change_error as reason, nullif(to_json(transform(array(from_json(record, 'payload map<string,string>, row map<string,string>, keys map<string,string>, row_key string, mods array<struct<keys map<string,string>>>', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))), parsed -> map_filter(
        coalesce(parsed.payload, parsed.row, parsed.keys, get(parsed.mods, 0).keys, map('row_key', parsed.row_key)), (name, value) -> lower(name) in ('id') and value is not null
    ))[0]), '{}') as key)) as example
    from `demo`.`lines__quarantine`
    group by regexp_replace(_change_error, '\'[^\']*\'', '')
)
