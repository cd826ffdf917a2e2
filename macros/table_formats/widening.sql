{#- Whether the format cannot give a table's columns their wider types in place. Iceberg takes a bigint for an int, and
    more digits before the point of a decimal; behind the point it has as many as it had. `wider`: a list of {column,
    former}, types as `column_type` has them. -#}
{%- macro is_rewritten(wider, file_format) -%}
  {%- for column in wider if file_format == 'iceberg' and column.former.name == 'decimal' and column.column.type.scale != column.former.scale -%}
    {{ return(true) }}
  {%- endfor -%}
  {{ return(false) }}
{%- endmacro %}

{#- Statements after which a table's columns may become wider in place. -#}
{%- macro get_widening_statements(relation, file_format) -%}
  {%- set clause = reconcile.properties_clause({'delta.enableTypeWidening': 'true'}) -%}
  {{ return(reconcile.get_uncache_dependents_statements(relation)
      + (['alter table ' ~ reconcile.qualified(relation) ~ ' set ' ~ clause] if file_format != 'iceberg' else [])) }}
{%- endmacro %}
