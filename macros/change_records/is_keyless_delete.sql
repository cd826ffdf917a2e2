{#- A delete that names no key, only the `place` of what it deletes (see `keyless_deletes_of`). -#}
{%- macro is_keyless_delete(keys, place) -%}
(_change_type <=> 'delete' and {{ place }} is not null{% for key in keys %} and {{ reconcile.identifier(key) }} is null{% endfor %})
{%- endmacro %}

{#- The same condition for checked records: a record without a key that was not refused. -#}
{%- macro is_keyless_delete_record(keys) -%}
(_change_error is null and {{ reconcile.identifier(keys[0]) }} is null)
{%- endmacro %}
