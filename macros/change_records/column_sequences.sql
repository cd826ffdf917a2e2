{#- The order of a row from partial records: the sequence of its newest record, the sequence of the record that last set
    the whole row (NULL if none is known), and the sequence of each column that changed since. Two such orders, of the
    base table and of a range of batches, are joined: of each sequence, the greater one counts. So neither the order of
    the joins nor a repetition matters. `one` and `other` are {newest, row, columns}, SQL for each. -#}
{%- macro joined_order(one, other) -%}
  {%- set row = 'greatest(' ~ one.row ~ ', ' ~ other.row ~ ')' -%}
  {{ return({
      'newest': 'greatest(' ~ one.newest ~ ', ' ~ other.newest ~ ')',
      'row': row,
      'columns': 'map_filter(map_zip_with('
          ~ reconcile._or_empty(one.columns) ~ ', ' ~ reconcile._or_empty(other.columns)
          ~ ', (name, sequence, rival) -> greatest(sequence, rival)), (name, sequence) -> sequence > coalesce(' ~ row ~ ", ''))",
  }) }}
{%- endmacro %}

{#- The order of a row, for a table or a subquery with the base table's columns; `prefix` goes before their names. -#}
{%- macro order_of(prefix) -%}
  {{ return({'newest': prefix ~ '_sequence', 'row': prefix ~ '_row_sequence', 'columns': prefix ~ '_column_sequences'}) }}
{%- endmacro %}

{#- The sequence of the record from which a column has its value. If none is known, it is '', which is less than every
    sequence. -#}
{%- macro sequence_of_column(order, column) -%}
coalesce({{ order.columns }}[{{ reconcile.literal(column) }}], {{ order.row }}, '')
{%- endmacro %}

{#- The sequences of all records that a row consists of. -#}
{%- macro sequences_of_row(order) -%}
array_distinct(array_compact(concat(array({{ order.newest }}, {{ order.row }}), map_values({{ reconcile._or_empty(order.columns) }}))))
{%- endmacro %}

{#- A row is pending if an update of some columns has come, but no record that shows what the row was before: either no
    record of the whole row, or only a delete. A pending row is neither live nor deleted. -#}
{%- macro is_pending(order, deleted) -%}
({{ order.row }} is null or ({{ deleted }} and {{ order.newest }} > {{ order.row }}))
{%- endmacro %}

{%- macro is_live(order, deleted) -%}
({{ order.row }} is not null and not {{ deleted }})
{%- endmacro %}

{%- macro _or_empty(columns) -%}
coalesce({{ columns }}, cast(map() as map<string, string>))
{%- endmacro %}
