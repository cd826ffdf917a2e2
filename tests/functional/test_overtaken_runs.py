"""A run that another run of the model has overtaken stops with one sentence, and writes nothing of what it reckoned."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event, stage
from dbt.adapters.spark import session
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import restore, versions

pytestmark = pytest.mark.soak

SENTENCE = (
    "another run of this model has come in between, and this one stopped; what it lacks the next `dbt run` brings"
)
INTO_LEDGER = r"(insert|merge) into `\w+`\.`reconcile_ledger`"
MODELS = {"current_state": "things", "history": "past"}


class Overtaken:
    """A project of a model and its history; `schema` for both."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.schema, self.table = spark, "overtaken", "overtaken_staging.changes"
        self.project = Project(root, self.schema)
        self.project.source("overtaken_staging", "changes")
        for materialized, name in MODELS.items():
            call = "reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.things')"
            self.project.model(
                name,
                f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n{{{{ {call} }}}}",
                {"id": "bigint", "name": "string"},
                data_tests=["reconcile.ledger_balances"],
            )
        spark.sql("create schema overtaken_staging")
        self.batch = 0

    def append(self, *rows: tuple[int, str, int]) -> None:
        """Stage a batch of inserts and updates: key, name, place in the log."""
        self.batch += 1
        events = [event("postgresql", {"id": k, "name": n}, "UPDATE", metadata={"lsn": f"0/{p:X}"}) for k, n, p in rows]
        stage(self.spark, self.table, [Staged(text, "shop.things", self.batch) for text in events])

    def versions(self, name: str) -> dict[str, int]:
        """Return the versions of the tables that a run of the model writes."""
        tables = (f"{name}__base", f"{name}__quarantine", "reconcile_ledger")
        return {table: versions(self.spark, f"{self.schema}.{table}")[-1] for table in tables}

    def restore(self, versions: dict[str, int]) -> None:
        for table, version in versions.items():
            restore(self.spark, f"{self.schema}.{table}", version)

    def ranges(self, name: str) -> list[tuple[Any, ...]]:
        rows = self.spark.table(f"{self.schema}.reconcile_ledger").where(f"relation = '{self.schema}.{name}'")
        return [tuple(row) for row in rows.select("kind", "first_batch", "last_batch").orderBy("recorded_at").collect()]


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Overtaken:
    return Overtaken(spark, tmp_path_factory.mktemp("overtaken") / "project")


def when_it_comes_to(monkeypatch: pytest.MonkeyPatch, statement: str, then: Callable[[], None]) -> list[str]:
    """Let something happen before dbt executes a statement; return what will have been met."""
    execute, met = session.Cursor.execute, list[str]()

    def executing(self: session.Cursor, sql: str, *parameters: Any) -> None:
        plain = re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL).strip()
        if re.match(statement, plain) and not met:
            met.append(plain)
            then()
        execute(self, sql, *parameters)

    monkeypatch.setattr(session.Cursor, "execute", executing)
    return met


@pytest.mark.parametrize("name", MODELS.values(), ids=list(MODELS))
@pytest.mark.matrix
def test_a_run_that_was_overtaken_before_its_merge_or_its_ledger_row_stops_and_the_next_one_mends(
    things: Overtaken, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = 16 * things.batch + 16
    things.append((1, "one", place))
    things.project.dbt("run", "--select", name)
    before = things.versions(name)

    def overtaken_at(statement: str, tables: list[str]) -> None:
        """Run what another run has done as well, which comes in between at a statement."""
        nonlocal before
        then = things.versions(name)
        things.restore(before)
        with monkeypatch.context() as patched:
            met = when_it_comes_to(patched, statement, lambda: things.restore({table: then[table] for table in tables}))
            outcome = things.project.dbt("run", "--select", name, succeed=False)
        assert met
        assert not outcome.success
        [message] = [result.message for result in outcome.result.results if result.status == "error"]
        assert f"{things.schema}.{name}: {SENTENCE}" in message
        if file_format() == "delta":  # Iceberg's MERGE asks on its way to a broadcast, and Spark adds its own trace
            assert "\tat " not in message

    # Another run has merged.
    things.append((1, "two", place + 1), (2, "new", place + 2))
    things.project.dbt("run", "--select", name)
    ranges = things.ranges(name)
    overtaken_at(r"merge into `\w+`\.`\w+__base`", [f"{name}__base", "reconcile_ledger"])
    assert things.ranges(name) == ranges
    before = things.versions(name)

    # What comes leaves no trace in the table: only the ledger tells.
    things.append((1, "two", place + 1))
    things.project.dbt("run", "--select", name)
    ranges = things.ranges(name)
    overtaken_at(INTO_LEDGER, ["reconcile_ledger"])
    assert things.ranges(name) == ranges

    things.append((3, "last", place + 3))
    things.project.dbt("build", "--select", name)
    rows = things.spark.table(f"{things.schema}.{name}").select("id", "name")
    if name == "past":
        rows = rows.where("is_current")
    assert sorted(map(tuple, rows.collect()))[-3:] == [(1, "two"), (2, "new"), (3, "last")]


@pytest.mark.matrix
def test_of_two_accounts_of_one_range_at_one_moment_the_ledger_takes_one(
    things: Overtaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    things.append((1, "one", 16 * things.batch + 16))
    things.project.dbt("run", "--select", "things")
    things.append((1, "two", 16 * things.batch + 16))
    ledger = f"{things.schema}.reconcile_ledger"
    before = versions(things.spark, ledger)[-1]
    with monkeypatch.context() as patched:
        met = when_it_comes_to(patched, INTO_LEDGER, lambda: None)
        things.project.dbt("run", "--select", "things")
    (statement,) = met
    ranges = things.ranges("things")

    def insert(start: threading.Barrier) -> bool:
        own = things.spark.newSession()
        start.wait()
        try:
            own.sql(statement)
        except Exception:
            return False
        return True

    lost = 0
    for _ in range(10):
        restore(things.spark, ledger, before)
        start = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            lost += [*pool.map(insert, [start, start])].count(False)
        assert things.ranges("things") == ranges
    assert lost == 10
