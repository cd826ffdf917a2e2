{#- The end of a run that filled a base table; returns what the materialization returns. `run`: as `plan_run` gives it.
    `counts`: the account of the range. `messages`: what the run reports about its records, a list of sentences. Both
    are undefined if the range had nothing to apply. `has_keyless_deletes`: whether the model has a table of keyless
    deletes, which is then among its relations. The post-hooks of the model do not run for an earlier moment (`as_of`).
    -#}
{%- macro finish_run(run, counts, messages, has_keyless_deletes) -%}
  {%- set settings, relations = run.settings, run.relations -%}
  {#- A retry that finds records of purged batches alone has nothing to apply, and says why. -#}
  {%- set messages = messages if counts else reconcile.retry_messages(run.range.retry) if run.range.retry and run.range.retry.first is none else [] -%}
  {%- set others = [relations.base, relations.changes, relations.quarantine] -%}
  {%- if has_keyless_deletes -%}
    {%- do others.append(relations[settings.form.keyless.kind]) -%}
    {%- do reconcile.run_statements(reconcile.get_note_deletes_statements(relations, settings, run.range)) -%}
  {%- endif -%}
  {{ return(reconcile.finish_model(
      relations.live, reconcile.summary(settings.as_of, settings.form.unique_key, run.range, counts, messages),
      others, [] if settings.as_of else post_hooks)) }}
{%- endmacro %}

{#- The table of keyless deletes is made when the first one comes. So its absence would look like that of a table which
    was never needed, and records that come late would bring deleted rows back. The base table says that it was made. -#}
{%- macro get_note_deletes_statements(relations, settings, range) -%}
  {%- set is_noted = settings.built.kept_deletes and range.kind != 'rebuild' -%}
  {{ return([] if is_noted or settings.as_of or flags.EMPTY
      else [reconcile._set_property(relations.base, {'reconcile.kept_deletes': settings.form.keyless.kind})]) }}
{%- endmacro %}
