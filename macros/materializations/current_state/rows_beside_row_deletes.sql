{#- The fold of a range beside the row deletes, those that were known and those that come with it. `_deleted` and `_change_base_deleted` say whether
    the row is gone after the range and was before it, deleted or undone. `_change_is_undone`: by a row delete that comes and is the newest
    of the address; `_change_is_lost`: the record is undone, and what the model shows does not change by that record. -#}
{%- macro rows_beside_row_deletes(relations, settings, range) -%}
{%- set latest = reconcile._latest_row_deletes(relations, settings, range) -%}
select
    *,
    _change_is_undone or _deleted and not _change_is_delete and coalesce(_change_base_deleted, true) as _change_is_lost
from (
    select
        {%- for key in settings.unique_key %}
        fold.{{ reconcile.identifier(key) }},
        {%- endfor %}
        fold._row_id,
        fold._change_sequence,
        fold._change_batch,
        fold._change_records,
        fold._change_sequences,
        fold._change_base_sequence,
        fold._deleted as _change_is_delete,
        fold._deleted or coalesce(greatest(here.known, here.come) > fold._change_sequence, false) as _deleted,
        fold._change_base_deleted or coalesce(there.known > fold._change_base_sequence, false) as _change_base_deleted,
        not fold._deleted and coalesce(here.come > greatest(fold._change_sequence, here.known), false) as _change_is_undone
    from {{ relations.fold_cache }} as fold
    left join (
        {{ latest | indent(8) }}
    ) as here
        on fold._row_id = here._row_id
    left join (
        {{ latest | indent(8) }}
    ) as there
        on fold._change_base_row_id = there._row_id
)
{%- endmacro %}

{#- The newest row delete of each address: of those in the table, and of those in the range. -#}
{%- macro _latest_row_deletes(relations, settings, range) -%}
select _row_id, max(known) as known, max(come) as come
from (
    select _row_id, cast(null as string) as known, _change_sequence as come
    from {{ relations.changes_cache }}
    where {{ reconcile.is_row_delete_record(settings.unique_key) }}
    {%- if reconcile.knows_row_deletes(settings, range) %}
    union all
    select _row_id, _change_sequence, null
    from {{ reconcile.stored_row_deletes(relations.row_deletes, settings) }}
    {%- endif %}
)
group by _row_id
{%- endmacro %}
