select
    'lake.shop_changes' as staging,
    object,
    if(object is null, 'the record names no object', 'no model reads this object') as reason,
    record,
    origin,
    batch,
    appended_at
from `lake`.`shop_changes`
where object is null or object not in ('events', '#cut')
