{#- Whether the model follows keys that one transaction passes from row to row, as `update t set id = id + 1` does. The
    addresses of the rows show which row a delete is of: see docs/decisions/0028-keys-that-shift.md. `keyless`: see
    `keyless_deletes_of`. -#}
{%- macro keys_may_shift(keyless) -%}
  {{ return(keyless.kind == 'row_deletes') }}
{%- endmacro %}

{#- What a base table keeps of the transaction that a row is of, where keys may shift: {column: type}. See
    `newest_by_address`. -#}
{%- macro columns_of_transaction(form) -%}
  {%- set row = ',row:' ~ reconcile.type_of_displaced_row(form) if reconcile.displaced_values(form) else '' -%}
  {{ return({
      '_change_transaction': 'string', '_change_is_insert': 'boolean',
      '_change_contenders': 'array<struct<address:string,sequence:string,time:timestamp,batch:bigint>>',
      '_change_displaced': 'array<struct<type:string,sequence:string,time:timestamp,batch:bigint,address:string,transaction:string' ~ row ~ '>>'}) }}
{%- endmacro %}

{#- The columns beside the key as fields of a displaced row, a list of SQL: the values of `record`, as the table format
    stores them. By their names, since the columns of a model may be declared in another order later. `file_format`:
    given if `record` is a base table itself, and not what `stored_rows` makes of it. -#}
{%- macro displaced_values(form, record=none, file_format=none) -%}
  {%- set values = [] -%}
  {%- for column in form.columns | sort(attribute='name', case_sensitive=true) if column.name not in form.unique_key -%}
    {%- set name = reconcile.identifier(column.name) -%}
    {%- set stored = reconcile.stored_type(column.type.ddl, form.file_format) -%}
    {%- set value = record ~ '.' ~ (reconcile.stored_column(name, file_format) if file_format else name) -%}
    {%- set value = 'cast(' ~ value ~ ' as ' ~ stored ~ ')' if stored != column.type.ddl and not file_format else value -%}
    {%- do values.append(value ~ ' as ' ~ name) -%}
  {%- endfor -%}
  {{ return(values) }}
{%- endmacro %}

{#- The type of the fields that `displaced_values` gives. -#}
{%- macro type_of_displaced_row(form) -%}
  {%- set fields = [] -%}
  {%- for column in form.columns | sort(attribute='name', case_sensitive=true) if column.name not in form.unique_key -%}
    {%- do fields.append(reconcile.identifier(column.name) ~ ':' ~ reconcile.stored_type(column.type.ddl, form.file_format)) -%}
  {%- endfor -%}
  {{ return('struct<' ~ fields | join(',') ~ '>') }}
{%- endmacro %}
