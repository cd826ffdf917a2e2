{#- The file format of a model's tables: its config file_format. -#}
{%- macro file_format(node) -%}
  {{ return(node.config.get('file_format') or 'delta') }}
{%- endmacro %}

{#- The file formats of the models by the catalogs in which a run builds them, {catalog: format}; none for the session's
    own catalog. A catalog holds tables of one format. -#}
{%- macro file_formats() -%}
  {%- set models = {} -%}
  {%- for node in reconcile.reconciled_nodes() -%}
    {%- set catalog = reconcile.catalog_of(reconcile.destination(reconcile.relation_of(node))) -%}
    {%- set of_catalog = models.setdefault(none if catalog == 'spark_catalog' else catalog, {}) -%}
    {%- do of_catalog.setdefault(reconcile.file_format(node), []).append(node.name) -%}
  {%- endfor -%}
  {%- set formats = {} -%}
  {%- for catalog, of_catalog in models.items() -%}
    {%- for format in of_catalog if format not in ['delta', 'iceberg'] -%}
      {{ exceptions.raise_compiler_error(
          'The file_format ' ~ format ~ ' of ' ~ of_catalog[format] | sort | join(', ') ~ ' is not supported; use delta or iceberg.') }}
    {%- endfor -%}
    {%- if of_catalog | length > 1 -%}
      {%- set shown = [] -%}
      {%- for format, names in of_catalog | dictsort -%}{%- do shown.append(format ~ ' (' ~ names | sort | join(', ') ~ ')') -%}{%- endfor -%}
      {{ exceptions.raise_compiler_error(
          'Models in ' ~ ("the catalog '" ~ catalog ~ "'" if catalog else "the session's own catalog") ~ ' have several file formats: ' ~ shown | join(' and ')
          ~ '. A catalog holds tables of only one format: set the same format for all of them, by `+file_format` in dbt_project.yml, or build some of them in '
          ~ 'another catalog, by `+meta: {catalog: ...}`.') }}
    {%- endif -%}
    {%- do formats.update({catalog: of_catalog | first}) -%}
  {%- endfor -%}
  {{ return(formats) }}
{%- endmacro %}

{#- The file format of the tables of a catalog, none for the session's own. If the project builds no models there, the
    session is asked for the class of the catalog. -#}
{%- macro file_format_of_catalog(catalog) -%}
  {%- set known = graph.setdefault('reconcile_formats_of_catalogs', {}) -%}
  {%- set catalog = none if catalog == 'spark_catalog' else catalog -%}
  {%- if catalog not in known -%}
    {%- set formats = reconcile.file_formats() -%}
    {%- do known.update({catalog: formats[catalog] if catalog in formats else reconcile.format_of_catalog(catalog or 'spark_catalog', 'delta')}) -%}
  {%- endif -%}
  {{ return(known[catalog]) }}
{%- endmacro %}

{#- The file format of the package's own tables, which are in the schema of the target. -#}
{%- macro file_format_of_own_tables() -%}
  {{ return(reconcile.file_format_of_catalog(reconcile.catalog_of(reconcile.own_table('reconcile_ledger')))) }}
{%- endmacro %}
