{#- Whether row deletes of before the range are known, which a rebuild does not ask. -#}
{%- macro knows_row_deletes(settings, range) -%}
  {{ return(range.kind != 'rebuild' and settings.built.row_deletes) }}
{%- endmacro %}
