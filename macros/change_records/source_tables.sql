{#- Which records a Datastream source macro takes. `object` is schema and table in one name, so `a_b`.`c` and `a`.`b_c`
    are one object. The metadata of each record name schema and table separately. A route is {objects, table, source},
    where `table` is [database, schema, table] or none. A model's `object` names all tables of an object;
    `refuse_ambiguous_objects` refuses it if there are several. A model's `table` names one of them. -#}

{#- The routes of a source macro. `object` and `table` are each a name, or a list of the names that one table has
    had. With `source_columns`, each entry of the list `table` is a source of its own: a name, or a list of the names
    that the table of this source has had. `source` is then the number of the entry. -#}
{%- macro routes_of(object, table, source_columns=none) -%}
  {%- set routes, complaints, entries = [], [], [] -%}
  {%- for entry in ([table] if table is string or table is mapping else table or []) -%}
    {%- set number = loop.index0 -%}
    {%- set is_list = entry is sequence and entry is not string and entry is not mapping -%}
    {%- if is_list and source_columns is none -%}
      {%- do complaints.append('table ' ~ entry ~ ' is a list within a list, which is for the names of one source among several; add source_columns, or write all names that one table has had as one list') -%}
    {%- else -%}
      {%- for name in (entry if is_list else [entry]) -%}{%- do entries.append([number, name]) -%}{%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for name in ([object] if object is string else object or []) -%}
    {%- do routes.append({'objects': [name], 'table': none}) -%}
  {%- endfor -%}
  {%- for number, name in entries -%}
    {%- set parts = [name.get('database'), name.get('schema'), name.get('table')] if name is mapping else (name | string).split('.') -%}
    {%- if name is not mapping and parts | length not in [2, 3] or not parts | last or not parts[-2] -%}
      {%- do complaints.append("table '" ~ name ~ "' is not the name of a table; write schema and table (for MySQL, database and table) as 'shop.orders', or, if a name contains a dot, as {'schema': 'shop', 'table': 'or.ders'}") -%}
    {%- else -%}
      {%- do routes.append({
          'objects': [parts[-2] ~ '_' ~ parts[-1], parts[-2] ~ '.' ~ parts[-1]], 'table': [parts[-3] if parts | length == 3 else none, parts[-2], parts[-1]],
          'source': number}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if object and table -%}
    {%- do complaints.append('its source macro has both object and table; give only table') -%}
  {%- elif not object and not table -%}
    {%- do complaints.append("its source macro has no table; write table='shop.orders', or object='shop_orders' as in the records") -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(routes) }}
{%- endmacro %}

{#- The objects of routes, as `model_inputs` has them: {object: {..., tables: [[database, schema, table]]}}. -#}
{%- macro objects_of_routes(routes, order) -%}
  {%- set objects = {} -%}
  {%- for route in routes -%}
    {%- for object in route.objects -%}
      {%- set tables = objects.get(object, {}).get('tables', []) + ([route.table] if route.table else []) -%}
      {%- do objects.update({object: dict(order, **({'tables': tables} if route.table else {}))}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(objects) }}
{%- endmacro %}

{#- A condition for the staged records of `objects`, which are as `model_inputs` has them. The condition reads `record`
    only if a table is named. -#}
{%- macro is_of_objects(objects) -%}
{%- set tables = [] -%}
{%- set whole = [] -%}
{%- for object, properties in objects.items() -%}
  {%- if properties.tables -%}{%- do tables.extend(properties.tables) -%}{%- else -%}{%- do whole.append(object) -%}{%- endif -%}
{%- endfor -%}
object {{ '= ' ~ reconcile.literal(objects | first) if objects | length == 1 else 'in (' ~ reconcile.literals(objects) ~ ')' }}
{%- if tables %} and ({{ 'object in (' ~ reconcile.literals(whole) ~ ') or ' if whole }}{{ reconcile.is_of_tables(reconcile.metadata_of_record(), tables) }})
{%- endif -%}
{%- endmacro %}

{#- What models take of one staging table, as rows: `from values ... as read (relation, takes, tables)`, for
    `is_taken`. `readers`: {name in the ledger: objects}, the objects as `model_inputs` has them. So a staging table is
    read once for all its models. `also`: further columns, {name: {name in the ledger: literal}}. -#}
{%- macro rows_of_readers(readers, also={}) -%}
{%- set rows, no_tables = [], 'cast(null as array<struct<database: string, schema: string, table: string>>)' -%}
{%- for name, objects in readers.items() -%}
  {%- for object, properties in objects.items() -%}
    {%- set tables = [] -%}
    {%- for database, schema, table in properties.tables or [] -%}
      {%- do tables.append(reconcile._struct_of_table(reconcile.literal(database) if database else 'cast(null as string)', reconcile.literal(schema), reconcile.literal(table))) -%}
    {%- endfor -%}
    {%- set row = [reconcile.literals([name, object]), 'array(' ~ tables | join(', ') ~ ')' if tables else no_tables] -%}
    {%- for values in also.values() -%}{%- do row.append(values[name]) -%}{%- endfor -%}
    {%- do rows.append('(' ~ row | join(', ') ~ ')') -%}
  {%- endfor -%}
{%- endfor -%}
select *
from values
    {{ rows | join(',\n    ') }}
    as read ({{ (['relation', 'takes', 'tables'] + also | list) | join(', ') }})
{%- endmacro %}

{#- Whether a staged record is of a row of `rows_of_readers`: the condition of a join. A record is read only if the model
    names a table of the object, and once. -#}
{%- macro is_taken() -%}
staged.object = read.takes
    and (read.tables is null or exists(array({{ reconcile.metadata_of_record() }}), metadata ->
        array_contains(read.tables, {{ reconcile._struct_of_table('cast(null as string)', reconcile._schema_of('metadata'), 'metadata.table') }})
        or array_contains(read.tables, {{ reconcile._struct_of_table('metadata.database', reconcile._schema_of('metadata'), 'metadata.table') }})))
{%- endmacro %}

{%- macro _struct_of_table(database, schema, table) -%}
named_struct('database', {{ database }}, 'schema', {{ schema }}, 'table', {{ table }})
{%- endmacro %}

{#- The metadata of a record that name its table, as SQL. `record`: SQL for the record. -#}
{%- macro metadata_of_record(record='record') -%}
{{ reconcile.parsed_record('source_metadata struct<database string, schema string, table string>', record) }}.source_metadata
{%- endmacro %}

{#- Whether metadata name one of these tables. -#}
{%- macro is_of_tables(metadata, tables) -%}
{%- set short_names, full_names = [], [] -%}
{%- for database, schema, table in tables -%}
  {%- set place = 'struct(' ~ (reconcile.literal(database) ~ ', ' if database else '') ~ reconcile.literal(schema) ~ ', ' ~ reconcile.literal(table) ~ ')' -%}
  {%- do (full_names if database else short_names).append(place) -%}
{%- endfor -%}
{%- set conditions = [] -%}
{%- if short_names -%}{%- do conditions.append('struct(' ~ reconcile._schema_of(metadata) ~ ', ' ~ metadata ~ '.table) in (' ~ short_names | unique(case_sensitive=true) | join(', ') ~ ')') -%}{%- endif -%}
{%- if full_names -%}{%- do conditions.append('struct(' ~ metadata ~ '.database, ' ~ reconcile._schema_of(metadata) ~ ', ' ~ metadata ~ '.table) in (' ~ full_names | unique(case_sensitive=true) | join(', ') ~ ')') -%}{%- endif -%}
coalesce({{ conditions | join(' or ') }}, false)
{%- endmacro %}

{#- Datastream's documentation shows SQL Server's schema as a list of one name. -#}
{%- macro _unwrapped_schema(metadata) -%}
nullif(regexp_replace({{ metadata }}.schema, {{ reconcile.literal('^\\["|"\\]$') }}, ''), '')
{%- endmacro %}

{#- MySQL's schema is the database. -#}
{%- macro _schema_of(metadata) -%}
coalesce({{ reconcile._unwrapped_schema(metadata) }}, {{ metadata }}.database)
{%- endmacro %}

{#- The full name of a table, as SQL: database, schema and table, as far as the metadata have them. -#}
{%- macro source_table(metadata) -%}
nullif(concat_ws('.', nullif({{ metadata }}.database, ''), {{ reconcile._unwrapped_schema(metadata) }}, nullif({{ metadata }}.table, '')), '')
{%- endmacro %}

{#- The value of a source column, as SQL: a name as a model names it. NULL if the metadata do not have it. `source`: the
    source's own name. -#}
{%- macro value_of_source_column(field, source, metadata) -%}
{%- if field == 'table' -%}
nullif({{ metadata }}.table, '')
{%- elif field == 'schema' or source == 'mysql' -%}
nullif({{ reconcile._schema_of(metadata) }}, '')
{%- else -%}
nullif({{ metadata }}.database, '')
{%- endif -%}
{%- endmacro %}

{#- The table as a model names it: schema and table. -#}
{%- macro _short_table(metadata) -%}
concat({{ reconcile._schema_of(metadata) }}, '.', {{ metadata }}.table)
{%- endmacro %}

{#- The objects without their tables. -#}
{%- macro plain_objects(objects) -%}
  {%- set plain = {} -%}
  {%- for object in objects -%}{%- do plain.update({object: {}}) -%}{%- endfor -%}
  {{ return(plain) }}
{%- endmacro %}
