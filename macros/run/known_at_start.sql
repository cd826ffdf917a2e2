{#- What a run queries once for all its models, and not for each: {name: {ledger_batch, ledger_base_batch, entry,
    last_appended_at, ledger_deletes_batch, ledger_retried, first, last, delivered}}. The models are those that have been
    built and read a staging table, by their names in the ledger. Each has its account, as `applied_batches` has it, the
    batches after the account up to the cut, and the number of records in these batches. A model without such records,
    and without a new snapshot beside the log, is idle, and also has `base_batch` and `deletes_batch`. With the variable
    `only_new_records`, it has `is_left` in place of them, and the run leaves it as it is; but not if staging or the
    ledger shows that something is wrong, so that the model says what.

    An idle model sees only in the next run what other runs write in the meantime. A model with new records queries its
    base table itself, just before it continues. So it notices a base table that was restored by then. The statement
    that inserts the model's row into the ledger notices if another run has written to the ledger (see
    `not_overtaken`). -#}
{%- macro known_at_start(cuts) -%}
  {%- set known, models = {}, {} -%}
  {%- for node in reconcile.reconciled_nodes() if node.unique_id in selected_resources and reconcile._applies_batches(node, cuts) -%}
    {%- set relation = reconcile.relation_of(node) -%}
    {%- do models.update({reconcile.ledger_name(relation): {'inputs': reconcile.model_inputs(node), 'relations': reconcile.model_relations(relation), 'keyless': reconcile.keyless_deletes_of(node)}}) -%}
  {%- endfor -%}
  {%- if models -%}
    {%- for row in run_query(reconcile._accounts(models | list, by_name=true)) if row[0] in models and reconcile._are_listed(models[row[0]], row[5]) -%}
      {%- do known.update({row[0]: {'ledger_batch': row[1], 'ledger_base_batch': row[2], 'entry': row[3], 'last_appended_at': row[4], 'ledger_deletes_batch': row[5], 'ledger_retried': row[6], 'first': row[1] + 1, 'last': cuts[reconcile.ledger_name(models[row[0]].inputs.relations[0])], 'delivered': 0}}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for name in models | list if name not in known -%}{%- do models.pop(name) -%}{%- endfor -%}
  {%- if models -%}
    {%- for row in run_query(reconcile._delivered_to(models, known)) -%}
      {%- do known[row[0]].update({'delivered': row[1] | int(0)}) -%}
    {%- endfor -%}
    {%- do reconcile._load_append_times(models, known) -%}
    {%- set idle = {} -%}
    {%- set leaves_idle = reconcile.is_asked('only_new_records') -%}
    {%- for name, model in models.items() if not known[name].delivered and not reconcile._has_new_snapshot(model.inputs, known[name].ledger_batch) -%}
      {%- if leaves_idle and reconcile._staging_is_as_applied(model.inputs, known[name]) -%}
        {%- do known[name].update({'is_left': true}) -%}
      {%- else -%}
        {%- do idle.update({name: model}) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- for row in (run_query(reconcile._largest_batches(idle, known)) if idle else []) -%}
      {%- do known[row[0]].update({'base_batch': row[1], 'deletes_batch': row[2]}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(known) }}
{%- endmacro %}

{#- Whether a snapshot beside the log came after the last batch that a model has applied. -#}
{%- macro _has_new_snapshot(inputs, ledger_batch) -%}
  {%- set snapshot = reconcile.snapshot_of_log(inputs.relations[0], inputs.objects) -%}
  {{ return(snapshot and snapshot.batch > ledger_batch) }}
{%- endmacro %}

{#- Whether staging shows that nothing was restored, made anew or purged since a model's last batch: what
    `range_to_apply` refuses in sentences, of what is known without a statement. -#}
{%- macro _staging_is_as_applied(inputs, known) -%}
  {%- set staging, batch = inputs.relations[0], known.ledger_batch -%}
  {%- set purged = reconcile.purged_at_start(staging, inputs.objects).values() | max | default(0, true) -%}
  {%- set appended_at = reconcile.appended_at(staging, batch) if known.last_appended_at is not none -%}
  {{ return(batch > 0 and known.last >= batch and purged <= batch and known.last_appended_at is not none
      and (appended_at == known.last_appended_at or appended_at is none and purged == batch)) }}
{%- endmacro %}

{#- Whether a run continues from the model's tables, if they exist. -#}
{%- macro _applies_batches(node, cuts) -%}
  {%- set inputs = reconcile.model_inputs(node) -%}
  {%- set continues = node.config.materialized in ['current_state', 'history'] and not flags.EMPTY and not reconcile.as_of() and not flags.FULL_REFRESH and reconcile.restored_batch() is none and node.config.get('full_refresh') is not true -%}
  {{ return(continues and inputs.objects and inputs.relations | length == 1 and cuts.get(reconcile.ledger_name(inputs.relations[0])) is not none) }}
{%- endmacro %}

{#- `deletes_batch`: the largest batch of the table of keyless deletes, as the ledger has it; 0 without such a table. -#}
{%- macro _are_listed(model, deletes_batch) -%}
  {%- set relations = model.relations -%}
  {%- if deletes_batch and model.keyless and not reconcile.is_listed(relations[model.keyless.kind]) -%}{{ return(false) }}{%- endif -%}
  {{ return(reconcile.is_listed(relations.base) and reconcile.is_listed(relations.quarantine) and reconcile.is_listed(relations.live) and reconcile.is_listed(relations.changes)) }}
{%- endmacro %}

{#- For each model, the number of change records in the batches after its account, up to the cut; no row if there are
    none. A staging table is read once for all models whose records are counted in the same way. -#}
{%- macro _delivered_to(models, known) -%}
{%- set scans = {} -%}
{%- for name, model in models.items() -%}
  {%- set staging, counted = model.inputs.relations[0], reconcile.delivered_records(model.inputs.objects) -%}
  {%- set scan = scans.setdefault(reconcile.ledger_name(staging) ~ ' ' ~ counted, {
        'staging': staging, 'counted': counted, 'last': known[name].last, 'objects': [], 'readers': {}, 'first_batches': {}}) -%}
  {%- do scan.readers.update({name: model.inputs.objects}) -%}
  {%- do scan.first_batches.update({name: known[name].first}) -%}
  {%- do scan.objects.extend(model.inputs.objects) -%}
{%- endfor -%}
{%- for scan in scans.values() %}
select read.relation, {{ scan.counted }}
from {{ reconcile.qualified(scan.staging) }} as staged
inner join (
    {{ reconcile.rows_of_readers(scan.readers, {'first_batch': scan.first_batches}) | indent(4) }}
) as read
    on staged.batch >= read.first_batch and {{ reconcile.is_taken() }}
-- so that Spark skips files and partitions
where staged.batch between {{ scan.first_batches.values() | min }} and {{ scan.last }} and staged.object in ({{ reconcile.literals(scan.objects | unique(case_sensitive=true)) }})
group by read.relation
{{ 'union all' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- For each model, the largest batch in its base table; 0 if the table has none from the ledger's `base_batch` on, as
    after a restore. The condition lets files of earlier batches be skipped. Also the largest batch of its table of
    keyless deletes, if the ledger knows of one. -#}
{%- macro _largest_batches(models, known) -%}
{%- for name, model in models.items() %}
{%- set deletes = '(select coalesce(max(_change_batch), 0) from ' ~ reconcile.qualified(model.relations[model.keyless.kind]) ~ ')'
      if model.keyless and known[name].ledger_deletes_batch else known[name].ledger_deletes_batch %}
select {{ reconcile.literal(name) }} as relation, coalesce(max(_change_batch), 0) as base_batch, {{ deletes }} as deletes_batch from {{ reconcile.qualified(model.relations.base) }} where _change_batch >= {{ known[name].ledger_base_batch }}
{{ 'union all' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- Fills what `appended_at` knows, for the batches that the models applied last, so that no model queries them
    again. -#}
{%- macro _load_append_times(models, known) -%}
  {%- set applied = {} -%}
  {%- for name, model in models.items() if known[name].last_appended_at is not none -%}
    {%- set relation = model.inputs.relations[0] -%}
    {%- set staging = applied.setdefault(reconcile.ledger_name(relation), {'relation': relation, 'batches': []}) -%}
    {%- do staging.batches.append(known[name].ledger_batch) if known[name].ledger_batch not in staging.batches -%}
  {%- endfor -%}
  {%- for name, staging in applied.items() -%}
    {%- for batch in staging.batches -%}{%- do graph.reconcile_appended_at.update({name ~ ' ' ~ batch: none}) -%}{%- endfor -%}
    {%- for row in run_query('select batch, unix_micros(max(appended_at)) from ' ~ reconcile.qualified(staging.relation) ~ ' where batch in (' ~ staging.batches | sort | join(', ') ~ ') group by batch') -%}
      {%- do graph.reconcile_appended_at.update({name ~ ' ' ~ row[0]: row[1]}) -%}
    {%- endfor -%}
  {%- endfor -%}
{%- endmacro %}
