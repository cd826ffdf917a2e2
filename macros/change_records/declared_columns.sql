{#- The columns that a model declares: [{name, type, round}], type as `column_type` reads it.
    `columns` stands in for the YAML in dbt's unit tests, which do not see it. -#}
{%- macro declared_columns(columns=none) -%}
  {%- if columns is none -%}
    {%- set columns = model.columns.values() | list -%}
  {%- endif -%}
  {%- set complaints = [] -%}
  {%- set declared = [] -%}
  {%- set names = [] -%}
  {%- for column in columns -%}
    {%- set type = reconcile.column_type(column.data_type) if column.data_type else none -%}
    {%- set meta = (column.get('config') or {}).get('meta') or column.get('meta') or {} -%}
    {%- if column.name | lower == '_deleted' or (column.name | lower).startswith('_change_') -%}
      {%- do complaints.append("column " ~ column.name ~ ": names that begin with _change_, and _deleted, are the package's own; rename it") -%}
    {%- elif column.name | lower in names -%}
      {%- do complaints.append("column " ~ column.name ~ ": declared twice (Spark ignores case); remove one") -%}
    {%- elif not column.data_type -%}
      {%- do complaints.append("column " ~ column.name ~ ": no data_type; declare one, as `data_type: bigint`") -%}
    {%- elif not type -%}
      {%- do complaints.append("column " ~ column.name ~ ": data_type '" ~ column.data_type ~ "' is not supported; "
            ~ "use a scalar type of Spark but interval or time, or an array or a map of them") -%}
    {%- endif -%}
    {%- do names.append(column.name | lower) -%}
    {%- do declared.append({'name': column.name, 'type': type, 'round': meta.get('round', false)}) -%}
  {%- endfor -%}
  {%- if not columns -%}
    {%- do complaints.append("no columns are declared; add `columns: [{name: id, data_type: bigint}, ...]` to the model's YAML") -%}
  {%- endif -%}
  {%- do reconcile.raise_complaints(complaints) -%}
  {{ return(declared) }}
{%- endmacro %}
