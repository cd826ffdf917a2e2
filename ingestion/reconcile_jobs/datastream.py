"""Datastream's files, JSON lines and Avro, become appends to a staging table, each file exactly once."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from reconcile_jobs import failpoints
from reconcile_jobs.avro_json import AvroError, json_records
from reconcile_jobs.caller import Caller
from reconcile_jobs.errors import DataError, Fault, JobError, UsageError, causes, explained, in_sentences
from reconcile_jobs.landing_area import HiddenFiles, check_names, escaped, files_of_batch, is_hidden, landing_area
from reconcile_jobs.session import settings, ship_by_value
from reconcile_jobs.staging import Staging, TableName, hadoop_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

__all__ = ["Job", "Totals", "run"]

SOURCE = "datastream"

# By the end of their names; everything else is said to be neither.
_JSON = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2))?$")
_AVRO = re.compile(r"\.avro$")
_NEVER_EMPTY = re.compile(r"\.(avro|gz|bz2)$")  # not even without a record

# The file source forgets, and silently ignores, what is older than a week; a century is beyond any landing area's life.
_FILE_AGE = "36500d"

# Rows that Python hands back to Spark at a time.
_ARROW_ROWS = 2000

_MOST_NAMED = 3

# Seconds that a run waits at its end for the search for hidden files, which lists one directory after the other.
_SEARCH = 30.0


@dataclass(frozen=True)
class Job:
    """What the command line asks for. `every` is Spark's interval between passes, None for one pass."""

    path: str
    staging: TableName
    format: str = "auto"
    checkpoint: str | None = None
    max_files: int | None = None
    every: str | None = None
    skip_corrupt_files: bool = False


@dataclass
class Totals:
    """What one run has appended so far."""

    files: int = 0
    records: int = 0
    unreadable: int = 0
    corrupt_files: int = 0
    ignored_files: int = 0
    changed_files: int = 0
    # And directories, of which Spark reads nothing; None if the search for them took longer than the run.
    hidden_files: int | None = None
    first_batch: int | None = None
    last_batch: int | None = None


@dataclass
class _Files:
    json: list[str] = field(default_factory=list)
    avro: list[str] = field(default_factory=list)
    # Why a file is not read, for each that is not.
    corrupt: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.json) + len(self.avro)


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append every file under the path that was not yet appended, and return the counts of this run.

    With `every`, goes on until `stop` is set. Raises DataError for a file that cannot be read (nothing of its batch is
    then appended), UsageError, or Fault.
    """
    with in_sentences(), settings(spark, _SETTINGS):
        return _Run(spark, job, caller or Caller()).run()


class _Run:
    def __init__(self, spark: SparkSession, job: Job, caller: Caller) -> None:
        self.spark, self.job = spark, job
        self.stop, self.say, self.progress = caller.stop, caller.say, caller.progress
        self.totals, self.started = Totals(), time.monotonic()
        self.failure: Exception | None = None
        self.reading = 0  # files of the batch being appended
        ship_by_value()

    def run(self) -> Totals:
        pattern, path = landing_area(self.spark, self.job.path)
        check_names(self.spark, path)
        self.staging = Staging(self.spark, self.job.staging, f"{SOURCE} {path}")
        self.checkpoint = self._checkpoint()
        hidden = HiddenFiles(self.spark, pattern)
        query = self._query(pattern)
        self.query_id = str(query.id)
        self._known.set()
        try:
            while not query.awaitTermination(0.5):
                self._show()
                self._name_hidden(hidden.found(0))
                if self.stop.is_set():
                    query.stop()
                    break
        except Exception as problem:
            # What went wrong inside a batch comes back wrapped; here is what it was.
            raise self.failure or problem from None
        finally:
            query.stop()
        if self.stop.is_set() and self.job.every is None:
            raise Fault("Stopped before everything was appended: run the same command again.")
        failpoints.reach("after_checkpoint")
        self._name_hidden(hidden.found(0 if self.stop.is_set() else _SEARCH))
        return self.totals

    def _checkpoint(self) -> str:
        location, lost = self.staging.open_checkpoint(self.job.checkpoint)
        if lost:
            self.say(
                f"the checkpoint of {self.job.staging} is lost: every file under the path is appended again, "
                "under new batch numbers"
            )
        return location

    def _name_hidden(self, found: list[str] | None) -> None:
        if found is None or self.totals.hidden_files is not None:
            return
        self.totals.hidden_files = len(found)
        if found:
            self.say(f"hidden, and not read: {found[0]} (names that begin with . or _){_more_than_one(found)}")

    def _query(self, pattern: str) -> Any:
        self._known = threading.Event()
        # This source only finds the files; reading them is a matter of each batch, which then can leave one out.
        found = (
            self.spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length bigint, content binary")
            .option("recursiveFileLookup", True)
            .option("maxFileAge", _FILE_AGE)
            .option("ignoreCorruptFiles", False)
            .option("ignoreMissingFiles", False)
        )
        if self.job.max_files is not None:
            found = found.option("maxFilesPerTrigger", self.job.max_files)
        writer = (
            found.load(pattern)
            .select("path", "length", "modificationTime")
            .writeStream.foreachBatch(self._append)
            .option("checkpointLocation", self.checkpoint)
        )
        if self.job.every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.job.every).start()

    def _append(self, found: DataFrame, epoch: int) -> None:
        try:
            if self.totals.last_batch is not None:
                failpoints.reach("after_checkpoint")  # of the batch before
            self._known.wait()
            self._append_files(found, epoch)
            failpoints.reach("before_checkpoint")
        except Exception as problem:
            self.failure = problem
            raise

    def _append_files(self, found: DataFrame, epoch: int) -> None:
        paths = files_of_batch(self.spark, self.checkpoint, epoch)
        files = _Files()
        for path in paths:
            kind = _format(path, self.job.format)
            if is_hidden(path.rsplit("/", 1)[-1]):
                # Spark lists files of a few such names, as _metadata.json, and then reads nothing of them.
                files.ignored[path] = "its name is hidden: it begins with . or _"
            elif kind is None:
                files.ignored[path] = "its name ends neither as JSON (.json, .jsonl, .ndjson, .gz) nor as Avro (.avro)"
            else:
                (files.json if kind == "json" else files.avro).append(path)
        listed = _versions(found)
        self._set_aside(files, self._missing(listed, paths))
        self.reading = len(files)
        while True:
            try:
                appended = self.staging.append(self._frame(files), SOURCE, self.query_id, self.checkpoint, epoch, paths)
                break
            except JobError:
                raise
            except Exception as problem:
                broken = {} if self.stop.is_set() else dict(_unreadable(self.spark, files))
                if not broken:
                    raise explained(problem) from problem
                self._set_aside(files, broken)
        self._count(files, appended.rows, appended.without_object, appended.batch)
        self._name_changed(files, listed)

    def _missing(self, listed: dict[str, _Version], paths: Sequence[str]) -> dict[str, str]:
        # Spark leaves out, without a word, what has vanished since it was found and what has no bytes.
        missing = {}
        for path in paths:
            if _key(path) in listed:
                continue
            if _version(self.spark, path) is None:
                missing[path] = "it was there, and has vanished"
            elif _NEVER_EMPTY.search(path):
                missing[path] = "it is empty"
        return missing

    def _name_changed(self, files: _Files, listed: dict[str, _Version]) -> None:
        """Name the files that were written to since they were found. Raises DataError, unless such are passed over.

        Spark reads as many bytes as there were when it looked, and never comes back to a file.
        """
        read = [*files.json, *files.avro]
        now = _present(self.spark, files)
        changed = [path for path in read if now[_key(path)] not in (None, listed.get(_key(path), _NO_BYTES))]
        if not changed:
            return
        sentence = (
            f"{changed[0]} was written to while it was read{_more_than_one(changed)}, and not all that it holds now "
            f"may be in {self.job.staging}: deliver it again under another name, and let files appear under "
            "--path when they are whole"
        )
        if not self.job.skip_corrupt_files:
            raise DataError(f"{sentence}.")
        self.totals.changed_files += len(changed)
        self.say(sentence)

    def _set_aside(self, files: _Files, broken: dict[str, str]) -> None:
        broken = {path: why for path, why in broken.items() if path not in files.ignored}
        if not broken:
            return
        if not self.job.skip_corrupt_files:
            raise DataError(_complaint(broken))
        files.corrupt |= broken
        files.json = [path for path in files.json if path not in broken]
        files.avro = [path for path in files.avro if path not in broken]

    def _frame(self, files: _Files) -> DataFrame:
        frames = [_records(self.spark, kind, paths) for kind, paths in _kinds(files)]
        notes = [
            (json.dumps({name: path, "error": why}, ensure_ascii=False), path)
            for name, aside in (("corrupt_file", files.corrupt), ("ignored_file", files.ignored))
            for path, why in aside.items()
        ]
        if notes or not frames:
            frames.append(self.spark.createDataFrame(notes, "record string, origin string"))
        united = frames[0]
        for frame in frames[1:]:
            united = united.unionAll(frame)
        return united

    def _count(self, files: _Files, rows: int, without_object: int, batch: int | None) -> None:
        aside = len(files.corrupt) + len(files.ignored)
        total = self.totals
        total.files += len(files)
        total.records += rows - aside
        total.unreadable += without_object - aside
        total.corrupt_files += len(files.corrupt)
        total.ignored_files += len(files.ignored)
        total.first_batch = total.first_batch or batch
        total.last_batch = batch or total.last_batch
        for what, named in (("cannot be read", files.corrupt), ("ignored", files.ignored)):
            if named:
                path, why = next(iter(named.items()))
                self.say(f"{what}: {path} ({why}){_more_than_one(named)}; recorded in {self.job.staging}")

    def _show(self) -> None:
        total = self.totals
        seconds = time.monotonic() - self.started
        text = f"{total.files} files, {total.records:,} records, {total.records / seconds:,.0f}/s"
        if self.reading:
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage)
            tasks = sum(stage.numTasks for stage in stages if stage)
            text += f"; reading {self.reading} files" + (f", {100 * done // tasks} %" if tasks else "")
        self.progress(text)


_SETTINGS = {
    # A cluster's defaults may skip what cannot be read.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # One Avro file after the other fits into memory where a thousand may not.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    # A path may hold ${...}, which is not for Spark to fill in.
    "spark.sql.variable.substitute": "false",
    # A second writer is refused; Spark would stop the first.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
}


# Of a local file Hadoop reads the checksum as well, `.<name>.crc`, which it cannot spell where the name has a colon;
# nor can it look for such a name as a pattern.
_NAMED_WITH_COLON = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    "__globPaths__": "false",
}


# What tells a file from what it was: bytes, and when it was written last.
_Version = tuple[int, datetime]
# Whenever it was written: Spark lists no such file.
_NO_BYTES: _Version = (0, datetime.min)


def _versions(files: DataFrame) -> dict[str, _Version]:
    return {_key(row.path): (row.length, row.modificationTime) for row in files.collect()}


def _version(spark: SparkSession, path: str) -> _Version | None:
    """Return the version that a file has now, None where it is gone."""
    at = hadoop_path(spark, path)
    files = at.getFileSystem(spark._jsc.hadoopConfiguration())
    if not files.exists(at):
        return None
    status = files.getFileStatus(at)
    written = datetime.fromtimestamp(status.getModificationTime() / 1000)
    return (int(status.getLen()), written) if status.getLen() else _NO_BYTES


def _present(spark: SparkSession, files: _Files) -> dict[str, _Version | None]:
    """Return the versions that files have now; Spark looks at many at a time, but at none if one is gone."""
    from pyspark.errors import AnalysisException

    found: dict[str, _Version | None] = {}
    for _, paths in _kinds(files):
        try:
            listed = _reader(spark, paths).format("binaryFile").load(_names(paths))
            found |= {_key(path): _NO_BYTES for path in paths}
            found |= _versions(listed.select("path", "length", "modificationTime"))
        except AnalysisException:
            found |= {_key(path): _version(spark, path) for path in paths}
    return found


def _key(path: str) -> str:
    # file:/a and file:///a are one file.
    return re.sub(r"^(\w+):/+", r"\1:/", path)


def _format(path: str, asked: str) -> str | None:
    if asked != "auto":
        return asked
    return "json" if _JSON.search(path) else "avro" if _AVRO.search(path) else None


def _kinds(files: _Files) -> Iterator[tuple[str, list[str]]]:
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


def _records(spark: SparkSession, kind: str, paths: Sequence[str]) -> DataFrame:
    """Return `record` and `origin` of files of one kind."""
    reader, names = _reader(spark, paths), _names(paths)
    if kind == "json":
        # A carriage return may stand between the values of a record; only a line feed ends it.
        return reader.option("lineSep", "\n").text(names).selectExpr("value AS record", "_metadata.file_path AS origin")
    files = reader.format("binaryFile").load(names).selectExpr("content", "_metadata.file_path AS origin")
    return files.mapInArrow(_avro_rows, "record string, origin string")


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


def _unreadable(spark: SparkSession, files: _Files) -> Iterator[tuple[str, str]]:
    """Yield the files that cannot be read and why, found by reading halves. Raises Fault for what a retry may cure."""
    for kind, paths in _kinds(files):
        pending = [paths]
        while pending:
            some = pending.pop()
            try:
                _records(spark, kind, some).write.format("noop").mode("overwrite").save()
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


def _more_than_one(named: Collection[str]) -> str:
    return f", and {len(named) - 1} more" if len(named) > 1 else ""


def _complaint(broken: dict[str, str]) -> str:
    named = [f"{path} ({why})" for path, why in list(broken.items())[:_MOST_NAMED]]
    more = f" and {len(broken) - _MOST_NAMED} more" if len(broken) > _MOST_NAMED else ""
    noun = "file" if len(broken) == 1 else f"{len(broken)} files"
    return (
        f"Cannot read the {noun} {', '.join(named)}{more}, and nothing of this batch was appended: deliver again under "
        "the same path and run this again, or give --skip-corrupt-files to record the name and go on."
    )
