{#- Fails on every row of which only some columns are known: an update of these has come, and nothing that says what the row was before. Of a
    history, on every such version. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
{%- set node = reconcile.node_of(model) -%}
{%- set pending = "not _change_is_known and _change_type <> 'delete'" if node.config.materialized == 'history' else reconcile.is_pending(reconcile.order_of('_change'), '_deleted') -%}
select *
from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__base'})) }}
where {{ pending if reconcile.takes_partial_records(node) else 'false' }}
{%- endif -%}
{%- endtest %}
