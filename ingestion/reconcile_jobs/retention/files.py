"""The files of a table, and the statements with which its format makes fewer of them and deletes old versions.

A compaction writes the same rows into fewer files. It changes no row and no property of the table. What the product
reads from a table's history, and what a compaction does to it, is in docs/decisions/0052-compaction.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reconcile_jobs.process.session import SKIP_NO_FILE, settings
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.retention.tables import DECLARED_IN, Tables, beside, named
from reconcile_jobs.staging import TableName, literal, quoted, was_set_back
from reconcile_jobs.table_formats import format_of, iceberg_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "AGE",
    "SMALL",
    "TARGET",
    "Files",
    "TableFiles",
    "call",
    "clustered_by",
    "compacted_tables",
    "compaction",
    "removal",
]

# Bytes. A file below the first is combined with others of its partition, up to the second. So a file is written again
# until it is no longer small, and not each night for ever.
SMALL, TARGET = 128 << 20, 512 << 20

# How long versions stay, unless a property of the table says more. Delta keeps files as long. Queries, merges and
# appends that run may still need the files of a version that was the newest when they began.
AGE = timedelta(days=7)

# How the statements run. A cluster's defaults may skip files that are gone or damaged: a compaction would then write
# the table without their rows. An OPTIMIZE of more bytes than a batch commits several times: what one commit has done
# stays where the next one gives way.
_SETTINGS: Mapping[str, str] = {
    **SKIP_NO_FILE,
    "spark.databricks.delta.optimize.minFileSize": str(SMALL),
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET),
    "spark.databricks.delta.optimize.batchSize": str(4 * TARGET),
}

# A property of Iceberg tables: how long snapshots stay, in milliseconds.
_OWN_AGE = "history.expire.max-snapshot-age-ms"

# Of base tables of Iceberg: by which columns the rows are in order, see macros/table_formats/clustering.sql.
_CLUSTER_BY = "reconcile.cluster_by"

# With which options Iceberg chooses files, and makes larger ones of them.
_SIZES = {"target-file-size-bytes": str(TARGET), "min-file-size-bytes": str(SMALL), "min-input-files": "2"}

# The tables beside a model, and beside the ledger, to which runs and tests write.
_OF_MODEL = ("base", "quarantine", "row_deletes", "range_deletes")
_OF_LEDGER = ("reconcile_columns_seen", "reconcile_horizons", "reconcile_parity", "reconcile_parity_differences")


@dataclass(frozen=True)
class Files:
    """The data files of a table: how many, and of each partition how many are small, and their bytes together."""

    number: int
    small: tuple[tuple[int, int], ...] = ()

    @property
    def fewer(self) -> int:
        """By about how many files a compaction makes the table smaller. Files of two partitions stay two."""
        return sum(number - -(-bytes_ // TARGET) for number, bytes_ in self.small if number > 1)


def compacted_tables(staging: TableName, readers: Iterable[Reader]) -> list[TableName]:
    """Return the tables that are compacted, each once: of staging, then of the models, then of their ledgers.

    Not all of them need exist.
    """
    models = [reader for reader in readers if reader.has_base]
    ledgers = [named(reader.ledger) for reader in readers]
    found = [staging, beside(staging, "readers")]
    found += [beside(named(model.relation), part) for model in models for part in _OF_MODEL]
    for ledger in ledgers:
        found += [ledger, *(TableName((*ledger.parts[:-1], name)) for name in _OF_LEDGER)]
    return list(dict.fromkeys(found))


def compaction(table_format: str, table: TableName) -> list[str]:
    """Return the statements that combine the small files of a table, in their order.

    The one of Delta also clusters a table that was made with CLUSTER BY.
    """
    if table_format == "delta":
        return [f"OPTIMIZE {table.sql}"]
    options = ", ".join(f"'{name}', '{value}'" for name, value in _SIZES.items())
    return [
        call(table, "rewrite_data_files", f"options => map({options})"),
        call(table, "rewrite_manifests"),
    ]


def clustered_by(properties: Mapping[str, str]) -> list[str]:
    """Return the columns by which a base table of Iceberg is clustered, by its properties; empty if it is not."""
    said = properties.get(_CLUSTER_BY)
    return [str(name) for name in json.loads(bytes.fromhex(said))] if said else []


def removal(table_format: str, table: TableName, properties: Mapping[str, str], now: datetime) -> list[str]:
    """Return the statements that delete the old versions of a table, and the files that no version needs.

    How old: `AGE`, or longer if the table's properties say so. Delta reads its property itself. From 4.1 on it ignores
    RETAIN, and before that it deleted files by the property where RETAIN named a longer time.
    """
    if table_format == "delta":
        return [f"VACUUM {table.sql}"]
    age = max(AGE, timedelta(milliseconds=int(properties.get(_OWN_AGE) or 0)))
    older = f"older_than => TIMESTAMP '{(now - age).astimezone(UTC):%Y-%m-%d %H:%M:%S}Z'"
    return [call(table, "expire_snapshots", older), call(table, "remove_orphan_files", older)]


def call(table: TableName, procedure: str, *arguments: str) -> str:
    """Return the call of a procedure of Iceberg for a table, in the catalog of the table."""
    of = ", ".join([f"table => {literal(table.sql)}", *arguments])
    return f"CALL {quoted(table.catalog or 'spark_catalog')}.system.{procedure}({of})"


class TableFiles:
    """The files of a session's tables."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        """Take the session and its tables."""
        self._spark, self._tables = spark, tables

    def exists(self, table: TableName) -> bool:
        """Return whether the session has a table of this name, and not a view."""
        return self._tables.has(table) and self._spark.catalog.getTable(table.sql).tableType != "VIEW"

    def of(self, table: TableName) -> Files:
        """Return the files of a table, by its metadata. No data file is read."""
        by_partition = self._delta_files if self._format(table) == "delta" else self._iceberg_files
        rows = by_partition(table)
        small = tuple(sorted((int(row.small), int(row.bytes)) for row in rows if row.small))
        return Files(sum(int(row.files) for row in rows), small)

    def compact(self, table: TableName) -> None:
        """Combine the small files of a table. Raises what the format raises, as where another commit came first."""
        table_format = format_of(self._spark, table.catalog)
        statements = compaction(table_format.name, table)
        if table_format.name == "iceberg" and (
            columns := clustered_by(table_format.properties(self._spark, table.sql))
        ):
            with settings(self._spark, dict(_SETTINGS)):
                self._rewrite_in_order(table, columns)
            del statements[0]
        self._execute(statements)

    def remove_versions(self, table: TableName) -> None:
        """Delete the old versions of a table, and the files that no version needs; see `removal`."""
        table_format = format_of(self._spark, table.catalog)
        properties = table_format.properties(self._spark, table.sql)
        self._execute(removal(table_format.name, table, properties, datetime.now(UTC)))

    def needed_versions(self, table: TableName, is_staging: bool) -> str | None:
        """Return why old versions of a table must stay; None if none need to.

        By them an append job, or a model's next run, notices that the table was restored: see `Iceberg.was_set_back`
        and `was_set_back_before` in table_formats.py.
        """
        table_format = format_of(self._spark, table.catalog)
        noted = "" if is_staging else table_format.properties(self._spark, table.sql).get(DECLARED_IN) or ""
        if is_staging and was_set_back(self._spark, table):
            return "the table was restored to before its last append; the next append says what to do"
        if table_format.was_set_back_before(self._spark, table.sql, noted):
            return "the table was set back to before its declaration; the next run with news says what to do"
        if table_format.name == "iceberg" and (is_staging or noted):
            refs = self._spark.sql(f"SELECT name FROM {_metadata(table, 'refs')} WHERE name <> 'main' ORDER BY name")
            if names := [row.name for row in refs.collect()]:
                # Of these a snapshot may stay of which the parents are gone. It would look like one of another past.
                return f"the table has tags or branches ({', '.join(names)})"
        return None

    def _format(self, table: TableName) -> str:
        return format_of(self._spark, table.catalog).name

    def _execute(self, statements: Iterable[str]) -> None:
        with settings(self._spark, dict(_SETTINGS)):
            for statement in statements:
                self._spark.sql(statement).collect()

    def _rewrite_in_order(self, table: TableName, columns: Iterable[str]) -> None:
        """Combine the small files of a table of Iceberg, with their rows in the order of columns.

        The procedure would do the same, but takes an order as SQL that only Iceberg's extension of Spark reads.
        """
        jvm: Any = self._spark._jvm
        found = iceberg_table(self._spark, table.sql)
        order = jvm.org.apache.iceberg.SortOrder.builderFor(found.schema())
        for name in columns:
            order.asc(name)
        rewrite = jvm.org.apache.iceberg.spark.actions.SparkActions.get(self._spark._jsparkSession)
        rewrite = rewrite.rewriteDataFiles(found).sort(order.build())
        for name, value in _SIZES.items():
            rewrite.option(name, value)
        rewrite.execute()

    def _delta_files(self, table: TableName) -> list[Any]:
        from pyspark.sql import DataFrame

        # Which reads the log up to its end.
        location = self._spark.sql(f"DESCRIBE DETAIL {table.sql}").select("location").collect()[0].location
        jvm: Any = self._spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, location)
        # Of the session that has opened the log first: so these are rows, and no view of this session.
        files = DataFrame(log.unsafeVolatileSnapshot().allFiles().toDF(), self._spark)
        sums = ("files", "small", "bytes")
        of_each = files.selectExpr("to_json(partitionValues) AS place", "1 AS files", *_small("size"))
        return of_each.groupBy("place").sum(*sums).toDF("place", *sums).collect()

    def _iceberg_files(self, table: TableName) -> list[Any]:
        files = _metadata(table, "files")
        # Without partitions the column is missing.
        is_partitioned = "partition" in self._spark.sql(f"SELECT * FROM {files} LIMIT 0").columns
        place = f"concat(spec_id, {'to_json(partition)' if is_partitioned else repr('')})"
        return self._spark.sql(
            f"SELECT place, count(*) AS files, sum(small) AS small, sum(bytes) AS bytes FROM (SELECT {place} AS place, "
            f"{', '.join(_small('file_size_in_bytes'))} FROM {files} WHERE content = 0) GROUP BY place"
        ).collect()


def _small(size: str) -> list[str]:
    """Return columns of a file: whether it is small, as a number, and its bytes if it is."""
    return [f"if({size} < {SMALL}, 1, 0) AS small", f"if({size} < {SMALL}, {size}, 0) AS bytes"]


def _metadata(table: TableName, kind: str) -> str:
    """Return the name of a table of Iceberg's metadata. With two parts, Spark would take the first for a catalog."""
    return quoted(*(() if table.catalog else ("spark_catalog",)), *table.parts, kind)
