{#- The staged records that no model takes: `object` cannot be read, or is no model's. Of every staging table that a model reads.
    The cut of a batch is no record. -#}
{%- macro unrouted_records() -%}
{%- for name, entry in reconcile.staging_read().items() %}
select
    {{ reconcile.literal(name) }} as staging,
    object,
    if(object is null, 'the record names no object', 'no model reads this object') as reason,
    record,
    origin,
    batch,
    appended_at
from {{ reconcile.qualified(entry.relation) }}
where object is null or object not in ({% for object in (entry.objects + [reconcile.cut_object()]) | unique %}{{ reconcile.literal(object) }}{{ ', ' if not loop.last }}{% endfor %})
{{ 'union all' if not loop.last }}
{%- else -%}
select
    cast(null as string) as staging,
    cast(null as string) as object,
    cast(null as string) as reason,
    cast(null as string) as record,
    cast(null as string) as origin,
    cast(null as bigint) as batch,
    cast(null as timestamp) as appended_at
where false
{%- endfor -%}
{%- endmacro %}
