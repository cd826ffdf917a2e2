{%- macro key_columns(keys) -%}
{%- for key in keys -%}{{ reconcile.identifier(key) }}{{ ', ' if not loop.last }}{%- endfor -%}
{%- endmacro %}

{%- macro keys_match(keys, left, right) -%}
{%- for key in keys -%}
{{ left }}.{{ reconcile.identifier(key) }} = {{ right }}.{{ reconcile.identifier(key) }}{{ ' and ' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- The unique_key of a node, as a list. -#}
{%- macro keys_of(node) -%}
  {%- set keys = node.config.unique_key -%}
  {{ return([keys] if keys is string else keys) }}
{%- endmacro %}
