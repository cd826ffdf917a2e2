{#- The properties of a table or view, {name: value}. -#}
{%- macro table_properties(relation) -%}
  {%- set properties = {} -%}
  {%- for row in run_query('show tblproperties ' ~ reconcile.qualified(relation)) -%}
    {%- do properties.update({row[0]: row[1]}) -%}
  {%- endfor -%}
  {{ return(properties) }}
{%- endmacro %}
