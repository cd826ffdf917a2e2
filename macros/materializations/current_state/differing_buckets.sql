{#- A large snapshot beside the log mostly has the rows that the base table has. So a run compares both by checksums of
    buckets of rows first, for which it reads each side once, and folds only the rows of buckets that differ. See
    docs/decisions/0073-buckets-of-a-snapshot.md. -#}

{#- Compares a new snapshot with the base table, if it is large enough, and adds to `range.repair`: `buckets`, how many
    buckets differ, and `sql`, the model's SELECT with the snapshot's rows of these buckets alone. Else they are none. -#}
{%- macro compare_buckets(relations, settings, range) -%}
  {%- set texts = graph.get('reconcile_repairs', {}).get(model.unique_id) -%}
  {%- if range.repair and reconcile._can_compare_buckets(relations, settings, range, texts) -%}
    {%- do reconcile.run_statements(reconcile.get_session_statements() + [
          'drop view if exists ' ~ relations.buckets_cache,
          reconcile.cached(relations.buckets_cache, reconcile._differing_buckets(relations, settings, range))]) -%}
    {%- set buckets = run_query('select count(*) from ' ~ relations.buckets_cache)[0][0] | int -%}
    {%- do range.repair.update({
          'buckets': buckets, 'sql': texts.differing if buckets else texts.log}) -%}
  {%- endif -%}
{%- endmacro %}

{#- A SELECT around the source macro may make other rows of the snapshot's, so the snapshot says nothing of the base
    table then. -#}
{%- macro _can_compare_buckets(relations, settings, range, texts) -%}
  {%- set types = ['boolean', 'tinyint', 'smallint', 'int', 'bigint', 'decimal', 'float', 'double', 'string', 'binary', 'date', 'timestamp', 'timestamp_ntz'] -%}
  {%- set form = settings.form -%}
  {{ return(form.materialized == 'current_state' and not form.partial_records and range.kind != 'rebuild' and range.repair.snapshot.rows >= reconcile.least_rows_to_compare()
      and not form.columns | rejectattr('type.name', 'in', types) | list and not reconcile.masked_names(form.columns)
      and texts and texts.whole | trim == sql | trim and reconcile.known_table(relations, range) is not none) }}
{%- endmacro %}

{#- Of fewer rows a comparison would cost more than it saves. -#}
{%- macro least_rows_to_compare() -%}
  {{ return(100000) }}
{%- endmacro %}

{#- In which bucket a row is, as SQL. `prefix` goes before the names of its columns. A million buckets are small enough to
    be broadcast, and of ten million rows each has ten. -#}
{%- macro bucket_of_row(keys, prefix='') -%}
{%- set values = [] -%}
{%- for key in keys -%}{%- do values.append(prefix ~ reconcile.identifier(key)) -%}{%- endfor -%}
{{ reconcile._bucket_of(values) }}
{%- endmacro %}

{%- macro _bucket_of(values) -%}
pmod(xxhash64({{ values | join(', ') }}), 1048576)
{%- endmacro %}

{#- The values of a snapshot's staged rows, each NULL if its text is no value of its type; and `_change_no <column>`, whether
    there is no text. The job has written the texts, so they need no more than a cast. -#}
{%- macro plain_rows_of_snapshot(snapshot, relation, columns) -%}
{%- set names, fields = {}, [] -%}
{%- for name in snapshot.columns -%}{%- do names.update({name | lower: name}) -%}{%- endfor -%}
{%- for column in columns -%}{%- do fields.append(names[column.name | lower]) -%}{%- endfor -%}
select
    {%- for column in columns %}
    {%- set text = 'row.' ~ reconcile.identifier(names[column.name | lower]) %}
    {{ reconcile._plain_value(text, column) }} as {{ reconcile.identifier(column.name) }},
    {{ text }} is null as {{ reconcile.identifier('_change_no ' ~ column.name) }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    select {{ reconcile._plain_row(fields) }} as row
    from {{ reconcile.qualified(relation) }}
    where object = {{ reconcile.literal(reconcile.snapshot_rows_object(snapshot.object)) }} and source = 'snapshot' and batch = {{ snapshot.batch }}
)
{%- endmacro %}

{#- Fields of a staged row, by their names, as texts. -#}
{%- macro _plain_row(names) -%}
{%- set fields = [] -%}
{%- for name in names -%}{%- do fields.append(reconcile.identifier(name) ~ ' string') -%}{%- endfor -%}
{{ reconcile.parsed_record(reconcile.literal('row struct<' ~ fields | join(', ') ~ '>')[1:-1]) }}.row
{%- endmacro %}

{%- macro _plain_value(text, column) -%}
{{ text if column.type.name == 'string' else 'try_to_binary(' ~ text ~ ", 'base64')" if column.type.name == 'binary' else 'try_cast(' ~ text ~ ' as ' ~ column.type.ddl ~ ')' }}
{%- endmacro %}

{#- The condition for a staged row of a snapshot to be in one of the buckets of a relation. `columns`: those of the model,
    of which the key is needed. -#}
{%- macro is_in_buckets(snapshot, columns, buckets) -%}
{%- set values = [] -%}
{%- for key in reconcile.keys_of(model) -%}
  {%- for column in columns if column.name == key -%}
    {%- for name in snapshot.columns if name | lower == key | lower -%}
      {%- do values.append(reconcile._plain_value(reconcile._plain_row([name]) ~ '.' ~ reconcile.identifier(name), column)) -%}
    {%- endfor -%}
  {%- endfor -%}
{%- endfor -%}
{{ reconcile._bucket_of(values) }} in (select /*+ broadcast(differing) */ bucket from {{ buckets }} as differing)
{%- endmacro %}

{#- The buckets in which the snapshot and the live rows of the base table differ. The checksum of a bucket is the XOR of
    its rows' hashes, of both sides: equal rows cancel each other out. There are two of them, 128 bits. -#}
{%- macro _differing_buckets(relations, settings, range) -%}
{%- set form, snapshot = settings.form, range.repair.snapshot -%}
select bucket
from (
    select {{ reconcile.bucket_of_row(form.unique_key) }} as bucket, {{ reconcile._digests_of_row(form.columns, '_change_no ') }}
    from (
        {{ reconcile.plain_rows_of_snapshot(snapshot, settings.inputs.relations[0], form.columns) | indent(8) }}
    )
    union all
    select {{ reconcile.bucket_of_row(form.unique_key) }} as bucket, {{ reconcile._digests_of_row(form.columns) }}
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
    where not _deleted
)
group by bucket
having bit_xor(digest) <> 0 or bit_xor(second_digest) <> 0
{%- endmacro %}

{#- `no`: how the columns begin that say whether a value is missing; without it, NULL says so. Floating point as text,
    as `has_same_values` compares it. -#}
{%- macro _digests_of_row(columns, no=none) -%}
{%- set values = [] -%}
{%- for column in columns -%}
  {%- set name = reconcile.identifier(column.name) -%}
  {%- do values.extend([reconcile.identifier(no ~ column.name) if no else name ~ ' is null', 'cast(' ~ name ~ ' as string)' if column.type.name in ['float', 'double'] else name]) -%}
{%- endfor -%}
xxhash64({{ values | join(', ') }}) as digest, xxhash64('second', {{ values | join(', ') }}) as second_digest
{%- endmacro %}

{#- The rows of the base table that the fold of a range beside a snapshot needs: those of buckets that differ, and those
    of keys that records of the range name. `_change_is_compared` says whether a row's bucket differs. In the other
    buckets, a live row is also the snapshot's. -#}
{%- macro rows_to_compare(relations, form, range) -%}
(
    select known.*, differing.bucket is not null as _change_is_compared
    from (
        select *, {{ reconcile.bucket_of_row(form.unique_key) }} as _change_bucket
        from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as stored
    ) as known
    left join (
        select /*+ broadcast(differing) */ bucket
        from {{ relations.buckets_cache }} as differing
    ) as differing
        on known._change_bucket = differing.bucket
    left join (
        select {{ reconcile.broadcast_hint('named', range.delivered) }}{{ reconcile.key_columns(form.unique_key) }}, true as _change_is_named
        from {{ relations.changes_cache }} as named
        where _change_error is null and _change_snapshot <> 'row'
        group by {{ reconcile.key_columns(form.unique_key) }}
    ) as named
        on {{ reconcile.keys_match(form.unique_key, 'named', 'known') }}
    where differing.bucket is not null or _change_is_named
)
{%- endmacro %}
