{#- A delete that names no key, only the address of its row: LogMiner writes it for an insert that was rolled back to a savepoint. -#}
{%- macro is_row_delete(keys) -%}
(_change_type <=> 'delete' and _row_id is not null{% for key in keys %} and {{ reconcile.identifier(key) }} is null{% endfor %})
{%- endmacro %}

{#- The same among checked records: a record without a key that was not refused. -#}
{%- macro is_row_delete_record(keys) -%}
(_change_error is null and {{ reconcile.identifier(keys[0]) }} is null)
{%- endmacro %}
