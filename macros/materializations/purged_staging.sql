{#- {batch, snapshot}, for a reader of staging from its beginning. Staging still has the records after `batch`;
    `snapshot` is the relation that holds the rows as of `batch`. They are 0 and none if nothing was purged. After a
    purge, a model without a base snapshot is refused, and so is a base snapshot that is not a copy of a base table.
    `columns`: the columns of the base table, as SQL. `upto`: the last batch that is read. At an earlier moment, the
    snapshot must be older than the moment, and only its batches can show that. -#}
{%- macro purged_staging(settings, columns, upto) -%}
  {%- set last = {'object': none, 'batch': 0} -%}
  {%- if settings.inputs.objects -%}
    {%- set staging = settings.inputs.relations[0] -%}
    {%- for object, batch in reconcile.purged_through(staging, settings.inputs.objects).items() if batch > last.batch -%}
      {%- do last.update({'object': object, 'batch': batch}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if not last.batch -%}
    {{ return({'batch': 0, 'snapshot': none}) }}
  {%- endif -%}
  {%- set purge_sentence = 'the records of ' ~ last.object ~ ' up to batch ' ~ last.batch ~ ' were purged from '
        ~ reconcile.ledger_name(staging) -%}
  {%- if settings.as_of and (settings.as_of.position not in ['batch', 'appended_at'] or upto < last.batch) -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', so the rows as of ' ~ settings.as_of.label ~ ' cannot be built; set as_of to batch ' ~ last.batch ~ ' or a later batch']) -%}
  {%- elif not settings.base_snapshot -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', but a rebuild needs them; declare a copy of the base table to which they had been applied, as `meta: {base_snapshot: schema.table}`']) -%}
  {%- endif -%}
  {%- set snapshot = reconcile._base_snapshot(settings, columns, purge_sentence) -%}
  {%- if settings.as_of and reconcile.largest_batch(snapshot) > upto -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', and its base snapshot ' ~ settings.base_snapshot ~ ' is newer than ' ~ settings.as_of.label ~ '; set as_of to a later batch, or declare an older copy']) -%}
  {%- elif settings.form.keyless and (settings.as_of or not settings.built.base) -%}
    {%- do reconcile.raise_complaints([purge_sentence ~ ', and a base snapshot does not show which of its rows a delete without a key has removed; rebuild the model where its base table exists' ~ (', or set `meta: {row_ids: false}` if the source writes no such deletes' if settings.form.keyless.kind == 'row_deletes' else '')]) -%}
  {%- endif -%}
  {{ return({'batch': last.batch, 'snapshot': snapshot}) }}
{%- endmacro %}

{#- The relation of the base snapshot, once it is checked. `columns`: the columns of the base table, as SQL.
    `purge_sentence`: what was purged, as the beginning of a complaint. -#}
{%- macro _base_snapshot(settings, columns, purge_sentence) -%}
  {%- set snapshot = reconcile.existing_relation(reconcile.relation_of_name(settings.base_snapshot)) -%}
  {%- set complaints = [] -%}
  {%- if not snapshot -%}
    {%- do complaints.append('its base snapshot ' ~ settings.base_snapshot ~ ' does not exist, and ' ~ purge_sentence ~ '; name a copy of the base table to which these records had been applied') -%}
  {%- else -%}
    {%- set types = {
          '_change_sequence': 'string', '_change_time': 'timestamp', '_change_batch': 'bigint', '_deleted': 'boolean',
          '_change_row_sequence': 'string', '_change_column_sequences': 'map<string,string>'} -%}
    {%- set types = dict(types, **reconcile.columns_of_transaction(settings.form)) -%}
    {#- Spark shortens the names of types with many fields. -#}
    {%- do types.pop('_change_displaced') -%}
    {%- set declared = settings.form.columns | map(attribute='name') | list -%}
    {%- for column in adapter.get_column_schema_from_query(sql) if column.name in declared -%}
      {%- do types.update({reconcile.identifier(column.name): column.dtype}) -%}
    {%- endfor -%}
    {%- set snapshot_types = {} -%}
    {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(snapshot)) -%}
      {%- do snapshot_types.update({column.name: column.dtype, reconcile.identifier(column.name): column.dtype}) -%}
    {%- endfor -%}
    {%- for column in columns -%}
      {%- set stored = reconcile.stored_column(column, settings.form.file_format) -%}
      {%- set type = reconcile.stored_type(types.get(column, snapshot_types.get(stored)), settings.form.file_format) -%}
      {%- if stored not in snapshot_types -%}
        {%- do complaints.append('its base snapshot ' ~ settings.base_snapshot ~ ' has no column ' ~ stored ~ '; name a copy of the whole base table'
              ~ (', or add the column to a copy that an earlier version made' if column in reconcile.columns_of_transaction(settings.form) else '')) -%}
      {%- elif snapshot_types[stored] != type -%}
        {%- do complaints.append('column ' ~ stored ~ ' of its base snapshot ' ~ settings.base_snapshot ~ ' has the type ' ~ snapshot_types[stored] ~ ', and the base table needs ' ~ type ~ '; create the copy again with this type') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set built = fromjson(reconcile.table_properties(snapshot).get('reconcile.declaration', '{}')) if snapshot
        else {} -%}
  {%- for aspect, declared in fromjson(settings.declaration).items()
        if built and aspect in ['unique_key', 'sources', 'sequence'] and built.get(aspect) != declared -%}
    {%- do complaints.append('its base snapshot ' ~ settings.base_snapshot ~ ' was built with another ' ~ aspect ~ ', so its rows cannot be compared with new records; name a copy of a base table that has the ' ~ aspect ~ ' of the model') -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(snapshot) }}
{%- endmacro %}

{#- Increments continue after the purged batches. But a base table that was restored to an earlier version, or was never
    filled, cannot be brought up to date. `first`: the first batch that the run lacks. `applied`: see
    `applied_batches`. -#}
{%- macro refuse_purged_range(relations, inputs, first, applied) -%}
  {%- if inputs.objects and (applied.base_batch < applied.ledger_base_batch
        or [applied.base_batch, applied.ledger_batch] | max == 0) -%}
    {%- for object, batch in reconcile.purged_through(inputs.relations[0], inputs.objects).items() if batch >= first -%}
      {%- do reconcile.raise_complaints([
            reconcile.ledger_name(relations.base) ~ ' lacks batch ' ~ first ~ ', and the records of ' ~ object ~ ' up to batch ' ~ batch ~ ' were purged from '
            ~ reconcile.ledger_name(inputs.relations[0]) ~ '; restore a newer version of the base table, or declare a base snapshot and rebuild with `' ~ reconcile._rebuild_command() ~ '`']) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}
