{#- Whether a text is JSON that has a name twice in one object, as PostgreSQL's json keeps it: a JSON reader takes it, and a
    variant does not. Names with backslashes are not compared: within groups, Java's regular expressions follow a long
    text on the stack. -#}
{%- macro has_a_name_twice(json) -%}
{%- set names = 'regexp_extract_all(' ~ json ~ ', ' ~ reconcile.literal('"([^"\\\\]*+)"\\s*:') ~ ')' -%}
try_parse_json({{ json }}) is null and get_json_object({{ json }}, '$') is not null and cardinality({{ names }}) > cardinality(array_distinct({{ names }}))
{%- endmacro %}

{#- What helps then, as text. -#}
{%- macro fix_for_a_name_twice() -%}
an object in its JSON has a name twice: correct it at the source, as jsonb does, or set spark.sql.variant.allowDuplicateKeys to true, which takes the last one
{%- endmacro %}
