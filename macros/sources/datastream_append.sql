{#- The change records of an append table: a table to which Datastream itself appends each change (append-only write mode), staged by
    `append.py table`.

    Order: change_sequence_number, one to four sections of hex digits between slashes, compared section by section as numbers, as
    BigQuery does: 'FFF/B' < 'FFF/ABC', and a section that is missing is 0. The form was not seen in a real table; a number
    of another form is quarantined. source_timestamp does not order rows that have a number: its values are whole seconds for
    some sources, and in MySQL the time of the statement. It orders inserts without a number, and it determines the
    generation. uuid does not identify a record: all rows of a backfill may share one.

    A row without change_sequence_number comes from a copy of an older table. If its change type is INSERT or missing, the
    row is older than every change of its key in the same generation; otherwise the row is quarantined.
    The SELECT has no window function, no join and no aggregate, and has generators as barriers, as for Datastream's
    events (see `datastream_change_records`). -#}
{%- macro datastream_append(relation, object, generations=[], columns=none) -%}
{%- do reconcile.note_objects(relation, {object: {'coordinates': ['change_sequence_number'], 'generations': generations, 'carries': 'appended rows'}}) -%}
{%- if not reconcile.needs_select() -%}{{ return('select 1') }}{%- endif -%}
{%- do reconcile.validate_generations(generations, {}) -%}
{%- set columns = reconcile.columns_of_source(columns) -%}
{%- do reconcile.refuse_options_of_datastream(columns, 'append.py table') -%}
{%- set staged -%}
select record, source, batch, origin, {{ reconcile.fitting_macro('append table') }} as fitting_macro
from {{ reconcile.qualified(relation) }}
where object = {{ reconcile.literal(object) }}
{%- endset -%}
{%- set appended_rows -%}
select *, datastream_metadata as source_metadata, datastream_metadata as metadata
from (
{{ staged }}
) as staged
lateral view inline(array(
    {{ reconcile.parsed_record('datastream_metadata struct<uuid string, source_timestamp string, change_sequence_number string, change_type string, is_deleted string>, row map<string, variant>, _corrupt_record string') }}
)) appended_row
{%- endset -%}
{%- set appended -%}
select
    *,
    row as payload,
    metadata.change_sequence_number is null and upper(coalesce(metadata.change_type, 'INSERT')) = 'INSERT' as is_backfill,
    {{ reconcile.envelope_time('metadata.source_timestamp') }} as changed_at
from (
{{ appended_rows }}
) as appended_rows
{%- endset -%}
{%- set placed -%}
select
    *,
    changed_at as read_at,
    {{ reconcile.datastream_change_type() }} as change_type,
    {{ reconcile.hex_of_change_sequence_number('metadata.change_sequence_number') }} as {{ reconcile.identifier('section change_sequence_number') }}
from (
{{ appended }}
) as appended
{%- endset -%}
{%- set checked = reconcile.typed_payload(placed, columns, 'cast(fields as array<string>)') -%}
{%- set judged -%}
select
    *,
    inline(array(struct(
        concat_ws(
            '; ',
            {{ reconcile.complaint_of_source('append table') }},
            case
                {{ reconcile.long_record_complaint() }}
                when _corrupt_record is not null or payload is null then 'the record does not have the form of a row of an append table'
                when change_type is null then concat('change type ', coalesce(concat('\'', metadata.change_type, '\' is unknown'), 'is missing'))
            end,
            {{ reconcile.is_deleted_complaint() }},
            {%- if generations %}
            if(changed_at is null, 'source_timestamp, which determines the generation, is missing or unreadable', null),
            {%- endif %}
            if(
                not is_backfill and {{ reconcile.identifier('section change_sequence_number') }} is null,
                concat('change_sequence_number, which orders changes, ', coalesce(concat('does not consist of one to four sections of hex digits: \'', metadata.change_sequence_number, '\''), 'is missing')), null
            ),
            {{ reconcile.payload_complaints(columns) | indent(12) }}
        ) as error,
        concat(
            {{ reconcile.hex_of_generation(generations, {}) }},
            if(is_backfill, concat('/0/', coalesce({{ reconcile.hex_of_time('changed_at') }}, '0000000000000000')), concat('/1/', {{ reconcile.identifier('section change_sequence_number') }})),
            '/', {{ reconcile.tie_sections('change_type', columns, 'value ') }}
        ) as sequence
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
    sequence as _change_sequence,
    metadata.uuid as _change_id,
    changed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fields_of_payload as _change_fields,
    cast(null as string) as _change_key,
    cast(null as string) as _change_schema,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
{{ judged }}
) as judged
{%- endmacro %}
