select *
from `demo`.`orders__base`
where not _change_is_known and _change_type <> 'delete'
