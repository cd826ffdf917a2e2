{#- Whether row deletes of before the range are known, which a rebuild does not ask unless it begins with a base snapshot. -#}
{%- macro knows_row_deletes(settings, range) -%}
  {{ return(settings.built.row_deletes and (range.kind != 'rebuild' or range.snapshot)) }}
{%- endmacro %}
