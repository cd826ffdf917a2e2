"""The views that every project gets are made again only when what they read changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from datastream import Staged, event, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession

VIEWS = ["reconcile_lag", "reconcile_unrouted"]


class Shop:
    """Two objects are staged, and one has a model."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.schema = spark, "monitored"
        self.project = Project(root, self.schema)
        self.project.source("monitored_staging", "changes")
        self.model("shop.one")
        spark.sql("create schema monitored_staging")
        spark.sql(f"create schema {self.schema}")
        staged = [Staged(event("postgresql", {"id": 1}), f"shop.{name}", 1) for name in ("one", "two")]
        stage(spark, "monitored_staging.changes", staged)

    def model(self, name: str) -> None:
        self.project.model(
            name.replace(".", "_"),
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='{name}') }}}}",
            {"id": "bigint"},
        )

    def run(self) -> dict[str, str]:
        """Run the views, and return what dbt says of each."""
        results = self.project.dbt("run", "--select", *VIEWS, succeed=False).result.results
        return {result.node.name: result.message for result in results if result.node.name in VIEWS}

    def unrouted(self) -> list[str]:
        return [row.object for row in self.spark.table(f"{self.schema}.reconcile_unrouted").collect()]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(spark, tmp_path_factory.mktemp("monitored") / "project")


def test_what_somebody_else_has_made_is_not_replaced(shop: Shop) -> None:
    shop.spark.sql(f"create table {shop.schema}.reconcile_lag using {file_format()} as select 1 as one")
    assert "reconcile_lag exists and is a table of somebody else's" in shop.run()["reconcile_lag"]
    assert shop.spark.table(f"{shop.schema}.reconcile_lag").collect() == [(1,)]
    shop.spark.sql(f"drop table {shop.schema}.reconcile_lag")


def test_a_view_of_dbts_own_is_replaced(shop: Shop) -> None:
    for view in VIEWS:
        shop.spark.sql(f"create or replace view {shop.schema}.{view} as select 'of before' as object")
    assert shop.run() == dict.fromkeys(VIEWS, "MADE ANEW")
    assert shop.unrouted() == ["shop.two"]


def test_it_is_left_alone_until_what_it_reads_changes(shop: Shop) -> None:
    shop.run()
    assert shop.run() == dict.fromkeys(VIEWS, "nothing new")
    shop.model("shop.two")
    assert shop.run() == {"reconcile_lag": "nothing new", "reconcile_unrouted": "MADE ANEW"}
    assert shop.unrouted() == []


def test_a_view_that_is_missing_is_made(shop: Shop) -> None:
    shop.spark.sql(f"drop view if exists {shop.schema}.reconcile_lag")
    assert shop.run()["reconcile_lag"] == "MADE ANEW"
    assert [row.object for row in shop.spark.table(f"{shop.schema}.reconcile_lag").collect()] == [
        "shop.one",
        "shop.two",
    ]
