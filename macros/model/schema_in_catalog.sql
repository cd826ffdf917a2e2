{#- The schema of a node with the catalog that its `meta: {catalog: lake}` names, for the `generate_schema_name` of a
    project of dbt-spark: `analytics` becomes `lake.analytics`. `ref`, the tests and the docs of dbt then have the same
    name as this package. `schema` may begin with a catalog, as `ice.analytics` of a profile: a catalog that the node declares
    replaces it. -#}
{%- macro schema_in_catalog(schema, node) -%}
  {%- set catalog = reconcile.declared_catalog(node) if node else none -%}
  {{ return(catalog ~ '.' ~ schema.split('.')[-1] if catalog else schema) }}
{%- endmacro %}

{#- dbt calls this macro for a project that has `dispatch: [{macro_namespace: dbt, search_order: [reconcile, dbt]}]`. -#}
{%- macro default__generate_schema_name(custom_schema_name, node) -%}
  {{ return(reconcile.schema_in_catalog(dbt.default__generate_schema_name(custom_schema_name, node) | trim, node)) }}
{%- endmacro %}

{#- The catalog that a node or a source declares, or none. -#}
{%- macro declared_catalog(node) -%}
  {{ return((node.config.meta or node.meta or {}).get('catalog')) }}
{%- endmacro %}

{#- dbt itself must have the name with the catalog: it makes the schema, and renders `ref` and `source`. -#}
{%- macro complaints_of_catalogs(node) -%}
  {%- set complaints = [] -%}
  {%- for uid in [node.unique_id] + node.depends_on.nodes if uid in graph.sources or uid == node.unique_id -%}
    {%- set of = graph.sources.get(uid) or node -%}
    {%- set catalog, relation = reconcile.declared_catalog(of), reconcile.relation_of(of) -%}
    {%- if catalog and reconcile.catalog_of(relation) != catalog -%}
      {%- set name = catalog ~ '.' ~ reconcile.name_parts(relation)[-2] -%}
      {%- do complaints.append(
            ('source ' ~ of.source_name ~ '.' ~ of.name ~ ': ' if of is not sameas node)
            ~ 'meta catalog is ' ~ catalog ~ ', and dbt names the table ' ~ reconcile.ledger_name(relation) ~ '; write '
            ~ ('`database: ' ~ catalog ~ '` in its config' if target.database
               else '`schema: ' ~ name ~ '` in its YAML' if of is not sameas node
               else '`dispatch: [{macro_namespace: dbt, search_order: [reconcile, dbt]}]` into dbt_project.yml, or let your generate_schema_name call reconcile.schema_in_catalog')) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(complaints) }}
{%- endmacro %}
