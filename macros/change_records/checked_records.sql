{#- The change records of some batches, checked for what every materialization requires: a key, a place in the order,
    whole rows. The batches are `first` to `last`, or all from `first` on if `last` is none. `sql` is the model's
    SELECT, and `fields` are its columns. If the model takes partial records, `_change_columns` names the columns beside
    the key that an update carries, in a fixed order. It is NULL if the record sets the whole row: an insert, a delete,
    or an update of all columns. A record of a history must have a time. A delete that names a place instead of a key
    needs no key (see `keyless_deletes_of`). A record may come too late, see `is_before_horizon`. `extra_columns`: columns of the SELECT that are passed on unchanged. -#}
{%- macro checked_records(sql, fields, form, first, last, extra_columns=[]) -%}
{%- set columns, keys = form.columns, form.unique_key -%}
{%- set partial_records, row_ids, keyless = form.partial_records, form.row_ids, form.keyless -%}
{%- set carried -%}
array_sort(array_distinct(filter(_change_columns, name -> name not in ({% for key in keys %}{{ reconcile.literal(key) }}{{ ', ' if not loop.last }}{% endfor %}))))
{%- endset -%}
select
    {%- for column in columns %}
    {{ reconcile.identifier(column.name) }},
    {%- endfor %}
    _change_type,
    _change_sequence,
    {%- if '_change_id' not in keys %}
    _change_id,
    {%- endif %}
    _change_time,
    _change_batch,
    {%- if partial_records %}
    if(_change_type = 'update' and cardinality({{ carried }}) < {{ columns | length - keys | length }}, {{ carried }}, null) as _change_columns,
    {%- endif %}
    {%- if row_ids %}
    _row_id,
    {%- endif %}
    {%- if reconcile.keys_may_shift(keyless) %}
    nullif(_change_transaction, '') as _change_transaction,
    {%- endif %}
    {%- if keyless.kind == 'range_deletes' %}
    _range,
    {%- endif %}
    {%- for column in extra_columns %}
    {{ column }},
    {%- endfor %}
    _change_complaint as _change_error,
    if(_change_complaint is null, null, {{ '_change_record' if '_change_record' in fields else 'to_json(struct(*))' }}) as _change_record,
    {{ '_change_origin' if '_change_origin' in fields else 'cast(null as string)' }} as _change_origin
from (
    select
        *,
        nullif(concat_ws(
            '; ',
            _change_error
            {%- for key in keys %},
            if(_change_error is null and {{ reconcile.identifier(key) }} is null{{ ' and not ' ~ reconcile.is_keyless_delete(keys, keyless.place) if keyless }}, {{ reconcile.literal('the record has no _row_id, which is the key: backfill rows may have none' if row_ids and key == '_row_id' else 'key ' ~ key ~ ' is missing or NULL') }}, null)
            {%- endfor %},
            if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
            {%- if form.materialized == 'history' %}
            if(_change_error is null and _change_time is null, 'the record has no _change_time, which is the time from which its version is valid', null),
            {%- endif %}
            {%- if partial_records %}
            if(
                _change_error is null and _change_columns is not null
                and not coalesce(forall(_change_columns, name -> name in ({% for column in columns %}{{ reconcile.literal(column.name) }}{{ ', ' if not loop.last }}{% endfor %})), false),
                concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
            )
            {%- else %}
            if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
            {%- endif %}
            {#- The last one, see `is_late`. #}
            {%- if form.horizons %},
            if(_change_error is null and {{ reconcile.is_before_horizon(form.horizons, first, last) }}, {{ reconcile.literal(reconcile.reason_of_horizon()) }}, null)
            {%- endif %}
        ), '') as _change_complaint
    from (
{{ sql }}
    )
    where _change_batch {{ '>= ' ~ first if last is none else 'between ' ~ first ~ ' and ' ~ last }}
)
{%- endmacro %}
