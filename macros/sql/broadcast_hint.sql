{#- A hint that brings a few records to the rows of the base table. Without the hint, Spark takes a cached or
    materialized source for huge, and broadcasts or shuffles the base table. The variable `reconcile_broadcast_records`
    says how many records are few; all of them must fit in memory. -#}
{%- macro broadcast_hint(name, records) -%}
{{ '/*+ broadcast(' ~ name ~ ') */ ' if records <= var('reconcile_broadcast_records', 100000) }}
{%- endmacro %}
