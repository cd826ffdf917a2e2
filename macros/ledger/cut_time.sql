{#- A query for the time up to which a batch holds everything that was committed; NULL if the staging table has no such
    time. The time is truncated to microseconds. -#}
{%- macro cut_time(staging, batch) -%}
select max({{ reconcile.typed_value("get_json_object(record, '$.cut_time')", {'name': 'timestamp'}, round=true) }}) as cut_time
from {{ reconcile.qualified(staging) }}
where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch = {{ batch }}
{%- endmacro %}

{#- The object under which a job stages the cut of a batch; no table of a source has such a name. -#}
{%- macro cut_object() -%}
{{ return('#cut') }}
{%- endmacro %}
