select
    cast(null as string) as relation,
    cast(null as string) as reason,
    cast(null as bigint) as records,
    cast(null as bigint) as first_batch,
    cast(null as bigint) as last_batch,
    cast(null as string) as example_key,
    cast(null as string) as example_origin
where false
