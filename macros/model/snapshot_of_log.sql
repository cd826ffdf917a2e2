{#- A snapshot beside a log: a complete copy of a source's table, staged by `append.py snapshot` in the staging table of
    the log. See docs/decisions/0044-snapshots-in-the-fold.md. -#}

{#- The object under which staging says of each snapshot what it is. -#}
{%- macro snapshot_object() -%}
  {{ return('#snapshot') }}
{%- endmacro %}

{#- The object under which the rows of the snapshots of an object are staged. -#}
{%- macro snapshot_rows_object(object) -%}
  {{ return('#snapshot of ' ~ object) }}
{%- endmacro %}

{#- The newest snapshot of each object in each staging table, {staging table: {object: snapshot}}, up to the cut of the
    run. `cuts`: the last batch of each staging table. A snapshot: {object, batch, place, snapshot, position_kind,
    position, taken_at, uncertainty, key, columns, rows}, as ingestion/reconcile_jobs/log_snapshots.py writes it.
    `place` counts the snapshots of the object. `earlier`: those before the newest one, a list. -#}
{%- macro snapshots_in_staging(cuts) -%}
  {%- set found = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- for relation in inputs.relations if inputs.objects and cuts.get(reconcile.ledger_name(relation)) is not none and reconcile.ledger_name(relation) not in found -%}
      {%- do found.update({reconcile.ledger_name(relation): reconcile.newest_snapshots(relation, cuts[reconcile.ledger_name(relation)])}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}

{#- The newest snapshot of each object in one staging table, up to a batch; none: up to the last one. The append job
    notes its appends as a property of the table, so only tables with snapshots are queried. A view shows no property,
    and a table that was copied by hand has perhaps none: such a relation is queried too. -#}
{%- macro newest_snapshots(relation, last=none) -%}
  {%- set found, of_objects, newest = [], {}, {} -%}
  {%- if reconcile._may_have_snapshots(relation) -%}
    {%- for row in run_query(reconcile._staged_snapshots(relation, last)) -%}
      {%- do found.append(dict(fromjson(row[0]), batch=row[1])) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for snapshot in found | sort(attribute='place') -%}
    {%- do of_objects.setdefault(snapshot.object, []).append(snapshot) -%}
  {%- endfor -%}
  {%- for object, snapshots in of_objects.items() -%}
    {%- do newest.update({object: dict(snapshots[-1], earlier=snapshots[:-1])}) -%}
  {%- endfor -%}
  {{ return(newest) }}
{%- endmacro %}

{%- macro _may_have_snapshots(relation) -%}
  {%- if reconcile.existing_relation(relation).type == 'view' -%}{{ return(true) }}{%- endif -%}
  {%- set properties = reconcile.table_properties(relation) -%}
  {#- For `purged_at_start`. -#}
  {%- do graph.setdefault('reconcile_staging_properties', {}).update({reconcile.ledger_name(relation): properties}) -%}
  {{ return('reconcile.snapshot_append' in properties or 'reconcile.last_batch' not in properties) }}
{%- endmacro %}

{%- macro _staged_snapshots(relation, last) -%}
select record, batch from {{ reconcile.qualified(relation) }} where object = {{ reconcile.literal(reconcile.snapshot_object()) }} and source = 'snapshot'{{ ' and batch <= ' ~ last if last is not none }}
{%- endmacro %}

{#- The newest snapshot of a model's objects in its staging table; none if there is none. `objects`: their names. Only a
    run knows snapshots, see `begin_run`. -#}
{%- macro snapshot_of_log(relation, objects) -%}
  {%- set known = graph.get('reconcile_snapshots', {}).get(reconcile.ledger_name(relation), {}) -%}
  {%- for object in objects if object in known -%}{{ return(known[object]) }}{%- endfor -%}
  {{ return(none) }}
{%- endmacro %}

{#- Whether a staging table has snapshots beside its log, of whatever object. -#}
{%- macro has_snapshots(relation) -%}
  {{ return(graph.get('reconcile_snapshots', {}).get(reconcile.ledger_name(relation), {}) | length > 0) }}
{%- endmacro %}

{#- The snapshots that count for the model, a list in their order. `snapshot`: the newest one, none if there is none. Of
    a current row only the newest one counts. -#}
{%- macro snapshots_in_order(snapshot) -%}
  {{ return([] if not snapshot else ((snapshot.earlier or []) if config.get('materialized') == 'history' else []) + [snapshot]) }}
{%- endmacro %}

{#- The kind of the positions at which a model takes snapshots beside its log; none if it takes none. `properties`: what
    orders the records of the object, as `model_inputs` has it. A kind shows whether a snapshot contains a change: by its
    transaction, or by its place in the log and its time, but for some changes around the position, see `side_of`. -#}
{%- macro kind_of_snapshots(properties) -%}
  {{ return('commit_timestamp' if properties.carries == 'entries' else 'pg_snapshot' if 'snapshots' in properties else {'log_file': 'binlog', 'scn': 'scn', 'lsn': 'lsn', 'commit_timestamp': 'read_timestamp'}.get((properties.coordinates or [none])[0])) }}
{%- endmacro %}

{#- The position of a staged snapshot, as `side_of` takes it. The clock that stamps a backfill row may be fast, and the
    query of a backfill may have begun before the snapshot was taken. So the snapshot also contains the backfill rows
    that were read up to `uncertainty` after it: a change of such a row that is later than the snapshot is in the log
    too, and its transaction or its place decides.

    `from`: the earliest time of a change of which the place does not show whether the snapshot contains it. Of MySQL,
    the time is that of the statement, and of Oracle it perhaps is. So a transaction may be open for a day. -#}
{%- macro position_of_staged(snapshot) -%}
  {%- set taken_at = reconcile.moment_of_snapshot(snapshot) -%}
  {%- set exact = snapshot.position_kind in ['pg_snapshot', 'read_timestamp'] -%}
  {%- set interval = "interval '" ~ snapshot.uncertainty ~ "'" -%}
  {{ return({
      'kind': snapshot.position_kind, 'value': snapshot.position, 'label': snapshot.position_kind ~ ' ' ~ snapshot.position, 'taken_at': taken_at,
      'contains_backfills_until': taken_at ~ ' + ' ~ interval,
      'from': none if exact else taken_at ~ ' - ' ~ ("interval '1 day'" if snapshot.position_kind in ['binlog', 'scn'] else interval), 'to': none if exact else taken_at ~ ' + ' ~ interval}) }}
{%- endmacro %}

{#- When a snapshot was taken, as SQL. -#}
{%- macro moment_of_snapshot(snapshot) -%}
to_timestamp({{ reconcile.literal(snapshot.taken_at) }})
{%- endmacro %}

{#- The first section of the sequence of a snapshot's rows, and of all changes that the snapshot does not contain. -#}
{%- macro generation_of_snapshot(snapshot) -%}
{{ '%04X' % snapshot.place }}
{%- endmacro %}

{#- Whether the position of a snapshot is a place in the order of the log itself: then each record keeps its own place. -#}
{%- macro is_in_order_of_log(snapshot) -%}
  {{ return(snapshot.position_kind == 'read_timestamp') }}
{%- endmacro %}

{#- Whether a snapshot is told again by changes of the log itself, in the same batch, as that of Bigtable's cells. Then
    the models need no more than to know what it contains, see `bigtable_change_stream`. -#}
{%- macro is_restated(snapshot) -%}
  {{ return(snapshot and snapshot.position_kind == 'commit_timestamp') }}
{%- endmacro %}

{#- What is wrong with a snapshot that stands beside the log of a model: a list of sentences.
    `form`, `inputs` and `as_of`: those of the model, as `model_settings` has them. `is_earlier`: a newer one was staged
    since, so that only a history counts it. -#}
{%- macro complaints_of_snapshot(snapshot, form, inputs, as_of, is_earlier=false) -%}
  {%- set complaints = [] -%}
  {%- set cure_of_earlier = 'a history counts all snapshots, also those before the newest: take this one back, as docs/repair.md says, and rebuild the model' -%}
  {%- set beginning = 'its staging table has a snapshot of ' ~ snapshot.object ~ ' beside the log (batch ' ~ snapshot.batch ~ '), and ' -%}
  {%- set properties = inputs.objects[snapshot.object] -%}
  {%- set kind = reconcile.kind_of_snapshots(properties) -%}
  {%- if not kind -%}
    {%- do complaints.append(beginning ~ 'only models of datastream_oracle, datastream_mysql, datastream_postgresql, datastream_sqlserver, spanner_change_stream and bigtable_change_stream take snapshots beside a log so far; stage snapshots of this source into a staging table of their own') -%}
  {%- elif snapshot.position_kind != kind -%}
    {%- do complaints.append(beginning ~ 'the position of the snapshot is a ' ~ snapshot.position_kind ~ ', but this model needs a ' ~ kind ~ '; take a snapshot of the database of the log with snapshot.py, and stage it') -%}
  {%- endif -%}
  {%- if kind == 'read_timestamp' and form.materialized == 'history' -%}
    {%- do complaints.append(beginning ~ 'a history of Spanner cannot take snapshots yet; make the model a current_state or a current_view, or read another staging table') -%}
  {%- endif -%}
  {%- if form.partial_records and kind != 'read_timestamp' -%}
    {%- do complaints.append(beginning ~ 'a model with partial_records cannot take snapshots yet; say `meta: {partial_records: false}`, or read another staging table') -%}
  {%- endif -%}
  {%- if kind == 'commit_timestamp' and reconcile.garbage_collection_of(form.materialized, properties.garbage_collection) == 'keep' -%}
    {%- do complaints.append(beginning ~ "a model that keeps what garbage collection deleted cannot take snapshots, which lack it; say garbage_collection='apply' in a current_state, or read another staging table") -%}
  {%- elif kind == 'commit_timestamp' and form.materialized == 'history' -%}
    {%- do complaints.append(beginning ~ 'a history of Bigtable cannot take snapshots yet; make the model a current_state or a current_view, or read another staging table') -%}
  {%- endif -%}
  {%- if form.row_ids or form.keyless.kind == 'row_deletes' -%}
    {%- do complaints.append(beginning ~ 'a model that knows rows by their addresses cannot take snapshots, which have none; say `meta: {row_ids: false}`') -%}
  {%- endif -%}
  {%- if as_of -%}
    {%- do complaints.append(beginning ~ 'a run as of an earlier moment does not take snapshots into account yet; run without as_of') -%}
  {%- endif -%}
  {%- if form.source_columns -%}
    {%- do complaints.append(beginning ~ 'the model reads several sources (source_columns), of which a snapshot shows one; take the snapshot out of the staging table, or give the source a model of its own') -%}
  {%- endif -%}
  {%- if properties.generations -%}
    {%- do complaints.append(beginning ~ 'the model declares generations, across which a position says nothing; take the generations out, and stage a new snapshot, which comes after all of them') -%}
  {%- endif -%}
  {%- set tables = [] -%}
  {%- for name, object in inputs.objects.items() -%}{%- do tables.extend((object.tables or [name]) | map('string')) -%}{%- endfor -%}
  {%- if tables | unique | list | length > 1 -%}
    {%- do complaints.append(beginning ~ 'the model reads several tables or objects, but the snapshot is of only one; name one table in the source macro') -%}
  {%- endif -%}
  {%- if snapshot.key | map('lower') | sort != form.unique_key | map('lower') | sort -%}
    {%- do complaints.append(beginning ~ 'the key of the snapshot is ' ~ snapshot.key | join(', ') ~ ', while the unique_key of the model is ' ~ form.unique_key | join(', ') ~ '; name the same columns') -%}
  {%- endif -%}
  {%- set types = {} -%}
  {%- for name, type in snapshot.columns.items() -%}{%- do types.update({name | lower: type}) -%}{%- endfor -%}
  {%- for column in form.columns if kind != 'commit_timestamp' -%}
    {%- set type = types.get(column.name | lower) -%}
    {%- if not type -%}
      {%- do complaints.append(beginning ~ 'the snapshot has no column ' ~ column.name ~ ', which the model declares; ' ~ (cure_of_earlier if is_earlier else 'take a snapshot with it, and stage that')) -%}
    {%- elif not reconcile._is_same_type(type, column.type.ddl) -%}
      {%- do complaints.append(beginning ~ 'column ' ~ column.name ~ ' is ' ~ type ~ ' in the snapshot and ' ~ column.type.ddl ~ ' in the model, which loses digits or does not fit; ' ~ (cure_of_earlier if is_earlier else 'take a snapshot with that type (--columns), and stage it')) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- Whether the exact values of a type of a snapshot can be values of a declared type: the same type, or both whole
    numbers, or both decimals. A value that does not fit is quarantined. -#}
{%- macro _is_same_type(type, declared) -%}
  {%- set integers = ['tinyint', 'smallint', 'int', 'bigint'] -%}
  {%- set texts = [type, declared] | map('replace', ' ', '') | map('lower') | list -%}
  {{ return(texts[0] == texts[1] or type in integers and declared in integers
      or type.startswith('decimal(') and declared.startswith('decimal(')
      or modules.re.fullmatch('string|(var)?char[(][0-9]+[)]', texts[0]) is not none and modules.re.fullmatch('string|(var)?char[(][0-9]+[)]', texts[1]) is not none) }}
{%- endmacro %}
