{#- Fails on every row of which only some columns are known: an update of these has come, and nothing that says what the row was before; of a
    history on every such version. And on every row delete that came alone: no record tells of a row that was at its address before. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_pending_rows') -%}
{{ reconcile.rows_that_wait(reconcile.node_of(model)) }}
{%- endif -%}
{%- endtest %}
