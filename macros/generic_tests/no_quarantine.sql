{#- Fails on every record that could not be applied, with the reason. On a staging table, as a source, the test covers
    all models that read the table, and fails on each of their reasons. -#}
{%- test no_quarantine(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_quarantine') -%}
{%- set reasons = reconcile.quarantine_reasons(reconcile.nodes_to_test(model)) -%}
{%- do reconcile.log_reasons('no_quarantine', reasons) -%}
{%- if reconcile.is_staging_read(model) -%}
{{ reasons }}
{%- else -%}
select *
from {{ reconcile.qualified(reconcile.model_relations(model).quarantine) }}
{%- endif -%}
{%- endif -%}
{%- endtest %}
