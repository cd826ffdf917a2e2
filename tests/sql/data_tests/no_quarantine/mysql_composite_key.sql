select *
from `demo`.`orders__quarantine`
