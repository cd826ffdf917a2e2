{#- As `change_counts`, for a model that takes partial records. `newest`: as `newest_columns` gives it, beside the base
    table, with the columns that `columns_with_base` adds. Of the records that a row consists of, those that the base
    table did not have are applied. But an update of some columns is pending as long as its row is pending. -#}
{%- macro column_counts(changes, newest, delivered) -%}
select
    {{ delivered }} as delivered,
    (select count_if(_change_error is not null) from {{ changes }}) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_delivered) + cardinality(filter(_change_delivered, record -> array_contains(_change_known, record.sequence)))), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_delivered, record -> not array_contains(_change_known, record.sequence) and (
        record.sequence < _change_row_after
        or record.sequence < _change_newest_after and forall(record.carried, name -> coalesce(_change_columns_after[name], _change_row_after) > record.sequence)
    )))), 0) as superseded,
    {{ reconcile.counts_of_writers('_change_writers') | indent(4) }},
    count_if(_change_base_sequence is null) as new_keys,
    count_if(cardinality(_change_writers) > 0) as merged,
    max(array_max(transform(_change_writers, writer -> writer.batch))) as base_batch
from {{ newest }}
{%- endmacro %}

{#- What the records do that a row consists of and that the base table did not have. `writers`: the column that has
    them. -#}
{%- macro counts_of_writers(writers) -%}
coalesce(sum(cardinality(filter({{ writers }}, writer -> not _change_is_pending or writer.sequence <=> _change_row_after))), 0) as applied,
coalesce(sum(cardinality(filter({{ writers }}, writer -> _change_is_pending and not writer.sequence <=> _change_row_after))), 0) as pending,
coalesce(sum(cardinality(filter({{ writers }}, writer -> _change_is_live and not _change_was_live and writer.sequence = _change_row_after))), 0) as inserted,
coalesce(sum(cardinality(filter({{ writers }}, writer -> _change_is_live and (_change_was_live or writer.sequence <> _change_row_after)))), 0) as updated,
coalesce(sum(cardinality(filter({{ writers }}, writer -> not _change_is_live and _change_was_live and writer.sequence <=> _change_row_after))), 0) as deleted,
coalesce(sum(cardinality(filter({{ writers }}, writer -> not _change_is_live and not _change_was_live and writer.sequence <=> _change_row_after))), 0) as tombstoned
{%- endmacro %}
