{#- Whether everything is right: one row for each thing that is not, and one for each staging table and comparison.
    `nodes`: the models' nodes. `kind`: appended (a staging table, and when it was last appended to), not_applied (a model,
    and the records of its staging table that it has not applied), quarantined, pending, unrouted, drift, parity (the
    last comparison, with its verdict in `detail`). -#}
{%- macro status_of(nodes) -%}
{%- set parts = [reconcile._part_of_status('cast(null as string)', {}, 'select 1 where false')] -%}
{%- for name, staging in reconcile.staging_read().items() -%}
  {%- do parts.append(reconcile._part_of_status("'appended'", {
        'relation': reconcile.literal(name), 'first_batch': 'min(batch)', 'last_batch': 'max(batch)', 'at': 'max(appended_at)'}, 'select batch, appended_at from ' ~ reconcile.qualified(staging.relation))) -%}
  {%- do parts.append(reconcile._part_of_status("'unrouted'", {
        'relation': reconcile.literal(name), 'records': 'count(*)', 'first_batch': 'min(batch)', 'last_batch': 'max(batch)', 'object': 'object',
        'detail': "coalesce(min(proposal), min(reason))"}, reconcile.unrouted_of(staging), 'object')) -%}
{%- endfor -%}
{%- for node in nodes -%}
  {%- set relation = reconcile.relation_of(node) -%}
  {%- set name = reconcile.literal(reconcile.ledger_name(relation)) -%}
  {%- set inputs = reconcile.model_inputs(node) -%}
  {%- if node.config.materialized != 'current_view' and inputs.objects -%}
    {%- do parts.append(reconcile._part_of_status("'not_applied'", {
          'relation': name, 'records': 'count(*)', 'first_batch': 'min(batch)', 'last_batch': 'max(batch)', 'at': 'min(appended_at)'}, reconcile._not_applied(name, inputs), having='count(*) > 0')) -%}
  {%- endif -%}
  {%- if reconcile.takes_partial_records(node) or reconcile.keyless_deletes_of(node).kind == 'row_deletes' -%}
    {%- do parts.append(reconcile._part_of_status("'pending'", {'relation': name, 'records': 'count(*)'}, reconcile.pending_rows_of(node), having='count(*) > 0')) -%}
  {%- endif -%}
{%- endfor -%}
{%- if nodes -%}
  {%- do parts.append(reconcile._part_of_status("'quarantined'", {
        'relation': 'relation', 'records': 'records', 'first_batch': 'first_batch', 'last_batch': 'last_batch', 'detail': "concat(reason, coalesce(concat(' (for example the key ', example_key, ')'), ''))"},
        reconcile.quarantine_reasons(nodes))) -%}
  {%- do parts.append(reconcile._part_of_status("'drift'", {
        'relation': 'relation', 'records': 'records', 'first_batch': 'since_batch', 'last_batch': 'last_batch', 'detail': "concat(kind, ' ', name, ' is ', finding)"},
        'select * from (' ~ reconcile.drift_of(nodes) ~ ") where finding <> 'ignored'")) -%}
{%- endif -%}
{%- if reconcile.existing_relation(reconcile.parity_runs()) -%}
  {%- do parts.append(reconcile._part_of_status("'parity'", {
        'relation': 'relation', 'records': 'compared - matched', 'at': 'recorded_at', 'detail': "concat(verdict, ', against ', compared_to)"}, reconcile._last_comparisons())) -%}
{%- endif -%}
{{ parts | join('\nunion all\n') }}
{%- endmacro %}

{#- One part, with the columns of all parts. `columns` gives the columns that this part has, as SQL. -#}
{%- macro _part_of_status(kind, columns, query, group_by=none, having=none) -%}
select
    {{ kind }} as kind,
    {%- for name, type in [('relation', 'string'), ('object', 'string'), ('records', 'bigint'), ('first_batch', 'bigint'), ('last_batch', 'bigint'), ('at', 'timestamp'), ('detail', 'string')] %}
    {{ columns.get(name, 'cast(null as ' ~ type ~ ')') }} as {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ query | trim | indent(4) }}
)
{{- '\ngroup by ' ~ group_by if group_by }}
{{- '\nhaving ' ~ having if having }}
{%- endmacro %}

{#- The records in staging after the last batch that the ledger has for a model. A rebuild begins a new account. -#}
{%- macro _not_applied(name, inputs) -%}
select batch, appended_at
from {{ reconcile.qualified(inputs.relations[0]) }}
where
    {{ reconcile.is_of_objects(inputs.objects) }}
    and batch > coalesce((
        select max_by(last_batch, {{ reconcile.ledger_order() }})
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where relation = {{ name }} and kind not in ('purge', 'snapshot')
    ), 0)
{%- endmacro %}

{%- macro _last_comparisons() -%}
select last.*
from (
    select max_by(struct(*), recorded_at) as last
    from {{ reconcile.qualified(reconcile.parity_runs()) }}
    group by test, relation, compared_to
)
{%- endmacro %}
