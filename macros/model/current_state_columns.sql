{#- The columns of the base table of a `current_state`, as SQL. -#}
{%- macro current_state_columns(form) -%}
  {{ return(reconcile.identifiers(form.columns) + ['_change_sequence', '_change_time', '_change_batch', '_deleted']
      + (['_change_row_sequence', '_change_column_sequences'] if form.partial_records else [])
      + (['_row_id'] if form.row_ids else [])
      + (reconcile.columns_of_transaction(form) | list if reconcile.keys_may_shift(form.keyless) else [])) }}
{%- endmacro %}
