{#- The declarations of the model, validated: {form, as_of, inputs, fresh, base_snapshot, buckets, cluster_by, declaration}. `form`:
    see `form_of_node`; here also `read`, the columns that the source macro reads from the payload, see `columns_to_read`. `changes`:
    what of the columns has changed since the base table was built, see `changed_columns`; empty if the table does not
    say. Also `built`: what the model's relations were built from, by their names in `model_relations`, none if there is
    no such relation yet; it also has other properties of the base table, `columns` (see `built_columns`), `tables`,
    `snapshot`, `retried`, `kept_deletes`, `horizon`, `cluster_by` and `declared_in`, and of the quarantine,
    `retried_quarantine`;
    `current_snapshot`: the one that Iceberg says the base table has. And `snapshot`, the newest snapshot beside the log,
    see `snapshot_of_log`; none if it is restated, as `is_restated` says. The run adds `fields`, the columns of the model's SELECT, `tables`, see
    `refuse_ambiguous_objects`, and `horizon`, see `take_horizon`. -#}
{%- macro model_settings() -%}
  {%- set form = reconcile.form_of_node(model) -%}
  {%- set materialized, columns, keys, file_format = form.materialized, form.columns, form.unique_key, form.file_format -%}
  {%- set as_of = reconcile.as_of() -%}
  {%- set complaints = [] -%}
  {%- if '_change_id' in keys -%}
    {%- do complaints.extend(reconcile._complaints_of_events(materialized, keys)) -%}
  {%- endif -%}
  {%- if not keys -%}
    {%- do complaints.append("no unique_key is configured; add `unique_key='id'`, or a list of columns, to its config") -%}
  {%- endif -%}
  {%- for key in keys if key not in columns | map(attribute='name') and key != '_row_id' -%}
    {%- do complaints.append("unique_key " ~ key ~ ": the model declares no column of this name; add it to the model's YAML with exactly the same name") -%}
  {%- endfor -%}
  {%- for column in columns if column.name in keys and column.type.name in ['array', 'map', 'variant'] -%}
    {%- do complaints.append("unique_key " ~ column.name ~ ": a key cannot be of type " ~ column.type.name ~ "; use a scalar type") -%}
  {%- endfor -%}
  {%- for column in columns if column.name in keys and column.round -%}
    {%- do complaints.append("unique_key " ~ column.name ~ ": after rounding, different rows could have the same key; declare a type that holds every digit, for example string") -%}
  {%- endfor -%}
  {%- for column in columns if column.zero_date and column.name in keys -%}
    {%- do complaints.append("unique_key " ~ column.name ~ ": a key that is a zero date would become NULL; remove zero_date from its meta, and declare the column as string") -%}
  {%- endfor -%}
  {%- for column in columns if materialized == 'history' and column.name | lower in ['valid_from', 'valid_to', 'is_current'] -%}
    {%- do complaints.append("column " ~ column.name ~ ": a history adds its own column with this name; rename the source's column in a SELECT of your own") -%}
  {%- endfor -%}
  {%- for column in columns if column.type.name == 'variant' and file_format == 'iceberg' and materialized != 'current_view' -%}
    {%- do complaints.append("column " ~ column.name ~ ": Hive's metastore does not accept an Iceberg table with a variant; declare string, which holds the same JSON as text") -%}
  {%- endfor -%}
  {%- set inputs = reconcile.model_inputs(model) -%}
  {%- for column in columns if column.zero_date and not inputs.objects.values() | selectattr('coordinates', 'equalto', ['log_file', 'log_position']) | list -%}
    {%- do complaints.append("column " ~ column.name ~ ": zero_date applies only to models of datastream_mysql, since no other source has zero dates; remove it from its meta") -%}
  {%- endfor -%}
  {%- set carried = inputs.objects.values() | map(attribute='carries') | map('default', 'events') | list -%}
  {%- for column in columns if column.was and (not carried or 'mods' in carried or 'entries' in carried) -%}
    {%- do complaints.append("column " ~ column.name ~ ": was applies only to models of Datastream's records and of snapshots, whose source macros find a field by its name; " ~ ("an update of Spanner that has only the former name would set no column" if 'mods' in carried else "give the column its name in the SELECT") ~ "; remove was from its meta") -%}
  {%- endfor -%}
  {%- do complaints.extend(reconcile._complaints_of_masks(form, inputs)) -%}
  {%- do complaints.extend(reconcile._complaints_of_row_ids(form, inputs)) -%}
  {%- do complaints.extend(reconcile._complaints_of_range_deletes(form)) -%}
  {%- set meta = model.config.get('meta') or {} -%}
  {%- do complaints.extend(reconcile._complaints_of_options(meta)) -%}
  {%- for name, materialization in [('fresh', 'current_state'), ('fold_unchanged', 'history'), ('partial_records', none), ('row_ids', none), ('range_deletes', none)] if name in meta -%}
    {%- if meta[name] is not boolean -%}
      {%- do complaints.append('meta ' ~ name ~ ": '" ~ meta[name] ~ "' is neither true nor false; write one of them") -%}
    {%- elif materialization and materialized != materialization -%}
      {%- do complaints.append('meta ' ~ name ~ ' applies only to the materialization ' ~ materialization ~ ', and this model is a ' ~ materialized ~ '; remove it') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if meta.get('base_snapshot') and not reconcile.is_name_of_relation(meta.base_snapshot) -%}
    {%- do complaints.append("meta base_snapshot: '" ~ meta.base_snapshot ~ "' is not the name of a table; write it as schema.table, or as catalog.schema.table") -%}
  {%- endif -%}
  {%- if 'ignored_columns' in meta and (meta.ignored_columns is string or meta.ignored_columns is mapping or meta.ignored_columns is not sequence) -%}
    {%- do complaints.append("meta ignored_columns: '" ~ meta.ignored_columns ~ "' is not a list; write the column names as `[name, other_name]`") -%}
  {%- endif -%}
  {%- do complaints.extend(reconcile.complaints_of_catalogs(model)) -%}
  {%- if 'buckets' in meta -%}
    {%- do complaints.extend(reconcile.complaints_of_buckets(meta.buckets, materialized, file_format, columns, keys)) -%}
  {%- endif -%}
  {%- if 'cluster_by' in meta -%}
    {%- do complaints.extend(reconcile.complaints_of_clustering(meta, form, reconcile.base_columns(form))) -%}
  {%- endif -%}
  {%- if inputs.objects and inputs.relations | length != 1 -%}
    {%- do complaints.append('it reads ' ~ inputs.relations | length ~ ' relations; a model with a source macro must read one staging table and nothing else') -%}
  {%- endif -%}
  {%- if not modules.re.fullmatch('[A-Za-z0-9_]{1,240}', this.identifier) -%}
    {%- do complaints.append("Spark's catalog does not accept the name '" ~ this.identifier ~ "': a name has at most 240 ASCII letters, digits and _; give the model an alias") -%}
  {%- else -%}
    {%- set built = reconcile._built(complaints, form.keyless) -%}
  {%- endif -%}
  {%- set snapshot = reconcile.snapshot_of_log(inputs.relations[0], inputs.objects) if inputs.objects and inputs.relations | length == 1 else none -%}
  {%- for one in reconcile.snapshots_in_order(snapshot) -%}
    {%- do complaints.extend(reconcile.complaints_of_snapshot(one, form, inputs, as_of, not loop.last)) -%}
  {%- endfor -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {%- set known = built.columns if not as_of and not reconcile.is_made_anew() else none -%}
  {%- set changes = reconcile.changed_columns(form.shown, known) if known else {} -%}
  {%- do changes.update({'built': none}) if known and reconcile.is_read_anew(changes, form, inputs, built.base) -%}
  {%- do form.update({'read': reconcile.columns_to_read(form.shown, known if changes.built else none) | rejectattr('name', 'in', form.source_columns) | list}) -%}
  {%- do form.update(reconcile.stored_form(changes.built)) if changes.built -%}
  {{ return({
      'form': form, 'as_of': as_of, 'inputs': inputs, 'built': built, 'changes': changes, 'fresh': meta.get('fresh', false) and not as_of,
      'base_snapshot': meta.get('base_snapshot'), 'buckets': meta.get('buckets'),
      'cluster_by': [] if as_of else reconcile.columns_to_cluster(meta.get('cluster_by')), 'snapshot': none if reconcile.is_restated(snapshot) else snapshot, 'is_restated': reconcile.is_restated(snapshot),
      'declaration': tojson(reconcile.declaration_of(form, inputs), sort_keys=true),
  }) }}
{%- endmacro %}

{#- What is wrong with a model's options and its text: options of this package that nothing reads, because they stand
    in the wrong place or are misspelt, and a `where` after the source macro. Other names in a model's meta are its
    own. -#}
{%- macro _complaints_of_options(meta) -%}
  {%- set complaints = [] -%}
  {%- set options = ['fresh', 'fold_unchanged', 'base_snapshot', 'ignored_columns', 'buckets', 'cluster_by', 'partial_records', 'row_ids', 'range_deletes', 'catalog'] -%}
  {%- for name in options if model.config.get(name) is not none -%}
    {%- do complaints.append('config ' ~ name ~ ': it is outside of meta, where it has no effect; write `meta={' ~ reconcile.literal(name) ~ ': ...}`') -%}
  {%- endfor -%}
  {%- for name in ['round', 'zero_date', 'infinity_is_null', 'mask'] if name in meta -%}
    {%- do complaints.append('meta ' ~ name ~ ': it is an option of a column, and nothing reads it in the meta of a model; write it into the meta of the column') -%}
  {%- endfor -%}
  {%- for name in meta if name not in options and not name.startswith('reconcile reads ') -%}
    {%- set nearest = reconcile.nearest_name(name, options) -%}
    {%- do complaints.append('meta ' ~ name ~ ': this package has no option of this name; write ' ~ nearest ~ ', or rename the entry if it is your own') if nearest -%}
  {%- endfor -%}
  {#- A model that is one source macro must not filter it: the ledger counts all records of its objects. -#}
  {%- if reconcile.model_inputs(model).objects and modules.re.search('(?is)[)]\\s*-?[}][}](?:(?![}][}]).)*\\bwhere\\b(?:(?![}][}]).)*$', model.get('raw_code') or '') -%}
    {%- do complaints.append('there is a `where` after its source macro, and a model must have all records of its table; remove the `where`, and filter rows in a view of your own') -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- A table without a known key has a row for each event, identified by the event's id. Inserts arrive as rows; updates
    and deletes cannot be matched to an earlier row. -#}
{%- macro _complaints_of_events(materialized, keys) -%}
  {%- set complaints = [] -%}
  {%- if keys | length > 1 -%}
    {%- do complaints.append("unique_key _change_id: this column alone identifies an event; remove the other columns from the key") -%}
  {%- elif materialized == 'history' -%}
    {%- do complaints.append("unique_key _change_id: an event has no versions; make the model a current_state, or name the columns that identify a row") -%}
  {%- elif reconcile.takes_partial_records(model) -%}
    {%- do complaints.append("unique_key _change_id: a record with only some columns is not a whole row; name the columns that identify a row") -%}
  {%- elif 'differences' in reconcile.model_inputs(model).objects.values() | map(attribute='carries') -%}
    {%- do complaints.append("unique_key _change_id: all records of one snapshot have the same id; name the columns that identify a row") -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- Only records that say what was masked can be asked: those of Datastream's files and of snapshots. -#}
{%- macro _complaints_of_masks(form, inputs) -%}
  {%- set complaints = [] -%}
  {%- set carried = inputs.objects.values() | map(attribute='carries') | map('default', 'events') | list -%}
  {%- for column in form.columns if column.mask -%}
    {%- if not carried or carried | reject('in', ['events', 'differences']) | list -%}
      {%- do complaints.append('column ' ~ column.name ~ ': its meta has mask, and only models of files of Datastream and of snapshots can have masks so far, whose records say what was masked; remove mask, and leave the column out at the source') -%}
    {%- elif column.mask == 'drop' and column.name in form.unique_key -%}
      {%- do complaints.append('unique_key ' ~ column.name ~ ': the mask drop leaves it out of every record, and a key cannot be NULL; mask it by sha256, which keeps keys apart') -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{%- macro _complaints_of_row_ids(form, inputs) -%}
  {%- set keys, row_ids, complaints = form.unique_key, form.row_ids, [] -%}
  {%- if '_row_id' in keys and not row_ids and '_row_id' not in form.columns | map(attribute='name') -%}
    {%- do complaints.append("unique_key _row_id: the records of its source have no row ids; only Oracle's have. For a SELECT of your own with a column _row_id, set `meta: {row_ids: true}`") -%}
  {%- elif '_row_id' in keys and keys | length > 1 -%}
    {%- do complaints.append("unique_key _row_id: this column alone identifies a row; remove the other columns from the key") -%}
  {%- endif -%}
  {%- for column in form.columns if column.name | lower == '_row_id' and (row_ids or inputs.objects.values() | selectattr('row_ids', 'defined') | list) -%}
    {%- do complaints.append("column " ~ column.name ~ ": the source macro adds the address of a row under this name; rename the column") -%}
  {%- endfor -%}
  {%- if row_ids and form.partial_records -%}
    {%- do complaints.append("row_ids and partial_records cannot be combined; set `meta: {row_ids: false}` or `meta: {partial_records: false}`") -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{%- macro _complaints_of_range_deletes(form) -%}
  {%- set keys, complaints = form.unique_key, [] -%}
  {%- if reconcile.takes_range_deletes(model) -%}
    {%- if keys and keys | sort != reconcile.key_of_cell() | sort -%}
      {%- do complaints.append("unique_key " ~ keys | join(', ') ~ ": row_key, family, qualifier and cell_time identify a cell; write `unique_key=['row_key', 'family', 'qualifier', 'cell_time']`, and use reconcile.bigtable_rows for rows") -%}
    {%- endif -%}
    {%- for column in form.columns if column.name | lower == '_range' -%}
      {%- do complaints.append("column " ~ column.name ~ ": the source macro adds the range of a delete under this name; rename the column") -%}
    {%- endfor -%}
    {%- if form.partial_records or form.row_ids -%}
      {%- do complaints.append("range_deletes cannot be combined with partial_records or row_ids; set `meta: {" ~ ('partial_records' if form.partial_records else 'row_ids') ~ ": false}`") -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- A digest of each thing from which the rows of the base table follow. They are digests because Spark shows `*****`
    for table properties that contain words such as url or token. -#}
{%- macro declaration_of(form, inputs) -%}
  {%- set aspects = {
      'unique_key': form.unique_key | sort, 'sources': inputs.objects,
      'staging': reconcile.ledger_name(inputs.relations[0]) if inputs.objects else none, 'sequence': reconcile.sequence_version(inputs)} -%}
  {%- if form.materialized != 'current_state' -%}
    {%- do aspects.update({'materialized': form.materialized}) -%}
  {%- endif -%}
  {%- if form.partial_records -%}
    {%- do aspects.update({'partial_records': true}) -%}
  {%- endif -%}
  {%- if form.row_ids -%}
    {%- do aspects.update({'row_ids': true}) -%}
  {%- endif -%}
  {%- if form.keyless.kind == 'range_deletes' -%}
    {%- do aspects.update({'range_deletes': true}) -%}
  {%- endif -%}
  {%- if reconcile.keys_may_shift(form.keyless) -%}
    {#- 2: the second form of the columns of `columns_of_transaction`. -#}
    {%- do aspects.update({'transactions': 2}) -%}
  {%- endif -%}
  {%- set digests = {'columns': reconcile.digest_of_columns(form.columns)} -%}
  {%- for aspect, value in aspects.items() -%}
    {%- do digests.update({aspect: local_md5(tojson(value, sort_keys=true))}) -%}
  {%- endfor -%}
  {{ return(digests) }}
{%- endmacro %}

{#- The aspects in which two declarations differ, as texts: a list of names. -#}
{%- macro changed_aspects(one, other) -%}
  {%- set one, other, changed = fromjson(one), fromjson(other), [] -%}
  {%- for aspect in ['columns', 'unique_key', 'sources', 'staging', 'sequence', 'partial_records', 'row_ids', 'range_deletes', 'materialized'] if one.get(aspect) != other.get(aspect) -%}
    {%- do changed.append(aspect) -%}
  {%- endfor -%}
  {{ return(changed) }}
{%- endmacro %}

{#- The version of the form of `_change_sequence`. A base table of another version cannot be compared with new records.
    In version 1, the time of the commit came before an LSN in the order; in version 2, the LSN alone orders. -#}
{%- macro sequence_version(inputs) -%}
{{ return(2 if inputs.objects.values() | selectattr('coordinates', 'equalto', ['lsn']) | list else 1) }}
{%- endmacro %}

{#- A relation that has the name of one of the model's relations, but was not made by this package, is not replaced. A
    relation of another materialization is replaced only if it is a view, with which nothing is lost. -#}
{%- macro _built(complaints, keyless) -%}
  {%- set relations = reconcile.model_relations(this) -%}
  {%- set built_when_idle = reconcile._built_of_idle(relations, keyless) if reconcile.is_idle(this) -%}
  {%- if built_when_idle -%}{{ return(built_when_idle) }}{%- endif -%}
  {%- set is_view = config.get('materialized') == 'current_view' -%}
  {%- set built, leftover = {}, [] -%}
  {%- for name, property in [('live', 'reconcile.definition'), ('base', 'reconcile.declaration'),
                             ('changes', 'reconcile.definition'), ('quarantine', 'reconcile.definition' if is_view else 'reconcile.quarantine')]
                             + ([(keyless.kind, 'reconcile.' ~ keyless.kind)] if keyless else []) -%}
    {%- set existing = reconcile.existing_relation(relations[name]) -%}
    {%- set properties = {} if not existing else reconcile.properties_of_base(relations.base, is_rendered=true) if name == 'base'
          else reconcile.table_properties(relations[name]) -%}
    {%- do built.update({name: properties.get(property)}) -%}
    {%- do built.update(reconcile._built_of_base(properties)) if name == 'base' -%}
    {%- if name == 'quarantine' -%}{%- do built.update({'retried_quarantine': properties.get('reconcile.retried')}) -%}{%- endif -%}
    {%- set built_as_of = properties.get('reconcile.as_of') -%}
    {%- if existing and reconcile.as_of() and not built_as_of -%}
      {%- do complaints.append(reconcile.ledger_name(relations[name]) ~ " exists and was not built by a run with as_of, so it is not replaced; name another schema in the variable as_of_schema") -%}
    {%- elif built_as_of and not reconcile.as_of() -%}
      {%- do complaints.append(reconcile.ledger_name(relations[name]) ~ " was built as of " ~ built_as_of ~ ", and this run builds the present state; drop it, or build into another schema") -%}
    {%- elif is_view and name not in ['live', 'changes', 'quarantine'] -%}
      {%- do leftover.append('table ' ~ reconcile.ledger_name(relations[name])) if built[name] -%}
    {%- elif name == 'quarantine' and existing and built[name] is none
          and properties.get('reconcile.quarantine' if is_view else 'reconcile.definition') -%}
      {%- do leftover.append(existing.type ~ ' ' ~ reconcile.ledger_name(relations[name])) -%}
    {%- elif existing and built[name] is none -%}
      {%- do complaints.append(reconcile.ledger_name(relations[name]) ~ " exists and is a " ~ existing.type
            ~ " that this package did not create, so it is not replaced; drop or rename it, or give the model an alias") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if leftover -%}
    {%- do complaints.append('its relations of another materialization still exist; before it can be built as a ' ~ config.get('materialized') ~ ', run `drop '
          ~ leftover | join('; drop ') ~ '`') -%}
  {%- endif -%}
  {{ return(built) }}
{%- endmacro %}

{#- For a model that has nothing to apply, only the properties of the base table are queried. The run writes nothing of
    such a model but views whose definition changed, and dbt knows these definitions already. -#}
{%- macro _built_of_idle(relations, keyless) -%}
  {%- set live, changes = reconcile.cached_definition(reconcile.existing_relation(relations.live)), reconcile.cached_definition(reconcile.existing_relation(relations.changes)) -%}
  {%- if live and changes -%}
    {%- set base = reconcile.properties_of_base(relations.base, is_rendered=true) -%}
    {%- if base['reconcile.declaration'] and not base['reconcile.as_of'] -%}
      {%- set built = dict(reconcile._built_of_base(base), live=live, base=base['reconcile.declaration'], changes=changes, quarantine='true') -%}
      {%- if keyless -%}{%- do built.update({keyless.kind: 'true' if reconcile.existing_relation(relations[keyless.kind]) else none}) -%}{%- endif -%}
      {{ return(built) }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- What a base table says of itself beside its declaration. `properties`: those of the table. -#}
{%- macro _built_of_base(properties) -%}
  {{ return({
      'columns': reconcile.built_columns(properties, reconcile.keys_of(model)), 'tables': properties.get('reconcile.tables'),
      'snapshot': properties.get('reconcile.snapshot_applied'), 'retried': properties.get('reconcile.retried'),
      'kept_deletes': properties.get('reconcile.kept_deletes'), 'horizon': properties.get('reconcile.horizon'), 'cluster_by': properties.get('reconcile.cluster_by'), 'declared_in': properties.get('reconcile.declared_in'), 'isolation_level': properties.get('write.merge.isolation-level'),
      'current_snapshot': properties.get('current-snapshot-id')}) }}
{%- endmacro %}
