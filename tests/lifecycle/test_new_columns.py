"""A full refresh gives a model's tables the columns that are declared now, of whatever types and names.

So does the next run, if they are only added and marked so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
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


CHANGED = {
    "id": "bigint", "title": {"data_type": "string", "config": {"meta": {"was": "note"}}}, "n": "bigint",
    "d": "decimal(14,4)", "text": "varchar(9)",
}  # fmt: skip
NUMBERS = {"id": "bigint", "note": "string", "n": "int", "d": "decimal(9,2)", "text": "varchar(3)", "gone": "int"}


def test_a_base_table_goes_on_when_columns_go_become_wider_and_are_renamed(spark: SparkSession) -> None:
    """A row from before, one that comes with the new declaration, a late one of the former columns, and an update."""
    schema = "changed_columns"
    warehouse = SparkWarehouse(spark)
    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(schema, "changes")

    def deliver(batch: int, *rows: tuple[int, dict[str, Any]]) -> None:
        staged = [event("mysql", row, metadata={"log_position": position}) for position, row in rows]
        warehouse.stage(f"{schema}.changes", [Staged(record, "things", batch) for record in staged])

    def run(columns: Mapping[str, Any], full_refresh: bool = False) -> set[str]:
        for name in MODELS:
            meta = ", meta={'fresh': true}" if name == "current_state" else ""
            sql = f"{{{{ config(materialized='{name}', unique_key='id'{meta}) }}}}\n"
            sql += "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}"
            project.model(name, sql, columns)
        return set(project.run(*MODELS, full_refresh=full_refresh).values())

    def shown(name: str, columns: Mapping[str, Any]) -> list[Any]:
        return sorted(tuple(row) for row in warehouse.table(f"{schema}.{name}").select(*columns).collect())

    def old(id: int, n: int, gone: int) -> dict[str, Any]:
        return {"id": id, "note": f"x{id}", "n": n, "d": "1.10", "text": "abc", "gone": gone}

    wide = {"title": "y", "n": 5_000_000_000, "d": "1.1234", "text": "abcdefghi", "gone": "no number"}
    deliver(1, (1, old(1, 1, 1)), (2, old(2, 2, 1)), (3, old(2, 2, 2)))
    run(NUMBERS)
    assert len(shown("history", NUMBERS)) == 3
    for name in MODELS:  # as `dbt build` does; what this caches reads the columns of before
        assert warehouse.query(project.test("ledger_balances", name)) == []
    deliver(2, (9, {"id": 3, **wide}), (4, old(4, 4, 1)), (1, old(1, 1, 1)))
    (said,) = run(CHANGED)
    assert said.startswith("APPLY batches 2-2: 2 of 3 applied; columns that are not declared: gone")
    deliver(3, (10, {"id": 1, **wide}))
    expected = [
        (id, f"x{id}", id, Decimal("1.1000"), "abc") for id in (1, 2, 4)
    ] + [(id, "y", 5_000_000_000, Decimal("1.1234"), "abcdefghi") for id in (1, 3)]  # fmt: skip
    now = sorted(row for row in expected if row[:2] != (1, "x1"))
    assert shown("current_state", CHANGED) == now  # it is fresh
    (said,) = run(CHANGED)
    assert said.startswith("APPLY batches 3-3: 1 of 1 applied")
    before = {name: shown(name, CHANGED) for name in MODELS}
    assert before == {"current_state": now, "history": sorted(expected)}
    assert project.run(*MODELS) == dict.fromkeys(MODELS, "nothing new")
    assert "gone" in warehouse.table(f"{schema}.current_state__base").columns or file_format() == "iceberg"
    run(CHANGED, full_refresh=True)
    assert before == {name: shown(name, CHANGED) for name in MODELS}
    for name in MODELS:
        assert {"title", "note", "gone"} & set(warehouse.table(f"{schema}.{name}__base").columns) == {"title"}
        assert warehouse.query(project.test("ledger_balances", name)) == []
