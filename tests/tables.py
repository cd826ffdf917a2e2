"""Tables of either format, as tests ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from file_formats import file_format
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName

# The column that says whether a row is deleted, as a base table has it.
DELETED = {"delta": "_deleted", "iceberg": "_change_deleted"}


def stored(spark: SparkSession, table: str) -> DataFrame:
    """Return the rows of a base table, or of row deletes, with the columns' own names (see `stored_column`)."""
    rows = spark.table(table)
    return rows.withColumnsRenamed({"_change_deleted": "_deleted", "_change_row_id": "_row_id"})


def tables_in(spark: SparkSession, schema: str) -> set[str]:
    """Return a schema's tables and views. Spark lists the session's temporary views with those of every schema."""
    return {row.tableName for row in spark.sql(f"show tables in {schema}").collect() if not row.isTemporary}


def commits(spark: SparkSession, table: str) -> int:
    """Return how often a table was written."""
    return spark.sql(
        f"select * from {table}.snapshots" if file_format() == "iceberg" else f"describe history {table}"
    ).count()


def versions(spark: SparkSession, table: str) -> list[int]:
    """Return the versions that a table had, since it was last made, up to the present one."""
    if file_format() == "iceberg":
        rows = spark.sql(f"select snapshot_id from {table}.history order by made_current_at")
    else:
        rows = spark.sql(f"describe history {table}").select("version").orderBy("version")
    return [int(row[0]) for row in rows.collect()]


def restore(spark: SparkSession, table: str, version: int) -> None:
    """Let a table be as it was at a version."""
    if file_format() == "iceberg":
        spark.sql(f"call spark_catalog.system.set_current_snapshot('{table}', {version})")
    else:
        spark.sql(f"restore table {table} to version as of {version}")


def bytes_of(spark: SparkSession, table: str) -> int:
    """Return the size of a table's files."""
    if file_format() == "iceberg":
        return int(spark.sql(f"select sum(file_size_in_bytes) as bytes from {table}.files").collect()[0].bytes)
    return int(spark.sql(f"describe detail {table}").collect()[0].sizeInBytes)


def files_of(spark: SparkSession, table: str) -> set[Path]:
    """Return the files in a table's directory that hold rows, or which rows of another file are deleted."""
    where = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").collect()[0].data_type
    found = Path(where.removeprefix("file:")).rglob("*")
    return {file for file in found if file.suffix in (".parquet", ".bin", ".puffin") and "_delta_log" not in file.parts}


def load_snapshot(rows: DataFrame, into: TableName, said: Mapping[str, str]) -> None:
    """Write rows as a snapshot table of the source.

    `said`: what its properties say of it, by their names after `reconcile.snapshot`; the empty name is the source.
    """
    named = {f"reconcile.snapshot.{name}".rstrip("."): value for name, value in said.items() if value}
    snapshot_table.prepare(rows.sparkSession, into)
    snapshot_table.writer(rows, into, "a copy", named).createOrReplace()
