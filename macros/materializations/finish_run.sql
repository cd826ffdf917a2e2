{#- The end of a run that filled a base table, `run`: see `plan_run`. `counts`: the account of the range, and `said`: what
    the run reports about its records, a list of sentences; both are undefined if the range had nothing to apply. -#}
{%- macro finish_run(run, counts, said, has_keyless_deletes) -%}
  {%- set settings, relations = run.settings, run.relations -%}
  {%- set others = [relations.base, relations.changes, relations.quarantine] -%}
  {%- do others.append(relations[settings.keyless.kind]) if has_keyless_deletes -%}
  {{ return(reconcile.finish_model(
      relations.live, reconcile.summary(settings.as_of, settings.unique_key, run.range, counts, said),
      others, [] if settings.as_of else post_hooks)) }}
{%- endmacro %}
