"""The old versions of tables, deleted at once: no file and no log of a table has the rows that are gone.

Nothing may read or write the tables meanwhile: a query of an older version loses its files, and so does a job whose
rows are written and not yet committed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reconcile_jobs.hadoop_files import hadoop_path
from reconcile_jobs.process.session import SKIP_NO_FILE, settings
from reconcile_jobs.retention.files import call
from reconcile_jobs.staging import TableName, literal, quoted
from reconcile_jobs.table_formats import format_of, iceberg_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delete_versions", "is_of_earlier_version", "purge_of_deleted_rows"]

# Delta refuses to delete what is younger than seven days, unless it is told that nobody needs it.
_SETTINGS = {
    **SKIP_NO_FILE,
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # An UPDATE writes the files anew, and does not mark rows in them.
    "spark.databricks.delta.update.deletionVectors.persistent": "false",
}

# A property of Delta tables. The commit that sets it adds and removes no file; so its own entry in the log has no
# statistics of one.
_DELETED = "reconcile.versions_deleted"


def delete_versions(spark: SparkSession, table: TableName) -> None:
    """Delete all versions of a table but the present one, and what they alone have."""
    with settings(spark, _SETTINGS):
        if format_of(spark, table.catalog).name == "delta":
            _delete_delta(spark, table)
        else:
            _delete_iceberg(spark, table)
    spark.catalog.refreshTable(table.sql)


def _delete_delta(spark: SparkSession, table: TableName) -> None:
    # A row that a deletion vector hides is still in its file.
    spark.sql(purge_of_deleted_rows(spark, table)).collect()
    spark.sql(f"VACUUM {table.sql} RETAIN 0 HOURS").collect()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({literal(_DELETED)} = {literal(now)})")
    jvm: Any = spark._jvm
    location = spark.sql(f"DESCRIBE DETAIL {table.sql}").select("location").collect()[0].location
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    snapshot = log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty())
    # Delta's own clean-up of its log keeps whole days. Statistics in it have the least and the greatest values.
    log.checkpoint(snapshot, jvm.scala.Option.empty())
    version, place = int(snapshot.version()), hadoop_path(spark, str(location), "_delta_log")
    files = place.getFileSystem(spark._jsc.hadoopConfiguration())
    if not any(_version(name) == version and ".checkpoint" in name for name in _names(files, place)):
        raise RuntimeError(f"the log of {table} has no checkpoint of version {version}")
    for name in _names(files, place):
        if is_of_earlier_version(name, version):
            files.delete(hadoop_path(spark, place.toString(), name), False)


def purge_of_deleted_rows(spark: SparkSession, table: TableName) -> str:
    """Return the statement after which no file of a table of Delta has rows that deletion vectors hide.

    In a clustered table, REORG passes over files that were clustered together, as OPTIMIZE does. So an UPDATE writes
    all rows of such a table anew, in one commit, and the next OPTIMIZE clusters them. An INSERT OVERWRITE would leave
    a table that is not clustered.
    """
    is_clustered = spark.sql(f"DESCRIBE DETAIL {table.sql}").select("clusteringColumns").collect()[0].clusteringColumns
    if is_clustered:
        column = quoted(spark.table(table.sql).columns[0])
        return f"UPDATE {table.sql} SET {column} = {column}"
    return f"REORG TABLE {table.sql} APPLY (PURGE)"


def _names(files: Any, place: Any) -> list[str]:
    return [str(status.getPath().getName()) for status in files.listStatus(place) if not status.isDirectory()]


def _version(name: str) -> int | None:
    found = re.match(r"\.?(\d{20})\.", name)
    return int(found[1]) if found else None


def is_of_earlier_version(name: str, version: int) -> bool:
    """Return whether a file of Delta's log, or the checksum beside it, is of a version before this one."""
    of = _version(name)
    # A log that was compacted has the first and the last of its versions in its name.
    compacted = re.match(r"\.?\d{20}\.(\d{20})\.compacted\.json", name)
    return of is not None and of < version and (compacted is None or int(compacted[1]) <= version)


def _delete_iceberg(spark: SparkSession, table: TableName) -> None:
    # Rows that are deleted stay in their files, and the bounds of files that were rewritten in the manifests.
    spark.sql(call(table, "rewrite_data_files", "options => map('rewrite-all', 'true')")).collect()
    spark.sql(call(table, "rewrite_manifests")).collect()
    now = datetime.now(UTC)
    older = f"older_than => TIMESTAMP '{now:%Y-%m-%d %H:%M:%S.%f}Z'"
    spark.sql(call(table, "expire_snapshots", older, "retain_last => 1")).collect()
    # The procedure refuses what is younger than a day.
    jvm: Any = spark._jvm
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    actions.deleteOrphanFiles(iceberg_table(spark, table.sql)).olderThan(int(now.timestamp() * 1000)).execute()
