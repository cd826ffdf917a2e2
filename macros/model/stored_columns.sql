{#- The columns of a model's base table, as SQL. -#}
{%- macro base_columns(form) -%}
  {{ return(
      reconcile.history_columns(form) if form.materialized == 'history'
      else reconcile.current_state_columns(form)) }}
{%- endmacro %}

{#- The same columns by the names under which the table holds them. -#}
{%- macro stored_columns(form) -%}
  {%- set stored = [] -%}
  {%- for column in reconcile.base_columns(form) -%}
    {%- do stored.append(reconcile.column_of_table(column, form)) -%}
  {%- endfor -%}
  {{ return(stored) }}
{%- endmacro %}

{#- One of them. A column that was renamed at its source keeps its former name in the table. -#}
{%- macro column_of_table(column, form) -%}
  {{ return(reconcile.stored_column((form.stored or {}).get(column, column), form.file_format)) }}
{%- endmacro %}

{#- The columns of the table that the model no longer declares, by the names under which the table holds them. -#}
{%- macro columns_left(form) -%}
  {%- set left = [] -%}
  {%- for column in form.left or [] -%}
    {%- do left.append(reconcile.stored_column(column, form.file_format)) -%}
  {%- endfor -%}
  {{ return(left) }}
{%- endmacro %}

{#- A SELECT of the columns of a base table by the names under which the table holds them: the query from which the
    table is made. -#}
{%- macro rows_to_store(rows, form) -%}
{%- set columns = reconcile.base_columns(form) -%}
{%- set stored = reconcile.stored_columns(form) -%}
{%- if stored == columns -%}
{{ rows }}
{%- else -%}
select
    {%- for column, name in zip(columns, stored) %}
    {{ column ~ (' as ' ~ name if name != column) }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ rows | indent(4) }}
)
{%- endif -%}
{%- endmacro %}

{#- A base table, or a copy of one, as SQL to select from: its columns have their own names and declared types again.
    `version`: a version of the table, none for the present one. -#}
{%- macro stored_rows(relation, form, version=none) -%}
  {%- set narrow = {} -%}
  {%- for column in form.columns
        if reconcile.stored_type(column.type.ddl, form.file_format) != column.type.ddl -%}
    {%- do narrow.update({reconcile.identifier(column.name): column.type.ddl}) -%}
  {%- endfor -%}
  {{ return(reconcile._restored(relation, reconcile.base_columns(form), narrow, form.file_format, version, form.stored or {})) }}
{%- endmacro %}

{#- The same for the table of keyless deletes. -#}
{%- macro stored_keyless_deletes(relations, keyless, file_format) -%}
  {%- set columns = [keyless.place] + reconcile.columns_of_keyless_deletes(keyless) -%}
  {{ return(reconcile._restored(relations[keyless.kind], columns, {}, file_format)) }}
{%- endmacro %}

{%- macro _restored(relation, columns, narrow, file_format, version=none, stored_names={}) -%}
  {%- set table = reconcile.at_version(relation, version) -%}
  {%- set selected, differ = [], [] -%}
  {%- for column in columns -%}
    {%- set stored = reconcile.stored_column(stored_names.get(column, column), file_format) -%}
    {%- set value = 'cast(' ~ stored ~ ' as ' ~ narrow[column] ~ ')' if column in narrow else stored -%}
    {%- do selected.append(value ~ (' as ' ~ column if value != column else '')) -%}
    {%- do differ.append(column) if value != column -%}
  {%- endfor -%}
  {{ return('(select ' ~ selected | join(', ') ~ ' from ' ~ table ~ ')' if differ else table) }}
{%- endmacro %}
