"""Datastream's files, JSON lines and Avro, become appends to a staging table, each file exactly once."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reconcile_jobs.append_run import AppendRun
from reconcile_jobs.datastream_files import (
    Files,
    Versions,
    changed_since,
    find_long_lines,
    format_of_file,
    kinds,
    missing,
    of_other_codecs,
    versions,
)
from reconcile_jobs.datastream_records import WHOLE_FILES, Reading, line_of_first, note_of_long, unreadable
from reconcile_jobs.erased_keys import Register
from reconcile_jobs.landing_area import (
    HiddenFiles,
    broken_links,
    encoding_of_names,
    files_of_batch,
    is_hidden,
    landing_area,
    lies_open_below,
    local_tops,
)
from reconcile_jobs.long_records import LONGEST, LongRecord
from reconcile_jobs.masks import Masks, keep_masks
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.counted import first_of
from reconcile_jobs.process.errors import DataError, JobError, UsageError, explained, in_sentences
from reconcile_jobs.process.session import SKIP_NO_FILE, settings
from reconcile_jobs.staging import Appended, Staging, TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from reconcile_jobs.datastream_records import Found

__all__ = ["Job", "Totals", "run"]

SOURCE = "datastream"

# The file source forgets, and silently ignores, what is a week older than the newest file. The newest one may be of the
# year 2200, if a clock was wrong when it was written. A hundred thousand years are beyond what file systems can say.
_FILE_AGE = "36500000d"

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
    longest_record: int = LONGEST
    masks: Masks | None = None
    erasure_key_file: str | None = None


@dataclass
class Totals:
    """What one run has appended so far."""

    files: int = 0
    records: int = 0
    unreadable: int = 0
    # Those of the records in whose place staging has a note.
    long_records: int = 0
    # Those of erased keys, which were dropped; they are none of the records.
    erased_records: int = 0
    corrupt_files: int = 0
    ignored_files: int = 0
    changed_files: int = 0
    broken_links: int = field(default=0, metadata={"latest": True})
    # And directories, of which Spark reads nothing; None if the search for them took longer than the run.
    hidden_files: int | None = field(default=None, metadata={"latest": True})
    first_batch: int | None = None
    last_batch: int | None = None


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append every file under the path that was not yet appended, and return the counts of this run.

    With `every`, goes on until `stop` is set. Raises DataError for a file that cannot be read (nothing of its batch is
    then appended), UsageError, or Fault.
    """
    with in_sentences(), settings(spark, _SETTINGS):
        return _Run(spark, job, caller).run()


class _Run(AppendRun[Totals]):
    def __init__(self, spark: SparkSession, job: Job, caller: Caller | None) -> None:
        super().__init__(spark, caller, Totals())
        self.job = job
        self.has_named_unreadable = False
        self.reading = 0  # files of the batch being appended

    def run(self) -> Totals:
        pattern, path = landing_area(self.spark, self.job.path)
        self._name_broken_links(pattern)
        register = Register(self.job.erasure_key_file)
        self.staging = Staging(self.spark, self.job.staging, f"{SOURCE} {path}", register=register)
        if in_clear := keep_masks(self.staging, self.job.masks):
            self.say(in_clear)
        self.checkpoint, lost = self.staging.open_checkpoint(self.job.checkpoint)
        if lost:
            self.say(
                f"the checkpoint of {self.job.staging} is lost: every file under the path is appended again, "
                "under new batch numbers"
            )
        if lies_open_below(self.checkpoint, path):
            raise UsageError(
                f"The checkpoint {self.checkpoint} lies below --path, and each run would append the files that the one "
                "before has written there: name another directory with --checkpoint."
            )
        self.hidden = HiddenFiles(self.spark, pattern)
        self.follow(self._writer(pattern), self.checkpoint, self._append, self._ends)
        if self.stop.is_set() and self.job.every is None:
            self.refuse_early_end()
        self._name_hidden(self.hidden.found(0 if self.stop.is_set() or self.comes_back else _SEARCH))
        return self.totals

    def _ends(self, query: Any) -> bool:
        """Return whether the query is to end, since the job was asked to stop."""
        self._name_hidden(self.hidden.found(0))
        if is_stopped := self.stop.is_set():
            # Otherwise the end of the query waits for the end of the batch. Cancelling is safe: an append is atomic.
            self.spark.sparkContext.cancelAllJobs()
        return is_stopped

    def _name_broken_links(self, pattern: str) -> None:
        found = broken_links(local_tops(self.spark, pattern), encoding_of_names(self.spark))
        self.totals.broken_links = len(found)
        if found:
            self.say(f"not read, because the target does not exist: the link {found[0]}{_more_than_one(found)}")

    def _name_hidden(self, found: list[str] | None) -> None:
        if found is None or self.totals.hidden_files is not None:
            return
        self.totals.hidden_files = len(found)
        if found:
            self.say(
                "not read, because names that begin with . or _, or end in ._COPYING_, are hidden: "
                f"{found[0]}{_more_than_one(found)}"
            )

    def _writer(self, pattern: str) -> DataStreamWriter:
        # This source only finds the files; reading them is a matter of each batch, which then can leave one out.
        found = (
            self.spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length bigint, content binary")
            .options(recursiveFileLookup=True, maxFileAge=_FILE_AGE, ignoreCorruptFiles=False, ignoreMissingFiles=False)
        )
        if self.job.max_files is not None:
            found = found.option("maxFilesPerTrigger", self.job.max_files)
        writer = found.load(pattern).select("path", "length", "modificationTime").writeStream
        every = self.job.every
        return writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)

    def _append(self, found: DataFrame, epoch: int) -> None:
        paths = files_of_batch(self.spark, self.checkpoint, epoch)
        files = Files()
        for path in paths:
            kind = format_of_file(path, self.job.format)
            if is_hidden(path.rsplit("/", 1)[-1]):
                # Spark lists files of a few such names, as _metadata.json, and then reads nothing of them.
                files.ignored[path] = "its name is hidden: it begins with . or _"
            elif kind is None:
                files.ignored[path] = (
                    "its name does not end like a JSON file (.json, .jsonl, .ndjson, .gz) or an Avro file (.avro)"
                )
            else:
                (files.json if kind == "json" else files.avro).append(path)
        listed = versions(found)
        self._set_aside(files, missing(self.spark, paths, listed) | of_other_codecs(files.json))
        self.reading = len(files)
        find_long_lines(self.spark, files, listed, self.job.longest_record)
        with settings(self.spark, WHOLE_FILES if files.long else {}):
            appended, long = self._append_all(files, epoch, paths)
        self._count(files, appended)
        self._name_long(files, long)
        self._name_unreadable(files, appended.batch)
        self._name_changed(files, listed)

    def _append_all(self, files: Files, epoch: int, paths: list[str]) -> tuple[Appended, set[Found]]:
        """Append the records of the files, and return what was appended and which records are too long.

        A file that cannot be read fails the whole append. Such files are set aside, and the append is tried again
        without them. `paths` are all files of the micro-batch, so a retry is the same append.
        """
        while True:
            reading = self._reading()
            try:
                frame = self._frame(reading, files)
                appended = self.staging.append(frame, SOURCE, self.query_id, self.checkpoint, epoch, paths)
                return appended, reading.found.value
            except JobError:
                raise
            except Exception as problem:
                broken = {} if self.stop.is_set() else dict(unreadable(reading, files))
                if not broken:
                    raise explained(problem) from problem
                self._set_aside(files, broken)

    def _reading(self) -> Reading:
        return Reading(self.spark, self.job.longest_record, self.job.masks)

    def _name_long(self, files: Files, found: set[Found]) -> None:
        of_lines = {(path, long.place, long.bytes) for path, lines in _long_of(files) for long in lines}
        if not (known := of_lines | found):
            return
        self.totals.long_records += len(known)
        path, place, length = min(known, key=lambda long: (long[0], len(long[1] or ""), long[1]))
        self.say(
            f"too long for staging: the record of {length:,} bytes at {place} of {path}{_more_than_one(known)}; "
            f"{self.job.staging} has a note in its place, which models put into quarantine. The limit is "
            f"{self.job.longest_record:,} bytes; raise it with --longest-record"
        )

    def _name_changed(self, files: Files, listed: Versions) -> None:
        """Name the files that were written to while they were read. Raises DataError, unless such are passed over."""
        changed = changed_since(self.spark, files, listed)
        if not changed:
            return
        sentence = (
            f"{changed[0]} was written to while it was read{_more_than_one(changed)}, so {self.job.staging} may lack "
            "a part of its records: deliver the file again under another name, and move files to --path only when "
            "they are complete"
        )
        if not self.job.skip_corrupt_files:
            raise DataError(f"{sentence}.")
        self.totals.changed_files += len(changed)
        self.say(sentence)

    def _set_aside(self, files: Files, broken: dict[str, str]) -> None:
        broken = {path: why for path, why in broken.items() if path not in files.ignored}
        if not broken:
            return
        if not self.job.skip_corrupt_files:
            raise DataError(_complaint(broken))
        files.corrupt |= broken
        files.json = [path for path in files.json if path not in broken]
        files.avro = [path for path in files.avro if path not in broken]

    def _frame(self, reading: Reading, files: Files) -> DataFrame:
        frames = [reading.records(kind, paths) for kind, paths in kinds(files)]
        notes = [
            (json.dumps({name: path, "error": why}, ensure_ascii=False), path)
            for name, aside in (("corrupt_file", files.corrupt), ("ignored_file", files.ignored))
            for path, why in aside.items()
        ]
        notes += [(note_of_long(line, path, self.job.masks), path) for path, lines in _long_of(files) for line in lines]
        if notes or not frames:
            frames.append(self.spark.createDataFrame(notes, "record string, origin string"))
        united = frames[0]
        for frame in frames[1:]:
            united = united.unionAll(frame)
        return united

    def _count(self, files: Files, appended: Appended) -> None:
        aside = len(files.corrupt) + len(files.ignored)
        total = self.totals
        total.files += len(files)
        total.records += appended.rows - aside - appended.erased
        total.unreadable += appended.without_object - aside
        total.erased_records += appended.erased
        total.corrupt_files += len(files.corrupt)
        total.ignored_files += len(files.ignored)
        self.count(appended.batch)
        for what, named in (("cannot be read", files.corrupt), ("ignored", files.ignored)):
            if named:
                path, why = next(iter(named.items()))
                self.say(f"{what}: {path} ({why}){_more_than_one(named)}; recorded in {self.job.staging}")

    def _name_unreadable(self, files: Files, batch: int | None) -> None:
        """Say where the first record stands that names no object. Once a run, since its file is read again for it."""
        if self.has_named_unreadable or not self.totals.unreadable:
            return
        self.has_named_unreadable = True
        unread = self.spark.table(self.job.staging.sql).where(f"batch = {batch} AND object IS NULL")
        aside = [*files.corrupt, *files.ignored]
        unread = unread.where(~unread.origin.isin(aside)) if aside else unread
        found = unread.selectExpr("min(origin) AS origin", "count(*) AS records", "count(DISTINCT origin) AS files")
        ((origin, count, in_files),) = found.collect()
        path, line = line_of_first(self._reading(), files, origin, unread.where(unread.origin == origin))
        place = f"line {line} of {path}" if line else f"a record of {path}"
        more = f", and {count - 1:,} more, in {in_files:,} file{'s' if in_files > 1 else ''}" if count > 1 else ""
        whole = "a line must be one whole record, as JSON, with its object" if line else "it has no object"
        self.say(
            f"not a record: {place}{more}; {whole}. {self.job.staging} has such lines "
            f"{'without their text' if self.job.masks else 'as delivered'}, without an object, and reconcile_unrouted "
            "shows them"
        )

    def show(self) -> None:
        text = self.so_far(f"{self.totals.files} files")
        if self.reading:
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage)
            tasks = sum(stage.numTasks for stage in stages if stage)
            text += f"; reading {self.reading} files" + (f", {100 * done // tasks} %" if tasks else "")
        self.progress(text)


_SETTINGS = {
    **SKIP_NO_FILE,
    # One Avro file after the other fits into memory where a thousand may not.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    # A path may hold ${...}, which is not for Spark to fill in.
    "spark.sql.variable.substitute": "false",
    # A second writer is refused; Spark would stop the first.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
}


def _long_of(files: Files) -> list[tuple[str, list[LongRecord]]]:
    return [(path, files.long[path]) for path in files.json if path in files.long]


def _more_than_one(named: Collection[Any]) -> str:
    return f", and {len(named) - 1} more" if len(named) > 1 else ""


def _complaint(broken: dict[str, str]) -> str:
    named = first_of([f"{path} ({why})" for path, why in broken.items()], _MOST_NAMED)
    noun = "file" if len(broken) == 1 else f"{len(broken)} files"
    return (
        f"Cannot read the {noun} {named}, and nothing of this batch was appended: deliver again "
        "under the same path and run the same command again, or give --skip-corrupt-files to record the name and "
        "continue."
    )
