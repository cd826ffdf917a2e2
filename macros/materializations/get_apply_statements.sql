{#- First the quarantine, replacing the range's: should the run die behind it, the same range comes again. Then the one MERGE. -#}
{%- macro get_apply_statements(relations, range, counts, merge) -%}
  {%- set statements = [] -%}
  {%- if counts.quarantined or range.kind == 'replay' -%}
    {%- do statements.append(reconcile._replace_quarantine(relations, range)) -%}
  {%- endif -%}
  {%- if counts.merged -%}
    {%- do statements.append(merge) -%}
  {%- endif -%}
  {{ return(statements) }}
{%- endmacro %}

{%- macro _replace_quarantine(relations, range) -%}
insert into {{ reconcile.qualified(relations.quarantine) }}
replace where _change_batch between {{ range.first }} and {{ range.last }}
{{ reconcile.quarantined_records(relations.changes_cache) }}
{%- endmacro %}
