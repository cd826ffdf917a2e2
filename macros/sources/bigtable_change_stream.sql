{#- The change records of a Bigtable table, cell by cell, from the data changes of a change stream.

    A data change is what one mutation did to one row, atomically; each of its entries is a change record. SetCell sets
    a cell, whose key is row_key, family, qualifier and cell_time. DeleteFromColumn and DeleteFromFamily delete
    everything in a range of cells. They have no key, only this `_range`: row_key, family, qualifier (NULL: all of
    them), start_time (inclusive), end_time (exclusive; NULL: without end). Order: commit_timestamp to the nanosecond,
    tiebreaker, the place of the entry. Bigtable itself settles conflicts by this order. If an entry cannot be applied,
    its whole change is quarantined, since the change was atomic.

    `garbage_collection`: with `apply`, what Bigtable's own garbage collection deleted is deleted here too; with `keep`,
    its data changes are left out. The default is `keep` for a history, and else `apply`. A snapshot beside the log is
    told again by changes of one moment (docs/decisions/0072-snapshots-beside-bigtable.md). The SELECT has no window
    function, no join and no aggregate, and has generators as barriers, as for Datastream's events (see
    `datastream_change_records`). -#}
{%- macro bigtable_change_stream(relation, object, garbage_collection=none, columns=none) -%}
{%- set coordinates = ['commit_timestamp', 'tiebreaker'] -%}
{#- This runs while dbt parses, so that the objects of every model are known, whichever models run (see
    `model_inputs`). -#}
{%- do reconcile.note_objects(relation, {object: {'coordinates': coordinates, 'carries': 'entries', 'range_deletes': true, 'garbage_collection': garbage_collection}}) -%}
{%- if not reconcile.needs_select() -%}{{ return('select 1') }}{%- endif -%}
{%- set columns = reconcile.columns_of_source(columns) -%}
{%- do reconcile.raise_complaints(reconcile._complaints_of_cells(columns, garbage_collection)) -%}
{%- set keeps = reconcile.garbage_collection_of(config.get('materialized'), garbage_collection) == 'keep' -%}
{%- set staged -%}
select record, source, batch, origin, {{ reconcile.fitting_macro('bigtable') }} as fitting_macro
from {{ reconcile.qualified(relation) }}
where object = {{ reconcile.literal(object) }}
{%- endset -%}
{%- set data_changes -%}
select record, source, batch, origin, fitting_macro, data_change.*
from (
{{ staged }}
) as staged
lateral view explode(array(
    {{ reconcile.parsed_record('row_key variant, type string, source_cluster_id string, commit_timestamp string, tiebreaker string, entries array<variant>, _corrupt_record string') }}
)) as data_change
{%- endset -%}
{%- set decoded_changes -%}
-- an entry is an object of one member, which is named after its kind
select
    *,
    explode(array(
    transform(
        transform(
            transform(entries, entry -> try_cast(entry as map<string, variant>)),
            entry -> struct(if(cardinality(entry) = 1, get(map_keys(entry), 0), null) as kind, try_cast(get(map_values(entry), 0) as map<string, variant>) as fields)
        ),
        entry -> struct(
            entry.kind,
            entry.fields is not null as is_object,
            if(schema_of_variant(entry.fields['family']) = 'STRING', nullif(cast(entry.fields['family'] as string), ''), null) as family,
            {{ reconcile._bytes("entry.fields['qualifier']") }} as qualifier,
            {{ reconcile._bytes("entry.fields['value']") }} as value,
            {{ reconcile._micros("entry.fields['timestamp_micros']") }} as time,
            {{ reconcile._micros("entry.fields['start_timestamp_micros']") }} as begins,
            {{ reconcile._micros("entry.fields['end_timestamp_micros']") }} as ends
        )
    )
)) as read_entries
from (
{{ data_changes }}
) as data_changes
{%- endset -%}
{%- set parsed -%}
select
    *,
    {{ reconcile._bytes('row_key') }} as key_of_row,
    {{ reconcile.typed_value('commit_timestamp', {'name': 'timestamp'}, round=true) }} as committed_at,
    {{ reconcile.hex_of_signed('tiebreaker') }} as {{ reconcile.identifier('section tiebreaker') }}
from (
{{ decoded_changes }}
) as decoded_changes
{%- endset -%}
{%- set placed -%}
select *, {{ reconcile.hex_of_nanoseconds('committed_at', 'commit_timestamp') }} as {{ reconcile.identifier('section commit_timestamp') }}
from (
{{ parsed }}
) as parsed
{%- endset -%}
{%- set judged -%}
select
    *,
    explode(array(
    concat_ws(
        '; ',
        {{ reconcile.complaint_of_source('bigtable') }},
        case
            {{ reconcile.long_record_complaint() }}
            when _corrupt_record is not null then 'the record does not have the form of a data change'
            when entries is null or cardinality(entries) = 0 then 'the data change holds no entries'
            when type is null or type not in ('user', 'garbage_collection', 'backfill') then concat('type ', coalesce(concat('\'', type, '\' is unknown'), 'is missing'))
        end,
        if(key_of_row is null, 'row_key is missing or is not base64', null),
        {%- for name in coordinates %}
        if({{ reconcile.identifier('section ' ~ name) }} is null, '{{ name }}, which orders changes, is missing or unreadable', null),
        {%- endfor %}
        array_join(slice(filter(transform(read_entries, (entry, place) -> concat('entry ', place + 1, ' of the change ', {{ reconcile._complaint_of_entry('entry') }})), complaint -> complaint is not null), 1, 3), '; ')
    )
)) as error
from (
{{ placed }}
) as placed
{%- endset -%}
{%- set entries -%}
-- a data change without entries, of another source, or that cannot be read, is one change record, which goes to quarantine
select *
from (
{{ judged }}
) as judged
lateral view posexplode(
    {% if keeps %}if(source = 'bigtable' and type = 'garbage_collection' and cardinality(entries) > 0, filter(read_entries, entry -> false), {% endif %}if(source = 'bigtable' and cardinality(read_entries) > 0, read_entries, array(cast(null as {{ reconcile._type_of_entry() }}))){{ ')' if keeps }}
) as place, entry
{%- endset -%}
{%- set cells -%}
select
    *,
    case when entry.kind = 'set_cell' then 'insert' when entry.kind like 'delete%' then 'delete' end as change_type
    {%- for name, value in reconcile._values_of_cell().items() %}
    {%- for column in columns if column.name == name %},
    {{ value }} as {{ reconcile.identifier('value ' ~ name) }}
    {%- endfor %}
    {%- endfor %}
from (
{{ entries }}
) as entries
{%- endset -%}
{%- set changes -%}
select
    {%- for column in columns %}
    {{ reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    if(
        change_type = 'delete',
        struct(
            key_of_row as row_key,
            entry.family as family,
            if(entry.kind = 'delete_from_column', entry.qualifier, null) as qualifier,
            timestamp_micros(coalesce(entry.begins, 0)) as start_time,
            timestamp_micros(nullif(entry.ends, 0)) as end_time
        ),
        null
    ) as _range,
    change_type as _change_type,
    concat_ws('/', {% for name in coordinates %}{{ reconcile.identifier('section ' ~ name) }}, {% endfor %}{{ reconcile.hex_of_index('place') }}, {{ reconcile.tie_sections('change_type', columns, 'value ') }}) as _change_sequence,
    concat_ws('/', commit_timestamp, tiebreaker, nullif(source_cluster_id, ''), cast(row_key as string), cast(place as string)) as _change_id,
    committed_at as _change_time,
    cast(null as string) as _change_transaction,
    batch as _change_batch,
    cast(null as array<string>) as _change_columns,
    nullif(error, '') as _change_error,
    fitting_macro as _change_macro,
    record as _change_record,
    origin as _change_origin
from (
{{ cells }}
) as cells
{%- endset -%}
{%- set snapshot = reconcile.snapshot_of_log(relation, [object]) -%}
{#- Another kind of snapshot is refused, see `complaints_of_snapshot`. -#}
{%- if not reconcile.is_restated(snapshot) -%}
{{ changes }}
{%- else -%}
-- what the snapshot beside the log contains is below everything, and sets no cell
select
    {%- for column in columns %}
    {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    _range,
    if(_change_is_contained, 'delete', _change_type) as _change_type,
    if(_change_is_contained, concat('-', substring(_change_sequence, 2)), _change_sequence) as _change_sequence,
    _change_id,
    _change_time,
    _change_transaction,
    _change_batch,
    _change_columns,
    _change_error,
    _change_macro,
    _change_record,
    _change_origin
from (
{{ changes }}
) as of_log
lateral view explode(array(coalesce(_change_sequence < '{{ reconcile.hex_of_moment(snapshot.position) }}', false))) as _change_is_contained
{%- endif -%}
{%- endmacro %}

{#- The columns that a model of cells may declare: {name: type}. -#}
{%- macro _columns_of_cells() -%}
  {{ return({
      'row_key': 'binary', 'family': 'string', 'qualifier': 'binary', 'cell_time': 'timestamp', 'value': 'binary',
      'change_type': 'string', 'source_cluster_id': 'string', 'commit_timestamp': 'string', 'tiebreaker': 'bigint'}) }}
{%- endmacro %}

{%- macro _complaints_of_cells(columns, garbage_collection) -%}
  {%- set types = reconcile._columns_of_cells() -%}
  {%- set complaints = [] -%}
  {%- for column in columns -%}
    {%- if column.name not in types -%}
      {%- do complaints.append('column ' ~ column.name ~ ': a cell has no column of this name; use only ' ~ types | join(', ')) -%}
    {%- elif column.type.label != types[column.name] -%}
      {%- do complaints.append('column ' ~ column.name ~ ': its type is ' ~ types[column.name] ~ ', but it is declared as ' ~ column.type.label ~ '; declare `data_type: ' ~ types[column.name] ~ '`') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if garbage_collection not in [none, 'keep', 'apply'] -%}
    {%- do complaints.append("garbage_collection: '" ~ garbage_collection ~ "' is unknown; write 'keep' or 'apply'") -%}
  {%- endif -%}
  {{ return(complaints) }}
{%- endmacro %}

{#- The columns of a cell, as SQL: {name: value}. For a delete of a range, the key and the value are NULL. -#}
{%- macro _values_of_cell() -%}
  {%- set of_cell = {
      'row_key': 'key_of_row', 'family': 'entry.family', 'qualifier': 'entry.qualifier', 'cell_time': 'timestamp_micros(entry.time)', 'value': 'entry.value'} -%}
  {%- set values = {'change_type': 'type', 'source_cluster_id': 'source_cluster_id', 'commit_timestamp': 'commit_timestamp', 'tiebreaker': 'try_cast(tiebreaker as bigint)'} -%}
  {%- for name, value in of_cell.items() -%}
    {%- do values.update({name: "if(entry.kind = 'set_cell', " ~ value ~ ', null)'}) -%}
  {%- endfor -%}
  {{ return(values) }}
{%- endmacro %}

{%- macro _complaint_of_entry(entry) -%}
case
    when {{ entry }}.kind is null then 'is not an object with one member'
    when {{ entry }}.kind not in ('set_cell', 'delete_from_column', 'delete_from_family') then concat('is of the kind \'', left({{ entry }}.kind, 100), '\', which is unknown')
    when not {{ entry }}.is_object then concat('is a ', {{ entry }}.kind, ' that is not an object')
    else nullif(concat_ws(
        ', ',
        if({{ entry }}.family is null, 'has no family', null),
        if({{ entry }}.kind <> 'delete_from_family' and {{ entry }}.qualifier is null, 'has no qualifier in base64', null),
        if({{ entry }}.kind = 'set_cell' and {{ entry }}.time is null, 'has no timestamp_micros', null),
        if({{ entry }}.kind = 'set_cell' and {{ entry }}.value is null, 'has no value in base64', null),
        if({{ entry }}.kind = 'delete_from_column' and ({{ entry }}.begins is null or {{ entry }}.ends is null), 'has no start_timestamp_micros and end_timestamp_micros', null)
    ), '')
end
{%- endmacro %}

{%- macro _type_of_entry() -%}
struct<kind: string, is_object: boolean, family: string, qualifier: binary, value: binary, time: bigint, begins: bigint, ends: bigint>
{%- endmacro %}

{#- The bytes of a variant that holds base64; they need not be text. -#}
{%- macro _bytes(field) -%}
{{ reconcile._binary('cast(' ~ field ~ ' as string)', field) }}
{%- endmacro %}

{#- Microseconds since 1970; no cell has a time below 0. -#}
{%- macro _micros(field) -%}
if(cast({{ field }} as string) rlike '^[0-9]{1,19}$', try_cast(cast({{ field }} as string) as bigint), null)
{%- endmacro %}
