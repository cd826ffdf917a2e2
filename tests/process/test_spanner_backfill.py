"""The rows of a backfill, read by the real client from a server on a socket that misbehaves as real ones do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
from clocks import MovedClock
from fake_spanner import FakeSpanner, Fault
from google.protobuf.struct_pb2 import ListValue, Value
from reconcile_jobs.process import errors
from reconcile_jobs.spanner import backfill
from reconcile_jobs.spanner.backfill import Column, Table, read_rows, shares_of, watched_tables
from reconcile_jobs.spanner.queries import Client, DatabaseName, Retries
from reconcile_jobs.spanner.windows import find_change_stream
from reconcile_jobs.timestamps import as_text

T0 = FakeSpanner.START
FIVE = Retries(limit=5)
TABLE = Table("T", (Column("k", 1, True), Column("v", 2, False)))
READ = "rows of T"
ROWS = [("a", "half of b"), ("b", "c"), ("d", "the last one")]


@contextmanager
def connected(server: FakeSpanner) -> Iterator[Client]:
    server.rows = ROWS
    # By this clock the pauses between attempts take no time.
    with Client(DatabaseName("p", "i", "d", server.address), retries=FIVE, clock=MovedClock()) as client:
        yield client


def backfilled(client: Client) -> list[tuple[str, str]]:
    (share,) = shares_of(client, [TABLE], T0)
    records = [json.loads(text) for text in read_rows(client, share, T0)]
    return [(mod["keys"]["k"], mod["new_values"]["v"]) for record in records for mod in record["mods"]]


def test_rows_are_read_as_they_were_at_the_start_to_the_nanosecond():
    with FakeSpanner() as server, connected(server) as client:
        shares_of(client, [TABLE], T0 + 123_456_789)
        assert server.moments == [T0 + 123_456_789]


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([("k", "v")] * 250, [100, 100, 50]),
        ([("k", "v")] * 200, [100, 100]),
        ([("k", "x" * 99_000)] * 5, [3, 2]),
        ([("k", "x" * 199_000), ("k", "x" * 1000), ("k", "v")], [2, 1]),
        ([], []),
    ],
    ids=["many", "just two records", "long", "longer than a record may be", "none"],
)
def test_a_record_has_a_hundred_rows_or_so_many_characters(rows: list[tuple[str, str]], sizes: list[int]):
    with FakeSpanner() as server, connected(server) as client:
        server.rows = rows
        (share,) = shares_of(client, [TABLE], T0)
        records = [json.loads(text) for text in read_rows(client, share, T0)]
        assert [len(record["mods"]) for record in records] == sizes


def test_a_backfill_record_has_the_form_of_an_insert_of_no_transaction():
    with FakeSpanner() as server, connected(server) as client:
        server.rows = [("a", "b")]
        (share,) = shares_of(client, [TABLE], T0 + 1)
        (text,) = read_rows(client, share, T0 + 1)
    assert json.loads(text) == {
        "column_types": [
            {"name": "k", "type": {"code": "STRING"}, "is_primary_key": True, "ordinal_position": 1},
            {"name": "v", "type": {"code": "STRING"}, "is_primary_key": False, "ordinal_position": 2},
        ],
        "mods": [{"keys": {"k": "a"}, "new_values": {"v": "b"}, "old_values": {}}],
        "backfill": True, "commit_timestamp": as_text(T0 + 1), "is_last_record_in_transaction_in_partition": True,
        "is_system_transaction": False, "mod_type": "INSERT", "number_of_partitions_in_transaction": 0,
        "number_of_records_in_transaction": 0, "record_sequence": "", "server_transaction_id": "", "table_name": "T",
        "transaction_tag": "", "value_capture_type": "NEW_ROW",
    }  # fmt: skip


def test_a_null_and_an_array_of_texts_are_as_change_records_have_them():
    nothing = Value(null_value=0)  # type: ignore[arg-type]
    texts = Value(list_value=ListValue(values=[Value(string_value="a"), nothing]))
    found = [backfill._plain(value) for value in (nothing, texts, Value(bool_value=False), Value(number_value=1.5))]
    assert found == [None, ["a", None], False, 1.5]


def test_a_stream_that_watches_everything_has_the_key_and_the_other_columns_of_each_table():
    for postgresql in (False, True):
        with FakeSpanner(postgresql) as server, connected(server) as client:
            assert watched_tables(client, find_change_stream(client, "everything")) == [TABLE]


tokens_or_none = pytest.mark.parametrize("resume_tokens", [True, False], ids=["tokens", "no tokens"])


@tokens_or_none
@pytest.mark.parametrize("chunk", [None, 4])
def test_a_failure_between_any_two_messages_loses_and_repeats_nothing(resume_tokens: bool, chunk: int | None):
    with FakeSpanner(resume_tokens=resume_tokens, chunk=chunk) as server, connected(server) as client:
        for at in range(6 if chunk is None else 10):
            server.faults = [Fault(READ, at)]
            assert backfilled(client) == ROWS
            assert server.faults[0].times == 0


@tokens_or_none
@pytest.mark.parametrize(
    ("chunk", "torn"), [(None, (1, 3, 5)), (4, (1, 2, 3, 5, 7, 8, 9))], ids=["within a row", "within a value"]
)
def test_a_read_that_ends_well_within_a_row_or_a_value_loses_and_repeats_nothing(
    resume_tokens: bool, chunk: int | None, torn: tuple[int, ...]
):
    with FakeSpanner(resume_tokens=resume_tokens, chunk=chunk) as server, connected(server) as client:
        for at in torn:
            server.faults = [Fault(READ, at, code=None)]
            assert backfilled(client) == ROWS
            assert server.faults[0].times == 0


def test_rows_that_were_given_beyond_the_last_token_are_not_given_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backfill, "_KEPT_BACK", 0)
    with FakeSpanner() as server, connected(server) as client:
        server.last_token = 1  # of the first row
        assert backfilled(client) == ROWS
        server.faults = [Fault(READ, 4)]  # when the second row was given
        with pytest.raises(errors.Fault, match=r"rows of T could not be read completely: run the same command again"):
            backfilled(client)


def test_a_read_that_always_ends_within_a_row_is_one_sentence():
    with FakeSpanner() as server, connected(server) as client:
        server.faults = [Fault(READ, 3, code=None, times=1000)]
        with pytest.raises(errors.Fault, match=r"failed 6 times in a row \(a result that ends within") as failure:
            backfilled(client)
        assert "\n" not in str(failure.value)
        assert len(server.reads) == 6


def test_a_transaction_begins_in_a_new_session_where_the_one_before_has_ended():
    with FakeSpanner() as server, connected(server) as client:
        assert client.now() == server.now
        server.alive.clear()
        assert backfilled(client) == ROWS
        assert server.sessions == 2


@pytest.mark.parametrize("ends", ["PartitionRead", READ])
def test_a_session_that_ends_takes_the_transaction_of_the_read_with_it(ends: str):
    with FakeSpanner() as server, connected(server) as client:
        session = "projects/p/instances/i/databases/d/sessions/s1"
        server.faults = [Fault(ends, 0, grpc.StatusCode.NOT_FOUND, f"Session not found: {session}", times=1000)]
        with pytest.raises(errors.Fault, match=r"ended the session, .* run the same command again") as failure:
            backfilled(client)
        assert "\n" not in str(failure.value)
        assert "sessions/s" not in str(failure.value)
        assert server.faults[0].times == 999, "another attempt cannot help"
        assert server.sessions == 1
