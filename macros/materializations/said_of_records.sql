{#- What a run says of the records of its range, beside what the ledger counts: a list of sentences. -#}
{%- macro said_of_records(relations, settings, range, facts, counts) -%}
  {{ return(reconcile.said_of_log(relations, settings, range, counts) + reconcile.said_of_source(facts, counts) + reconcile.said_of_zero_dates(relations, facts, counts)) }}
{%- endmacro %}
