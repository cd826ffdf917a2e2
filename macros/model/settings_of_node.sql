{#- The settings from which the columns of a model's tables follow. -#}
{%- macro settings_of_node(node) -%}
  {%- set shown = reconcile.declared_columns(node.columns.values() | list) -%}
  {{ return({
      'materialized': node.config.materialized, 'columns': reconcile.row_columns(shown, reconcile.keys_of(node)), 'shown': shown, 'unique_key': reconcile.keys_of(node), 'file_format': reconcile.file_format(node),
      'partial_records': reconcile.takes_partial_records(node), 'row_ids': reconcile.takes_row_ids(node), 'keyless': reconcile.keyless_deletes_of(node),
  }) }}
{%- endmacro %}
