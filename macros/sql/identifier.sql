{%- macro identifier(name) -%}
{%- if '${' in name or '\n' in name -%}
  {{ exceptions.raise_compiler_error(
      "The name '" ~ name ~ "' contains " ~ ("a line break" if '\n' in name else "'${', which Spark replaces by a variable before it reads the SQL") ~ "; rename it.") }}
{%- endif -%}
`{{ name | replace('`', '``') }}`
{%- endmacro %}
