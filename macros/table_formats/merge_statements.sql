{#- A MERGE as statements. Spark's own, which Iceberg has, takes no hint: so few rows come to those of the base table by settings. Where none is inserted they are broadcast,
    being known to be small; otherwise, by an outer join, they are looked up in a hash table that the base table, unsorted, passes by. By `buckets`
    the base table is not shuffled either, only the other side. All but harmless settings go back behind it: a scan of staging by the partitions of its
    table would be one task for an object. Models in other threads of the session may meet them, which costs time and changes nothing. -#}
{%- macro merge_statements(settings, counts, merge) -%}
  {%- set before, behind = [], [] -%}
  {%- if settings.file_format == 'iceberg' and counts.merged <= var('reconcile_broadcast_records', 100000) -%}
    {%- do before.extend(['set spark.sql.join.preferSortMergeJoin = false', 'set spark.sql.autoBroadcastJoinThreshold = 100m']) -%}
    {%- do behind.append('set spark.sql.autoBroadcastJoinThreshold = -1') -%}
  {%- endif -%}
  {%- if settings.buckets -%}
    {%- do before.extend([
          'set spark.sql.sources.v2.bucketing.enabled = true',
          'set spark.sql.sources.v2.bucketing.shuffle.enabled = true',
          'set spark.sql.requireAllClusterKeysForCoPartition = false',
          'set `spark.sql.iceberg.planning.preserve-data-grouping` = true']) -%}
    {%- do behind.append('set `spark.sql.iceberg.planning.preserve-data-grouping` = false') -%}
  {%- endif -%}
  {{ return(before + [merge] + behind) }}
{%- endmacro %}
