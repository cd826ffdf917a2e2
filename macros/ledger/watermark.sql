{#- The lowest low watermark of all partitions of a Bigtable change stream after a batch, of whose cut each task has a row, as a query: NULL where the
    staging table says no such thing. It is Bigtable's estimate, and no cut: what was committed before it may yet come. Cut to microseconds. -#}
{%- macro watermark(staging, batch) -%}
select min({{ reconcile.typed_value("get_json_object(record, '$.low_watermark')", {'name': 'timestamp'}, round=true) }}) as watermark
from {{ reconcile.qualified(staging) }}
where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch = {{ batch }}
{%- endmacro %}
