"""Ten thousand single corruptions of a base table, of every kind and type: each is found; without any, none is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from corruptions import (
    COLUMNS,
    DDL,
    DECLARED,
    SNAPSHOT,
    Corruptions,
    Row,
    by_checksums,
    found,
    record,
    true_rows,
)
from datastream import Staged, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import DELETED

ROWS, CORRUPTIONS = 12_000, 10_000
SCHEMA, LAKE = "parity_corruptions", "parity_corruptions_lake"


class Corrupted:
    """A model that equals its source, at a position and without one, until its base table is corrupted."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.rows = spark, true_rows(random.Random(20261122), ROWS)
        self.project = Project(root / "project", SCHEMA)
        self.project.source(LAKE, "changes", "source")
        arguments = {"compare_to": "source('lake', 'source')", "key": "id", "allowance": "1 second"}
        self.project.model(
            "corrupted",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.things') }}",
            DECLARED,
            data_tests=[
                {"reconcile.parity": {"name": "at_the_position", "arguments": arguments}},
                {"reconcile.parity": {"name": "as_they_are", "arguments": {**arguments, "as_of": "now"}}},
            ],
        )
        spark.sql(f"create schema if not exists {LAKE}")
        stage(spark, f"{LAKE}.changes", (Staged(record(row), "shop.things", 1) for row in self.rows.values()))
        self.project.dbt("run", "--select", "corrupted")
        snapshot = self.frame(list(self.rows.values())).writeTo(f"{LAKE}.source").using(file_format())
        for name, value in SNAPSHOT.items():
            snapshot = snapshot.tableProperty(name, value)
        snapshot.createOrReplace()

    def frame(self, rows: list[Row]) -> Any:
        return self.spark.createDataFrame([tuple(row.values()) for row in rows], DDL)

    def corrupt(self) -> dict[str, tuple[str, str | None]]:
        """Corrupt one row after the other; return what has to be found of each."""
        corruptions = Corruptions(self.rows, CORRUPTIONS)
        base = f"{SCHEMA}.corrupted__base"
        self.frame(corruptions.instead).createOrReplaceTempView("instead")
        gone = self.spark.createDataFrame([(id,) for id in corruptions.kinds], "id bigint")
        gone.createOrReplaceTempView("gone")
        columns = ", ".join(f"`{name}`" for name in COLUMNS)
        own = f"_change_sequence, _change_time, _change_batch, {DELETED[file_format()]}"
        of_any = "'0000/1', current_timestamp(), 1L, false"
        self.spark.sql(
            f"insert overwrite {base} ({columns}, {own}) select {columns}, {own} from {base} "
            f"left anti join gone using (id) union all select {columns}, {of_any} from instead"
        )
        for view in ("instead", "gone"):
            self.spark.catalog.dropTempView(view)
        return corruptions.expected

    def test(self) -> list[str]:
        """Run both tests; return how each ended."""
        outcome = self.project.dbt("test", "--select", "corrupted", succeed=False)
        results = {result.node.name: result.status for result in outcome.result}
        return [str(results[name]) for name in ("at_the_position", "as_they_are")]

    def found(self, test: str) -> list[tuple[str, tuple[str, str | None]]]:
        return found(self.spark.table(f"{SCHEMA}.reconcile_parity_differences").where(f"test = '{test}'").collect())


@pytest.mark.matrix
def test_ten_thousand_corruptions_are_found_and_named_and_without_any_none_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A few of each kind: `tests/fold/test_parity_corruptions.py`."""
    corrupted = Corrupted(spark, tmp_path)
    assert corrupted.test() == ["pass", "pass"]
    tables = [f"{LAKE}.source", f"{SCHEMA}.corrupted"]
    assert by_checksums(spark, *map(spark.table, tables))[0].is_equal
    runs = spark.table(f"{SCHEMA}.reconcile_parity").collect()
    assert [(run.compared, run.matched) for run in runs] == [(ROWS, ROWS)] * 2
    expected = corrupted.corrupt()
    assert len(expected) == CORRUPTIONS
    _, ids = by_checksums(spark, *map(spark.table, tables))
    assert ids == {*expected}
    assert corrupted.test() == ["fail", "fail"]
    for test in ("at_the_position", "as_they_are"):
        found = corrupted.found(test)
        missed = {id: what for id, what in expected.items() if id not in dict(found)}
        assert missed == {}, list(missed.items())[:5]
        wrong = {id: (what, expected.get(id)) for id, what in found if expected.get(id) != what}
        assert wrong == {}, list(wrong.items())[:5]
        assert len(found) == CORRUPTIONS
