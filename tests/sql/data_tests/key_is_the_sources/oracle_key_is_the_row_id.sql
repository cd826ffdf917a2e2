select name as key_of_the_source, '["_row_id"]' as unique_key, batch as since_batch, records
from (
    select name, batch, records, max(batch) over () as last_batch
    from `demo`.`reconcile_columns_seen`
    where relation = 'demo.orders' and kind = 'key' and name <> '[]'
)
where
    false
    and array_sort(transform(from_json(name, 'array<string>'), name -> lower(name))) <> array_sort(array(lower('_row_id')))
