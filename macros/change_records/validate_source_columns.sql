{#- Ends the run if the source columns of a model are wrong, and names everything that is wrong at once. `columns`: those
    that the source macro reads; `routes`: see `routes_of`. Nothing orders the records of two sources: their positions
    are of two logs. So whatever would compare such records is refused: a key without the source columns, generations,
    addresses of rows, a position of one log. -#}
{%- macro validate_source_columns(source_columns, source, routes, generations, columns, row_id) -%}
  {%- if source_columns is not mapping or not source_columns -%}
    {%- do reconcile.raise_complaints(["source_columns is '" ~ source_columns ~ "'; write the columns with the fields of the metadata that fill them, for example {'shard': 'database'}"]) -%}
  {%- endif -%}
  {%- set complaints = [] -%}
  {%- set keys = config.get('unique_key') or [] -%}
  {%- set keys = [keys] if keys is string else keys -%}
  {%- set declared = {} -%}
  {%- for column in columns if not column.removed -%}{%- do declared.update({column.name: column}) -%}{%- endfor -%}
  {%- for name, field in source_columns.items() -%}
    {%- set column = declared.get(name) -%}
    {%- if field not in ['database', 'schema', 'table'] -%}
      {%- do complaints.append("source column " ~ name ~ ": '" ~ field ~ "' is no field of the metadata that names a source; write database, schema or table") -%}
    {%- endif -%}
    {%- if not column -%}
      {%- do complaints.append("source column " ~ name ~ ": the model declares no column of this name; add `{name: " ~ name ~ ", data_type: string}` to the model's YAML") -%}
    {%- elif column.type.label != 'string' -%}
      {%- do complaints.append("source column " ~ name ~ ": its values are names, and this column is a " ~ column.type.label ~ "; declare `data_type: string`") -%}
    {%- endif -%}
    {%- for option in ['round', 'encoding', 'was', 'mask'] if column and column[option] -%}
      {%- do complaints.append("source column " ~ name ~ ": " ~ option ~ " says how a field of the payload is read, and this column is none; remove " ~ option) -%}
    {%- endfor -%}
    {%- if name not in keys -%}
      {%- do complaints.append("source column " ~ name ~ ": it is not in unique_key, and nothing orders records of two sources that have one key; write unique_key=" ~ ([name] + (keys | reject('in', ['_row_id', '_change_id']) | list))
            ~ ", and let the test reconcile.keys_are_disjoint show whether the sources share keys") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if declared and not declared | reject('in', source_columns) | list -%}
    {%- do complaints.append('all columns of the model are source columns; declare the columns of the records too') -%}
  {%- endif -%}
  {%- if routes | rejectattr('table') | list -%}
    {%- do complaints.append("source_columns needs the names of the tables, and its source macro has object; write table=['shop_1.orders', 'shop_2.orders']") -%}
  {%- else -%}
    {%- do complaints.extend(reconcile._complaints_of_sources(source_columns, source, routes)) -%}
  {%- endif -%}
  {%- if generations -%}
    {%- do complaints.append('generations are of one log, and source_columns takes records of several; remove them, and give the source whose log began anew a model of its own') -%}
  {%- endif -%}
  {%- if row_id and (model.config.get('meta') or {}).get('row_ids', true) -%}
    {%- do complaints.append('an address is of a row of one database, and source_columns takes rows of several; say `meta: {row_ids: false}`') -%}
  {%- endif -%}
  {%- set as_of = reconcile.as_of() -%}
  {%- if as_of and as_of.position in ['sequence', 'pg_snapshot'] -%}
    {%- do complaints.append('the variable as_of: ' ~ as_of.label ~ ' is a position in the log of one source, and source_columns takes records of several; name a batch, or a time (appended_at, commit_time)') -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
{%- endmacro %}

{#- What is wrong with the tables that a model names, each of which is a source: two sources must differ in the source
    columns, and the names that one table has had must not. Nothing is known of the database of a name without one. -#}
{%- macro _complaints_of_sources(source_columns, source, routes) -%}
  {%- set complaints, sources, keys_of_sources, fields = [], {}, {}, [] -%}
  {%- set place = {'database': 1 if source == 'mysql' else 0, 'schema': 1, 'table': 2} -%}
  {%- for field in source_columns.values() if field in place -%}
    {%- do fields.append(field) if routes | map(attribute='table') | map(attribute=place[field]) | select | list | length == routes | length -%}
  {%- endfor -%}
  {%- for route in routes -%}
    {%- set values = [] -%}
    {%- for field in fields -%}{%- do values.append(route.table[place[field]]) -%}{%- endfor -%}
    {%- set key, label = tojson(values), route.table | select | join('.') -%}
    {%- set other, former = sources.get(key), keys_of_sources.get(route.source) -%}
    {%- if other and other.source != route.source -%}
      {%- do complaints.append('source_columns does not tell ' ~ label ~ ' from ' ~ other.label ~ ", so that rows of both may have one key; add another field of the metadata, for example {'table_name': 'table'}, or, if one table has had both names, write them as a list within the list of tables") -%}
    {%- elif former and former.key != key -%}
      {%- do complaints.append('source_columns tells ' ~ label ~ ' from ' ~ former.label ~ ', which are names of one table by the list within the list of tables: its rows would have two keys; take out the field of the metadata that changed, or read the table by a model of its own') -%}
    {%- endif -%}
    {%- do sources.setdefault(key, {'source': route.source, 'label': label}) -%}
    {%- do keys_of_sources.setdefault(route.source, {'key': key, 'label': label}) -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- A complaint about a record whose payload has a field with the name of a source column, as SQL: one of the two values
    would be lost. -#}
{%- macro complaint_of_source_column(name) -%}
if(exists(map_keys(payload), name -> lower(name) = lower({{ reconcile.literal(name) }})), {{ reconcile.literal(name ~ ': the payload has a field of this name, and source_columns fills the column from the metadata; give the source column another name') }}, null)
{%- endmacro %}
