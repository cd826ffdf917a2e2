{#- Every version of every row of a table, as its source had them: see "Base tables" in docs/design.md. -#}
{%- materialization history, adapter='spark' -%}
  {%- set settings = reconcile.model_settings() -%}
  {%- set relations = reconcile.model_relations(this) -%}
  {%- set columns = reconcile.history_columns(settings) -%}
  {{ run_hooks([] if settings.as_of else pre_hooks) }}

  {%- set range = reconcile.range_to_apply(relations, settings, columns) -%}
  {%- if range.has_records or range.kind == 'rebuild' -%}
    {%- do reconcile.run_statements(reconcile.get_changes_statements(relations, settings, range)) -%}
    {%- set facts = reconcile.facts_of_changes(relations.changes_cache, settings.fields, settings.inputs.objects) -%}
    {%- do reconcile.refuse_other_source(settings.inputs, facts) if not range.base_batch -%}
    {%- do reconcile.refuse_doubtful_objects(settings, range, facts) -%}
    {%- set notes = reconcile.note_columns(relations, settings, range) -%}
    {%- do reconcile.run_statements(notes.statements) -%}
    {%- set come = reconcile.come_keyless_deletes(relations.changes_cache, settings.keyless, settings.unique_key) -%}
    {%- do reconcile.run_statements(reconcile.get_fold_statements(relations, reconcile.mended_versions(relations, settings, range, come))) -%}
    {%- set counts = reconcile.one_row(
          reconcile.version_counts_with_keyless_deletes(relations, settings, range) if come
          else reconcile.version_counts(relations.changes_cache, relations.fold_cache, range.delivered)) -%}
    {%- do notes.said.extend(reconcile.said_of_records(relations, settings, range, facts, counts)) -%}
    {%- if reconcile.has_keyless_deletes(settings.keyless, settings.built, come) -%}
      {%- do reconcile.run_statements(reconcile.get_keyless_delete_statements(relations, settings, range, come)) -%}
    {%- endif -%}
    {%- do reconcile.run_statements(
          reconcile.get_rebuild_statements(relations, settings, range, reconcile.rebuilt_versions(relations, settings, range, columns)) if range.kind == 'rebuild'
          else reconcile.get_apply_statements(relations, settings, range, counts, reconcile.merge_versions(relations, settings, range, counts))) -%}
    {%- do reconcile.run_statements(reconcile.get_ledger_statements(relations, settings, range, counts)) -%}
    {%- do reconcile.run_statements(reconcile.get_uncache_statements(relations)) -%}
  {%- endif -%}
  {%- set shown = reconcile.shown_versions(relations, settings) -%}
  {%- set names = reconcile.version_columns(settings.row_ids, settings.unique_key) | list -%}
  {%- do reconcile.run_statements(reconcile.get_view_statements(relations, settings, shown, names)) -%}

  {%- call noop_statement('main', reconcile.summary(settings.as_of, settings.unique_key, range, counts, notes)) -%}{%- endcall -%}
  {%- set target_relation = relations.live.incorporate(type='view') -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=false) -%}
  {{ run_hooks([] if settings.as_of else post_hooks) }}
  {%- set has_keyless_deletes = reconcile.has_keyless_deletes(settings.keyless, settings.built, come) -%}
  {{ return({'relations': [target_relation, relations.base, relations.changes, relations.quarantine] + ([relations[settings.keyless.kind]] if has_keyless_deletes else [])}) }}
{%- endmaterialization %}
