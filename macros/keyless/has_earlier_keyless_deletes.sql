{#- Whether a range takes the keyless deletes of earlier ranges from their table. A rebuild does not: it reads all
    records, those deletes among them, and makes the table anew. But a rebuild from a base snapshot needs the table:
    staging was purged, and only the table still has the deletes of the purged batches. `keyless`: {kind, place};
    `built`: what exists of the model, by the names of its relations. -#}
{%- macro has_earlier_keyless_deletes(keyless, built, range) -%}
  {{ return(built[keyless.kind] and (range.kind != 'rebuild' or range.snapshot)) }}
{%- endmacro %}
