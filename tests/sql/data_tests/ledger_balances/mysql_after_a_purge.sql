with models as (
    select *
    from values
        ('demo.orders', 2)
        as models (relation, purged)
),

account as (
    select
        *,
        row_number() over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch) as place,
        coalesce(
            max(last_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch rows between unbounded preceding and 1 preceding), 0
        ) as before,
        min(first_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch rows between 1 following and unbounded following) as replayed_from
    from (
        select *, max(if(kind = 'rebuild', struct(coalesce(entry, 0) as entry, recorded_at), null)) over (partition by relation) as rebuilt
        from `demo`.`reconcile_ledger`
        inner join models using (relation)
        where kind <> 'erasure'
    )
    -- what was before the last rebuild is no part of the table
    where rebuilt is null or struct(coalesce(entry, 0) as entry, recorded_at) >= rebuilt
),

erased as (
    select account.relation, account.place, sum(erasures.delivered) as delivered, sum(erasures.quarantined) as quarantined
    from account
    inner join (
        select relation, first_batch as batch, delivered, quarantined, struct(coalesce(entry, 0) as entry, recorded_at) as moment
        from `demo`.`reconcile_ledger`
        where kind = 'erasure'
    ) as erasures
        on
            erasures.relation = account.relation
            and erasures.batch between account.first_batch and account.last_batch
            and erasures.moment > struct(coalesce(account.entry, 0) as entry, account.recorded_at)
    group by account.relation, account.place
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

in_quarantine as (
    select 'demo.orders' as relation, _change_batch as batch, count(*) as records
    from `demo`.`orders__quarantine`
    group by _change_batch
),

kept as (
    select account.relation, account.place, coalesce(sum(in_quarantine.records), 0) as kept
    from account
    left join in_quarantine on in_quarantine.relation = account.relation and in_quarantine.batch between account.first_batch and account.last_batch
    group by account.relation, account.place
),

judged as (
    select
        account.*,
        nullif(concat_ws(
            '; ',
            if(account.delivered <> applied - if(kind = 'snapshot', deleted, 0) + superseded + duplicate + account.quarantined + pending, 'the classes do not add up to delivered', null),
            if(applied <> inserted + updated + deleted + tombstoned, 'the effects do not add up to applied', null),
            if(kind <> 'snapshot' and account.delivered <> recounted.staged + coalesce(erased.delivered, 0) and (account.delivered < recounted.staged + coalesce(erased.delivered, 0) or first_batch > purged), 'staging has a different number of records', null),
            -- a later range has replaced the records of its batches
            if(account.quarantined <> kept.kept + coalesce(erased.quarantined, 0) and coalesce(replayed_from > last_batch, true), 'the quarantine has a different number of records', null),
            if(first_batch > if(kind = 'rebuild', greatest(before, purged), before) + 1, 'the ledger has a gap of batches before this range', null)
        ), '') as finding
    from account
    inner join recounted using (relation, place)
    inner join kept using (relation, place)
    left join erased using (relation, place)
),

-- batches that were applied without a row of the ledger, and records whose batch number is missing or less than 1, which
-- no range can contain
unaccounted as (
    select
        relation,
        batch,
        records,
        if(coalesce(batch, 0) < 1, 'staging holds records without the number of an append, which no run reads', 'the base table has this batch, but the ledger does not') as finding
    from staged
    inner join models using (relation)
    inner join (
        select 'demo.orders' as relation, max(_change_batch) as last_batch
        from `demo`.`orders__base`
    ) using (relation)
    where
        (coalesce(batch, 0) < 1 or batch <= last_batch and batch > purged)
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
select relation, null, batch, batch, records, null, null, null, null, null, null, finding
from unaccounted
