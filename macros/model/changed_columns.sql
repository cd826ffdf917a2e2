{#- What of a declaration has changed since a base table was built: {built, removed, widened, renamed, more, added,
    other}. `declared`: the columns of the model; `known`: those of the table, as `built_columns` gives them. `built` is
    what the table says once the run has followed the change; none if the change needs all records, or is refused.
    `removed` is a list of the table's columns, `widened` one of {name, column, former}, `renamed` one of {name,
    column}, and `other` a list of what else has changed, as sentences. `more`: options by which a column now reads
    values that did not fit, and every other value as before, as a list of {name, option}. `added`: the names of
    declared columns that the table does not have, or that are marked `added` and are now read under other names too.
    -#}
{%- macro changed_columns(declared, known) -%}
  {%- set changes = {'built': none, 'removed': [], 'widened': [], 'renamed': [], 'more': [], 'added': [], 'other': []} -%}
  {%- set before = {} -%}
  {%- for column in known if not column.removed -%}{%- do before.update({column.name: column}) -%}{%- endfor -%}
  {%- set built, found = [], [] -%}
  {%- for column in declared -%}
    {%- set former = before.get(column.name) or reconcile._renamed_from(column, declared, before) -%}
    {%- if former -%}{%- do found.append(former.name) -%}{%- endif -%}
    {%- if former and not (column.added and (former.was or []) != column.was) -%}
      {%- do built.append(reconcile._column_after(column, former, changes)) -%}
    {%- else -%}
      {%- do changes.added.append(column.name) -%}
      {%- do built.append(reconcile.column_as_built(column)) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for column in known -%}
    {%- if column.removed -%}
      {%- do built.append(column) -%}
    {%- elif column.name not in found -%}
      {%- do changes.removed.append(column) -%}
      {%- do built.append(dict(column, removed=true)) -%}
      {%- for other in declared if other.name | lower == column.name | lower -%}
        {%- do changes.other.append('column ' ~ column.name ~ ' is ' ~ other.name ~ ' now, and of fields that differ in upper and lower case alone the one with the exact name is read; '
              ~ column.name ~ ' may stay, whatever the case in the records') -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do changes.update({'built': built}) if not changes.added and not changes.other -%}
  {{ return(changes) }}
{%- endmacro %}

{#- The column of the table whose name a declared column had before; none if there is none. -#}
{%- macro _renamed_from(column, declared, before) -%}
  {%- set names = declared | map(attribute='name') | list -%}
  {%- for name in column.was if name in before and name not in names -%}
    {{ return(before[name]) }}
  {%- endfor -%}
{%- endmacro %}

{#- A column as the base table has it after the run. Notes in `changes` what is otherwise than before, in `former`. -#}
{%- macro _column_after(column, former, changes) -%}
  {%- set now = reconcile.column_as_built(column) -%}
  {%- set is_renamed = column.name != former.name -%}
  {%- set was = ([former.name] if is_renamed else []) + (former.was or []) -%}
  {%- for option in reconcile.options_of_reading() if option != 'was' and now.get(option) != former.get(option) -%}
    {%- do changes.more.append({'name': column.name, 'option': option}) if option in ['round', 'infinity_is_null', 'zero_date'] and now[option]
          else changes.other.append('column ' ~ column.name ~ ' has another ' ~ option) -%}
  {%- endfor -%}
  {%- if was != column.was -%}
    {%- do changes.other.append('column ' ~ column.name ~ ' was read as ' ~ ([former.name] + (former.was or [])) | join(', ') ~ ' before, for which `was` is ' ~ tojson(was)
          ~ ' and not ' ~ tojson(column.was) ~ '; with `added: true` beside it, all staged records are read once more') -%}
  {%- elif is_renamed -%}
    {%- do changes.renamed.append({'name': former.name, 'column': column}) -%}
    {%- do now.update({'stored': former.name, 'hashed': {'name': former.name, 'type': former.type}}) -%}
  {%- endif -%}
  {%- set type = reconcile.column_type(former.type) -%}
  {%- if now.type != former.type -%}
    {%- set obstacle = reconcile.obstacle_to_widening(type, column.type, column.round) -%}
    {%- do changes.widened.append({'name': column.name, 'column': column, 'former': type}) if not obstacle
          else changes.other.append('column ' ~ column.name ~ ' was ' ~ former.type ~ ' and is ' ~ now.type ~ ', ' ~ obstacle) -%}
  {%- endif -%}
  {%- if type.ddl != column.type.ddl -%}
    {%- do now.update({'hashed': {'name': former.name, 'type': former.type}}) -%}
  {%- endif -%}
  {%- for key in ['hashed', 'stored'] if former[key] -%}{%- do now.update({key: former[key]}) -%}{%- endfor -%}
  {{ return(now) }}
{%- endmacro %}

{#- The columns that a source macro reads for the model that runs. They are the declared ones, and where the base table
    goes on with a changed declaration also those that were removed: the hash that settles ties is of all columns that
    the table was built with, so that a record has the same place in the order whenever it comes. A removed column is
    marked `removed`: nothing is said of a value that it cannot hold. `known`: see `known_columns`. -#}
{%- macro columns_to_read(declared, known) -%}
  {%- set built = reconcile.changed_columns(declared, known).built if known else none -%}
  {%- if not built -%}{{ return(declared) }}{%- endif -%}
  {%- set by_name, read = {}, [] -%}
  {%- for column in declared -%}{%- do by_name.update({column.name: column}) -%}{%- endfor -%}
  {%- for column in built -%}
    {%- set hashed = {'hashed': column.hashed} if column.hashed else {} -%}
    {%- if column.removed -%}
      {%- do read.append(dict(reconcile.column_of_built(column), removed=true, infinity_is_null=false, zero_date=false, **hashed)) -%}
    {%- else -%}
      {%- do read.append(dict(by_name[column.name], **hashed)) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(read) }}
{%- endmacro %}

{#- The columns with which the base table was built that the run goes on with; none if there is no such table, or if the
    run makes it anew. `dbt docs generate` renders each model, and asks no table; no more does a run ask the table of a
    model that it leaves as it is. -#}
{%- macro known_columns() -%}
  {%- if model.get('resource_type') != 'model' or config.get('materialized') not in ['current_state', 'history']
        or reconcile.as_of() or reconcile.is_made_anew() or flags.WHICH == 'generate' or reconcile.is_left(this) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set base = reconcile.model_relations(this).base -%}
  {%- if not reconcile.existing_relation(base) -%}{{ return(none) }}{%- endif -%}
  {%- set properties = reconcile.properties_of_base(base) -%}
  {%- set known = reconcile.built_columns(properties, reconcile.keys_of(model)) -%}
  {%- if known and reconcile.is_asked('retry_quarantine') -%}
    {%- set form = reconcile.form_of_node(model) -%}
    {%- if reconcile.is_read_anew(reconcile.changed_columns(form.shown, known), form, reconcile.model_inputs(model), properties['reconcile.declaration']) -%}
      {{ return(none) }}
    {%- endif -%}
  {%- endif -%}
  {{ return(known) }}
{%- endmacro %}

{#- Whether columns read every value that they read before, as the same value of the same type, and perhaps more values: a
    longer text, or one more of `round`, `infinity_is_null` and `zero_date`. `changes`: see `changed_columns`. -#}
{%- macro reads_only_more(changes) -%}
  {%- set wider = changes.widened | rejectattr('column.type.name', 'equalto', 'string') | list -%}
  {{ return(changes.built and not (changes.removed or changes.renamed or wider)) }}
{%- endmacro %}

{#- Whether a run that is asked to retry the quarantine reads all records and makes the base table anew, though a run that
    is not asked goes on with its columns. `changes`: see `changed_columns`. `built`: the declaration of the base table.
    This is asked twice, for the SELECT and for the run, and must not depend on what happens between. -#}
{%- macro is_read_anew(changes, form, inputs, built) -%}
  {%- if not reconcile.is_asked('retry_quarantine') or flags.EMPTY or not changes.built -%}{{ return(false) }}{%- endif -%}
  {%- set changed = reconcile.changed_aspects(built, tojson(reconcile.declaration_of(form, inputs))) -%}
  {{ return(changed != [] and not (changed == ['columns'] and reconcile.reads_only_more(changes))) }}
{%- endmacro %}

{#- The form of a node whose base table a test or an operation reads, by which the table's columns are found under the
    names that they are stored by: see `form_of_node`. `base`: the table. -#}
{%- macro form_of_table(node, base) -%}
  {%- set form = reconcile.form_of_node(node) -%}
  {%- if reconcile.existing_relation(base) -%}
    {%- set known = reconcile.built_columns(reconcile.table_properties(base), form.unique_key) -%}
    {%- do form.update(reconcile.stored_form(known or [])) -%}
  {%- endif -%}
  {{ return(form) }}
{%- endmacro %}

{#- What a form says of a base table whose declaration has changed: `stored`, {column: the column of the table}, where
    they differ, and `left`, the columns of the table that the model no longer declares; all as SQL. -#}
{%- macro stored_form(built) -%}
  {%- set stored, left = {}, [] -%}
  {%- for column in built -%}
    {%- set name = reconcile.identifier(column.name) -%}
    {%- set of_table = reconcile.identifier(column.stored or column.name) -%}
    {%- if column.removed -%}
      {%- do left.append(of_table) if not column.dropped -%}
    {%- elif of_table != name -%}
      {%- do stored.update({name: of_table}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return({'stored': stored, 'left': left}) }}
{%- endmacro %}
