{#- The change records of a table that has no log and is known by its snapshots alone: what `append.py snapshot` found when it compared each
    snapshot with the one before it.

    Order: taken_at, the moment of the snapshot, to the nanosecond. A snapshot has one record of a key at most, and the job stages the
    snapshots of a table in the order of their moments, so no tie is left.

    An insert or update sets the whole row; a delete is a key that the snapshot lacks and the one before it had.
    No window function, no join, no aggregate, and a generator as barrier: as for Datastream's events. -#}
{%- macro snapshots(relation, object, columns=none) -%}
{%- do reconcile.note_objects(relation, {object: {'coordinates': ['taken_at'], 'carries': 'differences'}}) -%}
{%- if not reconcile.needs_select() -%}{{ return('select 1') }}{%- endif -%}
{%- set columns = reconcile.columns_of_source(columns) -%}
{%- do reconcile.refuse_options_of_datastream(columns, 'append.py snapshot') -%}
{%- set staged -%}
select {{ reconcile.masked_record(columns) }}, source, batch, origin, {{ reconcile.fitting_macro('snapshot') }} as fitting_macro
from {{ reconcile.qualified(relation) }}
where object = {{ reconcile.literal(object) }}
{%- endset -%}
{%- set differences -%}
select *
from (
{{ staged }}
) as staged
lateral view inline(array(
    {{ reconcile.parsed_record('snapshot string, taken_at string, change string, key string, row map<string, variant>, _corrupt_record string') }}
)) difference
{%- endset -%}
{%- set changes -%}
select
    *,
    case when change in ('insert', 'update', 'delete') then change end as change_type,
    row as payload,
    {{ reconcile.typed_value('taken_at', {'name': 'timestamp'}, round=true) }} as changed_at
from (
{{ differences }}
) as differences
{%- endset -%}
{%- set checked = reconcile.typed_payload(changes, columns, 'cast(fields as array<string>)') -%}
{%- set judged -%}
select
    *,
    inline(array(struct(
        {{ reconcile.hex_of_nanoseconds('changed_at', 'taken_at') }} as section_taken_at,
        concat_ws(
            '; ',
            {{ reconcile.complaint_of_source('snapshot') }},
            case
                {{ reconcile.long_record_complaint() }}
                {%- if reconcile.masked_names(columns) %}
                {{ reconcile.mask_complaints(columns) }}
                {%- endif %}
                when _corrupt_record is not null then 'the record does not have the form of a difference between snapshots'
                when payload is null then 'the record has no row'
                when change_type is null then concat('change ', coalesce(concat('\'', change, '\' is unknown'), 'is missing'))
            end,
            if({{ reconcile.hex_of_nanoseconds('changed_at', 'taken_at') }} is null, 'taken_at, which orders snapshots, is missing or unreadable', null),
            {{ reconcile.payload_complaints(columns) | indent(12) }}
        ) as error
    )))
from (
{{ checked }}
) as checked
{%- endset -%}
select
    {%- for column in columns if not column.removed %}
    {{ reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    change_type as _change_type,
    concat(section_taken_at, '/', {{ reconcile.tie_sections('change_type', columns, 'value ') }}) as _change_sequence,
    snapshot as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fields_of_payload as _change_fields,
    to_json(json_object_keys(key)) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
{{ judged }}
) as judged
{%- endmacro %}
