{#- A SELECT of no rows, with these columns: {name: type}. It is for a view that has nothing to read yet. -#}
{%- macro no_rows(columns) -%}
select
    {%- for name, type in columns.items() %}
    cast(null as {{ type }}) as {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
where false
{%- endmacro %}
