{#- The table to which a range of batches is applied: the base table. For a rebuild: the base snapshot with which it
    begins, or none. -#}
{%- macro known_table(relations, range) -%}
  {{ return(range.snapshot if range.kind == 'rebuild' else relations.base) }}
{%- endmacro %}
