{#- Made anew when they are missing or their definition changed, or a type of the base table: a view casts to the types that it was
    made with. A run with nothing to apply writes nothing. `names`: the columns of the live view beside the declared ones.
    `quarantine`: where that is a view as well. -#}
{%- macro get_view_statements(relations, settings, live, names=[], quarantine=none) -%}
  {%- set statements = [] -%}
  {%- for name, query, comments in [('changes', reconcile.records_as_of(sql, settings.as_of), ''), ('live', live, reconcile._comments(settings, names)), ('quarantine', quarantine, '')] if query -%}
    {%- set built = settings.built[name] -%}
    {%- set definition = local_md5(settings.declaration ~ comments ~ reconcile.as_of_property(settings) ~ query) -%}
    {%- if built != definition and not (built and flags.EMPTY) -%}
      {%- do statements.append(
            'create or replace view ' ~ reconcile.qualified(relations[name]) ~ comments ~ '\ntblproperties (\'reconcile.definition\' = \''
            ~ definition ~ '\'' ~ reconcile.as_of_property(settings) ~ ')\nas\n' ~ query) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(statements) }}
{%- endmacro %}

{#- A view takes its comments when it is made; dbt-spark's persist_docs would alter it as a table. -#}
{%- macro _comments(settings, names) -%}
{%- set persisted = config.get('persist_docs') or {} -%}
{%- if persisted.columns %}
(
    {%- for column in settings.columns %}
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
