{#- With `meta: {cluster_by: [id]}`, rows with values near each other lie in the same files of the base table, so that a
    query that names such values reads fewer of them. Delta keeps the columns in its log, and each OPTIMIZE clusters what
    is not clustered. Iceberg has no such clause, and a session needs its extension of Spark's SQL to set a sort order:
    the rows are written in order, and the columns are noted in a property, by which `maintain.py` sorts what it
    compacts. `columns`: as SQL, under the names that the table stores them as. -#}
{%- macro clustering_clause(columns, file_format) -%}
{%- if columns and file_format != 'iceberg' -%}
cluster by ({{ columns | join(', ') }})
{%- endif -%}
{%- endmacro %}

{%- macro rows_in_order(rows, columns, file_format) -%}
{%- if columns and file_format == 'iceberg' -%}
select *
from (
    {{ rows | indent(4) }}
)
order by {{ columns | join(', ') }}
{%- else -%}
{{ rows }}
{%- endif -%}
{%- endmacro %}

{#- The property, in hex since Spark shows `*****` for properties that contain words such as url or token; none where the
    table is not sorted. -#}
{%- macro clustering_property(columns, file_format) -%}
  {%- set names = [] -%}
  {%- for column in columns -%}{%- do names.append(column[1:-1] | replace('``', '`')) -%}{%- endfor -%}
  {{ return(tojson(names).encode('utf-8').hex() if names and file_format == 'iceberg' else none) }}
{%- endmacro %}

{#- The columns that a model names, as a list: one may stand alone, as a text. -#}
{%- macro columns_to_cluster(cluster_by) -%}
  {{ return([cluster_by] if cluster_by is string and cluster_by else cluster_by | list if cluster_by is sequence and cluster_by is not mapping else []) }}
{%- endmacro %}

{#- `meta`: that of the model. `form`: as returned by form_of_node. `places`: the columns of the base table, in its order,
    as SQL. By default the formats gather bounds of the first columns only: then Delta refuses the clause, and on Iceberg
    no query could skip a file. Neither gathers those of each type. -#}
{%- macro complaints_of_clustering(meta, form, places) -%}
  {%- set complaints, types, named = [], {}, [] -%}
  {%- set columns = reconcile.columns_to_cluster(meta.cluster_by) -%}
  {%- for column in form.columns -%}{%- do types.update({column.name: column.type.name}) -%}{%- endfor -%}
  {%- do types.update({'_row_id': 'string'}) if form.row_ids -%}
  {%- set with_bounds, own = (100, 'write.metadata.metrics.') if form.file_format == 'iceberg' else (32, 'delta.dataSkipping') -%}
  {%- set own_bounds = [] -%}
  {%- for name in config.get('tblproperties') or {} if name.startswith(own) -%}{%- do own_bounds.append(name) -%}{%- endfor -%}
  {%- if not columns or columns | reject('string') | list -%}
    {%- do complaints.append("meta cluster_by: '" ~ meta.cluster_by ~ "' is neither a column nor a list of columns; write it as `[id]`") -%}
  {%- elif columns | length > 4 -%}
    {%- do complaints.append('meta cluster_by: it names ' ~ columns | length ~ ' columns, and a table is clustered by four at most; name those by which queries find rows') -%}
  {%- endif -%}
  {%- for column in columns if column is string -%}
    {%- set place = (places | map('replace', '`', '') | list).index(column | replace('`', '')) if column in types else none -%}
    {%- if column in named -%}
      {%- do complaints.append('meta cluster_by: it names ' ~ column ~ ' twice; name it once') -%}
    {%- elif column not in types -%}
      {%- do complaints.append('meta cluster_by: the model declares no column ' ~ column ~ "; write the name exactly as in the model's YAML") -%}
    {%- elif types[column] in ['boolean', 'binary', 'variant', 'array', 'map'] -%}
      {%- do complaints.append('meta cluster_by: a table cannot be clustered by a column of type ' ~ types[column] ~ ', as ' ~ column ~ ' is; name another column') -%}
    {%- elif place >= with_bounds and not own_bounds -%}
      {%- do complaints.append('meta cluster_by: ' ~ form.file_format | capitalize ~ ' gathers bounds of the first ' ~ with_bounds ~ ' columns of a table, and ' ~ column ~ ' is column ' ~ (place + 1) ~ '; declare it further ahead, or name another column') -%}
    {%- endif -%}
    {%- do named.append(column) -%}
  {%- endfor -%}
  {%- if form.materialized == 'current_view' -%}
    {%- do complaints.append('meta cluster_by applies only to base tables, and a current_view has no base table; remove it') -%}
  {%- elif config.get('partition_by') -%}
    {%- do complaints.append('meta cluster_by and partition_by cannot be combined; remove one of them') -%}
  {%- elif meta.buckets -%}
    {%- do complaints.append('meta cluster_by and buckets cannot be combined; remove one of them') -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}
