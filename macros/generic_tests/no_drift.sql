{#- Fails on columns of the records that the model does not declare, on declared columns that the records no longer
    have, and on values or names of another form than before. Columns that the model names under `meta:
    {ignored_columns: [...]}` are no failure. The test reads what runs have noted; no run notes anything for a
    `current_view`. -#}
{%- test no_drift(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_drift') -%}
select *
from (
    {{ reconcile.drift_of([reconcile.noted_node(model, 'no_drift')]) | indent(4) }}
)
where kind = 'column' and finding <> 'ignored'
{%- endif -%}
{%- endtest %}
