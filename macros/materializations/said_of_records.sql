{#- A list of sentences: what a run reports about the records of its range, beside the counts of the ledger. `facts`:
    see `facts_of_changes`. -#}
{%- macro said_of_records(relations, settings, range, facts, counts) -%}
  {{ return(reconcile.said_of_log(relations, settings, range, counts) + reconcile.said_of_source(facts, counts) + reconcile.said_of_zero_dates(relations, facts, counts)) }}
{%- endmacro %}
