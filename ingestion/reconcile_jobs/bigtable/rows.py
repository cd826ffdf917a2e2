"""The rows of a Bigtable table as they are now, whole and in ranges of keys: what a backfill and a snapshot read.

A row is known when its last chunk has come, so a task holds one row at a time, however many rows its range has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
from google.cloud.bigtable_v2 import types

from reconcile_jobs.bigtable.calls import Client
from reconcile_jobs.bigtable.partitions import RowRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cell", "Row", "RowDecoder", "TornRow", "frame_of_rows", "has_rows", "parts_of", "read_rows"]

# Seconds without a message after which a read is taken for dead.
_PATIENCE = 120


class Cell(NamedTuple):
    """A cell of a row; `timestamp_micros` is its own, which its writer chose."""

    family: str
    qualifier: bytes
    timestamp_micros: int
    value: bytes


class Row(NamedTuple):
    """A row with all of its cells, of each column every version."""

    key: bytes
    cells: list[Cell]


class TornRow(Exception):
    """Chunks that do not make whole rows: they have to be read again."""


class RowDecoder:
    """Puts rows together from the chunks of ReadRows."""

    def __init__(self) -> None:
        self._is_reset = False  # the server begins the row anew
        self._begin()

    def _begin(self) -> None:
        self._key = b""  # the key of the row that is not whole yet; a key is never empty
        self._family: str | None = None
        self._qualifier: bytes | None = None
        self._timestamp = 0
        self._value: list[bytes] | None = None  # of a cell that comes in chunks
        self._cells: list[Cell] = []

    @property
    def is_between_rows(self) -> bool:
        """Whether no row is unfinished."""
        return not self._key and not self._is_reset

    def add(self, chunk: Any) -> Row | None:
        """Take a CellChunk, and return the row if that makes it whole. Raises TornRow."""
        if chunk.reset_row:
            self._begin()
            self._is_reset = True
            return None
        if chunk.row_key and chunk.row_key != self._key:
            if self._key:
                raise TornRow("a row that begins within another")
            self._key = chunk.row_key
        if not self._key:
            raise TornRow("a cell without a row")
        if self._value is None:
            if chunk.HasField("family_name"):
                self._family, self._qualifier = chunk.family_name.value, None
            if chunk.HasField("qualifier"):
                self._qualifier = chunk.qualifier.value
            if self._family is None or self._qualifier is None:
                raise TornRow("a cell without a column")
            self._timestamp = chunk.timestamp_micros
        value = [*(self._value or ()), chunk.value]
        if chunk.value_size:
            self._value = value
        else:
            assert self._family is not None and self._qualifier is not None
            self._cells.append(Cell(self._family, self._qualifier, self._timestamp, b"".join(value)))
            self._value = None
        if not chunk.commit_row:
            return None
        if self._value is not None:
            raise TornRow("a row that ends within a value")
        whole, self._is_reset = Row(self._key, self._cells), False
        self._begin()
        return whole


def parts_of(client: Client, count: int) -> list[RowRange]:
    """Return about `count` parts of the table of about one size, all of it together. Raises JobError."""
    keys = client.sample_row_keys()
    every = max(1, -(-(len(keys) + 1) // count))
    edges = [b"", *keys[every - 1 :: every], b""]
    return [RowRange(start, end) for start, end in pairwise(edges)]


def has_rows(client: Client) -> bool:
    """Return whether the table has a row, of which one cell is asked for, without its value. Raises JobError."""
    request = types.ReadRowsRequest.pb()(rows_limit=1)
    request.filter.chain.filters.add(cells_per_row_limit_filter=1)
    request.filter.chain.filters.add(strip_value_transformer=True)
    messages = client.rows("ReadRows", request, types.ReadRowsResponse)
    return any(chunk.commit_row for message in messages for chunk in message.chunks)


def read_rows(client: Client, rows: RowRange) -> Iterator[Row]:
    """Yield the rows of a range in the order of their keys, each once, whatever fails meanwhile. Raises JobError."""
    last, failures = b"", 0  # the key of the last row that was given
    while True:
        if last and rows.end == last + b"\0":
            return  # Bigtable does not take an empty range
        request = types.ReadRowsRequest.pb()()
        asked = request.rows.row_ranges.add()
        if last:
            asked.start_key_open = last
        else:
            asked.start_key_closed = rows.start
        if rows.end:
            asked.end_key_open = rows.end
        decoder = RowDecoder()
        call = client.open("ReadRows", request, types.ReadRowsResponse, _PATIENCE)
        try:
            for message in call.messages():
                for chunk in message.chunks:
                    row = decoder.add(chunk)
                    if row is not None:
                        yield row
                        last, failures = row.key, 0
            if not decoder.is_between_rows:
                raise TornRow("an end within a row")
            return
        except grpc.RpcError as problem:
            failures = client.failed(problem, failures)
        except TornRow as problem:
            failures = client.count_failure(failures, str(problem))
        finally:
            call.close()


def frame_of_rows(
    spark: SparkSession,
    client: Client,
    readers: int,
    batches_of: Callable[[Iterator[Row]], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """Return what `batches_of` makes of all rows, read in about so many ranges, each by a task of its own.

    `schema`: the columns of its batches, as DDL. The frame reads the rows when evaluated. Raises JobError.
    """
    source, parts = client.source, parts_of(client, readers)
    numbered = spark.range(0, len(parts), 1, len(parts))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Client(source) as reader:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    yield from batches_of(read_rows(reader, parts[number]))

    return numbered.mapInArrow(read, schema)  # type: ignore[arg-type]
