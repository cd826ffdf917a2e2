{#- The validated arguments of a parity test, and the names of the relations that the test makes. `position`: see
    `position_of_snapshot`. `relation`: the model; the other arguments are those of the test, see docs/parity.md. With a
    position, `form` and `inputs` are those of the model, whose rows then come from its base table and its change
    records. -#}
{%- macro comparison(relation, compare_to, key, columns, as_of, allowance, uncertainty, tolerances, recheck, store_values, allow_empty) -%}
  {%- set keys = [key] if key is string else key -%}
  {%- set complaints = reconcile._complaints_of_comparison(relation, compare_to, allowance, uncertainty, tolerances, recheck) -%}
  {%- do reconcile._raise_complaints_of_parity(complaints) -%}
  {%- set position = reconcile.position_of_snapshot(compare_to, as_of, uncertainty) -%}
  {%- if as_of is none and position and reconcile._is_kept_by_snapshots(relation) -%}
    {#- Such a model has the rows of the snapshot that was staged last, whatever the position of another one. -#}
    {%- set position = none -%}
  {%- endif -%}
  {%- set compared = reconcile.compared_columns(relation, compare_to, keys, columns, tolerances) -%}
  {%- do reconcile._raise_complaints_of_parity(reconcile._complaints_of_masked(relation, compare_to, compared.columns)) -%}
  {%- set found = {
      'model': relation, 'compare_to': compare_to, 'compared_to': reconcile.ledger_name(compare_to), 'key': keys, 'columns': compared.columns, 'incomparable': compared.incomparable, 'position': position,
      'allowance': allowance, 'recheck': recheck, 'store_values': store_values, 'allow_empty': allow_empty,
      'relations': reconcile.model_relations(relation), 'form': none, 'inputs': none, 'test': model.name,
      'recent_cache': reconcile.comparison_cache('recent', relation), 'touched_cache': reconcile.comparison_cache('touched', relation),
      'verdicts_cache': reconcile.comparison_cache('verdicts', relation)} -%}
  {%- if position -%}
    {%- set node = reconcile.node_of(relation) -%}
    {%- set form = reconcile.form_of_table(node, found.relations.base) -%}
    {%- do found.update({'form': form, 'inputs': reconcile.model_inputs(node)}) -%}
    {%- do reconcile.add_horizons(form, relation, tojson(reconcile.declaration_of(form, found.inputs))) -%}
    {%- do reconcile._raise_complaints_of_parity(reconcile._complaints_of_position(found)) -%}
  {%- endif -%}
  {{ return(found) }}
{%- endmacro %}

{#- Whether a model of this package keeps a table that has no log. -#}
{%- macro _is_kept_by_snapshots(relation) -%}
  {%- for node in reconcile.reconciled_nodes() if reconcile.is_made_by(relation, node) -%}
    {{ return(reconcile.model_inputs(node).objects.values() | selectattr('carries', 'equalto', 'differences') | list | length > 0) }}
  {%- endfor -%}
  {{ return(false) }}
{%- endmacro %}

{#- Masked values are compared with masked ones. Otherwise every row would differ, and the values of the source would
    stand in the table of differences. `columns`: those that are compared. A snapshot says what snapshot.py masked, by a
    digest of each column's name and mask, since Spark hides properties with words such as password. -#}
{%- macro _complaints_of_masked(relation, compare_to, columns) -%}
  {%- set complaints = [] -%}
  {%- set masks = reconcile._masks_of_model(relation, columns) -%}
  {%- if not masks or reconcile._masks_of_model(compare_to, columns) == masks -%}{{ return(complaints) }}{%- endif -%}
  {%- set by, masked = ((reconcile.table_properties(compare_to).get('reconcile.snapshot.masks') or '') ~ ' ').split(' ')[:2] -%}
  {%- set in_clear = [] -%}
  {%- for name, mask in masks.items() if local_md5(name ~ ' ' ~ mask) not in masked.split(',') -%}{%- do in_clear.append(name) -%}{%- endfor -%}
  {%- if in_clear -%}
    {%- do complaints.append('the model has masked values of ' ~ in_clear | join(', ') ~ ', and ' ~ reconcile.ledger_name(compare_to) ~ ' has not; take the snapshot with --masks, or name the other columns in `columns`') -%}
  {%- elif 'sha256' in masks.values() -%}
    {%- set staging = reconcile.model_inputs(reconcile.node_of(relation)).relations[0] -%}
    {%- set by_of_staging = reconcile._masks_kept(staging).by or by -%}
    {%- if by != by_of_staging -%}
      {%- do complaints.append(reconcile.ledger_name(compare_to) ~ ' is masked with the key ' ~ by ~ ', and ' ~ reconcile.ledger_name(staging) ~ ' with the key ' ~ by_of_staging ~ '; take the snapshot with the key of staging') -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- The masks of those of these columns that have masked values in a model, {name in lower case: mask}; none for another
    relation. Masks are those that the model declares and those that its staging tables keep: a model that declares none
    has masked values nevertheless. -#}
{%- macro _masks_of_model(relation, columns) -%}
  {%- set masks, compared = {}, columns | map(attribute='name') | map('lower') | list -%}
  {%- for node in reconcile.reconciled_nodes() if reconcile.is_made_by(relation, node) -%}
    {%- set staged = reconcile._masks_in_staging(reconcile.model_inputs(node)) -%}
    {%- for column in reconcile.form_of_node(node).shown if column.name | lower in compared -%}
      {%- for name in column.was + [column.name] if name | lower in staged -%}
        {%- do masks.update({column.name | lower: staged[name | lower]}) -%}
      {%- endfor -%}
      {%- do masks.update({column.name | lower: column.mask}) if column.mask -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(masks) }}
{%- endmacro %}

{#- The masks of a model's objects that the job keeps with their staging tables, {field in lower case: mask}. An object has
    one name for all its spellings there. -#}
{%- macro _masks_in_staging(inputs) -%}
  {%- set masks, objects = {}, [] -%}
  {%- for object in inputs.objects -%}{%- do objects.append(object.replace('.', '_').casefold()) -%}{%- endfor -%}
  {%- for staging in inputs.relations -%}
    {%- for object, fields in reconcile._masks_kept(staging).get('objects', {}).items() if object in objects -%}{%- do masks.update(fields) -%}{%- endfor -%}
  {%- endfor -%}
  {{ return(masks) }}
{%- endmacro %}

{#- What a staging table keeps of its masks, {by, objects}: the name of the key, and the masks of each object. {} if it
    keeps none. The property is JSON in hex (ingestion/reconcile_jobs/masks.py). -#}
{%- macro _masks_kept(staging) -%}
  {%- set kept = reconcile.table_properties(staging).get('reconcile.masks') if reconcile.existing_relation(staging) else none -%}
  {%- if not kept -%}{{ return({}) }}{%- endif -%}
  {#- Of ASCII alone, so each pair of digits is a character. -#}
  {%- set text = fromjson('"' ~ modules.re.sub('(..)', '\\\\u00\\1', kept) ~ '"') -%}
  {%- set said = (fromjson(text) if text else none) or {} -%}
  {%- if not said.objects -%}
    {%- do reconcile._raise_complaints_of_parity(['the property reconcile.masks of ' ~ reconcile.ledger_name(staging) ~ ' is not as a job has written it, so nothing shows what is masked; set it to what it was before somebody changed it']) -%}
  {%- endif -%}
  {{ return(said) }}
{%- endmacro %}

{#- The name of a view that a comparison of a relation keeps in the session until the comparison ends. `kind`: recent,
    touched or verdicts. -#}
{%- macro comparison_cache(kind, relation) -%}
  {{ return('reconcile_' ~ kind ~ '_' ~ local_md5((model.unique_id if model is defined else 'prove') ~ ' ' ~ reconcile.ledger_name(relation))[:12]) }}
{%- endmacro %}

{%- macro _raise_complaints_of_parity(complaints) -%}
  {%- if complaints -%}
    {{ exceptions.raise_compiler_error('Test parity:\n  - ' ~ complaints | join('\n  - ')) }}
  {%- endif -%}
{%- endmacro %}

{%- macro _complaints_of_comparison(relation, compare_to, allowance, uncertainty, tolerances, recheck) -%}
  {%- set complaints = [] -%}
  {%- for name, duration in [('allowance', allowance), ('uncertainty', uncertainty)]
        if not modules.re.fullmatch('[0-9]{1,9} (second|minute|hour|day)s?', duration | string) -%}
    {%- do complaints.append(name ~ ": '" ~ duration ~ "' is not a duration; write it as '10 minutes'") -%}
  {%- endfor -%}
  {%- if recheck is not integer or recheck is boolean or recheck < 0 -%}
    {%- do complaints.append("recheck: '" ~ recheck ~ "' is not a whole number from 0 on; write it as 3") -%}
  {%- endif -%}
  {%- if tolerances is not mapping -%}
    {%- do complaints.append("tolerances: write them by column, for example {name: trim, total: {round: 2}}") -%}
  {%- endif -%}
  {%- for side in [relation, compare_to] -%}
    {%- if side is string -%}
      {%- do complaints.append('a test with `where` does not prove the whole table; remove `where`, and name the `columns` to compare, or compare another relation') -%}
    {%- elif not reconcile.existing_relation(side) -%}
      {%- set cure = 'build it with `dbt run`' if loop.first else 'take the snapshot first, with `snapshot.py ... --into ' ~ reconcile.ledger_name(side) ~ '`; or build it, if it is a model' -%}
      {%- do complaints.append(reconcile.ledger_name(side) ~ ' does not exist; ' ~ cure) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{%- macro _complaints_of_position(comparison) -%}
  {%- set complaints = [] -%}
  {%- set kind, form = comparison.position.kind, comparison.form -%}
  {%- set position_text = comparison.position.label ~ ', the position of ' ~ comparison.compared_to ~ ',' -%}
  {%- if form.materialized == 'history' -%}
    {%- do complaints.append('a history has all versions of a row, and ' ~ comparison.compared_to ~ ' has one; test a current_state, or set `as_of: now`') -%}
  {%- endif -%}
  {%- if form.keyless.kind == 'range_deletes' -%}
    {%- do complaints.append('deletes of ranges hide cells, and this test cannot apply such deletes up to a position; build the model at the position with the variable as_of, and test it with `as_of: now`') -%}
  {%- endif -%}
  {%- if comparison.key | sort != form.unique_key | sort -%}
    {%- do complaints.append('key: ' ~ comparison.key | join(', ') ~ ' is not the unique_key of the model, ' ~ form.unique_key | join(', ') ~ '; use this key, by which the change records are folded') -%}
  {%- endif -%}
  {%- if comparison.inputs.objects and reconcile.existing_relation(comparison.inputs.relations[0]) -%}
    {%- set newest = reconcile.newest_snapshots(comparison.inputs.relations[0]) -%}
    {%- for object in comparison.inputs.objects if object in newest -%}
      {%- do comparison.position.update({'contains_snapshot': newest[object].snapshot}) -%}
      {%- do complaints.append(position_text ~ ' is not known to lie at or after that of the snapshot beside the log, ' ~ newest[object].position_kind ~ ' ' ~ newest[object].position
            ~ ', before which changes of ' ~ object ~ ' are not told apart; compare with a newer snapshot, or say `as_of: now`') if not reconcile._contains_snapshot(comparison.position, newest[object]) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if form.source_columns and kind in ['scn', 'binlog', 'lsn', 'pg_snapshot', 'sequence'] -%}
    {%- do complaints.append(position_text ~ ' is of the log of one source, and the model reads several (source_columns); compare with the rows of all sources, which have the columns ' ~ form.source_columns | join(', ') ~ ', and say `as_of: now`') -%}
  {%- endif -%}
  {%- set coordinates = [] -%}
  {%- for object in comparison.inputs.objects.values() -%}{%- do coordinates.extend(object.coordinates) -%}{%- endfor -%}
  {%- set wanted = {'scn': 'scn', 'binlog': 'log_position', 'lsn': 'lsn', 'pg_snapshot': 'lsn', 'read_timestamp': 'commit_timestamp'} -%}
  {%- if kind in wanted and comparison.inputs.objects and wanted[kind] not in coordinates -%}
    {%- do complaints.append(position_text ~ ' is of another kind of database than the one that the model reads; compare with a snapshot of that database') -%}
  {%- elif kind in ['appended_at', 'batch'] and not comparison.inputs.objects -%}
    {%- do complaints.append('as_of: {' ~ kind ~ ': ...} is a position in a staging table, and the model has no source macro that reads one; name another position') -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- {columns, incomparable}. `columns` are the columns to compare, [{name, type, tolerances}], with the model's names
    and types. `incomparable` are sentences about columns that cannot be compared without loss: Spark would compare
    their types by rounding. `names`: the columns that the test names; none for all columns of the model. `tolerances`:
    {column: tolerance, or a list of them}. -#}
{%- macro compared_columns(relation, compare_to, keys, names, tolerances) -%}
  {%- set complaints, types_of_sides, names_of_model, tolerated_of = [], [], [], {} -%}
  {%- for side in [relation, compare_to] -%}
    {%- set types = {} -%}
    {%- for column in adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(side) ~ ' where false') -%}
      {%- do types.update({column.name | lower: column.dtype}) -%}
      {%- do names_of_model.append(column.name) if not types_of_sides -%}
    {%- endfor -%}
    {%- do types_of_sides.append(types) -%}
  {%- endfor -%}
  {%- for name, declared in tolerances.items() -%}{%- do tolerated_of.update({name | lower: declared}) -%}{%- endfor -%}
  {%- set columns, incomparable = [], [] -%}
  {%- set integers = ['tinyint', 'smallint', 'int', 'bigint'] -%}
  {%- for name in (keys + (names or names_of_model)) | unique -%}
    {%- set types = [types_of_sides[0].get(name | lower), types_of_sides[1].get(name | lower)] -%}
    {%- for side, type in [(relation, types[0]), (compare_to, types[1])] if not type -%}
      {%- do complaints.append(reconcile.ledger_name(side) ~ ' has no column ' ~ name ~ '; name the columns to compare in `columns`') -%}
    {%- endfor -%}
    {%- if types[0] and types[1] and types[0] != types[1] and not (types[0] in integers and types[1] in integers)
          and not reconcile._is_one_decimal(types) -%}
      {%- do incomparable.append('column ' ~ name ~ ' is ' ~ types[0] ~ ' in ' ~ reconcile.ledger_name(relation) ~ ' and ' ~ types[1] ~ ' in '
            ~ reconcile.ledger_name(compare_to) ~ ', which cannot be compared without loss; give both the same type') -%}
    {%- endif -%}
    {%- set declared = tolerated_of.get(name | lower, []) -%}
    {%- set tolerated = [] -%}
    {%- for tolerance in ([declared] if declared is string or declared is mapping else declared) -%}
      {%- set kind, argument = (tolerance.items() | list | first) if tolerance is mapping else (tolerance, none) -%}
      {%- do tolerated.append({'kind': kind, 'argument': argument}) -%}
      {%- do complaints.extend(reconcile._complaints_of_tolerance(name, kind, argument, types[0] or '', name in keys)) -%}
    {%- endfor -%}
    {%- do columns.append({'name': name, 'type': types[0] or '', 'tolerances': tolerated}) -%}
  {%- endfor -%}
  {%- for name in tolerances if name | lower not in columns | map(attribute='name') | map('lower') | list -%}
    {%- do complaints.append('tolerances: ' ~ name ~ ' is not one of the columns that are compared; correct the name, or add it to `columns`') -%}
  {%- endfor -%}
  {%- do reconcile._raise_complaints_of_parity(complaints) -%}
  {{ return({'columns': columns, 'incomparable': incomparable}) }}
{%- endmacro %}

{#- Whether a decimal of at most 38 digits holds every value of either of two decimal types. -#}
{%- macro _is_one_decimal(types) -%}
  {%- set integral, places = [], [] -%}
  {%- for type in types -%}
    {%- set digits = modules.re.fullmatch('decimal[(]([0-9]+),([0-9]+)[)]', type) -%}
    {%- if digits -%}{%- do integral.append(digits[1] | int - digits[2] | int) -%}{%- do places.append(digits[2] | int) -%}{%- endif -%}
  {%- endfor -%}
  {{ return(places | length == 2 and integral | max + places | max <= 38) }}
{%- endmacro %}

{#- `kind`: the name of the tolerance. `argument`: its number, none if it has none; {round: 2} is the kind round with
    the number 2. `type`: the type of the column. -#}
{%- macro _complaints_of_tolerance(name, kind, argument, type, is_key) -%}
  {%- set types_of_tolerance = {'trim': ['string'], 'case': ['string'], 'to_second': ['timestamp', 'timestamp_ntz'], 'round': ['decimal', 'double', 'float'], 'sign_of_zero': ['double', 'float']} -%}
  {%- set complaints = [] -%}
  {%- if kind not in types_of_tolerance -%}
    {%- do complaints.append("tolerances: '" ~ kind ~ "' of " ~ name ~ ' is unknown; use trim, case, to_second, sign_of_zero or {round: 2}') -%}
  {%- elif is_key -%}
    {%- do complaints.append('tolerances: ' ~ name ~ ' is part of the key, which is compared exactly; remove its tolerance') -%}
  {%- elif type.split('(')[0] not in types_of_tolerance[kind] -%}
    {%- do complaints.append('tolerances: ' ~ kind ~ ' does not apply to ' ~ name ~ ', which is ' ~ type ~ '; remove it') -%}
  {%- elif (kind == 'round') != (argument is integer) -%}
    {%- do complaints.append('tolerances: ' ~ name ~ ': write round with the number of decimal places to compare, as {round: 2}, and every other tolerance without a number') -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- Whether a position includes all that a snapshot beside the log contains. The rows of an LSN have all changes up to it
    and maybe more, so there the rows have to be the later ones, too. -#}
{%- macro _contains_snapshot(position, snapshot) -%}
  {%- if position.kind != snapshot.position_kind -%}{{ return(false) }}{%- endif -%}
  {%- if position.kind == 'read_timestamp' -%}
    {#- snapshot.py writes both with nine digits of a second. -#}
    {{ return(position.value >= snapshot.position) }}
  {%- elif position.kind != 'pg_snapshot' -%}
    {{ return(reconcile.coordinates_of(position) >= reconcile.coordinates_of({'kind': position.kind, 'value': snapshot.position})
        and (position.kind != 'lsn' or position.taken_at >= reconcile.moment_of_snapshot(snapshot))) }}
  {%- endif -%}
  {%- set xmax = snapshot.position.split(':')[1] | int -%}
  {%- set was_open = snapshot.position.split(':')[2].split(',') -%}
  {%- for id in position.value.split(':')[2].split(',') if id and id | int < xmax and id not in was_open -%}{{ return(false) }}{%- endfor -%}
  {{ return(position.value.split(':')[1] | int >= xmax) }}
{%- endmacro %}
