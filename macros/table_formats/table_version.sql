{#- The version that a table has now; none if nothing was ever written to it. -#}
{%- macro table_version(relation, file_format) -%}
  {%- if file_format == 'iceberg' -%}
    {%- set versions = run_query('select snapshot_id from ' ~ reconcile.qualified_metadata(relation, 'refs') ~ " where name = 'main'") -%}
  {%- else -%}
    {%- set versions = run_query('describe history ' ~ reconcile.qualified(relation) ~ ' limit 1') -%}
  {%- endif -%}
  {{ return(versions[0][0] if versions else none) }}
{%- endmacro %}

{#- The snapshot that a table of Iceberg has now, and its number in the table's sequence, as `<snapshot> <number>`. A
    later snapshot has a greater number, also once the earlier one has expired. -#}
{%- macro snapshot_in_sequence(relation) -%}
  {%- set snapshots = run_query(
        "select concat_ws(' ', latest_snapshot_id, latest_sequence_number) as snapshot from " ~ reconcile.qualified_metadata(relation, 'metadata_log_entries')
        ~ ' order by timestamp desc limit 1') -%}
  {{ return(snapshots[0][0] if snapshots else '') }}
{%- endmacro %}

{#- A table as SQL, as it was at a version. -#}
{%- macro at_version(relation, version) -%}
{{ reconcile.qualified(relation) ~ (' version as of ' ~ version if version is not none else '') }}
{%- endmacro %}
