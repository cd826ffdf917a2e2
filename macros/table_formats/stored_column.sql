{#- The name, as SQL, under which a table of this format holds a column, which is also given as SQL. Iceberg reserves
    some names for its own metadata of a row. -#}
{%- macro stored_column(column, file_format) -%}
  {%- set reserved = ['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number'] -%}
  {%- set name = column | replace('`', '') -%}
  {{ return('`_change' ~ name ~ '`' if file_format == 'iceberg' and name | lower in reserved else column) }}
{%- endmacro %}

{#- The type, as Spark names it, in which a table of this format holds a type: Iceberg has no integers of one or two
    bytes, and holds them in four. -#}
{%- macro stored_type(type, file_format) -%}
  {{ return(modules.re.sub('tinyint|smallint', 'int', type) if type and file_format == 'iceberg' else type) }}
{%- endmacro %}
