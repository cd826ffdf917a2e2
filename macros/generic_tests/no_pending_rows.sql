{#- Fails on every row of which only some columns are known: an update of these has come, and nothing that says what the row was before. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
{%- set node = reconcile.node_of(model) -%}
{%- set partial_records = reconcile.takes_partial_records(node) -%}
{%- if node.config.materialized == 'current_view' -%}
{{ reconcile.pending_rows(reconcile.model_relations(model), reconcile._settings_of_view(node, partial_records)) }}
{%- else -%}
select *
from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__base'})) }}
where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') if partial_records else 'false' }}
{%- endif -%}
{%- endif -%}
{%- endtest %}

{#- What its rows follow from, as it was last run. -#}
{%- macro _settings_of_view(node, partial_records) -%}
  {%- set purged = reconcile.last_purged(reconcile.model_inputs(node)) -%}
  {%- set name = ((node.config.meta or {}).get('base_snapshot') or '').split('.') -%}
  {{ return({
      'columns': reconcile.declared_columns(node.columns.values() | list), 'partial_records': partial_records,
      'unique_key': [node.config.unique_key] if node.config.unique_key is string else node.config.unique_key,
      'known': api.Relation.create(schema=name[0], identifier=name[1]) if purged and name[1] else none, 'batch': purged,
  }) }}
{%- endmacro %}
