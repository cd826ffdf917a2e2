{#- Datastream's events of a SQL Server table.

    Order: lsn, three hex fields: virtual log file, block and slot. source_timestamp does not order, since it falls when
    the server's clock is set back. -#}
{%- macro datastream_sqlserver(relation, object=none, generations=[], columns=none, table=none, source_columns=none) -%}
{{- reconcile.datastream_change_records(
      'sqlserver', relation, object, table, generations, columns,
      metadata=['lsn', 'tx_id'],
      coordinates={
        'lsn': reconcile.hex_of_fields('metadata.lsn', ':', 3),
      },
      positions={'lsn': {'form': '([0-9A-Fa-f]{1,8}):([0-9A-Fa-f]{1,8}):([0-9A-Fa-f]{1,8})', 'base': 16, 'description': 'LSN of SQL Server', 'example': '00000025:00000728:0003'}},
      transaction='metadata.tx_id',
      source_columns=source_columns) -}}
{%- endmacro %}
