{#- As `version_counts`, where row deletes come with the range: one is applied, and deletes, if it ends a version; it is superseded if that has ended otherwise, or was ended by
    an earlier one; and pending if no record tells of its address before it. -#}
{%- macro version_counts_with_row_deletes(relations, settings, range) -%}
{{ reconcile.added_counts(
      reconcile.version_counts(relations.changes_cache, relations.fold_cache, range.delivered),
      reconcile._ending_counts(relations, settings, range),
      ['duplicate', 'superseded', 'pending', 'applied', 'deleted']) }}
{%- endmacro %}

{%- macro _ending_counts(relations, settings, range) -%}
select
    coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
    count_if(not is_known and ended = 0 and records_before > 0) as superseded,
    count_if(not is_known and ended = 0 and records_before = 0) as pending,
    count_if(not is_known and ended > 0) as applied,
    count_if(not is_known and ended > 0) as deleted
from (
    select
        come._change_records as records,
        {{ 'bool_or(known._row_id is not null)' if reconcile.knows_row_deletes(settings, range) else 'false' }} as is_known,
        count_if(version._change_undone.sequence = come._change_sequence) as ended,
        count(version._row_id) as records_before
    from (
        {{ reconcile.row_deletes(relations.changes_cache, settings.unique_key) | indent(8) }}
    ) as come
    {%- if reconcile.knows_row_deletes(settings, range) %}
    left join {{ reconcile.stored_row_deletes(relations.row_deletes, settings) }} as known
        on come._row_id = known._row_id and come._change_sequence = known._change_sequence
    {%- endif %}
    left join {{ relations.fold_cache }} as version
        on come._row_id = version._row_id and version._change_sequence < come._change_sequence
    group by come._row_id, come._change_sequence, come._change_records
)
{%- endmacro %}
