{#- The records of a history of which staging has snapshots beside the log: see docs/decisions/0044-snapshots-in-the-fold.md.
    A history keeps what a snapshot contains. So all snapshots count, and each is a set of records between the changes
    that it contains and the others: a row of the snapshot, or a delete of a key that it lacks. A record of a snapshot
    that changes nothing is left out. It comes back if a change of before comes late, and is not told by the rows that
    follow; so the rows of earlier snapshots are read again for such keys. -#}

{#- Statements that cache the records of a range beside snapshots: `rows_cache`, the rows of earlier snapshots;
    `keys_cache`, the keys of which records are new; `records_cache`, all records of these keys; and `removed_cache`, the
    rows of the base table that are no records any more. `_change_records` is the number of copies of a record in the
    range, and `_change_was_known` says whether the base table has the record, perhaps in another place of the order:
    `_change_known_sequences`. `_change_is_of_snapshot`: a snapshot made it.
    `_change_is_redundant`: and it changes nothing. -#}
{%- macro cache_records_beside_snapshots(relations, settings, range) -%}
  {%- set form, snapshots = settings.form, reconcile.snapshots_in_order(settings.snapshot) -%}
  {%- do reconcile.run_statements(reconcile.get_uncache_records_statements(relations)) -%}
  {%- set used, earlier = [], [] -%}
  {%- for snapshot in snapshots if snapshot.batch <= range.last -%}
    {%- do (used if snapshot.batch >= range.first else earlier).append(snapshot) -%}
  {%- endfor -%}
  {%- set has_earlier = earlier and run_query(
        'select count(*) from ' ~ relations.changes_cache ~ " where _change_error is null and _change_snapshot <> 'row' and _change_sequence < '"
        ~ reconcile.generation_of_snapshot(earlier[-1]) ~ "'")[0][0] | int > 0 -%}
  {%- do reconcile.run_statements([reconcile.cached(relations.keys_cache, reconcile._keys_beside_snapshots(relations, form, range, used))]) -%}
  {%- if has_earlier -%}
    {%- for snapshot in earlier -%}{%- do reconcile.refuse_missing_rows_of_snapshot(settings.inputs.relations[0], snapshot) -%}{%- endfor -%}
    {%- do reconcile.run_statements([reconcile.cached(relations.rows_cache, reconcile._rows_of_earlier_snapshots(relations, form, range, earlier))]) -%}
  {%- endif -%}
  {%- do reconcile.run_statements([
        reconcile.cached(relations.records_cache, reconcile._records_beside_snapshots(
            relations, form, range, snapshots, used, earlier if has_earlier else [])),
        reconcile.cached(relations.removed_cache, reconcile._removed_records(relations, form))]) -%}
{%- endmacro %}

{%- macro get_uncache_records_statements(relations) -%}
  {{ return([
      'drop view if exists ' ~ relations.removed_cache,
      'drop view if exists ' ~ relations.records_cache,
      'drop view if exists ' ~ relations.keys_cache,
      'drop view if exists ' ~ relations.rows_cache]) }}
{%- endmacro %}

{#- The records that make versions: what `recomputed_versions` takes for the records of a range. -#}
{%- macro kept_records(relations) -%}
select *
from {{ relations.records_cache }}
where not _change_is_redundant
{%- endmacro %}

{#- The rows of the base table that are no records any more: those of a snapshot that changes nothing now, since what
    was lost has come; and changes that have another place in the order. They have a cache of their own: Delta refuses a
    MERGE that generates rows and also asks for the rows of its target. -#}
{%- macro _removed_records(relations, form) -%}
select {{ reconcile.key_columns(form.unique_key) }}, _change_known_sequence as _change_sequence
from {{ relations.records_cache }}
lateral view explode(_change_known_sequences) as _change_known_sequence
where _change_is_redundant or _change_known_sequence <> _change_sequence
{%- endmacro %}

{#- `explode` keeps the filter out of the parsing of the records, see `cache_recent_records`. -#}
{%- macro _rows_of_earlier_snapshots(relations, form, range, earlier) -%}
select *
from (
    select *
    from (
        {{ reconcile.checked_records(sql, [], form, earlier[0].batch, range.first - 1, extra_columns=['_change_snapshot']) | indent(8) }}
    )
    lateral view explode(array(_change_snapshot = 'row' and _change_error is null)) as _change_is_row
    where _change_is_row
) as earlier
left semi join {{ relations.keys_cache }} as touched
    on {{ reconcile.keys_match(form.unique_key, 'touched', 'earlier') }}
{%- endmacro %}

{#- The keys of which records are new. Of a snapshot of the range only the rows count that differ from the live ones of
    the base table, and the live ones that the snapshot lacks. -#}
{%- macro _keys_beside_snapshots(relations, form, range, used) -%}
{%- set keys, key = form.unique_key, reconcile.key_columns(form.unique_key) -%}
{%- set values = form.columns | rejectattr('name', 'in', keys) | list -%}
{%- set table = reconcile.known_table(relations, range) -%}
select distinct {{ key }}
from (
    select {{ key }}
    from {{ relations.changes_cache }}
    where _change_error is null{{ " and _change_snapshot <> 'row'" if table }}
    {%- for snapshot in used if table %}
    union all
    select {% for name in keys %}coalesce(staged.{{ reconcile.identifier(name) }}, live.{{ reconcile.identifier(name) }}) as {{ reconcile.identifier(name) }}{{ ', ' if not loop.last }}{% endfor %}
    from (
        select *
        from {{ relations.changes_cache }}
        where _change_error is null and _change_snapshot = 'row' and _change_batch = {{ snapshot.batch }}
    ) as staged
    full outer join (
        select *
        from {{ reconcile.stored_rows(table, form) }}
        where valid_to is null and _change_type <> 'delete'
    ) as live
        on {{ reconcile.keys_match(keys, 'staged', 'live') }}
    where staged._change_sequence is null or live._change_sequence is null or not ({{ reconcile.has_same_values(values, 'staged', 'live') }})
    {%- endfor %}
)
{%- endmacro %}

{#- `snapshots`: all of them. `used`: those in the range. `earlier`: those before it, if their rows are read again. -#}
{%- macro _records_beside_snapshots(relations, form, range, snapshots, used, earlier) -%}
{%- set keys, key = form.unique_key, reconcile.key_columns(form.unique_key) -%}
{%- set values = form.columns | rejectattr('name', 'in', keys) | list -%}
{%- set names = reconcile.identifiers(values) -%}
{%- set carried = 'struct(' ~ (names or ['null as nothing']) | join(', ') ~ ')' -%}
{%- set own = reconcile.derived_columns(false) + reconcile.columns_of_copies(none) -%}
{%- set fields = key ~ ', _change_type, _change_sequence, _change_id, _change_time, _change_batch' -%}
{%- set ids = [] -%}
{%- for snapshot in snapshots -%}{%- do ids.append(reconcile.literal(snapshot.snapshot)) -%}{%- endfor -%}
{%- set table = reconcile.known_table(relations, range) -%}
{%- set absent = [] -%}
{%- for snapshot in earlier + used -%}
  {%- do absent.append('struct(concat(' ~ reconcile.place_of_snapshot(snapshot) ~ ", '/0/0000000000000000'), " ~ reconcile.literal(snapshot.snapshot) ~ ', ' ~ reconcile.moment_of_snapshot(snapshot) ~ ', ' ~ snapshot.batch ~ ')') -%}
{%- endfor -%}
{%- set read -%}
if(_change_type = 'delete', null, {{ carried }}) as _change_carried, cast(null as {{ reconcile.type_of_known(form) }}) as _change_known
{%- endset -%}
select
    *,
    coalesce(_change_is_of_snapshot and if(
        _change_type = 'delete',
        not coalesce(_change_preceding.is_live, false),
        coalesce(_change_preceding.is_live and {{ reconcile.has_same_values(values, '_change_carried', '_change_preceding.carried') }}, false)
    ), false) as _change_is_redundant
from (
    select
        *,
        lag(struct(_change_type <> 'delete' as is_live, _change_carried as carried)) over (partition by {{ key }} order by _change_sequence) as _change_preceding
    from (
        select
            * except (_change_place, _change_knowns),
            get(filter(_change_knowns, known -> known.sequence = _change_sequence), 0).known as _change_known,
            transform(_change_knowns, known -> known.sequence) as _change_known_sequences,
            cardinality(_change_knowns) > 0 as _change_was_known
        from (
            select
                {{ key }},
                _change_place,
                _change_is_of_snapshot,
                max(_change_sequence) as _change_sequence,
                first(_change_type) as _change_type,
                min(struct(_change_time, _change_id))._change_time as _change_time,
                min(struct(_change_time, _change_id))._change_id as _change_id,
                min(_change_batch) as _change_batch,
                first(_change_carried) as _change_carried,
                max(_change_side) as _change_side,
                collect_list(if(_change_known is null, null, struct(_change_sequence as sequence, _change_known as known))) as _change_knowns,
                count_if(_change_is_of_range) as _change_records
            from (
                select
                    *,
                    _change_id in ({{ ids | join(', ') }}) as _change_is_of_snapshot,
                    {#- A change that was read again has another generation than in the base table. #}
                    if(_change_id in ({{ ids | join(', ') }}), _change_sequence, substring(_change_sequence, 5)) as _change_place
                from (
                    select {{ fields }}, {{ read }}, _change_snapshot as _change_side, _change_snapshot <> 'row' and _change_batch >= {{ range.first }} as _change_is_of_range
                    from {{ relations.changes_cache }}
                    where _change_error is null
                    {%- if earlier %}
                    union all
                    select {{ fields }}, {{ read }}, 'row', false
                    from {{ relations.rows_cache }}
                    {%- endif %}
                    {%- if absent %}
                    union all
                    select {{ key }}, 'delete', _change_sequence, _change_id, _change_time, _change_batch, null, null, 'row', false
                    from (
                        select *
                        from {{ relations.keys_cache }}
                        lateral view inline(array(
                            {{ absent | join(',\n                            ') }}
                        )) as _change_sequence, _change_id, _change_time, _change_batch
                    ) as absent
                    left anti join (
                        select {{ key }}, _change_batch
                        from {{ relations.changes_cache }}
                        where _change_error is null and _change_snapshot = 'row'
                        {%- if earlier %}
                        union all
                        select {{ key }}, _change_batch
                        from {{ relations.rows_cache }}
                        {%- endif %}
                    ) as staged
                        on {{ reconcile.keys_match(keys, 'staged', 'absent') }} and staged._change_batch = absent._change_batch
                    {%- endif %}
                    {%- if table %}
                    union all
                    select {{ fields }}, {{ carried }}, struct({{ own | join(', ') }}), null, false
                    from {{ reconcile.stored_rows(table, form) }}
                    {%- endif %}
                ) as record
                left semi join {{ relations.keys_cache }} as touched
                    on {{ reconcile.keys_match(keys, 'touched', 'record') }}
            )
            group by {{ key }}, _change_place, _change_is_of_snapshot
        )
    )
)
{%- endmacro %}

{#- As `version_counts`, beside snapshots. The counts of the snapshot are those of `counts_beside_snapshot`. A row that
    changes nothing is a duplicate. -#}
{%- macro version_counts_beside_snapshots(relations, form, range, snapshot) -%}
{%- set values = form.columns | rejectattr('name', 'in', form.unique_key) | list -%}
{%- set is_of_newest = "_change_is_of_snapshot and _change_is_new and left(_change_sequence, 4) = '" ~ reconcile.generation_of_snapshot(snapshot) ~ "'" -%}
{%- set rows = "(select count_if(_change_snapshot = 'row' and _change_batch = " ~ snapshot.batch ~ ') from ' ~ relations.changes_cache ~ ')' -%}
select *, snapshot_rows - snapshot_inserted - snapshot_updated as snapshot_duplicate
from (
    select
        {{ range.delivered }} as delivered,
        (select count_if(_change_error is not null and _change_snapshot <> 'row') from {{ relations.changes_cache }}) as quarantined,
        coalesce(sum(_change_records - if(_change_is_applied, 1, 0)), 0) as duplicate,
        0 as superseded,
        0 as pending,
        count_if(_change_is_applied) as applied,
        {%- for effect in ['inserted', 'updated', 'deleted', 'tombstoned'] %}
        count_if(_change_is_applied and _change_effect = '{{ effect }}') as {{ effect }},
        {%- endfor %}
        count_if(_change_is_new) as new_keys,
        count_if(_change_is_new or _change_is_revised) + (select count(*) from {{ relations.removed_cache }}) as merged,
        max(if(_change_is_new, _change_batch, null)) as base_batch,
        {{ rows }} as snapshot_rows,
        {%- for effect in ['inserted', 'updated', 'deleted'] %}
        count_if({{ is_of_newest }} and _change_effect = '{{ effect }}') as snapshot_{{ effect }},
        {%- endfor %}
        0 as snapshot_superseded,
        {{ reconcile._rows_in_doubt(relations, form, values, snapshot) | indent(8) }} as snapshot_in_doubt
    from (
        select
            *,
            _change_records > 0 and not _change_was_known as _change_is_applied,
            case
                when _change_is_version then if(_change_was_live, 'updated', 'inserted')
                else if(_change_was_live, 'deleted', 'tombstoned')
            end as _change_effect
        from {{ relations.fold_cache }}
    )
)
{%- endmacro %}

{#- Keys of which the newest record is a change that the snapshot perhaps contains, and that differs from the snapshot. -#}
{%- macro _rows_in_doubt(relations, form, values, snapshot) -%}
(
    select count_if(
        newest.side = 'uncertain' and {{ reconcile.is_in_log('newest.sequence') }}
        and if(staged is null, newest.type <> 'delete', newest.type = 'delete' or not ({{ reconcile.has_same_values(values, 'newest.carried', 'staged.carried') }})))
    from (
        select
            max_by(struct(_change_side as side, _change_sequence as sequence, _change_type as type, _change_carried as carried), _change_sequence) as newest,
            max_by(struct(_change_carried as carried), if(_change_side = 'row' and _change_type <> 'delete' and _change_batch = {{ snapshot.batch }}, _change_sequence, null)) as staged
        from {{ relations.records_cache }}
        group by {{ reconcile.key_columns(form.unique_key) }}
    )
)
{%- endmacro %}
