{#- A Spark session knows one format, since both want to be its own catalog: it must be that of the models. -#}
{%- macro check_session(file_format) -%}
  {%- if file_format == 'iceberg' -%}
    {%- if 'org.apache.iceberg.spark.' not in run_query('set spark.sql.catalog.spark_catalog')[0][1] | string -%}
      {{ exceptions.raise_compiler_error(
          "This Spark session does not know Iceberg, which the models' file_format asks for: set SPARK_CONF_DIR to the package's conf/iceberg/ directory "
          ~ "(dbt_packages/reconcile/conf/iceberg), of a Thrift server where that is started, and run again.") }}
    {%- endif -%}
  {%- elif 'DeltaSparkSessionExtension' not in run_query('set spark.sql.extensions')[0][1] | string -%}
    {{ exceptions.raise_compiler_error(
        "This Spark session does not know Delta: set SPARK_CONF_DIR to the package's conf/ directory "
        ~ "(dbt_packages/reconcile/conf), of a Thrift server where that is started, and run again.") }}
  {%- endif -%}
{%- endmacro %}
