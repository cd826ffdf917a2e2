{#- A catalog has one format: Delta and Iceberg both want to be the session's own catalog. Each catalog in which the
    models and the ledger are must have their format, and the session's settings must not change what the package's SQL
    means. `formats`: {catalog: format}, none for the session's own catalog. -#}
{%- macro check_session(formats) -%}
  {%- do adapter.dispatch('check_session', 'reconcile')(formats) -%}
{%- endmacro %}

{%- macro default__check_session(formats) -%}
  {%- do reconcile._refuse_sql_settings() -%}
  {%- for catalog, file_format in formats.items() -%}
    {%- if catalog is none or not reconcile.class_of_catalog(catalog) -%}
      {%- do reconcile._check_own_catalog(file_format) -%}
    {%- else -%}
      {%- do reconcile._check_catalog(catalog, file_format) -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{#- On Databricks, every session knows Delta, and a SQL warehouse does not say what its catalogs and extensions are. -#}
{%- macro databricks__check_session(formats) -%}
  {%- if formats.values() | reject('equalto', 'delta') | list -%}
    {{ exceptions.raise_compiler_error(
        'The file_format of the models is iceberg, and on Databricks this package builds only tables of Delta: remove the file_format, or set '
        ~ '`+file_format: delta` in dbt_project.yml.') }}
  {%- endif -%}
  {%- do reconcile._refuse_sql_settings() -%}
{%- endmacro %}

{%- macro _check_own_catalog(file_format) -%}
  {%- if file_format == 'iceberg' -%}
    {%- if 'org.apache.iceberg.spark.' not in run_query('set spark.sql.catalog.spark_catalog')[0][1] | string -%}
      {{ exceptions.raise_compiler_error(
          "This Spark session is not configured for Iceberg, the file_format of the models: set SPARK_CONF_DIR to the package's conf/iceberg/ directory "
          ~ "(dbt_packages/reconcile/conf/iceberg) and run again. With a Thrift server, set it where the server is started.") }}
    {%- endif -%}
  {%- elif 'DeltaSparkSessionExtension' not in run_query('set spark.sql.extensions')[0][1] | string -%}
    {{ exceptions.raise_compiler_error(
        "This Spark session is not configured for Delta: set SPARK_CONF_DIR to the package's conf/ directory "
        ~ "(dbt_packages/reconcile/conf) and run again. With a Thrift server, set it where the server is started.") }}
  {%- endif -%}
{%- endmacro %}

{#- A catalog with a name of its own, in which models are built. Views in it need Iceberg's extension of Spark. -#}
{%- macro _check_catalog(catalog, file_format) -%}
  {%- set of_catalog = reconcile.format_of_catalog(catalog, none) -%}
  {%- if of_catalog != file_format -%}
    {{ exceptions.raise_compiler_error(
        "The file_format of the models is " ~ file_format ~ ", and the catalog '" ~ catalog ~ "', in which this project builds tables, is of the class "
        ~ reconcile.class_of_catalog(catalog) ~ ': name another catalog, or set the `file_format` of the models to that of the catalog.') }}
  {%- elif not reconcile.has_views(catalog) -%}
    {{ exceptions.raise_compiler_error(
        "The catalog '" ~ catalog ~ "' is a hadoop catalog, which holds no views, and every model of this package has views beside its tables: "
        ~ 'build the models in a catalog of the type hive, jdbc or rest; staging tables may stay in ' ~ catalog ~ '.') }}
  {%- elif file_format == 'iceberg' and 'IcebergSparkSessionExtensions' not in run_query('set spark.sql.extensions')[0][1] | string -%}
    {{ exceptions.raise_compiler_error(
        "This project builds views in the catalog '" ~ catalog ~ "', and this Spark session has no extension for Iceberg's views: add "
        ~ 'org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions to spark.sql.extensions where the session gets its configuration.') }}
  {%- endif -%}
{%- endmacro %}

{#- The format of a catalog's tables; `otherwise` for the session's own catalog, and for one of an unknown class. -#}
{%- macro format_of_catalog(catalog, otherwise) -%}
  {{ return(adapter.dispatch('format_of_catalog', 'reconcile')(catalog, otherwise)) }}
{%- endmacro %}

{%- macro default__format_of_catalog(catalog, otherwise) -%}
  {%- set class = reconcile.class_of_catalog(catalog) | lower if catalog else '' -%}
  {{ return('iceberg' if 'iceberg' in class else 'delta' if 'delta' in class else otherwise) }}
{%- endmacro %}

{#- No setting names the class of a catalog on Databricks, where this package reads and builds only tables of Delta. -#}
{%- macro databricks__format_of_catalog(catalog, otherwise) -%}
  {{ return('delta') }}
{%- endmacro %}

{#- Settings by which the same statement reads literals, names, types or times in another way, by which a table of Delta
    gets other values than were written to it, by which a scan leaves rows out, or by which Iceberg writes rows that
    nobody reads. The name without a dot is a parameter of Databricks' SQL warehouses, in any case. Of a setting without
    a value here, each value is refused. -#}
{%- macro _refuse_sql_settings() -%}
  {%- set meaning = "which changes the meaning of this package's SQL" -%}
  {%- set other = {
      'spark.sql.parser.escapedStringLiterals': ['true', meaning], 'spark.sql.parser.quotedRegexColumnNames': ['true', meaning], 'spark.sql.caseSensitive': ['true', meaning],
      'spark.sql.timestampType': ['timestamp_ntz', meaning], 'spark.sql.legacy.timeParserPolicy': ['legacy', meaning],
      'legacy_time_parser_policy': ['legacy', meaning],
      'spark.sql.parquet.outputTimestampType': ['timestamp_millis', 'which cuts the microseconds of timestamps'],
      'spark.sql.parquet.datetimeRebaseModeInWrite': ['legacy', 'which changes days of October 1582'],
      'spark.sql.parquet.int96RebaseModeInWrite': ['legacy', 'which changes days of October 1582'],
      'spark.sql.files.ignoreMissingFiles': ['true', 'which leaves out the rows of files that are missing'],
      'spark.sql.files.ignoreCorruptFiles': ['true', 'which leaves out the rows of files that cannot be read'],
      'spark.wap.id': [none, 'with which Iceberg writes rows that nobody reads until they are published'],
      'spark.wap.branch': [none, 'with which Iceberg writes to a branch']} -%}
  {%- for row in run_query('set') -%}
    {%- set value, effect = other.get(row[0], other.get(row[0] | lower, [none, none])) -%}
    {%- if effect and row[1] and value in [none, row[1] | lower] -%}
      {{ exceptions.raise_compiler_error(
          'This Spark session has ' ~ row[0] ~ ' set to ' ~ row[1] ~ ', ' ~ effect ~ ': remove the setting where the session '
          ~ 'gets its configuration, and run again.') }}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}
