{#- A value in a form that `=` and `<=>` take: maps are compared as their sorted entries, variants as text. -#}
{%- macro comparable(value, type) -%}
{{ 'array_sort(map_entries(' ~ value ~ '))' if type.startswith('map') else 'to_json(' ~ value ~ ')' if type == 'variant' else value }}
{%- endmacro %}

{#- Whether two rows have the same values: floating point as text, since 0.0 and -0.0 are two values. `columns`: those
    to compare. -#}
{%- macro has_same_values(columns, left, right) -%}
{%- set same = [] -%}
{%- for column in columns -%}
  {%- set pair = [] -%}
  {%- for side in [left, right] -%}
    {%- set value = side ~ '.' ~ reconcile.identifier(column.name) -%}
    {%- do pair.append('cast(' ~ value ~ ' as string)' if column.type.name in ['float', 'double'] else reconcile.comparable(value, column.type.ddl)) -%}
  {%- endfor -%}
  {%- do same.append(pair | join(' <=> ')) -%}
{%- endfor -%}
{{ same | join(' and ') or 'true' }}
{%- endmacro %}
