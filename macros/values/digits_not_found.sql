{#- A mark, as SQL, for the digits of a Datastream number that a variant has lost and that the record does not show (see
    `datastream_change_records`). -#}
{%- macro digits_not_found() -%}
'{a number whose digits cannot be found in the record}'
{%- endmacro %}
