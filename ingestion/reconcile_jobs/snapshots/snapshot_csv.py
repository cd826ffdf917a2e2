"""A source's CSV export becomes a snapshot table, every value exact, or the job says which one is not."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from reconcile_jobs.csv_records import Broken, Dialect, records
from reconcile_jobs.exact_text import ExactText, NotExact, reader_of, shown
from reconcile_jobs.masks import ColumnMask, RowMasks
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, UsageError, explained
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Column", "columns_of", "load_csv", "typed_rows"]

# How much Python hands back to Spark at a time.
_BATCH_ROWS = 10_000
_BATCH_CHARACTERS = 32_000_000

# Each file is read by one task, from its beginning: values in quotes may span lines, and lines are counted. The size
# is larger than any file, and small enough for Spark to add it up for half a million of them.
_WHOLE_FILES = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), str(1 << 44))

# A complaint travels from an executor as the message of an exception, in one line of ASCII.
_COMPLAINT = "reconcile-complaint: "


@dataclass(frozen=True)
class Column:
    """A declared column, and how its values are read. `mask`: what stands for them instead.

    `is_shown`: whether a complaint may show a value. Where a column is masked, none does: a line with one separator too
    many has masked values in other columns.
    """

    name: str
    text: ExactText
    required: bool = False
    mask: ColumnMask | None = None
    is_shown: bool = True

    @property
    def stored_type(self) -> str:
        """The type of the table's column, as DDL."""
        return "string" if self.mask is not None and self.mask.how == "sha256" else self.text.stored_type


def columns_of(schema: str) -> list[Column]:
    """Return the columns of a schema like 'id bigint not null, name string'. Needs a running Spark session.

    Raises UsageError for what is no schema, for a column named twice (ignoring case), and for types that are not
    scalar.
    """
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    try:
        fields = cast(StructType, StructType.fromDDL(schema)).fields
    except ParseException as problem:
        # The first line without its codes; the others draw an arrow.
        why = re.sub(r"^\[[\w.]+\] | SQLSTATE: .*", "", str(problem).strip().splitlines()[0])
        raise UsageError(f"--schema {schema!r} cannot be read: {why} Write it as 'id bigint, name string'.") from None
    columns: list[Column] = []
    complaints: list[str] = []
    for field in fields:
        text = reader_of(field.dataType)
        if text is None:
            complaints.append(f"column {field.name} has type {field.dataType.simpleString()}, which CSV cannot carry")
        elif any(field.name.lower() == column.name.lower() for column in columns):
            complaints.append(f"column {field.name} is declared twice")
        else:
            columns.append(Column(field.name, text, not field.nullable))
    if complaints or not columns:
        raise UsageError(f"--schema {schema!r}: {'; '.join(complaints) or 'it declares no column'}.")
    return columns


def load_csv(
    spark: SparkSession,
    path: str,
    into: TableName,
    columns: Sequence[Column],
    dialect: Dialect,
    header: bool = True,
    taken_at: str | None = None,
    pg_snapshot: str | None = None,
    masks: RowMasks | None = None,
) -> int:
    """Create or replace the table with the rows of the files, in one commit, and return how many there are.

    `path` is a file, a directory (searched recursively) or a pattern; compressed files are read by their ending.
    `taken_at`: the moment of the export, RFC 3339; `pg_snapshot`: its position in a log of PostgreSQL.
    `masks`: those of the columns.
    Raises UsageError where there is no file, or the table is there and no snapshot; DataError where a file is no CSV or
    a value is not exactly one of its type; other JobErrors for what else fails. The table is then as it was.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import functions

    session.ship_by_value()
    if masks is not None:
        columns = [_masked(column, masks) for column in columns]
    # Recursive also keeps directories like day=1 from becoming columns.
    reader = spark.read.option("recursiveFileLookup", True).option("lineSep", "\n")
    # Some clusters are set to pass over what cannot be read; here those rows would be missing in silence.
    reader = reader.option("ignoreCorruptFiles", False).option("ignoreMissingFiles", False)
    try:
        lines = reader.text(path)
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_NOT_FOUND":
            raise
        raise UsageError(f"There is nothing at {path}; name a file, a directory or a pattern.") from None
    files = lines.inputFiles()
    if not files:
        raise UsageError(f"There is no file in {path}; name a file, a directory or a pattern.")
    rows = lines.select(
        functions.col("_metadata.file_path").alias("file"), functions.col("value").cast("binary").alias("line")
    ).mapInArrow(
        lambda batches: _unless_dropped(typed_rows(_lines(batches), columns, dialect, header)),
        ", ".join(f"{quoted(column.name)} {column.stored_type}" for column in columns),
    )
    writer = snapshot_table.writer(
        rows,
        into,
        "A source's own rows, from its CSV export; each load replaces them all",
        {"reconcile.snapshot": "csv", "reconcile.snapshot.path": path}
        | ({"reconcile.snapshot.taken_at": taken_at} if taken_at else {})
        | (_position_of(pg_snapshot) if pg_snapshot else {})
        | (masks.properties() if masks else {}),
    )
    try:
        snapshot_table.prepare(spark, into)
        with session.settings(spark, _WHOLE_FILES):
            _refuse_torn(lines, files, header)
            writer.createOrReplace()
    except (PySparkException, Py4JJavaError) as problem:
        raise _refusal(problem) or explained(problem) from None
    return spark.table(into.sql).count()


def _masked(column: Column, masks: RowMasks) -> Column:
    how, kind = masks.of(column.name), column.text.type_name
    form = _base64_of_hex if kind == "binary" else None
    return replace(column, mask=ColumnMask(how, masks.masks, kind, form) if how else None, is_shown=False)


def _base64_of_hex(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


def _position_of(pg_snapshot: str) -> dict[str, str]:
    return {"reconcile.snapshot.position_kind": "pg_snapshot", "reconcile.snapshot.position": pg_snapshot}


def typed_rows(
    lines: Iterable[tuple[str, bytes]], columns: Sequence[Column], dialect: Dialect, header: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of whole files, given line by line with the file's name, as Arrow batches.

    Raises Complaint at the first value, record or header that is not as declared.
    """
    for file, group in groupby(lines, key=itemgetter(0)):
        found = records(map(itemgetter(1), group), dialect, len(columns))
        try:
            order = _order(next(found, None), columns) if header else range(len(columns))
            yield from _batches(found, columns, order)
        except Broken as problem:
            raise Complaint(file, problem.line, str(problem)) from None


class Complaint(ValueError):
    """What is wrong at a line of a file, on its way from an executor to the driver."""

    def __init__(self, file: str, line: int, why: str) -> None:
        super().__init__(_COMPLAINT + json.dumps({"file": file, "line": line, "why": why}))


def _order(header: tuple[int, list[str | None]] | None, columns: Sequence[Column]) -> Sequence[int]:
    """Return where each column's values stand in a record."""
    if header is None:
        raise Broken(1, "the file has no header")
    line, names = header[0], [name or "" for name in header[1]]
    order = []
    for column in columns:
        exact = [place for place, name in enumerate(names) if name == column.name]
        # Exports often shout what the schema whispers.
        close = [place for place, name in enumerate(names) if name.lower() == column.name.lower()]
        order.append(exact if exact else close)
    missing = [column.name for column, places in zip(columns, order, strict=True) if not places]
    twice = [column.name for column, places in zip(columns, order, strict=True) if len(places) > 1]
    taken = {place for places in order for place in places}
    extra = [name for place, name in enumerate(names) if place not in taken]
    is_shown = all(column.is_shown for column in columns)
    complaints = [
        f"{what} {', '.join(map(shown, which)) if is_shown or which is not extra else f'{len(which)} columns'}"
        for what, which in (("lacks", missing), ("has twice", twice), ("has, unlike the schema,", extra))
        if which
    ]
    if complaints:
        raise Broken(line, f"the header {' and '.join(complaints)}")
    return [places[0] for places in order]


def _batches(
    found: Iterator[tuple[int, list[str | None]]], columns: Sequence[Column], order: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a file, each with the line at which it starts, as batches of limited size. Raises Broken."""
    rows: list[list[str | None]] = []
    starts: list[int] = []
    characters = 0
    for start, values in found:
        if len(values) != len(columns):
            raise Broken(start, f"the line has {len(values)} values, and there are {len(columns)} columns")
        rows.append(values)
        starts.append(start)
        characters += sum(map(len, filter(None, values)))
        if len(rows) == _BATCH_ROWS or characters > _BATCH_CHARACTERS:
            yield _batch(rows, starts, columns, order)
            rows, starts, characters = [], [], 0
    if rows:
        yield _batch(rows, starts, columns, order)


def _batch(
    rows: list[list[str | None]], starts: list[int], columns: Sequence[Column], order: Sequence[int]
) -> pa.RecordBatch:
    import pyarrow as pa

    arrays = []
    texts = list(zip(*rows, strict=True))
    for column, place in zip(columns, order, strict=True):
        read = column.text.read
        if column.mask is not None:
            masked = [column.mask.of(text) for text in texts[place]]
            if column.required and None in texts[place]:
                line = starts[texts[place].index(None)]
                raise Broken(line, f"column {column.name} is NULL, but declared not null")
            kind = column.text.arrow() if column.mask.how == "drop" else pa.string()
            arrays.append(pa.array(masked, kind))
            continue
        try:
            values = [None if text is None else read(text) for text in texts[place]]
        except NotExact:
            values = [_value(column, text, start) for text, start in zip(texts[place], starts, strict=True)]
        if column.required and None in values:
            raise Broken(starts[values.index(None)], f"column {column.name} is NULL, but declared not null")
        arrays.append(pa.array(values, column.text.arrow()))
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _value(column: Column, text: str | None, line: int) -> Any:
    try:
        return None if text is None else column.text.read(text)
    except NotExact as problem:
        if not column.is_shown:
            raise Broken(
                line,
                f"column {column.name}, {column.text.type_name}: a value is not exactly one of its type, and is not "
                "shown, since columns are masked",
            ) from None
        raise Broken(line, f"column {column.name}, {column.text.type_name}: {shown(text or '')} {problem}") from None


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _unless_dropped(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # When the task of one file fails, Spark drops the others, whose processes then print that nobody listens. What
    # they have to say reaches the driver by another way, so it is lost only to the eye.
    stderr, sys.stderr = sys.stderr, Path(os.devnull).open("w")  # noqa: SIM115
    yield from rows
    sys.stderr = stderr


def _refuse_torn(lines: DataFrame, files: Sequence[str], header: bool) -> None:
    # A pass of Spark's alone, which costs little beside the other. Compressed files that end too soon fail here at
    # once. And the other pass sees nothing of empty files: but one that has not even a header is no table without rows.
    seen = {_plain(row["file_path"]) for row in lines.select("_metadata.file_path").distinct().collect()}
    if header and (empty := sorted(set(map(_plain, files)) - seen)):
        raise DataError(f"{empty[0]} is empty: it has not even a header. Export it again, or use --no-header.")


def _refusal(problem: Exception) -> DataError | None:
    """Return what the files' reading ended with, in a sentence, or None where it was not that."""
    text = str(problem)
    if found := re.search(rf"{_COMPLAINT}(\{{.*\}})", text):
        details = json.loads(found[1])
        return DataError(f"{_plain(details['file'])}, line {details['line']}: {details['why']}. Nothing was written.")
    if found := re.search(r"Encountered error while reading file (\S+?)\. ", text):
        return DataError(
            f"{_plain(found[1])} cannot be read to its end; it may be incomplete. Deliver it again. Nothing was "
            "written."
        )
    return None


def _plain(file: str) -> str:
    """Return the name of a local file as people write it; others stay URIs."""
    return unquote(re.sub("^file:/+", "/", file)) if file.startswith("file:/") else file
