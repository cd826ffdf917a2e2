{#- The staged records that no model takes: `object` cannot be read, or is no model's, or no model takes the table that the record names. Of every staging table that a
    model reads. The cut of a batch is no record. -#}
{%- macro unrouted_records() -%}
{%- for name, entry in reconcile.staging_read().items() %}
{{ reconcile.unrouted_of(entry) }}
{{ 'union all' if not loop.last }}
{%- else -%}
{{ reconcile.no_rows({'staging': 'string', 'object': 'string', 'reason': 'string', 'proposal': 'string', 'record': 'string', 'origin': 'string', 'batch': 'bigint', 'appended_at': 'timestamp'}) }}
{%- endfor -%}
{%- endmacro %}

{#- Those of one staging table: {relation, objects}, as `staging_read` has it. -#}
{%- macro unrouted_of(staging) -%}
{%- set read = reconcile.is_of_objects(staging.objects) if staging.objects else 'false' -%}
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
where object is null or object <> {{ reconcile.literal(reconcile.cut_object()) }} and not ({{ read }})
{%- endmacro %}

{#- What a model would say to take the record: `shop.orders, mysql, key id`. The fields of the metadata tell the source, as the word for the reading may not. -#}
{%- macro _proposal() -%}
{%- set said = reconcile.parsed_record('read_method string, source_metadata struct<database string, schema string, table string, scn string, row_id string, log_file string, binlog_file string, lsn string, primary_keys array<string>, replication_index array<string>>') -%}
if(source = 'datastream', transform(array({{ said }}), said -> nullif(concat_ws(', ',
        {{ reconcile._short_table('said.source_metadata') }},
        case
            when said.source_metadata.scn is not null or said.source_metadata.row_id is not null or said.read_method like 'oracle%' then 'oracle'
            when said.source_metadata.lsn like '%/%' or said.read_method like 'postgres%' then 'postgresql'
            when said.source_metadata.lsn like '%:%' or said.read_method like 'sqlserver%' then 'sqlserver'
            when said.source_metadata.log_file is not null or said.source_metadata.binlog_file is not null or said.read_method like 'mysql%' then 'mysql'
        end,
        concat('key ', nullif(array_join(coalesce(said.source_metadata.primary_keys, said.source_metadata.replication_index), ', '), ''))
    ), ''))[0], null)
{%- endmacro %}
