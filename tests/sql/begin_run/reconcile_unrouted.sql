select
    'lake.shop_changes' as staging,
    object,
    case when object is null then 'the record names no object' when object in ('events') then 'no model reads this table of the object' else 'no model reads this object' end as reason,
    record,
    origin,
    batch,
    appended_at
from `lake`.`shop_changes`
where object is null or object <> '#cut' and not (object = 'events')
