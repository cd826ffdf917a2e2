{#- Fails on every row of which only some columns are known: an update of these has come, and nothing that says what the row was before; of a
    history on every such version. And on every row delete that came alone: no record tells of a row that was at its address before. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_pending_rows') -%}
{{ reconcile.rows_that_wait(reconcile.node_of(model)) }}
{%- endif -%}
{%- endtest %}

{%- macro rows_that_wait(node) -%}
{%- set keys = reconcile.keys_of(node) -%}
{%- set settings = reconcile._settings_of_node(node) -%}
{%- set relations = reconcile.model_relations(reconcile.relation_of(node)) -%}
{%- set base = reconcile.stored_rows(relations.base, settings) -%}
{%- if settings.keyless.kind == 'row_deletes' and load_relation(relations.row_deletes) %}
select *
from {{ reconcile.stored_keyless_deletes(relations, settings) }} as row_delete
where not exists (
    select 1
    from {{ reconcile.qualified(relations.changes) }} as change
    where
        change._row_id = row_delete._row_id
        and change._change_sequence < row_delete._change_sequence
        and change.{{ reconcile.identifier(keys[0]) }} is not null
)
and not exists (
    select 1
    from {{ base }} as base
    where base._row_id = row_delete._row_id and base._change_sequence < row_delete._change_sequence
)
{%- elif node.config.materialized == 'current_view' %}
{{ reconcile.pending_rows(relations, reconcile._settings_of_view(node)) }}
{%- else %}
{%- set pending = "not _change_is_known and _change_type <> 'delete'" if node.config.materialized == 'history' else reconcile.is_pending(reconcile.order_of('_change'), '_deleted') %}
select *
from {{ base }}
where {{ pending if reconcile.takes_partial_records(node) else 'false' }}
{%- endif %}
{%- endmacro %}

{#- What the columns of a model's tables follow from. -#}
{%- macro _settings_of_node(node) -%}
  {%- set shown = reconcile.declared_columns(node.columns.values() | list) -%}
  {{ return({
      'materialized': node.config.materialized, 'columns': reconcile.row_columns(shown, reconcile.keys_of(node)), 'shown': shown, 'unique_key': reconcile.keys_of(node), 'file_format': reconcile.file_format(node),
      'partial_records': reconcile.takes_partial_records(node), 'row_ids': reconcile.takes_row_ids(node), 'keyless': reconcile.keyless_deletes_of(node),
  }) }}
{%- endmacro %}

{#- What the rows of a `current_view` follow from, as it was last run. -#}
{%- macro _settings_of_view(node) -%}
  {%- set purged = reconcile.last_purged(reconcile.model_inputs(node)) -%}
  {%- set name = ((node.config.meta or {}).get('base_snapshot') or '').split('.') -%}
  {{ return(dict(reconcile._settings_of_node(node), **{
      'known': api.Relation.create(schema=name[0], identifier=name[1]) if purged and name[1] else none, 'batch': purged})) }}
{%- endmacro %}
