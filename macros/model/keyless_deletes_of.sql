{#- The kind of a model's keyless deletes, {kind, place}; none if the model takes none, or has no key. Keyless
    deletes name a place, in a column of the change records. `row_deletes` name the address of one row: LogMiner writes
    such a delete for an insert that was rolled back to a savepoint. `range_deletes` name a range of cells of Bigtable.
    They are kept in a table beside the base table, which has the name of their kind. -#}
{%- macro keyless_deletes_of(node) -%}
  {%- set keys = reconcile.keys_of(node) -%}
  {%- if not keys -%}
    {{ return(none) }}
  {%- elif reconcile.takes_range_deletes(node) -%}
    {{ return({'kind': 'range_deletes', 'place': '_range'}) }}
  {%- elif reconcile.takes_row_ids(node) and '_row_id' not in keys and '_change_id' not in keys -%}
    {{ return({'kind': 'row_deletes', 'place': '_row_id'}) }}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}

{#- The columns of a table of keyless deletes beside their place. -#}
{%- macro columns_of_keyless_deletes(keyless) -%}
  {{ return(['_change_sequence', '_change_time', '_change_id', '_change_batch']
      + (['_change_transaction'] if reconcile.keys_may_shift(keyless) else [])) }}
{%- endmacro %}

{#- Whether the model's rows are cells, which are deleted by ranges. Its source macro says so, or its own `meta:
    {range_deletes: true}`. -#}
{%- macro takes_range_deletes(node) -%}
  {%- set meta = node.config.get('meta') or {} -%}
  {{ return(meta.get('range_deletes', reconcile.model_inputs(node).objects.values() | selectattr('range_deletes', 'defined') | list | length > 0)) }}
{%- endmacro %}

{#- The key of a cell. -#}
{%- macro key_of_cell() -%}
  {{ return(['row_key', 'family', 'qualifier', 'cell_time']) }}
{%- endmacro %}
