"""The cells that were there before a change stream's start, as records of its form.

A record of type `backfill` holds the cells of one row, or, of a large row, a part of them, each as `set_cell`. It has
no token and no cluster, and its commit timestamp is a microsecond before the stream's start. The rows are read *after*
that start, so that every change of which they show the result, and that may be newer, comes in the stream as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.change_decoder import base64_text, set_cell
from reconcile_jobs.bigtable.rows import Row, frame_of_rows
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.staging import RAW_ROWS, raw_rows
from reconcile_jobs.timestamps import as_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["backfill_frame", "records_of"]

# The characters after which a record is closed, and those of records that Spark is handed at a time.
_RECORD = 1_000_000
_PORTION = 4_000_000


def records_of(row: Row, moment: int) -> Iterator[str]:
    """Yield the cells of a row as records committed at `moment`, in nanoseconds since 1970."""
    head = (
        f'{{"row_key":"{base64_text(row.key)}","type":"backfill","source_cluster_id":"",'
        f'"commit_timestamp":"{as_text(moment)}","tiebreaker":0,"entries":['
    )
    portion: list[str] = []
    size = 0
    for cell in row.cells:
        portion.append(set_cell(*cell))
        size += len(portion[-1])
        if size >= _RECORD:
            yield f"{head}{','.join(portion)}]}}"
            portion, size = [], 0
    if portion:
        yield f"{head}{','.join(portion)}]}}"


def backfill_frame(
    spark: SparkSession, client: Client, source: SourceTable, start: int, readers: int, longest: int = LONGEST
) -> DataFrame:
    """Return `record`, `object` and `origin` of the cells that the table has. The frame reads them when evaluated.

    `start`: the start of the stream, in nanoseconds since 1970, which must lie in the past.
    """
    moment = start - 1000

    def batches_of(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        def portion(records: list[str]) -> pa.RecordBatch:
            count = len(records)
            return raw_rows(records, [source.table] * count, ["bigtable/backfill"] * count, longest=longest)

        records: list[str] = []
        size = 0
        for row in rows:
            for record in records_of(row, moment):
                records.append(record)
                size += len(record)
                if size >= _PORTION:
                    yield portion(records)
                    records, size = [], 0
        if records:
            yield portion(records)

    return frame_of_rows(spark, client, readers, batches_of, RAW_ROWS)
