{#- The form of a model: what follows from its declarations alone, and says what its records and its stored rows look
    like. {materialized, columns, shown, unique_key, file_format, partial_records, row_ids, keyless, source_columns}.
    `columns`: those in which a row is kept; `shown`: those that the live view shows. `keyless`: see
    `keyless_deletes_of`. `source_columns`: the names of those that are no fields of the payload. In a run, the
    settings have it as `form`, and there it also says what is otherwise of the base table, see `stored_form`. -#}
{%- macro form_of_node(node) -%}
  {%- set shown = reconcile.declared_columns(node.columns.values() | list) -%}
  {%- set keys = reconcile.keys_of(node) -%}
  {{ return({
      'materialized': node.config.materialized, 'columns': reconcile.row_columns(shown, keys), 'shown': shown,
      'unique_key': keys, 'file_format': reconcile.file_format(node),
      'partial_records': reconcile.takes_partial_records(node), 'row_ids': reconcile.takes_row_ids(node),
      'keyless': reconcile.keyless_deletes_of(node),
      'source_columns': reconcile.source_columns_of(reconcile.model_inputs(node).objects) | list,
  }) }}
{%- endmacro %}

{#- The columns in which a model keeps a row: the declared ones, and the event's id if that is the key. -#}
{%- macro row_columns(columns, keys) -%}
  {{ return(([{'name': '_change_id', 'type': reconcile.column_type('string'), 'round': false}] if '_change_id' in keys else []) + columns) }}
{%- endmacro %}
