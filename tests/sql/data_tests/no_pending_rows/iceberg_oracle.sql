select *
from (select `_change_row_id` as _row_id, _change_sequence, _change_time, _change_id, _change_batch, _change_transaction from `demo`.`orders__row_deletes`) as row_delete
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
    from (select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _change_time, _change_batch, `_change_deleted` as _deleted, `_change_row_id` as _row_id, _change_transaction, _change_is_insert, _change_contenders, _change_displaced from `demo`.`orders__base`) as base
    where base._row_id = row_delete._row_id and base._change_sequence < row_delete._change_sequence
)
