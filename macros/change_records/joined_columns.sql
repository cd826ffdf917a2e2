{#- The columns of the base table's row `base`, joined with those of `newest`, as {column: SQL}. `newest`: as
    `columns_with_base` gives it. Each column has its value from the newer record, whichever of the two came first. If
    the base table has no such row, `base` is all NULL. `file_format`: given if `base` is the table itself, and not what
    `stored_rows` makes of it. -#}
{%- macro joined_columns(columns, keys, file_format=none) -%}
  {%- set known, incoming = reconcile.order_of('base._change'), reconcile.order_of('newest._change') -%}
  {%- set joined = reconcile.joined_order(known, incoming) -%}
  {%- set values = {} -%}
  {%- for column in columns if column.name not in keys -%}
    {%- set name = reconcile.identifier(column.name) -%}
    {%- do values.update({name: 'if(' ~ reconcile.sequence_of_column(incoming, column.name) ~ ' > ' ~ reconcile.sequence_of_column(known, column.name)
          ~ ', newest.' ~ name ~ ', base.' ~ reconcile.stored_column(name, file_format) ~ ')'}) -%}
  {%- endfor -%}
  {{ return(dict(values, **{
      '_change_sequence': joined.newest,
      '_change_time': "if(newest._change_sequence > coalesce(base._change_sequence, ''), newest._change_time, base._change_time)",
      '_change_batch': 'greatest(base._change_batch, array_max(transform(newest._change_writers, record -> record.batch)))',
      '_deleted': "if(newest._change_row_sequence > coalesce(base._change_row_sequence, ''), newest._deleted, coalesce(base." ~ reconcile.stored_column('_deleted', file_format) ~ ", false))",
      '_change_row_sequence': joined.row,
      '_change_column_sequences': joined.columns,
  })) }}
{%- endmacro %}
