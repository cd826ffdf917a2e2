{#- Only a newer record replaces a row, and a deleted row stays as a tombstone: no order of arrival can bring the row
    back. Where partial records are taken, each column is replaced on its own (see `joined_columns`), and no record is
    too old for that. Where keys may shift, a row may stay and only what it keeps of its transaction may change (see
    `newest_by_address`). If no key is new, the MERGE has no insert, and Delta needs no outer join, for which it would
    shuffle the base table. In `counts`, `merged` is the number of rows that the MERGE takes, and `new_keys` the number
    of keys that the base table does not have. `beside_snapshot`: whether staging has a snapshot beside the log. -#}
{%- macro merge_newest(relations, form, range, counts, beside_snapshot) -%}
{%- set columns = reconcile.current_state_columns(form) -%}
{%- set by_address = reconcile.keys_may_shift(form.keyless) -%}
merge into {{ reconcile.qualified(relations.base) }} as base
using (
    select {{ reconcile.broadcast_hint('record', counts.merged) }}*
    from {{ relations.fold_cache }} as record
    {%- if beside_snapshot %}
    where _change_is_merged
    {%- elif form.partial_records %}
    where cardinality(_change_writers) > 0
    {%- elif by_address %}
    where (_change_replaces_base or _change_is_noted)
    {%- else %}
    where (_change_base_sequence is null or _change_sequence > _change_base_sequence)
    {%- endif %}
    and {{ reconcile.base_is_unchanged(relations, range) }}
) as newest
on {{ reconcile.keys_match(form.unique_key, 'newest', 'base', form.file_format) }}
{%- if form.partial_records %}
when matched then update set
    {%- set joined = reconcile.joined_columns(form.columns, form.unique_key, form.file_format) %}
    {%- for column, value in joined.items() %}
    {{ reconcile.stored_column(column, form.file_format) }} = {{ value }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- else %}
when matched and {% if by_address %}newest._change_replaces_base{% else %}newest._change_sequence > base._change_sequence{% endif %} then update set
    {%- for column in columns %}
    {{ reconcile.column_of_table(column, form) }} = {{ reconcile.displaced_with_base(form) if column == '_change_displaced' else 'newest.' ~ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- if by_address %}
when matched then update set
    {%- for column in reconcile.columns_of_transaction(form) | list + ['_change_batch'] %}
    {{ column }} = newest.{{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- endif %}
{%- endif %}
{%- if counts.new_keys %}
when not matched then insert ({{ (reconcile.stored_columns(form) + reconcile.columns_left(form)) | join(', ') }})
values ({% for column in columns %}newest.{{ column }}{{ ', ' if not loop.last }}{% endfor %}{{ ', null' * reconcile.columns_left(form) | length }})
{%- endif %}
{%- endmacro %}
