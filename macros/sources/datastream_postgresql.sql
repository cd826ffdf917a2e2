{#- Datastream's events of a PostgreSQL table.

    Order: lsn, two hex numbers: 0/9 lies before 0/10. For the changes of one row, only the log is right, since a
    transaction that changes the row waits for the transaction before it. source_timestamp falls when the server's clock
    is set back. -#}
{%- macro datastream_postgresql(relation, object=none, generations=[], columns=none, table=none, source_columns=none) -%}
{{- reconcile.datastream_change_records(
      'postgresql', relation, object, table, generations, columns,
      metadata=['lsn', 'tx_id'],
      coordinates={
        'lsn': reconcile.hex_of_fields('metadata.lsn', '/', 2),
      },
      positions={'lsn': {'form': '([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})', 'base': 16, 'description': 'LSN of PostgreSQL', 'example': '0/23E8430'}},
      transaction='metadata.tx_id', snapshots=true,
      source_columns=source_columns) -}}
{%- endmacro %}
