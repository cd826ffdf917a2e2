{#- A query for the lowest low watermark of all partitions of a Bigtable change stream after a batch; NULL if the
    staging table has no low watermark. Each task of the job stages a row of its own for the batch's cut. The watermark
    is Bigtable's estimate, and not a cut: changes that were committed before it may still arrive. The watermark is
    truncated to microseconds. `or_before`: see `batch_of_cut`. -#}
{%- macro watermark(staging, batch, or_before=false) -%}
select min({{ reconcile.typed_value("get_json_object(record, '$.low_watermark')", {'name': 'timestamp'}, round=true) }}) as watermark
from {{ reconcile.qualified(staging) }}
where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch = {{ reconcile.batch_of_cut(staging, batch, or_before) }}
{%- endmacro %}
