"""A model reads the files of its own table: of all tables of a staging table, and of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from plain_dbt import PlainProject
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import DataFrame, SparkSession

TABLES, BATCHES = 12, 2


@pytest.fixture(scope="module")
def project(spark: SparkSession, file_format: str) -> Iterator[PlainProject]:
    warehouse = SparkWarehouse(spark)
    for batch in range(1, BATCHES + 1):
        warehouse.stage(
            "pruned_lake.changes",
            [
                Staged(event("mysql", {"id": 1}, metadata={"database": "shop", "table": f"t{n}"}), f"shop_t{n}", batch)
                for n in range(TABLES)
            ],
        )
    project = PlainProject(warehouse, "pruned", file_format=file_format)
    project.source("pruned_lake", "changes")
    for name, argument in (("by_object", "object='shop_t3'"), ("by_table", "table='shop.t3'")):
        project.model(
            name,
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_mysql(source('lake', 'changes'), {argument}) }}}}",
            {"id": "bigint"},
        )
    yield project
    spark.sql("drop schema pruned_lake cascade")


def files_read(rows: DataFrame) -> int:
    """Return from how many files the rows were read, as the scans count them."""
    rows.collect()
    plan = rows._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    counts = []
    for place in range(leaves.size()):
        metrics: Any = leaves.apply(place).metrics()
        names = [name for name in ("numFiles", "resultDataFiles") if metrics.contains(name)]
        counts += [metrics.apply(name).value() for name in names]
    assert counts, plan.toString()
    return int(sum(counts))


@pytest.mark.parametrize("model", ["by_object", "by_table"])
def test_a_model_reads_the_files_of_its_table_alone(project: PlainProject, model: str) -> None:
    changes = project.compile(model)
    warehouse: Any = project.warehouse
    assert files_read(warehouse.sql("select * from pruned_lake.changes")) == TABLES * BATCHES, "the test can tell"
    assert files_read(warehouse.sql(changes)) == BATCHES
    assert files_read(warehouse.sql(f"select * from (\n{changes}\n) where _change_batch = 2")) == 1
