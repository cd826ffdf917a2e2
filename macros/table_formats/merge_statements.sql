{#- A MERGE as statements, with the settings around it. Spark's own MERGE, which Iceberg uses, takes no hint. So
    settings make Spark bring the few new rows to the rows of the base table. A MERGE without inserts broadcasts the new
    rows, since they are known to be small. A MERGE with inserts is an outer join: Spark puts the new rows into a hash
    table, and the base table passes by, unsorted. With `buckets`, Spark does not shuffle the base table either, only
    the other side. After the MERGE, all settings but harmless ones are set back: otherwise a scan of staging would
    follow the partitions of its table, with one task for an object. Models in other threads of the session may meet the
    settings, which costs time and changes nothing. `buckets`: their number, none for a table without them. -#}
{%- macro merge_statements(file_format, buckets, counts, merge) -%}
  {%- set before, after = [], [] -%}
  {%- if file_format == 'iceberg' and counts.merged <= var('reconcile_broadcast_records', 100000) -%}
    {%- do before.extend([
          'set spark.sql.join.preferSortMergeJoin = false',
          'set spark.sql.autoBroadcastJoinThreshold = 100m']) -%}
    {%- do after.append('set spark.sql.autoBroadcastJoinThreshold = -1') -%}
  {%- endif -%}
  {%- if buckets -%}
    {%- do before.extend([
          'set spark.sql.sources.v2.bucketing.enabled = true',
          'set spark.sql.sources.v2.bucketing.shuffle.enabled = true',
          'set spark.sql.requireAllClusterKeysForCoPartition = false',
          'set `spark.sql.iceberg.planning.preserve-data-grouping` = true']) -%}
    {%- do after.append('set `spark.sql.iceberg.planning.preserve-data-grouping` = false') -%}
  {%- endif -%}
  {{ return(before + [merge] + after) }}
{%- endmacro %}
