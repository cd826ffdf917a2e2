"""append.py bigtable: what lands in staging, exactly once, whatever happens to the job or to the partitions."""

import base64
import itertools
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import plain_spark
import pytest
from bigtable_workload import Workload, check_changes, staged_by, submit
from clocks import MovedClock, wait_until
from fake_bigtable import FakeBigtable, Fault, set_cell
from file_formats import failpoints_of_an_append, file_format
from pyspark.sql import Row
from reconcile_jobs.bigtable import job as bigtable_job
from reconcile_jobs.bigtable.job import CUT, Job, Totals, run
from reconcile_jobs.process import errors, failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import Staging, TableName
from reconcile_jobs.timestamps import as_text

numbers = itertools.count()


class Place:
    """A table with a change stream, a staging table for it, and the command that appends one to the other."""

    def __init__(self, spark: Any, server: FakeBigtable) -> None:
        self.spark, self.server = spark, server
        self.table = f"bigtable_ingest.t{next(numbers)}"
        self.said: list[str] = []
        self.shown: list[str] = []

    def append(self, **options: Any) -> Totals:
        stop, clock = options.pop("stop", threading.Event()), options.pop("clock", Clock())
        given: dict[str, Any] = {
            "project": "p",
            "instance": "i",
            "table": "t",
            "app_profile": "single",
            "staging": TableName.parse(self.table),
            "heartbeat": 0.02 if isinstance(self.spark, plain_spark.Session) else 0.1,
            "round_seconds": 5.0,
        }
        return run(self.spark, Job(**given | options), Caller(stop, self.said.append, self.shown.append, clock))

    def rows(self, where: str = "true") -> list[Row]:
        return self.spark.table(self.table).where(where).orderBy("batch", "origin", "record").collect()

    def changes(self) -> list[Row]:
        return self.rows(f"object != '{CUT}' AND origin != 'bigtable/backfill'")

    def cuts(self) -> list[dict[str, Any]]:
        """Return the cut of each batch: what its tasks say together."""
        rounds: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows(f"object = '{CUT}'"):
            rounds.setdefault(row.batch, []).append(json.loads(row.record))
        assert list(rounds) == list(range(1, len(rounds) + 1)), "no number is left out"
        cuts = []
        for batch, said in enumerate(rounds.values(), 1):
            assert {cut["round"] for cut in said} == {batch}, "each batch is a round"
            partitions = sorted(
                (partition for cut in said for partition in cut["partitions"]),
                key=lambda partition: base64.b64decode(partition["start_key"]),
            )
            cuts.append(said[0] | {
                "low_watermark": min(cut["low_watermark"] for cut in said), "partitions": partitions,
                "records": sum(cut["records"] for cut in said),
            })  # fmt: skip
        return cuts

    def check(self, start: int) -> None:
        """See that the changes are the server's log from the start on, each once, and look like it."""
        self.cuts()
        check_changes([row.record for row in self.changes()], self.server, start)
        for row in self.changes():
            first, end = (bytes.fromhex(key) for key in row.origin.removeprefix("bigtable/").split("-"))
            key = base64.b64decode(json.loads(row.record)["row_key"])
            assert (row.source, row.object) == ("bigtable", "t")
            assert first <= key and (not end or key < end)


def folded(records: list[str]) -> dict[tuple[str, str, str, int], str]:
    """The cells that records come to, applied in the order of commit timestamp and tiebreaker."""
    cells: dict[tuple[str, str, str, int], str] = {}
    changes = [json.loads(record) for record in records]
    for change in sorted(changes, key=lambda c: (c["commit_timestamp"], c["tiebreaker"])):
        for entry in change["entries"]:
            ((kind, told),) = entry.items()
            if kind == "set_cell":
                cells[change["row_key"], told["family"], told["qualifier"], told["timestamp_micros"]] = told["value"]
                continue
            for cell in [cell for cell in cells if cell[:2] == (change["row_key"], told["family"])]:
                end = told.get("end_timestamp_micros") or 2**63
                if "qualifier" not in told or (
                    cell[2] == told["qualifier"] and told["start_timestamp_micros"] <= cell[3] < end
                ):
                    del cells[cell]
    return cells


def cells_of(server: FakeBigtable) -> dict[tuple[str, str, str, int], str]:
    def text(value: bytes) -> str:
        return base64.b64encode(value).decode()

    return {
        (text(row), family, text(qualifier), micros): text(value)
        for (row, family, qualifier, micros), value in server.cells().items()
    }


def put(server: FakeBigtable, key: str, value: bytes = b"v", **commit: Any) -> None:
    server.commit(key.encode(), set_cell("f", b"q", 1000, value), **commit)


def on_spark(*marks: Any) -> Any:
    """What has a test on the plain session in `make test`, and on Spark with these marks; none: in `make test` too."""
    plain = ["plain"] if file_format() == "delta" else []
    return pytest.mark.parametrize("place", [*plain, pytest.param("spark", marks=marks)], indirect=True)


only_plain = pytest.mark.parametrize("place", ["plain"] if file_format() == "delta" else [], indirect=True)
only_on_spark = pytest.mark.parametrize("place", ["spark"], indirect=True)
in_soak, in_matrix = on_spark(pytest.mark.soak), on_spark(pytest.mark.matrix)


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A Place over the in-process server; its session is Spark's, or the one of plain Python."""
    if request.param == "plain":
        plain_spark.stage_in_plain_python(monkeypatch)
    session = plain_spark.Session() if request.param == "plain" else request.getfixturevalue("spark")
    with FakeBigtable(value_chunk=16, entries_per_message=2) as server:
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.address)
        made = Place(session, server)
        yield made
        session.sql(f"DROP TABLE IF EXISTS {made.table}")


# What is appended


@on_spark()
def test_a_change_becomes_a_row_and_its_batch_has_a_cut(place: Place):
    start = place.server.now()
    put(place.server, "a", b"\xff")
    totals = place.append(start=as_text(start * 1000))
    assert (totals.rounds, totals.records, totals.first_batch, totals.last_batch) == (1, 1, 1, 1)
    (row,) = place.changes()
    assert (row.source, row.object, row.origin, row.batch) == ("bigtable", "t", "bigtable/-6d", 1)
    place.check(start)
    (cut,) = place.cuts()
    assert cut["estimated"] is True and totals.low_watermark == cut["low_watermark"] > as_text(start * 1000)
    assert [(p["start_key"], p["end_key"], len(p["tokens"]), p["start"]) for p in cut["partitions"]] == [
        ("", "bQ==", 1, None),
        ("bQ==", "", 1, None),
    ]
    assert min(p["low_watermark"] for p in cut["partitions"]) == cut["low_watermark"]
    assert list(row.asDict()) == ["record", "source", "object", "origin", "batch", "appended_at"]


@in_matrix
def test_without_a_start_the_job_begins_now_and_goes_on_where_it_ended(place: Place):
    put(place.server, "before")
    place.append()
    start = time.time_ns() // 1000
    assert place.changes() == [] and len(place.cuts()) == 1
    put(place.server, "after")
    place.append()
    place.check(start)
    assert len(place.changes()) == 1
    before = place.cuts()[-1]["low_watermark"]
    assert place.append().records == 0
    assert place.cuts()[-1]["low_watermark"] > before, "a run without changes moves the positions too"


@in_matrix
def test_an_end_is_got_to(place: Place):
    start = place.server.now()
    end = as_text((start + 300_000) * 1000)
    totals = place.append(start=as_text(start * 1000), end=end)
    assert totals.low_watermark is not None and totals.low_watermark >= end
    assert place.append(end=end) == Totals()


@in_matrix
def test_a_watermark_that_stands_still_ends_a_pass_with_a_sentence(place: Place):
    start = place.server.now()
    place.server.held[b"a"] = start
    put(place.server, "a")
    totals = place.append(start=as_text(start * 1000))
    assert totals.low_watermark == as_text(start * 1000)
    assert f"stays at {totals.low_watermark}" in place.said[-1]
    assert sum(name == "ReadChangeStream" for name, _ in place.server.requests) < 30, "five rounds are enough to see it"
    place.check(start)


@in_matrix
def test_a_workload_while_the_job_is_stopped_and_started(place: Place):
    server = place.server
    for _ in range(400):  # the cells that were there before
        server.commit(random.Random(_).choice([b"a1", b"m\xff", b"z"]), set_cell("f", b"old%d" % _, 1, b"v"))
    plain = isinstance(place.spark, plain_spark.Session)
    workload = Workload(server, seed=5, count=1500 if plain else 6000, pause=0.01 if plain else 0.02)
    server.fault_rate = 0.001
    seconds = 0.2 if plain else 1.0
    start = server.now() - 1
    workload.start()
    totals = [place.append(backfill=True, start=as_text(start * 1000), round_seconds=seconds)]
    while workload.is_alive():
        totals.append(place.append(backfill=True, round_seconds=seconds))
    totals.append(place.append())
    place.check(start)
    assert totals[0].backfill_records > 0 and sum(t.backfill_records for t in totals[1:]) == 0
    assert folded([row.record for row in place.rows(f"object != '{CUT}'")]) == cells_of(server)
    assert len(server.closings) > 10, "the partitions did not change: this shows nothing"
    watermarks = [cut["low_watermark"] for cut in place.cuts()]
    assert any(
        json.loads(row.record)["commit_timestamp"] < watermarks[row.batch - 2]
        for row in place.changes()
        if row.batch > 1
    ), "nothing came after its watermark: this shows nothing"


@only_plain
def test_cells_of_a_backfill_are_not_counted_among_the_records(place: Place):
    """They are dated a microsecond before the start: each change that the stream brings comes after them."""
    start = place.server.now()
    for key in ("a", "b", "z"):
        put(place.server, key, micros=start - 9)
    put(place.server, "c", micros=start)
    totals = place.append(start=as_text(start * 1000), backfill=True)
    assert (totals.rounds, totals.records, totals.backfill_records) == (1, 1, 4)
    backfilled = [json.loads(row.record) for row in place.rows("origin = 'bigtable/backfill'")]
    assert {record["commit_timestamp"] for record in backfilled} == {as_text(start * 1000 - 1000)}
    put(place.server, "d")
    totals = place.append()
    assert (totals.records, totals.backfill_records) == (1, 0)


# Exactly once


def fails_at(name: str) -> Any:
    """What stands in for a kill inside the test's own process: the job ends there."""

    def reach(reached: str) -> None:
        if reached == name:
            raise RuntimeError(f"killed at {name}")

    return reach


@pytest.mark.parametrize("place_of_death", [name for name in failpoints_of_an_append() if "checkpoint" not in name])
@in_matrix
def test_stopped_anywhere_and_started_again_each_change_is_there_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, place_of_death: str
):
    start = place.server.now()
    put(place.server, "before")
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", fails_at(place_of_death))
        for number in range(2):
            put(place.server, f"a{number}")
            put(place.server, f"z{number}")
            with pytest.raises(errors.Fault, match=place_of_death):
                place.append(backfill=True, start=as_text(start * 1000))
    put(place.server, "b")
    place.append(backfill=True)
    place.append(backfill=True)
    place.check(start)
    backfilled = [json.loads(row.record)["row_key"] for row in place.rows("origin = 'bigtable/backfill'")]
    assert max(Counter(backfilled).values()) == 1


@only_on_spark
def test_stopped_at_every_place_in_turn_and_started_again_each_change_is_there_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    start = place.server.now()
    put(place.server, "before")
    for place_of_death in failpoints_of_an_append():
        if "checkpoint" in place_of_death:
            continue
        put(place.server, f"a {place_of_death}")
        put(place.server, f"z {place_of_death}")
        with monkeypatch.context() as patched:
            patched.setattr(failpoints, "reach", fails_at(place_of_death))
            with pytest.raises(errors.Fault, match=place_of_death):
                place.append(backfill=True, start=as_text(start * 1000))
    put(place.server, "b")
    place.append(backfill=True)
    place.check(start)
    backfilled = [json.loads(row.record)["row_key"] for row in place.rows("origin = 'bigtable/backfill'")]
    assert max(Counter(backfilled).values()) == 1


@in_soak
def test_a_job_that_was_taken_for_dead_does_not_append_a_round_again(place: Place, monkeypatch: pytest.MonkeyPatch):
    start = place.server.now()
    put(place.server, "a")
    place.append(start=as_text(start * 1000))
    put(place.server, "b")
    other: list[Totals] = []

    def reach(reached: str) -> None:
        # It has found no other job, and is about to write; meanwhile one has read and written all of it.
        if reached == "before_data_commit" and not other:
            other.append(Totals())
            put(place.server, "c")
            other.append(place.append())

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        place.append()
    assert other[1].records == 2
    place.append()
    place.check(start)


@in_soak
def test_a_part_that_spark_reads_anew_comes_with_its_own_positions(place: Place, monkeypatch: pytest.MonkeyPatch):
    start = place.server.now()
    put(place.server, "a")
    place.append(start=as_text(start * 1000))
    put(place.server, "b")
    begin, append = bigtable_job._Run._begin, bigtable_job._Run._append

    def looking(self: Any, *arguments: Any) -> Any:
        self.has_more = False
        return begin(self, *arguments)

    def lost(self: Any, rows: Any, number: int) -> Any:
        assert rows.is_cached
        rows.unpersist(blocking=True)  # as when the executor that kept it is gone
        put(place.server, "c")
        return append(self, rows, number)

    with monkeypatch.context() as patched:
        patched.setattr(bigtable_job._Run, "_begin", looking)
        patched.setattr(bigtable_job._Run, "_append", lost)
        assert place.append().records == 2
    place.append()
    place.check(start)
    assert len(place.changes()) == 3


@in_soak
def test_a_table_that_was_set_back_goes_on_from_there(place: Place):
    start = place.server.now()
    for key in "ab" if file_format() == "delta" else "abc":
        put(place.server, key)
        place.append(start=as_text(start * 1000))
    used = place.rows()[-1].batch
    if isinstance(place.spark, plain_spark.Session):
        place.spark.sql(f"RESTORE TABLE {place.table} TO VERSION AS OF 1")
    elif file_format() == "delta":
        history = place.spark.sql(f"DESCRIBE HISTORY {place.table}").where("operation = 'WRITE'")
        (version,) = history.selectExpr("min(version)").collect()
        place.spark.sql(f"RESTORE TABLE {place.table} TO VERSION AS OF {version[0]}").collect()
    else:
        snapshots = place.spark.table(f"spark_catalog.{place.table}.history").orderBy("made_current_at").collect()
        place.spark.sql(
            f"CALL spark_catalog.system.rollback_to_snapshot('{place.table}', {snapshots[0].snapshot_id})"
        ).collect()
    assert len(place.changes()) == 1
    place.append()
    check_changes([row.record for row in place.changes()], place.server, start)
    assert max(row.batch for row in place.changes()) > used, "a number is not given out again"


def _without_one(rows: list[Any]) -> list[Any]:
    return rows[1:]


def _twice(rows: list[Any]) -> list[Any]:
    return [*rows, rows[0]]


def _saying(record: str) -> Any:
    return lambda rows: [rows[0] | {"record": record}, *rows[1:]]


@only_plain
@pytest.mark.parametrize(
    "change",
    [_without_one, _twice, *map(_saying, ("", "{", "null", "[]", "{}", '{"round":1,"partitions":[],"records":0}'))],
)
def test_a_cut_that_somebody_has_changed_is_not_laid_to_bigtable(place: Place, change: Any):
    place.append()
    table = place.spark.tables[place.table]
    cuts = [row for row in table.rows if row["object"] == CUT]
    assert len(cuts) == 2
    table.add([*(row for row in table.rows if row["object"] != CUT), *change(cuts)])
    with pytest.raises(UsageError, match=r"^The rows of batch 1 of \S+ that say how far was read .* restore the table"):
        place.append()


@only_plain
def test_a_table_that_lost_its_cuts_and_what_was_kept_with_it_is_not_begun_anew(place: Place):
    place.append()
    table = place.spark.tables[place.table]
    table.add([row for row in table.rows if row["object"] != CUT])
    del table.properties["reconcile.bigtable"]
    with pytest.raises(UsageError, match=r"has had 1 batches, and says neither where it began"):
        place.append()


@only_plain
def test_a_table_that_is_set_back_during_a_run_is_noticed_and_gone_on_with(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    start = place.server.now()
    for key in "ab":
        put(place.server, key)
        place.append(start=as_text(start * 1000))
    place.spark.sql(f"RESTORE TABLE {place.table} TO VERSION AS OF 1")
    with monkeypatch.context() as looked_before:
        looked_before.setattr(Staging, "was_set_back", lambda self: False)
        with pytest.raises(errors.Fault, match="was restored to an older version, and nothing was appended"):
            place.append()
    place.append()
    check_changes([row.record for row in place.changes()], place.server, start)


@only_plain
def test_a_table_whose_rows_alone_were_set_back_goes_on_from_there(place: Place):
    start = place.server.now()
    for key in "abc":
        put(place.server, key)
        place.append(start=as_text(start * 1000))
    place.spark.sql(f"ROLLBACK TABLE {place.table} TO VERSION AS OF 1")
    assert len(place.changes()) == 1
    place.append()
    check_changes([row.record for row in place.changes()], place.server, start)


# With an interval


@in_matrix
def test_with_an_interval_the_job_takes_what_comes_until_it_is_stopped(place: Place):
    start, stop, clock = place.server.now(), threading.Event(), MovedClock()
    expected, waits = iter(range(1, 4)), itertools.count()

    def meanwhile() -> None:
        """In each of the first waits a change comes; two more bring nothing."""
        assert clock.waits[-1] <= 20
        if (number := next(expected, None)) is not None:
            assert len(place.changes()) == number - 1
            put(place.server, f"{number}")
        elif next(waits) == 2:
            stop.set()

    clock.meanwhile = meanwhile
    totals = place.append(start=as_text(start * 1000), every=20.0, stop=stop, clock=clock)
    assert totals.records == 3 and len(clock.waits) == 6
    place.check(start)
    # Rounds that bring nothing leave nothing: tokens of five minutes ago are good enough.
    assert len(place.cuts()) == totals.rounds < len(clock.waits)
    assert all(cut["records"] for cut in place.cuts()[2:])
    assert "3 records" in place.shown[-1] and "low watermark 20" in place.shown[-1]


@only_plain
def test_a_stream_that_is_silent_leaves_where_it_ended_every_five_minutes(place: Place):
    stop, clock = threading.Event(), MovedClock()
    clock.meanwhile = lambda: stop.set() if len(clock.waits) == 12 else None
    place.append(every=100.0, stop=stop, clock=clock)
    # Two at the beginning, and one each 300 seconds of the 1,100 that passed.
    assert len(place.cuts()) == 2 + 3
    watermarks = [cut["low_watermark"] for cut in place.cuts()]
    assert watermarks == sorted(set(watermarks)), "tokens must not grow old"


@only_plain
def test_partitions_that_changed_in_a_quiet_time_are_kept_at_once(place: Place):
    """The tokens of those that ended lead to nothing new, and what comes next would wait for the next five minutes."""
    stop, clock = threading.Event(), MovedClock()
    happens = {2: lambda: place.server.split(b"f"), 5: stop.set}
    clock.meanwhile = lambda: happens.get(len(clock.waits), lambda: None)()
    place.append(every=20.0, stop=stop, clock=clock)
    numbers = [len(cut["partitions"]) for cut in place.cuts()]
    assert numbers[-1] == numbers[0] + 1


@in_matrix
def test_a_pass_that_is_stopped_says_so(place: Place):
    stop = threading.Event()
    stop.set()
    with pytest.raises(errors.Fault, match=r"^Stopped before everything was appended"):
        place.append(stop=stop)


# What cannot be


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"start": "yesterday"}, "--start: yesterday is not a timestamp"),
        ({"end": "2026-01-01T00:00:00Z"}, "--end is before --start"),
        ({"start": "2999-01-01T00:00:00Z"}, "--start is in the future"),
        ({"app_profile": "everywhere"}, "^The app profile everywhere cannot read a change stream"),
        ({"table": "nothing"}, "^Bigtable does not find projects/p/instances/i/tables/nothing"),
        ({"table": "no/thing"}, "^--table 'no/thing' is not a valid name for Bigtable"),
    ],
)
@in_matrix
def test_what_cannot_be_is_one_sentence_and_appends_nothing(place: Place, options: dict[str, Any], sentence: str):
    with pytest.raises(UsageError, match=sentence) as refused:
        place.append(**options)
    assert "\n" not in str(refused.value)
    assert not place.spark.catalog.tableExists(place.table) or place.rows() == []


@on_spark()
def test_what_goes_wrong_on_an_executor_is_one_sentence(place: Place):
    start = place.server.now()
    place.append(start=as_text(start * 1000))
    put(place.server, "a")
    place.server.faults.append(Fault("ReadChangeStream", 0, grpc.StatusCode.PERMISSION_DENIED, "no"))
    with pytest.raises(UsageError, match=r"^Permission denied on projects/p") as refused:
        place.append()
    assert "\n" not in str(refused.value)
    place.server.forget()
    with pytest.raises(UsageError, match=r"older than the retention period\. Append to a new staging table") as refused:
        place.append()
    assert "\n" not in str(refused.value)
    assert len(place.cuts()) == 1


@in_matrix
def test_a_table_that_was_begun_is_not_begun_again_otherwise(place: Place):
    start = place.server.now()
    place.append(start=as_text(start * 1000 + 999))
    place.append(start=as_text(start * 1000 + 999))  # Bigtable takes microseconds
    with pytest.raises(UsageError, match="began at"):
        place.append(start=as_text((start + 1) * 1000))
    with pytest.raises(UsageError, match="began without --backfill"):
        place.append(backfill=True)
    place.spark.sql(f"DELETE FROM {place.table}")
    with pytest.raises(UsageError, match=r"^No batch in .* has the position up to which"):
        place.append()


@in_matrix
def test_a_first_run_that_failed_is_begun_anew_where_it_was_to_begin(place: Place):
    place.server.faults.append(Fault("ReadChangeStream", 0, grpc.StatusCode.PERMISSION_DENIED, "no"))
    start = time.time_ns() // 1000
    with pytest.raises(UsageError, match=r"^Permission denied"):
        place.append()
    put(place.server, "a")
    place.append()
    assert "the start of the first attempt" in place.said[0]
    place.check(start)
    assert len(place.changes()) == 1


# The command


@pytest.mark.skipif(file_format() == "iceberg", reason="the command is the same for both formats")
@pytest.mark.soak
@only_on_spark
def test_the_command_says_what_it_did_in_one_line(place: Place, tmp_path: Path):
    put(place.server, "a")
    job = submit(place.server, tmp_path, "--backfill")
    out, err = job.communicate(timeout=300)
    assert (job.returncode, err) == (0, "")
    (line,) = out.splitlines()
    result = json.loads(line)
    assert (result["records"], result["backfill_records"], result["first_batch"]) == (0, 1, 1)
    assert result["low_watermark"].endswith("Z") and result["seconds"] > 0
    assert [row.origin for row in staged_by(place.spark, tmp_path) if row.object != CUT] == ["bigtable/backfill"]


@pytest.mark.skipif(file_format() == "iceberg", reason="the command is the same for both formats")
@only_on_spark
def test_a_signal_lets_the_round_end_and_the_command_say_what_it_did(place: Place, tmp_path: Path):
    put(place.server, "before")
    start = place.server.now()
    job = submit(place.server, tmp_path, "--backfill", "--every", "1s", "--start", as_text(start * 1000))
    log = tmp_path / "lakehouse/warehouse/lake.db/changes"

    def changes() -> list[str]:
        rows = staged_by(place.spark, tmp_path) if any(log.rglob("*.parquet")) else []
        return [row.record for row in rows if row.object != CUT and row.origin != "bigtable/backfill"]

    for number, key in enumerate("ab", 1):
        put(place.server, key)
        wait_until(lambda: len(changes()) == number)  # noqa: B023
    os.killpg(job.pid, signal.SIGTERM)
    out, err = job.communicate(timeout=120)
    assert (job.returncode, err) == (0, "")
    (line,) = out.splitlines()
    result = json.loads(line)
    staged = [row for row in staged_by(place.spark, tmp_path) if row.object != CUT]
    check_changes(changes(), place.server, start)
    assert (result["records"], result["first_batch"]) == (2, 1) and result["low_watermark"].endswith("Z")
    assert result["backfill_records"] == len(staged) - 2 >= 1
