{#- With `meta: {buckets: 16}`, the base table of an Iceberg model is partitioned by 16 buckets of its first key. A
    MERGE then brings its few rows to the buckets and does not shuffle the base table. `stored_key`: that key, as SQL,
    under the name that the table stores it as. -#}
{%- macro buckets_clause(count, stored_key) -%}
{%- if count -%}
partitioned by (bucket({{ count }}, {{ stored_key }}))
{%- endif -%}
{%- endmacro %}

{%- macro complaints_of_buckets(buckets, materialized, file_format, columns, keys) -%}
  {%- set complaints = [] -%}
  {%- if buckets is not integer or buckets is boolean or buckets < 1 -%}
    {%- do complaints.append("meta buckets: '" ~ buckets ~ "' is not a number of buckets; write it as 16") -%}
  {%- endif -%}
  {%- if file_format != 'iceberg' -%}
    {%- do complaints.append('meta buckets applies only to the file_format iceberg, and the file_format of this model is ' ~ file_format ~ '; remove it') -%}
  {%- elif materialized == 'current_view' -%}
    {%- do complaints.append('meta buckets applies only to base tables, and a current_view has no base table; remove it') -%}
  {%- elif config.get('partition_by') -%}
    {%- do complaints.append('meta buckets and partition_by cannot be combined; remove one of them') -%}
  {%- endif -%}
  {%- for column in columns
        if keys and column.name == keys[0] and column.type.name in ['boolean', 'float', 'double'] -%}
    {%- do complaints.append('meta buckets: Iceberg cannot make buckets of a ' ~ column.type.name ~ ', which is the type of the first key column, ' ~ column.name ~ '; put another key column first') -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}
