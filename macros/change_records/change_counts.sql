{#- The account of a range, before its MERGE. `newest`: as `newest_records` gives it, with the base table's
    `_change_base_sequence` and `_change_base_deleted`, which are NULL if the base table has no such key. `lost`: SQL
    for the rows whose record the base table takes but which the record does not set, because a row delete undoes it.
    Each count has a predicate of its own; none is a difference. -#}
{%- macro change_counts(changes, newest, delivered, keyless=none, lost=none) -%}
{%- set by_address = reconcile.keys_may_shift(keyless) -%}
{%- set applied = '_change_applied_sequence' if by_address else '_change_sequence' -%}
{%- set is_written = '_change_is_merged or _change_is_noted' if by_address else '_change_is_merged' -%}
select
    {{ delivered }} as delivered,
    (select count_if(_change_error is not null) from {{ changes }}) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + if(array_contains(_change_sequences, _change_base_sequence), 1, 0)), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and (sequence <> {{ applied }} or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if({{ is_written }}) as merged,
    max(if({{ is_written }}, _change_batch, null)) as base_batch
from (
    select
        *,
        {{ reconcile.replaces_base(keyless) }} as _change_is_merged,
        _change_is_merged{{ ' and _change_applied_sequence is not null' if by_address }}{{ ' and not ' ~ lost if lost }} as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from {{ newest }}
)
{%- endmacro %}

{#- Whether a row of a fold replaces the base table's row of its key, as SQL. -#}
{%- macro replaces_base(keyless) -%}
{%- if reconcile.keys_may_shift(keyless) -%}
_change_replaces_base
{%- else -%}
(_change_base_sequence is null or _change_sequence > _change_base_sequence)
{%- endif -%}
{%- endmacro %}
