{#- Datastream's events of a SQL Server table.

    Order: source_timestamp, then lsn: three hex fields, virtual log file, block and slot. -#}
{%- macro datastream_sqlserver(relation, object, generations=[], columns=none) -%}
{{- reconcile.datastream_change_records(
      relation, object, generations, columns,
      metadata=['lsn', 'tx_id'],
      coordinates={
        'source_timestamp': reconcile.hex_of_time('changed_at'),
        'lsn': reconcile.hex_of_fields('metadata.lsn', ':', 3),
      },
      transaction='metadata.tx_id') -}}
{%- endmacro %}
