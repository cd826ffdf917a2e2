{#- The name, as SQL, under which a table of this format holds a column, given as SQL too. Iceberg takes some names for what it tells of a row itself. -#}
{%- macro stored_column(column, file_format) -%}
  {%- set reserved = ['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number'] -%}
  {%- set name = column | replace('`', '') -%}
  {{ return('`_change' ~ name ~ '`' if file_format == 'iceberg' and name | lower in reserved else column) }}
{%- endmacro %}

{#- The type, as Spark says it, that a table of this format keeps a type as: Iceberg has no integers of one or two bytes, and keeps them in four. -#}
{%- macro stored_type(type, file_format) -%}
  {{ return(modules.re.sub('tinyint|smallint', 'int', type) if type and file_format == 'iceberg' else type) }}
{%- endmacro %}
