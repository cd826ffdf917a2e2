with models as (
    select *
    from values
        ('demo.orders', 0)
        as models (relation, purged)
),

account as (
    select
        *,
        row_number() over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch) as place,
        coalesce(
            max(last_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch rows between unbounded preceding and 1 preceding), 0
        ) as before
    from (
        select *, max(if(kind = 'rebuild', struct(coalesce(entry, 0) as entry, recorded_at), null)) over (partition by relation) as rebuilt
        from `demo`.`reconcile_ledger`
        inner join models using (relation)
    )
    -- what was before the last rebuild is no part of the table
    where rebuilt is null or struct(coalesce(entry, 0) as entry, recorded_at) >= rebuilt
),

staged as (
    select 'demo.orders' as relation, batch, count(*) as records
    from `lake`.`shop_changes`
    where object = 'shop.orders'
    group by batch
),

recounted as (
    select account.relation, account.place, coalesce(sum(staged.records), 0) as staged
    from account
    left join staged on staged.relation = account.relation and staged.batch between account.first_batch and account.last_batch
    group by account.relation, account.place
),

judged as (
    select
        account.*,
        nullif(concat_ws(
            '; ',
            if(delivered <> applied + superseded + duplicate + quarantined + pending, 'the classes do not add up to delivered', null),
            if(applied <> inserted + updated + deleted + tombstoned, 'the effects do not add up to applied', null),
            if(delivered <> staged and (delivered < staged or first_batch > purged), 'staging has a different number of records', null),
            if(first_batch > if(kind = 'rebuild', greatest(before, purged), before) + 1, 'the ledger has a gap of batches before this range', null)
        ), '') as finding
    from account
    inner join recounted using (relation, place)
),

-- what was applied without an account
unaccounted as (
    select relation, batch, records
    from staged
    inner join models using (relation)
    inner join (
        select 'demo.orders' as relation, max(_change_batch) as last_batch
        from `demo`.`orders__base`
    ) using (relation)
    where
        batch <= last_batch
        and batch > purged
        and not exists (
            select 1
            from account
            where staged.relation = account.relation and staged.batch between account.first_batch and account.last_batch
        )
)

select relation, kind, first_batch, last_batch, delivered, applied, superseded, duplicate, quarantined, pending, recorded_at, finding
from judged
where finding is not null
union all
select relation, null, batch, batch, records, null, null, null, null, null, null, 'the base table has this batch, but the ledger does not'
from unaccounted
