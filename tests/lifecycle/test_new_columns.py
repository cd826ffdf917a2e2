"""A full refresh gives a model's tables the columns that are declared now, of whatever types and names.

So does the next run, if they are only added and marked so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from datastream import Staged, event
from file_formats import file_format
from plain_dbt import PlainProject
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession

BEFORE = {"id": "bigint", "note": "string"}
# What Delta takes into a table that is replaced only if it is told so.
NOW = {"id": "bigint", "a b": "string", "at": "timestamp_ntz", "list": "array<timestamp_ntz>"}


@pytest.mark.parametrize(
    ("source", "materialized"),
    [
        pytest.param("mysql", "current_state", marks=pytest.mark.soak),
        ("oracle", "current_state"),
        pytest.param("mysql", "history", marks=pytest.mark.soak),
    ],
)
def test_a_full_refresh_replaces_the_columns(spark: SparkSession, source: str, materialized: str) -> None:
    """A row of Oracle that another insert displaced is kept with all its columns, as fields of one."""
    schema = f"new_columns_{source}_{materialized}"
    warehouse = SparkWarehouse(spark)
    row = {"id": 1, "note": "x", "a b": "y", "at": "2026-11-25 08:00:00", "list": ["2026-11-25 08:00:00", None]}
    inserted = [{"scn": 9, "row_id": "a", "tx_id": "s"}, {"scn": 10, "row_id": "b", "tx_id": "t"}]
    records = [event(source, row, metadata=metadata if source == "oracle" else {}) for metadata in inserted]
    warehouse.stage(f"{schema}.changes", [Staged(record, "things", 1) for record in records])
    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(schema, "changes")
    config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
    call = f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='things') }}}}"
    for columns in (BEFORE, NOW):
        project.model("things", f"{config}\n{call}", columns)
        project.run("things", full_refresh=True)
    assert warehouse.table(f"{schema}.things__quarantine").collect() == []
    (stored,) = warehouse.table(f"{schema}.things").select(*(f"`{name}`" for name in NOW)).collect()
    moment = datetime(2026, 11, 25, 8)
    assert tuple(stored) == (1, "y", moment, [moment, None])
    if source == "oracle":
        (kept,) = warehouse.table(f"{schema}.things__base").collect()
        (displaced,) = kept._change_displaced
        assert displaced.row.asDict() == {"a b": "y", "at": moment, "list": [moment, None]}


ADDED = {name: {"data_type": said, "config": {"meta": {"added": True}}} for name, said in NOW.items() if name != "id"}
MODELS = ("current_state", "history")


def test_the_next_run_fills_columns_that_are_marked_as_added(spark: SparkSession) -> None:
    """A row from before, a row that comes with the declaration, and one that comes once the mark is gone."""
    schema = "added_columns"
    warehouse = SparkWarehouse(spark)
    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(schema, "changes")

    def deliver(batch: int) -> None:
        row = {"id": batch, "note": "x", "a b": f"y{batch}", "at": "2026-11-25 08:00:00", "list": [None]}
        record = event("mysql", row, metadata={"log_position": batch})
        warehouse.stage(f"{schema}.changes", [Staged(record, "things", batch)])

    def run(columns: Mapping[str, Any], full_refresh: bool = False) -> set[str]:
        for name in MODELS:
            sql = f"{{{{ config(materialized='{name}', unique_key='id') }}}}\n"
            sql += "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}"
            project.model(name, sql, columns)
        return set(project.run(*MODELS, full_refresh=full_refresh).values())

    def rows(name: str) -> list[Any]:
        columns = [f"`{column}`" for column in {**BEFORE, **NOW}]
        return sorted(tuple(row) for row in warehouse.table(f"{schema}.{name}").select(*columns).collect())

    deliver(1)
    run(BEFORE)
    deliver(2)
    assert run({**BEFORE, **ADDED}) == {"REBUILD batches 1-2: 2 of 2 applied; columns added: a b, at, list"}
    moment = datetime(2026, 11, 25, 8)
    filled = [(number, "x", f"y{number}", moment, [None]) for number in (1, 2, 3)]
    for name in MODELS:
        assert rows(name) == filled[:2], name
    deliver(3)
    now = {**BEFORE, **NOW}
    assert run(now) == {"APPLY batches 3-3: 1 of 1 applied"}
    tables = [f"{schema}.{name}__base" for name in MODELS]
    before = [sorted(map(str, warehouse.table(table).collect())) for table in tables]
    run(now, full_refresh=True)
    assert before == [sorted(map(str, warehouse.table(table).collect())) for table in tables]
    for name in MODELS:
        assert rows(name) == filled, name
        assert warehouse.query(project.test("ledger_balances", name)) == []
