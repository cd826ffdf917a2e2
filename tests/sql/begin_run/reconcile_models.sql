select
    cast(null as string) as relation,
    cast(null as string) as state,
    cast(null as string) as staging,
    cast(null as string) as materialized,
    cast(null as timestamp) as as_of,
    cast(null as bigint) as lag_seconds,
    cast(null as bigint) as batches_behind,
    cast(null as bigint) as records_behind,
    cast(null as bigint) as pending_rows,
    cast(null as bigint) as quarantined,
    cast(null as array<struct<records: bigint, reason: string>>) as quarantine_reasons,
    cast(null as array<string>) as drift,
    cast(null as string) as set_back,
    cast(null as string) as parity_verdict,
    cast(null as timestamp) as compared_at,
    cast(null as bigint) as stored_rows,
    cast(null as array<struct<day: date, applied: bigint, lag_seconds: bigint>>) as days
where false
