{#- How a Datastream event describes itself, in every spelling that was seen; each macro gives SQL over the fields of an
    event. An old stream and a new one may write into one table, so the spellings mix. -#}

{#- Whether the event is a row of a backfill (true), a change (false), or unknown (NULL). Backfills: `backfill`,
    `mysql-backfill-fulldump`, `oracle_dump`. Changes: `cdc`, `mysql-cdc-binlog`, `oracle-supplementation`. The words do
    not show the source. -#}
{%- macro is_backfill() -%}
case when read_method rlike '(?i)backfill|_dump$' then true when read_method rlike '(?i)(^|[-_])cdc([-_]|$)|supplementation' then false end
{%- endmacro %}

{#- The Datastream source of an event, as SQL; NULL if nothing shows it. The fields of the metadata show the source, and
    `read_method` does if it names one: `cdc` and `backfill` do not. `first` is checked first: an event that looks like
    an event of `first` is one, whatever else the event says. -#}
{%- macro source_of_event(read_method, metadata, first='oracle') -%}
{%- set conditions = {
      'oracle': metadata ~ '.scn is not null or ' ~ metadata ~ ".row_id is not null or " ~ read_method ~ " like 'oracle%'",
      'postgresql': metadata ~ ".lsn like '%/%' or " ~ read_method ~ " like 'postgres%'",
      'sqlserver': metadata ~ ".lsn like '%:%' or " ~ read_method ~ " like 'sqlserver%'",
      'mysql': metadata ~ '.log_position is not null or ' ~ metadata ~ ".binlog_position is not null or " ~ read_method ~ " like 'mysql%'",
} -%}
case
            {%- for source in [first] + (conditions | reject('equalto', first) | list) %}
            when {{ conditions[source] }} then '{{ source }}'
            {%- endfor %}
        end
{%- endmacro %}

{#- The fields of the metadata that `source_of_event` reads. -#}
{%- macro identifying_fields() -%}
  {{ return(['scn', 'row_id', 'log_position', 'binlog_position', 'lsn']) }}
{%- endmacro %}

{#- A row of a backfill is an insert even if it has no change type. -#}
{%- macro datastream_change_type() -%}
case
            when upper(source_metadata.change_type) = 'INSERT' or is_backfill and nullif(source_metadata.change_type, '') is null then 'insert'
            when upper(source_metadata.change_type) in ('UPDATE', 'UPDATE-INSERT') then 'update'
            when upper(source_metadata.change_type) in ('DELETE', 'UPDATE-DELETE') then 'delete'
        end
{%- endmacro %}

{#- A timestamp of the envelope: ISO 8601 with T or a blank, UTC unless it has a zone, or a number of milliseconds. -#}
{%- macro envelope_time(field) -%}
if({{ field }} rlike {{ reconcile.literal('^\\d{10,15}$') }}, timestamp_millis(try_cast({{ field }} as bigint)), {{ reconcile.typed_value(field, {'name': 'timestamp'}, round=true) }})
{%- endmacro %}

{#- A complaint if `is_deleted` contradicts the type of change; NULL if they agree or `is_deleted` is missing. Oracle's
    UPDATE-DELETE was seen with `is_deleted` false. -#}
{%- macro is_deleted_complaint() -%}
if(
                lower(metadata.is_deleted) = 'true' and change_type <> 'delete' or lower(metadata.is_deleted) = 'false' and upper(metadata.change_type) = 'DELETE',
                concat('is_deleted is ', lower(metadata.is_deleted), ', and the change type is \'', metadata.change_type, '\''), null
            )
{%- endmacro %}

{#- The key columns that a record names, as a list in JSON. SQL Server has them as `replication_index`; `[]` means a
    table without a key. -#}
{%- macro key_of_record() -%}
to_json(coalesce(if(cardinality(try_cast(metadata.primary_keys as array<string>)) > 0, try_cast(metadata.primary_keys as array<string>), null), try_cast(metadata.replication_index as array<string>), try_cast(metadata.primary_keys as array<string>)))
{%- endmacro %}
