{#- The fields of a staged record as a struct. `schema` stands between single quotes, so it has no literal in it.
    `record`: SQL for the record. By its own limits, the JSON reader takes texts of up to 20 million characters and
    numbers of up to 1,000 digits; with a longer value, the record has no fields at all. Databases have longer values,
    such as PostgreSQL numbers of 147,455 digits. The limit of 1,000 levels of nesting stays, because the reader follows the levels on the JVM's stack. -#}
{%- macro parsed_record(schema, record='record') -%}
from_json({{ record }}, '{{ schema }}', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
{%- endmacro %}
