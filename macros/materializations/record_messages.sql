{#- A list of sentences: what a run reports about the records of its range, beside the counts of the ledger. `parsed`:
    see `parse_range`. The macro also adds `zero_dates` to `counts`, so it comes before the ledger row is written. A
    rebuild has no sentence about the order of the log, since no earlier record is there to compare with. -#}
{%- macro record_messages(relations, settings, range, parsed, counts) -%}
  {%- set checks_log_order = reconcile.have_log(settings.inputs.objects) and range.kind != 'rebuild' and not settings.as_of -%}
  {{ return(reconcile.added_messages(range.added) + reconcile.retry_messages(range.retry) + reconcile.repair_messages(range, counts) + parsed.messages
      + (reconcile.log_messages(relations.fold_cache, settings.form, counts) if checks_log_order else [])
      + reconcile.source_messages(parsed.facts, counts) + reconcile.zero_date_messages(relations, parsed.facts, counts)) }}
{%- endmacro %}

{#- A list of at most one sentence: what the snapshot beside the log has changed. -#}
{%- macro repair_messages(range, counts) -%}
  {%- if not range.repair -%}{{ return([]) }}{%- endif -%}
  {%- set snapshot = range.repair.snapshot -%}
  {{ return(['repaired at ' ~ snapshot.position_kind ~ ' ' ~ snapshot.position ~ ': ' ~ counts.snapshot_inserted ~ ' inserted, ' ~ counts.snapshot_updated ~ ' updated, '
      ~ counts.snapshot_deleted ~ ' deleted' ~ (', ' ~ counts.snapshot_in_doubt ~ ' in doubt' if counts.snapshot_in_doubt else '')]) }}
{%- endmacro %}

{#- A list of at most one sentence: what a run reports about records of another source. -#}
{%- macro source_messages(facts, counts) -%}
  {%- set is_reported = counts.quarantined and facts.of_other_source -%}
  {{ return([facts.of_other_source ~ ' of another source; the macro that fits is ' ~ facts.fitting_macro] if is_reported
      else []) }}
{%- endmacro %}
