"""The cells that were there before a change stream's start, as records of its form.

A record of type `backfill` holds the cells of one row, or, of a large row, a part of them, each as `set_cell`. It has
no token and no cluster, and its commit timestamp is a microsecond before the stream's start. The rows are read *after*
that start, so that every change of which they show the result, and that may be newer, comes in the stream as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import grpc
from google.cloud.bigtable_v2 import types

from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.change_decoder import base64_text, set_cell
from reconcile_jobs.bigtable.partitions import RowRange
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.staging import RAW_ROWS, raw_rows
from reconcile_jobs.timestamps import as_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RowDecoder", "TornRow", "backfill_frame", "parts_of", "read_rows"]

# The characters after which a record is closed, and those of records that Spark is handed at a time.
_RECORD = 1_000_000
_PORTION = 4_000_000

# Seconds without a message after which a read is taken for dead.
_PATIENCE = 120


class TornRow(Exception):
    """Chunks that do not make whole rows: they have to be read again."""


class RowDecoder:
    """Puts rows together from the chunks of ReadRows."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._key = b""  # the key of the row that is not whole yet; a key is never empty
        self._family: str | None = None
        self._qualifier: bytes | None = None
        self._timestamp = 0
        self._value: list[bytes] | None = None  # of a cell that comes in chunks
        self._cells: list[str] = []

    @property
    def is_between_rows(self) -> bool:
        """Whether no row is unfinished."""
        return not self._key

    def add(self, chunk: Any) -> tuple[bytes, list[str]] | None:
        """Take a CellChunk, and return the row's key and its cells, as JSON, if that makes it whole. Raises TornRow."""
        if chunk.reset_row:
            self._begin()
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
            self._cells.append(set_cell(self._family, self._qualifier, self._timestamp, b"".join(value)))
            self._value = None
        if not chunk.commit_row:
            return None
        if self._value is not None:
            raise TornRow("a row that ends within a value")
        whole = (self._key, self._cells)
        self._begin()
        return whole


def parts_of(client: Client, count: int) -> list[RowRange]:
    """Return about `count` parts of the table of about one size, all of it together. Raises JobError."""
    keys = client.sample_row_keys()
    every = max(1, -(-(len(keys) + 1) // count))
    edges = [b"", *keys[every - 1 :: every], b""]
    return [RowRange(start, end) for start, end in pairwise(edges)]


def read_rows(client: Client, rows: RowRange, moment: int) -> Iterator[str]:
    """Yield the cells of a range of rows as records committed at `moment`, nanoseconds since 1970. Raises JobError."""
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
                        yield from _records(*row, moment)
                        last, failures = row[0], 0
            if not decoder.is_between_rows:
                raise TornRow("an end within a row")
            return
        except grpc.RpcError as problem:
            failures = client.failed(problem, failures)
        except TornRow as problem:
            failures = client.count_failure(failures, str(problem))
        finally:
            call.close()


def _records(key: bytes, cells: list[str], moment: int) -> Iterator[str]:
    head = (
        f'{{"row_key":"{base64_text(key)}","type":"backfill","source_cluster_id":"",'
        f'"commit_timestamp":"{as_text(moment)}","tiebreaker":0,"entries":['
    )
    portion: list[str] = []
    size = 0
    for cell in cells:
        portion.append(cell)
        size += len(cell)
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
    parts = parts_of(client, readers)
    moment = start - 1000
    numbered = spark.range(0, len(parts), 1, len(parts))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def portion(records: list[str]) -> pa.RecordBatch:
            count = len(records)
            return raw_rows(records, [source.table] * count, ["bigtable/backfill"] * count, longest=longest)

        with Client(source) as reader:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    records: list[str] = []
                    size = 0
                    for record in read_rows(reader, parts[number], moment):
                        records.append(record)
                        size += len(record)
                        if size >= _PORTION:
                            yield portion(records)
                            records, size = [], 0
                    if records:
                        yield portion(records)

    return numbered.mapInArrow(read, RAW_ROWS)  # type: ignore[arg-type]
