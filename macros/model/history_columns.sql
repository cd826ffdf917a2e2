{#- The columns of the base table of a `history`, as SQL: one row for each change record, deletes too. -#}
{%- macro history_columns(form) -%}
  {{ return(reconcile.identifiers(form.columns)
      + ['_change_type', '_change_sequence', '_change_id', '_change_time', '_change_batch']
      + (['_row_id'] if form.row_ids else [])
      + (['_change_transaction'] if reconcile.keys_may_shift(form.keyless) else [])
      + (['_change_columns'] if form.partial_records else [])
      + reconcile.derived_columns(form.partial_records, form.keyless)) }}
{%- endmacro %}

{#- The columns in which copies of one record may differ, so that a later copy may change them. -#}
{%- macro columns_of_copies(keyless) -%}
  {{ return(['_change_id', '_change_time'] + (['_change_transaction'] if reconcile.keys_may_shift(keyless) else [])) }}
{%- endmacro %}

{#- The columns of a history that follow from the records before and after, beside the values of a partial record. -#}
{%- macro derived_columns(partial_records, keyless=none) -%}
  {{ return(['valid_from', 'valid_to', '_change_repeats', '_change_valid_to']
      + (['_change_is_known'] if partial_records else [])
      + (['_change_is_undone'] if reconcile.keys_may_shift(keyless) else [])) }}
{%- endmacro %}
