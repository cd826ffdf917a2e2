{#- The version that a table has now; none if nothing was ever written to it. `file_format`: that of the session's own
    catalog; a catalog with a name has a format of its own. -#}
{%- macro table_version(relation, file_format) -%}
  {%- if reconcile.format_of_catalog(reconcile.catalog_of(relation), file_format) == 'iceberg' -%}
    {%- set versions = run_query('select snapshot_id from ' ~ reconcile.qualified_metadata(relation, 'refs') ~ " where name = 'main'") -%}
  {%- else -%}
    {%- set versions = run_query('describe history ' ~ reconcile.qualified(relation) ~ ' limit 1') -%}
  {%- endif -%}
  {{ return(versions[0][0] if versions else none) }}
{%- endmacro %}

{#- A table as SQL, as it was at a version. -#}
{%- macro at_version(relation, version) -%}
{{ reconcile.qualified(relation) ~ (' version as of ' ~ version if version is not none else '') }}
{%- endmacro %}
