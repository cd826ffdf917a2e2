{#- What staging holds when both sides are compared: {last, first, recent, base_batch, has_base, purged, quarantined}.
    `last`: its last batch. `first`: the first batch that can hold records after the position, or records that the base
    table has not seen. `recent`: the first batch within the allowance. `quarantined`: batches before `first` with
    records that could not be applied. `purged`: the last batch that was purged, 0 if none was. The clocks of the source
    and of the appending job may differ by an hour. The argument `version` is the version of the base table; none if
    there is no such table. -#}
{%- macro staged_at(comparison, version) -%}
  {%- set position, inputs, relations = comparison.position, comparison.inputs, comparison.relations -%}
  {%- set has_base = version is not none and comparison.form.materialized == 'current_state' -%}
  {%- set base_batch = run_query('select max(_change_batch) from ' ~ reconcile.at_version(relations.base, version))[0][0] | int(0) if has_base else 0 -%}
  {%- if inputs.objects -%}
    {%- set staged = reconcile.one_row(reconcile._staged_batches(comparison)) -%}
  {%- else -%}
    {%- set staged = {'last': run_query('select max(_change_batch) from ' ~ reconcile.qualified(relations.changes))[0][0] | int(0), 'first': 1, 'recent': none} -%}
  {%- endif -%}
  {%- if position.kind == 'appended_at' -%}
    {%- do position.update({'kind': 'batch', 'value': staged.as_of_batch | int(0)}) -%}
  {%- endif -%}
  {%- if position.kind == 'batch' -%}
    {%- set first = position.value | int + 1 -%}
  {%- else -%}
    {%- set first = staged.last + 1 if staged.first is none else staged.first -%}
  {%- endif -%}
  {%- set first = [first, base_batch + 1] | min if has_base else 1 -%}
  {%- set quarantined = [] -%}
  {%- if first > 1 -%}
    {%- for row in run_query('select distinct _change_batch from ' ~ reconcile.qualified(relations.quarantine) ~ ' where _change_batch < ' ~ first) -%}
      {%- do quarantined.append(row[0]) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return({'last': staged.last, 'first': first, 'recent': staged.recent, 'base_batch': base_batch, 'has_base': has_base, 'quarantined': quarantined,
             'purged': reconcile.last_purged(inputs)}) }}
{%- endmacro %}

{%- macro _staged_batches(comparison) -%}
{%- set position = comparison.position -%}
select
    coalesce(max(batch), 0) as last,
    {{ 'min(if(appended_at >= ' ~ (position.from or position.taken_at) ~ " - interval '1 hour', batch, null))" if position.taken_at else '1' }} as first,
    {%- if position.kind == 'appended_at' %}
    max(if(appended_at <= to_timestamp({{ reconcile.literal(position.value) }}), batch, null)) as as_of_batch,
    {%- endif %}
    min(if(appended_at >= current_timestamp() - interval '{{ comparison.allowance }}', batch, null)) as recent
from {{ reconcile.qualified(comparison.inputs.relations[0]) }}
{%- endmacro %}

{#- Whether everything up to the position has been delivered: {is_complete, reason}. For Spanner, the windows show it.
    For Datastream, nothing shows it: everything counts as delivered once the allowance has passed since the position,
    and no record from before the position has come for as long. -#}
{%- macro delivery_at(comparison, staged) -%}
  {%- set position = comparison.position -%}
  {%- if not position.taken_at -%}
    {{ return({'is_complete': true, 'reason': none}) }}
  {%- elif position.kind == 'read_timestamp' -%}
    {%- set cut = reconcile.one_row(reconcile._cut_at_position(comparison, staged)) -%}
    {{ return({'is_complete': cut.covers_position, 'reason': none if cut.covers_position else ('staging holds all commits up to ' ~ cut.cut_time ~ ', which is before the position' if cut.cut_time else 'staging has no window that shows up to which time it holds all commits') ~ '; append the changes since then, and test again'}) }}
  {%- endif -%}
  {%- set arrivals = reconcile.one_row(reconcile._late_records(comparison, staged)) -%}
  {%- if not arrivals.has_passed -%}
    {{ return({'is_complete': false, 'reason': 'less time than the allowance of ' ~ comparison.allowance ~ ' has passed since the position; test again later'}) }}
  {%- elif arrivals.late -%}
    {{ return({'is_complete': false, 'reason': arrivals.late ~ ' records from before the position arrived within the last ' ~ comparison.allowance ~ ', the allowance; test again later'}) }}
  {%- endif -%}
  {{ return({'is_complete': true, 'reason': none}) }}
{%- endmacro %}

{%- macro _cut_at_position(comparison, staged) -%}
{%- set position = comparison.position -%}
select max(cut_time) as cut_time, coalesce(max(nanoseconds) >= {{ reconcile.hex_of_nanoseconds(position.taken_at, reconcile.literal(position.value)) }}, false) as covers_position
from (
    select cut_time, {{ reconcile.hex_of_nanoseconds('to_timestamp(cut_time)', 'cut_time') }} as nanoseconds
    from (
        select get_json_object(record, '$.cut_time') as cut_time
        from {{ reconcile.qualified(comparison.inputs.relations[0]) }}
        where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch <= {{ staged.last }}
    )
)
{%- endmacro %}

{%- macro _late_records(comparison, staged) -%}
select
    current_timestamp() >= {{ comparison.position.taken_at }} + interval '{{ comparison.allowance }}' as has_passed,
    {%- if staged.recent is none %}
    0 as late
    {%- else %}
    (
        select count_if(coalesce(_change_happened_at <= {{ comparison.position.taken_at }}, true))
        from {{ reconcile.qualified(comparison.relations.changes) }}
        lateral view explode(array(_change_time)) as _change_happened_at
        where _change_batch between {{ staged.recent }} and {{ staged.last }}
    ) as late
    {%- endif %}
{%- endmacro %}

{#- The change records of some batches, checked as a materialization checks them, with their side of the position. The
    batches are `first` to `last`, and those in the list `more`. -#}
{%- macro _placed_records(comparison, first, last, more=[]) -%}
{%- set form = comparison.form -%}
{%- set placed -%}
        select *, {{ reconcile.side_of(comparison.position, comparison.inputs) }} as _change_side
        from {{ reconcile.qualified(comparison.relations.changes) }}
        lateral view explode(array(_change_sequence)) as _change_place
        where _change_batch between {{ first }} and {{ last }}
            {{- ' or _change_batch in (' ~ more | join(', ') ~ ')' if more }}
{%- endset -%}
{{ reconcile.checked_records(placed, [], form, 1, last, extra_columns=['_change_side']) }}
{%- endmacro %}

{%- macro _has_key(keys) -%}
{%- for key in keys -%}{{ reconcile.identifier(key) }} is not null{{ ' and ' if not loop.last }}{%- endfor -%}
{%- endmacro %}

{#- The records because of which a row of the base table may not be the row at the position. They are not before the
    position, not in the base table, or not applied at all. Where keys may shift, keyless deletes that are not in the
    base table may undo inserts of rows that are: the keys of such rows count too.

    `explode` keeps the filter out of the parsing of the records: where all columns of a model are texts, Spark 4.1 would
    push the filter there, and lose a column that the filter needs (INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND). -#}
{%- macro cache_recent_records(comparison, staged, version) -%}
{%- set form = comparison.form -%}
{%- set key, by_address = reconcile.key_columns(form.unique_key), reconcile.keys_may_shift(form.keyless) -%}
{%- set recent = reconcile._placed_records(comparison, staged.first, staged.last, staged.quarantined) -%}
{%- set is_recent = "_change_side <> 'before' or _change_batch > " ~ staged.base_batch ~ ' or _change_has_error' -%}
{%- set query -%}
select {{ key }},{{ ' _row_id,' if form.row_ids }}{{ ' _change_transaction, _change_batch,' if by_address }} _change_sequence, _change_error, _change_side
from (
    {{ recent | indent(4) }}
)
lateral view explode(array(_change_error is not null)) as _change_has_error
where {{ is_recent }}
{%- if by_address and staged.has_base %}
union all
select {{ key }}, null, null, null, null, null, 'before'
from (
    {{ reconcile.keys_with_undone_inserts(
          reconcile.stored_rows(comparison.relations.base, form, version),
          '(\n' ~ recent ~ '\n)', form.unique_key) | indent(4) }}
)
{%- endif %}
{%- endset -%}
{{ reconcile.cached(comparison.recent_cache, query) }}
{%- endmacro %}

{#- `touched`: how many rows have such records. `unreadable`: how many records do not even show their row. -#}
{%- macro count_recent_records(comparison) -%}
{%- set keys = comparison.form.unique_key -%}
select
    count(distinct if({{ reconcile._has_key(keys) }}, struct({{ reconcile.key_columns(keys) }}), null)) as touched,
    count_if(_change_error is not null and not ({{ reconcile._has_key(keys) }})) as unreadable
from {{ comparison.recent_cache }}
{%- endmacro %}

{#- All records of those rows, to be folded up to the position. For a current_view, which has no table, the records of
    all rows. -#}
{%- macro cache_touched_records(comparison, staged) -%}
{%- set keys = comparison.form.unique_key -%}
{%- set query -%}
select {{ reconcile.broadcast_hint('touched', staged.touched) }}change.*
from (
    {{ reconcile._placed_records(comparison, 1, staged.last) | indent(4) }}
) as change
left semi join {{ comparison.recent_cache }} as touched
    on {{ reconcile.keys_match(keys, 'touched', 'change') }}
{%- endset -%}
{{ reconcile.cached(comparison.touched_cache, query) }}
{%- endmacro %}

{#- The macros below return SELECTs, and not common table expressions: through a common table expression, Spark does not
    see that the relation it reads is cached.

    This SELECT gives the rows that may have changed: whether they changed while it is uncertain on which side of the
    position that is, and how many of their records are in quarantine. -#}
{%- macro _touched_rows(comparison) -%}
{%- set keys = comparison.form.unique_key -%}
select {{ reconcile.key_columns(keys) }}, bool_or(_change_side = 'uncertain') as _change_is_uncertain, count_if(_change_error is not null) as _change_quarantined
from {{ comparison.recent_cache }}
where {{ reconcile._has_key(keys) }}
group by {{ reconcile.key_columns(keys) }}
{%- endmacro %}

{#- The rows of the base table at the position, deleted ones too: untouched rows as the table has them, touched rows
    folded. -#}
{%- macro _state_at_position(comparison, versions, staged) -%}
{%- set form, keys = comparison.form, comparison.form.unique_key -%}
{%- set columns = reconcile.identifiers(form.columns) + ['_change_sequence', '_deleted']
      + (['_change_row_sequence'] if form.partial_records else [])
      + (['_row_id'] if form.row_ids else []) -%}
{%- set stored = reconcile.stored_keyless_deletes(comparison.relations, form.keyless, form.file_format)
      if reconcile.keys_may_shift(form.keyless) and reconcile.existing_relation(comparison.relations.row_deletes) -%}
{%- set undoing = reconcile.undoing_deletes(comparison.recent_cache, keys, stored)
      if reconcile.keys_may_shift(form.keyless) -%}
{%- if staged.has_base -%}
select {{ reconcile.broadcast_hint('touched', staged.touched) }}{{ columns | join(', ') }}
from {{ reconcile.stored_rows(comparison.relations.base, form, versions.model) }} as known
left anti join (
    {{ reconcile._touched_rows(comparison) | indent(4) }}
) as touched
    on {{ reconcile.keys_match(keys, 'touched', 'known') }}
{{ 'union all' if staged.folds }}
{% endif -%}
{%- if staged.folds -%}
select {{ columns | join(', ') }}
from (
    {{ reconcile.fold_of('(select * from ' ~ comparison.touched_cache ~ " where _change_side = 'before')", form, undoing) | indent(4) }}
)
{%- endif -%}
{%- endmacro %}

{#- The row deletes that count for the rows: those of recent records, and those in the table of row deletes. -#}
{%- macro _keyless_deletes_at_position(comparison) -%}
select _row_id, _change_sequence
from {{ comparison.recent_cache }}
where {{ reconcile.is_keyless_delete_record(comparison.form.unique_key) }}
{%- if reconcile.existing_relation(comparison.relations.row_deletes) %}
union all
select _row_id, _change_sequence
from {{ reconcile.stored_keyless_deletes(
        comparison.relations, comparison.form.keyless, comparison.form.file_format) }}
{%- endif %}
{%- endmacro %}

{#- The live rows at the position. A row that a row delete undid was never committed, on whichever side of the position
    the row delete lies. -#}
{%- macro rows_at_position(comparison, versions, staged) -%}
{%- set form = comparison.form -%}
{{ reconcile.shown_rows(
      form, '(\n    ' ~ reconcile._state_at_position(comparison, versions, staged) | indent(4) ~ '\n)',
      '(\n    ' ~ reconcile._keyless_deletes_at_position(comparison) | indent(4) ~ '\n)' if form.keyless) }}
{%- endmacro %}

{#- One result row for each touched row and, with partial records, each pending row: whether one of its records is on an
    uncertain side of the position, the versions that these records give, and how many of its records are in quarantine.
    A record that does not set the whole row, as an update of some columns, gives no version. The argument `versions` is
    something else: the versions of the two tables. `staged.folds`: see `compare`. -#}
{%- macro doubts_at_position(comparison, versions, staged) -%}
{%- set form, keys = comparison.form, comparison.form.unique_key -%}
{%- set key, columns = reconcile.key_columns(keys), reconcile.identifiers(form.columns) | join(', ') -%}
{%- set no_versions = 'cast(null as array<' ~ reconcile._version_type(form.columns) ~ '>)' -%}
select
    {{ key }},
    bool_or(_change_is_uncertain) as _change_is_uncertain,
    sum(_change_quarantined) as _change_quarantined,
    bool_or(_change_is_pending) as _change_is_pending,
    flatten(collect_list(_change_versions)) as _change_versions
from (
    select {{ key }}, _change_is_uncertain, _change_quarantined, false as _change_is_pending, {{ no_versions }} as _change_versions
    from (
        {{ reconcile._touched_rows(comparison) | indent(8) }}
    )
    {%- if form.partial_records %}
    union all
    select {{ key }}, false, 0, true, null
    from (
        {{ reconcile._state_at_position(comparison, versions, staged) | indent(8) }}
    )
    where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') }}
    {%- endif %}
    {%- if staged.folds %}
    union all
    select {{ key }}, false, 0, false, array(struct(_change_type = 'delete' as _deleted, {{ columns }}))
    from {{ comparison.touched_cache }}{{ ' as change' if form.keyless }}
    where _change_side = 'uncertain' and _change_error is null{{ ' and _change_columns is null' if form.partial_records }}
        {%- if form.keyless %}
        and not exists (
            select 1
            from (
                {{ reconcile._keyless_deletes_at_position(comparison) | indent(16) }}
            ) as row_delete
            where row_delete._row_id = change._row_id and row_delete._change_sequence > change._change_sequence
        )
        {%- endif %}
    {%- endif %}
)
group by {{ key }}
{%- endmacro %}

{%- macro _version_type(columns) -%}
struct<_deleted: boolean{% for column in columns %}, {{ reconcile.identifier(column.name) }}: {{ column.type.ddl }}{% endfor %}>
{%- endmacro %}
