select *
from (
    select
        relation, object, kind, name, if(kind = 'column' and array_contains(ignored, name), 'ignored', finding) as finding, since_batch, last_batch, records, forms,
        concat('- {name: "', replace(replace(undeclared, '\\', '\\\\'), '"', '\\"'), '", data_type: ', if(data_type = 'json', json_type, concat(data_type, ', config: {meta: {added: true}}')), '}') as yaml
    from (
        select
            relation, 'column' as kind, name, last_batch,
            case when not is_declared then 'new' when cardinality(missing) > 0 then 'missing' when is_changed then 'changed form' end as finding,
            case when not is_declared then first_batch when cardinality(missing) > 0 then array_min(missing.batch) else element_at(observed_forms, -1).since end as since_batch,
            case when not is_declared then records when cardinality(missing) > 0 then aggregate(missing.records, 0L, (sum, number) -> sum + number) else element_at(observed_forms, -1).records end as records,
            array_join(transform(observed_forms, entry -> concat(entry.form, ' as ', entry.spelled, ' since batch ', entry.since)), ', ') as forms,
            if(not is_declared, spelled, null) as undeclared,
            case when exists(observed_forms, entry -> entry.form = 'json') then 'json' when is_changed then 'string' when observed_forms[0].form = 'whole number' then 'bigint' when observed_forms[0].form = 'boolean' then 'boolean' else 'string' end as data_type
        from (
            select
                *,
                filter(lacking, entry -> entry.batch > coalesce(last_whole, 0)) as missing,
                cardinality(array_distinct(transform(observed_forms, entry -> struct(entry.form, entry.spelled)))) > 1 as is_changed
            from (
                select
                    relation, name, is_declared,
                    min(since) as first_batch,
                    max(last_batch) as last_batch,
                    sum(if(form = 'missing', 0, records)) as records,
                    array_sort(collect_list(if(form in ('missing', 'null'), null, struct(since, form, spelled, records)))) as observed_forms,
                    coalesce(max(if(form = 'missing', batches, null)), array()) as lacking,
                    array_max(array_except(flatten(collect_list(if(form = 'missing', null, batches.batch))), lacking.batch)) as last_whole,
                    max(spelled) as spelled
                from (
                    select relation, kind, name, is_declared, spelled, min(form) as form, min(batch) as since, max(batch) as last_batch, sum(records) as records, collect_list(struct(batch, records)) as batches
                    from `demo`.`reconcile_columns_seen`
                    where kind = 'column'
                    group by relation, kind, name, is_declared, spelled, replace(form, 'whole ', '')
                )
                group by relation, name, is_declared
            )
        )
        union all
        -- of a key or schema that the source takes up again, the newest return counts
        select relation, kind, name, last_batch, if(kind = 'key', 'changed key', 'changed schema'), last_batch, records, null, null, null
        from (
            select *, row_number() over (partition by relation, kind order by since, name) as place
            from (
                select relation, kind, name, is_declared, spelled, min(form) as form, min(batch) as since, max(batch) as last_batch, sum(records) as records, collect_list(struct(batch, records)) as batches
                from `demo`.`reconcile_columns_seen`
                where kind <> 'column'
                group by relation, kind, name, is_declared, spelled, replace(form, 'whole ', '')
            )
        )
        where place > 1 or cardinality(batches) > 1
    )
    inner join (
        select *
        from values
            ('demo.orders', 'shop.orders', cast(array() as array<string>), 'string, config: {meta: {encoding: json, added: true}}')
            as models (relation, object, ignored, json_type)
    ) using (relation)
    where finding is not null
)
where kind = 'column' and finding <> 'ignored'
