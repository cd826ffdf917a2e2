{#- The names of columns as SQL, a list. -#}
{%- macro identifiers(columns) -%}
  {%- set names = [] -%}
  {%- for column in columns -%}{%- do names.append(reconcile.identifier(column.name)) -%}{%- endfor -%}
  {{ return(names) }}
{%- endmacro %}
