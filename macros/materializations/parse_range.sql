{#- Parses and checks the records of a range, and keeps them in `changes_cache`. Refuses a range of another source's or
    of several tables' records, and writes down what is new of their columns. Returns {facts, messages}: the facts of
    the records, see `facts_of_changes`, and what the run reports about their columns, a list of sentences. -#}
{%- macro parse_range(relations, settings, range) -%}
  {%- do reconcile.run_statements(reconcile.get_changes_statements(relations, settings, range)) -%}
  {%- do reconcile.refuse_unreadable_rows(relations.changes_cache, range.repair.snapshot) if range.repair -%}
  {%- set facts = reconcile.facts_of_changes(relations.changes_cache, settings.fields, settings.inputs.objects) -%}
  {%- do reconcile.refuse_other_source(settings.inputs, facts) if not range.base_batch -%}
  {%- do reconcile.refuse_ambiguous_objects(settings, range, facts) -%}
  {%- set notes = reconcile.note_columns(relations, settings, range) -%}
  {%- do reconcile.run_statements(notes.statements) -%}
  {{ return({'facts': facts, 'messages': notes.messages}) }}
{%- endmacro %}
