{#- The first statement replaces the range's rows in the quarantine: if the run dies after it, the next run has the same
    range again. Then comes the one MERGE. `merge`: that MERGE, as SQL. -#}
{%- macro get_apply_statements(relations, settings, range, counts, merge) -%}
  {%- set statements = [] -%}
  {%- if settings.tables -%}
    {%- set properties = reconcile.properties_clause({'reconcile.tables': settings.tables}) -%}
    {%- do statements.append('alter table ' ~ reconcile.qualified(relations.base) ~ ' set ' ~ properties) -%}
  {%- endif -%}
  {%- if range.repair -%}
    {%- set properties = reconcile.properties_clause({'reconcile.snapshot_applied': reconcile.name_of_applied(range.repair.snapshot)}) -%}
    {%- do statements.append('alter table ' ~ reconcile.qualified(relations.base) ~ ' set ' ~ properties) -%}
  {%- endif -%}
  {%- if counts.quarantined or range.kind == 'replay' -%}
    {%- do statements.append(reconcile._replace_quarantine(relations, range)) -%}
  {%- endif -%}
  {%- if counts.merged -%}
    {%- do statements.extend(reconcile.merge_statements(settings.form.file_format, settings.buckets, counts, merge)) -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}

{#- The statement inserts by place, and BY NAME cannot stand beside REPLACE WHERE. The quarantine is a table that people
    work with: somebody may have added a column, or put the columns in another order. -#}
{%- macro _replace_quarantine(relations, range) -%}
  {%- set records = reconcile.quarantined_records(relations.changes_cache) -%}
  {%- set written = ['record', '_change_error', '_change_id', '_change_batch', 'origin'] -%}
  {%- set stored = adapter.get_column_schema_from_query('select * from ' ~ reconcile.qualified(relations.quarantine) ~ ' where false') -%}
  {%- set names = stored | map(attribute='name') | map('lower') | list -%}
  {%- set missing = written | reject('in', names) | list -%}
  {%- if missing -%}
    {%- do reconcile.raise_complaints([
          'the table ' ~ reconcile.ledger_name(relations.quarantine) ~ ' has no column ' ~ missing | join(', ') ~ ', so records that could not be applied cannot be kept there; restore its newest version, or rebuild the model with `'
          ~ reconcile._rebuild_command() ~ '`']) -%}
  {%- elif names != written -%}
    {%- set columns = [] -%}
    {%- for column in stored -%}
      {%- do columns.append(reconcile.identifier(column.name) if column.name | lower in written else 'cast(null as ' ~ column.dtype ~ ')') -%}
    {%- endfor -%}
    {%- set records = 'select ' ~ columns | join(', ') ~ '\nfrom (\n    ' ~ records | indent(4) ~ '\n)' -%}
  {%- endif -%}
{{ reconcile.replace_range(relations.quarantine, range, records) }}
{%- endmacro %}
