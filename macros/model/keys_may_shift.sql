{#- Whether the model follows keys that one transaction passes from row to row, as `update t set id = id + 1` does. The
    addresses of the rows show which row a delete is of: see docs/decisions/0028-keys-that-shift.md. `keyless`: see
    `keyless_deletes_of`. -#}
{%- macro keys_may_shift(keyless) -%}
  {{ return(keyless.kind == 'row_deletes') }}
{%- endmacro %}

{#- What a base table keeps of the transaction that a row is of, where keys may shift: {column: type}. See
    `newest_by_address`. -#}
{%- macro columns_of_transaction() -%}
  {{ return({
      '_change_transaction': 'string', '_change_is_insert': 'boolean',
      '_change_contenders': 'array<struct<address:string,sequence:string,time:timestamp,batch:bigint>>'}) }}
{%- endmacro %}
