{#- The pending rows of a model, for the test `no_pending_rows` and for `reconcile_status`: the rows of which only some
    columns are known, and the row deletes for whose address no earlier record is known. Of batches that were purged
    from staging, nothing tells any more whether an insert is known: the base table does not keep all inserts that were
    undone. -#}
{%- macro pending_rows_of(node) -%}
{%- set keys = reconcile.keys_of(node) -%}
{%- set relations = reconcile.model_relations(reconcile.relation_of(node)) -%}
{%- set form = reconcile.form_of_table(node, relations.base) -%}
{%- set base = reconcile.stored_rows(relations.base, form) -%}
{%- if form.keyless.kind == 'row_deletes' and reconcile.existing_relation(relations.row_deletes) %}
{%- set purged = reconcile.last_purged(reconcile.model_inputs(node)) %}
select *
from {{ reconcile.stored_keyless_deletes(relations, form.keyless, form.file_format) }} as row_delete
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
{%- if purged %}
and row_delete._change_batch > {{ purged }}
{%- endif %}
{%- elif node.config.materialized == 'current_view' %}
{#- The table and the batch from which the rows of the view follow since its last run. -#}
{%- set purged = reconcile.last_purged(reconcile.model_inputs(node)) %}
{%- set name = (node.config.meta or {}).get('base_snapshot') %}
{%- set kept = reconcile.kept_copy(reconcile.relation_of(node), name) if purged else none %}
{%- set known = kept.relation if kept else none %}
{{ reconcile.pending_rows(relations, form, known, purged) }}
{%- else %}
{%- set pending = "not _change_is_known and _change_type <> 'delete'" if node.config.materialized == 'history'
      else reconcile.is_pending(reconcile.order_of('_change'), '_deleted') %}
select *
from {{ base }}
where {{ pending if reconcile.takes_partial_records(node) else 'false' }}
{%- endif %}
{%- endmacro %}
