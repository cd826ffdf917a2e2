"""Partitions read from a server over a socket: every change once, whatever fails; what was there before; errors."""

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from bigtable_workload import advanced
from clocks import MovedClock
from fake_bigtable import FakeBigtable, Fault, delete_column, delete_family, delete_row, set_cell
from google.cloud.bigtable_v2 import types as T
from reconcile_jobs.bigtable import partition_reader
from reconcile_jobs.bigtable.backfill import records_of
from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.partition_reader import Finished, Limits, read_partition, read_partitions
from reconcile_jobs.bigtable.partitions import (
    Closed,
    Moved,
    Partition,
    RowRange,
    from_json,
    initial,
    requests,
    to_json,
)
from reconcile_jobs.bigtable.rows import has_rows, parts_of, read_rows
from reconcile_jobs.google_service import Retries
from reconcile_jobs.process import errors

FIVE = Retries(limit=5)
TABLE = RowRange(b"", b"")


class Reader:
    """Rounds of a job, without Spark and without a table."""

    def __init__(self, server: FakeBigtable, client: Client) -> None:
        self.server, self.client = server, client
        self.start = server.now()
        self.partitions: list[Partition] = []
        self.records: list[dict[str, Any]] = []

    def begin(self, start: int | None = None) -> None:
        ranges = [RowRange(*rows) for rows in self.client.partitions()]
        self.partitions = initial(ranges, (self.start if start is None else start) * 1000)

    def round(self, heartbeat: float = 0.02, seconds: float = 10, target: int | None = None) -> list[Finished]:
        """Read once; what is known afterwards is what would have been staged."""
        limits = Limits((self.server.now() if target is None else target) * 1000, seconds, heartbeat)
        plan = requests(self.partitions)
        finished = []
        for found in read_partitions(self.client, [request.partition for request in plan], limits):
            if isinstance(found, Finished):
                finished.append(found)
            else:
                rows, changes = found
                for change in changes:
                    record = json.loads(change.json)
                    assert rows.start <= _key(record) and (not rows.end or _key(record) < rows.end)
                    self.records.append(record)
        told = {f.rows: f.outcome for f in finished}
        self.partitions = from_json(to_json(advanced(plan, told)))
        return finished

    def until_all_is_read(self) -> None:
        target = self.server.now()
        for _ in range(100):
            self.round(target=target)
            if all(p.is_whole and p.low_watermark >= target * 1000 for p in self.partitions):
                return
        raise AssertionError("the partitions are never read to their end")

    def check(self) -> None:
        """See that what was read is the server's log, each commit once, and those of a row and cluster in order."""
        found = [json.dumps(_plain(record), sort_keys=True) for record in self.records]
        expected = [json.dumps(c.record(), sort_keys=True) for c in self.server.log if c.micros >= self.start]
        assert Counter(found) == Counter(expected)
        places: dict[tuple[str, str], list[str]] = {}
        for record in self.records:
            places.setdefault((record["row_key"], record["source_cluster_id"]), []).append(record["commit_timestamp"])
        assert all(moments == sorted(moments) for moments in places.values())


def _key(record: dict[str, Any]) -> bytes:
    import base64

    return base64.b64decode(record["row_key"])


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("token", "estimated_low_watermark")}


@pytest.fixture
def server() -> Iterator[FakeBigtable]:
    with FakeBigtable() as running:
        yield running


def client_of(server: FakeBigtable, profile: str = "single", table: str = "t") -> Client:
    # By this clock the pauses between attempts take no time.
    return Client(SourceTable("p", "i", table, profile, server.address), FIVE, MovedClock())


@pytest.fixture
def client(server: FakeBigtable) -> Iterator[Client]:
    with client_of(server) as made:
        yield made


@pytest.fixture
def reader(server: FakeBigtable, client: Client) -> Reader:
    made = Reader(server, client)
    made.begin()
    return made


def put(server: FakeBigtable, key: str, value: bytes = b"v", **commit: Any) -> None:
    server.commit(key.encode(), set_cell("f", b"q", 1000, value), **commit)


# Changes


def test_each_round_goes_on_where_the_one_before_ended(reader: Reader, server: FakeBigtable):
    put(server, "a")
    put(server, "z")
    reader.round()
    put(server, "b")
    reader.round()
    reader.round()
    reader.check()
    assert len(reader.records) == 3


def test_changes_before_the_start_are_left_out(reader: Reader, server: FakeBigtable):
    put(server, "a", micros=reader.start - 1)
    put(server, "b", micros=reader.start)
    reader.until_all_is_read()
    reader.check()
    assert len(reader.records) == 1


def test_heartbeats_move_a_quiet_partition(reader: Reader, server: FakeBigtable):
    reader.round()
    assert all(partition.start is None and len(partition.positions) == 1 for partition in reader.partitions)
    before = [partition.low_watermark for partition in reader.partitions]
    reader.round()
    assert all(p.low_watermark > was for p, was in zip(reader.partitions, before, strict=True))


def test_a_watermark_that_stands_still_does_not_keep_a_round(reader: Reader, server: FakeBigtable):
    server.held[b"a"] = reader.start
    put(server, "a")
    began = time.monotonic()
    reader.round()
    assert time.monotonic() - began < 5
    assert reader.partitions[0].low_watermark == reader.start * 1000
    reader.check()


def test_a_round_ends_in_time_though_changes_go_on(reader: Reader, server: FakeBigtable):
    over = threading.Event()

    def write() -> None:
        for _ in range(10_000):
            if over.is_set():
                return
            put(server, "a")
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    # The quiet partition is held until its heartbeat, the other ends at once.
    reader.round(seconds=0.1, heartbeat=0.3, target=2**50)
    assert writer.is_alive() and reader.records
    over.set()
    writer.join()
    reader.until_all_is_read()
    reader.check()


def test_replicated_changes_behind_the_watermark_and_ties_between_clusters(reader: Reader, server: FakeBigtable):
    at = server.now()
    for cluster, tie in (("c2", 9), ("c1", 3)):
        put(server, "a", cluster.encode(), cluster=cluster, micros=at, tiebreaker=tie, arrives=cluster == "c1")
    reader.until_all_is_read()
    assert all(partition.low_watermark > at * 1000 for partition in reader.partitions)
    server.replicate()
    reader.until_all_is_read()
    reader.check()
    assert [record["tiebreaker"] for record in reader.records] == [3, 9]
    assert server.cells() == {(b"a", "f", b"q", 1000): b"c2"}


# Splits and merges


def test_splits_and_merges(reader: Reader, server: FakeBigtable):
    for step in (
        lambda: server.split(b"f"),
        lambda: server.merge(b"m"),
        lambda: server.merge(b"f"),
        lambda: server.reshard(list(server.ranges), [(b"", b"c"), (b"c", b"k"), (b"k", b"")]),
        lambda: server.reshard([(b"", b"c"), (b"c", b"k")], [(b"", b"e"), (b"e", b"k")]),
    ):
        for key in "abefglmz":
            put(server, key)
        step()
        for key in "abefglmz":
            put(server, key)
        reader.round()
    reader.until_all_is_read()
    reader.check()
    assert [p.rows for p in reader.partitions] == [RowRange(*rows) for rows in sorted(server.ranges)]


def test_a_merge_is_split_again_before_it_was_opened(reader: Reader, server: FakeBigtable):
    put(server, "a")
    reader.round()
    server.merge(b"m")
    reader.round()
    assert [p.rows for p in reader.partitions] == [TABLE]
    put(server, "l")
    server.split(b"k")
    put(server, "l")
    put(server, "n")
    reader.until_all_is_read()
    reader.check()
    assert [p.rows for p in reader.partitions] == [RowRange(b"", b"k"), RowRange(b"k", b"")]
    merged = [r for name, r in server.requests if name == "ReadChangeStream" and not r.partition.row_range.end_key_open]
    assert any(len(request.continuation_tokens.tokens) == 2 for request in merged)


def test_a_merge_that_is_undone_before_all_of_it_was_closed(reader: Reader, server: FakeBigtable, client: Client):
    reader.round()
    first, second = reader.partitions
    server.merge(b"m")
    limits = Limits(0, 5, 0.02)
    (finished,) = [
        f for f in read_partition(client, first, limits, client.clock.seconds() + 5) if isinstance(f, Finished)
    ]
    assert isinstance(finished.outcome, Closed)
    # m- was between two rounds: when it is asked for again, it is a partition again.
    server.split(b"m")
    reader.partitions = advanced(requests(reader.partitions), {first.rows: finished.outcome})
    assert [p.is_whole for p in reader.partitions] == [False, True]
    put(server, "a")
    put(server, "z")
    reader.until_all_is_read()
    reader.check()
    assert [p.rows for p in reader.partitions] == [first.rows, second.rows]


@pytest.mark.parametrize(
    ("seed", "changes"), [(0, 600), *(pytest.param(seed, 1500, marks=pytest.mark.soak) for seed in range(1, 4))]
)
def test_anything_at_once(seed: int, changes: int):
    chance = random.Random(seed)
    with (
        FakeBigtable(value_chunk=5, entries_per_message=2, seed=seed, fault_rate=0.002) as server,
        client_of(server) as client,
    ):
        reader = Reader(server, client)
        reader.begin()
        over = threading.Event()

        def write() -> None:
            keys = [bytes([chance.randrange(97, 123), chance.randrange(256)]) for _ in range(40)]
            for number in range(changes):
                key = chance.choice(keys)
                value = bytes(chance.randrange(256) for _ in range(chance.randrange(20)))
                entries: list[Any] = [set_cell(chance.choice("fg"), b"q", chance.randrange(5), value)]
                for _ in range(chance.randrange(3)):
                    extra = [delete_column("f", b"q", 1, 3), delete_family("g"), set_cell("f", b"\xff", 7, value)]
                    entries.append(chance.choice(extra))
                if chance.random() < 0.03:
                    entries = [delete_row()]
                cluster = chance.choice(["c1", "c1", "c2"])
                server.commit(key, *entries, cluster=cluster, arrives=cluster == "c1")
                if chance.random() < 0.05:
                    server.collect_garbage(key)
                if chance.random() < 0.02:
                    server.replicate(1 + chance.randrange(5))
                if chance.random() < 0.04:
                    server.split(bytes([chance.randrange(98, 122)]))
                if chance.random() < 0.04 and len(server.ranges) > 1:
                    server.merge(chance.choice(sorted(server.ranges)[1:])[0])
                if number % 5 == 0:
                    time.sleep(0.01)
            server.replicate()
            over.set()

        writer = threading.Thread(target=write)
        writer.start()
        while not over.is_set():
            reader.round(seconds=chance.choice([0.05, 0.1, 0.3]))
        writer.join()
        reader.until_all_is_read()
        reader.check()
        assert len(server.closings) > 5
        assert {record["type"] for record in reader.records} == {"user", "garbage_collection"}


# Faults


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "end",
    ],
)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_fault_in_the_middle_of_a_stream(reader: Reader, server: FakeBigtable, code: Any, after: int):
    for key in "aabb":
        put(server, key)
    server.faults.append(Fault("ReadChangeStream", after, code, row=b"a"))
    reader.until_all_is_read()
    assert not server.faults
    reader.check()


def test_a_fault_within_a_change_drops_what_had_come_of_it(reader: Reader, server: FakeBigtable):
    server.value_chunk = 2
    for number in range(4):
        put(server, "a", b"value%d" % number)
    for after in (1, 6):
        server.faults.append(Fault("ReadChangeStream", after, grpc.StatusCode.UNAVAILABLE, within=True))
    reader.until_all_is_read()
    assert not server.faults
    reader.check()


@pytest.mark.parametrize("kind", ["heartbeat", "close_stream"])
def test_anything_else_within_a_change_has_it_read_again(
    server: FakeBigtable, reader: Reader, monkeypatch: pytest.MonkeyPatch, kind: str
):
    server.value_chunk = 2
    put(server, "a", b"value")
    read, told = server._read, list[bool]()

    def interrupted(request: Any, context: Any) -> Iterator[Any]:
        for message in read(request, context):
            yield message
            if not told and message.WhichOneof("stream_record") == "data_change":
                told.append(True)
                odd = T.ReadChangeStreamResponse.pb()()
                getattr(odd, kind).SetInParent()
                yield odd

    monkeypatch.setattr(server, "_answers", {"ReadChangeStream": interrupted})
    reader.round()
    reader.check()
    assert told and len(reader.records) == 1
    asked = [r.partition.row_range.start_key_closed for name, r in server.requests if name == "ReadChangeStream"]
    assert Counter(asked) == {b"": 2, b"m": 1}


def test_a_stream_that_says_nothing_any_more_is_cancelled(server: FakeBigtable, client: Client, reader: Reader):
    put(server, "a")
    server.faults.append(Fault("ReadChangeStream", 0, None, row=b"a"))
    limits = Limits(0, 5, 0.02)
    clock, began = client.clock, client.clock.seconds()
    assert isinstance(clock, MovedClock) and limits.patience == 10
    server.on_hang = lambda: clock.advance(1)
    found = list(read_partition(client, reader.partitions[0], limits, began + 60))
    assert len(found) == 2
    assert 10 <= clock.seconds() - began < 60


def test_a_slow_heartbeat_is_waited_for_ten_times():
    assert [Limits(0, 5, heartbeat).patience for heartbeat in (0.5, 1.0, 3.0)] == [10, 10, 30]


def test_changes_come_in_portions_by_their_number_and_their_size(
    server: FakeBigtable, client: Client, reader: Reader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(partition_reader, "_CHANGES", 3)
    monkeypatch.setattr(partition_reader, "_CHARACTERS", 10_000)
    for size in (1, 1, 1, 9000, 1, 1, 1, 1):
        put(server, "a", b"v" * size)
    limits = Limits(server.now() * 1000, 10, 0.02)
    portions = [f for f in read_partitions(client, reader.partitions[:1], limits) if not isinstance(f, Finished)]
    assert [len(changes) for _, changes in portions] == [3, 1, 3, 1]
    assert {rows for rows, _ in portions} == {reader.partitions[0].rows}


def test_too_many_faults_in_a_row_are_one_sentence(reader: Reader, server: FakeBigtable):
    server.faults += [Fault("ReadChangeStream", 0, grpc.StatusCode.UNAVAILABLE, row=b"a") for _ in range(9)]
    with pytest.raises(errors.Fault, match=r"^Bigtable failed 6 times in a row \(UNAVAILABLE: planted\): run the same"):
        reader.round()


def test_two_changes_are_enough_to_begin_counting_faults_anew(reader: Reader, server: FakeBigtable):
    for _ in range(12):
        put(server, "a")
    server.faults += [Fault("ReadChangeStream", 1, grpc.StatusCode.UNAVAILABLE, row=b"a") for _ in range(9)]
    reader.until_all_is_read()
    reader.check()


@pytest.mark.parametrize(
    ("change", "start", "sentence"),
    [
        ({"profile": "everywhere"}, 0, r"^The app profile everywhere cannot read a change stream .*--app-profile\.$"),
        ({"profile": "none"}, 0, r"^Bigtable does not find projects/p/instances/i/tables/t, or the app profile none"),
        ({"table": "nowhere"}, 0, r"^Bigtable does not find projects/p/instances/i/tables/nowhere"),
        ({}, -1, r"^The change stream of projects/p/instances/i/tables/t does not go back to --start"),
        ({}, 1, r"^--start is in the future for Bigtable"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(server: FakeBigtable, change: Any, start: int, sentence: str):
    server.forget()
    with client_of(server, **change) as client, pytest.raises(errors.UsageError, match=sentence):
        reader = Reader(server, client)
        reader.begin(server.now() + start * 3600 * 10**6)
        reader.round()


def test_a_table_without_a_change_stream_is_one_sentence(server: FakeBigtable, client: Client):
    server.enabled = False
    with pytest.raises(errors.UsageError, match=r"^The table projects/p/instances/i/tables/t has no change stream"):
        Reader(server, client).begin()


@pytest.mark.parametrize(
    "said",
    [
        (grpc.StatusCode.OUT_OF_RANGE, "out of range"),
        (grpc.StatusCode.FAILED_PRECONDITION, "The token is older than the retention period."),
    ],
)
def test_a_token_that_fell_out_of_the_retention_period_is_one_sentence(reader: Reader, server: FakeBigtable, said: Any):
    reader.round()
    put(server, "a")
    server.forget()
    server.too_old = said
    with pytest.raises(
        errors.UsageError, match=r"older than the retention period\. Append to a new staging table with --backfill"
    ):
        reader.round()


def test_permission_and_credentials(server: FakeBigtable, client: Client):
    server.faults.append(Fault("GenerateInitialChangeStreamPartitions", 0, grpc.StatusCode.PERMISSION_DENIED, "no"))
    with pytest.raises(errors.UsageError, match=r"^Permission denied on projects/p/instances/i/tables/t \(no\)"):
        list(client.partitions())
    server.faults.append(Fault("GenerateInitialChangeStreamPartitions", 0, grpc.StatusCode.UNAUTHENTICATED, "secret"))
    with pytest.raises(errors.UsageError) as caught:
        list(client.partitions())
    assert "secret" not in str(caught.value)
    server.faults.append(Fault("GenerateInitialChangeStreamPartitions", 0, grpc.StatusCode.DATA_LOSS, "odd"))
    with pytest.raises(errors.Fault, match=r"^Bigtable refused a call on .* \(DATA_LOSS\): odd\.$"):
        list(client.partitions())


# What was there before


def backfilled(client: Client, count: int, moment: int = 1_790_000_000_123_456_000) -> list[dict[str, Any]]:
    parts = parts_of(client, count)
    assert parts[0].start == b"" and parts[-1].end == b""
    assert all(left.end == right.start for left, right in itertools.pairwise(parts))
    rows = [row for part in parts for row in read_rows(client, part)]
    return [json.loads(record) for row in rows for record in records_of(row, moment)]


def cells_of(records: list[dict[str, Any]]) -> Counter[tuple[bytes, str, str, int, str]]:
    found: Counter[tuple[bytes, str, str, int, str]] = Counter()
    for record in records:
        for entry in record["entries"]:
            cell = entry["set_cell"]
            found[_key(record), cell["family"], cell["qualifier"], cell["timestamp_micros"], cell["value"]] += 1
    return found


def expected_cells(server: FakeBigtable) -> Counter[tuple[bytes, str, str, int, str]]:
    import base64

    return Counter(
        (row, family, base64.b64encode(qualifier).decode(), micros, base64.b64encode(value).decode())
        for (row, family, qualifier, micros), value in server.cells().items()
    )


def fill(server: FakeBigtable, rows: int = 40) -> None:
    chance = random.Random(1)
    for number in range(rows):
        for _ in range(6):
            value = bytes(chance.randrange(256) for _ in range(chance.randrange(9)))
            qualifier = chance.choice([b"", b"q", b"\xff"])
            server.commit(b"r%03d" % number, set_cell(chance.choice("fg"), qualifier, chance.randrange(4), value))


@pytest.mark.parametrize("value_chunk", [2, 10**9])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_every_cell_that_is_there_comes_once(server: FakeBigtable, client: Client, value_chunk: int, count: int):
    fill(server)
    server.samples = [b"r%03d" % number for number in range(0, 40, 4)]
    server.value_chunk = value_chunk
    records = backfilled(client, count)
    assert cells_of(records) == expected_cells(server)
    assert {key: records[0][key] for key in records[0] if key not in ("row_key", "entries")} == {
        "type": "backfill",
        "source_cluster_id": "",
        "commit_timestamp": "2026-09-21T14:13:20.123456000Z",
        "tiebreaker": 0,
    }


def test_faults_while_rows_are_read(server: FakeBigtable, client: Client):
    fill(server)
    server.value_chunk = 3
    unavailable = grpc.StatusCode.UNAVAILABLE
    server.faults += [Fault("ReadRows", after, unavailable) for after in (0, 3, 9)]
    server.faults += [Fault("ReadRows", 2, unavailable, within=True), Fault("ReadRows", 5, "end", within=True)]
    records = backfilled(client, 1)
    assert not server.faults
    assert cells_of(records) == expected_cells(server)


def test_a_read_that_fails_behind_its_last_row_is_at_its_end(server: FakeBigtable, client: Client):
    put(server, "a")
    server.faults.append(Fault("ReadRows", 1, grpc.StatusCode.UNAVAILABLE))
    put(server, "a\x00")
    (row,) = read_rows(client, RowRange(b"", b"a\x00"))
    assert row.key == b"a"
    assert not server.faults


def test_a_large_row_comes_in_parts(server: FakeBigtable, client: Client):
    for number in range(5):
        server.commit(b"k", set_cell("f", b"q%d" % number, 1, b"x" * 400_000))
    records = backfilled(client, 1)
    assert len(records) == 3
    assert cells_of(records) == expected_cells(server)


def test_whether_there_is_a_row_is_asked_without_reading_one(
    server: FakeBigtable, client: Client, monkeypatch: pytest.MonkeyPatch
):
    assert not has_rows(client)
    for key in "ab":
        for qualifier in (b"p", b"q"):
            server.commit(key.encode(), set_cell("f", qualifier, 1000, b"a long value"))
    told: list[Any] = []
    answered = client.rows
    monkeypatch.setattr(client, "rows", lambda *asked: told.extend(answered(*asked)) or told)
    server.faults.append(Fault("ReadRows", 0, grpc.StatusCode.UNAVAILABLE))
    assert has_rows(client)
    assert not server.faults
    assert [chunk.value for message in told for chunk in message.chunks if not chunk.reset_row] == [b""]


def test_moved_says_nothing_where_nothing_came(server: FakeBigtable, client: Client, reader: Reader):
    server.faults.append(Fault("ReadChangeStream", 0, "end", row=b"a"))
    limits = Limits(2**62, 0.0, 0.02)
    (finished,) = list(read_partition(client, reader.partitions[0], limits, client.clock.seconds()))
    assert isinstance(finished, Finished) and isinstance(finished.outcome, Moved)
    assert finished.outcome.token
