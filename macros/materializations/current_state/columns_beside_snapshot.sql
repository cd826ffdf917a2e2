{#- The fold of a model that takes partial records, and of which staging has a snapshot beside the log: see
    docs/decisions/0071-snapshots-beside-spanner.md. A row of the snapshot is a record that sets the whole row. -#}

{#- As `columns_with_base`, with what the MERGE does with a row: `_change_is_merged`. What the snapshot contains is left
    out of the fold. In a range with a new snapshot, a row of the base table that no record of the snapshot's moment or
    later sets, and that the snapshot lacks, is absent: it is deleted at that moment, and has only the columns that were
    changed since. The snapshot's row is not merged if the base table has the same row. -#}
{%- macro columns_beside_snapshot(relations, form, snapshot, range) -%}
{%- set table = reconcile.known_table(relations, range) -%}
{%- set keys, floor = form.unique_key, reconcile.floor_of_snapshot(snapshot) -%}
{%- set finds_absent = range.repair and table -%}
{%- set known = reconcile.order_of('_change_base') -%}
{%- set base = {'_change_sequence': 'string', '_deleted': 'boolean', '_change_time': 'timestamp', '_change_row_sequence': 'string', '_change_column_sequences': 'map<string, string>'} -%}
{%- set both -%}
select
    {%- for key in keys %}
    {{ 'coalesce(newest.' ~ reconcile.identifier(key) ~ ', base.' ~ reconcile.identifier(key) ~ ') as ' ~ reconcile.identifier(key) if finds_absent else 'newest.' ~ reconcile.identifier(key) }},
    {%- endfor %}
    newest.* except ({{ reconcile.key_columns(keys) }}),
    {%- for column, type in base.items() %}
    {{ 'cast(null as ' ~ type ~ ')' if not table else 'base.' ~ column }} as {{ reconcile.name_of_base(column) }},
    {%- endfor %}
    {{ reconcile._keeps_values(form) if finds_absent else 'false' }} as _change_equals_base
from (
    {{ reconcile.newest_columns('(select * from ' ~ relations.changes_cache ~ " where _change_sequence >= '0')", form.columns, keys) | indent(4) }}
) as newest
{%- if finds_absent %}
full outer join {{ reconcile.stored_rows(table, form) }} as base
    on {{ reconcile.keys_match(keys, 'newest', 'base') }}
{%- elif table %}
{{ reconcile.join_touched_rows(relations, form, range, base) }}
{%- endif -%}
{%- endset -%}
{%- set newest -%}
{%- if finds_absent -%}
{%- set deleted = 'concat(' ~ reconcile.place_of_snapshot(snapshot) ~ ", '/0/0000000000000000')" -%}
select
    {{ reconcile.identifiers(form.columns) | join(', ') }},
    if(_change_is_absent, greatest(_change_sequence, {{ deleted }}), _change_sequence) as _change_sequence,
    if(_change_is_absent and _change_sequence is null, {{ reconcile.moment_of_snapshot(snapshot) }}, _change_time) as _change_time,
    if(_change_is_absent, greatest(_change_batch, {{ snapshot.batch }}), _change_batch) as _change_batch,
    if(_change_is_absent, true, _deleted) as _deleted,
    if(_change_is_absent, {{ deleted }}, _change_row_sequence) as _change_row_sequence,
    _change_column_sequences,
    if(_change_is_absent, concat(coalesce(_change_contributors, array()), array(struct({{ deleted }} as sequence, {{ snapshot.batch }}L as batch))), _change_contributors) as _change_contributors,
    coalesce(_change_records, 0) as _change_records,
    coalesce(_change_delivered, array()) as _change_delivered,
    {%- for column in base %}
    {{ reconcile.name_of_base(column) }},
    {%- endfor %}
    _change_equals_base,
    _change_is_absent
from (
    select
        *,
        coalesce(
            _change_row_sequence is null and coalesce(_change_base_row_sequence, '') < {{ floor }}
            and ({{ reconcile.is_live(known, '_change_base_deleted') }} or {{ reconcile.is_pending(known, '_change_base_deleted') }}) and _change_base_sequence is not null, false
        ) as _change_is_absent
    from (
        {{ both | indent(8) }}
    )
)
where _change_records is not null or _change_is_absent
{%- else -%}
select *, false as _change_is_absent
from (
    {{ both | indent(4) }}
)
{%- endif -%}
{%- endset -%}
select
    *,
    cardinality(_change_writers) > 0
    and not (_change_equals_base and _change_was_live and not _change_is_absent and forall(_change_writers, writer -> startswith(writer.sequence, {{ floor }}))) as _change_is_merged
from (
    {{ reconcile.columns_with_base(newest) | indent(4) }}
)
{%- endmacro %}

{#- Whether the snapshot changes none of the base table's values: of each column the value is the same, or the base table's
    value is the newer one, or a change of the range has replaced the snapshot's. -#}
{%- macro _keeps_values(form) -%}
{%- set known, incoming, kept = reconcile.order_of('base._change'), reconcile.order_of('newest._change'), [] -%}
{%- for column in form.columns if column.name not in form.unique_key -%}
  {%- do kept.append('(' ~ reconcile.has_same_values([column], 'newest', 'base') ~ ' or ' ~ reconcile.sequence_of_column(incoming, column.name) ~ ' <= ' ~ reconcile.sequence_of_column(known, column.name) ~ ' or newest._change_column_sequences[' ~ reconcile.literal(column.name) ~ '] is not null)') -%}
{%- endfor -%}
coalesce({{ kept | join(' and ') or 'true' }}, false)
{%- endmacro %}

{#- As `column_counts`, and the account of the snapshot, as `counts_beside_snapshot` has it. A change that the snapshot
    contains is superseded. No change is in doubt: the position shows of each commit whether the snapshot contains it. -#}
{%- macro column_counts_beside_snapshot(relations, form, snapshot, range) -%}
{%- set fold, changes, floor = relations.fold_cache, relations.changes_cache, reconcile.floor_of_snapshot(snapshot) -%}
{%- set contained = "from " ~ changes ~ " where _change_error is null and _change_sequence < '0'" -%}
{%- set distinct_changes = 'count(distinct struct(' ~ reconcile.key_columns(form.unique_key) ~ ', _change_sequence))' -%}
select
    {{ range.delivered }} as delivered,
    (select count_if(_change_error is not null and _change_snapshot <> 'row') from {{ changes }}) as quarantined,
    (select count(*) - {{ distinct_changes }} {{ contained }})
    + coalesce(sum(_change_records - _change_rows - cardinality(_change_delivered_by_log) + cardinality(filter(_change_delivered_by_log, record -> array_contains(_change_known, record.sequence)))), 0) as duplicate,
    (select {{ distinct_changes }} {{ contained }})
    + coalesce(sum(cardinality(filter(_change_delivered_by_log, record -> not array_contains(_change_known, record.sequence) and (
        record.sequence < _change_row_after
        or record.sequence < _change_newest_after and forall(record.carried, name -> coalesce(_change_columns_after[name], _change_row_after) > record.sequence)
    )))), 0) as superseded,
    {{ reconcile.counts_of_writers('_change_log_writers') | indent(4) }},
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged) as merged,
    max(if(_change_is_merged, array_max(transform(_change_writers, writer -> writer.batch)), null)) as base_batch,
    (select count_if(_change_snapshot = 'row') from {{ changes }}) as snapshot_rows,
    count_if(_change_is_set_by_snapshot and not _change_was_live) as snapshot_inserted,
    count_if(_change_is_set_by_snapshot and _change_was_live and not _change_equals_base) as snapshot_updated,
    count_if(_change_is_absent and _change_was_live) as snapshot_deleted,
    coalesce(sum(if(_change_is_set_by_snapshot and _change_was_live and _change_equals_base, _change_rows, 0)), 0) as snapshot_duplicate,
    coalesce(sum(if(_change_is_set_by_snapshot, 0, _change_rows)), 0) as snapshot_superseded,
    0 as snapshot_in_doubt
from (
    select
        *,
        filter(_change_delivered, record -> not startswith(record.sequence, {{ floor }})) as _change_delivered_by_log,
        filter(_change_writers, writer -> not startswith(writer.sequence, {{ floor }})) as _change_log_writers,
        cardinality(filter(_change_delivered, record -> startswith(record.sequence, {{ floor }}))) as _change_rows,
        not _change_is_absent and startswith(_change_row_after, {{ floor }}) and exists(_change_delivered, record -> startswith(record.sequence, {{ floor }})) as _change_is_set_by_snapshot
    from {{ fold }}
)
{%- endmacro %}
