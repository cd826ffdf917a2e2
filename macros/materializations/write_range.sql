{#- Writes a range: quarantine and base table, then the ledger, whose row ends a retry, or another range that is marked as
    a retry is (see `marked_range`). A retry begins in `parse_range`. `written`: for a rebuild, a SELECT of all
    rows of the base table; otherwise the MERGE into it. The ledger's row is built last, since it has the seconds that
    the rest took. `deletes`: the table of keyless deletes; none if the model has none. The ledger notes which batch that
    table has to have, before the other tables are written: somebody may restore the table meanwhile. -#}
{%- macro write_range(relations, settings, range, counts, written, deletes) -%}
  {%- set marked = reconcile.marked_range(settings, range, counts) -%}
  {%- set deletes_batch = [reconcile.largest_batch(deletes, range.deletes_batch), range.deletes_batch] | max if deletes and not settings.as_of else none -%}
  {%- if marked and not marked.whole and not range.retry -%}
    {%- do reconcile.refuse_purge_meanwhile(settings.inputs, range, marked) -%}
    {%- do reconcile.run_statements(reconcile.get_begin_retry_statements(relations, settings, marked)) -%}
  {%- endif -%}
  {%- do reconcile.run_statements(
        reconcile.get_rebuild_statements(relations, settings, range, written) if range.kind == 'rebuild'
        else reconcile.get_apply_statements(relations, settings, range, counts, written)) -%}
  {%- set written_in = reconcile.snapshot_of_declaration(relations, settings) if marked -%}
  {%- set number = marked.number if marked and marked.first is not none -%}
  {%- do reconcile.run_statements(reconcile.get_accepted_statements(range)) -%}
  {%- do reconcile.end_noted_writes(relations, settings) -%}
  {#- A purge in the same Spark application empties the cached records. A table of an earlier moment has no account that
      would show it; the run fails, and the next one replaces the table. -#}
  {%- do reconcile.refuse_purge_meanwhile(settings.inputs, range) if settings.as_of -%}
  {%- do reconcile.run_statements(reconcile.get_ledger_statements(relations, settings, range, counts, number, deletes_batch)) if not settings.as_of -%}
  {%- do reconcile.refuse_set_back_meanwhile(relations, written_in) -%}
  {%- do reconcile.note_declared_in(relations, settings, written_in) if marked -%}
  {%- do reconcile.run_statements((['drop view if exists ' ~ relations.buckets_cache] if range.repair.buckets is defined else []) + reconcile.get_uncache_statements(relations)) -%}
{%- endmacro %}
