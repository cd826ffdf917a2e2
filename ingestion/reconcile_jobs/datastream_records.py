"""The records of Datastream's files, as staging holds them, and why a file cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from reconcile_jobs.avro_json import AvroError, json_records
from reconcile_jobs.datastream_files import Files, kinds, names, reader, same_name
from reconcile_jobs.json_lines import PackedError, packed_lines
from reconcile_jobs.long_records import LONGEST, LongRecord, if_long
from reconcile_jobs.masks import Masks
from reconcile_jobs.process.errors import Fault, UsageError, causes, explained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    # File, place and bytes of a record.
    Found = tuple[str, str | None, int]

__all__ = ["WHOLE_FILES", "Reading", "line_of_first", "note_of_long", "object_of_path", "unreadable"]

# Rows that Python hands back to Spark at a time.
_ARROW_ROWS = 2000

# Spark must not split these files: of a line that goes beyond a part, it would read only a piece.
WHOLE_FILES = {"spark.sql.files.maxPartitionBytes": str(2**62), "spark.sql.files.minPartitionNum": "1"}


class Reading:
    """The reading of files, of whose records each may have so many bytes; a longer one is a note of itself.

    `masks`: those of the records; None for records as they were delivered. `found`: file, place and bytes of the longer
    ones, as far as frames were evaluated; not of lines in `Files.long`.
    """

    def __init__(self, spark: SparkSession, longest: int = LONGEST, masks: Masks | None = None) -> None:
        self.spark, self.longest, self.masks = spark, longest, masks
        found: set[Found] = set()
        self.found = spark.sparkContext.accumulator(found, _Union())  # type: ignore[arg-type]

    def records(self, kind: str, paths: Sequence[str]) -> DataFrame:
        """Return `record` and `origin` of files of one kind."""
        if kind in ("json", "long json"):
            lines = _lines(self.spark, paths, self.longest if kind == "long json" else None)
            if self.masks is not None:
                return _masked_lines(lines, self.masks)
            return lines.selectExpr("value AS record", "_metadata.file_path AS origin")
        files = reader(self.spark, paths).format("binaryFile").load(names(paths))
        rows, longest, found = _avro_rows if kind == "avro" else _packed_rows, self.longest, self.found
        masks = self.masks

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for content, origin in zip(batch.column("content"), batch.column("origin"), strict=True):
                    yield from rows(content.as_py(), origin.as_py(), longest, found, masks)

        return files.selectExpr("content", "_metadata.file_path AS origin").mapInArrow(
            read, "record string, origin string"
        )


class _Union:
    """How sets of several tasks are added up; a task that runs twice adds nothing."""

    def zero(self, value: set[Any]) -> set[Any]:
        return set()

    def addInPlace(self, one: set[Any], other: set[Any]) -> set[Any]:
        return one | other


def _masked_lines(lines: DataFrame, masks: Masks) -> DataFrame:
    from pyspark.sql import functions as f

    # Not through Arrow, which hands over one row at a time here: see the settings of the job. As bytes, since what is
    # no UTF-8 is not staged.
    mask = f.udf(lambda line: masks.record(bytes(line)), "string", useArrow=False)
    delivered = lines.selectExpr("cast(value AS binary) AS line", "_metadata.file_path AS origin")
    return delivered.select(mask("line").alias("record"), "origin")


def _lines(spark: SparkSession, paths: Sequence[str], longest: int | None = None) -> DataFrame:
    # A carriage return may stand between the values of a record; only a line feed ends it.
    lines = reader(spark, paths).option("lineSep", "\n")
    if longest is not None:
        lines = lines.option("mapreduce.input.linerecordreader.line.maxlength", longest + 1)
    return lines.text(names(paths))


def line_of_first(reading: Reading, files: Files, origin: str, found: DataFrame) -> tuple[str, int | None]:
    """Return the file that an origin names, and the number of its first line that is one of the records in `found`.

    The number is None for an Avro file, which has no lines; for records that were masked, whose lines are not in
    staging; for a file with long lines, which Spark leaves out, so that the lines cannot be counted; and for a file
    that no longer has such a line. The whole file is read.
    """
    # An origin is a URL; the files of a micro-batch have their plain names.
    of_name = {same_name(path): path for path in [*files.avro, *files.json]}
    path = of_name.get(same_name(unquote(origin))) or of_name.get(same_name(origin)) or origin
    (kind, _), *_ = kinds(Files(json=[path], long=files.long)) if path in files.json else [("avro", [])]
    if reading.masks is not None:
        return path, None
    if kind == "packed json":
        lines = reading.records(kind, [path])
        lines = lines.selectExpr("xxhash64(record) AS digest", "0 AS block", "monotonically_increasing_id() AS place")
    elif kind == "json":
        places = ["_metadata.file_block_start AS block", "monotonically_increasing_id() AS place"]
        lines = _lines(reading.spark, [path]).selectExpr("xxhash64(value) AS digest", *places)
    else:
        return path, None
    wanted = found.selectExpr("xxhash64(record) AS digest").distinct()
    # Spark reads a long file in blocks, and several of them at a time.
    first = lines.join(wanted, "digest", "left_semi").orderBy("block", "place").first()
    if first is None:  # the file was written to since
        return path, None
    before = lines.where((lines.block < first.block) | ((lines.block == first.block) & (lines.place < first.place)))
    return path, before.count() + 1


def _rows(lines: Sequence[bytes], origin: str) -> pa.RecordBatch:
    import pyarrow as pa

    # What is no UTF-8 goes to quarantine with its bytes.
    records = pa.array(lines, pa.binary()).view(pa.string())
    return pa.RecordBatch.from_arrays([records, pa.array([origin] * len(lines), pa.string())], ["record", "origin"])


def _note(long: LongRecord, origin: str, found: Accumulator[set[Found]], masks: Masks | None) -> bytes:
    found.add({(origin, long.place, long.bytes)})
    return note_of_long(long, origin, masks).encode()


def note_of_long(long: LongRecord, origin: str, masks: Masks | None) -> str:
    """Return what staging holds in place of a record of this file that is too long."""
    object_ = object_of_path(origin)
    return long.note(object_) if masks is None else masks.note_of_long(long, object_)


def _packed_rows(
    content: bytes, origin: str, longest: int, found: Accumulator[set[Found]], masks: Masks | None = None
) -> Iterator[pa.RecordBatch]:
    for lines in packed_lines(content, origin, longest):
        rows = [
            _masked(line, masks) if isinstance(line, bytes) else _note(line, origin, found, masks) for line in lines
        ]
        yield _rows(rows, origin)


def _masked(record: bytes, masks: Masks | None) -> bytes:
    return record if masks is None else masks.record(record).encode()


def _avro_rows(
    content: bytes, origin: str, longest: int, found: Accumulator[set[Found]], masks: Masks | None = None
) -> Iterator[pa.RecordBatch]:
    rows: list[bytes] = []
    size = 0
    records = json_records(content) if masks is None else _without_values(json_records(content))
    for number, record in enumerate(records, 1):
        long = if_long(record, longest, f"record {number}")
        rows.append(_note(long, origin, found, masks) if long else _masked(record.encode(), masks))
        size += len(rows[-1])
        # longest: the most bytes that one record may have. A batch ends with the record that takes it beyond this size.
        if len(rows) == _ARROW_ROWS or size > longest:
            yield _rows(rows, origin)
            rows, size = [], 0
    if rows:
        yield _rows(rows, origin)


def _without_values(records: Iterator[str]) -> Iterator[str]:
    """Yield the records. What is wrong with a file is said without what a library says of it: that may be a value."""
    try:
        yield from records
    except AvroError as problem:
        why = re.sub(r"^(no whole Avro file: \w+): .*?( \(after byte \d+\))?$", r"\1\2", str(problem), flags=re.DOTALL)
        raise AvroError(why) from None


# Datastream writes an object's files below a directory of its name, by the minute.
_DATED = re.compile(r"/([^/]+)(?:/\d{2,4}){5}/[^/]+$")


def object_of_path(path: str) -> str | None:
    """Return the object whose name a directory of the file has; None if the path is not as Datastream writes it."""
    found = _DATED.search(unquote(path))
    return found[1] if found else None


def unreadable(reading: Reading, files: Files) -> Iterator[tuple[str, str]]:
    """Yield the files that cannot be read and why, found by reading halves. Raises Fault for what a retry may cure."""
    for kind, paths in kinds(files):
        pending = [paths]
        while pending:
            some = pending.pop()
            try:
                reading.records(kind, some).write.format("noop").mode("overwrite").save()
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
    # First: what these errors say may quote a name of the file's schema, in which any of the words below may stand.
    if found := re.search(rf"(?:{AvroError.__name__}|{PackedError.__name__}): (.*)", story):
        return found[1].strip()
    if re.search(r"Permission denied|AccessControl|AccessDenied", story):
        # Not what is to be set aside: it is read once the right is given.
        raise UsageError(
            f"The file {path} cannot be read, because the job has no permission, and nothing of this batch was "
            "appended: give the job's user the right to read it, and run this again."
        ) from problem
    if re.search(r"OutOfMemoryError|MemoryError", story):
        raise UsageError(
            f"There is not enough memory to read the file {path}, and nothing of this batch was appended: give "
            "--driver-memory more (on a cluster --executor-memory), or deliver it in smaller files."
        ) from problem
    if "Python worker exited" in story:  # whoever killed it: what it was reading is no torn file by that
        raise Fault(
            f"The Python process that read the file {path} was ended before it had read it, as the system does when "
            "memory runs out, and nothing of this batch was appended: run the same command again; if it says this "
            "again, give Python more memory (spark.executor.memoryOverhead), or deliver it in smaller files."
        ) from problem
    for pattern, why in _TORN:
        if re.search(pattern, story):
            return why
    raise Fault(f"The file {path} could not be read. {explained(problem)}") from problem


_TORN = [
    (r"Too many bytes before (?:delimiter|newline)", "it has a line of more than 2 GiB"),
    (r"FILE_LENGTH_EXCEEDS|exceeds the max length", "it has more than 2 GiB, and cannot be read in parts"),
    (r"EOFException", "it ends in the middle"),
    (
        r"not a gzip file|gzip stream|zip\.|incorrect|invalid (?:block|stored|distance|code)|(?i:bzip|bad block)",
        "its content does not have the format that its name shows, or is damaged",
    ),
    (r"FILE_NOT_EXIST|PATH_NOT_FOUND|does not exist", "it no longer exists"),
]
