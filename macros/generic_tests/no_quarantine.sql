{#- Fails on every record that could not be applied, with the reason. -#}
{%- test no_quarantine(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'no_quarantine') -%}
select *
from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__quarantine'})) }}
{%- endif -%}
{%- endtest %}
