{#- The fold of a range beside the keyless deletes, both the known ones and those of the range. A row is gone if it is
    deleted or a keyless delete undoes it. `_deleted` says whether the row is gone after the range, and
    `_change_base_deleted` whether it was gone before. `_change_is_undone`: a keyless delete of the range undoes the
    row, and is the newest one that names it. `_change_is_lost`: the record is undone, and does not change what the
    model shows. In the SQL, `cover` are the deletes that name the row of the fold, and `base_cover` are the deletes at
    the address of the base table's row. `keys`: the unique_key. -#}
{%- macro rows_with_keyless_deletes(relations, keyless, keys, range) -%}
{%- set by_address = keyless.kind == 'row_deletes' -%}
{%- set latest = reconcile._latest_keyless_deletes(
      relations.changes_cache, keyless.place, keys, range.known_keyless_deletes) -%}
{%- set known = 'base_cover.known' if by_address else 'cover.known' -%}
select
    *,
    _change_is_undone or _deleted and not _change_is_delete and coalesce(_change_base_deleted, true) as _change_is_lost
from (
    select
        {%- for key in keys %}
        fold.{{ reconcile.identifier(key) }},
        {%- endfor %}
        {%- if by_address %}
        fold._row_id,
        {%- endif %}
        fold._change_sequence,
        fold._change_batch,
        fold._change_records,
        fold._change_sequences,
        fold._change_base_sequence,
        {%- if by_address %}
        fold._change_replaces_base,
        fold._change_is_noted,
        fold._change_applied_sequence,
        {%- endif %}
        fold._deleted as _change_is_delete,
        fold._deleted or coalesce(greatest(cover.known, cover.incoming) > fold._change_sequence, false) as _deleted,
        fold._change_base_deleted or coalesce({{ known }} > fold._change_base_sequence, false) as _change_base_deleted,
        not fold._deleted and coalesce(cover.incoming > greatest(fold._change_sequence, cover.known), false) as _change_is_undone
    from {{ relations.fold_cache }} as fold
    {%- if by_address %}
    left join (
        {{ latest | indent(8) }}
    ) as cover
        on fold._row_id = cover._row_id
    left join (
        {{ latest | indent(8) }}
    ) as base_cover
        on fold._change_base_row_id = base_cover._row_id
    {%- else %}
    left join (
        select {{ reconcile.key_columns(keys) }}, max(known) as known, max(incoming) as incoming
        from {{ relations.fold_cache }} as fold
        inner join (
            {{ latest | indent(12) }}
        ) as latest
            on {{ reconcile.delete_covers_row(keyless, 'latest.' ~ keyless.place, 'fold') }}
        group by {{ reconcile.key_columns(keys) }}
    ) as cover
        on {{ reconcile.keys_match(keys, 'fold', 'cover') }}
    {%- endif %}
)
{%- endmacro %}

{#- The sequence of the newest keyless delete of each place: among those of earlier ranges (`known`), and among those of
    this range (`incoming`). Either is NULL if there is no such delete. The place is what the delete names instead of a
    key: the address of a row, or a range of cells. `changes`: the checked records of the range. `known`: the table of the
    keyless deletes of earlier ranges, none if there are none. -#}
{%- macro _latest_keyless_deletes(changes, place, keys, known) -%}
select {{ place }}, max(known) as known, max(incoming) as incoming
from (
    select {{ place }}, cast(null as string) as known, _change_sequence as incoming
    from {{ changes }}
    where {{ reconcile.is_keyless_delete_record(keys) }}
    {%- if known %}
    union all
    select {{ place }}, _change_sequence, null
    from {{ known }}
    {%- endif %}
)
group by {{ place }}
{%- endmacro %}
