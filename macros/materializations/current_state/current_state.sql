{#- The rows of a table as its source has them: see "Base tables" in docs/design.md. -#}
{%- materialization current_state, adapter='spark' -%}
  {%- set run = reconcile.plan_run() -%}
  {%- set settings, relations, range = run.settings, run.relations, run.range -%}
  {%- if run.has_work -%}
    {%- set parsed = reconcile.parse_range(relations, settings, range) -%}
    {#- Keyless deletes may undo inserts: then the fold depends on them. -#}
    {%- set by_address = reconcile.keys_may_shift(settings.keyless) -%}
    {%- if by_address -%}
      {%- set keyless_count = reconcile.count_keyless_deletes(
            relations.changes_cache, settings.keyless, settings.unique_key) -%}
    {%- endif -%}
    {%- set fold = reconcile.newest_rows(relations, settings, range, keyless_count) -%}
    {%- do reconcile.run_statements(reconcile.get_fold_statements(relations, fold)) -%}
    {%- if not by_address -%}
      {%- set keyless_count = reconcile.count_keyless_deletes(
            relations.changes_cache, settings.keyless, settings.unique_key) -%}
    {%- endif -%}
    {%- if reconcile.has_keyless_deletes(settings.keyless, settings.built, keyless_count) -%}
      {%- do reconcile.run_statements(reconcile.get_cache_rows_statements(relations, settings, range)) -%}
      {%- set counts = reconcile.one_row(reconcile.counts_with_keyless_deletes(relations, settings, range)) -%}
      {%- do reconcile.run_statements(
            reconcile.get_keyless_delete_statements(relations, settings, range, keyless_count)) -%}
    {%- else -%}
      {%- set counts = reconcile.one_row(
            reconcile.column_counts(relations.changes_cache, relations.fold_cache, range.delivered)
            if settings.partial_records
            else reconcile.counts_beside_snapshot(relations, range) if settings.snapshot
            else reconcile.change_counts(relations.changes_cache, relations.fold_cache, range.delivered, settings.keyless)) -%}
    {%- endif -%}
    {%- set messages = reconcile.repair_messages(range, counts) + parsed.messages + reconcile.record_messages(relations, settings, range, parsed.facts, counts) -%}
    {%- do reconcile.write_range(relations, settings, range, counts,
          reconcile.rebuilt_rows(relations, settings, range, run.columns) if range.kind == 'rebuild'
          else reconcile.merge_newest(relations, settings, range, counts)) -%}
  {%- endif -%}

  {#- Without work, keyless_count, counts and messages are undefined. -#}
  {%- set has_keyless_deletes = reconcile.has_keyless_deletes(settings.keyless, settings.built, keyless_count) -%}
  {%- if settings.fresh -%}
    {%- set merged = range.last if run.has_work else range.first - 1 -%}
    {%- set live = reconcile.fresh_rows(relations, settings, relations.base, has_keyless_deletes, merged) -%}
  {%- else -%}
    {%- set live = reconcile.live_rows(relations, settings, has_keyless_deletes) -%}
  {%- endif -%}
  {%- do reconcile.run_statements(reconcile.get_view_statements(relations, settings, live)) -%}
  {{ return(reconcile.finish_run(run, counts, messages, has_keyless_deletes)) }}
{%- endmaterialization %}
