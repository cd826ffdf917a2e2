"""Windows of a change stream, read by the real client from a server on a socket that misbehaves as real ones do."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import google.auth.credentials
import grpc
import pytest
from clocks import MovedClock, wait_until
from fake_spanner import FakeSpanner, Fault, chunks
from google.api_core import grpc_helpers
from google.auth.exceptions import RefreshError
from google.auth.transport.grpc import AuthMetadataPlugin
from reconcile_jobs.process import errors
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.queries import Client, DatabaseName, Retries
from reconcile_jobs.spanner.windows import Leaf, find_change_stream, list_partitions, read_partitions
from reconcile_jobs.timestamps import as_text

SECOND = 10**9
T0 = FakeSpanner.START
T1 = T0 + 60 * SECOND
FIVE = Retries(limit=5)
NAME = "everything"


@contextmanager
def connected(server: FakeSpanner) -> Iterator[Client]:
    # By this clock the pauses between attempts take no time.
    with Client(DatabaseName("p", "i", "d", server.address), retries=FIVE, clock=MovedClock()) as client:
        yield client


def window(
    server: FakeSpanner, start: int = T0, end: int = T1, heartbeat: int = 10_000, **options: Any
) -> tuple[list[dict[str, Any]], set[str]]:
    """Read a window as the job does, and return its records and its leaves."""
    with connected(server) as client:
        stream = find_change_stream(client, NAME, heartbeat)
        listing = list_partitions(client, stream, start, end)
        alive = set(list_partitions(client, stream, end, end).tokens)
        records, leaves = [], set()
        for found in read_partitions(client, stream, list(listing.tokens.items()), end, alive, **options):
            if isinstance(found, Leaf):
                assert found.token not in leaves
                leaves.add(found.token)
            else:
                records.append(json.loads(found[1].json) | {"token": found[0]})
        assert leaves == alive or options
        return records, leaves


def keys(records: list[dict[str, Any]]) -> list[str]:
    return [mod["keys"]["k"] for record in records for mod in record["mods"]]


both_dialects = pytest.mark.parametrize("postgresql", [False, True], ids=["googlesql", "postgresql"])
faults_of = pytest.mark.parametrize(
    ("code", "details"),
    [
        (grpc.StatusCode.UNAVAILABLE, ""),
        (grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
        (grpc.StatusCode.INTERNAL, "Received unexpected EOS on DATA frame from server"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
        (grpc.StatusCode.ABORTED, ""),
        (grpc.StatusCode.DEADLINE_EXCEEDED, ""),
    ],
    ids=lambda value: value.name if isinstance(value, grpc.StatusCode) else value[:12],
)


@both_dialects
def test_a_window_holds_what_was_committed_from_its_start_to_its_end(postgresql: bool):
    with FakeSpanner(postgresql, partitions=3) as server:
        for name, moment in (("before", T0 - 1), ("first", T0), ("last", T1), ("after", T1 + 1)):
            server.commit("P1", moment, name)
        server.commit("P2", T0 + 7, "other")
        records, leaves = window(server)
        assert sorted(keys(records)) == ["first", "last", "other"]
        assert {record["token"] for record in records} == {"P1", "P2"}
        assert leaves == {"P0", "P1", "P2"}
        assert records[0]["commit_timestamp"].endswith("Z")
        following, _ = window(server, T1 + 1, T1 + SECOND)
        assert keys(following) == ["after"], "the next window goes on a nanosecond later"


@both_dialects
def test_nanoseconds_are_kept_and_told_apart(postgresql: bool):
    with FakeSpanner(postgresql) as server:
        for i in range(5):
            server.commit("P0", T0 + i, str(i))
        records, _ = window(server, T0 + 1, T0 + 3)
        assert keys(records) == ["1", "2", "3"]
        assert [record["commit_timestamp"] for record in records] == [as_text(T0 + i) for i in (1, 2, 3)]


@both_dialects
@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_chunks_of_any_size_over_the_wire(postgresql: bool, chunk: int):
    with FakeSpanner(postgresql, chunk=chunk) as server:
        sent = [server.commit("P0", T0 + i, f"k{i}", "é" * i) for i in range(3)]
        server.split("P0", ["A", "B"], T0 + 10)
        sent.append(server.commit("A", T0 + 11, "child"))
        records, leaves = window(server)
        assert [{name: record[name] for name in sent[0]} for record in records] == sent
        assert leaves == {"A", "B"}


@faults_of
@both_dialects
@pytest.mark.parametrize("resume_tokens", [True, False], ids=["tokens", "no tokens"])
def test_a_failure_between_any_two_messages_loses_and_repeats_nothing(
    postgresql: bool, resume_tokens: bool, code: grpc.StatusCode, details: str
):
    # Each record comes in several chunks: most of these failures are in the middle of a row.
    with FakeSpanner(postgresql, chunk=150, resume_tokens=resume_tokens) as server:
        for i in range(4):
            server.commit("P0", T0 + i // 2, str(i))  # two at each moment
        server.split("P0", ["A", "B"], T0 + 10)
        server.commit("A", T0 + 10, "a")
        server.commit("B", T0 + 11, "b")
        server.faults = [Fault("P0", at, code, details) for at in range(12)] + [Fault("A", 1, code, details)]
        records, leaves = window(server)
        assert sorted(keys(records)) == ["0", "1", "2", "3", "a", "b"]
        assert leaves == {"A", "B"}
        resumed = [query for query in server.queries if query.resume_token]
        assert bool(resumed) == resume_tokens
        assert all(fault.times == 0 for fault in server.faults[:4])


def test_a_query_without_tokens_goes_on_from_the_last_record_seen():
    with FakeSpanner(resume_tokens=False) as server:
        for i in range(10):
            server.commit("P0", T0 + i, str(i))
        server.faults = [Fault("P0", 6)]
        records, _ = window(server)
        assert keys(records) == [str(i) for i in range(10)]
        assert [q.start for q in server.queries if q.token] == [as_text(T0), as_text(T0 + 5)]


def test_a_heartbeat_moves_the_start_of_the_next_attempt():
    with FakeSpanner(resume_tokens=False) as server:
        server.commit("P0", T0 + 1)
        server.heartbeat("P0", T0 + SECOND)
        server.faults = [Fault("P0", 2)]
        records, _ = window(server)
        assert len(records) == 1
        assert [q.start for q in server.queries if q.token] == [as_text(T0), as_text(T0 + SECOND)]


def test_a_resume_token_that_leads_nowhere_is_given_up():
    with FakeSpanner() as server:
        for i in range(3):
            server.commit("P0", T0 + i, str(i))
        server.faults = [Fault("P0", 2, times=2)]
        records, _ = window(server)
        assert keys(records) == ["0", "1", "2"]
        assert [bool(q.resume_token) for q in server.queries if q.token] == [False, True, False]


@both_dialects
def test_a_resumed_query_that_begins_at_its_beginning_repeats_nothing(postgresql: bool):
    with FakeSpanner(postgresql) as server:
        server.replays = True
        for i in range(6):
            server.commit("P0", T0 + i // 2, str(i))
        server.faults = [Fault("P0", 3), Fault("P0", 5)]
        records, _ = window(server)
        assert keys(records) == [str(i) for i in range(6)]
        assert len([q for q in server.queries if q.resume_token]) == 2


@both_dialects
@pytest.mark.parametrize("replays", [False, True], ids=["goes on", "replays"])
def test_a_token_in_the_middle_of_a_record_corrupts_nothing_wherever_the_server_goes_on(
    postgresql: bool, replays: bool
):
    # The PostgreSQL dialect's records are one long text.
    with FakeSpanner(postgresql, chunk=60 if postgresql else 20) as server:
        server.replays = replays
        sent = [server.commit("P0", T0 + i // 2, str(i)) for i in range(4)]
        messages = len(list(chunks(server._value({"data_change_record": sent[0]}), server.chunk)))
        assert messages > 3
        # Before each message of the second record, the first of which comes after a whole one.
        for at in range(messages, 2 * messages):
            server.queries.clear()
            server.faults = [Fault("P0", at)]
            records, _ = window(server)
            assert [{name: record[name] for name in sent[0]} for record in records] == sent
            assert server.faults[0].times == 0
            resumed = [query for query in server.queries if query.resume_token]
            assert len(resumed) == (1 if at == messages else 0), "a token is used where nothing is unfinished at it"


@both_dialects
def test_a_query_that_ends_well_in_the_middle_of_a_value_is_made_again(postgresql: bool):
    with FakeSpanner(postgresql, chunk=200) as server:
        server.commit("P0", T0, "a")
        server.faults = [Fault("P0", 1, code=None)]
        records, _ = window(server)
        assert keys(records) == ["a"]


@pytest.mark.parametrize("resume_tokens", [True, False])
def test_a_child_that_is_named_again_and_again_is_no_progress(resume_tokens: bool):
    with FakeSpanner(resume_tokens=resume_tokens) as server:
        server.split("P0", ["A", "B"], T0 + 10)
        server.faults = [Fault("P0", 1, times=1000)]
        with pytest.raises(errors.Fault, match="failed 6 times in a row"):
            window(server)


def test_attempts_have_a_limit_and_the_failure_is_one_sentence():
    with FakeSpanner() as server:
        server.commit("P0", T0)
        server.faults = [Fault("P0", 1, times=1000)]
        with pytest.raises(errors.Fault, match=r"failed 6 times in a row \(UNAVAILABLE: planted\)") as failure:
            window(server)
        assert "\n" not in str(failure.value)
        assert len([q for q in server.queries if q.token]) == 6


def test_progress_starts_the_count_of_attempts_anew():
    with FakeSpanner(resume_tokens=False) as server:
        for i in range(30):
            server.commit("P0", T0 + i, str(i))
        # Each attempt brings one record that is new, and there are far more failures than the limit.
        server.faults = [Fault("P0", 2, times=29)]
        records, _ = window(server)
        assert keys(records) == [str(i) for i in range(30)]


def test_pauses_grow_and_differ():
    retries = Retries(first=1, factor=2, longest=8)
    assert all(0.5 <= retries.pause(1) <= 1 for _ in range(20))
    assert all(4 <= retries.pause(9) <= 8 for _ in range(20))
    assert len({retries.pause(3) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("code", "details", "sentence"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, "missing spanner.databases.select", "Permission denied.*Database Reader"),
        (grpc.StatusCode.UNAUTHENTICATED, "invalid token", "application default credentials"),
        (grpc.StatusCode.INTERNAL, "something broke", r"refused a query.*\(INTERNAL\): something broke"),
        (grpc.StatusCode.INVALID_ARGUMENT, "Table-valued function not found: READ_x", "change stream does not exist"),
        (
            grpc.StatusCode.FAILED_PRECONDITION,
            "Read-only transaction timestamp 2026-05-01T09:00:00Z has exceeded the maximum timestamp staleness",
            "rows as they were at --start",
        ),
        (
            grpc.StatusCode.OUT_OF_RANGE,
            "Specified start_timestamp is too far in the past. Please specify a start_timestamp within",
            "retention period",
        ),
    ],
)
def test_any_other_failure_ends_it_at_once_with_one_sentence(code: grpc.StatusCode, details: str, sentence: str):
    with FakeSpanner() as server:
        server.commit("P0", T0)
        server.faults = [Fault("P0", 1, code, details + "\nand a second line")]
        with pytest.raises(errors.JobError, match=sentence) as failure:
            window(server)
        assert "\n" not in str(failure.value)
        assert "sessions/s" not in str(failure.value)
        assert len([q for q in server.queries if q.token]) == 1


def test_a_start_before_the_retention_period_is_one_sentence():
    with FakeSpanner() as server:
        server.retention_start = T0 + 1
        with pytest.raises(UsageError, match="retention period"):
            window(server)


@both_dialects
def test_a_stream_that_is_not_there_is_named_with_those_that_are(postgresql: bool):
    with FakeSpanner(postgresql) as server, connected(server) as client:
        with pytest.raises(UsageError, match=r"There is no change stream nothing in projects/p.*it has everything"):
            find_change_stream(client, "nothing")
        with pytest.raises(UsageError, match="not a valid name of a change stream"):
            find_change_stream(client, "x'; DROP")


def test_a_stream_without_a_partition_is_no_empty_window():
    with FakeSpanner() as server, connected(server) as client:
        server.partitions.clear()
        with pytest.raises(errors.Fault, match=f"everything has no partition at {as_text(T0)}: run the same command"):
            list_partitions(client, find_change_stream(client, NAME), T0, T1)


def test_a_stream_with_mutable_key_ranges_is_one_sentence():
    with FakeSpanner() as server, connected(server) as client:
        server.options = {"partition_mode": "MUTABLE_KEY_RANGE"}
        with pytest.raises(UsageError, match="MUTABLE_KEY_RANGE"):
            find_change_stream(client, NAME)
        server.options = {"partition_mode": "IMMUTABLE_KEY_RANGE", "retention_period": "7d"}
        assert find_change_stream(client, NAME).name == NAME


@both_dialects
def test_a_query_that_hangs_is_cancelled_and_made_again(postgresql: bool):
    with FakeSpanner(postgresql) as server:
        for i in range(3):
            server.commit("P0", T0 + i, str(i))
        server.faults = [Fault("P0", 1, hang=True), Fault(None, 0, hang=True)]
        with connected(server) as client:
            stream = find_change_stream(client, NAME, heartbeat=1000)
            assert stream.heartbeat == 1000
            clock, began = client.clock, client.clock.seconds()
            assert isinstance(clock, MovedClock)
            server.on_hang = lambda: clock.advance(1)
            listing = list_partitions(client, stream, T0, T1)
            found = list(read_partitions(client, stream, list(listing.tokens.items()), T1, {"P0"}))
            passed = client.clock.seconds() - began
        keys_found = [json.loads(f[1].json)["mods"][0]["keys"]["k"] for f in found if not isinstance(f, Leaf)]
        assert keys_found == ["0", "1", "2"]
        assert len([q for q in server.queries if q.token]) == 2
        # Each is given up after ten heartbeats of silence, of a second here, and not before.
        assert 20 <= passed < 60


def test_a_reader_that_takes_its_time_is_not_taken_for_a_hung_query():
    with FakeSpanner() as server, connected(server) as client:
        for i in range(3):
            server.commit("P0", T0 + i, str(i))
        stream = find_change_stream(client, NAME, heartbeat=1000)
        clock = client.clock
        assert isinstance(clock, MovedClock)
        seen = []
        for found in read_partitions(client, stream, [("P0", as_text(T0))], T1):
            seen.append(found)
            clock.advance(1000)
            time.sleep(0.25)  # the watch looks ten times a second
            if len(seen) == 2:
                break
        assert len([q for q in server.queries if q.token]) == 1


# Partitions


@both_dialects
def test_two_parents_where_one_lags_give_one_child_read_once(postgresql: bool):
    with FakeSpanner(postgresql, partitions=2) as server:
        server.commit("P0", T0 + 1, "p0")
        server.commit("P1", T0 + 2, "p1")
        server.merge(["P0", "P1"], "C", T0 + 10)
        server.commit("C", T0 + 10, "c")
        # The parent that reads the child hears of it last, and the other one first; then the other way round.
        for lagging in ("P0", "P1"):
            server.queries.clear()
            server.faults = [Fault(lagging, 1, times=3)]
            records, leaves = window(server)
            assert sorted(keys(records)) == ["c", "p0", "p1"]
            assert leaves == {"C"}
            assert [q.token for q in server.queries].count("C") == 1
            (child,) = [q for q in server.queries if q.token == "C"]
            assert child.start == as_text(T0 + 10)


@both_dialects
def test_children_that_live_and_die_within_one_window(postgresql: bool):
    with FakeSpanner(postgresql) as server:
        server.split("P0", ["A", "B"], T0 + 1)
        server.commit("A", T0 + 1, "a")
        server.merge(["A", "B"], "C", T0 + 2)
        server.split("C", ["D", "E"], T0 + 2)  # lives for no time at all
        server.commit("D", T0 + 3, "d")
        server.merge(["D", "E"], "F", T1)  # at the very end
        server.commit("F", T1, "f")
        records, leaves = window(server)
        assert sorted(keys(records)) == ["a", "d", "f"]
        assert leaves == {"F"}


def test_windows_one_after_the_other_read_each_record_once_wherever_the_partitions_split():
    with FakeSpanner(partitions=2) as server:
        moment, names = T0, iter(range(10_000))
        alive = ["P0", "P1"]
        written = []
        for step in range(30):
            for token in alive:
                moment += 3
                written.append(str(next(names)))
                server.commit(token, moment, written[-1])
            moment += 1
            if step % 3 == 0 or len(alive) == 1:
                parent = alive.pop(0)
                children = [f"{parent}.{i}" for i in range(2)]
                server.split(parent, children, moment)
                alive += children
            elif step % 3 == 1:
                child = f"M{step}"
                server.merge(alive[:2], child, moment)
                alive = [*alive[2:], child]
        for width in (1, 2, 7, 50):
            read, at = [], T0
            while at <= moment:
                read += keys(window(server, at, at + width - 1)[0]) if width > 2 or at < T0 + 60 else []
                at += width
            expected = written if width > 2 else [k for k in written if int(k) < len(read)]
            assert sorted(read, key=int) == expected


def test_a_query_that_ends_without_its_child_record_is_made_again():
    with FakeSpanner() as server:
        server.commit("P0", T0 + 1, "before")
        server.split("P0", ["A", "B"], T0 + 10)
        server.commit("B", T0 + 11, "after")
        server.faults = [Fault("P0", 1, code=None, times=2)]
        records, leaves = window(server)
        assert keys(records) == ["before", "after"]
        assert leaves == {"A", "B"}


def test_a_query_that_never_gives_its_child_record_fails_or_is_taken_for_a_leaf_where_that_is_asked_for():
    with FakeSpanner() as server:
        server.commit("P0", T0 + 1, "before")
        server.split("P0", ["A", "B"], T0 + 10)
        server.faults = [Fault("P0", 1, code=None, times=1000)]
        with pytest.raises(errors.Fault, match=r"ended 5 times before .* without the end of its partition or"):
            window(server)
        assert len([q for q in server.queries if q.token == "P0"]) == 5
        records, leaves = window(server, lenient=True)
        assert (keys(records), leaves) == (["before"], {"P0"})


def test_a_partition_that_ends_in_the_nanosecond_after_the_window_is_a_leaf():
    with FakeSpanner() as server, connected(server) as client:
        server.split("P0", ["A", "B"], T1 + 1)
        stream = find_change_stream(client, NAME)
        found = list(read_partitions(client, stream, [("P0", as_text(T0))], T1, {"P0"}))
        assert found == [Leaf("P0")]
        # Were the partitions after the window taken for those at its end, these would not fit, and yet be right.
        server.partitions["P0"].end = None
        assert list(read_partitions(client, stream, [("P0", as_text(T0))], T1, {"A"})) == [Leaf("P0")]


@both_dialects
def test_two_hundred_partitions_are_read_at_the_same_time_over_several_connections(postgresql: bool):
    with FakeSpanner(postgresql, partitions=200, max_streams=100) as server:
        for i in range(200):
            server.commit(f"P{i}", T0 + i, str(i))
        # No query answers before all two hundred are open; one connection carries a hundred.
        server.together = threading.Barrier(200)
        records, leaves = window(server)
        assert sorted(keys(records), key=int) == [str(i) for i in range(200)]
        assert len(leaves) == 200


# The client


def test_closing_takes_less_than_a_second_with_streams_that_hang():
    with FakeSpanner(partitions=20) as server:
        for i in range(20):
            server.commit(f"P{i}", T0)
        server.faults = [Fault(f"P{i}", 0, hang=True) for i in range(20)]
        client = Client(DatabaseName("p", "i", "d", server.address), retries=FIVE)
        stream = find_change_stream(client, NAME)
        listing = list_partitions(client, stream, T0, T1)
        failures: list[BaseException] = []

        def read() -> None:
            try:
                list(read_partitions(client, stream, list(listing.tokens.items()), T1))
            except BaseException as problem:
                failures.append(problem)

        reader = threading.Thread(target=read)
        reader.start()
        wait_until(lambda: len([q for q in server.queries if q.token]) == 20, seconds=10, poll=0.01)
        started = time.monotonic()
        client.close()
        reader.join(5)
        assert time.monotonic() - started < 1
        assert isinstance(failures[0], errors.Fault)


def test_the_session_is_multiplexed_and_made_once_and_may_come_from_elsewhere():
    with FakeSpanner() as server:
        with connected(server) as client:
            find_change_stream(client, NAME)
            session = client.session
        with Client(DatabaseName("p", "i", "d", server.address), session) as other:
            assert other.now() == server.now
        assert server.sessions == 1


def test_a_session_that_ended_is_made_anew():
    with FakeSpanner() as server, connected(server) as client:
        assert client.now() == server.now
        server.alive.clear()
        assert client.now() == server.now
        assert server.sessions == 2
        server.commit("P0", T0)
        stream = find_change_stream(client, NAME)
        server.alive.clear()
        assert list_partitions(client, stream, T0, T1).tokens == {"P0": as_text(T0)}
        server.alive.clear()
        found = list(read_partitions(client, stream, [("P0", as_text(T0))], T1))
        assert [type(one) for one in found] == [tuple, Leaf]
        assert server.sessions == 4


def test_a_session_that_ends_between_two_records_loses_and_repeats_nothing():
    with FakeSpanner() as server:
        for i in range(4):
            server.commit("P0", T0 + i, str(i))
        server.faults = [Fault("P0", 2, grpc.StatusCode.NOT_FOUND, "Session not found: projects/p/sessions/s1")]
        records, _ = window(server)
        assert keys(records) == ["0", "1", "2", "3"]
        assert server.sessions == 2


def test_a_small_query_that_ends_well_in_the_middle_of_a_value_is_made_again():
    sql = "SELECT change_stream_name FROM information_schema.change_streams"
    with FakeSpanner(chunk=3) as server, connected(server) as client:
        server.faults = [Fault(sql, 2, code=None)]
        assert [[value.string_value for value in row] for row in client.rows(sql)] == [[NAME]]
        assert server.faults[0].times == 0
        server.faults = [Fault(sql, 2, code=None, times=1000)]
        with pytest.raises(errors.Fault, match=r"failed 6 times in a row \(a result that ends within"):
            client.rows(sql)


def test_spanners_clock_is_read_to_the_nanosecond():
    with FakeSpanner() as server, connected(server) as client:
        server.now = T0 + 123_456_789
        assert client.now() == T0 + 123_456_789


def test_a_server_that_is_not_there_is_one_sentence():
    name = DatabaseName("p", "i", "d", "127.0.0.1:1")
    with Client(name, retries=FIVE, clock=MovedClock()) as client:
        with pytest.raises(errors.Fault, match="UNAVAILABLE") as failure:
            client.now()
        assert "\n" not in str(failure.value)


def test_a_name_that_cannot_be_one_is_refused():
    with pytest.raises(UsageError, match="database 'a/b' is not a valid name"):
        DatabaseName.from_environment("p", "i", "a/b")


def test_the_emulators_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "localhost:9010")
    assert DatabaseName.from_environment("p", "i", "d").emulator == "localhost:9010"
    monkeypatch.delenv("SPANNER_EMULATOR_HOST")
    assert DatabaseName.from_environment("p", "i", "d").emulator is None


def test_without_credentials_there_is_one_sentence_and_no_secret(monkeypatch: pytest.MonkeyPatch):
    def default(**_: Any) -> None:
        raise ValueError("the key s3cret\nis no key")

    monkeypatch.setattr(google.auth, "default", default)
    client = Client(DatabaseName("p", "i", "d"), retries=FIVE)
    with pytest.raises(UsageError, match=r"\(ValueError\).*application default credentials") as failure:
        client.now()
    assert "s3cret" not in str(failure.value)
    assert "\n" not in str(failure.value)


class _Expired(google.auth.credentials.Credentials):
    refreshed = 0

    def refresh(self, request: Any) -> None:
        self.refreshed += 1
        raise RefreshError("invalid_grant: expired", {"account": "somebody@example.com", "body": "s3cret"})


def test_credentials_that_expired_are_one_sentence_at_once_and_no_secret(monkeypatch: pytest.MonkeyPatch):
    with FakeSpanner() as server:
        expired = _Expired()

        def create_channel(_: str, credentials: Any, **__: Any) -> grpc.Channel:
            plugin = grpc.metadata_call_credentials(AuthMetadataPlugin(credentials, None))
            channel = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
            return grpc.secure_channel(server.address, grpc.composite_channel_credentials(channel, plugin))

        monkeypatch.setattr(google.auth, "default", lambda **_: (expired, "p"))
        monkeypatch.setattr(grpc_helpers, "create_channel", create_channel)
        client = Client(DatabaseName("p", "i", "d"), retries=FIVE)
        with client, pytest.raises(UsageError, match="application default credentials: renew them") as failure:
            client.now()
        assert expired.refreshed == 1
        for secret in ("s3cret", "somebody", "invalid_grant", "plugin", "\n"):
            assert secret not in str(failure.value)
