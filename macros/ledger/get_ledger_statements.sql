{#- A rebuild from a base snapshot gets a ledger row even if no batch came after the snapshot: the next range begins
    there. `counts`: the account of the range, with the names of the ledger's columns. `number`: that of the mark which
    the base table gets, see `marked_range`; 0 or none without one. `deletes_batch`: the largest batch that the table of
    keyless deletes has to have; none without such a table. -#}
{%- macro get_ledger_statements(relations, settings, range, counts, number, deletes_batch) -%}
  {%- if range.last < range.first and not range.snapshot -%}{{ return([]) }}{%- endif -%}
  {%- set row = reconcile._ledger_row(relations, settings, range, counts, number, deletes_batch) -%}
  {%- if range.repair -%}
    {%- set row = row ~ '\nunion all\n' ~ reconcile._ledger_row(
          relations, settings, range, reconcile._counts_of_snapshot(counts), number, deletes_batch, range.repair.snapshot.batch) -%}
  {%- endif -%}
  {%- set name = reconcile.ledger_name(relations.live) -%}
  {{ return([reconcile.insert_into_ledger(row, name, reconcile.file_format_of_own_tables(), reconcile.ledger())]) }}
{%- endmacro %}

{#- The ledger is partitioned by relation, so rows that other models insert at the same moment do not conflict.
    `base_batch` is the largest batch that this run knows. The base table may have a larger one by now, since another
    run may have written to it. The number of the ledger's last row tells also a rebuild that came in between. `snapshot`: the batch of the snapshot that the row is of; none for the row of the range.
    Both rows are one INSERT. -#}
{%- macro _ledger_row(relations, settings, range, counts, number, deletes_batch, snapshot=none) -%}
{%- set inputs = settings.inputs -%}
{%- set staging = reconcile.dated_staging(inputs) -%}
{%- set appended_at = reconcile.appended_at(staging, snapshot or range.last) if staging else none -%}
{%- set carried = inputs.objects.values() | selectattr('carries', 'defined') | map(attribute='carries') | list -%}
{%- set no_time = 'cast(null as timestamp)' -%}
select
    {{ reconcile.literal(reconcile.ledger_name(relations.live)) }} as relation,
    {{ reconcile.literal(inputs.objects | join(', ')) }} as object,
    '{{ 'snapshot' if snapshot else range.kind }}' as kind,
    {{ snapshot or range.first }} as first_batch,
    {{ snapshot or range.last }} as last_batch,
    {%- for count in ['delivered', 'applied', 'superseded', 'duplicate', 'quarantined', 'pending',
                      'inserted', 'updated', 'deleted', 'tombstoned'] %}
    {{ counts[count] }} as {{ count }},
    {%- endfor %}
    {{ '(' ~ reconcile.cut_time(inputs.relations[0], range.last, reconcile.has_snapshots(inputs.relations[0])) ~ ')' if 'mods' in carried else no_time }} as cut_time,
    {{ '(' ~ reconcile.watermark(inputs.relations[0], range.last, reconcile.has_snapshots(inputs.relations[0])) ~ ')' if 'entries' in carried else no_time }} as watermark,
    {{ [range.base_batch, counts.base_batch or 0] | max }} as base_batch,
    {{ number or 'cast(null as bigint)' }} as retried,
    {{ deletes_batch if deletes_batch is not none else 'cast(null as bigint)' }} as deletes_batch,
    {{ (modules.datetime.datetime.now() - range.started).total_seconds() }} as seconds,
    '{{ invocation_id }}' as invocation_id,
    current_timestamp() as recorded_at,
    account.entry + {{ 2 if snapshot else 1 }} as entry,
    {#- A rebuild after a purge of all batches: the ledger alone still knows when the last one was appended. #}
    {{ 'timestamp_micros(' ~ appended_at ~ ')' if appended_at is not none
          else 'if(account.ledger_batch = ' ~ range.last ~ ', timestamp_micros(account.last_appended_at), null)' if range.kind == 'rebuild' and not snapshot
          else no_time }} as last_appended_at,
    {{ counts.zero_dates or 0 }} as zero_dates,
    {{ reconcile.reasons_of_range(relations.changes_cache, settings.form.unique_key) | indent(4) if counts.quarantined else 'cast(null as ' ~ reconcile._type_of_reasons() ~ ')' }} as quarantine_reasons,
    {{ 'cast(null as bigint)' if snapshot else '(select count(*) from ' ~ reconcile.qualified(relations.base) ~ ')' }} as stored_rows
from (
    {{ reconcile._account(relations) | indent(4) }}
) as account
{%- if range.kind != 'rebuild' %}
where {{ reconcile.not_overtaken(relations, 'account.ledger_batch = ' ~ range.ledger_batch ~ ' and account.entry = ' ~ range.entry) }}
{%- endif %}
{%- endmacro %}

{#- The account of a snapshot beside the log, with the names of the ledger's columns. A delete has no record: so
    `delivered`, the rows of the snapshot, are applied - deleted + superseded + duplicate. None is quarantined: see
    `refuse_unreadable_rows`. -#}
{%- macro _counts_of_snapshot(counts) -%}
  {{ return({
      'delivered': counts.snapshot_rows, 'applied': counts.snapshot_inserted + counts.snapshot_updated + counts.snapshot_deleted,
      'superseded': counts.snapshot_superseded, 'duplicate': counts.snapshot_duplicate, 'quarantined': 0, 'pending': 0,
      'inserted': counts.snapshot_inserted, 'updated': counts.snapshot_updated, 'deleted': counts.snapshot_deleted, 'tombstoned': 0,
      'base_batch': counts.base_batch}) }}
{%- endmacro %}

{#- What dbt prints about the model when the model is done. `as_of`: {position, value, label}, or none. `counts`: the
    account of the range, undefined if it had nothing to apply. `messages`: a list of sentences. `keys`: the unique_key.
    -#}
{%- macro summary(as_of, keys, range, counts, messages) -%}
{%- if counts -%}
{%- set kind = 'AS OF ' ~ as_of.label ~ ':' if as_of else range.kind | upper -%}
{{ kind }} batches {{ range.first }}-{{ range.last }}: {{ counts.applied }} of {{ counts.delivered }} applied
{%- if counts.quarantined %}, {{ counts.quarantined }} quarantined{% endif -%}
{%- if counts.pending %}, {{ counts.pending }} pending{% endif -%}
{%- for sentence in messages %}; {{ sentence }}{% endfor -%}
{%- if '_change_id' in keys -%}
; of a table without a key each event is a row, and no update or delete can be applied
{%- endif -%}
{%- else -%}
nothing new
{%- for sentence in messages %}; {{ sentence }}{% endfor -%}
{%- endif -%}
{%- endmacro %}
