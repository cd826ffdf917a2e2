{#- The relation of this name with its type, or none if there is none. dbt walks through all relations that it knows, so a
    run asks it once for a relation that exists. dbt-spark finds no relation whose schema has a catalog: for a table that
    Spark lists in `lake.raw`, its cache has the schema `raw`. So this macro asks Spark: once for each schema in a run, as
    dbt does. -#}
{%- macro existing_relation(relation) -%}
  {%- if reconcile.catalog_of(relation) is none or reconcile.catalog_is_database(relation) -%}
    {%- set found, found_name = graph.setdefault('reconcile_found', {}), reconcile.ledger_name(relation) -%}
    {%- if found_name not in found -%}
      {%- set existing = load_relation(relation) -%}
      {%- do found.update({found_name: existing}) if existing -%}
      {{ return(existing) }}
    {%- endif -%}
    {{ return(found[found_name]) }}
  {%- elif not execute -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set name = relation.identifier | lower -%}
  {%- set type = reconcile._listed_in_schema(relation).get(name) -%}
  {#- In a dbt build, seeds and other materializations of dbt make relations too. A test may compare with one of them,
      so a schema without the relation is listed again. -#}
  {%- if not type and flags.WHICH == 'build' and model.resource_type == 'test' -%}
    {%- do graph.reconcile_listed.pop(reconcile.schema_name(relation) | lower) -%}
    {%- set type = reconcile._listed_in_schema(relation).get(name) -%}
  {%- endif -%}
  {{ return(relation.incorporate(type=type) if type else none) }}
{%- endmacro %}

{#- Whether Spark lists a relation in its schema. dbt would find it too, by a walk through all relations that it knows:
    with a walk for each relation, a run of 2,000 models would take minutes. -#}
{%- macro is_listed(relation) -%}
  {{ return(relation.identifier | lower in reconcile._listed_in_schema(relation)) }}
{%- endmacro %}

{#- Adds relations that the run has made to the list of their schema. dbt itself does so for relations that it can
    find. -#}
{%- macro note_relations(relations) -%}
  {%- for relation in relations if reconcile.catalog_of(relation) is not none and not reconcile.catalog_is_database(relation) -%}
    {%- do reconcile._listed_in_schema(relation).update({relation.identifier | lower: relation.type | string}) -%}
  {%- endfor -%}
{%- endmacro %}

{#- What Spark lists in the schema of a relation: {name: type}; views are among the tables where they are not listed
    apart. -#}
{%- macro _listed_in_schema(relation) -%}
  {%- set schemas = graph.setdefault('reconcile_listed', {}) -%}
  {%- set schema = reconcile.schema_name(relation) | lower -%}
  {%- if schema not in schemas -%}
    {%- set listed = {} -%}
    {%- if reconcile._has_schema(relation) -%}
      {%- for kind in ['table', 'view'] if kind == 'table' or reconcile._lists_views_apart(relation) -%}
        {#- Temporary views of the session are listed too, without a schema. -#}
        {%- for row in run_query('show ' ~ kind ~ 's in ' ~ reconcile.qualified_schema(relation)) if row[0] -%}
          {%- do listed.update({row[1] | lower: kind}) -%}
        {%- endfor -%}
      {%- endfor -%}
    {%- endif -%}
    {%- do schemas.update({schema: listed}) -%}
  {%- endif -%}
  {{ return(schemas[schema]) }}
{%- endmacro %}

{#- Spark's own catalog, and Unity's, list views among the tables: that is enough for `is_listed`, which asks no more.
    To list views alone takes as long once more. -#}
{%- macro _lists_views_apart(relation) -%}
  {%- set catalog = reconcile.catalog_of(relation) -%}
  {{ return(catalog is not none and not reconcile.catalog_is_database(relation) and reconcile.has_views(catalog)) }}
{%- endmacro %}

{%- macro _has_schema(relation) -%}
  {%- set catalog, schema = reconcile.catalog_of(relation), reconcile.name_parts(relation)[-2] -%}
  {%- do reconcile.class_of_catalog(catalog) if catalog is not none and not reconcile.catalog_is_database(relation) -%}
  {%- for row in run_query('show schemas' ~ (' in ' ~ reconcile.identifier(catalog) if catalog is not none else '')) if row[0] | replace('`', '') | lower == schema | lower -%}
    {{ return(true) }}
  {%- endfor -%}
  {{ return(false) }}
{%- endmacro %}
