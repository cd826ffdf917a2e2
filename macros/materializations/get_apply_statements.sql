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

{%- macro _replace_quarantine(relations, range) -%}
{{ reconcile.replace_range(relations.quarantine, range, reconcile.quarantined_records(relations.changes_cache)) }}
{%- endmacro %}
