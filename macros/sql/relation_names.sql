{#- The names of relations are put together and taken apart here, and nowhere else. A name has two parts, schema and
    table, or three, with a catalog before them.

    Adapters that know databases give the catalog as the `database` of a relation. dbt-spark refuses a database, and its
    users write the catalog before the schema, as `schema: lake.raw`; dbt-spark renders such a name as it is. In Spark's
    own catalog no schema has a dot in its name. dbt-databricks always has a database, and refuses a dot in a schema. -#}

{#- The parts of a relation's name, not quoted: [schema, table] or [catalog, schema, table]. -#}
{%- macro name_parts(relation) -%}
  {%- set schema = relation.schema | string -%}
  {%- set parts = ([relation.database] if reconcile.catalog_is_database(relation) else []) + schema.split('.') + [relation.identifier] -%}
  {%- do reconcile._refuse_name(parts, parts | join('.')) -%}
  {{ return(parts) }}
{%- endmacro %}

{#- Whether the adapter gives the catalog of a relation, or of a node, as its database. -#}
{%- macro catalog_is_database(relation) -%}
  {{ return(adapter.dispatch('catalog_is_database', 'reconcile')(relation)) }}
{%- endmacro %}

{#- Old projects of dbt-spark name the schema once more as the database. -#}
{%- macro default__catalog_is_database(relation) -%}
  {{ return(true if relation.database and relation.database != relation.schema else false) }}
{%- endmacro %}

{#- On Databricks, a catalog and a schema in it may have the same name. -#}
{%- macro databricks__catalog_is_database(relation) -%}
  {{ return(true if relation.database else false) }}
{%- endmacro %}

{#- The catalog of a relation; none for the catalog of the session. -#}
{%- macro catalog_of(relation) -%}
  {%- set parts = reconcile.name_parts(relation) -%}
  {{ return(parts[0] if parts | length == 3 else none) }}
{%- endmacro %}

{#- `name`: the name as it was written. -#}
{%- macro _refuse_name(parts, name) -%}
  {%- if '' in parts -%}
    {{ exceptions.raise_compiler_error("The name '" ~ name ~ "' has an empty part; write it as schema.table, or as catalog.schema.table.") }}
  {%- elif parts | length > 3 -%}
    {{ exceptions.raise_compiler_error("The name '" ~ name ~ "' has " ~ parts | length ~ " parts, and this package knows a schema in a catalog, but no schema in a schema; write it as catalog.schema.table.") }}
  {%- elif parts | length == 3 and not modules.re.fullmatch('[A-Za-z0-9_-]+', parts[0]) -%}
    {{ exceptions.raise_compiler_error("The name '" ~ name ~ "' begins with the catalog '" ~ parts[0] ~ "'; the name of a catalog has only ASCII letters, digits, _ and -.") }}
  {%- endif -%}
{%- endmacro %}

{#- The quoted name of a relation, since dbt-spark renders relations unquoted. Under --empty, a source is a relation
    with a limit, of which nothing is read. -#}
{%- macro qualified(relation) -%}
{%- set name = reconcile._quoted(reconcile.name_parts(relation)) -%}
{%- if relation.limit is defined and relation.limit is not none -%}
(select * from {{ name }} limit {{ relation.limit }})
{%- else -%}
{{ name }}
{%- endif -%}
{%- endmacro %}

{#- The quoted name of what Iceberg shows of a table beside its rows, `refs` for example. -#}
{%- macro qualified_metadata(relation, kind) -%}
{{ reconcile._quoted(reconcile.name_parts(relation)) }}.{{ kind }}
{%- endmacro %}

{#- The quoted name of the schema of a relation. -#}
{%- macro qualified_schema(relation) -%}
{{ reconcile._quoted(reconcile.name_parts(relation)[:-1]) }}
{%- endmacro %}

{%- macro _quoted(parts) -%}
{%- for part in parts -%}{{ reconcile.identifier(part) }}{{ '.' if not loop.last }}{%- endfor -%}
{%- endmacro %}

{#- The name of a relation in the ledger, which messages use too. -#}
{%- macro ledger_name(relation) -%}
{{- reconcile.name_parts(relation) | join('.') -}}
{%- endmacro %}

{#- The schema of a relation as dbt's YAML has it, with its catalog. -#}
{%- macro schema_name(relation) -%}
{{- reconcile.name_parts(relation)[:-1] | join('.') -}}
{%- endmacro %}

{#- The relation of a name that a user writes as schema.table or catalog.schema.table. -#}
{%- macro relation_of_name(name) -%}
  {{ return(adapter.dispatch('relation_of_name', 'reconcile')(name)) }}
{%- endmacro %}

{%- macro default__relation_of_name(name) -%}
  {%- set parts = (name | string).split('.') -%}
  {%- do reconcile._refuse_name(parts, name) -%}
  {{ return(reconcile._relation(parts)) }}
{%- endmacro %}

{#- dbt-databricks looks for a relation without a database in the old metastore of the workspace. So a name of two parts
    is in the catalog of the target. -#}
{%- macro databricks__relation_of_name(name) -%}
  {%- set full = target.database ~ '.' ~ name if (name | string).split('.') | length == 2 else name -%}
  {{ return(reconcile.default__relation_of_name(full)) }}
{%- endmacro %}

{#- Whether a text is such a name. -#}
{%- macro is_name_of_relation(name) -%}
  {{ return(modules.re.fullmatch('([A-Za-z0-9_-]+[.])?[^.]+[.][^.]+', name | string) is not none) }}
{%- endmacro %}

{#- A target with a database is of an adapter that knows databases. -#}
{%- macro _relation(parts, type=none) -%}
  {%- if parts | length == 3 and target.database -%}
    {{ return(api.Relation.create(database=parts[0], schema=parts[1], identifier=parts[2], type=type)) }}
  {%- endif -%}
  {{ return(api.Relation.create(schema=parts[:-1] | join('.'), identifier=parts[-1], type=type)) }}
{%- endmacro %}

{#- A table of the package itself, in the schema of the target. -#}
{%- macro own_table(identifier) -%}
  {{ return(reconcile._relation(([target.database] if target.database else []) + (target.schema | string).split('.') + [identifier], 'table')) }}
{%- endmacro %}

{#- The relation that a node makes, or that a source names. -#}
{%- macro relation_of(node) -%}
  {{ return(reconcile._relation(([node.database] if reconcile.catalog_is_database(node) else []) + (node.schema | string).split('.') + [node.get('identifier') or node.alias])) }}
{%- endmacro %}

{#- Whether a relation is the one that a node makes. -#}
{%- macro is_made_by(relation, node) -%}
  {{ return(reconcile.ledger_name(relation) == reconcile.ledger_name(reconcile.relation_of(node))) }}
{%- endmacro %}

{#- A relation with another schema, in the same catalog unless the schema names one itself. -#}
{%- macro in_schema(relation, schema) -%}
  {%- set parts = schema.split('.') + [relation.identifier] -%}
  {%- set catalog = reconcile.catalog_of(relation) -%}
  {%- set moved = ([catalog] if catalog and parts | length == 2 else []) + parts -%}
  {%- do reconcile._refuse_name(moved, moved | join('.')) -%}
  {%- if reconcile.catalog_is_database(relation) -%}
    {{ return(relation.incorporate(path={'database': moved[0], 'schema': moved[1]})) }}
  {%- endif -%}
  {{ return(relation.incorporate(path={'schema': moved[:-1] | join('.')})) }}
{%- endmacro %}
