{#- As `change_counts`, for a history. `versions`: as `recomputed_versions` gives them. Every record that the base table
    did not have is applied, however late it comes. But a partial record is pending as long as no record shows what its
    row was before, and an insert that is undone is superseded. `changes`: the checked records of the range. `delivered`: how many change records staging has in the
    range. -#}
{%- macro version_counts(changes, versions, delivered, keyless=none) -%}
{%- set by_address = reconcile.keys_may_shift(keyless) -%}
select
    {{ delivered }} as delivered,
    (select count_if(_change_error is not null) from {{ changes }}) as quarantined,
    coalesce(sum(_change_records - if(_change_is_new, 1, 0)), 0) as duplicate,
    {{ "count_if(_change_is_new and _change_effect = 'undone')" if by_address else '0' }} as superseded,
    count_if(_change_is_new and _change_effect = 'none') as pending,
    count_if(_change_is_new and _change_effect {{ "not in ('none', 'undone')" if by_address else "<> 'none'" }}) as applied,
    {%- for effect in ['inserted', 'updated', 'deleted', 'tombstoned'] %}
    count_if(_change_is_new and _change_effect = '{{ effect }}') as {{ effect }},
    {%- endfor %}
    count_if(_change_is_new) as new_keys,
    count_if(_change_is_new or _change_is_revised) as merged,
    max(if(_change_is_new, _change_batch, null)) as base_batch
from (
    select
        *,
        case
            {%- if by_address %}
            when _change_is_undone then 'undone'
            {%- endif %}
            when _change_is_version then if(_change_was_live, 'updated', 'inserted')
            when _change_type = 'delete' then if(_change_was_live, 'deleted', 'tombstoned')
            else 'none'
        end as _change_effect
    from {{ versions }}
)
{%- endmacro %}
