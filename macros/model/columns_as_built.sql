{#- What a base table says of the columns that it was built with, as its property `reconcile.columns`: a list of {name,
    type, and the options by which the values are read}, in hex, because Spark shows `*****` for properties that contain
    words such as url or token. `reconcile.declaration` has only a digest of them, and from a digest no run can tell what
    has changed. Further keys: `removed`, of a column that the model no longer declares; `hashed`, {name, type} under
    which the hash that settles ties reads the column, where they are not its own any more; `stored`, the name of the
    table's column, where that is another; `dropped`, of a removed column that the table no longer has. -#}
{%- macro property_of_columns(built) -%}
  {{ return(tojson(built, sort_keys=true).encode('utf-8').hex()) }}
{%- endmacro %}

{#- A declared column as the property has it. -#}
{%- macro column_as_built(column) -%}
  {%- set built = {'name': column.name, 'type': column.type.label} -%}
  {%- for option in reconcile.options_of_reading() if column[option] -%}
    {%- do built.update({option: column[option]}) -%}
  {%- endfor -%}
  {{ return(built) }}
{%- endmacro %}

{#- The columns as a table has them that is made anew: see `property_of_columns`. -#}
{%- macro columns_as_built(columns) -%}
  {%- set built = [] -%}
  {%- for column in columns -%}
    {%- do built.append(reconcile.column_as_built(column)) -%}
  {%- endfor -%}
  {{ return(built) }}
{%- endmacro %}

{#- The options of a column by which its values are read; all are parts of the declaration. -#}
{%- macro options_of_reading() -%}
  {{ return(['round', 'encoding', 'infinity_is_null', 'zero_date', 'was', 'mask']) }}
{%- endmacro %}

{#- A column of the property, as `declared_columns` has columns. -#}
{%- macro column_of_built(built) -%}
  {%- set column = {'name': built.name, 'type': reconcile.column_type(built.type)} -%}
  {%- for option in reconcile.options_of_reading() -%}
    {%- do column.update({option: built.get(option, false)}) -%}
  {%- endfor -%}
  {{ return(column) }}
{%- endmacro %}

{#- The columns of a base table by its properties; none if the table was made before it said so, or if an earlier version
    of this package made it anew since: then they do not have the digest of its declaration. `keys`: the unique_key. -#}
{%- macro built_columns(properties, keys) -%}
  {%- set declaration, text = properties.get('reconcile.declaration'), properties.get('reconcile.columns') -%}
  {%- if not declaration or not text -%}{{ return(none) }}{%- endif -%}
  {%- set built = fromjson(''.encode('utf-8').fromhex(text).decode('utf-8')) -%}
  {%- set columns = [] -%}
  {%- for column in built if not column.removed -%}
    {%- do columns.append(reconcile.column_of_built(column)) -%}
  {%- endfor -%}
  {{ return(built if reconcile.digest_of_columns(reconcile.row_columns(columns, keys)) == fromjson(declaration).columns else none) }}
{%- endmacro %}

{#- The properties of the base table of the model that runs. The rendering of its SELECT asks for them, just before the
    materialization, which takes what was found: `is_rendered`. -#}
{%- macro properties_of_base(relation, is_rendered=false) -%}
  {%- set asked = graph.setdefault('reconcile_base_properties', {}) -%}
  {%- set name = reconcile.ledger_name(relation) -%}
  {%- if is_rendered and name in asked -%}{{ return(asked.pop(name)) }}{%- endif -%}
  {%- set properties = reconcile.table_properties(relation) -%}
  {%- do asked.update({name: properties}) if not is_rendered -%}
  {{ return(properties) }}
{%- endmacro %}
