select 1L as id, 'one' as name, 'insert' as _change_type, '1' as _change_sequence, '1' as _change_id,
    timestamp'2026-01-01' as _change_time, 1L as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_error
