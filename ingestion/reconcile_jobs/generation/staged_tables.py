"""One reading of a staging table: what its records show of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from reconcile_jobs.generation.observations import Add, Observations
from reconcile_jobs.generation.streams import Stream
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.session import ship_by_value
from reconcile_jobs.staging import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["observe", "observed", "reader"]


def observe(spark: SparkSession, staging: TableName, stream: Stream, since_batch: int | None = None) -> Observations:
    """Read the staged records of a source once, and return what they show. Raises UsageError."""
    if not spark.catalog.tableExists(staging.sql):
        raise UsageError(f"{staging} does not exist; ingestion/append.py fills it.")
    return observed(spark.table(staging.sql), stream, since_batch)


def observed(staged: DataFrame, stream: Stream, since_batch: int | None = None) -> Observations:
    """Return what the rows of a staging table show. Each of Spark's tasks returns a row for each table that it met."""
    ship_by_value()
    condition = f"source = '{stream.source}'" + (f" and batch >= {since_batch}" if since_batch is not None else "")
    records = staged.where(condition).select("record", "object", "batch")
    rows = records.mapInArrow(reader(stream.add), "seen string").collect()
    return Observations.from_rows(row["seen"] for row in rows)


def reader(add: Add) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what reads a task's rows of staging, in an executor."""

    def seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        found = Observations()
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("record", "object", "batch")]
            for record, object_, number in zip(*columns, strict=True):
                add(found, record, object_, number)
        yield pa.RecordBatch.from_pydict({"seen": pa.array([*found.rows()], pa.string())})

    return seen
