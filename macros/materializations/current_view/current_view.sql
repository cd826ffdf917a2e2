{#- The rows of a table as its source has them, folded from all of staging whenever they are read: see "Base tables" in
    docs/design.md. -#}
{%- materialization current_view, adapter='spark' -%}
  {%- set settings = reconcile.model_settings() -%}
  {%- set relations = reconcile.model_relations(this) -%}
  {{ run_hooks([] if settings.as_of else pre_hooks) }}

  {%- do reconcile.refuse_missing_staging(settings.inputs) -%}
  {%- set fields = reconcile.fields_of_model(settings.form.row_ids, settings.form.keyless) -%}
  {%- do settings.update({'fields': fields}) -%}
  {%- set last = reconcile.batch_as_of(settings) if settings.as_of and not flags.EMPTY else none -%}
  {%- set purged = reconcile.purged_staging(settings, reconcile.current_state_columns(settings.form), last) -%}
  {%- if settings.snapshot -%}
    {%- do reconcile.refuse_without_side(fields) -%}
    {%- do reconcile.refuse_two_snapshots(settings.inputs.relations[0], settings.snapshot, purged.snapshot) -%}
    {%- do reconcile.refuse_missing_rows_of_snapshot(settings.inputs.relations[0], settings.snapshot) -%}
  {%- endif -%}
  {%- set statements = reconcile.get_view_statements(
        relations, settings, reconcile.fresh_rows(relations, settings.form, purged.snapshot, false, purged.batch, last),
        quarantine=reconcile._quarantined_rows(relations, settings.form, fields, last)) -%}
  {%- if statements and settings.snapshot -%}
    {%- set batch = settings.snapshot.batch -%}
    {%- do reconcile.refuse_unreadable_rows(
          '(\n' ~ reconcile.checked_records(sql, fields, settings.form, batch, batch, extra_columns=['_change_snapshot']) ~ '\n)', settings.snapshot) -%}
  {%- endif -%}
  {%- do reconcile.refuse_unmasked_of_view(settings.inputs, settings.form.columns) if statements and not flags.EMPTY -%}
  {%- do reconcile.refuse_other_source_of_view(settings.inputs, fields) if statements and not flags.EMPTY -%}
  {%- do reconcile.run_statements(statements) -%}
  {{ return(reconcile.finish_model(
      relations.live, 'MADE ANEW' if statements else 'nothing new',
      [relations.changes, relations.quarantine.incorporate(type='view')], [] if settings.as_of else post_hooks)) }}
{%- endmaterialization %}

{#- The quarantined records, with the columns of a quarantine table. `fields`: the columns of the model's SELECT.
    `last`: the last batch that counts, for an earlier moment; none otherwise. -#}
{%- macro _quarantined_rows(relations, form, fields, last) -%}
{%- set changes = reconcile.checked_records(
      'select * from ' ~ reconcile.qualified(relations.changes), fields, form, 1, last) -%}
{{ reconcile.quarantined_records('(\n    ' ~ changes | indent(4) ~ '\n)') }}
{%- endmacro %}
