{#- Source columns: columns of a model whose values come from the metadata of a record, and not from its payload. They
    say of which source a row is, where a model reads several: {column: field of the metadata}. Its source macro notes
    them with the objects, see `model_inputs`. They are part of the key, so that each key has records of one source
    only. See docs/decisions/0060-several-sources.md. -#}
{%- macro source_columns_of(objects) -%}
  {{ return((objects.values() | map(attribute='source_columns') | select('defined') | first) or {}) }}
{%- endmacro %}

{#- The columns of a key that the records have in their payload. `source_columns`: their names. -#}
{%- macro keys_of_payload(keys, source_columns) -%}
  {{ return(keys | reject('in', source_columns) | list) }}
{%- endmacro %}
