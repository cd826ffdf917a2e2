{#- As `change_counts`, if the range has keyless deletes or earlier ranges had some. `rows_cache` holds what
    `rows_with_keyless_deletes` gives. -#}
{%- macro counts_with_keyless_deletes(relations, form, range) -%}
{{ reconcile.summed_counts(
      reconcile.change_counts(relations.changes_cache, relations.rows_cache, range.delivered, form.keyless, lost='_change_is_lost'),
      reconcile._keyless_delete_counts(relations, form, range),
      ['duplicate', 'superseded', 'pending', 'applied', 'deleted', 'tombstoned']) }}
{%- endmacro %}

{#- Only the newest delete of a place can be applied; older deletes of the place are superseded. A row delete is applied
    if an older row is at its address. It is superseded if all rows there are newer, or if later records have replaced
    the rows that were there. It is pending if nothing is known about the address. A range delete is applied whatever is
    there: like the delete of a key, it also holds for records that come late. -#}
{%- macro _keyless_delete_counts(relations, form, range) -%}
{%- set place = form.keyless.place -%}
{%- set is_older = 'covered.in_table and covered._change_sequence < incoming._change_sequence' -%}
{%- set removes_older = 'coalesce(bool_or(' ~ is_older ~ '), false)' -%}
select
    coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
    count_if(is_new and not is_applied and (not is_latest or has_covered_records)) as superseded,
    count_if(is_new and not is_applied and is_latest and not has_covered_records) as pending,
    count_if(is_new and is_applied) as applied,
    count_if(is_new and is_applied and removes_live_row) as deleted,
    count_if(is_new and is_applied and not removes_live_row) as tombstoned
from (
    select
        incoming.is_known,
        not incoming.is_known as is_new,
        incoming.is_latest,
        incoming.records,
        incoming.is_latest{{ ' and ' ~ removes_older if form.keyless.kind == 'row_deletes' }} as is_applied,
        coalesce(bool_or(covered.in_table and covered._change_sequence < incoming._change_sequence and covered.was_live), false) as removes_live_row,
        count(covered._change_sequence) > 0 as has_covered_records
    from (
        {{ reconcile._keyless_deletes_with_known(
              relations.changes_cache, form.keyless, form.unique_key, range.known_keyless_deletes) | indent(8) }}
    ) as incoming
    left join (
        {{ reconcile._rows_at_places(relations, form, range) | indent(8) }}
    ) as covered
        on {{ reconcile.delete_covers_row(form.keyless, 'incoming.' ~ place, 'covered') }}
    group by incoming.{{ place }}, incoming._change_sequence, incoming.is_known, incoming.is_latest, incoming.records
)
{%- endmacro %}

{#- The keyless deletes of the range and of earlier ranges. `is_known`: whether an earlier range brought the delete.
    `is_latest`: whether it is the newest one of its place. `changes`: the checked records of the range. `known`: the
    table of the keyless deletes of earlier ranges, none if there are none. -#}
{%- macro _keyless_deletes_with_known(changes, keyless, keys, known) -%}
{%- set place = keyless.place -%}
select
    *,
    _change_sequence = max(_change_sequence) over (partition by {{ place }}) as is_latest
from (
    select {{ place }}, _change_sequence, sum(records) as records, bool_or(is_known) as is_known
    from (
        select {{ place }}, _change_sequence, _change_records as records, false as is_known
        from (
            {{ reconcile.keyless_deletes(changes, keyless, keys) | indent(12) }}
        )
        {%- if known %}
        union all
        select {{ place }}, _change_sequence, 0, true
        from {{ known }}
        {%- endif %}
    )
    group by {{ place }}, _change_sequence
)
{%- endmacro %}

{#- The rows and records at the places that the keyless deletes of the range name. First SELECT: the rows that the range
    sets. Second, for row deletes only: all valid records of the range that have a key. Third: the rows of the base table.
    `in_table`: whether the base table has this row after the range; false for every record of the second SELECT, and for
    a row that the range replaces. `was_live`: whether the model showed a row of this key before the range. For a row
    that the range sets, this is asked only if a keyless delete of the range undoes the row. -#}
{%- macro _rows_at_places(relations, form, range) -%}
{%- set keyless, keys = form.keyless, reconcile.key_columns(form.unique_key) -%}
{%- set by_address = keyless.kind == 'row_deletes' -%}
{%- set key = reconcile.identifier(form.unique_key[0]) -%}
{%- set columns = reconcile.columns_of_place(keyless, form.unique_key) -%}
{%- set hiding = range.known_keyless_deletes -%}
select {{ columns }}, _change_sequence, true as in_table, _change_is_undone and not coalesce(_change_base_deleted, true) as was_live
from {{ relations.rows_cache }}
where {{ reconcile.replaces_base(form.keyless) }}
{%- if by_address %}
union all
select {{ columns }}, _change_sequence, false, false
from {{ relations.changes_cache }}
where _change_error is null and {{ key }} is not null
{%- endif %}
{%- if reconcile.known_table(relations, range) %}
{%- set place = 'base._row_id' if by_address else 'base.* except (_change_sequence, _deleted)' %}
{%- set is_seen = 'coalesce(base._change_sequence >= known._change_sequence, true)' if hiding and by_address %}
union all
select {{ place }}, base._change_sequence, replaced.{{ key }} is null, not base._deleted{{ ' and ' ~ is_seen if is_seen }}
from (
    select {{ reconcile.broadcast_hint('keyless', range.delivered) }}{{ keys }}{{ ', _row_id' if by_address }}, _change_sequence, _deleted
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
    left semi join (
        select {{ keyless.place }}
        from {{ relations.changes_cache }}
        where {{ reconcile.is_keyless_delete_record(form.unique_key) }}
    ) as keyless
        on {{ reconcile.delete_covers_row(keyless, 'keyless.' ~ keyless.place, 'known') }}
    {%- if hiding and not by_address %}
    left anti join {{ hiding }} as hiding
        on {{ reconcile.delete_covers_row(keyless, 'hiding.' ~ keyless.place, 'known') }} and hiding._change_sequence > known._change_sequence
    {%- endif %}
) as base
left join (
    select {{ keys }}
    from {{ relations.rows_cache }}
    where {{ reconcile.replaces_base(form.keyless) }}
) as replaced
    on {{ reconcile.keys_match(form.unique_key, 'replaced', 'base') }}
{%- if hiding and by_address %}
left join (
    select _row_id, max(_change_sequence) as _change_sequence
    from {{ hiding }}
    group by _row_id
) as known
    on base._row_id = known._row_id
{%- endif %}
{%- endif %}
{%- endmacro %}
