{#- The end of a run that filled a base table; returns what the materialization returns. `run`: as `plan_run` gives it.
    `counts`: the account of the range. `messages`: what the run reports about its records, a list of sentences. Both
    are undefined if the range had nothing to apply. `has_keyless_deletes`: whether the model has a table of keyless
    deletes, which is then among its relations. The post-hooks of the model do not run for an earlier moment (`as_of`).
    -#}
{%- macro finish_run(run, counts, messages, has_keyless_deletes) -%}
  {%- set settings, relations = run.settings, run.relations -%}
  {%- set others = [relations.base, relations.changes, relations.quarantine] -%}
  {%- do others.append(relations[settings.form.keyless.kind]) if has_keyless_deletes -%}
  {{ return(reconcile.finish_model(
      relations.live, reconcile.summary(settings.as_of, settings.form.unique_key, run.range, counts, messages),
      others, [] if settings.as_of else post_hooks)) }}
{%- endmacro %}
