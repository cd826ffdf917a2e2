{#- Datastream's events of a MySQL table.

    Order: the number at the end of log_file, then log_position. As text `mysql-bin.1000000` would sort before
    `mysql-bin.999999`. source_timestamp is that of the statement, which is not the order of commits. -#}
{%- macro datastream_mysql(relation, object, generations=[], columns=none) -%}
{{- reconcile.datastream_change_records(
      relation, object, generations, columns,
      metadata=['log_file', 'log_position'],
      coordinates={
        'log_file': reconcile.hex_of_number("regexp_extract(metadata.log_file, " ~ reconcile.literal('(\\d+)\\s*$') ~ ", 1)"),
        'log_position': reconcile.hex_of_number('metadata.log_position'),
      },
      transaction='cast(null as string)') -}}
{%- endmacro %}
