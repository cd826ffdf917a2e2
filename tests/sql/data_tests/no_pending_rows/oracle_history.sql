select *
from `demo`.`orders__row_deletes` as row_delete
where not exists (
    select 1
    from `demo`.`orders__changes` as change
    where
        change._row_id = row_delete._row_id
        and change._change_sequence < row_delete._change_sequence
        and change.`id` is not null
)
and not exists (
    select 1
    from `demo`.`orders__base` as base
    where base._row_id = row_delete._row_id and base._change_sequence < row_delete._change_sequence
)
