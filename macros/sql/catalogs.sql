{#- The class of a catalog that the session names. Spark takes the name of a catalog that it does not know for the name
    of a schema, and its error is about that. Where the adapter knows databases, the platform may have catalogs that no
    setting names: their class is an empty text. -#}
{%- macro class_of_catalog(catalog) -%}
  {%- set class = reconcile._setting_of_catalog(catalog) -%}
  {%- if not class and not target.database -%}
    {{ exceptions.raise_compiler_error("This Spark session has no catalog '" ~ catalog ~ "': set spark.sql.catalog." ~ catalog
        ~ ' and its options where the session gets its configuration, or correct the name of the catalog.') }}
  {%- endif -%}
  {{ return(class) }}
{%- endmacro %}

{#- Whether a catalog can hold views. Of Iceberg's catalogs, a hadoop catalog cannot. -#}
{%- macro has_views(catalog) -%}
  {{ return('hadoop' not in (reconcile._setting_of_catalog(catalog, '.type') ~ ' ' ~ reconcile._setting_of_catalog(catalog, '.catalog-impl')) | lower) }}
{%- endmacro %}

{#- A setting of a catalog, asked once in a run; an empty text if it is not set. -#}
{%- macro _setting_of_catalog(catalog, option='') -%}
  {%- set known = graph.setdefault('reconcile_settings_of_catalogs', {}) -%}
  {%- set key = 'spark.sql.catalog.' ~ catalog ~ option -%}
  {%- if key not in known -%}
    {%- set value = run_query('set ' ~ reconcile.identifier(key))[0][1] | string -%}
    {%- do known.update({key: '' if value == '<undefined>' else value}) -%}
  {%- endif -%}
  {{ return(known[key]) }}
{%- endmacro %}
