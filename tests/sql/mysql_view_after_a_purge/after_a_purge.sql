select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

show tblproperties `lake`.`orders_kept`;

select max(_change_batch) from `lake`.`orders_kept`;

select base_batch
from (
    select
        relation = 'demo.orders' as is_own,
        if(max(retried) is null, coalesce(min(if(last_batch >= 2, base_batch, null)), max_by(base_batch, last_batch)), null) as base_batch
    from `demo`.`reconcile_ledger`
    where object = 'shop.orders' and kind not in ('purge', 'snapshot', 'erasure')
    group by relation
)
order by is_own desc, base_batch
limit 1;

select object, max(batch) as batch from `lake`.`shop_changes` where object = 'shop.orders' and batch <= 2 group by object order by object limit 1;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from (select _change_macro, _change_error from (

{the SELECT of mysql_events/change_records.sql}
) limit 1000);

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = 'b0a039e52e131dc6dca23c7069698819')
as

{the SELECT of mysql_events/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '6143df47dd4ad5797028fccc3c3256e3')
as
with changes as (
    select
        `id`,
        `status`,
        `total`,
        `placed_at`,
        `ratio`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
        cast(null as string) as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `id` is null, 'key id is missing or NULL', null),
                if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
                if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 3
    )
),
folded as (
    select newest.*, records as _change_records, sequences as _change_sequences
    from (
        select
            max_by(
                struct(
                    `id`,
                    if(_change_type = 'delete', null, `status`) as `status`,
                    if(_change_type = 'delete', null, `total`) as `total`,
                    if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                    if(_change_type = 'delete', null, `ratio`) as `ratio`,
                    _change_sequence,
                    _change_time,
                    _change_batch,
                    _change_type = 'delete' as _deleted
                ),
                struct(_change_sequence, -_change_batch)
            ) as newest,
            count(*) as records,
            collect_set(_change_sequence) as sequences
        from changes
        where _change_error is null
        group by `id`
    )
),

newest as (
    select *
    from folded
    where spark_partition_id() >= 0
),

touched as (
    select /*+ broadcast(base) */
        if(base._change_sequence is null, newest.`id`, base.`id`) as `id`,
        if(base._change_sequence is null, newest.`status`, base.`status`) as `status`,
        if(base._change_sequence is null, newest.`total`, base.`total`) as `total`,
        if(base._change_sequence is null, newest.`placed_at`, base.`placed_at`) as `placed_at`,
        if(base._change_sequence is null, newest.`ratio`, base.`ratio`) as `ratio`,
        if(base._change_sequence is null, newest._change_sequence, base._change_sequence) as _change_sequence,
        if(base._change_sequence is null, newest._deleted, base._deleted) as _deleted
    from newest as newest
    left join (
        select /*+ broadcast(touched) */ known.*
        from `lake`.`orders_kept` as known
        left semi join newest as touched
            on touched.`id` = known.`id`
        where known._change_sequence >= (select min(_change_sequence) from folded)
    ) as base
        on newest.`id` = base.`id` and newest._change_sequence <= base._change_sequence
),

fresh as (
    select /*+ broadcast(newest) */ `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _deleted
    from `lake`.`orders_kept` as known
    left anti join newest as newest
        on newest.`id` = known.`id`
    union all
    select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _deleted
    from touched
)

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`
from fresh
where
    not _deleted;

create view if not exists `demo`.`orders__quarantine`
tblproperties ('reconcile.definition' = '92df88fdce2f9d54a0b0580a540656d2')
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from (
    select
        `id`,
        `status`,
        `total`,
        `placed_at`,
        `ratio`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, _change_record) as _change_record,
        _change_origin as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `id` is null, 'key id is missing or NULL', null),
                if(_change_error is null and (_change_sequence is null or _change_type is null), 'the record has no _change_sequence or no _change_type', null),
                if(_change_error is null and _change_columns is not null, 'the record carries only some columns, and the model does not take such records (`meta: {partial_records: true}`)', null)
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 1
    )
)
where _change_error is not null;

-- MADE ANEW
