{#- A Spark session knows only one format, since Delta and Iceberg both want to be the session's own catalog. It must be
    the format of the models, and the session's settings must not change what the package's SQL means. -#}
{%- macro check_session(file_format) -%}
  {%- do reconcile._refuse_sql_settings() -%}
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

{#- Settings by which the same statement reads literals, names, types or times in another way. -#}
{%- macro _refuse_sql_settings() -%}
  {%- set other = {
      'spark.sql.parser.escapedStringLiterals': 'true', 'spark.sql.parser.quotedRegexColumnNames': 'true', 'spark.sql.caseSensitive': 'true',
      'spark.sql.timestampType': 'timestamp_ntz', 'spark.sql.legacy.timeParserPolicy': 'legacy'} -%}
  {%- for row in run_query('set') if other.get(row[0]) == row[1] | lower -%}
    {{ exceptions.raise_compiler_error(
        'This Spark session has ' ~ row[0] ~ ' set to ' ~ row[1] ~ ", which changes the meaning of this package's SQL: remove the setting where the session "
        ~ 'gets its configuration, and run again.') }}
  {%- endfor -%}
{%- endmacro %}
