{#- Which batches this run applies: {kind, first, last, delivered, has_records, repair, base_batch, ledger_batch, entry,
    ledger_retried, invocation, deletes_batch, snapshot, horizon, known_keyless_deletes, added, started}. `kind`: apply (new batches), replay (the range begins with batches that may have been applied) or rebuild
    (all batches). `delivered`: how many change records staging has in these batches. The base table shows which batches
    were applied, and so does the table of keyless deletes. The ledger only adds that trailing batches left no trace in
    the tables. To read too many batches is harmless; to read too few is not. `columns` are the columns of the base table. If staging was purged, a rebuild
    begins with `snapshot`, a relation with these columns. `horizon`: up to where the base table, or the copy with which a
    rebuild begins, lacks tombstones, as it says itself. `known_keyless_deletes`: those of earlier ranges, as SQL to
    select from; none without such deletes, and none for a rebuild: it reads all records, those deletes among them, and
    makes their table anew. But a rebuild from a base snapshot needs the table: staging was purged, and only the table
    still has the deletes of the purged batches. `repair`: see `repair_of_range`; none if the range has no new
    snapshot beside the log. `added`: the names of columns that the base table gets, see `added_columns`: then the range
    is all batches, as for a rebuild. `retry`: see `retry_of_quarantine`, with `applied`, the last batch that was applied
    before; none if the run retries nothing. -#}
{%- macro range_to_apply(relations, settings, columns) -%}
  {%- set retry, is_filled = none, false -%}
  {%- set last = reconcile.batch_as_of(settings) if settings.as_of and not flags.EMPTY else reconcile._cut(settings.inputs, settings.form.row_ids, settings.form.keyless) -%}
  {%- if settings.as_of or reconcile.is_made_anew() or not settings.built.base -%}
    {%- set purged = reconcile.purged_staging(settings, columns, last) -%}
    {%- do reconcile.refuse_restore(relations, settings.form, purged) if reconcile.restored_batch() is not none -%}
    {%- set first = purged.batch + 1 -%}
    {%- set last = [last, purged.batch] | max -%}
    {%- set kind = 'rebuild' -%}
    {%- set of_ledger = {} if settings.as_of else reconcile.account_of(relations) -%}
    {%- set deletes_batch = [of_ledger.ledger_deletes_batch or 0, purged.deletes_batch] | max -%}
    {%- do reconcile._refuse_lost_keyless_deletes(relations, settings, deletes_batch) if purged.snapshot -%}
    {%- set applied = {'base_batch': purged.base_batch, 'entry': of_ledger.entry, 'ledger_retried': of_ledger.ledger_retried, 'invocation': of_ledger.invocation,
        'deletes_batch': deletes_batch if purged.snapshot else 0} -%}
    {%- do reconcile._log_lost_records(relations, settings.inputs, first) if of_ledger.ledger_batch and settings.built.base and not flags.EMPTY
          and not reconcile.changed_aspects(settings.built.base, settings.declaration) | select('in', ['sources', 'staging']) | list -%}
  {%- else -%}
    {%- set added = reconcile.added_columns(relations, settings) -%}
    {%- set of_ledger = reconcile.account_of(relations) -%}
    {%- set retry = reconcile.retry_of_quarantine(relations, settings, added, of_ledger.ledger_retried) -%}
    {%- do reconcile._refuse_changed_declaration(relations, settings, added) if not retry or not retry.declares -%}
    {%- do reconcile._refuse_missing_tables(relations, settings.form.keyless, settings.built) -%}
    {%- set applied = reconcile.applied_batches(relations, settings.form.keyless, of_ledger) -%}
    {%- do reconcile.refuse_set_back(relations, settings, applied) -%}
    {%- do reconcile.refuse_weaker_isolation(relations, settings) -%}
    {%- set known_batches = [applied.base_batch, applied.ledger_batch] -%}
    {%- do reconcile._refuse_reset_staging(relations, settings.inputs, last, known_batches | max) -%}
    {%- do reconcile._refuse_replaced_batches(relations, settings.inputs, applied) -%}
    {%- set first = (applied.ledger_batch if applied.base_batch == applied.ledger_base_batch else known_batches | min) + 1 -%}
    {#- The table of keyless deletes was restored: it lacks those of later batches. -#}
    {%- set first = [first, applied.deletes_batch + 1] | min if applied.deletes_batch < applied.ledger_deletes_batch else first -%}
    {%- if retry -%}
      {%- do retry.update({'applied': known_batches | max}) -%}
      {%- do reconcile.refuse_retry(relations, settings.inputs, retry, applied) if retry.first is not none -%}
      {%- set first = [first, retry.first or first] | min -%}
    {%- endif -%}
    {%- set is_filled = added and not flags.EMPTY and not retry -%}
    {%- do reconcile.refuse_added_columns(relations, settings.inputs, added, applied) if is_filled
          else reconcile.refuse_purged_range(relations, settings.inputs, first, applied) -%}
    {%- do reconcile.refuse_lost_snapshot(relations, settings.inputs, settings.built.snapshot, settings.snapshot, first) -%}
    {%- set kind = 'replay' if first <= known_batches | max else 'apply' -%}
    {%- set restored = relations[settings.form.keyless.kind] if settings.form.keyless and applied.base_batch == applied.ledger_base_batch else relations.base -%}
    {%- do reconcile._refuse_lost_records(relations, restored, settings.inputs, first) if not (retry and retry.first is not none) and not is_filled and not flags.EMPTY and applied.ledger_batch >= first -%}
    {#- An empty run has nothing to fill the columns with. -#}
    {%- if is_filled or retry and retry.whole -%}
      {%- set first, kind, applied = 1, 'rebuild', {'base_batch': 0, 'entry': of_ledger.entry, 'ledger_retried': of_ledger.ledger_retried, 'invocation': of_ledger.invocation} -%}
    {%- endif -%}
  {%- endif -%}
  {%- set known = reconcile.known_of(relations.live) -%}
  {%- set delivered = known.delivered if known and kind != 'rebuild' and (first, last) == (known.first, known.last)
        else reconcile._delivered(settings.inputs, first, last) -%}
  {%- set repair = reconcile.repair_of_range(
        settings.inputs, settings.snapshot, first, last, kind, purged.snapshot if purged else none) -%}
  {%- if kind == 'rebuild' and not delivered and not repair and first <= last and not settings.as_of -%}
    {%- do reconcile._refuse_without_records(settings.inputs) -%}
  {%- endif -%}
  {#- Before the records are read: if staging is restored meanwhile, the ledger has the time of the batch that was there,
      by which the next run notices it. -#}
  {%- set staging = reconcile.dated_staging(settings.inputs) -%}
  {%- for batch in [last] + ([repair.snapshot.batch] if repair else []) if staging and (delivered or repair) and not settings.as_of -%}
    {%- do reconcile.appended_at(staging, batch) -%}
  {%- endfor -%}
  {#- For `summary_of_run`. -#}
  {%- if settings.inputs.objects -%}
    {%- do graph.setdefault('reconcile_ranges', {}).update({model.unique_id: {
          'model': model.name, 'kind': kind, 'staging': reconcile.ledger_name(settings.inputs.relations[0]),
          'first': first, 'last': last, 'delivered': delivered + (repair.snapshot.rows if repair else 0), 'ledger_batch': applied.ledger_batch or 0}}) -%}
  {%- endif -%}
  {{ return({
      'kind': kind, 'first': first, 'last': last, 'delivered': delivered, 'has_records': delivered > 0 or repair is not none, 'repair': repair,
      'base_batch': applied.base_batch, 'ledger_batch': applied.ledger_batch, 'entry': applied.entry, 'ledger_retried': applied.ledger_retried, 'invocation': applied.invocation, 'deletes_batch': applied.deletes_batch or 0,
      'snapshot': purged.snapshot if purged else none, 'horizon': purged.horizon if purged else settings.built.horizon,
      'known_keyless_deletes': reconcile.stored_keyless_deletes(relations, settings.form.keyless, settings.form.file_format)
          if settings.built[settings.form.keyless.kind] and (kind != 'rebuild' or purged.snapshot) else none,
      'added': added | map(attribute='name') | list if is_filled else [], 'retry': retry,
      'started': modules.datetime.datetime.now()}) }}
{%- endmacro %}

{#- All models of a run stop at the batch that `begin_run` saw. `row_ids` and `keyless`: see `fields_of_model`. -#}
{%- macro _cut(inputs, row_ids, keyless) -%}
  {%- set cuts = graph.get('reconcile_cuts', {}) -%}
  {%- set staging = [] -%}
  {%- for relation in inputs.relations if cuts.get(reconcile.ledger_name(relation)) is not none -%}
    {%- do staging.append(reconcile.ledger_name(relation)) -%}
  {%- endfor -%}
  {%- if staging | length > 1 -%}
    {%- do reconcile.raise_complaints(['it reads ' ~ staging | length ~ ' staging tables (' ~ staging | join(', ') ~ '), and each has its own batch numbers; write one model for each staging table']) -%}
  {%- elif staging -%}
    {{ return(0 if flags.EMPTY else cuts[staging[0]]) }}
  {%- endif -%}
  {%- do reconcile.refuse_missing_staging(inputs) -%}
  {%- do reconcile.fields_of_model(row_ids, keyless) -%}
  {{ return(run_query('select max(_change_batch) from (' ~ sql ~ '\n)')[0][0] | int(0)) }}
{%- endmacro %}

{#- `inputs`: {relations, objects}, as returned by model_inputs; in the macros below too. Of a table that exists,
    `begin_run` has asked whether it has the columns of a staging table. -#}
{%- macro refuse_missing_staging(inputs) -%}
  {%- set cuts = graph.get('reconcile_cuts', {}) -%}
  {%- for relation in inputs.relations if inputs.objects -%}
    {%- set name = reconcile.ledger_name(relation) -%}
    {%- if not reconcile.existing_relation(relation) -%}
      {%- do reconcile.raise_complaints(['the staging table ' ~ name ~ ' does not exist; create it with ingestion/append.py first']) -%}
    {%- elif name in cuts and cuts[name] is none -%}
      {%- do reconcile.raise_complaints([name ~ " is not a staging table, since it has no columns `batch`, a bigint, and `record`; name the table that append.py fills, as source('lake', 'shop_changes')"]) -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{#- The records are counted in staging alone, so that the count shows a record which a source macro drops. Only a model
    that reads no staging table by a source macro of this package counts its own change records. -#}
{%- macro _delivered(inputs, first, last) -%}
  {%- if inputs.objects -%}
    {%- set query = 'select ' ~ reconcile.delivered_in(inputs, first, last) -%}
  {%- else -%}
    {%- set query = 'select count(*) from (' ~ sql ~ '\n) where _change_batch between ' ~ first ~ ' and ' ~ last -%}
  {%- endif -%}
  {{ return(run_query(query)[0][0] | int(0) if first <= last else 0) }}
{%- endmacro %}

{#- A model without any record may read the staging table of another source. Or it may spell its object differently from
    the records: names are exact. Objects that other models read are not proposed. -#}
{%- macro _refuse_without_records(inputs) -%}
  {%- set objects = inputs.objects | list -%}
  {%- if not objects -%}{{ return(none) }}{%- endif -%}
  {%- set staging = inputs.relations[0] -%}
  {%- set read = reconcile.staging_read().get(reconcile.ledger_name(staging), {'objects': {}}).objects -%}
  {%- set staged = run_query(
        'select distinct object, source from ' ~ reconcile.qualified(staging)
        ~ ' where object is not null order by object, source') -%}
  {%- set sources = [] -%}
  {%- for row in staged if row[1] not in sources -%}{%- do sources.append(row[1]) -%}{%- endfor -%}
  {%- set carried = inputs.objects.values() | map(attribute='carries') | map('default', 'events') | list -%}
  {%- set carried_by_source = {
        'spanner': 'mods', 'bigtable': 'entries', 'datastream': 'events', 'snapshot': 'differences',
        'append table': 'appended rows'} -%}
  {%- if sources | length == 1 and carried_by_source.get(sources[0]) not in carried -%}
    {%- do reconcile.raise_complaints(['the records of ' ~ reconcile.ledger_name(staging) ~ ' are of the source ' ~ sources[0] ~ ', and the source macro of the model cannot read them; the macro that fits is '
          ~ reconcile.source_macros().get(sources[0], 'one that begins with datastream_')]) -%}
  {%- endif -%}
  {%- for row in staged if row[0] not in read -%}
    {%- set nearest = reconcile.nearest_name(row[0], objects) -%}
    {%- if nearest -%}
      {%- do reconcile.raise_complaints(['no record of ' ~ reconcile.ledger_name(staging) ~ ' has the object ' ~ nearest ~ ', and no model reads ' ~ row[0] ~ ", which has records; write the name exactly as the records have it"]) -%}
    {%- endif -%}
  {%- endfor -%}
  {#- The source may have two tables of nearly one name, of which one has no records yet. So this is no error. -#}
  {%- set names = staged | map(attribute=0) | unique | list -%}
  {%- for object in objects -%}
    {%- set nearest = reconcile.nearest_name(object, names) -%}
    {%- do log(model.name ~ ': no record of ' ~ reconcile.ledger_name(staging) ~ ' has the object ' ~ object
          ~ ('; ' ~ nearest ~ ' has records, and another model reads them' if nearest), info=true) -%}
  {%- endfor -%}
{%- endmacro %}

{#- The base table was built with one declaration, and the model now has another. `added`: see `added_columns`; the base
    table gets them if all of them are marked. It goes on with other changes of its columns that lose nothing, see
    `changed_columns`. -#}
{%- macro _refuse_changed_declaration(relations, settings, added) -%}
  {%- set unmarked = added | rejectattr('added') | map(attribute='name') | list -%}
  {%- set changes = settings.changes -%}
  {%- set obstacles = reconcile.obstacles_to_changes(relations, settings) if changes.built else reconcile._other_changes(changes) -%}
  {%- set goes_on = added and not unmarked or changes.built and not obstacles -%}
  {%- set labels = {
      'sources': 'source macros, objects or generations', 'staging': 'staging table', 'sequence': 'form of the order',
      'materialized': 'materialization'} -%}
  {%- set changed = [] -%}
  {%- for aspect in reconcile.changed_aspects(settings.built.base, settings.declaration) if not (aspect == 'columns' and goes_on) -%}
    {%- do changed.append(labels.get(aspect, aspect)) -%}
  {%- endfor -%}
  {%- if changed -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(relations.base) ~ ' was built with other ' ~ changed | join(' and other ')
          ~ '; rebuild it with `' ~ reconcile._rebuild_command() ~ '`'
          ~ (', or write `meta: {added: true}` for the new column ' ~ unmarked | join(', ') if unmarked and changed == ['columns'] else '')
          ~ (reconcile._why_columns(changes, added, obstacles) if 'columns' in changed else '')]) -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _other_changes(changes) -%}
  {%- set found = [] -%}
  {%- for column in changes.more -%}{%- do found.append('column ' ~ column.name ~ ' has another ' ~ column.option) -%}{%- endfor -%}
  {{ return(found + (changes.other or []) if changes.other else []) }}
{%- endmacro %}

{#- Why the base table cannot go on with the columns that are declared now; '' if the sentence has said so. -#}
{%- macro _why_columns(changes, added, obstacles) -%}
{%- if not changes -%}
{{ '' if added else ' (or run it once with the columns that it was built with: from then on columns may go, be renamed and become wider)' }}
{%- elif obstacles -%}
{{ ' (' ~ obstacles | join('; ') ~ ')' }}
{%- elif changes.added and not added -%}
{{ ' (column ' ~ changes.added | join(', ') ~ ' is new, and other columns have changed too: make one change, run the model, and then make the other)' }}
{%- endif -%}
{%- endmacro %}

{#- Without the quarantine, its records would be missing silently, and without the keyless deletes, records that come late
    would bring rows back: they are not delivered again. `built`: what exists of the model, by the names of its
    relations. -#}
{%- macro _refuse_missing_tables(relations, keyless, built) -%}
  {%- if built.quarantine is none -%}
    {%- do reconcile.raise_complaints([
          'the table ' ~ reconcile.ledger_name(relations.quarantine) ~ ' does not exist, so the records that could not be applied are lost; rebuild the model with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- elif keyless and built.kept_deletes and built[keyless.kind] is none -%}
    {%- do reconcile.raise_complaints([
          'the table ' ~ reconcile.ledger_name(relations[keyless.kind]) ~ ' does not exist, so the deletes without a key are lost, and a record that comes late would bring its row back; rebuild the model with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- endif -%}
{%- endmacro %}

{#- If the batch numbers of staging begin anew, new batches would count as applied. After a purge, no record shows which
    numbers were given; the table's property does. The last batch may have had records of other objects only, so the
    purges of all objects count. The macro queries staging again,
    since another run may have applied batches that came after this run's cut. `last`: the last batch that this run
    reads. `applied`: the last one that was applied. -#}
{%- macro _refuse_reset_staging(relations, inputs, last, applied) -%}
  {%- set staging = reconcile.dated_staging(inputs) -%}
  {%- if last < applied and staging and not flags.EMPTY -%}
    {%- set staged = run_query('select max(batch) from ' ~ reconcile.qualified(staging))[0][0] | int(0) -%}
    {%- set purged = reconcile.purged_of_any_object(staging) -%}
    {%- set numbered = reconcile.table_properties(staging).get('reconcile.last_batch', '') -%}
    {%- if numbered and numbered | int(applied) < applied and purged >= applied -%}
      {%- do reconcile.raise_complaints([
            'batch ' ~ applied ~ ' was applied to ' ~ reconcile.ledger_name(relations.base) ~ ' and purged, and the numbers of ' ~ reconcile.ledger_name(staging)
            ~ ' are at ' ~ numbered ~ ': that table was restored or made anew, and its records would be taken for those that are gone; restore its newest version, or fill a staging table of another name'
            ~ ' and let the model read that one']) -%}
    {%- elif [staged, purged] | max < applied -%}
      {%- do reconcile.raise_complaints([
            'batch ' ~ applied ~ ' was applied to ' ~ reconcile.ledger_name(relations.base) ~ ', but the last batch of ' ~ reconcile.ledger_name(staging)
            ~ ' is ' ~ staged ~ ': the staging table was restored or created again; rebuild the model with `' ~ reconcile._rebuild_command() ~ '`']) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- The numbers alone do not suffice: a table that was restored or made anew reaches the same numbers again. `applied`:
    see `applied_batches`. -#}
{%- macro _refuse_replaced_batches(relations, inputs, applied) -%}
  {%- set staging = reconcile.dated_staging(inputs) -%}
  {%- if applied.last_appended_at is not none and staging and not flags.EMPTY -%}
    {%- set batch = applied.ledger_batch -%}
    {%- set appended_at = reconcile.appended_at(staging, batch) -%}
    {%- set applied_was = 'batch ' ~ batch ~ ' was applied to ' ~ reconcile.ledger_name(relations.base) ~ ', but ' -%}
    {%- if appended_at is none and reconcile.purged_of_any_object(staging) < batch -%}
      {%- do reconcile.raise_complaints([applied_was ~ reconcile.ledger_name(staging) ~ ' no longer has a record of this batch: the staging table was restored or created again; restore its newest version, or rebuild the model with `'
            ~ reconcile._rebuild_command() ~ '` when the staging table has all records again']) -%}
    {%- elif appended_at not in [none, applied.last_appended_at] -%}
      {%- do reconcile.raise_complaints([applied_was ~ reconcile.ledger_name(staging) ~ ' now has another batch under this number: the staging table was restored or created again; rebuild the model with `'
            ~ reconcile._rebuild_command() ~ '` when the staging table has all records again']) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- A rebuild takes what staging has left, and its account begins anew: from then on nothing shows what is missing. -#}
{%- macro _log_lost_records(relations, inputs, first) -%}
  {%- set lost = reconcile.lost_range(relations, inputs, sql, first) -%}
  {%- do log(model.name ~ ': ' ~ lost.said ~ ' in batches ' ~ lost.first ~ ' to ' ~ lost.last ~ ', and the table is built from what is left', info=true) if lost -%}
{%- endmacro %}

{#- A table was restored, and its batches are applied again. Without a record that staging lacks by now, the rows would be
    right for what is left, and wrong for the source. -#}
{%- macro _refuse_lost_records(relations, restored, inputs, first) -%}
  {%- set lost = reconcile.lost_range(relations, inputs, sql, first) -%}
  {%- if lost -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(restored) ~ ' was restored, and batches ' ~ lost.first ~ ' to ' ~ lost.last ~ ' are to be applied again, but ' ~ lost.said
          ~ ' in them; restore the records, or a newer version of that table, or build the table from what is left with `' ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- endif -%}
{%- endmacro %}

{#- A run that was killed has perhaps written rows, and no account of them. The next run replays their batches. If
    somebody has restored staging or filled it anew in between, other records have the same numbers, and the rows of
    before would stay. So a row of the range that the table has before the range is written has to be of a record that
    staging has. A copy with which a rebuild begins may have such rows too, and so may the table of keyless deletes. Each
    version of a history is a record, and so is a row of most models. Where one row follows from several records, staging
    has to have a record of its key; and where a delete without a key may be one of them, nothing is asked of the rows. -#}
{%- macro refuse_rows_of_other_records(relations, settings, range) -%}
  {%- set form, table = settings.form, reconcile.known_table(relations, range) -%}
  {%- set first = [range.first, (range.ledger_batch or 0) + 1] | max -%}
  {#- The first digit of a change that a restated snapshot contains is a dash. -#}
  {%- set same_sequence = ' and substring(staged._change_sequence, 2) = substring(stored._change_sequence, 2)' if settings.is_restated else ' and staged._change_sequence = stored._change_sequence' -%}
  {%- set asked = [] -%}
  {%- if first <= range.last and not range.repair and not settings.as_of and not flags.EMPTY -%}
    {%- if table and range.kind != 'apply' and first <= range.base_batch and (form.materialized == 'history' or not form.keyless) -%}
      {%- set is_record = form.materialized == 'history' or not form.partial_records -%}
      {%- do asked.append([table, reconcile.stored_rows(table, form), reconcile.keys_match(form.unique_key, 'staged', 'stored') ~ (same_sequence if is_record)]) -%}
    {%- endif -%}
    {%- if range.known_keyless_deletes and (not range.deletes_batch or range.deletes_batch >= first) -%}
      {%- do asked.append([relations[form.keyless.kind], range.known_keyless_deletes, 'staged.' ~ form.keyless.place ~ ' = stored.' ~ form.keyless.place ~ same_sequence]) -%}
    {%- endif -%}
  {%- endif -%}
  {%- for of, stored, match in asked -%}
    {%- set rows, batch = run_query(reconcile._rows_without_record(stored, relations.changes_cache, match, first, range.last))[0].values() -%}
    {%- if rows -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(of) ~ ' has ' ~ rows ~ (' row' if rows == 1 else ' rows') ~ ' of batch ' ~ batch ~ ' or later without a record in ' ~ (reconcile.ledger_name(settings.inputs.relations[0]) if settings.inputs.objects else 'its SELECT')
            ~ ': a run of this model ended before it could write what it had applied, and the staging table was restored or created again since; '
            ~ ('restore the newest version of the staging table, or name an earlier copy' if range.snapshot
               else 'rebuild the model with `' ~ reconcile._rebuild_command() ~ '` when the staging table has all records again')]) -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{#- `stored`: the rows of a table, as SQL to select from. `match`: the condition for a record of such a row. -#}
{%- macro _rows_without_record(stored, changes, match, first, last) -%}
select count(*) as records, min(stored._change_batch) as batch
from {{ stored }} as stored
left anti join {{ changes }} as staged
    on {{ match }}
where stored._change_batch between {{ first }} and {{ last }}
{%- endmacro %}

{#- A rebuild from a base snapshot keeps the table of keyless deletes, since staging no longer has those of the purged
    batches. `deletes_batch`: up to which batch the table has to have them, as the ledger says, or the copy with which the
    rebuild begins: the ledger was perhaps restored, too. -#}
{%- macro _refuse_lost_keyless_deletes(relations, settings, deletes_batch) -%}
  {%- set keyless = settings.form.keyless -%}
  {%- if keyless and deletes_batch -%}
    {%- set table = relations[keyless.kind] -%}
    {%- if settings.built[keyless.kind] is none or reconcile.largest_batch(table, deletes_batch) < deletes_batch -%}
      {%- do reconcile.raise_complaints([
            'the table ' ~ reconcile.ledger_name(table) ~ ' lacks deletes without a key up to batch ' ~ deletes_batch ~ ', whose records were purged from ' ~ reconcile.ledger_name(settings.inputs.relations[0])
            ~ ', and a rebuild would bring deleted rows back; restore the newest version of the table']) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _rebuild_command() -%}
dbt run --full-refresh --select {{ model.name }}
{%- endmacro %}
