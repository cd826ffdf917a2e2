{#- A list of sentences: what a run reports about the records of its range, beside the counts of the ledger. `facts`:
    see `facts_of_changes`. -#}
{%- macro record_messages(relations, settings, range, facts, counts) -%}
  {{ return(reconcile.log_messages(relations, settings, range, counts) + reconcile.source_messages(facts, counts) + reconcile.zero_date_messages(relations, facts, counts)) }}
{%- endmacro %}
