select *
from `demo`.`orders__base`
where (_change_row_sequence is null or (_deleted and _change_sequence > _change_row_sequence))
