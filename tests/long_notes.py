"""What staging holds of a record that is too long."""

from __future__ import annotations

from reconcile_jobs.long_records import LongRecord


def long_record(record: str) -> str:
    """Return the note of a record, as if it were too long."""
    long = LongRecord("byte 7")
    long.add(record.encode())
    return long.note()
