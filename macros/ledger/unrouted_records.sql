{#- The staged records that no model takes: `object` cannot be read, or is no model's, or no model takes the table that the record names. Of every staging table that a model reads.
    The cut of a batch is no record. -#}
{%- macro unrouted_records() -%}
{%- for name, entry in reconcile.staging_read().items() %}
select
    {{ reconcile.literal(name) }} as staging,
    object,
    case when object is null then 'the record names no object' when {{ reconcile._is_read(entry.objects) }} then 'no model reads this table of the object' else 'no model reads this object' end as reason,
    record,
    origin,
    batch,
    appended_at
from {{ reconcile.qualified(entry.relation) }}
where object is null or object <> {{ reconcile.literal(reconcile.cut_object()) }} and not ({{ reconcile.is_of_objects(entry.objects) }})
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

{%- macro _is_read(objects) -%}
object in ({% for object in objects %}{{ reconcile.literal(object) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}
