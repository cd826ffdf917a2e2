{#- The properties that a format requires of every table of this package, {property: value}. -#}
{%- macro format_properties(file_format) -%}
  {{ return(adapter.dispatch('format_properties', 'reconcile')(file_format)) }}
{%- endmacro %}

{%- macro default__format_properties(file_format) -%}
  {{ return({} if file_format != 'iceberg' else {
      'format-version': '3', 'write.merge.mode': 'merge-on-read', 'write.update.mode': 'merge-on-read',
      'write.delete.mode': 'merge-on-read', 'write.merge.isolation-level': 'serializable'}) }}
{%- endmacro %}

{#- Delta itself knows only this level of isolation, under which `insert_into_ledger` was tried. Databricks takes a weaker
    one where a table does not name it. -#}
{%- macro databricks__format_properties(file_format) -%}
  {{ return({'delta.isolationLevel': 'Serializable'}) }}
{%- endmacro %}

{#- The same properties as the last clause of a CREATE TABLE, on a line of its own; nothing if there are none. -#}
{%- macro format_properties_clause(file_format) -%}
{%- set properties = reconcile.format_properties(file_format) -%}
{{ '\n' ~ reconcile.properties_clause(properties) if properties }}
{%- endmacro %}

{#- The properties of base tables. With deletion vectors, a merge marks rows and does not write their files again;
    version 3 of Iceberg always has deletion vectors. Column mapping is set only for names that Parquet cannot hold.
    Delta accepts a timestamp_ntz only in a new table, or in a replaced table that declares the feature. Delta's change
    data feed has a column _change_type of its own, and a session may turn the feed on for all new tables. Of a sequence,
    Iceberg would keep 16 characters as the bounds of a file, which are no more than the generation. Full bounds let
    files be skipped. `form`: as returned by form_of_node; its `columns` are those in which the model keeps a row. -#}
{%- macro base_format_properties(form) -%}
  {%- if form.file_format == 'iceberg' -%}
    {%- set full = {'write.metadata.metrics.column._change_sequence': 'full'} -%}
    {{ return(dict(reconcile.format_properties('iceberg'), **full)) }}
  {%- endif -%}
  {%- set properties = {'delta.enableDeletionVectors': 'true'} -%}
  {%- if modules.re.search('[ ,;{}()\n\t=]', form.columns | map(attribute='name') | join('')) -%}
    {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
  {%- endif -%}
  {%- if 'timestamp_ntz' in form.columns | map(attribute='type.ddl') | join(' ') -%}
    {%- do properties.update({'delta.feature.timestampNtz': 'supported'}) -%}
  {%- endif -%}
  {%- if form.materialized == 'history' -%}
    {%- do properties.update({'delta.enableChangeDataFeed': 'false'}) -%}
  {%- endif -%}
  {{ return(properties) }}
{%- endmacro %}

{#- All properties of a table that a model keeps, {property: value}: those that the format requires, then `properties`,
    which win over them, then the label of the earlier moment as of which the table is built (`as_of`: {position, value,
    label}, or none). By this label, later runs know a table that is not the present one. -#}
{%- macro properties_of(file_format, as_of, properties) -%}
  {%- set marked = {'reconcile.as_of': as_of.label} if as_of else {} -%}
  {{ return(dict(reconcile.format_properties(file_format), **dict(properties, **marked))) }}
{%- endmacro %}

{%- macro properties_clause(properties) -%}
tblproperties (
    {%- for property, value in properties.items() %}
    {{ reconcile.literal(property) }} = {{ reconcile.literal(value) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}
