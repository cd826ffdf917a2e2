"""Two jobs append to one staging table: that of a log, and that of snapshots beside it. Nothing is lost or doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from plain_spark import Frame, Session, stage_in_plain_python
from reconcile_jobs import staging, table_formats
from reconcile_jobs.cuts import Overtaken, again_if_overtaken
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.staging import Appended, Staging, TableName

NAME = TableName(("lake", "changes"))
COLUMNS = ("record", "object", "origin")


class Refused(Exception):
    """The table's format has refused an append: its number is not free, or the table was changed meanwhile."""


class Killed(Exception):
    """A job was killed."""


class Job:
    """One of the two jobs: it appends micro-batch after micro-batch, and goes on with the one that it had begun."""

    def __init__(self, spark: Any, beside: bool) -> None:
        self.spark, self.beside, self.epoch = spark, beside, 0
        self.opened: Staging | None = None

    def append(self, rows: int = 2) -> Appended:
        if self.opened is None:
            self.opened = Staging(self.spark, NAME, "snapshot" if self.beside else "datastream", beside=self.beside)
        name = "beside-0" if self.beside else "log"
        records = [{"record": f"{name} {self.epoch} {n}", "object": name, "origin": "x"} for n in range(rows)]
        frame: Any = Frame(self.spark, lambda: records, COLUMNS)
        appended = self.opened.append(frame, name, name, "place", self.epoch, [f"{self.epoch}"])
        self.epoch += 1
        return appended


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    stage_in_plain_python(monkeypatch)

    def if_free(rows: Any, table: str, batch: int) -> Any:
        """As Delta: what the table is asked for while rows are written still holds when they are committed.

        Nothing is asked for an append that the table has had, which Delta drops before.
        """
        session = rows.sparkSession

        def read() -> list[dict[str, Any]]:
            made = list(rows.all())
            there = session.table(table).all()
            is_there = {row["record"] for row in made} & {row["record"] for row in there}
            if not is_there and any(row["batch"] >= batch for row in there):
                raise Refused
            return made

        return Frame(session, read)

    monkeypatch.setattr(table_formats, "_if_number_is_free", if_free)
    return Session()


def reaching(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    monkeypatch.setattr(failpoints, "reach", act)


def staged_rows(spark: Any) -> list[tuple[int, str]]:
    return [(row["batch"], row["record"]) for row in spark.tables[str(NAME)].rows]


def test_the_numbers_of_purged_batches_are_not_given_out_again(spark: Any) -> None:
    """Also in a table that does not say its last number, as one that was copied by hand."""
    job = Job(spark, beside=False)
    job.append()
    properties = spark.tables[str(NAME)].properties
    for name in [name for name in properties if name.startswith("reconcile.")]:
        del properties[name]
    properties["reconcile.purged.0cc175b9c0f1b6a831c399e269772661"] = "7"
    job.opened = None
    job.append()
    assert {batch for batch, _ in staged_rows(spark)} == {1, 8}


@pytest.mark.parametrize("steps_back", [1, 2, 3])
def test_a_checkpoint_that_was_restored_is_refused_however_little(spark: Any, steps_back: int) -> None:
    """Its new files would be dropped as rows that the table has."""
    job = Job(spark, beside=False)
    for _ in range(3):
        job.append()
    before = staged_rows(spark)
    files = ["another file"]
    assert job.opened is not None
    frame: Any = Frame(spark, lambda: [{"record": "new", "object": "log", "origin": "x"}], COLUMNS)
    with pytest.raises(UsageError, match="The checkpoint place was restored"):
        job.opened.append(frame, "log", "log", "place", job.epoch - steps_back, files)
    assert staged_rows(spark) == before
    job.epoch -= 1
    assert job.append().rows and staged_rows(spark) == before  # the last one again, with its own content


@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_killed_and_whoever_comes_between(spark: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    log, beside = Job(spark, beside=False), Job(spark, beside=True)
    running: list[Job] = []
    seen: list[int] = []  # the numbers in the order in which they appeared

    def reach(place: str) -> None:
        news = sorted({batch for batch, _ in staged_rows(spark)} - set(seen))
        assert not news or news[0] > max(seen, default=0), "a model that has read the later batch misses this one"
        seen.extend(news)
        if chance.random() < 0.3:
            running[-1].opened = None
            raise Killed(place)
        others = [job for job in (log, beside) if job not in running]
        if others and chance.random() < 0.5:
            attempt(others[0])

    def attempt(job: Job) -> None:
        running.append(job)
        try:
            job.append()
        except (Killed, Refused):
            job.opened = None
        finally:
            running.pop()

    # A job of the log that has waited long enough, or does not know of turns.
    monkeypatch.setattr(staging, "_LONGEST_TURN", 0)
    reaching(monkeypatch, reach)
    for _ in range(12):
        attempt(chance.choice([log, beside]))
    reaching(monkeypatch, lambda place: None)
    for job in (log, beside):
        job.opened = None
        for _ in range(3):  # of a number that is taken, the next run knows
            try:
                job.append()
                break
            except Refused:
                job.opened = None
        else:
            raise AssertionError("an append never comes")
    found = staged_rows(spark)
    wanted = {f"log {epoch} {n}" for epoch in range(log.epoch) for n in range(2)}
    wanted |= {f"beside-0 {epoch} {n}" for epoch in range(beside.epoch) for n in range(2)}
    assert sorted(record for _, record in found) == sorted(wanted)
    appends = {(batch, *record.split(" ")[:2]) for batch, record in found}
    assert len(appends) == len({batch for batch, *_ in appends}) == log.epoch + beside.epoch


def test_an_append_that_was_killed_does_not_come_under_a_number_before_one_that_was_given_out_since(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that has the later number is perhaps still writing."""
    log, beside = Job(spark, beside=False), Job(spark, beside=True)

    def die(place: str) -> None:
        raise Killed(place)

    reaching(monkeypatch, die)
    monkeypatch.setattr(staging, "_LONGEST_TURN", 0)
    for job in (log, beside):
        with pytest.raises(Killed):
            job.append()
        job.opened = None
    reaching(monkeypatch, lambda place: None)
    assert log.append().batch == 3
    assert beside.append().batch == 4


def waiting(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> list[float]:
    """Let time pass only where a job sleeps, and something happen meanwhile. Return the seconds that were slept."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        act(len(slept))

    monkeypatch.setattr("reconcile_jobs.staging.time.sleep", sleep)
    monkeypatch.setattr("reconcile_jobs.staging.time.monotonic", lambda: sum(slept))
    return slept


def test_the_job_of_the_log_waits_while_a_snapshot_is_written(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a snapshot that takes longer to write than the pause between two appends of the log would never come."""
    log, beside = Job(spark, beside=False), Job(spark, beside=True)
    assert log.append().batch == 1

    def die(place: str) -> None:
        raise Killed(place)

    reaching(monkeypatch, die)
    with pytest.raises(Killed):
        beside.append()
    reaching(monkeypatch, lambda place: None)
    beside.opened = None

    def ends_after_three_seconds(second: int) -> None:
        if second == 3:
            beside.append()

    slept = waiting(monkeypatch, ends_after_three_seconds)
    assert log.append().batch == 3
    assert slept == [1, 1, 1]
    assert [batch for batch, record in staged_rows(spark) if record.startswith("beside")] == [2, 2]
    assert log.append().batch == 4
    assert len(slept) == 3


def test_for_a_snapshot_job_that_was_killed_the_log_waits_ten_minutes_and_once(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, beside = Job(spark, beside=False), Job(spark, beside=True)

    def die(place: str) -> None:
        raise Killed(place)

    reaching(monkeypatch, die)
    with pytest.raises(Killed):
        beside.append()
    reaching(monkeypatch, lambda place: None)
    beside.opened = None
    slept = waiting(monkeypatch, lambda second: None)
    assert log.append().batch == 2
    assert sum(slept) == 600
    assert log.append().batch == 3
    assert sum(slept) == 600
    assert beside.append().batch == 4


def test_an_append_of_a_snapshot_that_fails_ends_its_turn(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log, beside = Job(spark, beside=False), Job(spark, beside=True)
    taken: list[int] = []

    def reach(place: str) -> None:
        if place == "before_data_commit" and not taken:
            taken.append(1)
            spark.tables[str(NAME)].rows.append(
                {"record": "x", "source": "x", "object": "x", "origin": "x", "batch": 1, "appended_at": None}
            )

    reaching(monkeypatch, reach)
    with pytest.raises(Refused):
        beside.append()
    slept = waiting(monkeypatch, lambda second: None)
    assert log.append().batch == 2
    assert slept == []


def test_an_append_of_nothing_gives_no_number_back_that_is_not_the_last(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, beside = Job(spark, beside=False), Job(spark, beside=True)
    assert log.append().batch == 1
    numbers: list[int | None] = []

    def reach(place: str) -> None:
        if place == "after_data_commit" and not numbers:
            numbers.append(0)
            numbers.append(beside.append().batch)

    reaching(monkeypatch, reach)
    assert log.append(rows=0).batch is None
    reaching(monkeypatch, lambda place: None)
    assert numbers == [0, 3]
    assert spark.tables[str(NAME)].properties["reconcile.last_batch"] == "3"
    assert log.append().batch == 4
    assert log.append(rows=0).batch is None
    assert log.append().batch == 5


def test_a_table_of_an_earlier_version_has_no_number_of_its_last_append(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, beside = Job(spark, beside=False), Job(spark, beside=True)

    def die(place: str) -> None:
        raise Killed(place)

    reaching(monkeypatch, die)
    with pytest.raises(Killed):
        log.append()
    reaching(monkeypatch, lambda place: None)
    del spark.tables[str(NAME)].properties["reconcile.append_batch"]
    assert beside.append().batch == 2
    log.opened = None
    assert log.append().batch == 3
    assert sorted(record for _, record in staged_rows(spark)) == ["beside-0 0 0", "beside-0 0 1", "log 0 0", "log 0 1"]


def test_a_second_job_of_either_kind_is_still_refused(spark: Any) -> None:
    for beside in (False, True):
        first, second = Job(spark, beside), Job(spark, beside)
        second.epoch = 1
        first.append()
        second.opened = Staging(spark, NAME, "snapshot" if beside else "datastream", beside=beside)
        first.append()
        # Another job of the log goes on appending; another snapshot is done with one append.
        kind, sentence = (
            (Fault, "Another snapshot was staged into") if beside else (UsageError, "Another job is append")
        )
        with pytest.raises(kind, match=sentence):
            second.append()


def test_a_copy_of_the_table_knows_that_it_has_snapshots_and_both_jobs_go_on(spark: Any) -> None:
    """A copy made by hand has no properties, and models look for snapshots where a property says that there are any."""
    log, beside = Job(spark, beside=False), Job(spark, beside=True)
    log.append()
    table = spark.tables[str(NAME)]
    said = {"record": "{}", "source": "snapshot", "object": "#snapshot", "origin": "x", "batch": 2, "appended_at": None}
    table.rows.append(said)
    table.properties.clear()
    log.opened = None
    assert log.append().batch == 3
    assert table.properties["reconcile.snapshot_append"] == "copied/0/"
    assert beside.append().batch == 4
    assert log.append().batch == 5


@pytest.mark.parametrize("overtaken", [0, 1, 2])
def test_a_run_that_another_append_overtook_runs_once_more(overtaken: int) -> None:
    runs: list[int] = []

    def run() -> int:
        runs.append(1)
        if len(runs) <= overtaken:
            raise Overtaken("Another job appended shop_things first")
        return len(runs)

    if overtaken < 2:
        assert again_if_overtaken(run) == overtaken + 1
    else:
        with pytest.raises(Overtaken):
            again_if_overtaken(run)
    assert len(runs) == min(overtaken + 1, 2)
