"""The rows of a backfill, read by the real client from a server on a socket that misbehaves as real ones do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
from clocks import MovedClock
from fake_spanner import FakeSpanner, Fault
from reconcile_jobs.process import errors
from reconcile_jobs.spanner import backfill
from reconcile_jobs.spanner.backfill import Column, Table, read_rows, shares_of
from reconcile_jobs.spanner.queries import Client, DatabaseName, Retries

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
