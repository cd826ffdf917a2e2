{#- Adds columns to what `newest_columns` gives, beside the base table's row (NULL if there is none).
    `_change_newest_after`, `_change_row_after` and `_change_columns_after` are the order of the joined row.
    `_change_known` has the sequences of the records that the base table's row consists of. `_change_writers` has those
    records of the joined row that the base table did not have. -#}
{%- macro columns_with_base(newest) -%}
{%- set known = reconcile.order_of('_change_base') -%}
{%- set joined = reconcile.joined_order(known, reconcile.order_of('_change')) -%}
{%- set after = {'newest': '_change_newest_after', 'row': '_change_row_after', 'columns': '_change_columns_after'} -%}
select
    *,
    filter(_change_contributors, record -> array_contains({{ reconcile.sequences_of_row(after) }}, record.sequence) and not array_contains(_change_known, record.sequence)) as _change_writers,
    {{ reconcile.is_pending(after, '_change_deleted_after') }} as _change_is_pending,
    {{ reconcile.is_live(after, '_change_deleted_after') }} as _change_is_live,
    coalesce({{ reconcile.is_live(known, '_change_base_deleted') }}, false) as _change_was_live
from (
    select
        *,
        {{ joined.newest }} as _change_newest_after,
        {{ joined.row }} as _change_row_after,
        {{ joined.columns }} as _change_columns_after,
        if(_change_row_sequence > coalesce(_change_base_row_sequence, ''), _deleted, coalesce(_change_base_deleted, false)) as _change_deleted_after,
        {{ reconcile.sequences_of_row(known) }} as _change_known
    from (
        {{ newest | indent(8) }}
    )
)
{%- endmacro %}
