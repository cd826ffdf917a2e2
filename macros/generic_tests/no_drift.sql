{#- Fails on columns of the records that the model does not declare, on declared ones that the records stopped to have, and on values or names of another form than before;
    not on those that the model names under `meta: {ignored_columns: [...]}`. It reads what runs have noted: a `current_view` has none. -#}
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
