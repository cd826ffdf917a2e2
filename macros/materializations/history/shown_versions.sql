{#- The versions as people read them. Some records in the base table are no version, and are left out: deletes, and
    where partial records are taken also the updates of a row of which only some columns are known (`_change_is_known`
    is false for both). A version that changed no declared column is also left out, unless the model says `meta:
    {fold_unchanged: false}`. The version before it is then valid up to the next version that is shown. -#}
{%- macro shown_versions(relations, form) -%}
select
    {%- for column in reconcile.identifiers(form.columns) %}
    {{ column }},
    {%- endfor %}
    {%- for name, value in reconcile.version_columns(form.row_ids, form.unique_key).items() %}
    {{ value ~ (' as ' ~ name if value != name) }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ reconcile.stored_rows(relations.base, form) }}
where
    {{ '_change_is_known' if form.partial_records else "_change_type <> 'delete'" }}
    {%- if reconcile.keys_may_shift(form.keyless) %}
    and not coalesce(_change_is_undone, false)
    {%- endif %}
    {%- if reconcile._folds_unchanged() %}
    and not _change_repeats
    {%- endif %}
{%- endmacro %}

{#- The columns of the view beside the declared ones: {name: SQL}. `row_ids`: whether records have the addresses of
    their rows. `keys`: the unique_key; the address is shown if it is the key. -#}
{%- macro version_columns(row_ids, keys) -%}
  {%- set valid_to = '_change_valid_to' if reconcile._folds_unchanged() else 'valid_to' -%}
  {%- set columns = {'valid_from': 'valid_from', 'valid_to': valid_to, 'is_current': valid_to ~ ' is null'} -%}
  {%- set address = ['_row_id'] if row_ids and '_row_id' in keys else [] -%}
  {%- for name in ['_change_type', '_change_sequence', '_change_id'] + address -%}
    {%- do columns.update({name: name}) -%}
  {%- endfor -%}
  {{ return(columns) }}
{%- endmacro %}

{%- macro _folds_unchanged() -%}
  {{ return((config.get('meta') or {}).get('fold_unchanged', true)) }}
{%- endmacro %}
