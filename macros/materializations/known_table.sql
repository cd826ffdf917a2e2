{#- The table that a range of batches is laid upon: the base table; of a rebuild the base snapshot that it begins with, or none. -#}
{%- macro known_table(relations, range) -%}
  {{ return(range.snapshot if range.kind == 'rebuild' else relations.base) }}
{%- endmacro %}
