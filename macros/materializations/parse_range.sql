{#- Parses and checks the records of a range, and keeps them in `changes_cache`. Refuses a range of another source's or
    of several tables' records, and writes down what is new of their columns. Returns {facts, messages}: the facts of
    the records, see `facts_of_changes`, and what the run reports about their columns, a list of sentences. -#}
{%- macro parse_range(relations, settings, range) -%}
  {%- do reconcile.run_statements(reconcile.get_changes_statements(relations, settings, range)) -%}
  {%- do reconcile.refuse_unreadable_keys(
        relations.changes_cache, settings.form.unique_key, range.repair.snapshot) if range.repair -%}
  {%- set facts = reconcile.facts_of_changes(relations.changes_cache, settings.fields, settings.inputs.objects) -%}
  {%- do reconcile.refuse_other_source(settings.inputs, facts) if not range.base_batch -%}
  {%- do settings.update({'tables': reconcile.refuse_ambiguous_objects(
        settings.inputs.objects, none if range.kind == 'rebuild' else settings.built.tables, facts)}) -%}
  {%- set notes = {'statements': [], 'messages': []} if settings.as_of or range.last < range.first
        else reconcile.note_columns(relations, settings.form, settings.fields, range) -%}
  {%- do reconcile.run_statements(notes.statements) -%}
  {{ return({'facts': facts, 'messages': notes.messages}) }}
{%- endmacro %}
