{#- The fold of a model of which staging has a snapshot beside the log: see `records_beside_snapshot`. -#}

{#- The checked records of a range, and of a range with a new snapshot also the changes of earlier batches that the
    snapshot does not contain: they are in the base table, and get another place in the order. What they show of their
    columns was noted before. `explode` keeps the filter out of the parsing of the records, see `cache_recent_records`. -#}
{%- macro checked_records_beside_snapshot(sql, fields, form, range, noted) -%}
{%- do reconcile.refuse_without_side(fields) -%}
{%- set first = range.repair.first if range.repair else range.first -%}
{%- set records = reconcile.checked_records(sql, fields, form, first, range.last, extra_columns=noted + ['_change_snapshot']) -%}
{%- if first == range.first -%}
{{ records }}
{%- else -%}
{%- set forgotten = [] -%}
{%- for name in noted -%}{%- do forgotten.append('if(_change_batch < ' ~ range.first ~ ', null, ' ~ name ~ ') as ' ~ name) -%}{%- endfor -%}
select * except ({{ (noted + ['_change_is_placed_anew']) | join(', ') }}){{ ', ' ~ forgotten | join(', ') if noted }}
from (
    {{ records | indent(4) }}
)
lateral view explode(array(
    _change_error is null and _change_snapshot <> 'row' and _change_sequence >= '{{ reconcile.generation_of_snapshot(range.repair.oldest) }}'
)) as _change_is_placed_anew
where _change_batch >= {{ range.first }} or _change_is_placed_anew
{%- endif -%}
{%- endmacro %}

{#- A SELECT of the user's may have dropped the column. `fields`: its columns. -#}
{%- macro refuse_without_side(fields) -%}
  {%- if '_change_snapshot' not in fields -%}
    {%- do reconcile.raise_complaints(['its SELECT has no column _change_snapshot, by which the records that a snapshot contains are told apart; pass it on from the source macro']) -%}
  {%- endif -%}
{%- endmacro %}

{#- The newest record of each key, beside the base table's row, with what the MERGE does with it: `_change_is_merged`. A
    record whose sequence begins with a dash is contained in the snapshot, and sets no row. In a range with a new
    snapshot, a live row of the base table that is older than the snapshot, and that neither the snapshot nor a later
    change has, is absent: `_change_is_absent`. The snapshot's row of a key is not merged if the base table has the same
    row. Where buckets were compared, only rows of buckets that differ are here, and those that changes name: see `compare_buckets`. `_change_known_sequences`: the sequences of the changes that were read again; they are no records of the
    range. -#}
{%- macro newest_beside_snapshot(relations, form, snapshot, range) -%}
{%- if form.partial_records -%}
{{ reconcile.columns_beside_snapshot(relations, form, snapshot, range) }}
{%- else -%}
{{ reconcile._rows_beside_snapshot(relations, form, snapshot, range) }}
{%- endif -%}
{%- endmacro %}

{%- macro _rows_beside_snapshot(relations, form, snapshot, range) -%}
{%- set table = reconcile.known_table(relations, range) -%}
{%- set keys = form.unique_key -%}
{%- set values = form.columns | rejectattr('name', 'in', keys) | list -%}
{%- set finds_absent = range.repair and table -%}
{%- set compares = finds_absent and range.repair.buckets is defined -%}
{%- set base = {'_change_sequence': 'string', '_deleted': 'boolean', '_change_time': 'timestamp'} -%}
{%- set both -%}
select
    {%- for key in keys %}
    {{ 'coalesce(newest.' ~ reconcile.identifier(key) ~ ', base.' ~ reconcile.identifier(key) ~ ') as ' ~ reconcile.identifier(key) if finds_absent else 'newest.' ~ reconcile.identifier(key) }},
    {%- endfor %}
    {%- for column in values %}
    newest.{{ reconcile.identifier(column.name) }},
    {%- endfor %}
    newest._change_sequence,
    newest._change_time,
    newest._change_batch,
    newest._deleted,
    newest._change_snapshot,
    {%- if compares %}
    coalesce(newest._change_row, if(not base._change_is_compared and not base._deleted, {{ reconcile._values_as_row(values, 'base.') }}, null)) as _change_row,
    coalesce(base._change_is_compared, true) as _change_is_compared,
    {%- else %}
    newest._change_row,
    {%- endif %}
    {%- if finds_absent %}
    newest._change_records is not null as _change_is_touched,
    {%- endif %}
    coalesce(newest._change_records, 0) as _change_records,
    coalesce(newest._change_rows, 0) as _change_rows,
    coalesce(newest._change_sequences, cast(array() as array<string>)) as _change_sequences,
    coalesce(newest._change_known_sequences, cast(array() as array<string>)) as _change_known_sequences,
    coalesce(newest._change_sequence >= '0', false) as _change_sets_row,
    {%- for column, type in base.items() %}
    {{ 'cast(null as ' ~ type ~ ')' if not table else 'base.' ~ column }} as {{ reconcile.name_of_base(column) }},
    {%- endfor %}
    {{ reconcile.has_same_values(values, 'newest', 'base') if finds_absent else 'false' }} as _change_equals_base
from (
    {{ reconcile._newest_of_key(relations.changes_cache, form.columns, keys, range.first) | indent(4) }}
) as newest
{%- if finds_absent %}
full outer join {{ reconcile.rows_to_compare(relations, form, range) if compares else reconcile.stored_rows(table, form) }} as base
    on {{ reconcile.keys_match(keys, 'newest', 'base') }}
{%- elif table %}
{{ reconcile.join_touched_rows(relations, form, range, base) }}
{%- endif -%}
{%- endset -%}
select
    {{ reconcile.key_columns(keys) }},
    {%- for column in values %}
    {{ 'if(_change_is_absent, null, ' ~ reconcile.identifier(column.name) ~ ') as ' ~ reconcile.identifier(column.name) if finds_absent else reconcile.identifier(column.name) }},
    {%- endfor %}
    {%- if finds_absent %}
    {%- set taken_at = reconcile.moment_of_snapshot(snapshot) %}
    if(_change_is_absent, concat({{ reconcile.place_of_snapshot(snapshot) }}, '/0/0000000000000000'), _change_sequence) as _change_sequence,
    if(_change_is_absent, {{ taken_at }}, _change_time) as _change_time,
    if(_change_is_absent, {{ snapshot.batch }}, _change_batch) as _change_batch,
    if(_change_is_absent, true, _deleted) as _deleted,
    {%- else %}
    _change_sequence,
    _change_time,
    _change_batch,
    _deleted,
    {%- endif %}
    _change_snapshot,
    _change_records,
    _change_rows,
    _change_sequences,
    _change_known_sequences,
    _change_base_sequence,
    _change_base_deleted,
    _change_base_time,
    _change_is_absent,
    case
        when _change_is_absent then true
        when not _change_sets_row then false
        when _change_base_sequence is null then true
        when _change_snapshot = 'row' and _change_equals_base and not _change_base_deleted then false
        else _change_sequence > _change_base_sequence
    end as _change_is_merged,
    {%- set in_row = reconcile.has_same_values(values, 'folded', 'folded._change_row') %}
    coalesce(
        not _change_is_absent and _change_snapshot = 'uncertain' and {{ reconcile.is_in_log('_change_sequence') }}
        and if(_change_row is null, not _deleted, _deleted or not ({{ in_row }})), false
    ) as _change_is_in_doubt
from (
    select
        *,
        {% if finds_absent -%}
        coalesce(
            not _change_base_deleted and _change_base_sequence < {{ reconcile.floor_of_snapshot(snapshot) }} and not _change_sets_row{{ ' and _change_is_compared' if compares }}, false
        )
        {%- else %}false{% endif %} as _change_is_absent
    from (
        {{ both | indent(8) }}
    )
) as folded
{%- if finds_absent %}
where _change_is_touched or _change_is_absent
{%- endif %}
{%- endmacro %}

{#- The values of a row beside its key as one, as SQL. -#}
{%- macro _values_as_row(values, prefix='') -%}
struct({% for column in values %}{{ prefix }}{{ reconcile.identifier(column.name) }}{{ ', ' if not loop.last }}{% else %}true as is_there{% endfor %})
{%- endmacro %}

{#- As `newest_records`. `_change_rows` is the number of the snapshot's rows of the key, and `_change_row` their
    values. `first`: the first batch of the range. -#}
{%- macro _newest_of_key(changes, columns, keys, first) -%}
{%- set values = columns | rejectattr('name', 'in', keys) | list -%}
{%- set is_of_range = "_change_snapshot <> 'row' and _change_batch >= " ~ first -%}
select
    {%- for key in keys %}
    {{ reconcile.identifier(key) }},
    {%- endfor %}
    newest.* except ({{ reconcile.key_columns(keys) }}),
    records as _change_records,
    sequences as _change_sequences,
    known_sequences as _change_known_sequences,
    snapshot_rows as _change_rows,
    snapshot_row as _change_row
from (
    select
        {{ reconcile.key_columns(keys) }},
        max_by(
            struct(
                {{ reconcile.columns_of_record(columns, keys) | indent(16) }},
                _change_snapshot
            ),
            struct(_change_sequence, -_change_batch)
        ) as newest,
        count_if({{ is_of_range }}) as records,
        collect_set(if({{ is_of_range }}, _change_sequence, null)) as sequences,
        collect_set(if(_change_batch < {{ first }}, _change_sequence, null)) as known_sequences,
        count_if(_change_snapshot = 'row') as snapshot_rows,
        max_by(
            {{ reconcile._values_as_row(values) }},
            if(_change_snapshot = 'row', _change_sequence, null)
        ) as snapshot_row
    from {{ changes }}
    where _change_error is null
    group by {{ reconcile.key_columns(keys) }}
)
{%- endmacro %}

{#- As `change_counts`, and the account of the snapshot, if the range has a new one: of its rows `snapshot_rows`,
    `snapshot_inserted` and `snapshot_updated` were merged, the base table had `snapshot_duplicate`, and later changes won
    over `snapshot_superseded`. `snapshot_deleted` are rows of the base table that it lacks. `snapshot_in_doubt`: rows
    that were left to changes of which the position does not show whether the snapshot contains them, and that differ
    from the snapshot. -#}
{%- macro counts_beside_snapshot(relations, form, snapshot, range) -%}
{%- if form.partial_records -%}
{{ reconcile.column_counts_beside_snapshot(relations, form, snapshot, range) }}
{%- else -%}
{{ reconcile._row_counts_beside_snapshot(relations, range) }}
{%- endif -%}
{%- endmacro %}

{%- macro _row_counts_beside_snapshot(relations, range) -%}
{%- set fold, changes = relations.fold_cache, relations.changes_cache -%}
{%- set is_row = "_change_snapshot = 'row'" -%}
{%- set rows_in_changes = '(select count_if(' ~ is_row ~ ') from ' ~ changes ~ ')' -%}
select
    {{ range.delivered }} as delivered,
    (select count_if(_change_error is not null and _change_snapshot <> 'row') from {{ changes }}) as quarantined,
    coalesce(sum(_change_records - cardinality(_change_sequences) + cardinality(filter(_change_sequences, sequence -> sequence <=> _change_base_sequence or array_contains(_change_known_sequences, sequence)))), 0) as duplicate,
    coalesce(sum(cardinality(filter(_change_sequences, sequence -> not sequence <=> _change_base_sequence and not array_contains(_change_known_sequences, sequence) and (sequence <> _change_sequence or not _change_is_applied)))), 0) as superseded,
    0 as pending,
    count_if(_change_is_applied) as applied,
    count_if(_change_is_applied and not _deleted and not _change_was_live) as inserted,
    count_if(_change_is_applied and not _deleted and _change_was_live) as updated,
    count_if(_change_is_applied and _deleted and _change_was_live) as deleted,
    count_if(_change_is_applied and _deleted and not _change_was_live) as tombstoned,
    count_if(_change_base_sequence is null) as new_keys,
    count_if(_change_is_merged) as merged,
    max(if(_change_is_merged, _change_batch, null)) as base_batch,
    {{ range.repair.snapshot.rows if range.repair.buckets is defined else rows_in_changes }} as snapshot_rows,
    count_if(_change_is_set_by_snapshot and _change_is_merged and not _change_was_live) as snapshot_inserted,
    count_if(_change_is_set_by_snapshot and _change_is_merged and _change_was_live) as snapshot_updated,
    count_if(_change_is_absent) as snapshot_deleted,
    coalesce(sum(if(_change_is_set_by_snapshot and not _change_is_merged, _change_rows, 0)), 0){{ ' + ' ~ range.repair.snapshot.rows ~ ' - ' ~ rows_in_changes if range.repair.buckets is defined }} as snapshot_duplicate,
    coalesce(sum(if(_change_is_set_by_snapshot, 0, _change_rows)), 0) as snapshot_superseded,
    count_if(_change_is_in_doubt) as snapshot_in_doubt
from (
    select
        *,
        not _change_is_absent and {{ is_row }} and not coalesce(_change_base_sequence > _change_sequence, false) as _change_is_set_by_snapshot,
        _change_is_merged and not _change_is_absent and _change_snapshot <> 'row' and not array_contains(_change_known_sequences, _change_sequence) as _change_is_applied,
        coalesce(not _change_base_deleted, false) as _change_was_live
    from {{ fold }}
)
{%- endmacro %}
