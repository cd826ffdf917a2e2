{#- Whether a JSON text has half of a surrogate pair, as \ud800 without \udc00 to \udfff after it. SQL Server and
    JavaScript can hold half a pair; UTF-8 cannot. Backslashes count: \\ud800 is a backslash and letters. Nearly no
    record has an escape at all, and `contains` sees that quickly; `instr` looks at each character by itself. -#}
{%- macro has_lone_surrogate(json) -%}
{%- set high, low = '\\\\u[dD][89abAB][0-9a-fA-F]{2}', '\\\\u[dD][c-fC-F][0-9a-fA-F]{2}' -%}
contains({{ json }}, {{ reconcile.literal('\\u') }}) and {{ json }} rlike {{ reconcile.literal('(?<!\\\\)(?:\\\\\\\\)*(?:' ~ high ~ '(?!' ~ low ~ ')|(?<!' ~ high ~ ')' ~ low ~ ')') }}
{%- endmacro %}
