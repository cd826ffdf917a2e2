{#- Made anew when they are missing or their definition changed; a run with nothing to apply writes nothing. -#}
{%- macro get_view_statements(relations, settings) -%}
  {%- set live -%}
select
    {%- for column in settings.columns %}
    {{ reconcile.identifier(column.name) }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ reconcile.qualified(relations.base) }}
where not _deleted
  {%- endset -%}
  {%- set statements = [] -%}
  {%- for relation, query in [(relations.changes, sql), (relations.live, live)] -%}
    {%- if should_full_refresh() or reconcile._view_definition(relation) != local_md5(query) -%}
      {%- do statements.append(
            'create or replace view ' ~ reconcile.qualified(relation) ~ '\ntblproperties (\'reconcile.definition\' = \''
            ~ local_md5(query) ~ '\')\nas\n' ~ query) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(statements) }}
{%- endmacro %}

{%- macro _view_definition(relation) -%}
  {%- if load_relation(relation) -%}
    {%- for row in run_query('show tblproperties ' ~ reconcile.qualified(relation)) if row[0] == 'reconcile.definition' -%}
      {{ return(row[1]) }}
    {%- endfor -%}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}
