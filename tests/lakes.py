"""Where the tables of a test are: in memory, or in the lakehouse of a Spark session, by dbt. Both are used alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from datastream import Staged, stage
from pyspark.sql import DataFrame, SparkSession


class LakeProject(Protocol):
    """A project with models, and what runs them."""

    schema: str

    def source(self, schema: str, *tables: str) -> None: ...
    def model(self, name: str, sql: str, columns: Mapping[str, Any], **properties: Any) -> None: ...
    def run(self, *names: str, full_refresh: bool = False) -> Any: ...
    def failing_tests(self, model: str) -> set[str]: ...


class Lake(Protocol):
    """Tables and views, by `schema.name`."""

    def table(self, name: str) -> DataFrame: ...
    def has(self, name: str) -> bool: ...
    def stage(self, name: str, rows: Iterable[Staged]) -> None: ...
    def view(self, name: str, sql: str) -> None: ...
    def delete(self, name: str, where: str) -> None: ...
    def project(self, schema: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> LakeProject: ...


class Lakehouse:
    """Tables of a format in the catalog of a Spark session; its projects lie under `root`."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root

    def table(self, name: str) -> DataFrame:
        return self.spark.table(name)

    def has(self, name: str) -> bool:
        return bool(self.spark.catalog.tableExists(name))

    def stage(self, name: str, rows: Iterable[Staged]) -> None:
        self._schema_of(name)
        stage(self.spark, name, rows)

    def view(self, name: str, sql: str) -> None:
        self._schema_of(name)
        self.spark.sql(f"create or replace view {name} as {sql}")

    def delete(self, name: str, where: str) -> None:
        self.spark.sql(f"delete from {name} where {where}")

    def project(self, schema: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> LakeProject:
        from projects import Project

        assert not replaced, "bugs are planted where tables are in memory"
        return Project(self.root / schema, schema, threads=2)

    def _schema_of(self, name: str) -> None:
        self.spark.sql(f"create schema if not exists {name.split('.')[0]}")


def stored(lake: Lake, table: str) -> DataFrame:
    """Return the rows of a base table, or of row deletes, with the columns' own names (see `stored_column`)."""
    return lake.table(table).withColumnsRenamed({"_change_deleted": "_deleted", "_change_row_id": "_row_id"})
