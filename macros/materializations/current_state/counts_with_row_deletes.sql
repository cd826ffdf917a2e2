{#- As `change_counts`, where row deletes are known or come with the range: `rows_cache` holds what `rows_beside_row_deletes` gives. -#}
{%- macro counts_with_row_deletes(relations, settings, range) -%}
{{ reconcile.added_counts(
      reconcile.change_counts(relations.changes_cache, relations.rows_cache, range.delivered, lost='_change_is_lost'),
      reconcile._row_delete_counts(relations, settings, range),
      ['duplicate', 'superseded', 'pending', 'applied', 'deleted', 'tombstoned']) }}
{%- endmacro %}

{#- The newest row delete of an address is applied if a row is there that is older; it is superseded if only newer rows are there, or if those that were
    there have gone on; and pending if nothing is known of the address. -#}
{%- macro _row_delete_counts(relations, settings, range) -%}
select
    coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
    count_if(is_new and not is_applied and (not is_latest or is_explained)) as superseded,
    count_if(is_new and not is_applied and is_latest and not is_explained) as pending,
    count_if(is_new and is_applied) as applied,
    count_if(is_new and is_applied and takes_live_row) as deleted,
    count_if(is_new and is_applied and not takes_live_row) as tombstoned
from (
    select
        come.is_known,
        not come.is_known as is_new,
        come.is_latest,
        come.records,
        come.is_latest and coalesce(bool_or(place.stands and place._change_sequence < come._change_sequence), false) as is_applied,
        coalesce(bool_or(place.stands and place._change_sequence < come._change_sequence and place.was_live), false) as takes_live_row,
        count(place._row_id) > 0 as is_explained
    from (
        {{ reconcile._row_deletes_beside_known(relations, settings, range) | indent(8) }}
    ) as come
    left join (
        {{ reconcile._rows_at_addresses(relations, settings, range) | indent(8) }}
    ) as place
        on come._row_id = place._row_id
    group by come._row_id, come._change_sequence, come.is_known, come.is_latest, come.records
)
{%- endmacro %}

{%- macro _row_deletes_beside_known(relations, settings, range) -%}
select
    *,
    _change_sequence = max(_change_sequence) over (partition by _row_id) as is_latest
from (
    select _row_id, _change_sequence, sum(records) as records, bool_or(is_known) as is_known
    from (
        select _row_id, _change_sequence, _change_records as records, false as is_known
        from (
            {{ reconcile.row_deletes(relations.changes_cache, settings.unique_key) | indent(12) }}
        )
        {%- if reconcile.knows_row_deletes(settings, range) %}
        union all
        select _row_id, _change_sequence, 0, true
        from {{ reconcile.stored_row_deletes(relations.row_deletes, settings) }}
        {%- endif %}
    )
    group by _row_id, _change_sequence
)
{%- endmacro %}

{#- What is known of the addresses: the rows that the range sets, those that the base table has, and the records in between, which set none. -#}
{%- macro _rows_at_addresses(relations, settings, range) -%}
{%- set key = reconcile.identifier(settings.unique_key[0]) -%}
select _row_id, _change_sequence, true as stands, _change_is_undone and not coalesce(_change_base_deleted, true) as was_live
from {{ relations.rows_cache }}
where _change_base_sequence is null or _change_sequence > _change_base_sequence
union all
select _row_id, _change_sequence, false, false
from {{ relations.changes_cache }}
where _change_error is null and {{ key }} is not null
{%- if reconcile.known_table(relations, range) %}
union all
select base._row_id, base._change_sequence, replaced.{{ key }} is null, not base._deleted{{ ' and coalesce(base._change_sequence >= known._change_sequence, true)' if reconcile.knows_row_deletes(settings, range) }}
from (
    select {{ reconcile.broadcast_hint('row_delete', range.delivered) }}{{ reconcile.key_columns(settings.unique_key) }}, _row_id, _change_sequence, _deleted
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), settings) }} as known
    left semi join (
        select _row_id
        from {{ relations.changes_cache }}
        where {{ reconcile.is_row_delete_record(settings.unique_key) }}
    ) as row_delete
        on known._row_id = row_delete._row_id
) as base
left join (
    select {{ reconcile.key_columns(settings.unique_key) }}
    from {{ relations.rows_cache }}
    where _change_base_sequence is null or _change_sequence > _change_base_sequence
) as replaced
    on {{ reconcile.keys_match(settings.unique_key, 'replaced', 'base') }}
{%- if reconcile.knows_row_deletes(settings, range) %}
left join (
    select _row_id, max(_change_sequence) as _change_sequence
    from {{ reconcile.stored_row_deletes(relations.row_deletes, settings) }}
    group by _row_id
) as known
    on base._row_id = known._row_id
{%- endif %}
{%- endif %}
{%- endmacro %}
