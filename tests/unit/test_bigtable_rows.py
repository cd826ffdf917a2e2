"""Rows of a Bigtable table from the chunks of ReadRows: each is whole, or is read again."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.cloud.bigtable_v2 import types
from reconcile_jobs.bigtable.partitions import RowRange
from reconcile_jobs.bigtable.rows import Cell, Row, RowDecoder, TornRow, parts_of, read_rows

CHUNK: Any = types.ReadRowsResponse.CellChunk.pb()


def cell(value: bytes, **said: Any) -> Any:
    chunk = CHUNK(row_key=b"k", timestamp_micros=7, value=value, **said)
    chunk.family_name.value, chunk.qualifier.value = "f", b"q"
    return chunk


def test_a_row_that_the_server_begins_anew_is_what_comes_then():
    decoder = RowDecoder()
    assert decoder.add(cell(b"torn")) is None
    assert not decoder.is_between_rows
    assert decoder.add(CHUNK(reset_row=True)) is None
    assert not decoder.is_between_rows, "an end here would leave the row out"
    assert decoder.add(cell(b"whole", commit_row=True)) == Row(b"k", [Cell("f", b"q", 7, b"whole")])
    assert decoder.is_between_rows


def test_a_value_in_pieces_is_put_together_and_a_row_may_not_end_within_it():
    decoder = RowDecoder()
    assert decoder.add(cell(b"ab", value_size=4)) is None
    assert decoder.add(CHUNK(value=b"cd", commit_row=True)) == Row(b"k", [Cell("f", b"q", 7, b"abcd")])
    with pytest.raises(TornRow, match="ends within a value"):
        RowDecoder().add(cell(b"ab", value_size=4, commit_row=True))


def test_chunks_of_no_row_or_of_no_column_are_torn():
    with pytest.raises(TornRow, match="a cell without a row"):
        RowDecoder().add(CHUNK(value=b"x"))
    with pytest.raises(TornRow, match="a cell without a column"):
        RowDecoder().add(CHUNK(row_key=b"k", value=b"x"))
    decoder = RowDecoder()
    decoder.add(cell(b"x"))
    with pytest.raises(TornRow, match="begins within another"):
        decoder.add(CHUNK(row_key=b"l", value=b"x"))


@pytest.mark.parametrize(
    ("keys", "count", "parts"), [(0, 8, 1), (3, 8, 4), (7, 4, 4), (8, 4, 3), (99, 8, 8), (5, 1, 1)]
)
def test_a_table_is_read_in_at_most_so_many_parts_that_are_all_of_it(keys: int, count: int, parts: int):
    samples = [b"k%02d" % number for number in range(keys)]
    found = parts_of(SimpleNamespace(sample_row_keys=lambda: samples), count)  # type: ignore[arg-type]
    assert len(found) == parts
    assert (found[0].start, found[-1].end) == (b"", b"")
    assert all(one.end == other.start for one, other in pairwise(found))


class Breaking:
    """A client whose reads give some rows of a table and then break off, as often as `after` says after how many."""

    def __init__(self, keys: list[bytes], *after: int) -> None:
        self.keys, self.after, self.asked, self.failures = keys, list(after), list[Any](), list[int]()

    def open(self, method: str, request: Any, response: Any, patience: Any) -> Any:
        (asked,) = request.rows.row_ranges
        self.asked.append((asked.start_key_closed, asked.start_key_open, asked.end_key_open))
        left = [key for key in self.keys if asked.start_key_closed <= key > asked.start_key_open]
        left = [key for key in left if not asked.end_key_open or key < asked.end_key_open]
        return SimpleNamespace(messages=lambda: self.messages(left), close=lambda: None)

    def messages(self, left: list[bytes]) -> Any:
        breaks = self.after.pop(0) if self.after else None
        for key in left if breaks is None else left[:breaks]:
            chunk = cell(b"v", commit_row=True)
            chunk.row_key = key
            yield SimpleNamespace(chunks=[chunk])
        if breaks is not None:
            raise grpc.RpcError("the connection is gone")

    def failed(self, problem: Exception, failures: int) -> int:
        self.failures.append(failures)
        return failures + 1


def test_a_read_that_breaks_off_goes_on_after_the_last_row_and_gives_each_once():
    keys = [b"a", b"b", b"b\0", b"c", b"d", b"e"]
    client = Breaking(keys, 2, 0, 0, 2)
    rows = [row.key for row in read_rows(client, RowRange(b"b", b"e"))]  # type: ignore[arg-type]
    assert rows == [b"b", b"b\0", b"c", b"d"]
    assert client.asked == [(b"b", b"", b"e"), *[(b"", b"b\0", b"e")] * 3, (b"", b"d", b"e")]
    assert client.failures == [0, 1, 2, 0], "what gives a row has not failed"


def test_no_empty_range_is_asked_for_after_the_last_row_that_a_range_can_have():
    client = Breaking([b"b", b"c"], 1)
    assert [row.key for row in read_rows(client, RowRange(b"", b"b\0"))] == [b"b"]  # type: ignore[arg-type]
    assert client.asked == [(b"", b"", b"b\0")]
