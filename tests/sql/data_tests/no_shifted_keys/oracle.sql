select `id`, _change_id, _change_transaction, _change_sequence
from (
    select
        `id`,
        _change_id,
        _change_transaction,
        _change_sequence,
        _change_type,
        _row_id,
        lag(struct(_change_type, _change_transaction, _row_id, upper(get_json_object(_change_record, '$.source_metadata.change_type')) in ('INSERT', 'UPDATE-INSERT') as takes_a_key)) over changes as before,
        lag(_change_type, 2) over changes as type_before,
        lead(_change_transaction) over changes as transaction_after
    from `demo`.`orders__changes`
    where _change_error is null
    window changes as (partition by `id` order by _change_sequence)
)
where
    _change_type = 'delete'
    and before._change_type <> 'delete'
    and before._change_transaction = _change_transaction
    and not coalesce(transaction_after = _change_transaction, false)
    and before.takes_a_key and type_before <> 'delete'
    and (before._change_type = 'insert' or before._row_id is null or _row_id is null)
