"""The job of append tables: which tables and names it takes, its pace, what it counts; and the history that it reads.

Real tables are read by tests/functional/test_append_table.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs import append_table
from reconcile_jobs.append_table import Job, Totals, _Run
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.staging import Appended, TableName
from reconcile_jobs.table_formats import AppendedSince, NotFollowed, _delta_changes

ORDERS, LINES = TableName.parse("shop.orders"), TableName.parse("shop.lines")
STAGING = TableName.parse("lake.changes")


def run_of(*tables: TableName, caller: Caller | None = None, **options: Any) -> _Run:
    spark: Any = None
    return _Run(spark, Job(tables=tables, staging=STAGING, **options), caller or Caller())


def test_a_table_has_its_own_name_in_staging_unless_it_is_given_another() -> None:
    assert run_of(ORDERS, LINES).objects == {"orders": ORDERS, "lines": LINES}
    assert run_of(ORDERS, object="SHOP").objects == {"SHOP": ORDERS}


def test_one_name_is_not_that_of_two_tables() -> None:
    with pytest.raises(UsageError, match=r"^--object names one table: run this command once for each --table\.$"):
        run_of(ORDERS, LINES, object="SHOP")
    with pytest.raises(UsageError, match=r"^Two tables have the same name: .*--object of its own\.$"):
        run_of(ORDERS, TableName.parse("other.orders"))
    for name in ("#cut", "#"):
        with pytest.raises(UsageError, match=f"^--object '{name}' is not a valid name of a table"):
            run_of(ORDERS, object=name)


class Clock:
    """A clock that moves where a job waits, and by what each read takes."""

    def __init__(self, looks: int) -> None:
        self.at, self.waited, self.looks = 0.0, list[float](), looks

    def seconds(self) -> float:
        return self.at

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.waited.append(seconds)
        assert len(self.waited) <= self.looks, "the job goes on although it is to stop"
        self.at += seconds
        if len(self.waited) == self.looks:
            stop.set()
        return stop.is_set()


def looks_of(run: _Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, *took: float) -> list[str]:
    """Run a job of which each read takes so many seconds, and return the names that it has read."""
    read: list[str] = []

    def append(name: str, table: TableName) -> None:
        clock.at += took[len(read) % len(took)]
        read.append(name)

    monkeypatch.setattr(run, "_append", append)
    monkeypatch.setattr(run, "_refuse_unless_append_only", lambda table: None)
    monkeypatch.setattr(append_table, "Staging", lambda *_, register: None)
    monkeypatch.setattr(append_table, "Cuts", lambda *_: None)
    run.run()
    return read


def test_without_an_interval_each_table_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Any = Clock(looks=9)
    assert looks_of(run_of(ORDERS, LINES, caller=Caller(clock=clock)), clock, monkeypatch, 1) == ["orders", "lines"]
    assert clock.waited == []


def test_an_interval_is_that_between_the_beginnings_of_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes longer is followed by the next one at once."""
    clock: Any = Clock(looks=3)
    run = run_of(ORDERS, LINES, caller=Caller(clock=clock), every=10.0)
    assert looks_of(run, clock, monkeypatch, 1, 2, 8, 7) == ["orders", "lines"] * 3
    assert clock.waited == [7, 0, 7]


def test_a_job_that_is_to_stop_reads_no_further_table_and_says_so_if_it_did_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = threading.Event()
    stopped.set()
    for every in (None, 10.0):
        clock: Any = Clock(looks=9)
        run = run_of(ORDERS, caller=Caller(stopped, clock=clock), every=every)
        if every is None:
            with pytest.raises(Fault, match="run the same command again"):
                looks_of(run, clock, monkeypatch, 1)
        else:
            assert looks_of(run, clock, monkeypatch, 1) == []


class Cuts:
    """The cuts of a staging table, and what is appended after them."""

    def __init__(self, newest: dict[str, Any] | None, rows: int = 0, problem: Exception | None = None) -> None:
        self.cut, self.rows, self.problem, self.appended = newest, rows, problem, list[Any]()

    def newest(self, object_: str) -> dict[str, Any] | None:
        return self.cut

    def append(self, records: Any, object_: str, origin: str, cut: dict[str, str]) -> Appended:
        if self.problem:
            raise self.problem
        self.appended.append((object_, origin, cut))
        return Appended(len(self.appended), self.rows, 1)


def appended(
    cuts: Cuts, found: AppendedSince | NotFollowed, monkeypatch: pytest.MonkeyPatch, reread: bool = False
) -> tuple[list[str | None], Totals, list[str]]:
    """Append what a table has since its cut; return the positions that were asked for, the totals, what was said."""
    asked: list[str | None] = []
    said: list[str] = []

    def since(spark: Any, table: str, position: str | None) -> AppendedSince:
        asked.append(position)
        if isinstance(found, NotFollowed):
            raise found
        return found

    monkeypatch.setattr(append_table, "format_of", lambda spark, catalog: SimpleNamespace(appended_since=since))
    run = run_of(ORDERS, caller=Caller(say=said.append), reread=reread)
    run.cuts = cuts  # type: ignore[assignment]
    monkeypatch.setattr(run, "_records", lambda rows, name, only_new: ("new" if only_new else "all", rows))
    run._append("orders", ORDERS)
    return asked, run.totals, said


ROWS: Any = "rows"
KNOWN = {"table": "shop.orders", "table_id": "t", "position": "7"}


def test_of_an_append_its_records_are_counted_and_not_the_row_that_says_how_far_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuts = Cuts(KNOWN, rows=1235)
    asked, totals, said = appended(cuts, AppendedSince(ROWS, "9", "t"), monkeypatch)
    assert (asked, totals) == (["7"], Totals(tables=1, records=1234, first_batch=1, last_batch=1))
    assert said == ["orders: 1,234 records, up to shop.orders@9"]
    assert cuts.appended == [("orders", "shop.orders@9", KNOWN | {"position": "9"})]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_without_new_rows_is_none_that_was_read(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its versions since, as of a compaction, are passed over once."""
    _, totals, said = appended(Cuts(KNOWN, rows), AppendedSince(None, "9", "t"), monkeypatch)
    assert (totals.tables, totals.records) == (0, 0) and said == ["orders: 0 records, up to shop.orders@9"]
    cuts = Cuts(KNOWN)
    assert appended(cuts, AppendedSince(None, "7", "t"), monkeypatch)[1] == Totals() and not cuts.appended


def test_a_first_look_and_one_that_reads_again_read_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert appended(Cuts(None, 3), AppendedSince(ROWS, "7", "t"), monkeypatch)[0] == [None]
    assert appended(Cuts(KNOWN, 3), AppendedSince(ROWS, "7", "t"), monkeypatch, reread=True)[0] == [None]


@pytest.mark.parametrize(
    ("cuts", "found", "says"),
    [
        (Cuts(KNOWN), NotFollowed("was changed by MERGE"), r"^shop\.orders was changed by MERGE\. .*give --reread"),
        (Cuts(KNOWN), AppendedSince(ROWS, "9", "u"), r"^shop\.orders is not the table that was staged .*give --reread"),
        (
            Cuts(KNOWN | {"table": "other.orders"}), AppendedSince(ROWS, "9", "u"),
            r"^orders in lake\.changes is already the name of the table other\.orders: .*another --object\.$",
        ),
        (
            Cuts(KNOWN, problem=OSError("java.io.FileNotFoundException: x")), AppendedSince(ROWS, "9", "t"),
            r"^shop\.orders has no files of its versions since 7 any more\. .*give --reread",
        ),
        (
            Cuts(KNOWN, problem=OSError("[FAILED_READ_FILE.FILE_NOT_EXIST] x")), AppendedSince(ROWS, "9", "t"),
            r"^shop\.orders has no files of its versions since 7 any more\. .*give --reread",
        ),
    ],
    ids=["changed", "made anew", "another table", "files that are gone", "a file that is gone"],
)  # fmt: skip
def test_what_cannot_be_gone_on_with_is_a_sentence(
    cuts: Cuts, found: AppendedSince | NotFollowed, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=says):
        appended(cuts, found, monkeypatch)
    assert not cuts.appended


def test_a_table_that_was_made_anew_is_read_again_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = Cuts(KNOWN, rows=2)
    assert appended(cuts, AppendedSince(ROWS, "1", "u"), monkeypatch, reread=True)[1].records == 1
    assert cuts.appended[0][2] == {"table": "shop.orders", "table_id": "u", "position": "1"}


# --- the history of a Delta table -------------------------------------------------------------------------------------


class Log:
    """A log of Delta's that has these versions, each with its actions; then perhaps it fails."""

    def __init__(self, *versions: int, problem: str | None = None) -> None:
        self.versions, self.problem, self.asked = list(versions), problem, list[tuple[int, int]]()

    def getChanges(self, first: int, last: int, *_: Any) -> Any:
        self.asked.append((first, last))
        return self

    def hasNext(self) -> bool:
        if not self.versions and self.problem:
            raise RuntimeError(self.problem)
        return bool(self.versions)

    def next(self) -> Any:
        number = self.versions.pop(0)
        return SimpleNamespace(_1=lambda: number, _2=lambda: [f"of {number}"])


def history(log: Log, first: int, last: int) -> list[tuple[int, list[Any]]]:
    same: Callable[[Any], Any] = lambda given: given  # noqa: E731
    converters = SimpleNamespace(CollectionConverters=SimpleNamespace(asJava=same))
    scala = SimpleNamespace(jdk=SimpleNamespace(javaapi=converters), Option=SimpleNamespace(empty=lambda: None))
    return list(_delta_changes(SimpleNamespace(scala=scala), log, first, last))


def test_the_versions_from_the_first_to_the_last_are_read() -> None:
    log = Log(3, 4, 5)
    assert history(log, 3, 5) == [(3, ["of 3"]), (4, ["of 4"]), (5, ["of 5"])]
    assert log.asked == [(3, 5)]
    assert history(Log(3), 3, 3) == [(3, ["of 3"])]
    log = Log()
    assert history(log, 4, 3) == [] and log.asked == [], "nothing came since"


@pytest.mark.parametrize(
    "log",
    [
        Log(4, 5), Log(3, 5), Log(3, 4), Log(), Log(5, problem="any"),
        *(
            Log(3, problem=said)
            for said in (
                "[DELTA_MISSING_FILES_UNEXPECTED_VERSION] x", "[DELTA_LOG_FILE_NOT_FOUND] x",
                "[DELTA_VERSIONS_NOT_CONTIGUOUS] x", "java.io.FileNotFoundException: x",
            )
        ),
    ],
    ids=lambda log: f"{log.versions} {log.problem or ''}",
)  # fmt: skip
def test_a_history_with_a_gap_is_not_taken_for_a_whole_one(log: Log) -> None:
    """Rows of the versions that are gone would never come to staging."""
    with pytest.raises(NotFollowed, match=r"^no longer has the history of version 3$"):
        history(log, 3, 5)


def test_what_else_fails_while_a_history_is_read_is_no_gap() -> None:
    with pytest.raises(RuntimeError, match="connect timed out"):
        history(Log(3, problem="connect timed out"), 3, 5)
