"""Datastream's files: what kind each is, and whether it is still what it was when Spark listed it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconcile_jobs.hadoop_files import hadoop_path
from reconcile_jobs.json_lines import long_lines
from reconcile_jobs.landing_area import escaped
from reconcile_jobs.long_records import LongRecord
from reconcile_jobs.process.errors import causes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

__all__ = [
    "Files",
    "Versions",
    "changed_since",
    "find_long_lines",
    "format_of_file",
    "kinds",
    "missing",
    "names",
    "of_other_codecs",
    "reader",
    "same_name",
    "versions",
]

# By the end of their names; any other file is reported as neither.
_JSON = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2))?\Z")
_AVRO = re.compile(r"\.avro\Z")
_PACKED = re.compile(r"\.(gz|bz2)\Z")
# What Hadoop decompresses by the end of a name, whatever it holds; and of it what nothing here reads in bounded memory.
_COMPRESSED = re.compile(r"\.(gz|bz2|deflate|zst|snappy|lz4)\Z")
_OTHER_CODEC = re.compile(r"\.(deflate|zst|snappy|lz4)\Z")
_NEVER_EMPTY = re.compile(r"\.(avro|gz|bz2)\Z")  # not even without a record


@dataclass
class Files:
    """The files of a micro-batch: those that are read, by kind, and those that are not, each with the reason."""

    json: list[str] = field(default_factory=list)
    avro: list[str] = field(default_factory=list)
    # Lines of files of `json`, which Spark then leaves out.
    long: dict[str, list[LongRecord]] = field(default_factory=dict)
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


# What shows that a file has changed: its bytes, and when it was written last, in milliseconds since 1970. Python's
# datetime ends with the year 9999, and a clock that is wrong writes later years.
_Version = tuple[int, int]
# By the names of files, as `_same_name` writes them.
Versions = dict[str, _Version]
# Whenever it was written: Spark lists no such file.
_NO_BYTES: _Version = (0, 0)


def versions(files: DataFrame) -> Versions:
    """Return the versions that files had when Spark listed them: `path`, `length` and `modificationTime`."""
    rows = files.selectExpr("path", "length", "unix_millis(modificationTime) AS written").collect()
    return {same_name(row.path): (row.length, row.written) for row in rows}


def _version(spark: SparkSession, path: str) -> _Version | None:
    """Return the version that a file has now, None where it is gone."""
    at = hadoop_path(spark, path)
    files = at.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(at):
        return None
    status = files.getFileStatus(at)
    return (int(status.getLen()), int(status.getModificationTime())) if status.getLen() else _NO_BYTES


def _present(spark: SparkSession, files: Files) -> dict[str, _Version | None]:
    """Return the versions that files have now. Spark lists many at a time; if one is gone, each is looked up alone."""
    from pyspark.errors import AnalysisException

    found: dict[str, _Version | None] = {}
    for _, paths in kinds(files):
        try:
            listed = reader(spark, paths).format("binaryFile").load(names(paths))
            found |= {same_name(path): _NO_BYTES for path in paths}
            found |= versions(listed.select("path", "length", "modificationTime"))
        except AnalysisException:
            found |= {same_name(path): _version(spark, path) for path in paths}
    return found


def missing(spark: SparkSession, paths: Sequence[str], listed: Versions) -> dict[str, str]:
    """Return the files that Spark silently leaves out, and why: they have vanished, or they have no bytes."""
    gone = {}
    for path in paths:
        if same_name(path) in listed:
            continue
        if _version(spark, path) is None:
            gone[path] = "it no longer exists"
        elif _NEVER_EMPTY.search(path):
            gone[path] = "it is empty"
    return gone


def of_other_codecs(paths: Sequence[str]) -> dict[str, str]:
    """Return the files of JSON that Hadoop would decompress, to whatever size, and why they are not read."""
    why = "it is compressed, and of compressed JSON only .gz and .bz2 are read"
    return {path: why for path in paths if _OTHER_CODEC.search(path)}


def changed_since(spark: SparkSession, files: Files, listed: Versions) -> list[str]:
    """Return the files that were written to since they were listed.

    Spark reads as many bytes as a file had when Spark listed it, and never reads the file again.
    """
    now = _present(spark, files)
    read = [*files.json, *files.avro]
    return [path for path in read if now[same_name(path)] not in (None, listed.get(same_name(path), _NO_BYTES))]


def same_name(path: str) -> str:
    """Return one name for a file, of which file:/a and file:///a are two."""
    return re.sub(r"^(\w+):/+", r"\1:/", path)


def format_of_file(path: str, asked: str) -> str | None:
    """Return json or avro by the end of a name, if none is asked for; None if its name says neither."""
    if asked != "auto":
        return asked
    return "json" if _JSON.search(path) else "avro" if _AVRO.search(path) else None


def kinds(files: Files) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that are read together, those of names with a colon apart."""
    packed = [path for path in files.json if _PACKED.search(path)]
    long = [path for path in files.json if path in files.long]
    plain = [path for path in files.json if path not in {*packed, *long}]
    for kind, paths in (("json", plain), ("long json", long), ("packed json", packed), ("avro", files.avro)):
        for odd in (False, True):
            if some := [path for path in paths if _has_colon(path) == odd]:
                yield kind, some


def _has_colon(path: str) -> bool:
    return path.startswith("file:") and ":" in path.rsplit("/", 1)[-1]


def reader(spark: SparkSession, paths: Sequence[str]) -> DataFrameReader:
    """Return a reader of files that are read together, to which their `names` are given."""
    # Without recursiveFileLookup, directories like day=1 would become columns.
    options = _NAMED_WITH_COLON if _has_colon(paths[0]) else {}
    return spark.read.option("recursiveFileLookup", True).options(**options)


def names(paths: Sequence[str]) -> list[str]:
    """Return the names of files as Spark's reader takes them."""
    return [path if _has_colon(path) else escaped(path) for path in paths]


def find_long_lines(spark: SparkSession, files: Files, listed: Versions, longest: int) -> None:
    """Note the lines of uncompressed files that have more bytes than the longest may have."""
    for path in files.json:
        length, _ = listed.get(same_name(path), _NO_BYTES)
        if length > longest and not _COMPRESSED.search(path):
            with _opened(spark, path) as read:
                if long := list(long_lines(read, length, longest)):
                    files.long[path] = long


@contextmanager
def _opened(spark: SparkSession, path: str) -> Iterator[Callable[[int, int], bytes]]:
    """Open a file of any of Hadoop's file systems, and yield what reads so many bytes from a place on."""
    conf = spark._jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())  # type: ignore[union-attr]
    for key, value in _NAMED_WITH_COLON.items() if _has_colon(path) else ():
        conf.set(key, value)
    at = hadoop_path(spark, path)
    stream = at.getFileSystem(conf).open(at)

    def read(place: int, count: int) -> bytes:
        try:
            stream.seek(place)
            return bytes(stream.readNBytes(count))
        except Exception as problem:
            if any("EOFException" in kind for kind, _ in causes(problem)):  # the file is shorter by now
                return b""
            raise

    try:
        yield read
    finally:
        stream.close()
