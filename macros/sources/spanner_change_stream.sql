{#- The change records of a Spanner table, from the data change records of a change stream.

    One record holds several mods, each of which is a change record. Order: commit_timestamp to the nanosecond,
    server_transaction_id, record_sequence, and the place of the mod in its record. The transaction's id is opaque and
    only holds the transaction's records together: two transactions of one commit_timestamp never touch the same data. A
    backfill row is the row as of its read timestamp: it comes after every change committed by then, and before all
    others.

    A mod whose key was erased is a mark, `{"erased": ...}`, and no change record: see
    docs/decisions/0070-erasure.md.

    An insert sets the whole row. An update sets the columns that it carries; if these are all that are declared, it
    sets the whole row. The SELECT has no window function, no join and no aggregate, and has generators as barriers, as
    for Datastream's events (see `datastream_change_records`). -#}
{%- macro spanner_change_stream(relation, object, columns=none) -%}
{%- set coordinates = ['commit_timestamp', 'server_transaction_id', 'record_sequence'] -%}
{#- This runs while dbt parses, so that the objects of every model are known, whichever models run (see
    `model_inputs`). -#}
{%- do reconcile.note_objects(relation, {object: {'coordinates': coordinates, 'carries': 'mods', 'partial_records': true}}) -%}
{%- if not reconcile.needs_select() -%}{{ return('select 1') }}{%- endif -%}
{%- set columns = reconcile.columns_of_source(columns) -%}
{%- do reconcile.refuse_options_of_datastream(columns, 'Spanner') -%}
{%- set staged -%}
select record, source, batch, origin, {{ reconcile.fitting_macro('spanner') }} as fitting_macro
from {{ reconcile.qualified(relation) }}
where object = {{ reconcile.literal(object) }}
{%- endset -%}
{%- set data_change_records -%}
select record, source, batch, origin, fitting_macro, data_change_record.*
from (
{{ staged }}
) as staged
lateral view explode(array(
    {{ reconcile.parsed_record('commit_timestamp string, server_transaction_id string, record_sequence string, mod_type string, value_capture_type string, backfill string, mods array<variant>, _corrupt_record string') }}
)) as data_change_record
{%- endset -%}
{%- set mods -%}
-- a record without mods, of another source, or that cannot be read, is one change record, which goes to quarantine
select *
from (
{{ data_change_records }}
) as data_change_records
lateral view posexplode(
    transform(if(source = 'spanner' and cardinality(mods) > 0, mods, array(cast(null as variant))), mod -> try_cast(mod as map<string, variant>))
) as place, mod
{%- endset -%}
{%- set parsed -%}
select
    *,
    case mod_type when 'INSERT' then 'insert' when 'UPDATE' then 'update' when 'DELETE' then 'delete' end as change_type,
    coalesce(backfill = 'true', false) as is_backfill,
    {{ reconcile.typed_value('commit_timestamp', {'name': 'timestamp'}, round=true) }} as committed_at,
    {{ reconcile._mod_part('keys') }} as key_values,
    {{ reconcile._mod_part('new_values') }} as new_values
from (
{{ mods }}
) as mods
where not {{ reconcile.is_erased_mod('mod') }}
{%- endset -%}
{%- set placed -%}
select
    *,
    case
        when change_type = 'delete' then key_values
        when not arrays_overlap(map_keys(key_values), map_keys(new_values)) then map_concat(key_values, new_values)
    end as payload,
    {{ reconcile.hex_of_nanoseconds('committed_at', 'commit_timestamp') }} as {{ reconcile.identifier('section commit_timestamp') }},
    {{ reconcile.hex_of_token('server_transaction_id') }} as {{ reconcile.identifier('section server_transaction_id') }},
    {{ reconcile.hex_of_digits('record_sequence') }} as {{ reconcile.identifier('section record_sequence') }},
    {{ reconcile.hex_of_index('place') }} as {{ reconcile.identifier('section place') }}
from (
{{ parsed }}
) as parsed
{%- endset -%}
{%- set checked = reconcile.typed_payload(placed, columns, reconcile._spanner_texts(columns)) -%}
{%- set judged -%}
select
    *,
    explode(array(
        struct(
            if(change_type = 'update', filter(names, name -> lower_names is null or array_contains(lower_names, lower(name))), null) as carried,
            concat_ws(
                '; ',
                {{ reconcile.complaint_of_source('spanner') | indent(4) }},
                case
                    {{ reconcile.long_record_complaint() }}
                    when _corrupt_record is not null then 'the record does not have the form of a data change record'
                    when mods is null or cardinality(mods) = 0 then 'the record holds no mods'
                    when mod is null then 'the mod is not an object'
                    when change_type is null then concat('mod_type ', coalesce(concat('\'', mod_type, '\' is unknown'), 'is missing'))
                    when value_capture_type is null or value_capture_type not in ('OLD_AND_NEW_VALUES', 'NEW_VALUES', 'NEW_ROW', 'NEW_ROW_AND_OLD_VALUES') then concat('value_capture_type ', coalesce(concat('\'', value_capture_type, '\' is unknown'), 'is missing'))
                    when is_backfill and change_type <> 'insert' then concat('a backfill record is an INSERT, and this one \'', mod_type, '\'')
                    when key_values is null then 'the mod has no keys'
                    when new_values is null and change_type <> 'delete' then 'the mod has no new_values'
                    when payload is null then concat('the mod has ', array_join(array_intersect(map_keys(key_values), map_keys(new_values)), ', '), ' among its keys and its new_values')
                end,
                {%- for name in coordinates %}
                if({{ 'not is_backfill and ' if name != 'commit_timestamp' }}{{ reconcile.identifier('section ' ~ name) }} is null, '{{ name }}, which orders changes, is missing or unreadable', null),
                {%- endfor %}
                {{ reconcile.payload_complaints(columns) | indent(16) }}
            ) as error
        )
    )) as verdict
from (
{{ checked }}
) as checked
{%- endset -%}
{%- set changes -%}
select
    {%- for column in columns %}
    {{ reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    change_type as _change_type,
    concat(
        {{ reconcile.identifier('section commit_timestamp') }},
        if(is_backfill, '/1', concat_ws('/', '/0'{% for name in coordinates[1:] + ['place'] %}, {{ reconcile.identifier('section ' ~ name) }}{% endfor %})),
        '/', {{ reconcile.tie_sections('change_type', columns, 'value ', carried='nullif(verdict.carried, names)') }}
    ) as _change_sequence,
    concat_ws('/', commit_timestamp, if(is_backfill, concat('backfill/', to_json(key_values)), concat_ws('/', server_transaction_id, record_sequence, cast(place as string)))) as _change_id,
    committed_at as _change_time,
    nullif(server_transaction_id, '') as _change_transaction,
    batch as _change_batch,
    nullif(verdict.carried, names) as _change_columns,
    nullif(verdict.error, '') as _change_error,
    fields_of_payload as _change_fields,
    to_json(map_keys(key_values)) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
{{ judged }}
) as judged
{%- endset -%}
{%- set snapshot = reconcile.snapshot_of_log(relation, [object]) -%}
{%- if not snapshot -%}
{{ changes }}
{%- else -%}
{{ reconcile.records_beside_snapshot(
      changes, snapshot, relation, columns,
      ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_transaction', '_change_batch', '_change_columns', '_change_error',
       '_change_fields', '_change_key', '_change_schema', '_change_macro', '_change_record', '_change_origin']) }}
{%- endif -%}
{%- endmacro %}

{#- A part of a mod: an object, or the JSON text of one. -#}
{%- macro _mod_part(part) -%}
try_cast({{ reconcile._container("mod['" ~ part ~ "']") }} as map<string, variant>)
{%- endmacro %}

{#- Spanner delivers whole numbers and NUMERIC as text, and a number of JSON is a FLOAT64 or FLOAT32. So no digits need
    to be found in the record. The emulator delivers an array that is NULL as the text NULL. -#}
{%- macro _spanner_texts(columns) -%}
{%- set arrays = [] -%}
{%- for column in columns -%}{%- do arrays.append(loop.index0) if column.type.name == 'array' -%}{%- endfor -%}
{{ 'transform(fields, (field, i) -> if(i in (' ~ arrays | join(', ') ~ ") and cast(field as string) = 'NULL', null, cast(field as string)))" if arrays else 'cast(fields as array<string>)' }}
{%- endmacro %}
