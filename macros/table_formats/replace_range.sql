{#- One statement that replaces a range of batches in a table by a SELECT. On Iceberg, the statement drops whole files,
    so the table is partitioned by batch there. -#}
{%- macro replace_range(relation, range, rows) -%}
insert into {{ reconcile.qualified(relation) }}
replace where _change_batch between {{ range.first }} and {{ range.last }}
{{ rows }}
{%- endmacro %}

{#- What a table needs for `replace_range`, as SQL of `create table`. -#}
{%- macro replaceable_ranges(file_format) -%}
{{ '\npartitioned by (_change_batch)' if file_format == 'iceberg' }}
{%- endmacro %}
