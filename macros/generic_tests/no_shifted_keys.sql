{#- Fails on each key that one row has given up and another row has taken within one transaction, if the log has the
    taking first. An example is `update t set id = id + 1`: the database checks constraints at the end of a statement.
    The delete of the row that gave up the key is then the key's last change, and the model counts the key as deleted.
    An insert of an existing key shows the shift. A model that has the addresses of rows, as those of Oracle, follows the
    key unless an address is missing or the key was taken by an insert: see docs/decisions/0028-keys-that-shift.md. -#}
{%- test no_shifted_keys(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_shifted_keys') -%}
{%- do reconcile.refuse_other_sources(model, 'no_shifted_keys') -%}
{%- set node = reconcile.node_of(model) -%}
{%- set keys = reconcile.key_columns(reconcile.keys_of(node)) -%}
{%- set follows = reconcile.keys_may_shift(reconcile.keyless_deletes_of(node)) -%}
select {{ keys }}, _change_id, _change_transaction, _change_sequence
from (
    select
        {{ keys }},
        _change_id,
        _change_transaction,
        _change_sequence,
        _change_type,
        {%- if follows %}
        _row_id,
        {%- endif %}
        lag(struct(_change_type, _change_transaction{{ ', _row_id' if follows }}, {{ reconcile._takes_a_key() }} as takes_a_key)) over changes as before,
        lag(_change_type, 2) over changes as type_before,
        lead(_change_transaction) over changes as transaction_after
    from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
    where _change_error is null
    window changes as (partition by {{ keys }} order by _change_sequence)
)
where
    _change_type = 'delete'
    and before._change_type <> 'delete'
    and before._change_transaction = _change_transaction
    and not coalesce(transaction_after = _change_transaction, false)
    and before.takes_a_key and type_before <> 'delete'
    {%- if follows %}
    and (before._change_type = 'insert' or before._row_id is null or _row_id is null)
    {%- endif %}
{%- endif -%}
{%- endtest %}

{#- Whether a record gives a row a key that the row did not have before. -#}
{%- macro _takes_a_key() -%}
upper(get_json_object(_change_record, '$.source_metadata.change_type')) in ('INSERT', 'UPDATE-INSERT')
{%- endmacro %}
