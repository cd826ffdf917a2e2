{#- Fails on every row of which only some columns are known: an update of these has come, and nothing that says what the row was before. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
select *
from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__base'})) }}
where {{ reconcile.is_pending(reconcile.order_of('_change'), '_deleted') if reconcile.takes_partial_records(reconcile.node_of(model)) else 'false' }}
{%- endif -%}
{%- endtest %}
