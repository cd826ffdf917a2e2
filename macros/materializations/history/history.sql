{#- Every version of every row of a table, as its source had them: see "Base tables" in docs/design.md. -#}
{%- materialization history, adapter='spark' -%}
  {%- if reconcile.is_left(this) -%}{{ return(reconcile.leave_model()) }}{%- endif -%}
  {%- set run = reconcile.plan_run() -%}
  {%- set settings, form, relations, range = run.settings, run.settings.form, run.relations, run.range -%}
  {%- if run.has_work -%}
    {%- set parsed = reconcile.parse_range(relations, settings, range) -%}
    {%- set keyless_count = reconcile.count_keyless_deletes(
          relations.changes_cache, form.keyless, form.unique_key) -%}
    {%- do reconcile.cache_records_beside_snapshots(relations, settings, range) if settings.snapshot -%}
    {%- set versions = reconcile.recomputed_versions(
          relations, form, range, keyless_count, reconcile.kept_records(relations) if settings.snapshot) -%}
    {%- do reconcile.run_statements([reconcile.cached(relations.fold_cache, versions)]) -%}
    {%- set counts = reconcile.one_row(
          reconcile.version_counts_with_keyless_deletes(relations, form.keyless, form.unique_key, range) if keyless_count
          else reconcile.version_counts_beside_snapshots(relations, form, range, settings.snapshot) if settings.snapshot
          else reconcile.version_counts(relations.changes_cache, relations.fold_cache, range.delivered, form.keyless)) -%}
    {%- set messages = reconcile.record_messages(relations, settings, range, parsed, counts) -%}
    {%- if reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) -%}
      {%- do reconcile.run_statements(
            reconcile.get_keyless_delete_statements(
                  relations, settings, range, keyless_count, reconcile.deletes_are_unchanged(relations, form.keyless, range))) -%}
    {%- endif -%}
    {%- do reconcile.write_range(relations, settings, range, counts,
          reconcile.rebuilt_versions(relations, form, range, run.columns) if range.kind == 'rebuild'
          else reconcile.merge_versions(relations, form, range, counts, settings.snapshot),
          relations[form.keyless.kind] if reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) else none) -%}
    {%- do reconcile.run_statements(reconcile.get_uncache_records_statements(relations)) if settings.snapshot -%}
  {%- endif -%}

  {#- Without work, keyless_count, counts and messages are undefined. -#}
  {%- set has_keyless_deletes = reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) -%}
  {%- set live = reconcile.shown_versions(relations, form) -%}
  {%- set names = reconcile.version_columns(form.row_ids, form.unique_key) | list -%}
  {%- do reconcile.run_statements(reconcile.get_view_statements(relations, settings, live, names)) -%}
  {{ return(reconcile.finish_run(run, counts, messages, has_keyless_deletes)) }}
{%- endmaterialization %}
