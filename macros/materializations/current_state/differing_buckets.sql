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
  {%- set form, least = settings.form, reconcile.least_rows_to_compare() -%}
  {{ return(form.materialized == 'current_state' and not form.partial_records and range.kind != 'rebuild' and least is not none and range.repair.snapshot.rows >= least
      and not form.columns | rejectattr('type.name', 'in', types) | list and not reconcile.masked_names(form.columns)
      and texts and texts.whole | trim == sql | trim and not reconcile._columns_of_other_types(form.columns, texts.columns, range.repair.snapshot)) }}
{%- endmacro %}

{#- The columns that the source macro was given with another type, or that the snapshot has with another one that is no
    whole number: a cast of a decimal may round. -#}
{%- macro _columns_of_other_types(columns, of_macro, snapshot) -%}
  {%- set of_snapshot, others = {}, [] -%}
  {%- for name, type in snapshot.columns.items() -%}{%- do of_snapshot.update({name | lower: type | replace(' ', '') | lower}) -%}{%- endfor -%}
  {%- for column in columns -%}
    {%- set ddl = column.type.ddl | replace(' ', '') | lower -%}
    {%- set is_same = of_snapshot[column.name | lower] == ddl or ddl in ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- do others.append(column.name) if not is_same or of_macro.get(column.name) != column.type.ddl -%}
  {%- endfor -%}
  {{ return(others) }}
{%- endmacro %}

{#- Of fewer rows a comparison would cost more than it saves. None: no snapshot is compared. -#}
{%- macro least_rows_to_compare() -%}
  {{ return(adapter.dispatch('least_rows_to_compare', 'reconcile')()) }}
{%- endmacro %}

{%- macro default__least_rows_to_compare() -%}
  {{ return(100000) }}
{%- endmacro %}

{#- Nothing is cached there (`databricks__cached`), and after the MERGE other buckets would differ. -#}
{%- macro databricks__least_rows_to_compare() -%}
  {{ return(none) }}
{%- endmacro %}

{#- In which bucket a row is, as SQL. A million buckets are small enough to
    be broadcast, and of ten million rows each has ten. -#}
{%- macro bucket_of_row(keys) -%}
{%- set values = [] -%}
{%- for key in keys -%}{%- do values.append(reconcile.identifier(key)) -%}{%- endfor -%}
{{ reconcile._bucket_of(values) }}
{%- endmacro %}

{%- macro _bucket_of(values) -%}
pmod(xxhash64({{ values | join(', ') }}), 1048576)
{%- endmacro %}

{#- The values of a snapshot's staged rows, each NULL if its text is no value of its type; and `_change_forms`, a digit for
    each column: 0 for a value, 1 for none, 2 for a text that is no value. The job has written the texts, so they need no
    more than a cast. -#}
{%- macro plain_rows_of_snapshot(snapshot, relation, columns) -%}
{%- set names, fields, forms = {}, [], [] -%}
{%- for name in snapshot.columns -%}{%- do names.update({name | lower: name}) -%}{%- endfor -%}
{%- for column in columns -%}
  {%- do fields.append(names[column.name | lower]) -%}
  {%- set text = 'row.' ~ reconcile.identifier(names[column.name | lower]) -%}
  {%- do forms.append('case when ' ~ text ~ " is null then '1'" ~ (' when ' ~ reconcile._plain_value(text, column) ~ " is null then '2'" if column.type.name != 'string') ~ " else '0' end") -%}
{%- endfor -%}
select
    {%- for column in columns %}
    {{ reconcile._plain_value('row.' ~ reconcile.identifier(names[column.name | lower]), column) }} as {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    concat({{ forms | join(', ') }}) as _change_forms
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
{%- set form, snapshot, missing = settings.form, range.repair.snapshot, [] -%}
{%- for column in form.columns -%}{%- do missing.append('if(' ~ reconcile.identifier(column.name) ~ " is null, '1', '0')") -%}{%- endfor -%}
select bucket
from (
    select {{ reconcile.bucket_of_row(form.unique_key) }} as bucket, {{ reconcile._digests_of_row(form.columns, '_change_forms') }}
    from (
        {{ reconcile.plain_rows_of_snapshot(snapshot, settings.inputs.relations[0], form.columns) | indent(8) }}
    )
    union all
    select {{ reconcile.bucket_of_row(form.unique_key) }} as bucket, {{ reconcile._digests_of_row(form.columns, 'concat(' ~ missing | join(', ') ~ ')') }}
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
    where not _deleted
)
group by bucket
having bit_xor(digest) <> 0 or bit_xor(second_digest) <> 0
{%- endmacro %}

{#- `forms`: see `plain_rows_of_snapshot`. It comes first, since Spark's hash passes over a NULL. Floating point as text, as
    `has_same_values` compares it. -#}
{%- macro _digests_of_row(columns, forms) -%}
{%- set values = [forms] -%}
{%- for column in columns -%}
  {%- set name = reconcile.identifier(column.name) -%}
  {%- do values.append('cast(' ~ name ~ ' as string)' if column.type.name in ['float', 'double'] else name) -%}
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
