"""A Spanner change stream becomes appends to a staging table, window by window, each record exactly once.

What staging holds of a batch, besides the contract of `staging.py` (`object` is the table's name as change records
have it, `record` one data change record as in `stream_decoder`, `origin` stream/partition token):

- exactly one row with object `#cut`: `{"cut_time": ..., "start": ...}`, the commit timestamps that the batch holds,
  both included, nine digits and Z. All commits up to `cut_time` are in this batch and those before it. A window without
  records leaves nothing behind, unless it is the first of a checkpoint or the last of a pass, or no record came for
  five minutes.
- with --backfill, in the very first batch, the rows that were there at `start`, as in `backfill`; their origin
  is stream/backfill.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from reconcile_jobs.append_run import AppendRun
from reconcile_jobs.beginning import Beginning, first_start
from reconcile_jobs.checkpoints import forget_checkpoint, last_commit
from reconcile_jobs.erased_keys import Register
from reconcile_jobs.hadoop_files import hadoop_path, read_text
from reconcile_jobs.keyed_records import SPANNER
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import Fault, UsageError, in_sentences
from reconcile_jobs.process.session import settings
from reconcile_jobs.spanner.backfill import Table, backfill_frame, watched_tables
from reconcile_jobs.spanner.data_source import CUT, READ, SpannerChangeStream, next_start, window_length
from reconcile_jobs.spanner.queries import Client, DatabaseName
from reconcile_jobs.spanner.windows import find_change_stream, list_partitions
from reconcile_jobs.staging import Staging, TableName
from reconcile_jobs.timestamps import as_text, asked_moment, nanoseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["Job", "Totals", "run"]

SOURCE = "spanner"

# A stream that is silent still leaves a cut so often, in nanoseconds: the ledger knows how new the tables are, and a
# job that lost its checkpoint goes on from there.
_SILENCE = 300 * 10**9

# Readings of a window whose partitions do not fit, before the job gives up.
_READINGS = 3


@dataclass(frozen=True)
class Job:
    """What the command line asks for. Moments are RFC 3339, `every` Spark's interval between passes (None: one)."""

    project: str
    instance: str
    database: str
    stream: str
    staging: TableName
    start: str | None = None
    end: str | None = None
    window: str = "60s"
    heartbeat: str = "10s"
    every: str | None = None
    backfill: bool = False
    checkpoint: str | None = None
    longest_record: int = LONGEST
    tables: Sequence[str] | None = None
    partition_check: str = "fail"
    erasure_key_file: str | None = None


@dataclass
class Totals:
    """What one run has appended so far; `cut_time`: every commit up to it is in staging.

    `erased_mods`: those of erased keys, which were dropped from records.
    """

    windows: int = 0
    records: int = 0
    backfill_records: int = 0
    erased_mods: int = 0
    first_batch: int | None = None
    last_batch: int | None = None
    cut_time: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Beginning(Beginning):
    source: ClassVar[str] = SOURCE
    backfilled: str | None  # when the rows were read that were there, None: never
    checkpoint: str  # that of the beginning


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append every record committed up to now, or up to the job's `end`, and return the counts of this run.

    With `every`, goes on until `stop` is set or the end has come. Raises UsageError, or Fault.
    """
    database = DatabaseName.from_environment(job.project, job.instance, job.database)
    with in_sentences(), Client(database) as client, settings(spark, _SETTINGS):
        return _Run(spark, client, job, caller).run()


class _Run(AppendRun[Totals]):
    def __init__(self, spark: SparkSession, client: Client, job: Job, caller: Caller | None) -> None:
        super().__init__(spark, caller, Totals())
        self.client, self.job = client, job
        # The epoch of the last window if it was as long as a window can be, so that more is waiting; else None.
        self.full_window: int | None = None
        self.last_cut: int | None = None

    def run(self) -> Totals:
        end = None if self.job.end is None else asked_moment("--end", self.job.end)
        self.stream = find_change_stream(self.client, self.job.stream)
        self.watched = self._watched()
        self.now = self.client.now()
        owner = f"{SOURCE} {self.client.database}/{self.job.stream}"
        after_loss = "go on where the table ends"
        register = Register(self.job.erasure_key_file, SPANNER)
        self.staging = Staging(
            self.spark, self.job.staging, owner, without_checkpoint=after_loss, skips_epochs=True, register=register
        )
        self.checkpoint, lost = self.staging.open_checkpoint(self.job.checkpoint)
        self.begun = self._begin(lost)
        now = self.now if end is None else min(self.now, end)
        if self._committed() is None:
            self.begun.refuse_late(now, end is not None and end <= self.now, f"{as_text(self.now)} in Spanner")
        # While the job is more than a window behind, windows follow each other at once. Once it has caught up, a window
        # is read every `every`.
        self._follow(now, None)
        until = _NEVER if end is None else end
        while self.job.every is not None and not self.stop.is_set() and not self._reached(until):
            self._follow(until, self.job.every)
            if self.full_window is not None and not self.stop.is_set():
                self._follow(min(self.client.now(), until), None)
        return self.totals

    def _watched(self) -> list[Table]:
        watched = watched_tables(self.client, self.stream)
        names = {table.name for table in watched}
        for table in self.job.tables or ():
            if table not in names:
                raise UsageError(
                    f"The change stream {self.job.stream} does not watch {table}: it watches "
                    f"{', '.join(sorted(names))}; alter it, or remove --table."
                )
        return watched

    def _begin(self, lost: bool) -> _Beginning:
        """Return where the checkpoint's first window begins, kept with the table before anything is read from there."""
        kept, name, backfill = _Beginning.of(self.staging), self.staging.name, self.job.backfill
        asked = None if self.job.start is None else asked_moment("--start", self.job.start)
        started = last_commit(self.spark, self.checkpoint) is not None
        if kept is None and (kept := self._copied()):
            lost = True
        if not started and (kept is None or self.staging.last_batch == 0):
            # A run that ended before it appended anything: what it began is begun anew. Without the rows that were
            # there, at the same moment, so that nothing since then is missing.
            if kept is not None and kept.checkpoint == self.checkpoint:
                forget_checkpoint(self.spark, self.checkpoint)
            start = first_start(None if backfill else kept, asked, self.now, name, self.say)
            read = as_text(start) if backfill else None
            begun = _Beginning(
                start=start, backfill=backfill, backfilled=read, checkpoint=self.checkpoint, appended=False
            )
        else:
            assert kept is not None, "who appends has begun"
            begun = self._after_loss(kept, asked) if lost and not started else kept
        begun.refuse_other_beginning(name, asked, backfill and begun.backfilled is None)
        return begun.keep(self.staging)

    def _copied(self) -> _Beginning | None:
        """Return what the cuts tell of a table that does not say it any more: somebody has copied or changed it."""
        cuts = self.spark.table(self.staging.name.sql).where(f"object = '{CUT}'")
        start = cuts.selectExpr("min(get_json_object(record, '$.start')) AS start").collect()[0].start
        if start is None:
            _Beginning.refuse_without(self.staging)
            return None
        return _Beginning(
            start=nanoseconds(start), backfill=False, backfilled=None, checkpoint=self.checkpoint, appended=True
        )

    def _after_loss(self, kept: _Beginning, asked: int | None) -> _Beginning:
        """Return where to go on without a checkpoint: where staging ends."""
        cuts = self.spark.table(self.staging.name.sql).where(f"object = '{CUT}'")
        cut = cuts.selectExpr("max(get_json_object(record, '$.cut_time')) AS cut_time").collect()[0].cut_time
        begun = kept.without_checkpoint(self.staging.name, asked, None if cut is None else nanoseconds(cut))
        at = as_text(begun.start)
        self.say(f"the checkpoint of {self.staging.name} is lost: the job continues at {at}, where the table ends")
        return begun

    def _reached(self, target: int) -> bool:
        at = self._committed()
        return at is not None and at > target

    def _committed(self) -> int | None:
        """Return where the next window begins by the checkpoint, None before the first."""
        last = last_commit(self.spark, self.checkpoint)
        if last is None:
            return None
        offsets = read_text(self.spark, hadoop_path(self.spark, self.checkpoint, f"offsets/{last}"))
        try:
            return next_start(json.loads(offsets.splitlines()[2]))
        except (KeyError, ValueError, TypeError, AttributeError):
            raise self.staging.damaged_checkpoint(self.checkpoint, f"offsets/{last} has no time") from None

    def _follow(self, target: int, every: str | None) -> None:
        """Append window after window until everything up to `target` is in staging, or the job is to stop.

        With an interval, the job also ends when it is more than a window late.
        """
        if self._reached(target):
            return
        self.target, self.full_window = target, None
        self.spark.dataSource.register(SpannerChangeStream)
        query = self.follow(self._writer(every), self.checkpoint, self._append, lambda query: self._ends(query, every))
        if self.stop.is_set() and self.job.every is None and not self._done(query):
            self.refuse_early_end()

    def _writer(self, every: str | None) -> DataStreamWriter:
        names = ("project", "instance", "database", "stream", "window", "heartbeat")
        source = self.spark.readStream.format("spanner_change_stream").options(
            **{name: getattr(self.job, name) for name in names},
            emulatorHost=self.client.database.emulator or "",
            start=as_text(self.begun.start),
            readers=2 * self.spark.sparkContext.defaultParallelism,
            partitionCheck=self.job.partition_check,
            control=True,
            longestRecord=self.job.longest_record,
        )
        if self.target != _NEVER:
            source = source.option("end", as_text(self.target))
        return source.load().writeStream.trigger(processingTime=every or "0 seconds")

    def _done(self, query: Any) -> bool:
        """Whether the checkpoint says that the target is reached."""
        # PySpark's own progress has the offset as a text that is no JSON.
        last = query._jsq.lastProgress()
        offset = json.loads(last.json())["sources"][0]["endOffset"] if last else None
        return offset is not None and next_start(offset) > self.target

    def _ends(self, query: Any, every: str | None) -> bool:
        if self.stop.is_set() or self._done(query):
            return True
        # With an interval, when a window as long as can be was appended, and is in the checkpoint.
        last, full_window = query._jsq.lastProgress(), self.full_window
        return every is not None and full_window is not None and last is not None and last.batchId() >= full_window

    def _append(self, found: DataFrame, epoch: int) -> None:
        from pyspark import StorageLevel

        # Read once, to be looked at before it is appended.
        window = found.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            cut, records = self._checked(window)
            rows = window.where(f"object != '{READ}'")
            content = [f"{cut['start']} {cut['cut_time']}"]
            backfill = epoch == 0 and self.begun.backfill
            if backfill:
                content.append("backfill")
                readers = 2 * self.spark.sparkContext.defaultParallelism
                start, longest = self.begun.start, self.job.longest_record
                backfill_rows = backfill_frame(
                    self.spark, self.client, self.stream, self.watched, start, readers, longest
                )
                rows = rows.unionByName(backfill_rows)
            first, last = nanoseconds(cut["start"]), nanoseconds(cut["cut_time"])
            self.last_cut = self.last_cut or first
            worth_a_batch = records or epoch == 0 or last >= self.target or last - self.last_cut >= _SILENCE
            # An append that a killed run had begun has its batch number. So it is finished even if it is not worth a
            # batch.
            if worth_a_batch or self.staging.has_begun(self.query_id, epoch):
                appended = self.staging.append(rows, SOURCE, self.query_id, self.checkpoint, epoch, content)
                self.count(appended.batch)
                self.totals.erased_mods += appended.erased
                if backfill:
                    self.totals.backfill_records += max(0, appended.rows - records - 1)
                self.last_cut = last
                self.begun = replace(self.begun, appended=True).keep(self.staging)
            self.full_window = epoch if last - first + 1 >= window_length(self.job.window) else None
            self.totals.windows += 1
            self.totals.records += records
            self.totals.cut_time = cut["cut_time"]
        finally:
            window.unpersist()

    def _checked(self, window: DataFrame) -> tuple[dict[str, str], int]:
        """Return the cut and the number of records of the window, once its partitions fit.

        The window is read again if its partitions do not fit. If they do not fit the last time either, raises Fault,
        or with `--partition-check warn` only says so.
        """
        for reading in range(_READINGS):
            control = window.where(f"object in ('{CUT}', '{READ}')").select("object", "record").collect()
            (cut,) = [json.loads(row.record) for row in control if row.object == CUT]
            reads = [json.loads(row.record) for row in control if row.object == READ]
            leaves = [leaf for read in reads for leaf in read["leaves"]]
            records = sum(read["records"] for read in reads)
            if len(set(leaves)) == len(leaves) and self._fits(set(leaves), nanoseconds(cut["cut_time"])):
                return cut, records
            if reading < _READINGS - 1:
                self.say(
                    f"the partitions of the window up to {cut['cut_time']} differ from those that Spanner lists: the "
                    "window is read again"
                )
                # The rows are dropped where they were kept, and so come from Spanner once more.
                window.unpersist(blocking=True)
                window.persist()
        complaint = (
            f"The partitions that were read up to {cut['cut_time']} differ from those that the change stream "
            f"{self.job.stream} has at that moment"
        )
        if self.job.partition_check == "warn":
            self.say(f"{complaint}: records may be missing")
            return cut, records
        raise Fault(
            f"{complaint}; nothing of this window was appended: run the same command again, or add "
            "--partition-check warn."
        )

    def _fits(self, leaves: set[str], end: int) -> bool:
        # One that ends in the nanosecond after the window is alive at its end, and not at the next window's start.
        return any(leaves == set(list_partitions(self.client, self.stream, at, at).tokens) for at in (end, end + 1))

    def show(self) -> None:
        total = self.totals
        if total.cut_time is None:
            self.progress("reading the first window")
            return
        text = f"{self.so_far(f'{total.windows:,} windows')}; up to {total.cut_time[:19]}Z"
        passed = self.clock.seconds() - self.started
        lag = (min(self.target, self.now + int(passed * 10**9)) - nanoseconds(total.cut_time)) // 10**9
        if lag > 60:
            text += f", {_duration(lag)} behind"
        self.progress(text)


_NEVER = nanoseconds("9999-12-31T23:59:59Z")

_SETTINGS = {
    # One part of a backfill at a time: what Python hands back is then never more than its rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    # A second writer is refused; Spark would stop the first.
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
}


def _duration(whole_seconds: int) -> str:
    for length, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if whole_seconds >= 2 * length:
            return f"{whole_seconds // length} {name}"
    return f"{whole_seconds} seconds"
