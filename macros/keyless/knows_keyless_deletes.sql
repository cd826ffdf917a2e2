{#- Whether keyless deletes from before the range are known. A rebuild ignores them, unless it begins with a base
    snapshot. -#}
{%- macro knows_keyless_deletes(settings, range) -%}
  {{ return(settings.built[settings.keyless.kind] and (range.kind != 'rebuild' or range.snapshot)) }}
{%- endmacro %}
