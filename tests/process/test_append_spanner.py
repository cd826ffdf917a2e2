"""append.py spanner: what lands in staging, exactly once, whatever happens to the job or to the partitions."""

import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import plain_spark
import pytest
from clocks import wait_until
from fake_spanner import FakeSpanner, Fault
from file_formats import failpoints_of_an_append, file_format, table_at
from pyspark.sql import Row, SparkSession
from reconcile_jobs.erased_keys import VARIABLE, ErasedKeys, KeyOf, name_of, property_of
from reconcile_jobs.keyed_records import KeyColumn
from reconcile_jobs.process import errors, failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.data_source import CUT, SpannerChangeStream
from reconcile_jobs.spanner.job import Job, Totals, run
from reconcile_jobs.staging import TableName, keep_all
from reconcile_jobs.timestamps import as_text, nanoseconds
from spanner_emulator import (
    INSTANCE,
    PROJECT,
    Database,
    Emulator,
    Workload,
    ddl,
    events_of,
    folded,
    in_database,
)

ROOT = Path(__file__).resolve().parents[2]
SECOND = 10**9
T0 = FakeSpanner.START

numbers = itertools.count()


class Place:
    """A change stream, a staging table for it, and the command that appends one to the other."""

    def __init__(self, spark: Any, directory: Path, database: tuple[str, str, str]) -> None:
        self.spark = spark
        self.checkpoint = directory / "checkpoint"
        self.table = f"spanner_ingest.t{next(numbers)}"
        self.database = database
        self.said: list[str] = []
        self.shown: list[str] = []

    def append(self, **options: Any) -> Totals:
        stop = options.pop("stop", threading.Event())
        project, instance, database = self.database
        given = {
            "project": project,
            "instance": instance,
            "database": database,
            "stream": "everything",
            "staging": TableName.parse(self.table),
            "checkpoint": str(self.checkpoint),
        }
        return run(self.spark, Job(**given | options), Caller(stop, self.said.append, self.shown.append))

    def rows(self, where: str = "true") -> list[Row]:
        return self.spark.table(self.table).where(where).orderBy("batch", "origin", "record").collect()

    def changes(self) -> list[str]:
        return [row.record for row in self.rows("object NOT LIKE '#%' AND origin NOT LIKE '%/backfill'")]

    def everything(self) -> list[str]:
        return [row.record for row in self.rows("object NOT LIKE '#%'")]

    def keys(self) -> list[str]:
        return sorted(mod["keys"]["k"] for record in self.changes() for mod in json.loads(record)["mods"])

    def cuts(self) -> dict[int, tuple[str, str]]:
        """Return the start and the cut of each batch."""
        found = {}
        for row in self.rows(f"object = '{CUT}'"):
            assert row.batch not in found, "a batch has one cut"
            cut = json.loads(row.record)
            found[row.batch] = (cut["start"], cut["cut_time"])
        return found

    def check_cuts(self) -> None:
        """See that the batches follow each other, and that each holds the commits of its time, whole transactions."""
        cuts = self.cuts()
        assert list(cuts) == list(range(1, len(cuts) + 1))
        for (_, before), (start, cut) in itertools.pairwise(cuts.values()):
            assert nanoseconds(start) > nanoseconds(before)
            assert nanoseconds(cut) >= nanoseconds(start)
        transactions: dict[str, list[tuple[int, str, dict[str, Any]]]] = defaultdict(list)
        for row in self.rows("object NOT LIKE '#%' AND origin NOT LIKE '%/backfill'"):
            record = json.loads(row.record)
            start, cut = cuts[row.batch]
            assert nanoseconds(start) <= nanoseconds(record["commit_timestamp"]) <= nanoseconds(cut)
            assert (row.source, row.object) == ("spanner", record["table_name"])
            transactions[record["server_transaction_id"]].append((row.batch, row.origin, record))
        for records in transactions.values():
            assert len({batch for batch, _, _ in records}) == 1
            assert all(record["number_of_records_in_transaction"] == len(records) for _, _, record in records)
            partitions = len({origin for _, origin, _ in records})
            assert all(record["number_of_partitions_in_transaction"] == partitions for _, _, record in records)


def on_spark(*marks: Any) -> Any:
    """What has a test on the plain session in `make test`, and on Spark with these marks; none: in `make test` too."""
    plain = ["plain"] if file_format() == "delta" else []
    return pytest.mark.parametrize("session", [*plain, pytest.param("spark", marks=marks)], indirect=True)


only_plain = pytest.mark.parametrize("session", ["plain"] if file_format() == "delta" else [], indirect=True)
only_on_spark = pytest.mark.parametrize("session", ["spark"], indirect=True)
in_soak, in_matrix = on_spark(pytest.mark.soak), on_spark(pytest.mark.matrix)


@pytest.fixture
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Spark's session, or the one of plain Python."""
    if request.param == "spark":
        return request.getfixturevalue("spark")
    plain_spark.stage_in_plain_python(monkeypatch)
    return plain_spark.Session()


@pytest.fixture
def place(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Place over the in-process server, as `place.server`."""
    with FakeSpanner(partitions=2) as server:
        server.now = T0 + 60 * SECOND
        monkeypatch.setenv("SPANNER_EMULATOR_HOST", server.address)
        made: Any = Place(session, tmp_path, ("p", "i", "d"))
        made.server = server
        yield made
        session.sql(f"DROP TABLE IF EXISTS {made.table}")


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    running = Emulator(partition_seconds=1)
    yield running
    running.stop()


@pytest.fixture
def shop(
    session: Any, tmp_path: Path, emulator: Emulator, postgresql: bool, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Place, Database]]:
    """A Place over a database of the emulator, with three tables."""
    name = f"append-{next(numbers)}"
    database = emulator.database(name, postgresql, *ddl(postgresql))
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", emulator.address)
    made = Place(session, tmp_path, (PROJECT, INSTANCE, name))
    yield made, database
    database.client.close()
    session.sql(f"DROP TABLE IF EXISTS {made.table}")


START = as_text(T0)


# What is appended


@on_spark()
def test_a_record_becomes_a_row_and_its_batch_has_a_cut(place: Any):
    record = place.server.commit("P0", T0 + 1, "a", "é")
    totals = place.append(start=START)
    cut = as_text(T0 + 60 * SECOND)
    assert totals == Totals(windows=2, records=1, first_batch=1, last_batch=2, cut_time=cut)
    (row,) = place.rows("object = 'T'")
    assert json.loads(row.record) == record
    assert (row.source, row.origin, row.batch) == ("spanner", "everything/P0", 1)
    assert list(row.asDict()) == ["record", "source", "object", "origin", "batch", "appended_at"]
    # The window of 60 s ends a nanosecond before the clock: the pass has a second one, which is empty.
    assert place.cuts() == {1: (START, as_text(T0 + 60 * SECOND - 1)), 2: (cut, cut)}
    assert place.append().windows <= 1
    assert place.keys() == ["a"]


@in_matrix
def test_without_a_start_the_job_begins_at_spanners_now(place: Any):
    place.server.commit("P0", T0 + 1, "before")
    place.append()
    assert place.keys() == []
    place.server.commit("P0", place.server.now + 1, "after")
    place.server.now += SECOND
    place.append()
    assert place.keys() == ["after"]


@in_matrix
def test_catching_up_goes_in_steps_and_windows_without_records_leave_nothing(place: Any):
    place.server.now = T0 + 600 * SECOND
    place.server.commit("P0", T0 + 301 * SECOND, "a")
    totals = place.append(start=START, window="100s")
    assert (totals.windows, totals.records, totals.cut_time) == (7, 1, as_text(place.server.now))
    # The first, the one with the record, and the last.
    cuts = place.cuts()
    assert [nanoseconds(start) - T0 for start, _ in cuts.values()] == [0, 300 * SECOND, 600 * SECOND]
    assert any("minutes behind" in text for text in place.shown)
    assert place.keys() == ["a"]


@in_matrix
def test_a_stream_that_is_silent_leaves_a_cut_now_and_then(place: Any):
    place.server.now = T0 + 900 * SECOND
    place.append(start=START, window="150s")
    cuts = [round((nanoseconds(cut) - T0) / SECOND) for _, cut in place.cuts().values()]
    assert cuts == [150, 450, 750, 900]


@in_matrix
def test_an_end_is_the_last_timestamp_and_the_job_goes_on_after_it(place: Any):
    for second in (1, 2, 3):
        place.server.commit("P1", T0 + second * SECOND, str(second))
    totals = place.append(start=START, end=as_text(T0 + 2 * SECOND))
    assert (totals.records, totals.cut_time) == (2, as_text(T0 + 2 * SECOND))
    assert place.append(end=as_text(T0 + 2 * SECOND)) == Totals()
    assert place.append().records == 1
    assert place.keys() == ["1", "2", "3"]
    place.check_cuts()


@only_on_spark
def test_the_source_can_be_used_on_its_own(place: Any, spark: SparkSession, tmp_path: Path):
    for i in range(4):
        place.server.commit(f"P{i % 2}", T0 + i * SECOND, str(i))
    spark.dataSource.register(SpannerChangeStream)
    options = {
        "project": "p",
        "instance": "i",
        "database": "d",
        "stream": "everything",
        "start": as_text(T0 + SECOND),
        "end": as_text(T0 + 3 * SECOND),
        "emulatorHost": place.server.address,
    }
    rows = spark.read.format("spanner_change_stream").options(**options).load().collect()
    assert sorted(json.loads(row.record)["mods"][0]["keys"]["k"] for row in rows) == ["1", "2", "3"]
    query = (
        spark.readStream.format("spanner_change_stream")
        .options(**options)
        .load()
        .writeStream.format("memory")
        .queryName("alone")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert {(row.object, row.origin) for row in spark.table("alone").collect()} == {
        ("T", "everything/P0"),
        ("T", "everything/P1"),
    }
    assert spark.table("alone").count() == 3
    spark.catalog.dropTempView("alone")


# Exactly once


def fails_at(name: str) -> Any:
    """What stands in for a kill inside the test's own process: the job ends there, and so does its query."""

    def reach(reached: str) -> None:
        if reached == name:
            raise RuntimeError(f"killed at {name}")

    return reach


def killed_at(place: Any, monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> None:
    """Let the job run until it dies there."""
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", fails_at(name))
        with pytest.raises(errors.Fault, match=name):
            place.append(**options)


@in_matrix
@pytest.mark.parametrize("place_of_death", failpoints_of_an_append())
def test_stopped_anywhere_and_started_again_each_record_is_there_once(
    place: Any, monkeypatch: pytest.MonkeyPatch, place_of_death: str
):
    for i in range(6):
        place.server.commit(f"P{i % 2}", T0 + i * 10 * SECOND, str(i))
    killed_at(place, monkeypatch, place_of_death, start=START, window="20s")
    place.append(window="20s")
    assert place.keys() == [str(i) for i in range(6)]
    place.check_cuts()


@only_on_spark
def test_stopped_at_every_place_in_turn_and_started_again_each_record_is_there_once(
    place: Any, monkeypatch: pytest.MonkeyPatch
):
    for i in range(6):
        place.server.commit(f"P{i % 2}", T0 + i * 10 * SECOND, str(i))
    for place_of_death in failpoints_of_an_append():
        killed_at(place, monkeypatch, place_of_death, start=START, window="30s")
    place.append(window="30s")
    assert place.keys() == [str(i) for i in range(6)]
    place.check_cuts()


@in_soak
def test_a_number_that_a_killed_run_gave_out_is_used_though_its_window_is_empty(
    place: Any, monkeypatch: pytest.MonkeyPatch
):
    place.append(start=START)
    place.server.now += SECOND
    killed_at(place, monkeypatch, "before_data_commit")
    place.server.now += SECOND
    place.server.commit("P0", place.server.now, "a")
    place.append()
    place.check_cuts()
    assert place.keys() == ["a"]


@in_matrix
def test_a_lost_checkpoint_of_a_table_without_its_cuts_is_one_sentence(place: Any):
    place.append(start=START)
    place.spark.sql(f"delete from {place.table}")
    shutil.rmtree(place.checkpoint)
    with pytest.raises(UsageError, match=r"^The checkpoint of .* is lost, and no batch in the table has the time"):
        place.append()


@only_plain
@pytest.mark.parametrize("is_lost", [False, True], ids=["checkpoint", "no checkpoint"])
def test_a_table_that_lost_what_was_kept_with_it_goes_on_where_its_cuts_end(place: Any, is_lost: bool):
    """Somebody has copied it, or taken the property away: it is not begun now, without what came in between."""
    place.server.commit("P0", T0 + 1, "a")
    place.append(start=START)
    ended = place.server.now
    del place.spark.tables[place.table].properties["reconcile.spanner"]
    if is_lost:
        shutil.rmtree(place.checkpoint)
    place.server.commit("P0", ended + 1, "b")
    place.server.now += SECOND
    assert place.append().records == 1
    assert place.keys() == ["a", "b"]
    place.check_cuts()


@only_plain
@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("last_batch", text) for text in ("", "many", "-5", "1.0")),
        *(("append", text) for text in ("", "x", "x/y/z")),
        *(("checkpoint", text) for text in ("", "x")),
        *((f"{job}append_batch", "many") for job in ("", "snapshot_")),
        ("snapshot_append", "x"),
    ],
)
def test_a_property_that_was_changed_by_hand_is_one_sentence(place: Any, name: str, text: str):
    place.append(start=START)
    place.spark.tables[place.table].properties[f"reconcile.{name}"] = text
    with pytest.raises(
        UsageError, match=rf"^The property reconcile\.{name} of the staging table \S+ is '{text}', which"
    ):
        place.append()


@only_plain
@pytest.mark.parametrize(
    ("file", "text", "damage"),
    [
        ("metadata", "null", "metadata cannot be read"),
        ("metadata", "[]", "metadata cannot be read"),
        ("metadata", "{}", "metadata has no id"),
        ("offsets/*", "v1\n{}\nnull", r"offsets/\d cannot be read"),
        ("offsets/*", "v1\n{}\n[1]", r"offsets/\d cannot be read"),
        ("offsets/*", 'v1\n{}\n{"end": "x"}', r"offsets/\d has no time"),
        ("offsets/*", 'v1\n{}\n{"next": null}', r"offsets/\d has no time"),
        ("offsets/*", "", r"offsets/\d is cut off"),
        ("commits", "a file", r"offsets end at \d, and commits at -1"),
    ],
)
def test_a_checkpoint_of_other_content_is_damaged(place: Any, file: str, text: str, damage: str):
    place.append(start=START)
    place.server.now += SECOND
    place.append()
    for found in place.checkpoint.glob(file):
        if found.is_dir():
            shutil.rmtree(found)
        found.write_text(text)
    with pytest.raises(UsageError, match=rf"^The checkpoint .* is damaged.* \({damage}\): delete it to go on where"):
        place.append()


@only_plain
def test_a_checkpoint_that_is_a_file_is_one_sentence(place: Any):
    place.checkpoint.write_text("notes")
    with pytest.raises(UsageError, match=r"^The checkpoint \S+ is a file: name a directory with --checkpoint\.$"):
        place.append(start=START)


@in_soak
def test_after_a_lost_checkpoint_the_job_goes_on_where_staging_ends(place: Any):
    place.server.commit("P0", T0 + 1, "a")
    place.append(start=START)
    ended = place.server.now
    shutil.rmtree(place.checkpoint)
    place.server.commit("P0", ended + 1, "b")
    place.server.now += SECOND
    with pytest.raises(UsageError, match="records between this time and --start would be missing: remove --start"):
        place.append(start=as_text(ended + SECOND // 2))
    place.append(start=START)
    assert "is lost" in place.said[0]
    assert place.keys() == ["a", "b"]
    place.check_cuts()
    assert place.append(start=START).records == 0


@in_matrix
def test_a_second_job_of_another_stream_is_refused(place: Any, tmp_path: Path):
    place.append(start=START)
    place.server.stream = "other"
    with pytest.raises(UsageError, match="belongs to another job"):
        place.append(stream="other", checkpoint=str(tmp_path / "other"))


# Partitions


@in_matrix
def test_a_child_that_one_parent_does_not_name_is_noticed_and_the_window_read_again(place: Any):
    place.server.commit("P0", T0 + 1, "a")
    place.server.split("P0", ["A", "B"], T0 + 2)
    place.server.commit("B", T0 + 3, "b")
    place.server.forgetful = {"P0": 1}
    place.append(start=START)
    assert place.keys() == ["a", "b"]
    assert "read again" in place.said[0]


@in_matrix
def test_partitions_that_never_fit_append_nothing_or_are_warned_of(place: Any):
    place.server.commit("P0", T0 + 1, "a")
    place.server.split("P0", ["A", "B"], T0 + 2)
    place.server.forgetful = {"P0": 1000}
    with pytest.raises(
        errors.Fault, match=r"differ from those that the change stream everything has.*nothing of this window"
    ):
        place.append(start=START)
    assert place.rows() == []
    place.append(partition_check="warn")
    assert place.keys() == ["a"]
    assert "records may be missing" in place.said[-1]


@in_matrix
def test_partitions_that_come_and_go_between_windows_and_within(place: Any):
    server = place.server
    alive, written = ["P0", "P1"], []
    for step in range(30):
        moment = T0 + step * 2 * SECOND
        for token in alive:
            written.append(f"{len(written):03d}")
            server.commit(token, moment + 1, written[-1])
        if step % 2:
            parent = alive.pop(0)
            server.split(parent, [f"{parent}a", f"{parent}b"], moment + SECOND)
            alive += [f"{parent}a", f"{parent}b"]
        else:
            child = f"M{step}"
            server.merge(alive[:2], child, moment + SECOND)
            alive = [*alive[2:], child]
    server.now = T0 + 60 * SECOND
    server.faults = [Fault(token, 1) for token in list(server.partitions)[::3]]
    place.append(start=START, window="15s")
    assert place.keys() == written
    place.check_cuts()


# What cannot be


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"start": "yesterday"}, "--start: yesterday is not a timestamp"),
        ({"end": "2026-01-01T00:00:00Z"}, "--end is before --start"),
        ({"start": "2999-01-01T00:00:00Z"}, "--start is in the future"),
        ({"start": "2999-01-01T00:00:00Z", "end": "2998-01-01T00:00:00Z"}, "--start is in the future"),
        ({"start": as_text(T0 + 61 * SECOND), "end": as_text(T0 + 60 * SECOND)}, "--end is before --start"),
        ({"tables": ("T", "Nothing")}, "does not watch Nothing: it watches T"),
        ({"stream": "nothing"}, "There is no change stream nothing"),
        ({"heartbeat": "1ms"}, "heartbeat is out of range"),
    ],
)
@in_matrix
def test_what_cannot_be_is_one_sentence_and_appends_nothing(place: Any, options: dict[str, Any], sentence: str):
    with pytest.raises(UsageError, match=sentence) as refused:
        place.append(**options)
    assert "\n" not in str(refused.value)
    assert not place.spark.catalog.tableExists(place.table) or place.rows() == []


@in_matrix
def test_a_start_that_spanner_no_longer_has_is_one_sentence(place: Any):
    place.server.now = T0 + 3600 * SECOND
    place.server.retention_start = T0 + 1800 * SECOND
    with pytest.raises(UsageError, match="within the change stream's retention period") as refused:
        place.append(start=START)
    assert "\n" not in str(refused.value)
    assert place.rows() == []
    later = as_text(place.server.retention_start)
    place.append(start=later)
    assert place.cuts()[1][0] == later


@in_soak
def test_a_first_run_that_failed_is_begun_anew_where_it_was_to_begin(place: Any):
    place.server.faults = [Fault("P0", 0, grpc.StatusCode.PERMISSION_DENIED, "no", times=9)]
    with pytest.raises(UsageError, match=r"^Permission denied"):
        place.append()
    began = place.server.now
    place.server.faults = []
    place.server.commit("P0", began + SECOND, "a")
    place.server.now += 3600 * SECOND
    place.append(window="1h")
    assert place.keys() == ["a"]
    assert "the start of the first attempt" in place.said[0]


@in_matrix
def test_a_table_that_was_begun_is_not_begun_again_otherwise(place: Any):
    place.append(start=START)
    with pytest.raises(UsageError, match="began at"):
        place.append(start=as_text(T0 + 1))
    with pytest.raises(UsageError, match="began without --backfill"):
        place.append(backfill=True)
    assert place.append(start=START).records == 0


@on_spark()
def test_what_goes_wrong_on_an_executor_is_one_sentence(place: Any):
    place.server.commit("P0", T0 + 1)
    place.server.faults = [Fault("P0", 0, grpc.StatusCode.PERMISSION_DENIED, "no spanner.databases.select", times=9)]
    with pytest.raises(UsageError, match=r"^Permission denied on projects/p") as refused:
        place.append(start=START)
    assert "\n" not in str(refused.value)
    assert place.rows() == []


# A backfill


@in_soak
@pytest.mark.parametrize("place_of_death", ["before_data_commit", "after_data_commit"])
def test_a_backfill_that_is_stopped_in_the_middle_happens_once(
    place: Any, monkeypatch: pytest.MonkeyPatch, place_of_death: str
):
    place.server.rows = [(f"k{number:03d}", "as it was") for number in range(250)]
    killed_at(place, monkeypatch, place_of_death, backfill=True)
    place.server.now += SECOND
    place.server.commit("P0", place.server.now, "k000", "changed")
    totals = [place.append(backfill=True) for _ in range(2)]
    backfilled = [json.loads(row.record) for row in place.rows("origin = 'everything/backfill'")]
    keys = sorted(mod["keys"]["k"] for record in backfilled for mod in record["mods"])
    assert keys == [f"k{number:03d}" for number in range(250)]
    # Dated at the start, they come before every change.
    assert {record["commit_timestamp"] for record in backfilled} == {place.cuts()[1][0]}
    assert place.keys() == ["k000"]
    assert sum(total.records for total in totals) == 1
    place.check_cuts()


@only_plain
def test_rows_of_a_backfill_are_not_counted_among_the_records(place: Any):
    place.server.rows = [(f"k{number:03d}", "v") for number in range(250)]
    for key in "ab":
        place.server.commit("P0", T0 + 1, key)
    totals = place.append(start=START, backfill=True, tables=("T",))
    assert (totals.records, totals.backfill_records, totals.erased_mods) == (2, 3, 0), "three records of 250 rows"
    place.server.commit("P0", place.server.now + 1, "c")
    place.server.now += SECOND
    totals = place.append()
    assert (totals.records, totals.backfill_records) == (1, 0)


# With an interval


@in_matrix
def test_with_an_interval_the_job_takes_what_comes_until_it_is_stopped(place: Any):
    stop, totals = threading.Event(), list[Totals]()
    job = threading.Thread(target=lambda: totals.append(place.append(every="1 seconds", stop=stop)))
    job.start()
    wait_until(lambda: place.spark.catalog.tableExists(place.table) and place.rows() != [])
    for number in range(3):
        place.server.commit("P0", place.server.now + 1, str(number))
        place.server.now += SECOND
        wait_until(lambda: len(place.changes()) == number + 1)  # noqa: B023
    # Stopped in the middle of a batch, the job would not count what is brought again.
    wait_until(lambda: " 3 records" in place.shown[-1])
    stop.set()
    job.join(60)
    assert totals[0].records == 3
    place.check_cuts()


@in_matrix
def test_an_interval_longer_than_a_window_leaves_nothing_behind(place: Any):
    stop = threading.Event()
    job = threading.Thread(target=lambda: place.append(start=START, window="10s", every="20 seconds", stop=stop))
    job.start()
    wait_until(lambda: place.spark.catalog.tableExists(place.table) and place.rows() != [])
    place.server.commit("P0", place.server.now + 195 * SECOND, "a")
    place.server.now += 200 * SECOND
    before = len(getattr(place.spark, "intervals", ()))
    wait_until(lambda: place.keys() == ["a"], seconds=120)  # a window of 10 s every 20 s would take 400
    if isinstance(place.spark, plain_spark.Session):
        assert sum(seconds > 0 for seconds in place.spark.intervals[before:]) < 10
    stop.set()
    job.join(60)
    place.check_cuts()


# The emulator


def _partitions(place: Place) -> set[str]:
    return {row.origin for row in place.rows("object NOT LIKE '#%'")}


@in_matrix
@pytest.mark.parametrize("postgresql", [False, True], ids=["googlesql", "postgresql"])
def test_a_workload_while_the_job_is_stopped_and_started(shop: tuple[Place, Database]):
    place, database = shop
    plain = isinstance(place.spark, plain_spark.Session)
    workload = Workload(database, seed=3)
    for _ in range(100):
        workload.step()
    before = Counter(workload.events)
    workload.start(pause=0.005 if plain else 0.03)
    totals = [place.append(backfill=True, window="20s")]
    # At least three times, and until partitions have changed, which live for three seconds.
    while len(totals) < 4 or (len(_partitions(place)) <= (3 if plain else 5) and len(totals) < 20):
        time.sleep(1 if plain else 2)
        totals.append(place.append(backfill=True, window="20s"))
    workload.stop()
    totals.append(place.append(window="20s"))
    assert workload.transactions > 100 + (50 if plain else 200)
    assert totals[0].backfill_records > 0
    assert sum(t.backfill_records for t in totals[1:]) == 0
    found = events_of(place.changes())
    assert all(count == 1 for count in found.values())
    start = nanoseconds(place.cuts()[1][0])
    assert found == Counter({e: n for e, n in workload.events.items() if nanoseconds(e[0]) >= start})
    assert sum(before.values()) > 0 and not set(before) & set(found)
    assert folded(place.everything()) == in_database(database) == workload.state
    place.check_cuts()
    assert len(_partitions(place)) > (3 if plain else 5), "the partitions did not change: this shows nothing"


@only_on_spark
@pytest.mark.soak
def test_mods_of_erased_keys_are_dropped_and_counted(place: Any, monkeypatch: pytest.MonkeyPatch):
    """What erase.py has written is written here by hand; erase.py itself: tests/functional/test_erase.py."""
    secret, of = b"0123456789abcdef0123456789abcdef", KeyOf(("T",), (KeyColumn("k", ("k",), False),))
    place.server.commit("P0", T0 + 1, "a", "1")
    place.append(start=START)
    digest = ErasedKeys(secret).digest(of, ("a",))
    place.spark.sql(f"CREATE TABLE {place.table}__erased USING {file_format()} AS SELECT '{digest}' AS digest")
    name = TableName.parse(place.table)
    keep_all(place.spark, name, {"erased": property_of(name_of(secret), [of], "e1")})
    place.server.commit("P0", place.server.now + 1, "a", "2")
    place.server.commit("P1", place.server.now + 2, "b", "2")
    place.server.now += SECOND
    with pytest.raises(UsageError, match="needs a key, and there is none"):
        place.append()
    monkeypatch.setenv(VARIABLE, secret.decode())
    totals = place.append()
    assert (totals.records, totals.erased_mods) == (2, 1)
    records = [json.loads(row.record) for row in place.rows("object = 'T' AND batch > 1")]
    assert [record["mods"][0].get("keys") for record in records] == [None, {"k": "b"}]
    assert [mod for record in records for mod in record["mods"] if "keys" not in mod] == [{"erased": ""}]
    assert len({record["server_transaction_id"] for record in records}) == 2


# The command


@pytest.mark.skipif(file_format() == "iceberg", reason="the command is the same for both formats")
def test_the_command_says_what_it_did_in_one_line(spark: SparkSession, tmp_path: Path):
    with FakeSpanner() as server:
        server.rows = [("a", "b")]
        command = ["spark-submit", str(ROOT / "ingestion" / "append.py"), "spanner", "--project", "p"]
        command += ["--instance", "i", "--database", "d", "--stream", "everything", "--staging", "lake.changes"]
        environment = os.environ | {"SPANNER_EMULATOR_HOST": server.address}
        job = subprocess.run(
            [*command, "--window", "20s", "--backfill"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert (job.returncode, job.stderr) == (0, "")
    (line,) = job.stdout.splitlines()
    result = json.loads(line)
    assert (result["records"], result["backfill_records"], result["first_batch"]) == (0, 1, 1)
    assert result["cut_time"] == as_text(server.now)
    table = table_at(spark, tmp_path / "lakehouse/warehouse/lake.db/changes")
    (row,) = spark.sql(f"SELECT record FROM {table} WHERE object NOT LIKE '#%'").collect()
    assert json.loads(row.record)["mods"][0]["keys"] == {"k": "a"}
