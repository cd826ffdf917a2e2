"""A table of the session, or files of a format with types, become a snapshot table, every column as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile_jobs.masks import ColumnMask, RowMasks
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import UsageError, explained, in_sentences
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["FORMATS", "load_files", "load_table"]

# Formats that hold types, and so need no schema.
FORMATS = ("parquet", "orc", "avro", "delta", "iceberg")


def load_table(
    spark: SparkSession, table: TableName, into: TableName, taken_at: str, masks: RowMasks | None = None
) -> int:
    """Create or replace the snapshot table with the rows of a table or view, and return how many there are.

    `taken_at`: the moment of the rows, RFC 3339. `masks`: those of the columns. Raises UsageError where there is no
    such table; other JobErrors.
    """
    if table == into:
        raise UsageError(f"--table and --into both name {into}: name another table with --into.")
    if not spark.catalog.tableExists(table.sql):
        raise UsageError(f"There is no table or view {table} in this session; name another with --table.")
    with in_sentences(), session.settings(spark, session.SKIP_NO_FILE):
        return _load(spark, spark.table(table.sql), into, {"table": str(table)}, taken_at, masks)


def load_files(
    spark: SparkSession, path: str, file_format: str, into: TableName, taken_at: str, masks: RowMasks | None = None
) -> int:
    """Create or replace the snapshot table with the rows at a path, and return how many there are.

    Directories like `day=1` are columns, as Spark has it. Raises UsageError where there is nothing; other JobErrors.
    """
    from pyspark.errors import AnalysisException

    with in_sentences(), session.settings(spark, session.SKIP_NO_FILE):
        try:
            # Else the columns would be those of one file.
            rows = spark.read.format(file_format).option("mergeSchema", True).load(path)
        except AnalysisException as problem:
            if problem.getCondition() not in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                raise explained(problem) from None
            raise UsageError(f"There is no {file_format} file at {path}; name a file or a directory.") from None
        return _load(spark, rows, into, {"path": path}, taken_at, masks)


def _load(
    spark: SparkSession,
    rows: DataFrame,
    into: TableName,
    of: dict[str, str],
    taken_at: str,
    masks: RowMasks | None,
) -> int:
    lower = [name.lower() for name in rows.columns]
    if twice := sorted({name for name in rows.columns if lower.count(name.lower()) > 1}):
        raise UsageError(
            f"Columns {' and '.join(twice)} differ only in upper and lower case: use a view that gives them different "
            "names."
        )
    snapshot_table.prepare(spark, into)
    properties = {"reconcile.snapshot": "table", "reconcile.snapshot.taken_at": taken_at}
    properties |= {f"reconcile.snapshot.{name}": value for name, value in of.items()}
    comment = "A source's own rows, from another table or from files; each load replaces them all"
    if masks is not None:
        session.ship_by_value()
        rows = rows.select(*(_masked(field.name, field.dataType, masks) for field in rows.schema))
        properties |= masks.properties()
    snapshot_table.writer(rows, into, comment, properties).createOrReplace()
    return spark.table(into.sql).count()


def _masked(name: str, kind: DataType, masks: RowMasks) -> Column:
    """Return a column, masked if it has a mask. Of a value that is no scalar the JSON is its text."""
    from pyspark.sql import functions as f
    from pyspark.sql import types

    column, how = f.col(quoted(name)), masks.of(name)
    if how is None:
        return column
    if how == "drop":
        return f.lit(None).cast(kind).alias(name)
    is_scalar = not isinstance(kind, types.ArrayType | types.MapType | types.StructType | types.VariantType)
    is_bytes = isinstance(kind, types.BinaryType)
    value = column if is_bytes else column.cast("string") if is_scalar else f.to_json(column)
    mask = ColumnMask(how, masks.masks, kind.simpleString())
    return f.udf(mask.of, "string", useArrow=False)(value).alias(name)
