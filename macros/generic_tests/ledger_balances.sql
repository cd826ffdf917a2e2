{#- Law 3: every delivered record is accounted for, once. Fails on ranges whose counts do not add up to what staging holds, and on
    batches between ranges that no range covers. Of records that were purged since, the ledger alone knows. -#}
{%- test ledger_balances(model) -%}
{%- if execute -%}
{%- do reconcile.refuse_untestable(model, 'ledger_balances') -%}
{%- set node = reconcile.node_of(model) -%}
{%- set inputs = reconcile.model_inputs(node) -%}
{%- if node.config.materialized == 'current_view' -%}
  {{ exceptions.raise_compiler_error(reconcile.ledger_name(model) ~ ' is a current_view: nothing is applied to it and the ledger has no account of it; take the test ledger_balances from it.') }}
{%- endif -%}
{%- set purged = reconcile.last_purged(inputs) -%}
with account as (
    select
        *,
        row_number() over (order by {{ reconcile.place_in_ledger() }}, first_batch) as place,
        coalesce(max(last_batch) over (order by {{ reconcile.place_in_ledger() }}, first_batch rows between unbounded preceding and 1 preceding), 0) as before
    from {{ reconcile.qualified(reconcile.ledger()) }}
    where relation = {{ reconcile.literal(reconcile.ledger_name(model)) }}
),

staged as (
    {%- if inputs.objects %}
    select batch, {{ reconcile.delivered_records(inputs.objects) }} as records
    from {{ reconcile.qualified(inputs.relations[0]) }}
    where {{ reconcile.is_of_objects(inputs.objects) }}
    group by batch
    {%- else %}
    select _change_batch as batch, count(*) as records
    from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__changes'})) }}
    group by _change_batch
    {%- endif %}
),

recounted as (
    select account.place, coalesce(sum(staged.records), 0) as staged
    from account
    left join staged on staged.batch between account.first_batch and account.last_batch
    group by account.place
),

judged as (
    select
        account.*,
        nullif(concat_ws(
            '; ',
            if(delivered <> applied + superseded + duplicate + quarantined + pending, 'the classes do not add up to delivered', null),
            if(applied <> inserted + updated + deleted + tombstoned, 'the effects do not add up to applied', null),
            if(delivered <> staged and (delivered < staged or first_batch > {{ purged }}), 'staging holds another number of records', null),
            if(first_batch > if(kind = 'rebuild', greatest(before, {{ purged }}), before) + 1, 'batches before this range are in no range', null)
        ), '') as finding
    from account
    inner join recounted using (place)
),

-- what was applied without an account
forgotten as (
    select batch, records
    from staged
    where
        batch <= (select max(_change_batch) from {{ reconcile.qualified(model.incorporate(path={'identifier': model.identifier ~ '__base'})) }})
        and batch > {{ purged }}
        and not exists (select 1 from account where staged.batch between account.first_batch and account.last_batch)
)

select kind, first_batch, last_batch, delivered, applied, superseded, duplicate, quarantined, pending, recorded_at, finding
from judged
where finding is not null
union all
select null, batch, batch, records, null, null, null, null, null, null, 'the base table holds this batch, and the ledger does not know it'
from forgotten
{%- endif -%}
{%- endtest %}
