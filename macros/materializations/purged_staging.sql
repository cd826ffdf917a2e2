{#- {batch, snapshot, base_batch, deletes_batch, horizon}, for a reader of staging from its beginning. Staging still has the records after
    `batch`; `snapshot` is the relation that holds the rows as of `batch`, and `base_batch` the largest batch of these
    rows. `deletes_batch`: up to which batch the table of keyless deletes had them when `maintain.py` made the copy; 0
    if that is not known. `horizon`: up to where the copy lacks tombstones, as the base table says it of itself. They are
    0, none, 0, 0 and nothing if nothing was purged. After a purge, a model without a base snapshot is refused, and so
    is a base snapshot that is not a copy of a base table, or that lacks what was purged. `columns`: the columns of the
    base table, as SQL. `upto`: the last batch that is read. At an earlier moment, the snapshot must be older than the
    moment, and only its batches can show that. -#}
{%- macro purged_staging(settings, columns, upto) -%}
  {%- set last = {'object': none, 'batch': 0} -%}
  {%- if settings.inputs.objects -%}
    {%- set staging = settings.inputs.relations[0] -%}
    {%- set purged = reconcile.purged_through(staging, settings.inputs.objects) -%}
    {%- for object, batch in purged.items() if batch > last.batch -%}
      {%- do last.update({'object': object, 'batch': batch}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if not last.batch -%}
    {{ return({'batch': 0, 'snapshot': none, 'base_batch': 0, 'deletes_batch': 0}) }}
  {%- endif -%}
  {%- set purge_sentence = reconcile._purge_sentence(last.object, last.batch, staging) -%}
  {%- if settings.as_of and (settings.as_of.position not in ['batch', 'appended_at'] or upto < last.batch) -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', so the rows as of ' ~ settings.as_of.label ~ ' cannot be built; set as_of to batch ' ~ last.batch ~ ' or a later batch']) -%}
  {%- endif -%}
  {%- set kept = reconcile.kept_copy(reconcile.relation_of(model), settings.base_snapshot) -%}
  {%- if not kept -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', but a rebuild needs them; declare a copy of the base table to which they had been applied, as `meta: {base_snapshot: schema.table}`']) -%}
  {%- endif -%}
  {%- set snapshot = reconcile._base_snapshot(kept, settings.form, settings.declaration, columns, purge_sentence) -%}
  {%- set base_batch = reconcile.largest_batch(snapshot) -%}
  {%- if settings.as_of and base_batch > upto -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', and its base snapshot ' ~ kept.name ~ ' is newer than ' ~ settings.as_of.label ~ '; set as_of to a later batch, or declare an older copy']) -%}
  {%- elif settings.form.keyless and (settings.as_of or not settings.built.base) -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', and a base snapshot does not show which of its rows a delete without a key has removed; rebuild the model where its base table exists' ~ (', or set `meta: {row_ids: false}` if the source writes no such deletes' if settings.form.keyless.kind == 'row_deletes' else '')]) -%}
  {%- endif -%}
  {%- do reconcile._refuse_snapshot_of_other_columns(kept, settings.built.base, settings.declaration, base_batch, last.batch, purge_sentence) -%}
  {%- do reconcile._refuse_early_snapshot(
          kept, base_batch, not settings.form.keyless and settings.form.materialized != 'history', settings.inputs, last.batch, purge_sentence) -%}
  {%- do reconcile._refuse_records_of_purged_batches(staging, purged) -%}
  {%- do reconcile._refuse_lost_quarantine(kept, last.batch, purge_sentence) if not settings.base_snapshot and not settings.as_of -%}
  {{ return({'batch': last.batch, 'snapshot': snapshot, 'base_batch': base_batch, 'deletes_batch': kept.properties.get('reconcile.deletes_batch') | int(0),
      'horizon': kept.properties.get('reconcile.horizon')}) }}
{%- endmacro %}

{#- Records of purged batches are not read, as the copy has what was applied of them. If staging has such records again,
    it was restored or filled anew, and they may be other ones under the same numbers. Or the purge has begun and not
    ended. `purged`: as `purged_through` gives it. -#}
{%- macro _refuse_records_of_purged_batches(staging, purged) -%}
  {%- set conditions = [] -%}
  {%- for object, batch in purged.items() -%}
    {%- do conditions.append('object = ' ~ reconcile.literal(object) ~ ' and batch <= ' ~ batch) -%}
  {%- endfor -%}
  {%- set staged = run_query('select object, max(batch) as batch from ' ~ reconcile.qualified(staging) ~ ' where ' ~ conditions | join(' or ') ~ ' group by object order by object limit 1') -%}
  {%- if staged | length -%}
    {%- set object, batch = staged[0].values() -%}
    {%- set begun = reconcile.table_properties(staging).get('reconcile.purge') -%}
    {%- do reconcile.raise_complaints([
          reconcile.ledger_name(staging) ~ ' has records of ' ~ object ~ ' up to batch ' ~ batch ~ ', which count as purged, and a rebuild would not read them; '
          ~ ('the purge has begun and not ended: run ingestion/maintain.py again, which ends it or takes it back' if begun
             else 'the staging table was restored or created again: restore its newest version, delete these records if they were applied before, or fill a staging table of another name and let the model read that one')]) -%}
  {%- endif -%}
{%- endmacro %}

{#- A record that was purged and could not be applied is in the quarantine alone. The copy says how many of them the
    quarantine had up to a batch, `<batch> <records>`: the ledger was perhaps restored, too. The purge for which the copy
    was made has perhaps failed, and then staging has the records. `purged`: the last purged batch. -#}
{%- macro _refuse_lost_quarantine(kept, purged, purge_sentence) -%}
  {%- set upto, expected = (kept.properties.get('reconcile.quarantined') or '0 0').split(' ') | map('int') -%}
  {%- if expected and purged >= upto -%}
    {%- set quarantine = reconcile.model_relations(reconcile.relation_of(model)).quarantine -%}
    {%- set found = run_query('select count(*) from ' ~ reconcile.qualified(quarantine) ~ ' where _change_batch <= ' ~ upto)[0][0] if reconcile.existing_relation(quarantine) else 0 -%}
    {%- if found < expected -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(quarantine) ~ ' has ' ~ found ~ ' of the ' ~ expected ~ ' records up to batch ' ~ upto ~ ' that could not be applied, and ' ~ purge_sentence
            ~ ', so nothing else has them; restore its newest version, or give them up with `alter table ' ~ kept.name ~ " set tblproperties ('reconcile.quarantined' = '" ~ upto ~ ' ' ~ found ~ "')`"]) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{%- macro _purge_sentence(object, batch, staging) -%}
the records of {{ object }} up to batch {{ batch }} were purged from {{ reconcile.ledger_name(staging) }}
{%- endmacro %}

{#- The copy of a base table with which a rebuild begins: {name, relation, properties}. It is the declared copy, or else
    the copy that `ingestion/maintain.py` keeps beside the model; none if there is neither. `relation` is none if the
    declared copy does not exist. `of_model`: the relation of the model. `declared`: the name of the declared copy. -#}
{%- macro kept_copy(of_model, declared) -%}
  {%- set wanted = reconcile.relation_of_name(declared) if declared
        else of_model.incorporate(path={'identifier': of_model.identifier ~ '__snapshot'}, type='table') -%}
  {%- set relation = reconcile.existing_relation(wanted) -%}
  {%- set properties = reconcile.table_properties(relation) if relation else {} -%}
  {%- if not declared and 'reconcile.base_snapshot' not in properties -%}{{ return(none) }}{%- endif -%}
  {{ return({'name': declared or reconcile.ledger_name(wanted), 'relation': relation, 'properties': properties}) }}
{%- endmacro %}

{#- A rebuild reads all records after the purged batches again. The copy may already have some of them, under the same
    coordinates. The last section of `_change_sequence` is a hash of all declared columns: with other columns it differs,
    and by chance the row of the copy, which lacks the new value, would win. `of_base`: the declaration of the base table,
    for a copy without one. `of_model`: that of the model. `base_batch`: the largest batch of the copy. -#}
{%- macro _refuse_snapshot_of_other_columns(kept, of_base, of_model, base_batch, purged, purge_sentence) -%}
  {%- set of_copy = fromjson(kept.properties.get('reconcile.declaration') or of_base or '{}').get('columns') -%}
  {%- if of_copy and of_copy != fromjson(of_model).columns and base_batch > purged -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', and its base snapshot ' ~ kept.name ~ ' was made with other columns and has records up to batch ' ~ base_batch
          ~ ', which would be read again and could lose to their own earlier form; name a copy of the base table as it was at batch ' ~ purged]) -%}
  {%- endif -%}
{%- endmacro %}

{#- A copy of before the purge lacks rows, which no record shows any more. The property of the copy says which batches had
    been applied to it; `ingestion/maintain.py` sets this property. Of a copy that somebody made by hand, the ledger
    shows it: it says the largest batch that the base table had when the purged batch had been applied. A model that is
    not yet built begins with the copy of another model of the same objects. So the rows of those models count if the
    ledger has none of the model itself, and the smallest of their batches counts. This holds as long as every change of
    the base table brings a row of a later batch. In a history, a copy of a record may change a version, and a delete
    without a key changes rows of earlier batches; there only the property counts. `base_batch`: the largest batch of
    the copy. `is_shown_by_ledger`: whether the ledger can show it. `purged`: the last purged batch. -#}
{%- macro _refuse_early_snapshot(kept, base_batch, is_shown_by_ledger, inputs, purged, purge_sentence) -%}
  {%- set staging, objects = inputs.relations[0], inputs.objects -%}
  {%- set said = kept.properties.get('reconcile.base_snapshot') -%}
  {%- set later_copy = 'name a later copy, or remove base_snapshot from its meta if ingestion/maintain.py has kept a copy' -%}
  {%- if said == '' -%}
    {%- do reconcile.raise_complaints(['its base snapshot ' ~ kept.name ~ ' is not finished, and ' ~ purge_sentence ~ '; run ingestion/maintain.py again, and then this command']) -%}
  {%- elif said is not none -%}
    {%- if said | int < purged -%}
      {%- do reconcile.raise_complaints(['its base snapshot ' ~ kept.name ~ ' is of batch ' ~ said ~ ', and ' ~ purge_sentence ~ '; ' ~ later_copy]) -%}
    {%- elif reconcile.was_set_back(kept.relation, kept.properties.get('reconcile.declared_in')) -%}
      {%- do reconcile.raise_complaints(['its base snapshot ' ~ kept.name ~ ' was set back to before it had batch ' ~ said ~ ', and ' ~ purge_sentence ~ '; restore its newest version']) -%}
    {%- endif -%}
    {%- do reconcile._refuse_copy_of_replaced_batches(kept, staging) -%}
  {%- else -%}
    {%- set found = run_query(reconcile._batch_when_applied(objects, purged)) if is_shown_by_ledger else [] -%}
    {%- set needed = found[0][0] if found else none -%}
    {%- if needed is none -%}
      {%- do reconcile.raise_complaints(['nothing shows that batch ' ~ purged ~ ' had been applied to its base snapshot ' ~ kept.name ~ ', and ' ~ purge_sentence
            ~ "; if it had been, run `alter table " ~ kept.name ~ " set tblproperties ('reconcile.base_snapshot' = '" ~ purged ~ "')`"]) -%}
    {%- elif base_batch < needed -%}
      {%- do reconcile.raise_complaints(['its base snapshot ' ~ kept.name ~ ' ends with batch ' ~ base_batch ~ ', and ' ~ purge_sentence ~ ' when the base table had batch ' ~ needed ~ '; ' ~ later_copy]) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- The copy has what the base table had, also records of batches that were not purged. A rebuild reads these batches again.
    If staging has other batches under their numbers by then, the rows of those that are gone would stay. So the copy
    notes the last batch that the model had applied, and when that batch was appended. -#}
{%- macro _refuse_copy_of_replaced_batches(kept, staging) -%}
  {%- set batch, appended_at = (kept.properties.get('reconcile.copied_from', '') ~ '  ').split(' ')[:2] -%}
  {%- if batch and reconcile.purged_of_any_object(staging) < batch | int and reconcile.appended_at(staging, batch | int) != appended_at | int -%}
    {%- do reconcile.raise_complaints(['its base snapshot ' ~ kept.name ~ ' has records up to batch ' ~ batch ~ ', and ' ~ reconcile.ledger_name(staging) ~ ' no longer has this batch, or has another one under this number: the staging table was restored or created again; restore the newest version of the staging table, or name an earlier copy']) -%}
  {%- endif -%}
{%- endmacro %}

{#- A model to which no record came since its last range has applied all batches up to the purged one. If the base table
    has ever had a mark (see `marked_range`), its largest batch does not show what it lacks, and neither does that of a
    copy. -#}
{%- macro _batch_when_applied(objects, purged) -%}
select base_batch
from (
    select
        relation = {{ reconcile.literal(reconcile.ledger_name(reconcile.relation_of(model))) }} as is_own,
        if(max(retried) is null, coalesce(min(if(last_batch >= {{ purged }}, base_batch, null)), max_by(base_batch, last_batch)), null) as base_batch
    from {{ reconcile.qualified(reconcile.ledger()) }}
    where object = {{ reconcile.literal(objects | join(', ')) }} and kind not in ('purge', 'snapshot', 'erasure')
    group by relation
)
order by is_own desc, base_batch
limit 1
{%- endmacro %}

{#- A rebuild reads staging after it has asked what was purged, and a purge may come in between. So the rebuild asks once
    more when it has its records, before it writes anything. So does a range just before its marks: a purge whose copy of
    the base table lacks the range deletes nothing once the marks are there. `marked`: see `marked_range`. -#}
{%- macro refuse_purge_meanwhile(inputs, range, marked=none) -%}
  {%- if (range.kind == 'rebuild' or marked) and inputs.objects -%}
    {%- for object, batch in reconcile.purged_from(inputs.relations[0], inputs.objects, range.first).items() -%}
      {%- do reconcile.raise_complaints([reconcile._purge_sentence(object, batch, inputs.relations[0]) ~ ' while this run read them; ' ~ ('the new columns cannot be filled any more: leave them out' if range.added else 'run the same command again' ~ (', which begins with a base snapshot' if range.kind == 'rebuild'))]) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{#- The relation of the base snapshot, once it is checked. `kept`: see `kept_copy`. `declaration`: that of the
    model, in JSON. `columns`: the columns of the base table, as SQL. `purge_sentence`: what was purged, as the beginning of a complaint. -#}
{%- macro _base_snapshot(kept, form, declaration, columns, purge_sentence) -%}
  {%- set snapshot, name = kept.relation, kept.name -%}
  {%- set complaints = [] -%}
  {%- if not snapshot -%}
    {%- do complaints.append('its base snapshot ' ~ name ~ ' does not exist, and ' ~ purge_sentence ~ '; name a copy of the base table to which these records had been applied') -%}
  {%- else -%}
    {%- set types = {
          '_change_sequence': 'string', '_change_time': 'timestamp', '_change_batch': 'bigint', '_deleted': 'boolean',
          '_change_row_sequence': 'string', '_change_column_sequences': 'map<string,string>'} -%}
    {%- set types = dict(types, **reconcile.columns_of_transaction(form)) -%}
    {#- Spark shortens the names of types with many fields. -#}
    {%- do types.pop('_change_displaced') -%}
    {%- set declared = form.columns | map(attribute='name') | list -%}
    {%- for column in adapter.get_column_schema_from_query(sql) if column.name in declared -%}
      {%- do types.update({reconcile.identifier(column.name): column.dtype}) -%}
    {%- endfor -%}
    {%- set snapshot_types = {} -%}
    {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(snapshot)) -%}
      {%- do snapshot_types.update({column.name: column.dtype, reconcile.identifier(column.name): column.dtype}) -%}
    {%- endfor -%}
    {%- for column in form.columns if column.name in snapshot_types -%}
      {%- for former in column.was or [] if former in snapshot_types -%}
        {%- do complaints.append('its base snapshot ' ~ name ~ ' has a column ' ~ column.name ~ ' and a column ' ~ former ~ ', which is what ' ~ column.name ~ ' was called, so it was made before that column was renamed; name a copy that was made since') -%}
      {%- endfor -%}
    {%- endfor -%}
    {%- for column in columns -%}
      {%- set stored = reconcile.stored_column(column, form.file_format) -%}
      {%- set type = reconcile.stored_type(types.get(column, snapshot_types.get(stored)), form.file_format) -%}
      {%- if stored not in snapshot_types -%}
        {%- do complaints.append('its base snapshot ' ~ name ~ ' has no column ' ~ stored ~ '; name a copy of the whole base table'
              ~ (', or add the column to a copy that an earlier version made' if column in reconcile.columns_of_transaction(form) else '')) -%}
      {%- elif snapshot_types[stored] != type -%}
        {%- do complaints.append('column ' ~ stored ~ ' of its base snapshot ' ~ name ~ ' has the type ' ~ snapshot_types[stored] ~ ', and the base table needs ' ~ type ~ '; create the copy again with this type') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set built = fromjson(kept.properties.get('reconcile.declaration', '{}')) -%}
  {%- for aspect, declared in fromjson(declaration).items()
        if built and (aspect in ['unique_key', 'sources', 'sequence'] and built.get(aspect) != declared
            or aspect == 'staging' and built.get('staging', declared) != declared) -%}
    {%- do complaints.append('its base snapshot ' ~ name ~ ' was built with another ' ~ aspect ~ ', so its rows cannot be compared with new records; name a copy of a base table that has the ' ~ aspect ~ ' of the model') -%}
  {%- endfor -%}
  {%- if reconcile.masked_names(form.columns) and built.get('columns') != fromjson(declaration).columns -%}
    {%- do complaints.append('nothing shows that its base snapshot ' ~ name ~ ' was built with the masks of the model, so it may hold values of ' ~ reconcile.masked_names(form.columns)
          ~ ' in clear; name a copy that ingestion/maintain.py made of a base table with these columns and masks, or stage all records again with --masks, into a new staging table') -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(snapshot) }}
{%- endmacro %}

{#- Increments continue after the purged batches. But a base table that was restored to an earlier version, or was never
    filled, cannot be brought up to date. The same holds for a model that the purge did not know. The mark of an object is
    the last batch of its deleted records, and every model that the purge knew has applied that batch. So a model that
    lacks a batch up to the mark lacks records. For a model that only continues, what the run read at its start shows
    this. `first`: the first batch that the run lacks. `applied`: see `applied_batches`. -#}
{%- macro refuse_purged_range(relations, inputs, first, applied) -%}
  {%- if inputs.objects -%}
    {%- set continues = applied.base_batch >= applied.ledger_base_batch and [applied.base_batch, applied.ledger_batch] | max > 0 -%}
    {%- set purged = reconcile.purged_at_start(inputs.relations[0], inputs.objects) if continues
          else reconcile.purged_through(inputs.relations[0], inputs.objects) -%}
    {%- for object, batch in purged.items() if batch >= first -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(relations.base) ~ ' lacks batch ' ~ first ~ ', and the records of ' ~ object ~ ' up to batch ' ~ batch ~ ' were purged from '
            ~ reconcile.ledger_name(inputs.relations[0]) ~ '; restore a newer version of the base table, or declare a base snapshot and rebuild with `' ~ reconcile._rebuild_command() ~ '`']) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{#- A restore is refused if the rows as of its batch cannot be built, or if the model must not be made anew. `purged`: as
    `purged_staging` gives it. The stored keyless deletes, with which a rebuild from a base snapshot begins, do not say in
    which batch they came. -#}
{%- macro refuse_restore(relations, form, purged) -%}
  {%- set batch, from_snapshot = reconcile.restored_batch(), [purged.batch, purged.base_batch] | max -%}
  {%- if from_snapshot > batch -%}
    {%- do reconcile.raise_complaints(['restore is batch ' ~ batch ~ ', and staging was purged: what is left, with the base snapshot, gives rows from batch ' ~ from_snapshot ~ ' on; name that or a later batch']) -%}
  {%- elif purged.batch and form.keyless -%}
    {%- do reconcile.raise_complaints(['restore is batch ' ~ batch ~ ', and staging was purged up to batch ' ~ purged.batch ~ ': the deletes without a key that came later would be applied too; restore the base table by the means of its format, and run the model']) -%}
  {%- elif config.get('full_refresh') is false -%}
    {%- do reconcile.raise_complaints(['restore makes ' ~ reconcile.ledger_name(relations.base) ~ ' anew, and the config of the model has full_refresh: false; remove that for this run']) -%}
  {%- endif -%}
{%- endmacro %}
