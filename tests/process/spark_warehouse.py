"""A warehouse that is a Spark session: its statements and tables, without dbt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datastream import Staged, stage
from plain_dbt import Column, Rows
from pyspark.sql import DataFrame, SparkSession


class SparkWarehouse:
    """The tables of a session's format, by `schema.name`."""

    def __init__(self, spark: SparkSession) -> None:
        # A session of its own, in which casts that fail are NULL: as dbt-spark sets it.
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.ansi.enabled", "false")

    def query(self, sql: str) -> Rows:
        result = self.spark.sql(sql)
        return Rows(result.columns, result.collect())

    def columns(self, sql: str) -> list[Column]:
        return [Column(field.name, field.dataType.simpleString()) for field in self.spark.sql(sql).schema]

    def relation_type(self, schema: str, identifier: str) -> str | None:
        if not self.has(f"{schema}.{identifier}"):
            return None
        return "view" if self.spark.catalog.getTable(f"{schema}.{identifier}").tableType == "VIEW" else "table"

    def relation_properties(self, schema: str, identifier: str) -> Mapping[str, str]:
        return dict(self.spark.sql(f"show tblproperties `{schema}`.`{identifier}`").collect())

    def has(self, name: str) -> bool:
        return self.spark.catalog.tableExists(name)

    def table(self, name: str) -> DataFrame:
        return self.spark.table(name)

    def sql(self, sql: str) -> DataFrame:
        return self.spark.sql(sql)

    def stage(self, name: str, rows: Iterable[Staged]) -> None:
        self.spark.sql(f"create schema if not exists {name.split('.')[0]}")
        stage(self.spark, name, rows)
