"""A run that another run of the model has overtaken stops with one sentence, and writes nothing of what it reckoned.

The package's own statements on real tables, which alone refuse what came in between; no dbt.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from datastream import Staged, event
from file_formats import file_format
from plain_dbt import PlainProject, Rows
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession
from tables import restore, versions

SENTENCE = (
    "another run of this model wrote at the same time, or the table was restored, so this run stopped; "
    "the next `dbt run` applies the batches that are missing"
)
INTO_LEDGER = r"(insert|merge) into `\w+`\.`reconcile_ledger`"
MODELS = {"current_state": "things", "history": "past"}


class Watched(SparkWarehouse):
    """Lets something happen before a statement, once."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.met: str | None = None
        self._statement, self._then = "", (lambda: None)

    def when_it_comes_to(self, statement: str, then: Callable[[], None]) -> None:
        self.met, self._statement, self._then = None, statement, then

    def query(self, sql: str) -> Rows:
        if self._statement and self.met is None and re.match(self._statement, sql.strip()):
            self.met = sql.strip()
            self._then()
        return super().query(sql)


class Overtaken:
    """A project of a model and its history; `schema` for both."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.schema, self.table = spark, "overtaken", "overtaken_staging.changes"
        self.warehouse = Watched(spark)
        self.project = PlainProject(self.warehouse, self.schema, file_format=file_format())
        self.project.source("overtaken_staging", "changes")
        for materialized, name in MODELS.items():
            call = "reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.things')"
            self.project.model(
                name,
                f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n{{{{ {call} }}}}",
                {"id": "bigint", "name": "string"},
            )
        self.batch = 0

    def run(self, name: str) -> None:
        self.project.context["invocation_id"] = str(uuid.uuid4())
        self.project.run(name)

    def append(self, *rows: tuple[int, str, int]) -> None:
        """Stage a batch of inserts and updates: key, name, place in the log."""
        self.batch += 1
        events = [event("postgresql", {"id": k, "name": n}, "UPDATE", metadata={"lsn": f"0/{p:X}"}) for k, n, p in rows]
        self.warehouse.stage(self.table, [Staged(text, "shop.things", self.batch) for text in events])

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
def things(spark: SparkSession) -> Overtaken:
    return Overtaken(spark)


@pytest.mark.parametrize(
    "name", ["things", pytest.param("past", marks=pytest.mark.soak)], ids=["current_state", "history"]
)
def test_a_run_that_was_overtaken_before_its_merge_or_its_ledger_row_stops_and_the_next_one_mends(
    things: Overtaken, name: str
) -> None:
    place = 16 * things.batch + 16
    things.append((1, "one", place))
    things.run(name)
    before = things.versions(name)

    def overtaken_at(statement: str, tables: list[str]) -> None:
        """Run what another run has done as well, which comes in between at a statement."""
        nonlocal before
        then = things.versions(name)
        things.restore(before)
        things.warehouse.when_it_comes_to(statement, lambda: things.restore({table: then[table] for table in tables}))
        with pytest.raises(Exception, match=re.escape(f"{things.schema}.{name}: {SENTENCE}")) as raised:
            things.run(name)
        if file_format() == "delta":  # Iceberg's MERGE asks on its way to a broadcast, and Spark adds its own trace
            assert "\tat " not in str(raised.value)
        assert things.warehouse.met

    # Another run has merged.
    things.append((1, "two", place + 1), (2, "new", place + 2))
    things.run(name)
    ranges = things.ranges(name)
    overtaken_at(r"merge into `\w+`\.`\w+__base`", [f"{name}__base", "reconcile_ledger"])
    assert things.ranges(name) == ranges
    before = things.versions(name)

    # What comes leaves no trace in the table: only the ledger tells.
    things.append((1, "two", place + 1))
    things.run(name)
    ranges = things.ranges(name)
    overtaken_at(INTO_LEDGER, ["reconcile_ledger"])
    assert things.ranges(name) == ranges

    things.append((3, "last", place + 3))
    things.run(name)
    assert things.warehouse.sql(things.project.test("ledger_balances", name)).collect() == []
    rows = things.spark.table(f"{things.schema}.{name}").select("id", "name")
    if name == "past":
        rows = rows.where("is_current")
    assert sorted(map(tuple, rows.collect()))[-3:] == [(1, "two"), (2, "new"), (3, "last")]


def test_of_two_accounts_of_one_range_at_one_moment_the_ledger_takes_one(things: Overtaken) -> None:
    things.append((1, "one", 16 * things.batch + 16))
    things.run("things")
    things.append((1, "two", 16 * things.batch + 16))
    ledger = f"{things.schema}.reconcile_ledger"
    before = versions(things.spark, ledger)[-1]
    things.warehouse.when_it_comes_to(INTO_LEDGER, lambda: None)
    things.run("things")
    statement = things.warehouse.met
    assert statement
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
    for _ in range(4):
        restore(things.spark, ledger, before)
        start = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            lost += [*pool.map(insert, [start, start])].count(False)
        assert things.ranges("things") == ranges
    assert lost == 4
