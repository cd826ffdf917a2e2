{#- Why values of one type are not the values that another type reads from the same texts, the end of a sentence; '' if
    they are, so that a column may get the other type without reading its records again. `round`: whether the column is
    rounded. Types as `column_type` has them. -#}
{%- macro obstacle_to_widening(former, type, round=false) -%}
{%- set integers = ['tinyint', 'smallint', 'int', 'bigint'] -%}
{%- if former.name in integers and type.name in integers -%}
{{ 'which holds less' if integers.index(type.name) < integers.index(former.name) }}
{%- elif former.name == 'decimal' and type.name == 'decimal' -%}
{%- if type.scale < former.scale or type.precision - type.scale < former.precision - former.scale -%}
which holds fewer digits on one side of the point
{%- elif round and type.scale != former.scale -%}
whose values were rounded to fewer digits
{%- endif -%}
{%- elif former.name == 'string' and type.name == 'string' -%}
{{ 'which is shorter' if type.length is defined and (former.length is not defined or type.length < former.length) }}
{%- elif former.name == 'float' and type.name == 'double' -%}
and the double that is nearest to a number is not the float that is: 0.1 would be 0.10000000149011612
{%- else -%}
which is not the same type with more room
{%- endif -%}
{%- endmacro %}
