{#- Adds the columns that a base table of an earlier version lacks: those by which keys are followed that shift from row to
    row. Its rows have NULL there, which means that no transaction is known of them. Iceberg reads a snapshot with the
    columns of its time, so the table gets a snapshot with the new ones. No row is written, and a run that dies in between
    goes on from there. -#}
{%- macro get_upgrade_statements(relations, settings) -%}
  {%- set built = fromjson(settings.built.base) -%}
  {%- set transactions = fromjson(settings.declaration).get('transactions') -%}
  {%- if not transactions or built.get('transactions') == transactions -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set types = dict(reconcile.columns_of_transaction(settings.form), **{'_change_is_undone': 'boolean'}) -%}
  {%- set base = reconcile.qualified(relations.base) -%}
  {%- set existing = adapter.get_column_schema_from_query('select * from ' ~ base) | map(attribute='name') | list -%}
  {%- set missing = [] -%}
  {%- for column in reconcile.base_columns(settings.form) if column in types and column not in existing -%}
    {%- do missing.append(column ~ ' ' ~ types[column]) -%}
  {%- endfor -%}
  {%- do built.update({'transactions': transactions}) -%}
  {%- set properties = reconcile.properties_clause({'reconcile.declaration': tojson(built, sort_keys=true)}) -%}
  {{ return((['alter table ' ~ base ~ ' add columns (' ~ missing | join(', ') ~ ')'] if missing else [])
      + (['insert into ' ~ base ~ ' select * from ' ~ base ~ ' where false'] if missing and settings.form.file_format == 'iceberg' else [])
      + reconcile._get_keyless_upgrade_statements(relations[settings.form.keyless.kind] if settings.built[settings.form.keyless.kind] else none)
      + ['alter table ' ~ base ~ ' set ' ~ properties]) }}
{%- endmacro %}

{#- The same for the table of keyless deletes; none if the model has none. -#}
{%- macro _get_keyless_upgrade_statements(relation) -%}
  {%- set statements = [] -%}
  {%- if relation -%}
    {%- set table = reconcile.qualified(relation) -%}
    {%- set existing = adapter.get_column_schema_from_query('select * from ' ~ table) | map(attribute='name') | list -%}
    {%- if '_change_transaction' not in existing -%}
      {%- do statements.append('alter table ' ~ table ~ ' add columns (_change_transaction string)') -%}
    {%- endif -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}
