select
    relation,
    coalesce(example.reason, concat('reasons that only ', relation, '__quarantine has')) as reason,
    records,
    first_batch,
    last_batch,
    example.example_key,
    example.example_origin
from (
    select
        relation,
        sum(records) as records,
        min(batch) as first_batch,
        max(batch) as last_batch,
        min_by(struct(reason, example_key, example_origin), batch) as example
    from (
        select relation, reason, example_key, example_origin, replayed_from, inline(batches)
        from (
            select
                relation,
                replayed_from,
                inline(coalesce(quarantine_reasons, array(struct(cast(null as string) as reason, cast(null as string) as example_key, cast(null as string) as example_origin, array(struct(first_batch as batch, quarantined as records)) as batches))))
            from (
                select
                    relation, first_batch, quarantined, quarantine_reasons,
                    min(first_batch) over (partition by relation order by struct(coalesce(entry, 0) as entry, recorded_at) rows between 1 following and unbounded following) as replayed_from
                from `demo`.`reconcile_ledger`
                where kind in ('apply', 'replay', 'rebuild') and relation in ('demo.orders', 'demo.lines')
            )
            where quarantined > 0
        )
    )
    where batch < coalesce(replayed_from, batch + 1)
    group by relation, regexp_replace(reason, '\'[^\']*\'', '')
)
