{#- The properties that a format wants of every table of this package, {property: value}. -#}
{%- macro format_properties(file_format) -%}
  {{ return({} if file_format != 'iceberg' else {
      'format-version': '3', 'write.merge.mode': 'merge-on-read', 'write.update.mode': 'merge-on-read', 'write.delete.mode': 'merge-on-read'}) }}
{%- endmacro %}

{#- The same as the last clause of a CREATE TABLE, on a line of its own; nothing where there are none. -#}
{%- macro format_properties_clause(file_format) -%}
{%- set properties = reconcile.format_properties(file_format) -%}
{{ '\n' ~ reconcile.properties_clause(properties) if properties }}
{%- endmacro %}

{#- And those of base tables. Deletion vectors, which Iceberg's version 3 has in any case: a merge marks rows instead of writing their files again. Column mapping:
    only for names Parquet cannot hold. Delta takes a timestamp_ntz into a new table only, and into one that is replaced if it is told so.
    Of a sequence Iceberg would keep 16 characters as the bounds of a file, which are no more than its generation; whole, they let files be skipped. -#}
{%- macro base_format_properties(settings) -%}
  {%- if settings.file_format == 'iceberg' -%}
    {{ return(dict(reconcile.format_properties('iceberg'), **{'write.metadata.metrics.column._change_sequence': 'full'})) }}
  {%- endif -%}
  {%- set properties = {'delta.enableDeletionVectors': 'true'} -%}
  {%- if modules.re.search('[ ,;{}()\n\t=]', settings.columns | map(attribute='name') | join('')) -%}
    {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
  {%- endif -%}
  {%- if 'timestamp_ntz' in settings.columns | map(attribute='type.ddl') | join(' ') -%}
    {%- do properties.update({'delta.feature.timestampNtz': 'supported'}) -%}
  {%- endif -%}
  {{ return(properties) }}
{%- endmacro %}

{#- Those of a table of a model: of its format, its own, and the earlier moment that it was built of. -#}
{%- macro properties_of(settings, properties) -%}
  {{ return(dict(reconcile.format_properties(settings.file_format), **dict(properties, **({'reconcile.as_of': settings.as_of.said} if settings.as_of else {})))) }}
{%- endmacro %}

{%- macro properties_clause(properties) -%}
tblproperties (
    {%- for property, value in properties.items() %}
    {{ reconcile.literal(property) }} = {{ reconcile.literal(value) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}
