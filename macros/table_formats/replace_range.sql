{#- One statement that replaces a range of batches of a table by a SELECT. Iceberg drops whole files for it, so the table is partitioned by batch there. -#}
{%- macro replace_range(relation, range, rows) -%}
insert into {{ reconcile.qualified(relation) }}
replace where _change_batch between {{ range.first }} and {{ range.last }}
{{ rows }}
{%- endmacro %}

{#- What a table needs for that, as SQL of `create table`. -#}
{%- macro replaceable_ranges(file_format) -%}
{{ '\npartitioned by (_change_batch)' if file_format == 'iceberg' }}
{%- endmacro %}
