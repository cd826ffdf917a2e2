{#- As `newest_records`, for a source whose transactions may pass a key from row to row. The database checks keys at the
    end of a statement, so the log may have the insert of a key by one row before the delete of that key by another row.
    Of the newest transaction of a key, the newest insert or update is the key's row. If it is an update, a later delete
    at another address is of another row, and does not delete the key: see docs/decisions/0028-keys-that-shift.md.

    `_change_contenders` keeps the records that may decide once more records of this transaction come: an array of
    {address, sequence, time, batch}. It has the newest insert or update, under the empty address, and the newest later
    delete at each address. It is NULL if there is no later delete. `_change_batch` is the greatest batch of the records
    that the row keeps, so each of them leaves a trace.

    `known`: a SELECT of rows of the base table as records (see `rows_as_records`), none if there are no such rows. Its
    columns `_change_base...` are NULL if the base table has no such key. `winner` is the record that sets the row:
    `written`, or `newest` if a delete ends it. `_change_replaces_base`: whether the row replaces
    the base table's. `_change_is_noted`: whether the base table's row stays, and only what it keeps of its transaction
    changes. `_change_applied_sequence`: the sequence of the range's record that counts as applied.
    `_change_range_sequence` and `_change_range_time` are of the range's newest record. -#}
{%- macro newest_by_address(changes, settings, known=none) -%}
select
    winner.* except (_change_batch),
    greatest(winner._change_batch, array_max(transform(_change_contenders, change -> change.batch))) as _change_batch,
    _change_contenders,
    {%- if known %}
    {%- for column in reconcile._columns_of_base() %}
    base.{{ column }} as {{ reconcile.name_of_base(column) }},
    {%- endfor %}
    base is null or winner._change_sequence <> base._change_sequence as _change_replaces_base,
    winner._change_sequence <=> base._change_sequence
    and not struct(winner._change_transaction, _change_contenders) <=> struct(base._change_transaction, base._change_contenders) as _change_is_noted,
    if(array_contains(sequences, winner._change_sequence), winner._change_sequence, newest_of_range._change_sequence) as _change_applied_sequence,
    newest_of_range._change_sequence as _change_range_sequence,
    newest_of_range._change_time as _change_range_time,
    {%- endif %}
    records as _change_records,
    sequences as _change_sequences
from (
    select
        if(written is null or exists(later, change -> coalesce(written._change_is_insert or change.address = written._row_id, true)), newest, written) as winner,
        if(cardinality(later) = 0, null, concat(
            if(written is null, array(), array(struct('' as address, written._change_sequence as sequence, written._change_time as time, written._change_batch as batch))),
            array_sort(filter(later, change -> not exists(later, other -> other.address <=> change.address and struct(other.sequence, -other.batch) > struct(change.sequence, -change.batch))))
        )) as _change_contenders,
        {%- if known %}
        base,
        newest_of_range,
        {%- endif %}
        records,
        sequences
    from (
        select
            newest,
            written,
            transform(
                filter(deletes, change -> change.transaction = newest._change_transaction and change.sequence > coalesce(written._change_sequence, '')),
                change -> struct(change.address, change.sequence, change.time, change.batch)
            ) as later,
            {%- if known %}
            base,
            newest_of_range,
            {%- endif %}
            records,
            sequences
        from (
            select * except (written), if(written._change_transaction = newest._change_transaction, written, null) as written
            from (
                {{ reconcile._records_by_address(changes, settings, known) | indent(16) }}
            )
        )
    )
)
{%- endmacro %}

{#- Of each key: the newest record, the newest insert or update, and all deletes. -#}
{%- macro _records_by_address(changes, settings, known) -%}
{%- set row -%}
struct(
            {{ reconcile.columns_of_record(settings) | indent(12) }},
            _change_transaction,
            _change_type = 'insert' as _change_is_insert
        )
{%- endset -%}
{#- Copies of a record differ in their batch alone. But of a row that a table of an earlier version holds, no transaction
    is known. -#}
{%- set place = 'struct(_change_sequence, _change_transaction is not null, -_change_batch)' -%}
select
    max_by(
        {{ row }},
        {{ place }}
    ) as newest,
    max_by(
        {{ row }},
        if(_change_type = 'delete', null, {{ place }})
    ) as written,
    collect_set(if(
        _change_type = 'delete',
        struct(_change_transaction as transaction, _row_id as address, _change_sequence as sequence, _change_time as time, _change_batch as batch),
        null
    )) as deletes,
    {%- if known %}
    first(_change_base, true) as base,
    max(if(_change_base is null, struct(_change_sequence, _change_time), null)) as newest_of_range,
    count_if(_change_base is null) as records,
    collect_set(if(_change_base is null, _change_sequence, null)) as sequences
from (
    select {{ reconcile._columns_by_address(settings) | join(', ') }}, null as _change_base
    from {{ changes }}
    where _change_error is null and {{ reconcile.identifier(settings.unique_key[0]) }} is not null
    union all
    {{ known | indent(4) }}
)
    {%- else %}
    count(*) as records,
    collect_set(_change_sequence) as sequences
from {{ changes }}
where _change_error is null and {{ reconcile.identifier(settings.unique_key[0]) }} is not null
    {%- endif %}
group by {{ reconcile.key_columns(settings.unique_key) }}
{%- endmacro %}

{%- macro _columns_by_address(settings) -%}
  {{ return(reconcile.identifiers(settings.columns)
      + ['_change_type', '_change_sequence', '_change_time', '_change_batch', '_row_id', '_change_transaction']) }}
{%- endmacro %}

{#- Rows of a base table as the records of which they consist: the row itself, and its `_change_contenders`. `rows`: a
    relation with the base table's columns, without the values if `with_values` is false. Of a deleted row, the newest
    insert or update has no address any more: any later delete ends it, and there is one. -#}
{%- macro rows_as_records(rows, settings, with_values) -%}
select
    {%- for column in settings.columns %}
    {%- set name = reconcile.identifier(column.name) %}
    {{ name if with_values or column.name in settings.unique_key else 'cast(null as ' ~ column.type.ddl ~ ') as ' ~ name }},
    {%- endfor %}
    _change_entry.type,
    _change_entry.sequence,
    _change_entry.time,
    _change_entry.batch,
    _change_entry.address,
    _change_transaction,
    struct({{ reconcile._columns_of_base() | join(', ') }})
from {{ rows }}
lateral view explode(concat(
    if(_deleted and _change_contenders is not null, array(), array(struct(
        case when _deleted then 'delete' when _change_is_insert then 'insert' else 'update' end as type,
        _change_sequence as sequence,
        _change_time as time,
        coalesce(get(filter(_change_contenders, change -> change.address = ''), 0).batch, _change_batch) as batch,
        _row_id as address
    ))),
    transform(
        filter(coalesce(_change_contenders, array()), change -> not change.address <=> '' or _deleted),
        change -> struct(if(change.address = '', 'insert', 'delete') as type, change.sequence, change.time, change.batch, nullif(change.address, '') as address)
    )
)) entry as _change_entry
{%- endmacro %}

{#- The columns of a base table that the account of a range needs beside a fold. -#}
{%- macro _columns_of_base() -%}
  {{ return(['_change_sequence', '_change_time', '_deleted', '_row_id', '_change_transaction', '_change_contenders']) }}
{%- endmacro %}

{#- The name that a column of the base table has beside a fold. -#}
{%- macro name_of_base(column) -%}
{{ return('_change_base' ~ column | replace('_change', '')) }}
{%- endmacro %}

{#- As `newest_by_address` with `known`, if the base table has no row yet. -#}
{%- macro newest_by_address_of_all(changes, settings) -%}
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
    {{ reconcile.newest_by_address(changes, settings) | indent(4) }}
)
{%- endmacro %}

{#- Whether a row of a fold replaces the base table's row of its key, as SQL. -#}
{%- macro replaces_base(keyless) -%}
{%- if reconcile.keys_may_shift(keyless) -%}
_change_replaces_base
{%- else -%}
(_change_base_sequence is null or _change_sequence > _change_base_sequence)
{%- endif -%}
{%- endmacro %}
