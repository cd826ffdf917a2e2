{#- SQL: whether a mod of Spanner is the mark of one whose key was erased. `mod`: SQL for a map; NULL: it is no object. -#}
{%- macro is_erased_mod(mod) -%}
coalesce(map_contains_key({{ mod }}, 'erased'), false)
{%- endmacro %}
