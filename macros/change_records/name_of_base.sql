{#- The name that a column of the base table has beside a fold. -#}
{%- macro name_of_base(column) -%}
{{ return('_change_base' ~ column | replace('_change', '')) }}
{%- endmacro %}
