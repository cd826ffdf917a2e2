{#- How far each staging table that a model reads has come. A Bigtable change stream has one row for each partition and
    one for the whole stream. Spanner has one row for its cuts, and Datastream one row for each object.
    `unchanged_since` is found in the last thousand batches. A watermark is stalled if it has not moved for as long as
    the variable `reconcile_stalled_after` says. -#}
{%- macro source_lag() -%}
{%- set stalled_after = var('reconcile_stalled_after', '10 minutes') -%}
{%- if not modules.re.fullmatch('[0-9]{1,9} (second|minute|hour|day)s?', stalled_after | string) -%}
  {{ exceptions.raise_compiler_error("reconcile_stalled_after: '" ~ stalled_after ~ "' is not a duration; write it as '10 minutes'.") }}
{%- endif -%}
select
    staging,
    source,
    object,
    row_range,
    up_to,
    is_estimate,
    (unix_micros(current_timestamp()) - unix_micros(up_to)) / 1000000 as lag_seconds,
    unchanged_since,
    if(is_estimate, appended_at - unchanged_since >= interval '{{ stalled_after }}', null) as is_stalled,
    batch,
    appended_at
from (
{%- for name, entry in reconcile.staging_read().items() %}
    {{ reconcile._lag_of_staging(name, entry.relation) | indent(4) }}
    {{ 'union all' if not loop.last }}
{%- else %}
    {{ reconcile.no_rows({'staging': 'string', 'source': 'string', 'object': 'string', 'row_range': 'string', 'up_to': 'timestamp', 'is_estimate': 'boolean', 'unchanged_since': 'timestamp', 'batch': 'bigint', 'appended_at': 'timestamp'}) | indent(4) }}
{%- endfor %}
)
{%- endmacro %}

{#- For Datastream, `up_to` is the newest change in the last batch that has the object. For a table with few changes,
    that may be long ago. `name`: the staging table's name, as the result shows it. -#}
{%- macro _lag_of_staging(name, relation) -%}
{%- set staging, cut = reconcile.qualified(relation), reconcile.literal(reconcile.cut_object()) -%}
{%- set timestamp = {'name': 'timestamp'} -%}
select {{ reconcile.literal(name) }} as staging, source, cast(null as string) as object, row_range, up_to, source = 'bigtable' as is_estimate, unchanged_since, batch, appended_at
from (
    select
        *,
        max(batch) over (partition by source) as last_batch,
        min(appended_at) over (partition by source, row_range, up_to) as unchanged_since
    from (
        select source, mark.row_range, min({{ reconcile.typed_value('mark.up_to', timestamp, round=true) }}) as up_to, batch, min(appended_at) as appended_at
        from {{ staging }}
        lateral view explode(concat(
            array(struct(cast(null as string) as row_range, coalesce(get_json_object(record, '$.cut_time'), get_json_object(record, '$.low_watermark')) as up_to)),
            coalesce(transform(
                {{ reconcile.parsed_record('partitions array<struct<start_key: string, end_key: string, low_watermark: string>>') }}.partitions,
                place -> struct(lower(concat(hex(try_to_binary(place.start_key, 'base64')), '-', hex(try_to_binary(place.end_key, 'base64')))) as row_range, place.low_watermark as up_to)
            ), array())
        )) as mark
        where object = {{ cut }} and batch > (select max(batch) - 1000 from {{ staging }} where object = {{ cut }})
        group by source, mark.row_range, batch
    )
)
where batch = last_batch
union all
select {{ reconcile.literal(name) }}, 'datastream', object, null, max({{ reconcile.envelope_time("get_json_object(record, '$.source_timestamp')") }}), false, null, max(batch), max(appended_at)
from {{ staging }}
inner join (
    select object as object_of_last, max(batch) as last_batch
    from {{ staging }}
    where source = 'datastream'
    group by object
) as last
    on object <=> object_of_last and batch = last_batch
where source = 'datastream'
group by object
{%- endmacro %}
