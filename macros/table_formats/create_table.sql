{#- Runs a statement that creates a table, if the table is missing. -#}
{%- macro create_if_missing(relation, statement) -%}
  {%- do run_query(statement) if reconcile.is_missing(relation) -%}
{%- endmacro %}

{#- Whether Spark lists no such table at this moment. What dbt knows is as old as the run: since then another run may have
    created the table, and filled it. Temporary views of the session are listed too, without a schema. -#}
{%- macro is_missing(relation) -%}
  {%- for row in run_query(reconcile.tables_of_name(relation)) if row[0] and row[1] | lower == relation.identifier | lower -%}{{ return(false) }}{%- endfor -%}
  {{ return(true) }}
{%- endmacro %}

{%- macro tables_of_name(relation) -%}
show tables in {{ reconcile.qualified_schema(relation) }} like {{ reconcile.literal(relation.identifier) }}
{%- endmacro %}

{#- The beginning of a statement that creates a table that is missing, without rows. On Delta, a run that is killed while
    it creates a table leaves a log in the directory of the table, and no table in the metastore. From then on, Delta
    refuses CREATE TABLE there, and accepts only CREATE OR REPLACE TABLE ... AS. -#}
{%- macro create_table_clause(relation, file_format) -%}
create {{ 'or replace table' if file_format == 'delta' else 'table if not exists' }} {{ reconcile.qualified(relation) }}
{%- endmacro %}

{#- `columns`: name, type and comment of each column, a line each, as SQL. On Delta, a SELECT has to bring columns and
    comments: see `create_table_clause`. -#}
{%- macro create_table_statement(relation, columns, file_format, partitions=[]) -%}
{%- set lines = columns.strip().splitlines() -%}
{{ reconcile.create_table_clause(relation, file_format) }}
{%- if file_format != 'delta' %} (
    {%- for line in lines %}
    {{ line }}
    {%- endfor %}
)
{%- endif %} using {{ file_format }}
{%- if partitions %}
partitioned by ({{ partitions | join(', ') }})
{%- endif %}{{ reconcile.format_properties_clause(file_format) }}
{%- if file_format == 'delta' %}
as
select columns.*
from (
    select from_json(
        cast(null as string),
        {%- for line in lines %}
        {{ reconcile.literal(line ~ ('' if loop.last else ' ')) }}
        {%- endfor %}
    ) as columns
)
where false
{%- endif %}
{%- endmacro %}
