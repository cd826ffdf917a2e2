{#- The fold of a range's records, each row beside the base table's row of the same key, for the counts and the MERGE. A
    rebuild from a base snapshot has the snapshot's rows in place of the base table's. `has_log`: see `have_log`.
    `keyless_count`: how many keyless deletes the range holds; used only where keys may shift. -#}
{%- macro newest_rows(relations, form, range, has_log, keyless_count=0) -%}
{%- if reconcile.keys_may_shift(form.keyless) -%}
{{ reconcile._newest_by_address(relations, form, range, keyless_count) }}
{%- else -%}
{%- set newest = reconcile._newest_with_base(relations, form, range, has_log) -%}
{{ reconcile.columns_with_base(newest) if form.partial_records else newest }}
{%- endif -%}
{%- endmacro %}

{#- `_change_base_sequence` and the other `_change_base` columns are NULL if the known table (the base table; for a
    rebuild the base snapshot, if there is one) has no such key. The semi join comes first because of the outer join: Spark can broadcast only the outer join's right side, the growing base
    table, or else shuffles it. The query has subqueries instead of CTEs: through a CTE, Spark does not see that the
    relation it reads is cached. -#}
{%- macro _newest_with_base(relations, form, range, has_log) -%}
{%- set table = reconcile.known_table(relations, range) -%}
{%- set columns_of_known = {'_change_sequence': 'string', '_deleted': 'boolean'} -%}
{%- if has_log -%}
  {%- do columns_of_known.update({'_change_time': 'timestamp'}) -%}
{%- endif -%}
{%- if form.partial_records -%}
  {%- do columns_of_known.update({'_change_row_sequence': 'string', '_change_column_sequences': 'map<string, string>'}) -%}
{%- endif -%}
select
    newest.*,
    {%- for column, type in columns_of_known.items() %}
    {{ 'cast(null as ' ~ type ~ ')' if not table else 'base.' ~ column }} as {{ reconcile.name_of_base(column) }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ reconcile.fold_of(relations.changes_cache, form) | indent(4) }}
) as newest
{%- if table %}
{{ reconcile.join_touched_rows(relations, form, range, columns_of_known) }}
{%- endif -%}
{%- endmacro %}

{#- The join of a fold, `newest`, with the rows of the known table whose keys records of the range name. `columns`: those
    that are needed beside the key. -#}
{%- macro join_touched_rows(relations, form, range, columns) -%}
left join (
    select {{ reconcile.broadcast_hint('change', range.delivered) }}{{ reconcile.key_columns(form.unique_key) }}, {{ columns | join(', ') }}
    from {{ reconcile.stored_rows(reconcile.known_table(relations, range), form) }} as known
    left semi join {{ relations.changes_cache }} as change
        on {{ reconcile.keys_match(form.unique_key, 'change', 'known') }}
) as base
    on {{ reconcile.keys_match(form.unique_key, 'newest', 'base') }}
{%- endmacro %}

{#- The base table's rows take part in the fold, since a record may be of the transaction that set a row. The rows of a
    base snapshot take part with their values. -#}
{%- macro _newest_by_address(relations, form, range, keyless_count) -%}
{%- set table = reconcile.known_table(relations, range) -%}
{%- set stored = range.known_keyless_deletes -%}
{%- set undoing = reconcile.undoing_deletes(relations.changes_cache, form.unique_key, stored) if stored or keyless_count -%}
{%- if not table -%}
{{ reconcile.newest_by_address_of_all(relations.changes_cache, form, undoing) }}
{%- else -%}
{{ reconcile.newest_by_address(
      relations.changes_cache, form, undoing,
      reconcile.touched_as_records(
          reconcile.stored_rows(table, form), relations.changes_cache, form, range.kind == 'rebuild', range.delivered, keyless_count)) }}
{%- endif -%}
{%- endmacro %}

{#- The rows of a table that records touch, as records. `known`: the table; `changes`: the records; `delivered`: how
    many records there are. `with_values`: whether the records have the values of the rows. `has_keyless_deletes`:
    whether the records may hold keyless deletes, which touch the rows whose inserts they undo. -#}
{%- macro touched_as_records(known, changes, form, with_values, delivered=1, has_keyless_deletes=true) -%}
{%- set touched -%}
(
        select {{ reconcile.key_columns(form.unique_key) }}
        from {{ changes }}
        union all
        {{ reconcile.keys_with_undone_inserts(known, changes, form.unique_key) | indent(8) }}
    )
{%- endset -%}
{%- set rows -%}
(
    select {{ reconcile.broadcast_hint('touched', delivered) }}known.*
    from {{ known }} as known
    left semi join {{ touched if has_keyless_deletes else changes }} as touched
        on {{ reconcile.keys_match(form.unique_key, 'touched', 'known') }}
)
{%- endset -%}
{{ reconcile.rows_as_records(rows, form, with_values) }}
{%- endmacro %}

{#- The fold of checked records: one row for each key. `undoing`: see `newest_by_address`. -#}
{%- macro fold_of(changes, form, undoing=none) -%}
{%- if reconcile.keys_may_shift(form.keyless) -%}
{{ reconcile.newest_by_address(changes, form, undoing) }}
{%- elif form.partial_records -%}
{{ reconcile.newest_columns(changes, form.columns, form.unique_key) }}
{%- else -%}
{{ reconcile.newest_records(changes, form) }}
{%- endif -%}
{%- endmacro %}
