{#- Whether keyless deletes from before the range are known. A rebuild ignores them, unless it begins with a base
    snapshot. `keyless`: {kind, place}; `built`: what exists of the model, by the names of its relations. -#}
{%- macro knows_keyless_deletes(keyless, built, range) -%}
  {{ return(built[keyless.kind] and (range.kind != 'rebuild' or range.snapshot)) }}
{%- endmacro %}
