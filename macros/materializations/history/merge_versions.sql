{#- The MERGE inserts new records and updates the validity of their neighbours. It removes a record only beside snapshots,
    see `cache_records_beside_snapshots`. It updates every matched record, since all values that it sets follow from the set of records
    alone. `beside_snapshots`: whether staging has snapshots beside the log.

    A MERGE that only inserts is an append, and on Iceberg an append conflicts with nothing: two runs at once would both
    insert the same records. So the MERGE always has an update there. -#}
{%- macro merge_versions(relations, form, range, counts, beside_snapshots=false) -%}
{%- set columns = reconcile.history_columns(form) -%}
{%- set identifying = reconcile.identifiers(form.columns | selectattr('name', 'in', form.unique_key)) + ['_change_sequence'] -%}
{%- set values = reconcile.identifiers(form.columns | rejectattr('name', 'in', form.unique_key)) -%}
{%- set derived = (values if form.partial_records else []) + reconcile.derived_columns(form.partial_records, form.keyless)
      + reconcile.columns_of_copies(form.keyless) -%}
merge into {{ reconcile.qualified(relations.base) }} as base
using (
    {%- if beside_snapshots %}
    select {{ reconcile.broadcast_hint('record', counts.merged) }}{{ columns | join(', ') }}, false as _change_is_removed
    {%- else %}
    select {{ reconcile.broadcast_hint('record', counts.merged) }}*
    {%- endif %}
    from {{ relations.fold_cache }} as record
    where (_change_is_new or _change_is_revised)
    and {{ reconcile.base_is_unchanged(relations, range) }}
    {%- if beside_snapshots %}
    union all
    select {% for column in columns %}{{ column if column in identifying else 'null as ' ~ column }}, {% endfor %}true
    from {{ relations.removed_cache }}
    where {{ reconcile.base_is_unchanged(relations, range) }}
    {%- endif %}
) as version
on {{ reconcile.keys_match(form.unique_key, 'version', 'base', form.file_format) }} and version._change_sequence = base._change_sequence
{%- if beside_snapshots %}
when matched and version._change_is_removed then delete
{%- endif %}
{%- if counts.merged > counts.new_keys or form.file_format == 'iceberg' %}
when matched then update set
    {%- for column in derived %}
    {{ reconcile.stored_column(column, form.file_format) }} = version.{{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- endif %}
{%- if counts.new_keys %}
when not matched{{ ' and not version._change_is_removed' if beside_snapshots }} then insert ({{ (reconcile.stored_columns(form) + reconcile.columns_left(form)) | join(', ') }})
values ({% for column in columns %}version.{{ column }}{{ ', ' if not loop.last }}{% endfor %}{{ ', null' * reconcile.columns_left(form) | length }})
{%- endif %}
{%- endmacro %}
