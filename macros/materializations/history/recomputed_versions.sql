{#- The records of a range of batches among all records of their keys, each record with its validity. Some of these
    records are new. Others are in the base table, and the columns that follow from their neighbours may have changed.
    The query sorts these few records three times. No window covers rows before and after the current row at once, since
    Spark would then evaluate the window anew for each row.

    A version is valid from the time of its record, or from the time of a later record if that is earlier. (A backfill
    row is older in the order than every change, but may have been read after some of them.) A version is valid up to
    the beginning of the next record's version. So an interval may be empty, and no intervals overlap. A version repeats
    the version before it if that one is valid up to its beginning and all columns are equal. If a keyless delete names
    the row of a version, the version is valid up to that delete.

    Of each record: `_change_before` is the version before it, and `_change_was_live` says whether the key had a live
    row just before it. `_change_repeats`: the version changes no declared column. `_change_is_repeated`: the next
    version repeats this one. `_change_valid_to` is the end of the last version of such a chain. `_change_known` is the
    record as the base table has it; `_change_is_revised`: one of its columns is not what the base table has.

    Where keys may shift, a delete may be of another row than the one that an update of the same transaction had given
    the key to, and an insert may be undone by its transaction. Such a record (`_change_is_of_no_row`) is no version and
    ends none. To find it takes one more sort.
    `keyless_count`: how many keyless deletes the range holds. `records`: other records than those of the range and
    its keys, as `_distinct_records` gives them. -#}
{%- macro recomputed_versions(relations, form, range, keyless_count, records=none) -%}
{%- set key = reconcile.key_columns(form.unique_key) -%}
{%- set values = form.columns | rejectattr('name', 'in', form.unique_key) | list -%}
{%- set names = reconcile.identifiers(values) -%}
{%- set backwards = 'partition by ' ~ key ~ ' order by _change_sequence desc rows between unbounded preceding and' -%}
{%- set forwards = 'partition by ' ~ key ~ ' order by _change_sequence rows between unbounded preceding and' -%}
{%- set own = reconcile.derived_columns(form.partial_records, form.keyless) + reconcile.columns_of_copies(form.keyless) -%}
select
    *,
    _change_known is null as _change_is_new,
    _change_known is not null and not (
        {%- for column in own %}
        {{ column }} <=> _change_known.{{ column }}{{ ' and' if not loop.last }}
        {%- endfor %}
        {%- for column in values if form.partial_records %}
        {%- set name = reconcile.identifier(column.name) %}
        and {{ reconcile.comparable(name, column.type.name) }} <=> {{ reconcile.comparable('_change_known.' ~ name, column.type.name) }}
        {%- endfor %}
    ) as _change_is_revised
from (
    select
        *,
        last_value(if(_change_is_version and not coalesce(_change_is_repeated, false), struct(valid_to), null), true) over ({{ backwards }} current row).valid_to as _change_valid_to
    from (
        select
            *,
            last_value(if(_change_is_version, _change_repeats, null), true) over ({{ backwards }} 1 preceding) as _change_is_repeated
        from (
            select
                *,
                coalesce(
                    _change_is_version and _change_before.valid_to = valid_from
                    {%- for column in values %}
                    {%- set name, type = reconcile.identifier(column.name), column.type.name %}
                    and {{ reconcile.comparable(name, type) }} <=> {{ reconcile.comparable('_change_before.' ~ name, type) }}
                    {%- endfor %},
                    false
                ) as _change_repeats
            from (
                select
                    *,
                    last_value(if(_change_is_version, struct(valid_to{% for name in names %}, {{ name }}{% endfor %}), null), true) over ({{ forwards }} 1 preceding) as _change_before,
                    {%- if reconcile.keys_may_shift(form.keyless) %}
                    coalesce(last_value(if(_change_is_of_no_row, null, _change_is_version and _change_ended_by is null), true) over ({{ forwards }} 1 preceding), false) as _change_was_live
                    {%- else %}
                    coalesce(lag({{ '_change_is_version and _change_ended_by is null' if form.keyless else '_change_is_version' }}) over (partition by {{ key }} order by _change_sequence), false) as _change_was_live
                    {%- endif %}
                from (
                    {{ reconcile._versions(relations, form, range, keyless_count, records) | indent(20) }}
                )
            )
        )
    )
)
{%- endmacro %}

{#- The records with the columns that people read: a column that a partial record does not carry keeps its earlier
    value. -#}
{%- macro _versions(relations, form, range, keyless_count, records=none) -%}
{%- set key = reconcile.key_columns(form.unique_key) -%}
{%- set later = 'over (partition by ' ~ key ~ ' order by _change_sequence desc rows between unbounded preceding and' -%}
{%- set records = records or reconcile._distinct_records(relations, form, range, keyless_count) -%}
{%- set deletes = reconcile._join_of_keyless_deletes(
      relations.changes_cache, form.keyless, form.unique_key, range.known_keyless_deletes) if form.keyless -%}
{%- set validity -%}
select
    *,
    {%- if reconcile.keys_may_shift(form.keyless) %}
    last_value(if(_change_is_of_no_row, null, _change_sequence), true) {{ later }} 1 preceding) as _change_next_sequence,
    coalesce(min(if(_change_is_of_no_row, null, _change_time)) {{ later }} current row), _change_time) as valid_from,
    min(if(_change_is_of_no_row, null, _change_time)) {{ later }} 1 preceding) as valid_to
    {%- else %}
    {%- if form.keyless %}
    lag(_change_sequence) over (partition by {{ key }} order by _change_sequence desc) as _change_next_sequence,
    {%- endif %}
    min(_change_time) {{ later }} current row) as valid_from,
    min(_change_time) {{ later }} 1 preceding) as valid_to
    {%- endif %}
from (
    {{ (reconcile._of_no_row(reconcile._undone_inserts(records, deletes), key) if reconcile.keys_may_shift(form.keyless) else records) | indent(4) }}
)
{%- endset -%}
{%- if form.keyless -%}
  {%- set validity = reconcile._ended_versions(validity, form.keyless, deletes) -%}
{%- endif -%}
{%- if form.partial_records -%}
{%- set forwards = 'partition by ' ~ key ~ ' order by _change_sequence rows between unbounded preceding and current row' -%}
select *, _change_is_known as _change_is_version
from (
    select
        * except (_change_carried),
        {%- for column in form.columns if column.name not in form.unique_key %}
        {%- set name = reconcile.identifier(column.name) %}
        last_value(if(_change_columns is null or array_contains(_change_columns, {{ reconcile.literal(column.name) }}), struct(_change_carried.{{ name }} as value), null), true) over ({{ forwards }}).value as {{ name }},
        {%- endfor %}
        coalesce(last_value(if(_change_columns is null, _change_type, null), true) over ({{ forwards }}) <> 'delete', false) as _change_is_known
    from (
        {{ validity | indent(8) }}
    )
)
{%- else -%}
{%- set values = reconcile.identifiers(form.columns | rejectattr('name', 'in', form.unique_key)) -%}
{%- set is_version = "_change_type <> 'delete'" ~ (' and not _change_is_undone' if reconcile.keys_may_shift(form.keyless) else '')
      ~ ' as _change_is_version' -%}
select * except (_change_carried), {% for name in values %}_change_carried.{{ name }}, {% endfor %}{{ is_version }}
from (
    {{ validity | indent(4) }}
)
{%- endif -%}
{%- endmacro %}

{#- The records, and whether each says nothing of the key's row: an insert that is undone, or a delete of another row than
    the one that had taken the key last. `key`: the key columns, as SQL. -#}
{%- macro _of_no_row(records, key) -%}
select
    *,
    _change_is_undone or coalesce(
        _change_type = 'delete'
        and _change_last_write.type = 'update'
            and _change_last_write.transaction = _change_transaction
            and _change_last_write.address <> _row_id,
        false
    ) as _change_is_of_no_row
from (
    select
        *,
        last_value(if(_change_type = 'delete' or _change_is_undone, null, struct(_change_type as type, _change_transaction as transaction, _row_id as address)), true) over (partition by {{ key }} order by _change_sequence rows between unbounded preceding and 1 preceding) as _change_last_write
    from (
        {{ records | indent(8) }}
    )
)
{%- endmacro %}

{#- The records with the keyless deletes of their addresses, and whether each is an insert that its transaction undid.
    `deletes`: see `_join_of_keyless_deletes`. -#}
{%- macro _undone_inserts(records, deletes) -%}
select
    *,
    _change_type = 'insert' and exists(
        coalesce(_change_deletes, array()),
        found -> coalesce(found.transaction = _change_transaction, false) and found.sequence > _change_sequence
    ) as _change_is_undone
from (
    {{ records | indent(4) }}
) as record
{{ deletes }}
{%- endmacro %}

{#- A version ends with the first keyless delete that names its row and lies between its record and the next one.
    `validity`: a SELECT of the records with `valid_from`, `valid_to` and `_change_next_sequence`; where keys may shift
    also with `_change_deletes`. `deletes`: see `_join_of_keyless_deletes`. -#}
{%- macro _ended_versions(validity, keyless, deletes) -%}
{%- set by_address, may_shift = keyless.kind == 'row_deletes', reconcile.keys_may_shift(keyless) -%}
select
    * except (valid_to, _change_next_sequence, _change_deletes, _change_ended_by),
    _change_ended_by,
    if(_change_ended_by is null, valid_to, greatest(valid_from, least(valid_to, _change_ended_by.time))) as valid_to
from (
    select
        *,
        if(_change_type = 'delete'{{ ' or _change_is_undone' if may_shift }}, null, array_min(filter(
            _change_deletes,
            found -> found.sequence > _change_sequence and (_change_next_sequence is null or found.sequence < _change_next_sequence)
            {%- if not by_address %}
            and {{ reconcile.delete_covers_row(keyless, 'found.place', 'record') }}
            {%- endif %}
        ))) as _change_ended_by
    from (
        {{ validity | indent(8) }}
    )
    {%- if not may_shift %} as record
    {{ deletes | indent(4) }}
    {%- endif %}
)
{%- endmacro %}

{#- A LEFT JOIN that adds to each record (alias `record`) the array `_change_deletes`: the keyless deletes of the record's
    row address, or of its row key and family. Which of these deletes cover the row is decided later: see
    `_ended_versions`. `changes`: the checked records of the range. `known`: the table of the keyless deletes of earlier
    ranges, none if there are none. -#}
{%- macro _join_of_keyless_deletes(changes, keyless, keys, known) -%}
{%- set place, by_address = keyless.place, keyless.kind == 'row_deletes' -%}
{%- set row = '_row_id as _change_row_id' if by_address
      else '_range.row_key as _change_row_key, _range.family as _change_family' -%}
{%- set may_shift = reconcile.keys_may_shift(keyless) -%}
{%- set delete = '_change_sequence as sequence, _change_time as time'
      ~ (', ' ~ place ~ ' as place' if not by_address else '')
      ~ (', _change_transaction as transaction' if may_shift else '') -%}
{%- set columns = place ~ ', _change_sequence, _change_time' ~ (', _change_transaction' if may_shift else '') -%}
left join (
    select {{ row }}, collect_set(struct({{ delete }})) as _change_deletes
    from (
        select {{ columns }}
        from {{ changes }}
        where {{ reconcile.is_keyless_delete_record(keys) }}
        {%- if known %}
        union all
        select {{ columns }}
        from {{ known }}
        {%- endif %}
    )
    group by {{ '_row_id' if by_address else '_range.row_key, _range.family' }}
) as keyless
    on {{ 'record._row_id = keyless._change_row_id' if by_address
          else 'record.row_key = keyless._change_row_key and record.family = keyless._change_family' }}
{%- endmacro %}

{#- One row for each distinct record of the range's keys, whether the record has come again or not. `_change_known` is
    what the base table holds for the record, NULL if nothing. `_change_records` is the number of copies in the range.
    Of the copies, the least time, id and batch count, whichever copy came first. -#}
{%- macro _distinct_records(relations, form, range, keyless_count) -%}
{%- set key = reconcile.key_columns(form.unique_key) -%}
{%- set values = reconcile.identifiers(form.columns | rejectattr('name', 'in', form.unique_key)) -%}
{%- set carried = 'struct(' ~ (values or ['null as nothing']) | join(', ') ~ ')' -%}
{%- set known = reconcile.derived_columns(form.partial_records, form.keyless) + (values if form.partial_records else [])
      + reconcile.columns_of_copies(form.keyless) -%}
{%- set fields = ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_batch']
      + (['_change_columns'] if form.partial_records else [])
      + (['_row_id'] if form.keyless.kind == 'row_deletes' else [])
      + (['_change_transaction'] if reconcile.keys_may_shift(form.keyless) else []) -%}
{%- set columns = key ~ ', ' ~ fields | join(', ') -%}
{%- set set_values = "if(_change_type = 'delete', null, " ~ carried ~ ')' if values else carried -%}
{%- set nothing_known = 'cast(null as ' ~ reconcile.type_of_known(form) ~ ')' -%}
select
    {{ key }},
    _change_sequence,
    first(_change_type) as _change_type,
    {%- if form.partial_records %}
    first(_change_columns) as _change_columns,
    {%- endif %}
    {%- if form.keyless.kind == 'row_deletes' %}
    first(_row_id) as _row_id,
    {%- endif %}
    {%- if reconcile.keys_may_shift(form.keyless) %}
    first(_change_transaction, true) as _change_transaction,
    {%- endif %}
    min(struct(_change_time, _change_id))._change_time as _change_time,
    min(struct(_change_time, _change_id))._change_id as _change_id,
    min(_change_batch) as _change_batch,
    first(_change_carried) as _change_carried,
    first(_change_known, true) as _change_known,
    count_if(_change_known is null) as _change_records
from (
    select {{ columns }}, {{ set_values }} as _change_carried, {{ nothing_known }} as _change_known
    from {{ relations.changes_cache }}
    where _change_error is null
        {{- ' and not ' ~ reconcile.is_keyless_delete_record(form.unique_key) if form.keyless }}
    {%- if reconcile.known_table(relations, range) %}
    {%- set hint = reconcile.broadcast_hint('touched', range.delivered) %}
    union all
    select {{ hint }}{{ columns }}, {{ carried }} as _change_carried, struct({{ known | join(', ') }}) as _change_known
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
    left semi join (
        {{ reconcile._touched_keys(relations, form, range, keyless_count) | indent(8) }}
    ) as touched
        on {{ reconcile.keys_match(form.unique_key, 'touched', 'known') }}
    {%- endif %}
)
group by {{ key }}, _change_sequence
{%- endmacro %}

{#- The keys of a range, and the keys of the rows that a keyless delete of the range names. -#}
{%- macro _touched_keys(relations, form, range, keyless_count) -%}
select {{ reconcile.key_columns(form.unique_key) }}
from {{ relations.changes_cache }}
where _change_error is null
{%- if keyless_count %}
union all
select {{ reconcile.broadcast_hint('keyless', keyless_count) }}{{ reconcile.key_columns(form.unique_key) }}
from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
left semi join (
    select {{ form.keyless.place }}
    from {{ relations.changes_cache }}
    where {{ reconcile.is_keyless_delete_record(form.unique_key) }}
) as keyless
    on {{ reconcile.delete_covers_row(form.keyless, 'keyless.' ~ form.keyless.place, 'known') }}
{%- endif %}
{%- endmacro %}

{%- macro type_of_known(form) -%}
{%- set types = [] -%}
{%- for column in reconcile.derived_columns(form.partial_records, form.keyless) -%}
  {%- set is_boolean = column in ['_change_repeats', '_change_is_known', '_change_is_undone'] -%}
  {%- do types.append(column ~ (': boolean' if is_boolean else ': timestamp')) -%}
{%- endfor -%}
{%- for column in form.columns if form.partial_records and column.name not in form.unique_key -%}
  {%- do types.append(reconcile.identifier(column.name) ~ ': ' ~ column.type.ddl) -%}
{%- endfor -%}
{%- for column in reconcile.columns_of_copies(form.keyless) -%}
  {%- do types.append(column ~ (': timestamp' if column == '_change_time' else ': string')) -%}
{%- endfor -%}
struct<{{ types | join(', ') }}>
{%- endmacro %}
