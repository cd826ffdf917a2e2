{#- A value in a form that `=` and `<=>` take: maps are compared as their sorted entries, variants as text. -#}
{%- macro comparable(value, type) -%}
{{ 'array_sort(map_entries(' ~ value ~ '))' if type.startswith('map') else 'to_json(' ~ value ~ ')' if type == 'variant' else value }}
{%- endmacro %}
