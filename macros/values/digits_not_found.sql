{#- What stands, as SQL, for the digits of a number of Datastream that a variant has lost and the record does not tell (see `datastream_change_records`). -#}
{%- macro digits_not_found() -%}
'{a number whose digits cannot be found in the record}'
{%- endmacro %}
