{#- Makes a view anew if it is missing, if its definition changed, or if a type of the base table changed: a view casts
    to the types with which it was made. A run with nothing to apply writes nothing. `live`: the query of the live view.
    `names`: the columns of the live view beside the declared ones. `quarantine`: the query of the quarantine, if the
    quarantine is also a view. -#}
{%- macro get_view_statements(relations, settings, live, names=[], quarantine=none) -%}
  {%- set statements = [] -%}
  {%- set views = [
        ('changes', reconcile.records_as_of(sql, settings.as_of), ''),
        ('live', live, reconcile.view_comments(settings.form.columns, names)),
        ('quarantine', quarantine, '')] -%}
  {%- for name, query, comments in views if query -%}
    {%- set statement = reconcile.get_view_statement(
          relations[name], query, comments, settings.built[name], settings.declaration, settings.as_of) -%}
    {%- do statements.append(statement) if statement and not (settings.built[name] and flags.EMPTY) -%}
  {%- endfor -%}
  {{ return(statements) }}
{%- endmacro %}

{#- The statement that makes one view; none if the view has not changed. `built`: the digest of the existing view's
    definition, or none without such a view. `comments`: the clause of its comments, as `view_comments` gives it.
    `declaration` and `as_of`: those of the model that has the view. If two runs both find the view missing, both make
    it. -#}
{%- macro get_view_statement(relation, query, comments, built, declaration=none, as_of=none) -%}
  {%- set definition = local_md5((declaration or '') ~ comments ~ reconcile.as_of_property(as_of) ~ query) -%}
  {%- if built != definition -%}
    {{ return(reconcile._create_view(relation, query, comments, definition, as_of, replace=built)) }}
  {%- endif -%}
{%- endmacro %}

{%- macro _create_view(relation, query, comments, definition, as_of, replace) -%}
{{ 'create or replace view' if replace else 'create view if not exists' }} {{ reconcile.qualified(relation) }}{{ comments }}
tblproperties ('reconcile.definition' = '{{ definition }}'{{ reconcile.as_of_property(as_of) }})
as
{{ query }}
{%- endmacro %}

{#- A view gets its comments when it is made; dbt-spark's persist_docs would alter the view as if it were a table.
    `names`: the columns of the view beside the declared ones. -#}
{%- macro view_comments(columns, names=[]) -%}
{%- set persisted = config.get('persist_docs') or {} -%}
{%- if persisted.columns %}
(
    {%- for column in columns %}
    {%- set comment = reconcile.literal(model.columns[column.name].description) %}
    {{ reconcile.identifier(column.name) }} comment {{ comment }}{{ ',' if names or not loop.last }}
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
