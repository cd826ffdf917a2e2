{#- The keyless deletes by which transactions undid inserts: those of `changes`, checked records, and those of `stored`,
    a table of keyless deletes, if there is one. `keys`: the unique_key. -#}
{%- macro undoing_deletes(changes, keys, stored=none) -%}
select _row_id, _change_transaction, _change_sequence, _change_batch
from {{ changes }}
where {{ reconcile.is_keyless_delete_record(keys) }} and _change_transaction is not null
{%- if stored %}
union all
select _row_id, _change_transaction, _change_sequence, _change_batch
from {{ stored }}
where _change_transaction is not null
{%- endif %}
{%- endmacro %}

{#- The keys of the rows that keyless deletes of `changes` may undo: of the rows themselves, and of the inserts that they
    keep beside their own record. `rows`: a relation with the columns of a base table. -#}
{%- macro keys_with_undone_inserts(rows, changes, keys) -%}
select {{ reconcile.key_columns(keys) }}
from (
    select {{ reconcile.key_columns(keys) }}, explode(concat(
        if(_change_is_insert, array(struct(_row_id as address, _change_transaction as transaction)), array()),
        coalesce(transform(_change_displaced, change -> struct(change.address, change.transaction)), array())
    )) as _change_place
    from {{ rows }} as base
    where _change_is_insert or _change_displaced is not null
)
left semi join (
    {{ reconcile.undoing_deletes(changes, keys) | indent(4) }}
) as undoing
    on _change_place.address = undoing._row_id and _change_place.transaction = undoing._change_transaction
{%- endmacro %}
