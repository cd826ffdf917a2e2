{#- A value in a form that `=` and `<=>` take: maps are compared as their sorted entries. -#}
{%- macro comparable(value, type) -%}
{{ 'array_sort(map_entries(' ~ value ~ '))' if type.startswith('map') else value }}
{%- endmacro %}
