{#- The columns of the base table of a `current_state`, as SQL. -#}
{%- macro current_state_columns(settings) -%}
  {{ return(reconcile.identifiers(settings.columns) + ['_change_sequence', '_change_time', '_change_batch', '_deleted']
      + (['_change_row_sequence', '_change_column_sequences'] if settings.partial_records else [])
      + (['_row_id'] if settings.row_ids else [])
      + (reconcile.columns_of_transaction(settings) | list if reconcile.keys_may_shift(settings.keyless) else [])) }}
{%- endmacro %}
