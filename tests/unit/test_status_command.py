"""status.py: what is not right, worst first, each in one line, and the exit code of the worst."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import status
from pyspark.errors import AnalysisException
from reconcile_jobs.monitoring import facts
from reconcile_jobs.monitoring.facts import Limits
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError
from reconcile_jobs.staging import TableName

NOW = datetime(2026, 11, 26, 12)
ORDERS, STAGING = "demo.orders", "lake.changes"


def row(kind: str, relation: str = ORDERS, **said: Any) -> Any:
    nothing = dict.fromkeys(("object", "records", "first_batch", "last_batch", "batches", "at", "detail"))
    state = STATES[kind](said)
    return SimpleNamespace(**{**nothing, "kind": kind, "relation": relation, "now": NOW, "state": state, **said})


# What the view says of each kind.
STATES: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "appended": lambda said: None,
    "quarantined": lambda said: "wrong",
    "set_back": lambda said: "wrong",
    "unrouted": lambda said: "look" if said.get("object") else "wrong",
    "drift": lambda said: "look",
    "pending": lambda said: "look",
    "never_built": lambda said: "look",
    "not_applied": lambda said: "wait",
    "parity": lambda said: {"confirmed": "wrong", "unprovable": "look", "in_flight": "wait"}.get(
        said["detail"].split(",")[0]
    ),
}


def appended(hours: float = 1) -> Any:
    return row("appended", STAGING, first_batch=1, last_batch=9, at=NOW - timedelta(hours=hours))


FINDINGS: dict[str, tuple[Any, int, str]] = {
    "quarantine": (
        row("quarantined", records=3, first_batch=2, last_batch=4, detail="n: 'x' is not exactly a int"), 1,
        "demo.orders: 3 records in quarantine, batches 2 to 4: n: 'x' is not exactly a int",
    ),
    "torn records": (
        row("unrouted", STAGING, records=1, first_batch=2, last_batch=2), 1,
        "lake.changes: 1 record without an object, batch 2: see reconcile_unrouted",
    ),
    "staging was set back": (
        row("set_back", last_batch=9, detail="batch 9 was applied, and lake.changes has no record of it any more"), 1,
        "demo.orders: batch 9 was applied, and lake.changes has no record of it any more: the staging table was "
        "restored or made anew; restore its newest version, or rebuild the model with `dbt run --full-refresh` when "
        "the staging table has all records again",
    ),
    "a new table": (
        row("unrouted", STAGING, object="shop_new", records=1500, first_batch=2, last_batch=2,
            detail="shop.new, mysql"), 3,
        "lake.changes: no model reads shop_new, 1,500 records, batch 2: shop.new, mysql",
    ),
    "drift": (
        row("drift", records=5, first_batch=3, last_batch=8, detail="column size is new"), 3,
        "demo.orders: column size is new since batch 3, 5 records",
    ),
    "pending": (
        row("pending", records=1), 3, "demo.orders: 1 row wait for the rest of their columns, or for their row",
    ),
    "behind": (
        row("not_applied", records=2, first_batch=8, last_batch=9, at=datetime(2026, 11, 26, 11)), 4,
        "demo.orders: 2 records not applied yet, batches 8 to 9, the first of 2026-11-26 11:00:00",
    ),
    "never built": (
        row("never_built", "demo.new", detail="new_one"), 3,
        "demo.new: the model new_one is declared and was never built: run `dbt run --select new_one`, and see what it "
        "says if it fails; or disable the model",
    ),
    **{
        f"no run for {said}": (
            row("not_applied", records=1, first_batch=8, last_batch=8, at=NOW - timedelta(hours=hours)), 3,
            f"demo.orders: 1 record not applied yet, batch 8, the first of {NOW - timedelta(hours=hours)}: no run has "
            f"applied them for {said}: look whether `dbt run` still runs, and what it says of this model; the next run "
            "that succeeds applies them",
        )
        for hours, said in ((25, "25 hours"), (47.9, "47 hours"), (48, "2 days"), (95.9, "3 days"))
    },
    "no append": (
        appended(hours=25), 4, "lake.changes: nothing appended since 2026-11-25 11:00:00, batch 9",
    ),
    "nothing appended": (row("appended", STAGING), 4, "lake.changes: nothing has been appended yet"),
    **{
        verdict: (
            row("parity", records=2, at=NOW, detail=f"{verdict}, against lake.orders_source"), code,
            f"demo.orders: 2 rows {verdict}, against lake.orders_source, at 2026-11-26 12:00:00",
        )
        for verdict, code in (("confirmed", 1), ("unprovable", 3), ("in_flight", 4))
    },
}  # fmt: skip
RIGHT = [appended(), appended(hours=24), row("parity", records=0, at=NOW, detail="match, against lake.orders_source")]


@pytest.mark.parametrize("name", FINDINGS)
def test_each_thing_that_is_not_right_is_a_line_with_an_exit_code(name: str):
    found, code, sentence = FINDINGS[name]
    assert facts.findings([*RIGHT, found], Limits()) == [(code, sentence)]


def test_an_object_that_is_ignored_is_no_finding(monkeypatch: pytest.MonkeyPatch):
    rows = [FINDINGS["a new table"][0], FINDINGS["torn records"][0]]
    assert [code for code, _ in facts.findings(rows, Limits(ignored=("shop_new",)))] == [1]
    ignored = ("--ignore-object", "shop_new", "--ignore-object", "shop_old")
    old = row("unrouted", STAGING, object="shop_old", records=1, first_batch=2, last_batch=2)
    assert run([rows[0], old], monkeypatch, ignored)[1] is None
    drift = row("drift", object="shop_new", records=5, first_batch=3, last_batch=8, detail="column size is new")
    assert isinstance(run([drift], monkeypatch, ignored)[1], Undecided), "a model reads it"


class Outputs:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.results: list[dict[str, Any]] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def result(self, values: dict[str, Any]) -> None:
        self.results.append(values)


def run(
    rows: list[Any], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...] = ()
) -> tuple[Outputs, JobError | None]:
    outputs = Outputs()
    monkeypatch.setattr(session, "start", lambda name: None)
    monkeypatch.setattr(facts, "read", lambda spark, view: rows)
    try:
        status.main(["--status", "demo.reconcile_status", *words], outputs)  # type: ignore[arg-type]
    except JobError as failure:
        return outputs, failure
    return outputs, None


def test_the_worst_comes_first_and_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch):
    names = ["behind", "drift", "quarantine", "no append", "confirmed"]
    for given in (names, names[::-1]):
        outputs, failure = run([FINDINGS[name][0] for name in given], monkeypatch)
        assert isinstance(failure, DataError) and failure.exit_code == 1
        assert str(failure) == "5 findings, the worst first; see --help."
        assert len(outputs.said) == 5
        assert set(outputs.said[:2]) == {FINDINGS["quarantine"][2], FINDINGS["confirmed"][2]}
        assert outputs.said[2] == FINDINGS["drift"][2]
        assert outputs.results == [{"staging_tables": 1, "wrong": 2, "look": 1, "wait": 2, "status": "wrong"}]
    for name, kind in (("drift", Undecided), ("behind", Fault)):
        _, failure = run([FINDINGS[name][0], FINDINGS["no append"][0]], monkeypatch)
        assert isinstance(failure, kind)
        _, failure = run([FINDINGS[name][0]], monkeypatch)
        assert isinstance(failure, kind) and str(failure) == "1 finding, the worst first; see --help."


def test_if_all_is_right_nothing_is_said_and_the_exit_code_is_zero(monkeypatch: pytest.MonkeyPatch):
    outputs, failure = run(RIGHT, monkeypatch)
    assert failure is None and outputs.said == []
    assert outputs.results == [{"staging_tables": 2, "wrong": 0, "look": 0, "wait": 0, "status": "right"}]


def test_how_long_ago_the_last_append_may_be_can_be_said(monkeypatch: pytest.MonkeyPatch):
    assert isinstance(run(RIGHT, monkeypatch, ("--appended-within", "30m"))[1], Fault)
    assert run([appended(hours=25)], monkeypatch, ("--appended-within", "26h"))[1] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--status"),
        (["--status", "no view"], "--status no view is not the name of a table"),
        (["--status", "a.b", "--appended-within", "soon"], "soon is not an interval; write 30s, 5m or 1h"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(words: list[str], sentence: str):
    with pytest.raises(UsageError) as refused:
        status.main(words, Outputs())  # type: ignore[arg-type]
    assert sentence in str(refused.value)


def test_how_long_a_record_may_wait_for_a_run_can_be_said(monkeypatch: pytest.MonkeyPatch):
    """A day is what is right; what waits for longer is no matter of time any more, and somebody has to look."""

    def waiting(hours: float) -> Any:
        return row("not_applied", records=1, first_batch=8, last_batch=8, at=NOW - timedelta(hours=hours))

    for hours, words, kind in (
        (24, (), Fault), (24.1, (), Undecided), (24.1, ("--applied-within", "25h"), Fault),
        (0.6, ("--applied-within", "30m"), Undecided), (0.6, ("--appended-within", "2h"), Fault),
    ):  # fmt: skip
        assert type(run([appended(), waiting(hours)], monkeypatch, words)[1]) is kind
    unknown = row("not_applied", records=1, first_batch=8, last_batch=8)
    assert not facts.is_late(unknown, Limits()) and not facts.is_late(appended(hours=99), Limits())
    outputs, _ = run([waiting(0.6), waiting(1)], monkeypatch, ("--applied-within", "59m"))
    assert outputs.results == [{"staging_tables": 0, "wrong": 0, "look": 1, "wait": 1, "status": "look"}]


def test_a_view_that_is_missing_or_of_an_earlier_version_is_named() -> None:
    columns: list[str] | None = None
    spark: Any = SimpleNamespace(
        catalog=SimpleNamespace(tableExists=lambda name: columns is not None, cacheTable=str, uncacheTable=str),
        table=lambda name: SimpleNamespace(columns=columns),
    )
    view = TableName.parse("demo.reconcile_status")
    with pytest.raises(UsageError, match=r"^demo\.reconcile_status does not exist; `dbt run` makes it"):
        facts.read(spark, view)
    columns = ["kind", "relation", "at", "detail"]
    with pytest.raises(UsageError, match=r"^demo\.reconcile_status was created by an earlier version"):
        facts.read(spark, view)


class Views:
    """A session with views: it answers each with its rows, and notes of which it keeps what it has read."""

    def __init__(self, views: dict[str, list[Any]], columns: dict[str, list[str]]) -> None:
        self.views, self.columns, self.told = views, columns, list[str]()
        self.catalog = SimpleNamespace(
            tableExists=lambda name: name in views,
            cacheTable=lambda name: self.told.append(f"keep {name}"),
            uncacheTable=lambda name: self.told.append(f"drop {name}"),
        )

    def table(self, name: str) -> Any:
        return SimpleNamespace(columns=self.columns[name])

    def sql(self, text: str) -> Any:
        name = text.removeprefix("SELECT *, current_timestamp() AS now FROM ")
        self.told.append(f"read {name}")
        return SimpleNamespace(collect=lambda: self.views[name])


def test_both_views_are_read_while_what_they_have_in_common_is_kept() -> None:
    status, models, ledger = (f"`ice`.`demo`.`reconcile_{name}`" for name in ("status", "models", "ledger"))
    view = TableName.parse("ice.demo.reconcile_status")
    columns = {status: ["state"], models: ["is_built"]}
    model = SimpleNamespace(now=NOW + timedelta(hours=1))
    spark: Any = Views({status: [appended()], models: [model], ledger: []}, columns)
    found = facts.read_all(spark, view)
    assert (found.status[0].relation, found.models, found.now) == (STAGING, [model], NOW)
    assert spark.told == [
        f"keep {ledger}", f"keep {status}", f"read {status}", f"read {models}", f"drop {status}", f"drop {ledger}",
    ]  # fmt: skip
    spark = Views({status: [], models: [model]}, columns)
    assert facts.read_all(spark, view).now == NOW + timedelta(hours=1), "without a ledger too"
    assert spark.told == [f"keep {status}", f"read {status}", f"read {models}", f"drop {status}"]
    spark = Views({status: [], models: [], ledger: []}, columns | {models: ["state"]})
    with pytest.raises(UsageError, match=r"^ice\.demo\.reconcile_models was created by an earlier version"):
        facts.read_all(spark, view)
    assert spark.told[-2:] == [f"drop {status}", f"drop {ledger}"], "kept by nobody any more"
    spark = Views({status: [appended()], ledger: []}, columns)
    with pytest.raises(UsageError, match=r"^ice\.demo\.reconcile_models does not exist; `dbt run` makes it"):
        facts.read_all(spark, view)
    assert facts.read(spark, view) == spark.views[status]
    assert spark.told[-3:] == [f"keep {ledger}", f"read {status}", f"drop {ledger}"]


def test_a_table_that_the_view_reads_and_that_is_gone_is_named() -> None:
    """A ledger that was dropped, for example: Spark makes a view anew only when somebody asks for it."""
    missing = AnalysisException(
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `spark_catalog`.`demo`.`reconcile_ledger` cannot be found. Verify "
        "the spelling.\nSQLSTATE: 42P01"
    )

    def table(name: str) -> Any:
        raise missing

    catalog = SimpleNamespace(tableExists=lambda name: True, cacheTable=str, uncacheTable=str)
    spark: Any = SimpleNamespace(catalog=catalog, table=table)
    with pytest.raises(UsageError) as refused:
        facts.read(spark, TableName.parse("demo.reconcile_status"))
    assert str(refused.value) == (
        "demo.reconcile_status reads `spark_catalog`.`demo`.`reconcile_ledger`, which does not exist: restore it, or "
        "run `dbt run`, which makes the views, and a ledger that is missing, anew."
    )
    missing = AnalysisException("[OTHER] Something else")
    with pytest.raises(AnalysisException):
        facts.read(spark, TableName.parse("demo.reconcile_status"))
