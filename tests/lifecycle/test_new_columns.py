"""A full refresh gives a model's tables the columns that are declared now, of whatever types and names."""

from __future__ import annotations

from datetime import datetime

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
