{#- Whether keyless deletes of before the range are known, which a rebuild does not ask unless it begins with a base snapshot. -#}
{%- macro knows_keyless_deletes(settings, range) -%}
  {{ return(settings.built[settings.keyless.kind] and (range.kind != 'rebuild' or range.snapshot)) }}
{%- endmacro %}
