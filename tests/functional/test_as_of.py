"""Any earlier moment: what `as_of` builds equals what was there then, and nothing else is touched."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import commits, tables_in
from truth import CAPTURE, COLUMNS, KEYS, lines, object_of, rows_of, true_rows

pytestmark = pytest.mark.soak

BATCHES = 24
MODELS = ("orders", "orders_history")
Rows = dict[str, Counter[Any]]


class Timeline:
    """The PostgreSQL capture in many batches, and what dbt made of its orders at some of them, rows and history."""

    seen: dict[int, Rows]

    def __init__(self, spark: SparkSession, root: Path, name: str, runs_after: list[int]) -> None:
        self.spark, self.schema, self.lake = spark, f"timeline_{name}", f"timeline_{name}_lake"
        self.project = Project(root, self.schema, threads=2)
        self.project.source(self.lake, "changes")
        spark.sql(f"create schema if not exists {self.lake}")
        spark.sql(f"create table {self.lake}.hooks (said string) using {file_format()}")
        for model in [*COLUMNS, *MODELS]:
            table = model.removesuffix("_history")
            config = f"unique_key={KEYS[table]}, materialized='{'current_state' if model == table else 'history'}'"
            if model == "orders":  # what could reach beyond the schema
                config += f", location_root='{root}/external', post_hook='insert into {self.lake}.hooks select 1'"
            call = f"reconcile.datastream_postgresql(source('lake', 'changes'), object='{object_of('', table)}')"
            self.project.model(
                model,
                f"{{{{ config({config}) }}}}{{{{ {call} }}}}",
                COLUMNS[table],
            )
        self.seen = {}
        for batch, rows in enumerate(_batches(), start=1):
            stage(spark, f"{self.lake}.changes", [row._replace(batch=batch) for row in rows])
            if batch in (*runs_after, BATCHES):
                self.project.dbt("run", "--select", *MODELS)
                self.seen[batch] = self.rows(self.schema)

    def rows(self, schema: str) -> Rows:
        """Return the rows that people read and those of the base tables, by relation."""
        relations = [f"{model}{part}" for model in MODELS for part in ("", "__base")]
        return {relation: rows_of(self.spark, f"{schema}.{relation}") for relation in relations}

    def as_of(self, position: str, value: Any, *arguments: str, schema: str = "") -> str:
        """Build the models as they were then, and return the schema."""
        variables = {"as_of": {position: value}, **({"as_of_schema": schema} if schema else {})}
        self.project.dbt("run", "--vars", json.dumps(variables), *arguments)
        return schema or f"{self.schema}_as_of"

    def state(self) -> dict[str, Any]:
        """Return the version of everything that a run at an earlier moment must not touch."""
        tables = tables_in(self.spark, self.schema)
        views = {row.viewName for row in self.spark.sql(f"show views in {self.schema}").collect()}
        return {table: None if table in views else self._version(f"{self.schema}.{table}") for table in tables} | {
            "hooks": self._version(f"{self.lake}.hooks"),
            "staging": self._version(f"{self.lake}.changes"),
        }

    def _version(self, table: str) -> int:
        return commits(self.spark, table)


def _batches() -> list[list[Staged]]:
    rows = [Staged(line, object_of("", table), 0) for table in COLUMNS for line in lines("postgresql", table)]
    random.Random(5).shuffle(rows)
    return [rows[start::BATCHES] for start in range(BATCHES)]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(2, id="2-batches"),
        pytest.param(10, id="10-batches", marks=pytest.mark.matrix),
    ],
)
def timeline(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    runs_after = sorted(random.Random(request.param).sample(range(1, BATCHES), request.param))
    return Timeline(spark, tmp_path_factory.mktemp("timeline"), f"{request.param}", runs_after)


def test_as_of_a_batch_is_what_the_increments_had_then(timeline: Timeline) -> None:
    before = timeline.state()
    for batch, seen in timeline.seen.items():
        schema = timeline.as_of("batch", batch, "--select", *MODELS)
        there = timeline.rows(schema)
        assert {name: rows for name, rows in there.items() if rows != seen[name]} == {}
    assert timeline.state() == before
    assert len({json.dumps(sorted(map(repr, seen["orders"]))) for seen in timeline.seen.values()}) == len(timeline.seen)


def test_as_of_a_snapshot_of_postgresql_is_what_it_saw(timeline: Timeline) -> None:
    snapshot = json.loads((CAPTURE / "snapshot" / "at.json").read_text())["pg_current_snapshot"]
    schema = timeline.as_of("pg_snapshot", snapshot, "--select", *COLUMNS, schema=f"{timeline.schema}_snapshot")
    for table in COLUMNS:
        assert rows_of(timeline.spark, f"{schema}.{table}") == true_rows(table, "snapshot")


@pytest.mark.matrix
def test_as_of_a_commit_time_is_near_what_the_snapshot_of_that_time_saw(timeline: Timeline) -> None:
    """Within the resolution of clocks: what the capture's README counts."""
    at = json.loads((CAPTURE / "snapshot" / "at.json").read_text())["at"]
    schema = timeline.as_of("commit_time", at, "--select", *COLUMNS)
    wrong = set()
    for table in COLUMNS:
        there, true = rows_of(timeline.spark, f"{schema}.{table}"), true_rows(table, "snapshot")
        wrong |= {(table, row[: len(KEYS[table])]) for row in (there - true) + (true - there)}
    assert len(wrong) == 5


def test_as_of_a_time_of_appending_is_the_last_batch_then(timeline: Timeline) -> None:
    batch = list(timeline.seen)[1]
    times = timeline.spark.table(f"{timeline.lake}.changes").where(f"batch = {batch}")
    time = times.selectExpr("cast(max(appended_at) as string)").collect()[0][0]
    schema = timeline.as_of("appended_at", f"{time}+00", "--select", "orders")
    assert rows_of(timeline.spark, f"{schema}.orders") == timeline.seen[batch]["orders"]


def test_as_of_a_sequence_is_the_fold_of_what_lies_before(timeline: Timeline) -> None:
    changes = timeline.spark.table(f"{timeline.schema}.orders__changes").orderBy("_change_sequence").collect()
    sequence = changes[len(changes) // 2]._change_sequence
    sections = "/".join(sequence.split("/")[:5])
    schema = timeline.as_of("sequence", sections, "--select", "orders")
    newest = {row.id: row for row in changes if row._change_sequence[: len(sections)] <= sections}
    expected = {key for key, row in newest.items() if row._change_type != "delete"}
    assert {row[0] for row in rows_of(timeline.spark, f"{schema}.orders")} == expected
    assert 0 < len(expected) < true_rows("orders").total()


@pytest.mark.matrix
def test_a_transaction_id_is_told_by_its_32_bits(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path, "transactions")
    wrap = 2**32
    snapshots = {f"{wrap + 100}:{wrap + 110}:{wrap + 105}": "wrapped", "100:110:105,107": "first"}
    for snapshot, name in snapshots.items():
        (tmp_path / "models" / f"{name}.sql").write_text(
            f"select _change_transaction as id, {{{{ reconcile.is_seen('{snapshot}') }}}} as seen from "
            "values ('99'), ('100'), ('105'), ('107'), ('109'), ('110'), ('4294967295'), "
            f"('{wrap + 104}'), ('{wrap + 110}'), (null) as told (_change_transaction)"
        )
    project.dbt("run", "--select", "wrapped", "first")
    seen = {row.id: row.seen for row in spark.table("transactions.wrapped").collect()}
    assert seen == {
        "99": True, "100": True, "105": False, "107": True, "109": True, "110": False,
        "4294967295": True, str(wrap + 104): True, str(wrap + 110): False, None: None,
    }  # fmt: skip
    seen = {row.id: row.seen for row in spark.table("transactions.first").collect()}
    assert seen == {
        "99": True, "100": True, "105": False, "107": False, "109": True, "110": False,
        "4294967295": False, str(wrap + 104): False, str(wrap + 110): False, None: None,
    }  # fmt: skip
