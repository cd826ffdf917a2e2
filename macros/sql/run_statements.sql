{#- The only macro that executes the statements that other macros have built. -#}
{%- macro run_statements(statements) -%}
  {%- for sql in statements -%}
    {%- do run_query(sql) -%}
  {%- endfor -%}
{%- endmacro %}

{#- The one row of a query, as {column: value}. -#}
{%- macro one_row(sql) -%}
  {%- set rows = run_query(sql) -%}
  {{ return(dict(zip(rows.column_names | map('lower'), rows[0].values()))) }}
{%- endmacro %}
