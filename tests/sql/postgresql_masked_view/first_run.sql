select object, max(last_batch) as batch
from `demo`.`reconcile_ledger`
where relation = 'lake.shop_changes' and kind = 'purge'
group by object;

show tblproperties `lake`.`shop_changes`;

select
    count_if(startswith(_change_record, '{"unmasked_record":')) as unmasked,
    min(if(startswith(_change_record, '{"unmasked_record":'), _change_batch, null)) as unmasked_batch
from (

{the SELECT of postgresql_masked_view/change_records.sql}
);

select
    count_if(_change_error is null) as readable,
    count(_change_macro) as of_other_source,
    mode(_change_macro, true) as fitting_macro
from (select _change_macro, _change_error from (

{the SELECT of postgresql_masked_view/change_records.sql}
) limit 1000);

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = 'd7c7f09455938e557373d333130734c4')
as

{the SELECT of postgresql_masked_view/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '070cd22ed9b50da3a879c07773d23f25')
as
with changes as (
    select
        `id`,
        `name`,
        `Email`,
        `it's`,
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
        where _change_batch >= 1
    )
),
fresh as (
    select `id`, `name`, `Email`, `it's`, _change_sequence, _deleted
    from (
        select newest.*, records as _change_records, sequences as _change_sequences
        from (
            select
                max_by(
                    struct(
                        `id`,
                        if(_change_type = 'delete', null, `name`) as `name`,
                        if(_change_type = 'delete', null, `Email`) as `Email`,
                        if(_change_type = 'delete', null, `it's`) as `it's`,
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
    )
)

select
    `id`,
    `name`,
    `Email`,
    `it's`
from fresh
where
    not _deleted;

create view if not exists `demo`.`orders__quarantine`
tblproperties ('reconcile.definition' = '27383b34335d8ce2369b6be4c8313675')
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from (
    select
        `id`,
        `name`,
        `Email`,
        `it's`,
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
