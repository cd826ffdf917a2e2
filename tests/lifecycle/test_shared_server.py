"""Several runs in sessions of one Spark server, as through Thrift: none takes what another one has cached."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from file_formats import file_format
from plain_dbt import PlainProject
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession


@pytest.mark.skipif(file_format() != "delta", reason="what is cached has nothing to do with the format")
def test_what_another_run_has_cached_is_not_taken(spark: SparkSession, tmp_path: Path) -> None:
    table, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    spark.sql(f"create table delta.`{table}` using delta as select 1 as id")
    project = PlainProject(SparkWarehouse(spark), "server")

    def cache(session: SparkSession) -> list[int]:
        """Cache the table's rows by what a run of its own renders, and return them."""
        project.context["invocation_id"] = str(uuid.uuid4())
        session.sql(project.macros.cached("reconcile_rows", f"select id from delta.`{table}`"))
        return sorted(row.id for row in session.table("reconcile_rows").collect())

    other = spark.newSession()
    assert cache(other) == [1]
    # Another process writes: to a copy, whose new files then come to the table. Spark does not notice.
    shutil.copytree(table, elsewhere)
    spark.sql(f"insert into delta.`{elsewhere}` values (2)")
    shutil.copytree(elsewhere, table, dirs_exist_ok=True)
    try:
        assert cache(spark) == [1, 2]
    finally:
        spark.sql("drop view reconcile_rows")
        other.sql("drop view reconcile_rows")
