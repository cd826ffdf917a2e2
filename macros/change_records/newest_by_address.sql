{#- As `newest_records`, for a source whose transactions may pass a key from row to row, and may undo inserts. The
    database checks keys at the end of a statement, so the log may have the insert of a key by one row before the delete
    of that key by another row. Of the newest transaction of a key, the newest insert or update is the key's row. If it
    is an update, a later delete at another address is of another row, and does not delete the key: see
    docs/decisions/0028-keys-that-shift.md. An insert that its transaction undid takes no part, unless nothing else is
    known of the key: see docs/decisions/0041-undone-statements.md.

    `_change_contenders` keeps the records that may decide once more records of this transaction come: an array of
    {address, sequence, time, batch}. It has the newest insert or update, under the empty address, and the newest later
    delete at each address. It is NULL if there is no later delete. `_change_displaced` keeps the records that decide on
    the row once inserts are undone: see `_kept`. `_change_batch` is the greatest batch of the records that the row
    keeps, and of the keyless deletes that undid an insert of the row in a later batch than the insert's. So each of them
    leaves a trace. If that is not the batch of the row's own record, `_change_contenders` has that record too.

    `undoing`: a SELECT of keyless deletes (see `undoing_deletes`), none if there are none. `known`: a SELECT of rows of
    the base table as records (see `rows_as_records`), none if there are no such rows. Its columns `_change_base...` are
    NULL if the base table has no such key. `_change_replaces_base`: whether the row replaces the base table's.
    `_change_is_noted`: whether the base table's row stays, and only what it keeps beside its values changes.
    `_change_applied_sequence`: the sequence of the range's record that counts as applied; NULL if a row comes back that
    was there before. `_change_range_sequence` and `_change_range_time` are of the range's newest record that is not
    undone. -#}
{%- macro newest_by_address(changes, form, undoing=none, known=none) -%}
{%- set contenders = "if(contenders is null and batch > winner._change_batch, array(" ~ reconcile._contender("if(winner._deleted, winner._row_id, '')", 'winner') ~ '), contenders)' -%}
select
    winner.* except (_change_batch, _change_undone_in),
    batch as _change_batch,
    {{ contenders }} as _change_contenders,
    displaced as _change_displaced,
    {%- if known %}
    {%- for column in reconcile._columns_of_base() %}
    base.{{ column }} as {{ reconcile.name_of_base(column) }},
    {%- endfor %}
    base is null or winner._change_sequence <> base._change_sequence as _change_replaces_base,
    winner._change_sequence <=> base._change_sequence
    and not struct(winner._change_transaction, {{ contenders }}, {{ reconcile._without_values('displaced') }}, batch) <=> struct(base._change_transaction, base._change_contenders, {{ reconcile._without_values('base._change_displaced') }}, base._change_batch) as _change_is_noted,
    if(array_contains(sequences, winner._change_sequence), winner._change_sequence, newest_of_range._change_sequence) as _change_applied_sequence,
    newest_of_range._change_sequence as _change_range_sequence,
    newest_of_range._change_time as _change_range_time,
    {%- endif %}
    records as _change_records,
    sequences as _change_sequences
from (
    select
        *,
        filter(kept, change -> change.sequence <> winner._change_sequence) as displaced,
        greatest(
            winner._change_batch,
            array_max(transform(contenders, change -> change.batch)),
            array_max(transform(kept, change -> change.batch)),
            undone_in{{ ',\n            base._change_batch' if known }}
        ) as batch
    from (
        {{ reconcile._winners(changes, form, undoing, known) | indent(8) }}
    )
)
{%- endmacro %}

{#- Of each key: `winner`, the record that sets the row; it is `written`, the newest insert or update of the newest
    transaction, or `newest` if a delete ends that row.

    An insert of which address and transaction are known may be undone. Of the others, `certain` is the newest record,
    and `certain_written` the newest insert or update of its transaction. `recent` are the inserts that may be undone,
    the newest one first, as far as they are newer than what is certain. `standing` are those that are not undone. If
    nothing of a key is certain and nothing stands, its newest insert is the row, and the live view hides it. As long as
    nothing is certain, this may come true later: so the newest insert that is undone, `undone`, is kept.

    The steps are few: with each one, Spark has to analyze a view in more iterations, of which it allows 100. -#}
{%- macro _winners(changes, form, undoing, known) -%}
{%- set certain_written = 'if(written._change_transaction = certain._change_transaction, written, null)' -%}
{%- set newest = 'if(certain is null or get(standing, 0)._change_sequence >= certain._change_sequence, get(standing, 0), certain)' -%}
{%- set newest_written = 'coalesce(get(standing, 0), certain_written)' -%}
select
    *,
    if(written is null or exists(later, {{ reconcile._ends('written') }}), newest, written) as winner,
    if(cardinality(later) = 0, null, concat(
        if(written is null, array(), array({{ reconcile._contender("''", 'written') }})),
        {{ reconcile._newest_of_each_address('later') }}
    )) as contenders
from (
    select
        *,
        {{ newest }} as newest,
        {{ newest_written }} as written,
        {{ reconcile._deletes_after(newest, newest_written) }} as later,
        {{ reconcile._kept(form) | indent(8) }} as kept
    from (
        select
            *,
            if(certain is null and forall(recent, change -> change._change_undone_in is not null), slice(recent, 1, 1), filter(recent, change -> change._change_undone_in is null)) as standing,
            if(certain is null and exists(recent, change -> change._change_undone_in is null), get(filter(recent, change -> change._change_undone_in is not null), 0), null) as undone,
            array_max(transform(filter(recent, change -> change._change_undone_in > change._change_batch), change -> change._change_undone_in)) as undone_in,
            {{ reconcile._deletes_after('certain', 'certain_written') }} as certain_later
        from (
            select
                * except (written, inserts),
                {{ certain_written }} as certain_written,
                array_sort(
                    filter(
                        inserts,
                        change -> certain is null
                            or change._change_sequence >= certain._change_sequence
                            or change._change_transaction = certain._change_transaction
                            and change._change_sequence > coalesce({{ certain_written }}._change_sequence, '')
                    ),
                    (one, other) -> case
                        when one._change_sequence > other._change_sequence then -1
                        when one._change_sequence < other._change_sequence then 1
                        else int(sign(one._change_batch - other._change_batch))
                    end
                ) as recent
            from (
                {{ reconcile._records_by_address(changes, form.columns, form.unique_key, undoing, known) | indent(16) }}
            )
        )
    )
)
{%- endmacro %}

{#- Of each key: of the records that no keyless delete can undo, the newest one, and the newest insert or update; the
    inserts that may be undone; and all deletes. -#}
{%- macro _records_by_address(changes, columns, keys, undoing, known) -%}
{%- set row -%}
struct(
            {{ reconcile.columns_of_record(columns, keys, row_ids=true) | indent(12) }},
            _change_transaction,
            _change_type = 'insert' as _change_is_insert,
            _change_undone_in
        )
{%- endset -%}
{%- set may_be_undone = "_change_type = 'insert' and _row_id is not null and _change_transaction is not null" -%}
{#- Copies of a record differ in their batch alone. But of a row that a table of an earlier version holds, no transaction
    is known. -#}
{%- set place = 'struct(_change_sequence, _change_transaction is not null, -_change_batch)' -%}
select
    max_by(
        {{ row }},
        if({{ may_be_undone }}, null, {{ place }})
    ) as certain,
    max_by(
        {{ row }},
        if(_change_type = 'delete' or {{ may_be_undone }}, null, {{ place }})
    ) as written,
    collect_list(if(
        {{ may_be_undone }},
        {{ row }},
        null
    )) as inserts,
    collect_set(if(
        _change_type = 'delete',
        struct(_change_transaction as transaction, _row_id as address, _change_sequence as sequence, _change_time as time, _change_batch as batch),
        null
    )) as deletes,
    {%- if known %}
    first(_change_base, true) as base,
    max(if(_change_base is null and _change_undone_in is null, struct(_change_sequence, _change_time), null)) as newest_of_range,
    count_if(_change_base is null) as records,
    collect_set(if(_change_base is null, _change_sequence, null)) as sequences
    {%- else %}
    count(*) as records,
    collect_set(_change_sequence) as sequences
    {%- endif %}
from (
    {{ reconcile._records_with_undoing(reconcile._all_records(changes, columns, keys, known), undoing) | indent(4) }}
)
group by {{ reconcile.key_columns(keys) }}
{%- endmacro %}

{#- The records that the fold reads: those of `changes` that passed the checks and have a key, and the records of the
    base table (`known`), if there are any. -#}
{%- macro _all_records(changes, columns, unique_key, known) -%}
select {{ reconcile._columns_by_address(columns) | join(', ') }}{{ ', null as _change_base' if known }}
from {{ changes }}
where _change_error is null and {{ reconcile.identifier(unique_key[0]) }} is not null
{%- if known %}
union all
{{ known }}
{%- endif %}
{%- endmacro %}

{#- All records, with one more column, `_change_undone_in`: for an insert that its transaction undid, the first batch
    with a keyless delete that undid it; otherwise NULL. An undone insert stays undone, whatever record comes later. So
    the order of arrival does not change the result. `undoing`: see `newest_by_address`. -#}
{%- macro _records_with_undoing(records, undoing) -%}
{%- if undoing -%}
select
    record.*,
    array_min(transform(filter(undone.deletes, change -> change.sequence > record._change_sequence), change -> change.batch)) as _change_undone_in
from (
    {{ records | indent(4) }}
) as record
left join (
    select _row_id, _change_transaction, collect_set(struct(_change_sequence as sequence, _change_batch as batch)) as deletes
    from (
        {{ undoing | indent(8) }}
    )
    group by _row_id, _change_transaction
) as undone
    on record._row_id = undone._row_id and record._change_transaction = undone._change_transaction and record._change_type = 'insert'
{%- else -%}
select *, cast(null as bigint) as _change_undone_in
from (
    {{ records | indent(4) }}
)
{%- endif -%}
{%- endmacro %}

{#- What the fold takes of a record. A known row as a record has the same columns, in the same order. -#}
{%- macro _columns_by_address(columns) -%}
  {{ return(reconcile.identifiers(columns)
      + ['_change_type', '_change_sequence', '_change_time', '_change_batch', '_row_id', '_change_transaction']) }}
{%- endmacro %}

{#- Whether a delete ends the row of `written`, as a lambda of SQL. In doubt it does. -#}
{%- macro _ends(written) -%}
change -> coalesce({{ written }}._change_is_insert or change.address = {{ written }}._row_id, true)
{%- endmacro %}

{#- The deletes of the transaction of `newest` after `written`, as contenders. -#}
{%- macro _deletes_after(newest, written) -%}
transform(
            filter(deletes, change -> change.transaction = {{ newest }}._change_transaction and change.sequence > coalesce({{ written }}._change_sequence, '')),
            change -> struct(change.address, change.sequence, change.time, change.batch)
        )
{%- endmacro %}

{#- A record as a contender, under an address. -#}
{%- macro _contender(address, record) -%}
struct({{ address }} as address, {{ record }}._change_sequence as sequence, {{ record }}._change_time as time, {{ record }}._change_batch as batch)
{%- endmacro %}

{%- macro _newest_of_each_address(deletes) -%}
array_sort(filter({{ deletes }}, change -> not exists({{ deletes }}, other -> other.address <=> change.address and struct(other.sequence, -other.batch) > struct(change.sequence, -change.batch))))
{%- endmacro %}

{#- The records from which the row follows once inserts are undone: the inserts that stand, and what is certain; if
    nothing is, the newest undone insert. NULL if no insert stands that is newer than what is certain, or if one insert
    is all that is known. An array of {type, sequence, time, batch, address, transaction, row}, the newest one first;
    `_change_displaced` has these but for the row's own record. `row` has the other columns than the key, those of a base
    table's row only after the MERGE; it is NULL of a record that no undoing makes the row. Of copies, which differ in
    their batch alone, the first one counts. -#}
{%- macro _kept(form) -%}
{%- set has_values = reconcile.displaced_values(form) | length > 0 -%}
{%- set no_row = ', cast(null as ' ~ reconcile.type_of_displaced_row(form) ~ ') as row' if has_values -%}
if(cardinality(standing) = 0 or certain is null and undone is null and get(standing, 0)._change_sequence = get(standing, -1 + cardinality(standing))._change_sequence, null, array_sort(
    concat(
        transform(
            filter(
                if(undone is null, standing, concat(standing, array(undone))),
                (change, place) -> place = 0 or place = cardinality(standing) or change._change_sequence <> get(standing, place - 1)._change_sequence
            ),
            change -> {{ reconcile._displaced_record('change', form) }}
        ),
        if(certain_written is null, array(), array(if(
            exists(certain_later, {{ reconcile._ends('certain_written') }}),
            struct('insert' as type, certain_written._change_sequence as sequence, certain_written._change_time as time, certain_written._change_batch as batch, cast(null as string) as address, certain_written._change_transaction as transaction{{ no_row }}),
            {{ reconcile._displaced_record('certain_written', form) }}
        ))),
        transform({{ reconcile._newest_of_each_address('certain_later') }}, change -> struct('delete' as type, change.sequence as sequence, change.time as time, change.batch as batch, change.address as address, certain._change_transaction as transaction{{ no_row }})),
        if(certain is null or certain._change_transaction is not null, array(), array({{ reconcile._displaced_record('certain', form) }}))
    ),
    (one, other) -> case when one.sequence > other.sequence then -1 when one.sequence < other.sequence then 1 else 0 end
))
{%- endmacro %}

{%- macro _displaced_record(record, form) -%}
{%- set values = reconcile.displaced_values(form, record) -%}
struct(case when {{ record }}._deleted then 'delete' when {{ record }}._change_is_insert then 'insert' else 'update' end as type, {{ record }}._change_sequence as sequence, {{ record }}._change_time as time, {{ record }}._change_batch as batch, {{ record }}._row_id as address, {{ record }}._change_transaction as transaction{{ ', if(' ~ record ~ '._deleted, null, struct(' ~ values | join(', ') ~ ')) as row' if values }})
{%- endmacro %}

{#- Whether two rows keep the same beside their own records is compared without values: not all types can be compared. -#}
{%- macro _without_values(displaced) -%}
transform({{ displaced }}, change -> struct(change.type, change.sequence, change.batch, change.address, change.transaction))
{%- endmacro %}

{#- What a MERGE writes into `_change_displaced`: a fold does not have the values of the base table's row. -#}
{%- macro displaced_with_base(form) -%}
{%- set values = reconcile.displaced_values(form, 'base', form.file_format) -%}
{%- if values -%}
transform(newest._change_displaced, change -> if(change.sequence = base._change_sequence and change.row is not null, struct(change.type as type, change.sequence as sequence, change.time as time, change.batch as batch, change.address as address, change.transaction as transaction, struct({{ values | join(', ') }}) as row), change))
{%- else -%}
newest._change_displaced
{%- endif -%}
{%- endmacro %}

{#- Rows of a base table as the records of which they consist: the row itself, and its `_change_displaced` or its
    `_change_contenders`. `rows`: a relation with the base table's columns, without the values if `with_values` is false.
    Of a deleted row, the newest insert or update has no address any more: any later delete ends it, and there is one. -#}
{%- macro rows_as_records(rows, form, with_values) -%}
{%- set has_values = reconcile.displaced_values(form) | length > 0 -%}
{%- set no_row = ', cast(null as ' ~ reconcile.type_of_displaced_row(form) ~ ') as row' if has_values -%}
select
    {%- for column in form.columns %}
    {%- set name = reconcile.identifier(column.name) %}
    {%- set value = '_change_entry.row.' ~ name %}
    {%- if reconcile.stored_type(column.type.ddl, form.file_format) != column.type.ddl %}
    {%- set value = 'cast(' ~ value ~ ' as ' ~ column.type.ddl ~ ')' %}
    {%- endif %}
    {{ name if column.name in form.unique_key else ('if(_change_entry.row is null, ' ~ name ~ ', ' ~ value ~ ')' if with_values else value) ~ ' as ' ~ name }},
    {%- endfor %}
    _change_entry.type,
    _change_entry.sequence,
    _change_entry.time,
    _change_entry.batch,
    _change_entry.address,
    _change_entry.transaction,
    struct({{ reconcile._columns_of_base() | join(', ') }})
from {{ rows }}
lateral view explode(concat(
    if(_deleted and _change_contenders is not null and _change_displaced is null, array(), array(struct(
        case when _deleted then 'delete' when _change_is_insert then 'insert' else 'update' end as type,
        _change_sequence as sequence,
        _change_time as time,
        coalesce(get(filter(_change_contenders, change -> change.sequence = _change_sequence), 0).batch, _change_batch) as batch,
        _row_id as address,
        _change_transaction as transaction{{ no_row }}
    ))),
    coalesce(_change_displaced, transform(
        filter(coalesce(_change_contenders, array()), change -> not change.address <=> '' or _deleted),
        change -> struct(if(change.address = '', 'insert', 'delete') as type, change.sequence as sequence, change.time as time, change.batch as batch, nullif(change.address, '') as address, _change_transaction as transaction{{ no_row }})
    ))
)) entry as _change_entry
{%- endmacro %}

{#- The columns of a base table that the account of a range needs beside a fold. -#}
{%- macro _columns_of_base() -%}
  {{ return(['_change_sequence', '_change_time', '_change_batch', '_deleted', '_row_id', '_change_transaction', '_change_contenders', '_change_displaced']) }}
{%- endmacro %}

{#- As `newest_by_address` with `known`, if the base table has no row yet. -#}
{%- macro newest_by_address_of_all(changes, form, undoing=none) -%}
select
    *,
    cast(null as string) as _change_base_sequence,
    cast(null as timestamp) as _change_base_time,
    cast(null as boolean) as _change_base_deleted,
    cast(null as string) as _change_base_row_id,
    true as _change_replaces_base,
    false as _change_is_noted,
    _change_sequence as _change_applied_sequence
from (
    {{ reconcile.newest_by_address(changes, form, undoing) | indent(4) }}
)
{%- endmacro %}
