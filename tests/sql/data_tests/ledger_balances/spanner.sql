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
        ) as before,
        min(first_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at), first_batch rows between 1 following and unbounded following) as replayed_from,
        struct(coalesce(entry, 0) as entry, recorded_at) = max(if(kind <> 'snapshot', struct(coalesce(entry, 0) as entry, recorded_at), null)) over (partition by relation) as is_last
    from (
        select *, max(if(kind = 'rebuild', struct(coalesce(entry, 0) as entry, recorded_at), null)) over (partition by relation) as rebuilt
        from `demo`.`reconcile_ledger`
        inner join models using (relation)
        where kind <> 'erasure'
    )
    -- what was before the last rebuild is no part of the table
    where rebuilt is null or struct(coalesce(entry, 0) as entry, recorded_at) >= rebuilt
),

in_quarantine as (
    select 'demo.orders' as relation, _change_batch as batch, count(*) as records
    from `demo`.`orders__quarantine`
    group by _change_batch
),

noted_by_range as (
    select relation, place, inline(flatten(quarantine_reasons.batches)) as (batch, records)
    from account
),

-- of each batch, the last range that has it: that range has replaced the records of the batch in the quarantine
newest as (
    select account.relation, batches.batch, max(account.place) as place
    from account
    inner join (
        select relation, batch from in_quarantine
        union
        select relation, batch from noted_by_range
        union
        select relation, first_batch
        from `demo`.`reconcile_ledger`
        inner join models using (relation)
        where kind = 'erasure'
    ) as batches
        on batches.relation = account.relation and batches.batch between account.first_batch and account.last_batch
    where account.kind <> 'snapshot'
    group by account.relation, batches.batch
),

erased as (
    select
        account.relation,
        account.place,
        sum(erasures.delivered) as delivered,
        sum(if(newest.place = account.place, erasures.quarantined, 0)) as quarantined
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
    inner join newest on newest.relation = account.relation and newest.batch = erasures.batch
    group by account.relation, account.place
),

staged as (
    select 'demo.orders' as relation, batch, coalesce(sum(case source
    when 'spanner' then transform(array(from_json(record, 'mods array<variant>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).mods), mods -> if(cardinality(mods) > 0, cardinality(filter(mods, mod -> not coalesce(map_contains_key(try_cast(mod as map<string, variant>), 'erased'), false))), 1))[0]
    else 1
end), 0) as records
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

kept as (
    select newest.relation, newest.place, sum(in_quarantine.records) as kept
    from newest
    inner join in_quarantine using (relation, batch)
    group by newest.relation, newest.place
),

-- by the reasons of a range, from which an erasure takes what it erases; a range of an earlier version has none, and
-- counts only if no later range has its batches
noted as (
    select relation, place, sum(noted_by_range.records) as quarantined
    from noted_by_range
    inner join newest using (relation, place, batch)
    group by relation, place
),

stored as (
    select 'demo.orders' as relation, count(*) as records, max(_change_batch) as largest_batch
    from `demo`.`orders__base`
),

judged as (
    select
        account.*,
        nullif(concat_ws(
            '; ',
            if(account.delivered <> applied - if(kind = 'snapshot', deleted, 0) + superseded + duplicate + account.quarantined + pending, 'the classes do not add up to delivered', null),
            if(applied <> inserted + updated + deleted + tombstoned, 'the effects do not add up to applied', null),
            if(kind <> 'snapshot' and account.delivered <> recounted.staged + coalesce(erased.delivered, 0) and (account.delivered < recounted.staged + coalesce(erased.delivered, 0) or first_batch > purged), 'staging has a different number of records', null),
            if(
                if(account.quarantined > 0 and quarantine_reasons is null, if(coalesce(replayed_from > last_batch, true), account.quarantined, null), coalesce(noted.quarantined, 0))
                <> coalesce(kept.kept, 0) + if(quarantine_reasons is null, coalesce(erased.quarantined, 0), 0),
                'the quarantine has a different number of records', null
            ),
            if(is_last and stored_rows <> stored.records and coalesce(erased_at < struct(coalesce(entry, 0) as entry, recorded_at), true), 'the base table has a different number of rows than after this range', null),
            if(first_batch > if(kind = 'rebuild', greatest(before, purged), before) + 1, 'the ledger has a gap of batches before this range', null)
        ), '') as finding
    from account
    inner join recounted using (relation, place)
    left join kept using (relation, place)
    left join noted using (relation, place)
    left join erased using (relation, place)
    left join stored using (relation)
    left join (
        select relation, max(struct(coalesce(entry, 0) as entry, recorded_at)) as erased_at
        from `demo`.`reconcile_ledger`
        where kind = 'erasure'
        group by relation
    ) using (relation)
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
        select relation, largest_batch
        from stored
    ) using (relation)
    where
        (coalesce(batch, 0) < 1 or batch <= largest_batch and batch > purged)
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
