{#- The form of a model: what follows from its declarations alone, and says what its records and its stored rows look
    like. {materialized, columns, shown, unique_key, file_format, partial_records, row_ids, keyless}. `columns`: those in
    which a row is kept; `shown`: those that the live view shows. `keyless`: see `keyless_deletes_of`. A run has the same
    in its settings, validated: see `model_settings`. -#}
{%- macro form_of_node(node) -%}
  {%- set shown = reconcile.declared_columns(node.columns.values() | list) -%}
  {{ return({
      'materialized': node.config.materialized, 'columns': reconcile.row_columns(shown, reconcile.keys_of(node)), 'shown': shown,
      'unique_key': reconcile.keys_of(node), 'file_format': reconcile.file_format(node),
      'partial_records': reconcile.takes_partial_records(node), 'row_ids': reconcile.takes_row_ids(node),
      'keyless': reconcile.keyless_deletes_of(node),
  }) }}
{%- endmacro %}
