{#- Made anew when they are missing or their definition changed, or a type of the base table: a view casts to the types that it was
    made with. A run with nothing to apply writes nothing. `names`: the columns of the live view beside the declared ones.
    `quarantine`: where that is a view as well. -#}
{%- macro get_view_statements(relations, settings, live, names=[], quarantine=none) -%}
  {%- set statements = [] -%}
  {%- for name, query, comments in [('changes', reconcile.records_as_of(sql, settings.as_of), ''), ('live', live, reconcile.view_comments(settings.columns, names)), ('quarantine', quarantine, '')] if query -%}
    {%- set statement = reconcile.get_view_statement(relations[name], query, comments, settings.built[name], settings) -%}
    {%- do statements.append(statement) if statement and not (settings.built[name] and flags.EMPTY) -%}
  {%- endfor -%}
  {{ return(statements) }}
{%- endmacro %}

{#- The statement that makes one view, none if it is as it was `built`, which is none where there is no such view; `settings` of the
    model that it belongs to. Of two runs that find it missing both make it. -#}
{%- macro get_view_statement(relation, query, comments, built, settings={}) -%}
  {%- set definition = local_md5((settings.declaration or '') ~ comments ~ reconcile.as_of_property(settings) ~ query) -%}
  {%- if built != definition -%}
    {{ return(('create or replace view ' if built else 'create view if not exists ') ~ reconcile.qualified(relation) ~ comments ~ '\ntblproperties (\'reconcile.definition\' = \''
          ~ definition ~ '\'' ~ reconcile.as_of_property(settings) ~ ')\nas\n' ~ query) }}
  {%- endif -%}
{%- endmacro %}

{#- A view takes its comments when it is made; dbt-spark's persist_docs would alter it as a table. -#}
{%- macro view_comments(columns, names=[]) -%}
{%- set persisted = config.get('persist_docs') or {} -%}
{%- if persisted.columns %}
(
    {%- for column in columns %}
    {{ reconcile.identifier(column.name) }} comment {{ reconcile.literal(model.columns[column.name].description) }}{{ ',' if names or not loop.last }}
    {%- endfor %}
    {%- for name in names %}
    {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endif -%}
{%- if persisted.relation %}
comment {{ reconcile.literal(model.description) }}
{%- endif -%}
{%- endmacro %}
