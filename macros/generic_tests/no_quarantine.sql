{#- Fails on every record that could not be applied, with the reason. -#}
{%- test no_quarantine(model) -%}
select *
from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__quarantine'})) }}
{%- endtest %}
