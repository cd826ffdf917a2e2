select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from (select _change_macro, _change_error from (

{the SELECT of spanner/change_records.sql}
) limit 1000);

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = '8317d62c72ac6afa5b2a92ff6f70839d')
as

{the SELECT of spanner/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '5d5c063015d9ebe5774347ea290f31de')
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
        if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
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
                if(
                    _change_error is null and _change_columns is not null
                    and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                    concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
                )
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 1
    )
),
fresh as (
    select `id`, `status`, `total`, `placed_at`, `ratio`, _change_sequence, _deleted, _change_row_sequence
    from (
        select
            `id`,
            if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last status`.value, _change_whole.`status`) as `status`,
            if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last total`.value, _change_whole.`total`) as `total`,
            if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last placed_at`.value, _change_whole.`placed_at`) as `placed_at`,
            if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), `_change_last ratio`.value, _change_whole.`ratio`) as `ratio`,
            _change_newest._change_sequence,
            _change_newest._change_time,
            array_max(transform(_change_contributors, record -> record.batch)) as _change_batch,
            coalesce(_change_whole._deleted, false) as _deleted,
            _change_whole._change_sequence as _change_row_sequence,
            _change_column_sequences,
            _change_contributors,
            _change_records,
            _change_delivered
        from (
            select
                *,
                array_distinct(array_compact(array(
                    struct(_change_newest._change_sequence as sequence, _change_newest._change_batch as batch),
                    if(_change_whole is null, null, struct(_change_whole._change_sequence as sequence, _change_whole._change_batch as batch)),
                    if(`_change_last status`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last status`.sequence, `_change_last status`.batch), null),
                    if(`_change_last total`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last total`.sequence, `_change_last total`.batch), null),
                    if(`_change_last placed_at`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last placed_at`.sequence, `_change_last placed_at`.batch), null),
                    if(`_change_last ratio`.sequence > coalesce(_change_whole._change_sequence, ''), struct(`_change_last ratio`.sequence, `_change_last ratio`.batch), null)
                ))) as _change_contributors,
                map_filter(
                    cast(map('status', `_change_last status`.sequence, 'total', `_change_last total`.sequence, 'placed_at', `_change_last placed_at`.sequence, 'ratio', `_change_last ratio`.sequence) as map<string, string>),
                    (name, sequence) -> sequence > coalesce(_change_whole._change_sequence, '')
                ) as _change_column_sequences
            from (
                select
                    `id`,
                    max_by(
                        struct(_change_sequence, _change_time, _change_batch),
                        struct(_change_sequence, -_change_batch)
                    ) as _change_newest,
                    max_by(
                        struct(
                            if(_change_type = 'delete', null, `status`) as `status`,
                            if(_change_type = 'delete', null, `total`) as `total`,
                            if(_change_type = 'delete', null, `placed_at`) as `placed_at`,
                            if(_change_type = 'delete', null, `ratio`) as `ratio`,
                            _change_sequence,
                            _change_batch,
                            _change_type = 'delete' as _deleted
                        ),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where _change_columns is null) as _change_whole,
                    max_by(
                        struct(`status` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'status')) as `_change_last status`,
                    max_by(
                        struct(`total` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'total')) as `_change_last total`,
                    max_by(
                        struct(`placed_at` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'placed_at')) as `_change_last placed_at`,
                    max_by(
                        struct(`ratio` as value, _change_sequence as sequence, _change_batch as batch),
                        struct(_change_sequence, -_change_batch)
                    ) filter (where array_contains(_change_columns, 'ratio')) as `_change_last ratio`,
                    count(*) as _change_records,
                    collect_set(struct(_change_sequence as sequence, _change_columns as carried)) as _change_delivered
                from changes
                where _change_error is null
                group by `id`
            )
        )
    )
)

select
    `id`,
    `status`,
    `total`,
    `placed_at`,
    `ratio`
from fresh
where
    (_change_row_sequence is not null and not _deleted);

create view if not exists `demo`.`orders__quarantine`
tblproperties ('reconcile.definition' = 'd46a3b27498e87cd77e30147cfc84161')
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
        if(_change_type = 'update' and cardinality(array_sort(array_distinct(filter(_change_columns, name -> name not in ('id'))))) < 4, array_sort(array_distinct(filter(_change_columns, name -> name not in ('id')))), null) as _change_columns,
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
                if(
                    _change_error is null and _change_columns is not null
                    and not coalesce(forall(_change_columns, name -> name in ('id', 'status', 'total', 'placed_at', 'ratio')), false),
                    concat('_change_columns names columns that are not declared: ', array_join(_change_columns, ', ', 'NULL')), null
                )
            ), '') as _change_complaint
        from (
    select * from `demo`.`orders__changes`
        )
        where _change_batch >= 1
    )
)
where _change_error is not null;

-- MADE ANEW
