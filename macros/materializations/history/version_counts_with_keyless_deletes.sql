{#- As `version_counts`, if the range has keyless deletes. A keyless delete that ends a version is applied and counts as
    deleted. A row delete that ends no version is superseded if an earlier record has its address: the row there ended
    otherwise, or an earlier delete ended it. A row delete is pending if no earlier record has its address. A range
    delete that ends no version is applied and counts as tombstoned. -#}
{%- macro version_counts_with_keyless_deletes(relations, keyless, keys, range) -%}
{{ reconcile.summed_counts(
      reconcile.version_counts(relations.changes_cache, relations.fold_cache, range.delivered, keyless),
      reconcile._ending_counts(relations, keyless, keys, range.known_keyless_deletes),
      ['duplicate', 'superseded', 'pending', 'applied', 'deleted', 'tombstoned']) }}
{%- endmacro %}

{#- The counts of the keyless deletes of a range, each counted once for its place and sequence. `records`: how many
    copies of the delete the range holds. `is_known`: an earlier range has applied the delete. `ended`: how many versions
    it ends. `records_before`: how many records that it covers are before it in the order. `known`: the table of the
    keyless deletes of earlier ranges, none if there are none. -#}
{%- macro _ending_counts(relations, keyless, keys, known) -%}
{%- set by_address = 'true' if keyless.kind == 'row_deletes' else 'false' -%}
select
    coalesce(sum(records - if(is_known, 0, 1)), 0) as duplicate,
    count_if({{ by_address }} and not is_known and ended = 0 and records_before > 0) as superseded,
    count_if({{ by_address }} and not is_known and ended = 0 and records_before = 0) as pending,
    count_if(not is_known and (ended > 0 or not {{ by_address }})) as applied,
    count_if(not is_known and ended > 0) as deleted,
    count_if(not is_known and ended = 0 and not {{ by_address }}) as tombstoned
from (
    select
        incoming._change_records as records,
        {{ 'bool_or(known._change_sequence is not null)' if known else 'false' }} as is_known,
        count_if(version._change_ended_by.sequence = incoming._change_sequence) as ended,
        count(version._change_sequence) as records_before
    from (
        {{ reconcile.keyless_deletes(relations.changes_cache, keyless, keys) | indent(8) }}
    ) as incoming
    {%- if known %}
    left join {{ known }} as known
        on incoming.{{ keyless.place }} = known.{{ keyless.place }} and incoming._change_sequence = known._change_sequence
    {%- endif %}
    left join {{ relations.fold_cache }} as version
        on {{ reconcile.delete_covers_row(keyless, 'incoming.' ~ keyless.place, 'version') }} and version._change_sequence < incoming._change_sequence
    group by incoming.{{ keyless.place }}, incoming._change_sequence, incoming._change_records
)
{%- endmacro %}
