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
