{#- Whether everything is right: one row for each thing that is not, and one for each staging table and comparison.
    `nodes`: the nodes of models that are built; `declared`: those of all models. `kind`: appended (a staging table, and when it was last appended to), not_applied (a model,
    and the records of its staging table that it has not applied), set_back (a model whose last batch staging no longer
    has), never_built (a model that is declared), quarantined, pending, unrouted, drift, parity (the last comparison, with
    its verdict in `detail`). `state`: how bad it is; for appended, `status.py` decides. -#}
{%- macro status_of(nodes, declared) -%}
{%- set readers = reconcile._accounts_by_staging(nodes) -%}
{%- set parts = [reconcile._part_of_status('cast(null as string)', {}, 'select 1 where false')] -%}
{%- for name, staging in reconcile.staging_read().items() -%}
  {%- do parts.append(reconcile._part_of_status("'appended'", {
        'relation': reconcile.literal(name), 'first_batch': 'min(staged_batch)', 'last_batch': 'max_by(batch, struct(appended_at, batch))', 'at': 'max(appended_at)'},
        reconcile._appends(staging.relation, readers.get(name)))) -%}
  {%- do parts.append(reconcile._part_of_status("'unrouted'", {
        'relation': reconcile.literal(name), 'records': 'count(*)', 'first_batch': 'min(batch)', 'last_batch': 'max(batch)', 'object': 'object',
        'detail': "coalesce(min(proposal), min(reason))", 'state': "if(object is null, 'wrong', 'look')"}, reconcile.unrouted_of(staging), 'object')) -%}
  {%- if readers.get(name) -%}
    {%- do parts.append(reconcile._part_of_status("'set_back'", {
          'relation': 'relation', 'last_batch': 'batch', 'detail': reconcile._said_of_set_back(name), 'state': "'wrong'"}, reconcile._set_back(staging.relation, readers[name] | list))) -%}
    {%- do parts.append(reconcile._part_of_status("'not_applied'", {
          'relation': 'relation', 'records': 'count(*)', 'first_batch': 'min(batch)', 'last_batch': 'max(batch)', 'batches': 'count(distinct batch)', 'at': 'min(appended_at)', 'state': "'wait'"},
          reconcile._not_applied(staging.relation, readers[name]), 'relation')) -%}
  {%- endif -%}
{%- endfor -%}
{%- for node in nodes -%}
  {%- set relation = reconcile.relation_of(node) -%}
  {%- set name = reconcile.literal(reconcile.ledger_name(relation)) -%}
  {%- if reconcile.takes_partial_records(node) or reconcile.keyless_deletes_of(node).kind == 'row_deletes' -%}
    {%- do parts.append(reconcile._part_of_status("'pending'", {'relation': name, 'records': 'count(*)', 'state': "'look'"}, reconcile.pending_rows_of(node), having='count(*) > 0')) -%}
  {%- endif -%}
{%- endfor -%}
{%- set missing = reconcile.missing_nodes(nodes, declared) -%}
{%- if missing -%}
  {%- do parts.append(reconcile._part_of_status("'never_built'", {'relation': 'relation', 'detail': 'model', 'state': "'look'"}, reconcile._never_built(missing))) -%}
{%- endif -%}
{%- if nodes -%}
  {%- do parts.append(reconcile._part_of_status("'quarantined'", {
        'relation': 'relation', 'records': 'records', 'first_batch': 'first_batch', 'last_batch': 'last_batch', 'detail': "concat(reason, coalesce(concat(' (for example the key ', example_key, ')'), ''))", 'state': "'wrong'"},
        reconcile.quarantine_reasons(nodes))) -%}
  {%- do parts.append(reconcile._part_of_status("'drift'", {
        'relation': 'relation', 'records': 'records', 'first_batch': 'since_batch', 'last_batch': 'last_batch', 'detail': "concat(kind, ' ', name, ' is ', finding)", 'state': "'look'"},
        'select * from (' ~ reconcile.drift_of(nodes) ~ ") where finding <> 'ignored'")) -%}
{%- endif -%}
{%- if reconcile.existing_relation(reconcile.parity_runs()) -%}
  {%- do parts.append(reconcile._part_of_status("'parity'", {
        'relation': 'relation', 'records': 'compared - matched', 'at': 'recorded_at', 'detail': "concat(verdict, ', against ', compared_to)",
        'state': "case verdict when 'match' then null when 'confirmed' then 'wrong' when 'in_flight' then 'wait' else 'look' end"}, reconcile._last_comparisons())) -%}
{%- endif -%}
{{ parts | join('\nunion all\n') }}
{%- endmacro %}

{#- One part, with the columns of all parts. `columns` gives the columns that this part has, as SQL. -#}
{%- macro _part_of_status(kind, columns, query, group_by=none, having=none) -%}
select
    {{ kind }} as kind,
    {%- for name, type in [('relation', 'string'), ('object', 'string'), ('records', 'bigint'), ('first_batch', 'bigint'), ('last_batch', 'bigint'), ('batches', 'bigint'), ('at', 'timestamp'), ('detail', 'string'), ('state', 'string')] %}
    {{ columns.get(name, 'cast(null as ' ~ type ~ ')') }} as {{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
    {{ query | trim | indent(4) }}
)
{{- '\ngroup by ' ~ group_by if group_by }}
{{- '\nhaving ' ~ having if having }}
{%- endmacro %}

{#- The models that read a staging table and keep an account: {staging: {name in the ledger: objects}}. -#}
{%- macro _accounts_by_staging(nodes) -%}
  {%- set readers = {} -%}
  {%- for node in nodes if node.config.materialized != 'current_view' -%}
    {%- set inputs = reconcile.model_inputs(node) -%}
    {%- if inputs.objects -%}
      {%- do readers.setdefault(reconcile.ledger_name(inputs.relations[0]), {}).update({reconcile.ledger_name(reconcile.relation_of(node)): inputs.objects}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(readers) }}
{%- endmacro %}

{#- When batches were appended, as staging has it, and as the ledger has it of the models that read it: a purge may have
    deleted the last batches. -#}
{%- macro _appends(staging, readers) -%}
select batch, appended_at, batch as staged_batch from {{ reconcile.qualified(staging) }}
{%- if readers %}
union all
select last_batch, last_appended_at, cast(null as bigint) from {{ reconcile.qualified(reconcile.ledger()) }} where last_appended_at is not null and relation in ({{ reconcile.literals(readers) }})
{%- endif -%}
{%- endmacro %}

{#- The models that have applied a batch which staging no longer has, or has another one under its number: the staging
    table was restored or made anew. The next run of such a model is refused by the same rule (`range_to_apply`). Batches
    that were purged may be gone. If the ledger does not know when the batch was appended, a staging table with newer
    batches may lack it. -#}
{%- macro _set_back(staging, readers) -%}
select account.relation, account.ledger_batch as batch, staged.appended_at
from (
    {{ reconcile._accounts(readers, by_name=true) | indent(4) }}
) as account
left join (
    select batch, unix_micros(max(appended_at)) as appended_at
    from {{ reconcile.qualified(staging) }}
    group by batch
) as staged
    on staged.batch = account.ledger_batch
where
    coalesce(
        staged.appended_at <> account.last_appended_at,
        account.ledger_batch > greatest(
            if(account.last_appended_at is null, (select max(batch) from {{ reconcile.qualified(staging) }}), null),
            (
                select max(batch)
                from (
                    {{ reconcile._purges(staging) | indent(20) }}
                )
            ),
            0
        )
    )
{%- endmacro %}

{%- macro _said_of_set_back(staging) -%}
concat('batch ', batch, ' was applied, and ', {{ reconcile.literal(staging) }}, if(appended_at is null, ' has no record of it any more', ' has another batch under this number'))
{%- endmacro %}

{#- The records in staging after the last batch that the ledger has for each model. A rebuild begins a new account. -#}
{%- macro _not_applied(staging, readers) -%}
select read.relation, staged.batch, staged.appended_at
from {{ reconcile.qualified(staging) }} as staged
inner join (
    select read.*, coalesce(account.last_batch, 0) as last_batch
    from (
        {{ reconcile.rows_of_readers(readers) | indent(8) }}
    ) as read
    left join (
        select relation, max_by(last_batch, {{ reconcile.ledger_order() }}) as last_batch
        from {{ reconcile.qualified(reconcile.ledger()) }}
        where kind not in ('purge', 'snapshot', 'erasure')
        group by relation
    ) as account
        on account.relation = read.relation
) as read
    on staged.batch > read.last_batch and {{ reconcile.is_taken() }}
{%- endmacro %}

{#- The models that are declared, were not built when the view was made, and have no account since then. -#}
{%- macro _never_built(nodes) -%}
select declared.*
from values
    {% for node in nodes %}({{ reconcile.literal(reconcile.ledger_name(reconcile.relation_of(node))) }}, {{ reconcile.literal(node.name) }}){{ ',\n    ' if not loop.last }}{% endfor %}
    as declared (relation, model)
left anti join {{ reconcile.qualified(reconcile.ledger()) }} as account on account.relation = declared.relation
{%- endmacro %}

{%- macro _last_comparisons() -%}
select last.*
from (
    select max_by(struct(*), recorded_at) as last
    from {{ reconcile.qualified(reconcile.parity_runs()) }}
    group by test, relation, compared_to
)
{%- endmacro %}
