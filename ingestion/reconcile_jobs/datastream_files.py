"""Datastream's files: what kind each is, what it held when it was read, its records, and why it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from reconcile_jobs.avro_json import AvroError, json_records
from reconcile_jobs.errors import Fault, UsageError, causes, explained
from reconcile_jobs.landing_area import escaped
from reconcile_jobs.staging import hadoop_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

__all__ = [
    "Files",
    "Versions",
    "changed_since",
    "format_of_file",
    "kinds",
    "line_of_first",
    "missing",
    "records",
    "unreadable",
    "versions",
]

# By the end of their names; everything else is said to be neither.
_JSON = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2))?$")
_AVRO = re.compile(r"\.avro$")
_NEVER_EMPTY = re.compile(r"\.(avro|gz|bz2)$")  # not even without a record

# Rows that Python hands back to Spark at a time.
_ARROW_ROWS = 2000


@dataclass
class Files:
    """The files of a micro-batch: those that are read, by kind, and those that are not, each with the reason."""

    json: list[str] = field(default_factory=list)
    avro: list[str] = field(default_factory=list)
    corrupt: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.json) + len(self.avro)


# Of a local file Hadoop reads the checksum as well, `.<name>.crc`, which it cannot spell where the name has a colon;
# nor can it look for such a name as a pattern.
_NAMED_WITH_COLON = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    "__globPaths__": "false",
}


# What tells a file from what it was: bytes, and when it was written last.
_Version = tuple[int, datetime]
# By the names of files, as `_same_name` writes them.
Versions = dict[str, _Version]
# Whenever it was written: Spark lists no such file.
_NO_BYTES: _Version = (0, datetime.min)


def versions(files: DataFrame) -> Versions:
    """Return the versions that files had when Spark listed them: `path`, `length` and `modificationTime`."""
    return {_same_name(row.path): (row.length, row.modificationTime) for row in files.collect()}


def _version(spark: SparkSession, path: str) -> _Version | None:
    """Return the version that a file has now, None where it is gone."""
    at = hadoop_path(spark, path)
    files = at.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(at):
        return None
    status = files.getFileStatus(at)
    written = datetime.fromtimestamp(status.getModificationTime() / 1000)
    return (int(status.getLen()), written) if status.getLen() else _NO_BYTES


def _present(spark: SparkSession, files: Files) -> dict[str, _Version | None]:
    """Return the versions that files have now; Spark looks at many at a time, but at none if one is gone."""
    from pyspark.errors import AnalysisException

    found: dict[str, _Version | None] = {}
    for _, paths in kinds(files):
        try:
            listed = _reader(spark, paths).format("binaryFile").load(_names(paths))
            found |= {_same_name(path): _NO_BYTES for path in paths}
            found |= versions(listed.select("path", "length", "modificationTime"))
        except AnalysisException:
            found |= {_same_name(path): _version(spark, path) for path in paths}
    return found


def missing(spark: SparkSession, paths: Sequence[str], listed: Versions) -> dict[str, str]:
    """Return the files that Spark leaves out without a word, and why: what has vanished, and what has no bytes."""
    gone = {}
    for path in paths:
        if _same_name(path) in listed:
            continue
        if _version(spark, path) is None:
            gone[path] = "it was there, and has vanished"
        elif _NEVER_EMPTY.search(path):
            gone[path] = "it is empty"
    return gone


def changed_since(spark: SparkSession, files: Files, listed: Versions) -> list[str]:
    """Return the files that were written to since they were listed.

    Spark reads as many bytes as there were when it looked, and never comes back to a file.
    """
    now = _present(spark, files)
    read = [*files.json, *files.avro]
    return [path for path in read if now[_same_name(path)] not in (None, listed.get(_same_name(path), _NO_BYTES))]


def _same_name(path: str) -> str:
    # file:/a and file:///a are one file.
    return re.sub(r"^(\w+):/+", r"\1:/", path)


def format_of_file(path: str, asked: str) -> str | None:
    """Return json or avro by the end of a name, if none is asked for; None if its name says neither."""
    if asked != "auto":
        return asked
    return "json" if _JSON.search(path) else "avro" if _AVRO.search(path) else None


def kinds(files: Files) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that are read together, those of names with a colon apart."""
    for kind, paths in (("json", files.json), ("avro", files.avro)):
        for odd in (False, True):
            if some := [path for path in paths if _has_colon(path) == odd]:
                yield kind, some


def _has_colon(path: str) -> bool:
    return path.startswith("file:") and ":" in path.rsplit("/", 1)[-1]


def _reader(spark: SparkSession, paths: Sequence[str]) -> DataFrameReader:
    # Without recursiveFileLookup, directories like day=1 would become columns.
    reader = spark.read.option("recursiveFileLookup", True)
    return reader.options(**_NAMED_WITH_COLON if _has_colon(paths[0]) else {})


def _names(paths: Sequence[str]) -> list[str]:
    return [path if _has_colon(path) else escaped(path) for path in paths]


def records(spark: SparkSession, kind: str, paths: Sequence[str]) -> DataFrame:
    """Return `record` and `origin` of files of one kind."""
    if kind == "json":
        return _lines(spark, paths).selectExpr("value AS record", "_metadata.file_path AS origin")
    reader, names = _reader(spark, paths), _names(paths)
    files = reader.format("binaryFile").load(names).selectExpr("content", "_metadata.file_path AS origin")
    return files.mapInArrow(_avro_rows, "record string, origin string")


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # A carriage return may stand between the values of a record; only a line feed ends it.
    return _reader(spark, paths).option("lineSep", "\n").text(_names(paths))


def line_of_first(spark: SparkSession, files: Files, origin: str, found: DataFrame) -> tuple[str, int | None]:
    """Return the file that an origin names, and the number of its first line that is a `record` of those found.

    Of an Avro file there are no lines.
    """
    # An origin is written as a URL, where files of a micro-batch have their names.
    names = [_same_name(path) for path in (unquote(origin), origin)]
    path = next((path for path in [*files.json, *files.avro] if _same_name(path) in names), origin)
    if path not in files.json:
        return path, None
    places = ["_metadata.file_block_start AS block", "monotonically_increasing_id() AS place"]
    lines = _lines(spark, [path]).selectExpr("xxhash64(value) AS digest", *places)
    wanted = found.selectExpr("xxhash64(record) AS digest").distinct()
    # Spark reads a long file in blocks, and several of them at a time.
    first = lines.join(wanted, "digest", "left_semi").orderBy("block", "place").first()
    if first is None:  # the file was written to since
        return path, None
    before = lines.where((lines.block < first.block) | ((lines.block == first.block) & (lines.place < first.place)))
    return path, before.count() + 1


def _avro_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        for content, origin in zip(batch.column("content"), batch.column("origin"), strict=True):
            rows: list[str] = []
            for record in json_records(content.as_py()):
                rows.append(record)
                if len(rows) == _ARROW_ROWS:
                    yield pa.RecordBatch.from_pydict({"record": rows, "origin": [origin.as_py()] * len(rows)})
                    rows = []
            if rows:
                yield pa.RecordBatch.from_pydict({"record": rows, "origin": [origin.as_py()] * len(rows)})


def unreadable(spark: SparkSession, files: Files) -> Iterator[tuple[str, str]]:
    """Yield the files that cannot be read and why, found by reading halves. Raises Fault for what a retry may cure."""
    for kind, paths in kinds(files):
        pending = [paths]
        while pending:
            some = pending.pop()
            try:
                records(spark, kind, some).write.format("noop").mode("overwrite").save()
            except Exception as problem:
                if len(some) > 1:
                    half = len(some) // 2
                    pending += [some[half:], some[:half]]
                    continue
                yield some[0], _why_unreadable(problem, some[0])


def _why_unreadable(problem: Exception, path: str) -> str:
    # Without the path, whose name may hold any of the words that are looked for.
    story = "\n".join(f"{kind}: {message}" for kind, message in causes(problem))
    for name in (path, quote(path), unquote(path)):
        story = story.replace(name, "")
    if re.search(r"Permission denied|AccessControl|AccessDenied", story):
        # Not what is to be set aside: it is read once the right is given.
        raise UsageError(
            f"The file {path} may not be read, and nothing of this batch was appended: give the job's user the right "
            "to read it, and run this again."
        ) from problem
    if found := re.search(rf"{AvroError.__name__}: (.*)", story):
        return found[1].strip()
    for pattern, why in _TORN:
        if re.search(pattern, story):
            return why
    raise Fault(f"The file {path} could not be read. {explained(problem)}") from problem


_TORN = [
    (r"EOFException", "it ends in the middle"),
    (
        r"not a gzip file|gzip stream|zip\.|incorrect|invalid (?:block|stored|distance|code)|(?i:bzip|bad block)",
        "what it holds is not what its name says, or was damaged",
    ),
    (r"FILE_NOT_EXIST|PATH_NOT_FOUND|does not exist", "it was there, and has vanished"),
]
