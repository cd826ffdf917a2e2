{#- Fails on every row of which only some columns are known: an update of these columns has come, but no record that
    shows what the row was before. For a history, it fails on every such version. It also fails on every row delete for
    whose address no earlier record is known. -#}
{%- test no_pending_rows(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_pending_rows') -%}
{{ reconcile.pending_rows_of(reconcile.node_of(model)) }}
{%- endif -%}
{%- endtest %}
