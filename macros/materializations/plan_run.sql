{#- The beginning of a run that fills a base table, with its pre-hooks: {settings, relations, columns, range,
    has_work}. `columns`: those of the base table, as SQL. `has_work`: whether the range has records, or the base table
    is made anew.

    The macros of this folder take the results under the same names: `settings` as `model_settings` gives it,
    `relations` as `model_relations`, `range` as `range_to_apply`. Later in the run `counts` is the account of the
    range, with the names of the ledger's columns, and `keyless_count` the number of keyless deletes in the range.
    `settings.built` says which relations exist: {name of a relation: the property from which it was built, none if the
    relation is missing}, and two more properties of the base table, `tables` and `snapshot`. -#}
{%- macro plan_run() -%}
  {%- set settings = reconcile.model_settings() -%}
  {%- set relations = reconcile.model_relations(this) -%}
  {%- set columns = reconcile.base_columns(settings.form) -%}
  {{ run_hooks([] if settings.as_of else pre_hooks) }}
  {%- set range = reconcile.range_to_apply(relations, settings, columns) -%}
  {#- A rebuild creates all tables again, so they need no upgrade. But a rebuild from a base snapshot keeps the table of
      keyless deletes. -#}
  {%- do reconcile.run_statements(reconcile.get_upgrade_statements(relations, settings))
        if range.kind != 'rebuild' or range.known_keyless_deletes -%}
  {%- do reconcile.take_horizon(settings, range) -%}
  {%- set has_work = range.has_records or range.kind == 'rebuild' -%}
  {#- A retry that takes a declaration writes it down itself, and no column of the table changes. -#}
  {%- if range.kind != 'rebuild' and not flags.EMPTY and not (range.retry and range.retry.declares) -%}
    {%- for message in reconcile.column_messages(relations, settings) -%}
      {%- do log(reconcile.ledger_name(relations.live) ~ ': ' ~ message, info=true) -%}
    {%- endfor -%}
    {%- set is_rewritten = reconcile.rewrites_base(settings) -%}
    {%- do reconcile.run_statements(reconcile.get_column_statements(relations, settings)) -%}
    {%- do reconcile.note_declared_in(relations, settings, reconcile.snapshot_of_declaration(relations, settings)) if is_rewritten -%}
  {%- endif -%}
  {#- With records, `parse_range` and `write_range` do this. A rebuild that died may have begun after the last batch. -#}
  {%- do reconcile.run_statements(reconcile.get_begin_retry_statements(relations, settings, range.retry)) if not has_work -%}
  {%- do reconcile.run_statements(reconcile.get_end_retry_statements(relations, range.retry)) if not has_work and range.last < range.first -%}
  {{ return({
      'settings': settings, 'relations': relations, 'columns': columns, 'range': range,
      'has_work': has_work}) }}
{%- endmacro %}
