{#- The account of a range, before it is merged: `newest` as `newest_records` gives it, with the base table's `_base_sequence` and
    `_base_deleted`, NULL where the base has no such key. Each count has a predicate of its own; none is a difference. -#}
{%- macro change_counts(changes, newest, delivered) -%}
select
    {{ delivered }} as delivered,
    (select count_if(_change_error is not null) from {{ changes }}) as quarantined,
    coalesce(sum(_records - cardinality(_sequences) + if(array_contains(_sequences, _base_sequence), 1, 0)), 0) as duplicate,
    coalesce(sum(cardinality(filter(_sequences, sequence -> not sequence <=> _base_sequence and (sequence < _change_sequence or not is_applied)))), 0) as superseded,
    count_if(is_applied) as applied,
    count_if(is_applied and not _deleted and not was_live) as inserted,
    count_if(is_applied and not _deleted and was_live) as updated,
    count_if(is_applied and _deleted and was_live) as deleted,
    count_if(is_applied and _deleted and not was_live) as tombstoned,
    max(if(is_applied, _change_batch, null)) as base_batch
from (
    select
        *,
        _base_sequence is null or _change_sequence > _base_sequence as is_applied,
        coalesce(not _base_deleted, false) as was_live
    from {{ newest }}
)
{%- endmacro %}
