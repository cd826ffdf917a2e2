{#- The rows of a table as its source has them: see "Base tables" in docs/design.md. -#}
{%- materialization current_state, adapter='spark' -%}
  {%- set settings = reconcile.current_state_settings() -%}
  {%- set relations = reconcile.current_state_relations(this) -%}
  {{ run_hooks(pre_hooks) }}

  {%- set range = reconcile.range_to_apply(relations, settings) -%}
  {%- if range.has_records or range.kind == 'rebuild' -%}
    {%- do reconcile.run_statements(reconcile.get_fold_statements(relations, settings, range)) -%}
    {%- set account = reconcile.column_counts if settings.partial_records else reconcile.change_counts -%}
    {%- set counts = reconcile.one_row(account(relations.changes_cache, relations.newest_cache, range.delivered)) -%}
    {%- do reconcile.run_statements(
          reconcile.get_rebuild_statements(relations, settings, counts) if range.kind == 'rebuild'
          else reconcile.get_apply_statements(relations, settings, range, counts)) -%}
    {%- do reconcile.run_statements(reconcile.get_ledger_statements(relations, settings, range, counts)) -%}
    {%- do reconcile.run_statements(reconcile.get_uncache_statements(relations)) -%}
  {%- endif -%}
  {%- do reconcile.run_statements(reconcile.get_view_statements(relations, settings)) -%}

  {%- call noop_statement('main', reconcile.summary(range, counts)) -%}{%- endcall -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=false) -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation, relations.base, relations.changes, relations.quarantine]}) }}
{%- endmaterialization %}
