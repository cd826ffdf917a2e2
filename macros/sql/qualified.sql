{#- dbt-spark renders relations unquoted; and under --empty a source is a relation of which nothing is read. -#}
{%- macro qualified(relation) -%}
{%- set name = reconcile.identifier(relation.schema) ~ '.' ~ reconcile.identifier(relation.identifier) -%}
{%- if relation.limit is defined and relation.limit is not none -%}
(select * from {{ name }} limit {{ relation.limit }})
{%- else -%}
{{ name }}
{%- endif -%}
{%- endmacro %}
