{#- Whether the model follows keys that one transaction passes from row to row, as `update t set id = id + 1` does. The
    addresses of the rows show which row a delete is of: see docs/decisions/0028-keys-that-shift.md. `keyless`: see
    `keyless_deletes_of`. -#}
{%- macro keys_may_shift(keyless) -%}
  {{ return(keyless.kind == 'row_deletes') }}
{%- endmacro %}
