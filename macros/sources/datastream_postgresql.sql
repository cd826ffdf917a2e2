{#- Datastream's events of a PostgreSQL table.

    Order: source_timestamp, which is the commit's, then lsn. An LSN is two hex numbers: 0/9 lies before 0/10. -#}
{%- macro datastream_postgresql(relation, object, generations=[], columns=none) -%}
{{- reconcile.datastream_change_records(
      relation, object, generations, columns,
      metadata=['lsn', 'tx_id'],
      coordinates={
        'source_timestamp': reconcile.hex_of_time('changed_at'),
        'lsn': reconcile.hex_of_fields('metadata.lsn', '/', 2),
      },
      transaction='metadata.tx_id', snapshots=true) -}}
{%- endmacro %}
