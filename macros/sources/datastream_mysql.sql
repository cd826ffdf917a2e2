{#- Datastream's events of a MySQL table.

    Order: the number at the end of log_file, then log_position. As text, `mysql-bin.1000000` would sort before
    `mysql-bin.999999`. A stream that follows GTIDs calls these fields binlog_file and binlog_position. source_timestamp
    is the time of the statement, which does not give the order of commits. The metadata have no transaction. Bytes
    arrive as hex text. -#}
{%- macro datastream_mysql(relation, object=none, generations=[], columns=none, table=none, source_columns=none) -%}
{{- reconcile.datastream_change_records(
      'mysql', relation, object, table, generations, columns,
      metadata=['log_file', 'log_position', 'binlog_file', 'binlog_position'],
      coordinates={
        'log_file': reconcile.hex_of_number("regexp_extract(coalesce(metadata.log_file, metadata.binlog_file), " ~ reconcile.literal('(\\d+)\\s*$') ~ ", 1)"),
        'log_position': reconcile.hex_of_number('coalesce(metadata.log_position, metadata.binlog_position)'),
      },
      positions={
        'log_file': {'form': '(?:.*[^0-9])?([0-9]{1,18})', 'description': 'file name that ends with its number', 'example': 'mysql-bin.000017'},
        'log_position': {'form': '([0-9]{1,18})', 'description': 'whole number', 'example': 4},
      },
      transaction='cast(null as string)', encoding='hex', zero_dates=true,
      source_columns=source_columns) -}}
{%- endmacro %}
