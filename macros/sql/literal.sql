{#- `$` is escaped too: Spark replaces ${...} in the text of a statement, in literals as well. -#}
{%- macro literal(text) -%}
'{{ text | string | replace('\\', '\\\\') | replace("'", "\\'") | replace('${', '\\u0024{') | replace('\n', '\\n') }}'
{%- endmacro %}
