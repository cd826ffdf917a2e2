{#- Writes a range: quarantine and base table, then the ledger, then the end of a retry, or of another range that is
    marked as a retry is (see `marked_range`). A retry begins in `parse_range`. `written`: for a rebuild, a SELECT of all
    rows of the base table; otherwise the MERGE into it. The ledger's row is built last, since it has the seconds that
    the rest took. `deletes`: the table of keyless deletes; none if the model has none. -#}
{%- macro write_range(relations, settings, range, counts, written, deletes) -%}
  {%- set marked = reconcile.marked_range(settings, range, counts) -%}
  {%- do reconcile.run_statements(reconcile.get_begin_retry_statements(relations, settings, marked)) if not range.retry -%}
  {%- do reconcile.run_statements(
        reconcile.get_rebuild_statements(relations, settings, range, written) if range.kind == 'rebuild'
        else reconcile.get_apply_statements(relations, settings, range, counts, written)) -%}
  {%- set takes_declaration = reconcile.takes_declaration(settings, range, marked) -%}
  {%- set written_in = reconcile.snapshot_of_declaration(relations, settings) if takes_declaration -%}
  {%- set number = reconcile.number_of_rebuild(settings, range.retry) if range.kind == 'rebuild' else marked.number if marked and marked.first is not none -%}
  {%- do reconcile.run_statements(reconcile.get_ledger_statements(relations, settings, range, counts, number, deletes)) if not settings.as_of -%}
  {%- do reconcile.refuse_set_back_meanwhile(relations, marked, written_in) -%}
  {%- do reconcile.run_statements(reconcile.get_end_retry_statements(relations, marked)) -%}
  {%- do reconcile.note_declared_in(relations, settings, written_in) if takes_declaration -%}
  {%- do reconcile.run_statements(reconcile.get_uncache_statements(relations)) -%}
{%- endmacro %}
