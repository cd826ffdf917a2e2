{#- The quoted name of a relation, since dbt-spark renders relations unquoted. Under --empty, a source is a relation
    with a limit, of which nothing is read. -#}
{%- macro qualified(relation) -%}
{%- set name = reconcile.identifier(relation.schema) ~ '.' ~ reconcile.identifier(relation.identifier) -%}
{%- if relation.limit is defined and relation.limit is not none -%}
(select * from {{ name }} limit {{ relation.limit }})
{%- else -%}
{{ name }}
{%- endif -%}
{%- endmacro %}
