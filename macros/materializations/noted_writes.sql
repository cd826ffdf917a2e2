{#- A run that was killed has perhaps written rows, and no account of them. What the rows are of, no column shows. So each
    commit of a range notes the range: `reconcile <model> <batch> <appended at> <invocation>`. `batch`: the last one of
    the range. `appended at`: when it was appended, as `appended_at` gives it. `invocation`: that of dbt, which the
    ledger's row has too. Delta keeps the note as the commit's metadata, and Iceberg as a property of the snapshot. -#}
{%- macro begin_noted_writes(relations, settings, range) -%}
  {%- if settings.as_of -%}{{ return(none) }}{%- endif -%}
  {%- set staging = reconcile.dated_staging(settings.inputs) -%}
  {%- set appended_at = reconcile.appended_at(staging, range.last) if staging and range.first <= range.last else none -%}
  {%- set note = ['reconcile', reconcile._model_of_note(relations), range.last, appended_at, invocation_id] | join(' ') -%}
  {%- do reconcile._set_note(relations, settings, note) -%}
{%- endmacro %}

{%- macro end_noted_writes(relations, settings) -%}
  {%- do reconcile._set_note(relations, settings, none) if not settings.as_of -%}
{%- endmacro %}

{#- Threads of dbt may share one session, and so its settings. So a commit notes the ranges of all models that write at
    the moment, and each model looks for its own. A thread that sent its statement late has overwritten the notes of
    another one, and sends it again. Notes are put into a list first, since other threads add some meanwhile. `note`: of
    this model; none if it no longer writes. -#}
{%- macro _set_note(relations, settings, note) -%}
  {%- set format, sent = settings.form.file_format, [] -%}
  {%- set notes = graph.setdefault('reconcile_notes', {}).setdefault(format, {}) -%}
  {%- do notes.update({reconcile._model_of_note(relations): note}) -%}
  {%- for _ in range(10) if not sent or sent[-1] != notes.values() | list | select | join(', ') -%}
    {%- do sent.append(notes.values() | list | select | join(', ')) -%}
    {%- do reconcile.run_statements(reconcile.get_set_note_statements(format, sent[-1])) -%}
  {%- endfor -%}
{%- endmacro %}

{#- The statements after which each commit of the session has the note; without a note, after which none has one. -#}
{%- macro get_set_note_statements(file_format, note) -%}
  {{ return(adapter.dispatch('get_set_note_statements', 'reconcile')(file_format, note)) }}
{%- endmacro %}

{%- macro default__get_set_note_statements(file_format, note) -%}
  {%- set setting = reconcile.identifier('spark.sql.iceberg.snapshot-property.reconcile' if file_format == 'iceberg' else 'spark.databricks.delta.commitInfo.userMetadata') -%}
  {{ return(['set ' ~ setting ~ ' = ' ~ reconcile.identifier(note) if note else 'reset ' ~ setting]) }}
{%- endmacro %}

{#- A SQL warehouse of Databricks refuses the settings of Spark. So its tables have no notes, and none are looked for. -#}
{%- macro databricks__get_set_note_statements(file_format, note) -%}
  {{ return([]) }}
{%- endmacro %}

{#- A statement may fail before the setting is taken back, and then other tables get the note, too. -#}
{%- macro _model_of_note(relations) -%}
{{ relations.changes_cache.split('_')[-1] }}
{%- endmacro %}

{#- Ends the run if a table has rows of a run that the ledger does not have, and that the range does not write again: the
    run was killed, and staging or this table were restored since. Or the table was restored to a version whose last batch
    is another one in staging by now. A run that was killed and whose range is now written again is put into
    `range.accepted`, [table, invocation] (see `get_accepted_statements`). `range`: see `range_to_apply`. A table that
    this package has not written since there are notes, or that was copied, has no note, and is believed. -#}
{%- macro refuse_unaccounted_rows(relations, settings, range) -%}
  {%- set format, keyless, accepted = settings.form.file_format, settings.form.keyless, [] -%}
  {%- set staging = reconcile.dated_staging(settings.inputs) -%}
  {%- set asked = [] -%}
  {%- if not settings.as_of and not flags.EMPTY and reconcile.get_set_note_statements(format, none) -%}
    {%- do asked.append(relations.base) if range.kind != 'rebuild' and settings.built.base -%}
    {%- do asked.append(relations[keyless.kind]) if range.known_keyless_deletes -%}
  {%- endif -%}
  {%- for table in asked -%}
    {%- set note = reconcile.last_note(relations, table, format, settings.built.current_snapshot if table == relations.base else none) -%}
    {%- set is_accounted = not note or note.invocation == range.invocation or reconcile._is_accounted(relations, table, note.invocation) -%}
    {%- set cure = 'restore the version of the table before that run' if range.snapshot else 'rebuild the model with `' ~ reconcile._rebuild_command() ~ '`' -%}
    {%- if not is_accounted and note.was_restored and note.batch <= (range.ledger_batch or 0) -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(table) ~ ' has rows of a run that ended before it could write what it had applied, and another run has applied its batches since: the table was set to a version of that run; restore its newest version, or ' ~ cure]) -%}
    {%- elif (not is_accounted or note.was_restored) and staging and note.appended_at != reconcile.appended_at(staging, note.batch) | string
          and note.batch > reconcile.purged_of_any_object(staging) -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(table) ~ ' has rows of another batch ' ~ note.batch ~ ' than ' ~ reconcile.ledger_name(staging) ~ ': '
            ~ ('the table was restored' if is_accounted else 'a run of this model ended before it could write what it had applied') ~ ', and the staging table was restored or created again since; ' ~ cure ~ ', when the staging table has all records again']) -%}
    {%- endif -%}
    {%- do accepted.append([table, note.invocation]) if not is_accounted -%}
  {%- endfor -%}
  {%- do range.update({'accepted': accepted}) -%}
{%- endmacro %}

{#- A range that is written again and changes nothing makes no commit, so the note in the table stays that of the run that
    was killed. The ledger's row of this range accounts for it. -#}
{%- macro get_accepted_statements(range) -%}
  {%- set statements = [] -%}
  {%- for table, invocation in range.accepted or [] -%}
    {%- do statements.append(reconcile._set_property(table, {'reconcile.accounted': invocation})) -%}
  {%- endfor -%}
  {{ return(statements) }}
{%- endmacro %}

{%- macro _is_accounted(relations, table, invocation) -%}
  {%- if reconcile.table_properties(table).get('reconcile.accounted') == invocation -%}{{ return(true) }}{%- endif -%}
  {{ return(run_query(
      'select count(*) from ' ~ reconcile.qualified(reconcile.ledger()) ~ ' where relation = ' ~ reconcile.literal(reconcile.ledger_name(relations.live))
      ~ ' and invocation_id = ' ~ reconcile.literal(invocation))[0][0] | int > 0) }}
{%- endmacro %}

{#- What the last range that has written rows to a table notes, {batch, appended_at, invocation, was_restored}; none if the
    last hundred commits have no note of this model. `was_restored`: the table was set to that commit, and there are later
    ones. `snapshot`: the present one of a table of Iceberg, none if it is not known. -#}
{%- macro last_note(relations, table, file_format, snapshot) -%}
  {%- set beginning = 'reconcile ' ~ reconcile._model_of_note(relations) ~ ' ' -%}
  {%- set found = reconcile._note_in_snapshots(table, snapshot, beginning) if file_format == 'iceberg' else reconcile._note_in_history(table, beginning) -%}
  {%- set words = (found.note or '').split(' ') -%}
  {%- if words | length != 5 -%}{{ return(none) }}{%- endif -%}
  {{ return({'batch': words[2] | int, 'appended_at': words[3], 'invocation': words[4], 'was_restored': found.was_restored}) }}
{%- endmacro %}

{%- macro _note_of_model(notes, beginning) -%}
  {%- for note in (notes or '').split(', ') if note.startswith(beginning) -%}{{ return(note) }}{%- endfor -%}
  {{ return(none) }}
{%- endmacro %}

{#- Nearly always the newest commit has the note. Others keep the rows of the one before: of OPTIMIZE for example, and of
    properties, which also have a note if a range sets them. After a RESTORE the rows are those of an earlier version,
    which the command names. -#}
{%- macro _note_in_history(table, beginning) -%}
  {%- set found = {'note': none, 'was_restored': false} -%}
  {%- for limit in [1, 100] if not found.note -%}
    {%- set before = [none] -%}
    {%- set commits = run_query('describe history ' ~ reconcile.qualified(table) ~ ' limit ' ~ limit) -%}
    {%- for values in commits if not found.note -%}
      {%- set commit = dict(zip(commits.column_names, values.values())) -%}
      {%- if before[-1] is none or commit.version | int <= before[-1] -%}
        {%- if commit.operation == 'RESTORE' -%}
          {%- set version = modules.re.search('version\\W+([0-9]+)', commit.operationParameters | string) -%}
          {%- do before.append(version[1] | int if version else -1) -%}
        {%- elif commit.operation in ['MERGE', 'WRITE'] or 'TABLE AS SELECT' in commit.operation | string -%}
          {%- do found.update({'note': reconcile._note_of_model(commit.userMetadata, beginning), 'was_restored': before | length > 1}) -%}
        {%- endif -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}

{#- From the present snapshot back to the first one that has a note. What was current since and is no ancestor, was rolled
    back. -#}
{%- macro _note_in_snapshots(table, snapshot, beginning) -%}
  {%- set present = (snapshot or reconcile.table_properties(table).get('current-snapshot-id')) | string -%}
  {%- set entries, parents, notes = [], {}, {} -%}
  {%- for row in run_query(
        "select history.snapshot_id, history.parent_id, snapshots.summary['reconcile'], history.is_current_ancestor from " ~ reconcile.qualified_metadata(table, 'history')
        ~ ' as history left join ' ~ reconcile.qualified_metadata(table, 'snapshots') ~ ' as snapshots on snapshots.snapshot_id = history.snapshot_id order by history.made_current_at desc limit 100') -%}
    {%- do entries.append([row[0] | string, row[3]]) -%}
    {%- do parents.update({row[0] | string: row[1] | string}) -%}
    {%- do notes.update({row[0] | string: reconcile._note_of_model(row[2], beginning)}) -%}
  {%- endfor -%}
  {%- set line, later = [present], [] -%}
  {%- for _ in parents if line[-1] in parents and not notes[line[-1]] -%}
    {%- do line.append(parents[line[-1]]) -%}
  {%- endfor -%}
  {%- set ids = entries | map(attribute=0) | list -%}
  {%- for id, is_ancestor in entries -%}
    {%- do later.append(id) if not is_ancestor and line[-1] in ids[loop.index0:] -%}
  {%- endfor -%}
  {{ return({'note': notes.get(line[-1]), 'was_restored': later | length > 0}) }}
{%- endmacro %}
