{#- The staged records that no model takes, of every staging table that a model reads. Their `object` cannot be read, or
    no model reads that object, or no model reads the table that the record names. What a job stages for itself is under
    an object that begins with #, as the cut of a batch; but of Datastream's files a record may name any object. -#}
{%- macro unrouted_records() -%}
{%- for name, entry in reconcile.staging_read().items() %}
{{ reconcile.unrouted_of(entry) }}
{{ 'union all' if not loop.last }}
{%- else -%}
{{ reconcile.no_rows({'staging': 'string', 'object': 'string', 'reason': 'string', 'proposal': 'string', 'record': 'string', 'origin': 'string', 'batch': 'bigint', 'appended_at': 'timestamp'}) }}
{%- endfor -%}
{%- endmacro %}

{#- The same for one staging table: {relation, objects}, as `staging_read` has it. -#}
{%- macro unrouted_of(staging) -%}
{%- set is_read = reconcile.is_of_objects(staging.objects) if staging.objects else 'false' -%}
select
    {{ reconcile.literal(reconcile.ledger_name(staging.relation)) }} as staging,
    object,
    case when object is null then 'the record names no object'{% if staging.objects.values() | selectattr('tables') | list %} when {{ reconcile.is_of_objects(reconcile.plain_objects(staging.objects)) }} then 'no model reads this table of the object'{% endif %} else 'no model reads this object' end as reason,
    {{ reconcile._proposal() }} as proposal,
    record,
    origin,
    batch,
    appended_at
from {{ reconcile.qualified(staging.relation) }}
where object is null or (object not like '#%' or source = 'datastream') and not ({{ is_read }})
{%- endmacro %}

{#- What a model would declare to take the record: `shop.orders, mysql, key id`. -#}
{%- macro _proposal() -%}
{%- set parsed = reconcile.parsed_record('read_method string, source_metadata struct<database string, schema string, table string, ' ~ reconcile.identifying_fields() | join(' string, ') ~ ' string, primary_keys array<string>, replication_index array<string>>') -%}
if(source = 'datastream', transform(array({{ parsed }}), parsed -> nullif(concat_ws(', ',
        {{ reconcile._short_table('parsed.source_metadata') }},
        {{ reconcile.source_of_event('parsed.read_method', 'parsed.source_metadata') }},
        concat('key ', nullif(array_join(coalesce(parsed.source_metadata.primary_keys, parsed.source_metadata.replication_index), ', '), ''))
    ), ''))[0], null)
{%- endmacro %}
