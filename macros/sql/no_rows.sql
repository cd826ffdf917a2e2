{#- A SELECT of no rows, with these columns: {name: type}. For a view of which nothing is there to read yet. -#}
{%- macro no_rows(columns) -%}
select
    {%- for name, type in columns.items() %}
    cast(null as {{ type }}) as {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
where false
{%- endmacro %}
