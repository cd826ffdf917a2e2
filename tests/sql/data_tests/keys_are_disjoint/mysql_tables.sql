select `id`, count(distinct _change_source) as sources, sort_array(collect_set(_change_source)) as found_in
from (
    select `id`, nullif(concat_ws('.', nullif(_change_metadata.database, ''), nullif(regexp_replace(_change_metadata.schema, '^\\["|"\\]$', ''), ''), nullif(_change_metadata.table, '')), '') as _change_source
    from (
        select `id`, from_json(_change_record, 'source_metadata struct<database string, schema string, table string>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).source_metadata as _change_metadata
        from `demo`.`orders__changes`
        where _change_error is null
    )
)
group by `id`
having count(distinct _change_source) > 1 and count(`id`) > 0
