{#- Few records come to the rows of the base table, not these to them. Spark, left alone, takes a cached or materialized source for huge,
    and broadcasts or shuffles the base table. How many are few: the variable `reconcile_broadcast_records`; all must fit in memory. -#}
{%- macro broadcast_hint(name, records) -%}
{{ '/*+ broadcast(' ~ name ~ ') */ ' if records <= var('reconcile_broadcast_records', 100000) }}
{%- endmacro %}
