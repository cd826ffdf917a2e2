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

{the SELECT of bigtable/change_records.sql}
) limit 1000);

create view if not exists `demo`.`orders__changes`
tblproperties ('reconcile.definition' = '6095e5b7f208079a0d1b605d6c7a3266')
as

{the SELECT of bigtable/change_records.sql};

create view if not exists `demo`.`orders`
tblproperties ('reconcile.definition' = '3b7c597eed3e0871f4593e766effd5df')
as
with changes as (
    select
        `row_key`,
        `family`,
        `qualifier`,
        `cell_time`,
        `value`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _range,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, to_json(struct(*))) as _change_record,
        cast(null as string) as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `row_key` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key row_key is missing or NULL', null),
                if(_change_error is null and `family` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key family is missing or NULL', null),
                if(_change_error is null and `qualifier` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key qualifier is missing or NULL', null),
                if(_change_error is null and `cell_time` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key cell_time is missing or NULL', null),
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
    select `row_key`, `family`, `qualifier`, `cell_time`, `value`, _change_sequence, _deleted
    from (
        select newest.*, records as _change_records, sequences as _change_sequences
        from (
            select
                max_by(
                    struct(
                        `row_key`,
                        `family`,
                        `qualifier`,
                        `cell_time`,
                        if(_change_type = 'delete', null, `value`) as `value`,
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
            where _change_error is null and `row_key` is not null
            group by `row_key`, `family`, `qualifier`, `cell_time`
        )
    )
),

keyless_deletes as (
    select _range, _change_sequence
    from changes
    where (_change_error is null and `row_key` is null)
)

select
    `row_key`,
    `family`,
    `qualifier`,
    `cell_time`,
    `value`
from fresh as base
where
    not _deleted
    and not exists (
        select 1
        from keyless_deletes as keyless
        where keyless._range.row_key = base.row_key and keyless._range.family = base.family and (keyless._range.qualifier is null or keyless._range.qualifier = base.qualifier) and keyless._range.start_time <= base.cell_time and (keyless._range.end_time is null or base.cell_time < keyless._range.end_time) and keyless._change_sequence > base._change_sequence
    );

create view if not exists `demo`.`orders__quarantine`
tblproperties ('reconcile.definition' = '4fdae2cda7005cb77c07343d43a463ad')
as
select _change_record as record, _change_error, _change_id, _change_batch, _change_origin as origin
from (
    select
        `row_key`,
        `family`,
        `qualifier`,
        `cell_time`,
        `value`,
        _change_type,
        _change_sequence,
        _change_id,
        _change_time,
        _change_batch,
        _range,
        _change_complaint as _change_error,
        if(_change_complaint is null, null, _change_record) as _change_record,
        _change_origin as _change_origin
    from (
        select
            *,
            nullif(concat_ws(
                '; ',
                _change_error,
                if(_change_error is null and `row_key` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key row_key is missing or NULL', null),
                if(_change_error is null and `family` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key family is missing or NULL', null),
                if(_change_error is null and `qualifier` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key qualifier is missing or NULL', null),
                if(_change_error is null and `cell_time` is null and not (_change_type <=> 'delete' and _range is not null and `row_key` is null and `family` is null and `qualifier` is null and `cell_time` is null), 'key cell_time is missing or NULL', null),
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
