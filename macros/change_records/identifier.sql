{%- macro identifier(name) -%}
{%- if '${' in name -%}
  {{ exceptions.raise_compiler_error(
      "The name '" ~ name ~ "' contains '${', which Spark replaces by a variable before it reads the SQL; rename it.") }}
{%- endif -%}
`{{ name | replace('`', '``') }}`
{%- endmacro %}
