{#- `$` is escaped too: Spark replaces ${...} in the text of a statement, in literals as well. -#}
{%- macro literal(text) -%}
'{{ text | string | replace('\\', '\\\\') | replace("'", "\\'") | replace('${', '\\u0024{') | replace('\n', '\\n') }}'
{%- endmacro %}

{%- macro literals(texts) -%}
{%- for text in texts -%}{{ reconcile.literal(text) }}{{ ', ' if not loop.last }}{%- endfor -%}
{%- endmacro %}
