{#- The name of a relation in the ledger, which messages use too. -#}
{%- macro ledger_name(relation) -%}
{{- relation.schema ~ '.' ~ relation.identifier -}}
{%- endmacro %}
