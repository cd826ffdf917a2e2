{#- What the four Datastream sources share: the envelope, the payload, and the form of the result. Each source adds the
    names of its `metadata`, and its `coordinates` in their order (name -> SQL for sections of hex, NULL if unreadable).
    `positions` are the coordinates that show a position of its log (see `validate_generations`). A source also adds its
    `transaction` and, if it has one, the `row_id` of a change: a delete with a `row_id` needs no payload. `snapshots`:
    whether a snapshot of the source shows which transactions it saw; this also tells PostgreSQL from SQL Server, whose
    `coordinates` have the same name. `source` is the source's own name (see `source_of_event`). `zero_dates`: whether
    the source has zero dates. `source_columns`: see `source_columns_of`; they are no fields of the payload.

    The SELECT has no window function, no join and no aggregate: a filter on _change_batch must reach the scan of the
    staging table. Any other filter must not: Spark would put the whole parsing of a record into the filter, once for
    each mention of a column. `inline(array(struct(...)))` stops such filters. -#}
{%- macro datastream_change_records(source, relation, object, table, generations, columns, metadata, coordinates, positions, transaction, row_id=none, snapshots=false, encoding=none, zero_dates=false, source_columns=none) -%}
{%- set order = {'coordinates': coordinates | list, 'generations': generations} -%}
{%- if row_id -%}{%- do order.update({'row_ids': true}) -%}{%- endif -%}
{%- if snapshots -%}{%- do order.update({'snapshots': true}) -%}{%- endif -%}
{%- if source_columns is mapping -%}{%- do order.update({'source_columns': source_columns}) -%}{%- endif -%}
{%- set routes = reconcile.routes_of(object, table, source_columns) -%}
{%- set objects = reconcile.objects_of_routes(routes, order) -%}
{%- do reconcile.note_objects(relation, objects) -%}
{%- if not reconcile.needs_select() -%}{{ return('select 1') }}{%- endif -%}
{%- do reconcile.validate_generations(generations, positions) -%}
{%- set declared = reconcile.datastream_columns(reconcile.columns_of_source(columns), encoding) -%}
{%- if source_columns is not none -%}
{%- do reconcile.validate_source_columns(source_columns, source, routes, generations, declared, row_id) -%}
{%- endif -%}
{%- set columns = declared | rejectattr('name', 'in', source_columns or {}) | list -%}
{%- set staged -%}
select {{ reconcile.masked_record(columns, metadata=true) }}, source, batch, origin
from {{ reconcile.qualified(relation) }}
where {{ reconcile.is_of_objects(reconcile.plain_objects(objects)) }}
{%- endset -%}
{%- set events -%}
select *
from (
{{ staged }}
) as staged
lateral view inline(array(
    {{ reconcile.parsed_record('uuid string, schema_key string, read_method string, read_timestamp string, source_timestamp string, source_metadata struct<database string, schema string, table string, change_type string, is_deleted string, primary_keys variant, replication_index variant, ' ~ (metadata + reconcile.identifying_fields()) | unique | join(' string, ') ~ ' string>, payload map<string, variant>, avro_types map<string, string>, _corrupt_record string') }}
)) event
{%- if table %}
where {{ reconcile.is_of_tables('source_metadata', routes | map(attribute='table')) }}
{%- endif %}
{%- endset -%}
{%- set parsed -%}
select
    *,
    source_metadata as metadata,
    {{ reconcile.fitting_macro('datastream', "nullif(" ~ reconcile.source_of_event('read_method', 'source_metadata', first=source) ~ ", '" ~ source ~ "')") }} as fitting_macro,
    {{ reconcile.is_backfill() }} as is_backfill,
    {{ reconcile.datastream_change_type() }} as change_type,
    {{ reconcile.envelope_time('source_timestamp') }} as changed_at,
    if(is_backfill, {{ reconcile.envelope_time('read_timestamp') }}, null) as read_at
from (
{{ events }}
) as events
{%- endset -%}
{%- set placed -%}
select
    *
    {%- for name, sections in dict(coordinates, read_timestamp=reconcile.hex_of_time('read_at')).items() %},
    {{ sections }} as {{ reconcile.identifier('section ' ~ name) }}
    {%- endfor %}
from (
{{ parsed }}
) as parsed
{%- endset -%}
{%- set checked = reconcile.typed_payload(placed, columns, reconcile._delivered_texts(columns), reconcile.datastream_kinds(), reconcile.datastream_texts(columns)) -%}
{%- set judged -%}
select
    *,
    inline(array(struct(
        concat_ws(
            '; ',
            {{ reconcile.complaint_of_source('datastream') }},
            case
                {{ reconcile.long_record_complaint() }}
                {%- if reconcile.masked_names(columns) %}
                {{ reconcile.mask_complaints(columns) }}
                {%- endif %}
                when _corrupt_record is not null and {{ reconcile.has_a_name_twice('record') }} then {{ reconcile.literal(reconcile.fix_for_a_name_twice()) }}
                when metadata is null then 'the record has no source_metadata'
                when fields is null{{ " and not (change_type <=> 'delete' and " ~ row_id ~ ' is not null)' if row_id }} then 'the record has no payload'
                when _corrupt_record is not null then 'the record does not have the form of a Datastream event'
                when change_type is null then concat('change type ', coalesce(concat('\'', metadata.change_type, '\' is unknown'), 'is missing'))
                when is_backfill is null then concat('read method ', coalesce(concat('\'', read_method, '\' is unknown'), 'is missing'))
                when is_backfill and {{ reconcile.identifier('section read_timestamp') }} is null then 'read_timestamp, which orders backfill rows, is missing or unreadable'
            end,
            {{ reconcile.is_deleted_complaint() }},
            if({{ reconcile.has_lone_surrogate('record') }}, 'a text has half of a surrogate pair, which is not a character, and Spark would store it as ?; correct it at the source', null)
            {%- if generations | reject('mapping') | list %},
            if(not is_backfill and changed_at is null, 'source_timestamp, which determines the generation, is missing or unreadable', null)
            {%- endif %}
            {%- for name in coordinates %},
            if(not is_backfill and {{ reconcile.identifier('section ' ~ name) }} is null, '{{ name }}, which orders changes, is missing or unreadable', null)
            {%- endfor %},
            {%- for name in source_columns or {} %}
            {{ reconcile.complaint_of_source_column(name) }},
            {%- endfor %}
            {{ reconcile.payload_complaints(columns, 'readable', zero_dates) | indent(12) }}
        ) as error,
        concat(
            {{ reconcile.hex_of_generation(generations, coordinates) }},
            if(is_backfill, concat('/0/', {{ reconcile.identifier('section read_timestamp') }}), concat_ws('/', '/1'{% for name in coordinates %}, {{ reconcile.identifier('section ' ~ name) }}{% endfor %})),
            '/', {{ reconcile.tie_sections('change_type', columns, 'value ') }}
        ) as sequence
    )))
from (
{{ checked }}
) as checked
{%- endset -%}
{%- set changes -%}
select
    {%- for column in declared if not column.removed %}
    {{ reconcile.value_of_source_column(source_columns[column.name], source, 'metadata') if column.name in (source_columns or {}) else reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    change_type as _change_type,
    sequence as _change_sequence,
    uuid as _change_id,
    changed_at as _change_time,
    {{ transaction }} as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    {%- if row_id %}
    {{ row_id if config.get('unique_key') in ['_row_id', ['_row_id']] else 'if(is_backfill, null, ' ~ row_id ~ ')' }} as _row_id,
    {%- endif %}
    {%- if not table %}
    if(fitting_macro is null, {{ reconcile.source_table('metadata') }}, null) as _change_table,
    {%- endif %}
    fields_of_payload as _change_fields,
    {{ reconcile.key_of_record() }} as _change_key,
    schema_key as _change_schema,
    fitting_macro as _change_macro,
    {%- if columns | selectattr('zero_date') | list %}
    {{ reconcile.zero_dates_of(columns) | indent(4) }} as _change_zero_dates,
    {%- endif %}
    record as _change_record,
    origin as _change_origin
from (
{{ judged }}
) as judged
{%- endset -%}
{%- set snapshot = reconcile.snapshot_of_log(relation, objects) if reconcile.kind_of_snapshots(order) else none -%}
{%- if not snapshot -%}
{{ changes }}
{%- else -%}
{{ reconcile.records_beside_snapshot(
      changes, snapshot, relation, declared | rejectattr('removed') | list,
      ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_transaction', '_change_batch', '_change_columns', '_change_error']
      + (['_change_table'] if not table else []) + ['_change_fields', '_change_key', '_change_schema', '_change_macro']
      + (['_change_zero_dates'] if columns | selectattr('zero_date') | list else []) + ['_change_record', '_change_origin']) }}
{%- endif -%}
{%- endmacro %}

{#- The texts of `fields`. A variant keeps a number of up to 38 digits, but not its trailing zeros. It keeps a longer
    number, or one with an exponent, as the nearest double or as infinity. The record itself has the digits. Most
    records have no such number, and need only one cast. -#}
{%- macro _delivered_texts(columns) -%}
{%- set inexact, kinds = [], {} -%}
{%- for column in columns -%}
  {%- set is_inexact = reconcile._is_inexact(column.type, 'fields[' ~ loop.index0 ~ ']') -%}
  {%- if is_inexact -%}
    {%- do inexact.append(is_inexact) -%}
    {%- do kinds.setdefault(reconcile._is_inexact(column.type, 'field'), []).append(loop.index0) -%}
  {%- endif -%}
{%- endfor -%}
{%- if not inexact -%}
cast(fields as array<string>)
{%- else -%}
if(
    {{ inexact | join(' or ') }},
    transform(fields, (field, i) -> case
        {%- for is_inexact, numbers in kinds.items() %}
        when i in ({{ numbers | join(', ') }}) and {{ is_inexact }} then {{ reconcile._digits('names[i]', 'field') }}
        {%- endfor %}
        else cast(field as string)
    end),
    cast(fields as array<string>)
)
{%- endif -%}
{%- endmacro %}

{#- Whether the variant of a column of this type may have lost digits; '' if it cannot. Of the types of JSON's values,
    only DOUBLE and DECIMAL begin with a D. -#}
{%- macro _is_inexact(type, field) -%}
{%- if type.name == 'string' -%}
schema_of_variant({{ field }}) like 'D%'
{%- elif type.name in ['float', 'double'] -%}
schema_of_variant({{ field }}) = 'DOUBLE' and cast({{ field }} as string) like '%Infinity'
{%- elif type.name in ['tinyint', 'smallint', 'int', 'bigint', 'decimal'] -%}
schema_of_variant({{ field }}) = 'DOUBLE'
{%- endif -%}
{%- endmacro %}

{#- The digits after the column's name, wherever the name stands in the payload and in whatever case. A deeper field may
    have this name too. If the digits then differ from place to place, nothing shows which ones are the column's. -#}
{%- macro _digits(name, field) -%}
{%- set form = "concat('\"(?iu:\\\\Q', replace(" ~ name ~ ", '\\\\E', ''), " ~ reconcile.literal('\\E)"\\s*:\\s*(-?[0-9][-+.0-9eE]*|NaN|[-+]?Infinity)') ~ ")" -%}
coalesce(
    get(filter(
        array(array_join(array_distinct(regexp_extract_all(substring(record, locate('"payload"', record)), {{ form }})), ' ')),
        digits -> try_cast(digits as double) = cast({{ field }} as double)
    ), 0),
    {{ reconcile.digits_not_found() }}
)
{%- endmacro %}
