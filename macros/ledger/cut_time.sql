{#- The time up to which a batch holds all that was committed, as a query: NULL where the staging table says no such thing. Cut to microseconds. -#}
{%- macro cut_time(staging, batch) -%}
select max({{ reconcile.typed_value("get_json_object(record, '$.cut_time')", {'name': 'timestamp'}, round=true) }}) as cut_time
from {{ reconcile.qualified(staging) }}
where object = {{ reconcile.literal(reconcile.cut_object()) }} and batch = {{ batch }}
{%- endmacro %}

{#- The object under which a job stages the cut of a batch; no table of a source has such a name. -#}
{%- macro cut_object() -%}
{{ return('#cut') }}
{%- endmacro %}
