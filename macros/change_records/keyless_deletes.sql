{#- Of which kind the deletes of a model are that name no key, {kind, place}, or none where it takes none. They name a place, in a column of the change records:
    `row_deletes` by the address of one row (LogMiner writes such a delete for an insert that was rolled back to a savepoint), `range_deletes` by a range of
    cells (Bigtable's). They are kept in a table beside the base table that has the name of their kind. -#}
{%- macro keyless_deletes_of(node) -%}
  {%- if reconcile.takes_range_deletes(node) -%}
    {{ return({'kind': 'range_deletes', 'place': '_range'}) }}
  {%- elif reconcile.takes_row_ids(node) and '_row_id' not in reconcile.keys_of(node) and '_change_id' not in reconcile.keys_of(node) -%}
    {{ return({'kind': 'row_deletes', 'place': '_row_id'}) }}
  {%- endif -%}
  {{ return(none) }}
{%- endmacro %}

{#- Whether the model's rows are cells, which are deleted by ranges: as its source macro has it, or its own `meta: {range_deletes: true}`. -#}
{%- macro takes_range_deletes(node) -%}
  {%- set meta = node.config.get('meta') or {} -%}
  {{ return(meta.get('range_deletes', reconcile.model_inputs(node).objects.values() | selectattr('range_deletes', 'defined') | list | length > 0)) }}
{%- endmacro %}

{#- The key of a cell. -#}
{%- macro key_of_cell() -%}
  {{ return(['row_key', 'family', 'qualifier', 'cell_time']) }}
{%- endmacro %}

{#- Whether a delete whose place is `place` names the row `row`, as SQL. -#}
{%- macro names_row(keyless, place, row) -%}
{%- if keyless.kind == 'row_deletes' -%}
{{ place }} = {{ row }}._row_id
{%- else -%}
{{ place }}.row_key = {{ row }}.row_key and {{ place }}.family = {{ row }}.family and ({{ place }}.qualifier is null or {{ place }}.qualifier = {{ row }}.qualifier) and {{ place }}.start_time <= {{ row }}.cell_time and ({{ place }}.end_time is null or {{ row }}.cell_time < {{ place }}.end_time)
{%- endif -%}
{%- endmacro %}

{#- The columns of a row by which such a delete names it, as SQL. -#}
{%- macro columns_of_place(settings) -%}
{{ '_row_id' if settings.keyless.kind == 'row_deletes' else reconcile.key_columns(settings.unique_key) }}
{%- endmacro %}

{#- The keyless deletes among checked records, one row for each place and sequence: of copies the earliest batch counts, and the least time and id. -#}
{%- macro keyless_deletes(changes, settings) -%}
{%- set place = settings.keyless.place -%}
select {{ place }}, _change_sequence, first._change_time, first._change_id, _change_batch, records as _change_records
from (
    select
        {{ place }},
        _change_sequence,
        min(struct(_change_time, _change_id)) as first,
        min(_change_batch) as _change_batch,
        count(*) as records
    from {{ changes }}
    where {{ reconcile.is_keyless_delete_record(settings.unique_key) }}
    group by {{ place }}, _change_sequence
)
{%- endmacro %}
