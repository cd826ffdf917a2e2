{#- A query for the time up to which a batch holds everything that was committed; NULL if the staging table has no such
    time. The time is truncated to microseconds. `or_before`: see `batch_of_cut`. -#}
{%- macro cut_time(staging, batch, or_before=false) -%}
select max({{ reconcile.typed_value("get_json_object(record, '$.cut_time')", {'name': 'timestamp'}, round=true) }}) as cut_time
from {{ reconcile.qualified(staging) }}
where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch = {{ reconcile.batch_of_cut(staging, batch, or_before) }}
{%- endmacro %}

{#- The batch of which the cut counts, as SQL. `or_before`: whether the batch may be that of a snapshot beside the log, which
    has none: then the newest one up to it counts. -#}
{%- macro batch_of_cut(staging, batch, or_before) -%}
{{ batch if not or_before else '(select max(batch) from ' ~ reconcile.qualified(staging) ~ ' where object = ' ~ reconcile.literal(reconcile.cut_object()) ~ ' and batch <= ' ~ batch ~ ')' }}
{%- endmacro %}

{#- The object under which a job stages the cut of a batch; no table of a source has such a name. -#}
{%- macro cut_object() -%}
{{ return('#cut') }}
{%- endmacro %}
