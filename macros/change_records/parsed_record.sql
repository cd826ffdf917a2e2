{#- The fields of a staged record as a struct, by a schema without a literal in it. The JSON reader's own limits are texts of 20 million characters and numbers of 1,000 digits, beyond which a
    record has no fields at all; a database has longer ones, as PostgreSQL numbers of 147,455 digits. Nesting stays at 1,000 levels: the reader follows them on the JVM's stack. -#}
{%- macro parsed_record(schema) -%}
from_json(record, '{{ schema }}', map('maxStringLen', '2147483647', 'maxNumLen', '150000'))
{%- endmacro %}
