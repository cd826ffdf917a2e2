"""The cells of a Bigtable table become a snapshot table: every version of every column, as a model of cells has them.

Bigtable reads as of no moment: a cell that is written while the job reads is there or not. So the snapshot has no
position, and the moment at which the job began to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.rows import Row, frame_of_rows, has_rows
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, in_sentences
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["Loaded", "load_bigtable"]

# The columns of a model of cells: see macros/sources/bigtable_change_stream.sql.
_COLUMNS = {
    "row_key": "binary",
    "family": "string",
    "qualifier": "binary",
    "cell_time": "timestamp",
    "value": "binary",
}

_COMMENT = "A source's own cells, read from Bigtable one after the other; each load replaces them all"

# How much Python hands back to Spark at a time: a row may be of hundreds of megabytes, and is handed on in parts.
_BATCH_CELLS = 10_000
_BATCH_BYTES = 4_000_000


class Loaded(NamedTuple):
    """What a snapshot has: its cells, which are its rows, and the moment at which the job began to read."""

    rows: int
    taken_at: str


def load_bigtable(spark: SparkSession, source: SourceTable, into: TableName, allow_empty: bool = False) -> Loaded:
    """Create or replace the table with the cells that a table of Bigtable has now.

    Raises UsageError, DataError where the table has no row and nobody has said that this is right, and other JobErrors.
    The table is then as it was.
    """
    with in_sentences(), Client(source) as client:
        snapshot_table.prepare(spark, into)
        taken_at = as_text(client.clock.now())
        if not allow_empty and not has_rows(client):
            raise DataError(f"{source} has no rows: if the table is empty, give --allow-empty.")
        session.ship_by_value()
        readers = 4 * spark.sparkContext.defaultParallelism
        schema = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        rows = frame_of_rows(spark, client, readers, _batches_of, schema)
        properties = {
            "reconcile.snapshot": "bigtable",
            "reconcile.snapshot.instance": f"projects/{source.project}/instances/{source.instance}",
            "reconcile.snapshot.table": source.table,
            "reconcile.snapshot.app_profile": source.app_profile,
            "reconcile.snapshot.taken_at": taken_at,
        }
        snapshot_table.writer(rows, into, _COMMENT, properties).createOrReplace()
        return Loaded(spark.table(into.sql).count(), taken_at)


def _batches_of(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Yield the cells of rows, in batches of bounded size."""
    cells: list[tuple[bytes, str, bytes, int, bytes]] = []
    size = 0
    for row in rows:
        for cell in row.cells:
            cells.append((row.key, *cell))
            size += len(row.key) + len(cell.qualifier) + len(cell.value)
            if len(cells) >= _BATCH_CELLS or size >= _BATCH_BYTES:
                yield _batch(cells)
                cells, size = [], 0
    if cells:
        yield _batch(cells)


def _batch(cells: list[tuple[bytes, str, bytes, int, bytes]]) -> pa.RecordBatch:
    import pyarrow as pa

    kinds = {"binary": pa.binary(), "string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC")}
    columns = zip(zip(*cells, strict=True), _COLUMNS.values(), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, kinds[kind]) for values, kind in columns], names=list(_COLUMNS))
