{#- A list of sentences: what a run reports about the records of its range, beside the counts of the ledger. `facts`:
    see `facts_of_changes`. -#}
{%- macro record_messages(relations, settings, range, facts, counts) -%}
  {%- set of_log = reconcile.have_log(settings.inputs.objects) and range.kind != 'rebuild' and not settings.as_of -%}
  {{ return((reconcile.log_messages(relations.fold_cache, settings.form, counts) if of_log else [])
      + reconcile.source_messages(facts, counts) + reconcile.zero_date_messages(relations, facts, counts)) }}
{%- endmacro %}
