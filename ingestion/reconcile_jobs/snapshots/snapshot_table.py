"""What snapshot tables of all sources share: one commit writes the whole table, and no other table is replaced."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.staging import TableName
from reconcile_jobs.table_formats import format_of, properties_of_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

__all__ = ["prepare", "writer"]


def prepare(spark: SparkSession, into: TableName) -> None:
    """Make the table's schema. Raises UsageError if the table exists and is not a snapshot."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {into.schema_sql}")
    if spark.catalog.tableExists(into.sql) and "reconcile.snapshot" not in _properties(spark, into):
        raise UsageError(f"{into} already exists and was not created by snapshot.py; choose another name, or drop it.")


def writer(rows: DataFrame, into: TableName, comment: str, properties: Mapping[str, str]) -> DataFrameWriterV2:
    """Return what creates or replaces the table with these rows; each load has an id of its own."""
    spark = rows.sparkSession
    table_format = format_of(spark, into.catalog)
    # A table of Iceberg that is replaced keeps its properties: what this load does not say is set to nothing.
    before = _properties(spark, into) if spark.catalog.tableExists(into.sql) else set()
    forgotten = {name: "" for name in before if name.startswith("reconcile.snapshot.")}
    properties = {**forgotten, "reconcile.snapshot.id": str(uuid.uuid4()), **properties}
    wanted = properties_of_columns(table_format, rows.columns, [kind for _, kind in rows.dtypes])
    found = rows.writeTo(into.sql).using(table_format.name).tableProperty("comment", comment)
    for key, value in {**properties, **wanted}.items():
        found = found.tableProperty(key, value)
    return found


def _properties(spark: SparkSession, table: TableName) -> set[str]:
    """Return the names of a table's properties."""
    return {row["key"] for row in spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()}
