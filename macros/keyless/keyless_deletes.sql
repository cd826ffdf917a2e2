{#- Whether a delete names a row, as SQL on one line. `keyless`: {kind, place}. `place`: SQL for the place that the
    delete names. `row`: the name of a relation that has the rows. -#}
{%- macro delete_covers_row(keyless, place, row) -%}
{%- if keyless.kind == 'row_deletes' -%}
{{ place }} = {{ row }}._row_id
{%- else -%}
{%- filter replace('\n', ' ') -%}
{{ place }}.row_key = {{ row }}.row_key and {{ place }}.family = {{ row }}.family
and ({{ place }}.qualifier is null or {{ place }}.qualifier = {{ row }}.qualifier)
and {{ place }}.start_time <= {{ row }}.cell_time
and ({{ place }}.end_time is null or {{ row }}.cell_time < {{ place }}.end_time)
{%- endfilter -%}
{%- endif -%}
{%- endmacro %}

{#- The columns of a row by which a keyless delete names it, as SQL. -#}
{%- macro columns_of_place(keyless, keys) -%}
{{ '_row_id' if keyless.kind == 'row_deletes' else reconcile.key_columns(keys) }}
{%- endmacro %}

{#- The keyless deletes among checked records, one row for each place and sequence. Of copies, the earliest batch
    counts, and the least time and id. `changes`: the checked records. `keyless`: {kind, place}. `keys`: the
    unique_key. -#}
{%- macro keyless_deletes(changes, keyless, keys) -%}
{%- set place = keyless.place -%}
select {{ place }}, _change_sequence, first._change_time, first._change_id, _change_batch,{{ ' _change_transaction,' if reconcile.keys_may_shift(keyless) }} records as _change_records
from (
    select
        {{ place }},
        _change_sequence,
        min(struct(_change_time, _change_id)) as first,
        min(_change_batch) as _change_batch,
        {%- if reconcile.keys_may_shift(keyless) %}
        min(_change_transaction) as _change_transaction,
        {%- endif %}
        count(*) as records
    from {{ changes }}
    where {{ reconcile.is_keyless_delete_record(keys) }}
    group by {{ place }}, _change_sequence
)
{%- endmacro %}
