{#- The change records of a table of which staging has a snapshot beside the log: those of the log, and one for each row
    of the snapshot. See docs/decisions/0044-snapshots-in-the-fold.md.

    `_change_snapshot` says where a record stands: `row` (it is a row of the snapshot), `before` (the snapshot contains
    the change), `after` (it does not) or `uncertain` (the position does not show it). A change that the snapshot
    contains is superseded, whatever its key: it becomes a delete below everything else, with a dash for the first digit
    of its sequence. All other changes, and the rows of the snapshot, begin with the generation of the snapshot. The
    rows stand where a backfill row would stand that was read at the moment of the snapshot: below all changes of their
    generation, above all that is older. In Spanner's order such a place is above all commits up to that moment, and
    below all others: there is no generation, and other changes keep their sequence.

    A history keeps what a snapshot contains, so there all snapshots count: each change has the generation of the last
    snapshot that does not contain it, and comes before the rows of the next one. `_change_snapshot` is about the newest.

    `changes`: the SELECT of the log's change records. `names`: its columns beside the declared ones, in their order.
    A log may begin anew. PostgreSQL's has 32 bits of a transaction's id: after two billion transactions or more, an id
    is that of one which the snapshot sees. MySQL's binary log may begin again with file 1. Such a change is
    quarantined, as its time shows that it is later: by a day, since an id may begin anew within hours; of other sources
    by an hour, since a change that the snapshot contains has an earlier time than the snapshot, but for the clocks.

    There is no window function, no join and no aggregate: see `datastream_change_records`. -#}
{%- macro records_beside_snapshot(changes, snapshot, relation, columns, names) -%}
{%- set declared = reconcile.identifiers(columns) -%}
{%- set generation = reconcile.generation_of_snapshot(snapshot) -%}
{%- set is_in_order = reconcile.is_in_order_of_log(snapshot) -%}
{%- set snapshots = reconcile.snapshots_in_order(snapshot) -%}
{%- set tells_transactions = snapshot.position_kind == 'pg_snapshot' -%}
{%- set complaint = 'the record names no transaction, by which the snapshot beside the log tells whether it contains the change' -%}
{%- set complaint_of_late =
      'the snapshot beside the log contains the transaction by its id, and the change is a day or more later: the ids of 32 bits have begun anew since the snapshot; stage a new snapshot' if tells_transactions
      else 'the snapshot beside the log contains the change by its place in the ' ~ ('binary log' if snapshot.position_kind == 'binlog' else 'log') ~ ', and the change is an hour or more later: the log has begun anew since the snapshot, or the snapshot is of another server; take the snapshot back, and declare the new log as a generation, or stage a snapshot of the server of the log' -%}
{%- set sides, late, generations = [], [], [] -%}
{%- for one in snapshots -%}
  {%- set side = '_change_snapshot' if loop.last else '_change_sides[' ~ loop.index0 ~ ']' -%}
  {%- do sides.append(reconcile.side_of(reconcile.position_of_staged(one), {'objects': {}})) -%}
  {%- do late.append(side ~ " = 'before' and " ~ reconcile.is_in_log() ~ ' and _change_time > ' ~ reconcile.moment_of_snapshot(one) ~ " + interval '" ~ ('1 day' if tells_transactions else one.uncertainty) ~ "'") -%}
  {%- do generations.insert(0, 'when ' ~ side ~ " <> 'before' then '" ~ reconcile.generation_of_snapshot(one) ~ "'") -%}
{%- endfor -%}
{%- set is_history = config.get('materialized') == 'history' -%}
{%- set replaced = {
      '_change_type': '_change_type' if is_history else "if(_change_snapshot = 'before', 'delete', _change_type)",
      '_change_sequence': 'concat(case ' ~ generations | join(' ') ~ ' else left(_change_sequence, 4) end, substring(_change_sequence, 5))' if is_history
          else "if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), " ~ ("_change_sequence" if is_in_order else "concat('" ~ generation ~ "', substring(_change_sequence, 5))") ~ ")",
      '_change_error': '_change_error' if is_in_order
          else "nullif(concat_ws('; ', _change_error, " ~ ("if(_change_error is null and " ~ reconcile.is_in_log() ~ " and try_cast(_change_transaction as bigint) is null, " ~ reconcile.literal(complaint) ~ ", null), " if tells_transactions) ~ "if(_change_error is null and " ~ ('(' ~ late | join(' or ') ~ ')' if late | length > 1 else late[0]) ~ ", " ~ reconcile.literal(complaint_of_late) ~ ", null)), '')"} -%}
{%- set log -%}
select
    {%- for name in declared + names %}
    {{ replaced[name] ~ (' as ' ~ name if replaced[name] != name) if name in replaced else name }},
    {%- endfor %}
    _change_snapshot
from (
{{ changes }}
) as of_log
lateral view explode(array(_change_sequence)) as _change_place
{%- if sides | length > 1 %}
lateral view explode(array(array(
    {{ sides[:-1] | join(',\n    ') }}
))) as _change_sides
{%- endif %}
lateral view explode(array({{ sides[-1] }})) as _change_snapshot
{%- endset -%}
{%- set whole = log ~ '\nunion all\n' ~ reconcile._rows_of_snapshots(snapshots, relation, columns, names) -%}
{%- if snapshots | length == 1 -%}
  {#- For `compare_buckets`. -#}
  {%- set types = {} -%}
  {%- for column in columns -%}{%- do types.update({column.name: column.type.ddl}) -%}{%- endfor -%}
  {%- do graph.setdefault('reconcile_repairs', {}).update({model.unique_id: {
        'whole': whole, 'log': log, 'columns': types, 'differing': log ~ '\nunion all\n' ~ reconcile._rows_of_snapshots(
            snapshots, relation, columns, names, reconcile.model_relations(this).buckets_cache)}}) -%}
{%- endif -%}
{{ whole }}
{%- endmacro %}

{#- The rows of snapshots as change records. How a column says that Datastream writes it does not hold for them.
    `buckets`: the relation of the buckets to which the rows have to belong, see `compare_buckets`. -#}
{%- macro _rows_of_snapshots(snapshots, relation, columns, names, buckets=none) -%}
{%- set plain = [] -%}
{%- for column in columns -%}
  {%- do plain.append(dict(column, encoding=none, infinity_is_null=false, zero_date=false, type=reconcile.column_type(column.type.ddl) if 'binary' in column.type.ddl else column.type)) -%}
{%- endfor -%}
{%- set places, ids, moments = {}, {}, {} -%}
{%- for one in snapshots -%}
  {%- set taken_at = reconcile.moment_of_snapshot(one) -%}
  {%- set place = reconcile.place_of_snapshot(one) -%}
  {%- do places.update({one.batch: place if snapshots | length == 1 else 'concat(' ~ place ~ ')'}) -%}
  {%- do ids.update({one.batch: reconcile.literal(one.snapshot)}) -%}
  {%- do moments.update({one.batch: taken_at}) -%}
{%- endfor -%}
{%- set staged -%}
select {{ reconcile.masked_record(columns) }}, source, batch, origin
from {{ reconcile.qualified(relation) }}
where object = {{ reconcile.literal(reconcile.snapshot_rows_object(snapshots[0].object)) }} and source = 'snapshot' and batch {{ '= ' ~ snapshots[0].batch if snapshots | length == 1 else 'in (' ~ snapshots | map(attribute='batch') | join(', ') ~ ')' }}
{%- if buckets %}
and {{ reconcile.is_in_buckets(snapshots[0], columns, buckets) }}
{%- endif %}
{%- endset -%}
{%- set rows -%}
select *
from (
{{ staged }}
) as staged
lateral view inline(array(
    {{ reconcile.parsed_record('row map<string, variant>, _corrupt_record string') }}
)) read
{%- endset -%}
{%- set placed -%}
select *, row as payload
from (
{{ rows }}
) as rows
{%- endset -%}
{%- set checked = reconcile.typed_payload(placed, plain, 'cast(fields as array<string>)') -%}
{%- set judged -%}
select
    *,
    inline(array(struct(
        concat_ws(
            '; ',
            {%- if reconcile.masked_names(columns) %}
            case {{ reconcile.mask_complaints(columns) }} end,
            {%- endif %}
            if(_corrupt_record is not null or payload is null, 'the record does not have the form of a row of a snapshot', null),
            {{ reconcile.payload_complaints(plain) | indent(12) }}
        ) as error
    )))
from (
{{ checked }}
) as checked
{%- endset -%}
{%- set values = {
      '_change_type': "'insert'",
      '_change_sequence': "concat(" ~ reconcile._by_batch(places) ~ ", '/', " ~ reconcile.tie_sections("'insert'", plain, 'value ') ~ ')',
      '_change_id': reconcile._by_batch(ids),
      '_change_time': reconcile._by_batch(moments),
      '_change_batch': 'batch',
      '_change_columns': 'cast(null as array<string>)',
      '_change_zero_dates': 'cast(null as array<string>)',
      '_change_error': "nullif(error, '')",
      '_change_record': 'record',
      '_change_origin': 'origin'} -%}
select
    {%- for column in plain %}
    {{ reconcile.identifier('value ' ~ column.name) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    {%- for name in names %}
    {{ values.get(name, 'cast(null as string)') }} as {{ name }},
    {%- endfor %}
    'row' as _change_snapshot
from (
{{ judged }}
) as judged
{%- endmacro %}

{#- The first sections of the sequence of a snapshot's rows, and of a delete of a row that it lacks: SQL for `concat`. -#}
{%- macro place_of_snapshot(snapshot) -%}
{%- if reconcile.is_in_order_of_log(snapshot) -%}
'{{ reconcile.hex_of_moment(snapshot.position) }}/1'
{%- else -%}
'{{ reconcile.generation_of_snapshot(snapshot) }}/0/', {{ reconcile.hex_of_time(reconcile.moment_of_snapshot(snapshot)) }}
{%- endif -%}
{%- endmacro %}

{#- The least sequence of what is not older than a snapshot, as SQL: its rows, and the changes that it does not
    contain. -#}
{%- macro floor_of_snapshot(snapshot) -%}
{%- if reconcile.is_in_order_of_log(snapshot) -%}
{{ reconcile.place_of_snapshot(snapshot) }}
{%- else -%}
'{{ reconcile.generation_of_snapshot(snapshot) }}'
{%- endif -%}
{%- endmacro %}

{#- What a record of a batch has, as SQL. `values`: SQL by batch. -#}
{%- macro _by_batch(values) -%}
{%- if values | length == 1 -%}
{{ values.values() | first }}
{%- else -%}
case batch{% for batch, value in values.items() %} when {{ batch }} then {{ value }}{% endfor %} end
{%- endif -%}
{%- endmacro %}
