{#- The rows of a table as its source has them: see "Base tables" in docs/design.md. -#}
{%- materialization current_state, adapter='spark' -%}
  {%- if reconcile.is_left(this) -%}{{ return(reconcile.leave_model()) }}{%- endif -%}
  {%- set run = reconcile.plan_run() -%}
  {%- set settings, form, relations, range = run.settings, run.settings.form, run.relations, run.range -%}
  {%- if run.has_work -%}
    {%- set parsed = reconcile.parse_range(relations, settings, range) -%}
    {#- Keyless deletes may undo inserts: then the fold depends on them. -#}
    {%- set by_address = reconcile.keys_may_shift(form.keyless) -%}
    {%- if by_address -%}
      {%- set keyless_count = reconcile.count_keyless_deletes(
            relations.changes_cache, form.keyless, form.unique_key) -%}
    {%- endif -%}
    {%- set fold = reconcile.newest_beside_snapshot(relations, form, settings.snapshot, range) if settings.snapshot
          else reconcile.newest_rows(
              relations, form, range, reconcile.have_log(settings.inputs.objects), keyless_count) -%}
    {%- do reconcile.run_statements([reconcile.cached(relations.fold_cache, fold)]) -%}
    {%- if not by_address -%}
      {%- set keyless_count = reconcile.count_keyless_deletes(
            relations.changes_cache, form.keyless, form.unique_key) -%}
    {%- endif -%}
    {%- if reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) -%}
      {%- do reconcile.run_statements(
            reconcile.get_cache_rows_statements(relations, form.keyless, form.unique_key, range)) -%}
      {%- set counts = reconcile.one_row(reconcile.counts_with_keyless_deletes(relations, form, range)) -%}
      {%- do reconcile.run_statements(
            reconcile.get_keyless_delete_statements(
                  relations, settings, range, keyless_count, reconcile.deletes_are_unchanged(relations, form.keyless, range))) -%}
    {%- else -%}
      {%- set counts = reconcile.one_row(
            reconcile.counts_beside_snapshot(relations, form, settings.snapshot, range) if settings.snapshot
            else reconcile.column_counts(relations.changes_cache, relations.fold_cache, range.delivered)
            if form.partial_records
            else reconcile.change_counts(relations.changes_cache, relations.fold_cache, range.delivered, form.keyless)) -%}
    {%- endif -%}
    {%- set messages = reconcile.record_messages(relations, settings, range, parsed, counts) -%}
    {%- do reconcile.write_range(relations, settings, range, counts,
          reconcile.rebuilt_rows(relations, form, range, run.columns, settings.snapshot) if range.kind == 'rebuild'
          else reconcile.merge_newest(relations, form, range, counts, settings.snapshot),
          relations[form.keyless.kind] if reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) else none) -%}
  {%- endif -%}

  {#- Without work, keyless_count, counts and messages are undefined. -#}
  {%- set has_keyless_deletes = reconcile.has_keyless_deletes(form.keyless, settings.built, keyless_count) -%}
  {%- if settings.fresh -%}
    {%- set merged = range.last if run.has_work else range.first - 1 -%}
    {%- set live = reconcile.fresh_rows(relations, form, relations.base, has_keyless_deletes, merged) -%}
  {%- else -%}
    {%- set live = reconcile.live_rows(relations, form, has_keyless_deletes) -%}
  {%- endif -%}
  {%- do reconcile.run_statements(reconcile.get_view_statements(relations, settings, live)) -%}
  {{ return(reconcile.finish_run(run, counts, messages, has_keyless_deletes)) }}
{%- endmaterialization %}
