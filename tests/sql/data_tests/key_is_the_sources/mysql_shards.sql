select name as key_of_the_source, '["order_id", "line"]' as unique_key, batch as since_batch, records
from (
    select name, batch, records, max(batch) over () as last_batch
    from `demo`.`reconcile_columns_seen`
    where relation = 'demo.orders' and kind = 'key' and name <> '[]'
)
where
    batch = last_batch
    and array_sort(transform(from_json(name, 'array<string>'), name -> lower(name))) <> array_sort(array(lower('order_id'), lower('line')))
