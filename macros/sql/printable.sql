{#- A text in which what a terminal would obey, or turn around, is `�`. Values, keys and names come from outside. -#}
{%- macro printable(text) -%}
  {{ return(modules.re.sub('[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]', '�', text | string)) }}
{%- endmacro %}
