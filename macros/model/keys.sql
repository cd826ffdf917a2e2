{%- macro key_columns(keys) -%}
{%- for key in keys -%}{{ reconcile.identifier(key) }}{{ ', ' if not loop.last }}{%- endfor -%}
{%- endmacro %}

{#- `file_format`: given if `right` is a base table itself, and not what `stored_rows` makes of it. -#}
{%- macro keys_match(keys, left, right, file_format=none) -%}
{%- for key in keys -%}
{{ left }}.{{ reconcile.identifier(key) }} = {{ right }}.{{ reconcile.stored_column(reconcile.identifier(key), file_format) }}{{ ' and ' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- The unique_key of a node, as a list; empty if it has none. -#}
{%- macro keys_of(node) -%}
  {%- set keys = node.config.unique_key or [] -%}
  {{ return([keys] if keys is string else keys) }}
{%- endmacro %}
