"""A Bigtable change stream becomes appends to a staging table, round by round, each change exactly once.

What staging holds of a batch, besides the contract of `staging.py` (`object` is the table's id, `record` one data
change as in `change_decoder`, `origin` bigtable/first key-end of the partition, in hex):

- rows with object `#cut`, one of each task: `{"low_watermark": ..., "estimated": true, "round": ..., "records": ...,
  "out_of_time": ..., "partitions": [...]}`: how many changes the task read and whether it would have read on, where its
  partitions go on after this batch, as in `partitions`, and the lowest of their estimated low watermarks.
- with --backfill, in the very first batch, the cells that were there, as in `backfill`; their origin is
  bigtable/backfill.

A round begins where the last batch in the table ends, by its cuts and nothing else; so its changes and the positions
after them are one append, and either both are there or neither. There is no checkpoint. What makes a second append of
one round impossible: rounds are numbered in their cuts, and an append is known to the format by the id that the job
keeps with its table and the number of its round. A job that was killed before its data were committed leaves the cuts
of the round before, so the round is read anew; one that was killed afterwards leaves this round's, so the next one is
read. And where a job that was taken for dead still writes, both write the same round of the same id: Delta's log
admits a `txnAppId` and `txnVersion` once, and of two that commit at one moment refuses one; an Iceberg table has the
note of the append that was published last, and Iceberg publishes a WAP id once. Whoever comes second appends nothing,
and goes on from what the first one left in the table.

A part of a round that is read again, because an executor was lost, is not the same part: more has come since. So a
task's changes and the positions after them are rows of one partition of a data frame, and come or go together.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from reconcile_jobs.append_run import AppendRun
from reconcile_jobs.beginning import Beginning, first_start
from reconcile_jobs.bigtable.backfill import backfill_frame
from reconcile_jobs.bigtable.calls import Client, SourceTable
from reconcile_jobs.bigtable.partition_reader import Finished, Limits, read_partitions
from reconcile_jobs.bigtable.partitions import (
    Outcome,
    Partition,
    Request,
    RowRange,
    after,
    from_json,
    initial,
    lowest_watermark,
    requests,
    to_json,
    whole_table,
)
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import Fault, UsageError, in_sentences
from reconcile_jobs.process.session import settings
from reconcile_jobs.staging import RAW_ROWS, Staging, TableName, cut_changed_by_hand, raw_rows
from reconcile_jobs.timestamps import as_text, asked_moment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CUT", "Job", "Totals", "run"]

SOURCE = "bigtable"

# An object that is no table: a table's id has no #.
CUT = "#cut"

# Rounds that bring nothing new leave a batch so often, in seconds: tokens must not grow old.
_SILENCE = 300

# Rounds in a row in which nothing came and no watermark moved, before a job without --every gives up waiting for one.
_STALLED = 5

_SETTINGS = {
    # A file of each object is open at a time; otherwise all rows would be sorted by object before one is written.
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    # Of a round that is looked at before it is appended: a record may have megabytes, and is mostly base64.
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


@dataclass(frozen=True)
class Job:
    """What the command line asks for. Moments are RFC 3339, `every` the seconds between rounds (None: one pass)."""

    project: str
    instance: str
    table: str
    app_profile: str
    staging: TableName
    start: str | None = None
    end: str | None = None
    every: float | None = None
    backfill: bool = False
    round_seconds: float = 20.0
    heartbeat: float = 1.0
    longest_record: int = LONGEST


@dataclass
class Totals:
    """What one run has appended; `low_watermark`: Bigtable's estimate, by which everything before it is in staging."""

    rounds: int = 0
    records: int = 0
    backfill_records: int = 0
    first_batch: int | None = None
    last_batch: int | None = None
    low_watermark: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Beginning(Beginning):
    source: ClassVar[str] = SOURCE
    id: str = field(default_factory=lambda: str(uuid.uuid4()))  # of the appends


@dataclass(frozen=True)
class _Cut:
    """What the `#cut` rows of one batch say together: where the batch ends, and what it holds.

    `tasks`: how many such rows there are, one of each task. With `round` 0 the cut is made up: where the first batch
    begins.
    """

    round: int
    partitions: list[Partition]
    records: int = 0
    tasks: int = 0
    is_out_of_time: bool = False  # some task would have read on

    @classmethod
    def of(cls, records: Iterable[str]) -> _Cut:
        """Return what the rows of a batch say together."""
        task_cuts = [json.loads(record) for record in records]
        partitions = whole_table(partition for one in task_cuts for partition in from_json(one["partitions"]))
        return cls(
            round=task_cuts[0]["round"],
            partitions=partitions,
            records=sum(one["records"] for one in task_cuts),
            tasks=len(task_cuts),
            is_out_of_time=any(one["out_of_time"] for one in task_cuts),
        )


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append what was committed up to now, or up to the job's `end`, and return the counts of this run.

    With `every`, goes on until `stop` is set or the end has come. Raises UsageError, or Fault.
    """
    source = SourceTable.from_environment(job.project, job.instance, job.table, job.app_profile)
    with in_sentences(), Client(source) as client, settings(spark, _SETTINGS):
        return _Run(spark, client, job, caller).run()


class _Run(AppendRun[Totals]):
    def __init__(self, spark: SparkSession, client: Client, job: Job, caller: Caller | None) -> None:
        super().__init__(spark, caller, Totals())
        self.client, self.job = client, job
        self.appended_at = self.started
        self.low_watermark = 0  # the highest that the lowest has been in this run
        self.has_more = True  # whether there may be: the last round was out of time, or ended with other partitions

    def run(self) -> Totals:
        job = self.job
        now = self.clock.now()
        end = None if job.end is None else asked_moment("--end", job.end)
        # Before the staging table is made, so that what is wrong with the source is reported first.
        ranges = [RowRange(*rows) for rows in self.client.partitions()]
        self.staging = Staging(self.spark, job.staging, f"{SOURCE} {self.client.source}")
        self.begun, cut = self._begin(ranges, now)
        target = end if end is not None else now
        if cut.round == 0:
            self.begun.refuse_late(target, end is not None, as_text(now))
        if job.every is None:
            self._pass(cut, target)
        else:
            self._follow(cut, end, job.every)
        return self.totals

    def _pass(self, cut: _Cut, target: int) -> None:
        """Append round after round until every partition has got to `target`. Raises Fault where the job is to stop."""
        stalled = 0
        while not _is_done(cut, target):
            if self.stop.is_set():
                self.refuse_early_end()
                return
            if stalled == _STALLED:
                self.say(
                    f"the low watermark of {self.client.source} stays at {as_text(self.low_watermark)}: the changes "
                    "up to now are appended, and a later run appends changes that are not replicated yet"
                )
                return
            records, watermark = self.totals.records, self.low_watermark
            cut = self._round(cut, target, until=target, may_be_last=stalled == _STALLED - 1)
            moved = self.totals.records > records or self.low_watermark > watermark
            stalled = 0 if moved else stalled + 1

    def _follow(self, cut: _Cut, end: int | None, every: float) -> None:
        """Append rounds, one every so many seconds, until the end has come or the job is to stop.

        A round begins at once if the one before left something to read.
        """
        while not (self.stop.is_set() or _is_done(cut, end)):
            began, now = self.clock.seconds(), self.clock.now()
            cut = self._round(cut, now if end is None else min(now, end), until=end)
            if not (self.has_more or _is_done(cut, end)):
                self.clock.wait(self.stop, max(0.0, every - (self.clock.seconds() - began)))

    def _begin(self, ranges: Sequence[RowRange], now: int) -> tuple[_Beginning, _Cut]:
        """Return what the job keeps with its table, kept before anything is read, and where its first round begins."""
        kept, last, name, backfill = _Beginning.of(self.staging), self._last_cut(), self.staging.name, self.job.backfill
        # Bigtable takes microseconds.
        asked = None if self.job.start is None else asked_moment("--start", self.job.start) // 1000 * 1000
        if last is None:
            if kept is not None:
                kept.refuse_unknown_end(f"No batch in {name} has the position up to which the change stream was read")
            else:
                _Beginning.refuse_without(self.staging)
            # A run that ended before it appended anything: what it began is begun anew, at the same moment, so that
            # nothing since then is missing.
            start = first_start(kept, asked, now, name, self.say) // 1000 * 1000
            fresh = _Beginning(start=start, backfill=backfill, appended=False)
            # With the id of before: the number that was given to its append is used.
            begun = replace(fresh, id=kept.id) if kept else fresh
            last = _Cut(0, initial(ranges, start))
        else:
            copied = _Beginning(start=lowest_watermark(last.partitions), backfill=backfill, appended=True)
            begun = kept or copied  # by hand, without what was kept with the table
            begun.refuse_other_beginning(name, asked, backfill and not begun.backfill)
            known = any(self.staging.has_begun(begun.id, number) for number in (last.round, last.round + 1))
            if not known or self.staging.was_set_back():
                # What comes is appended by another name than what the format still knows of.
                begun = replace(begun, id=str(uuid.uuid4()))
                self.staging.number_after_all_appends()
        return begun.keep(self.staging), last

    def _last_cut(self) -> _Cut | None:
        """Return where the table's last batch ends."""
        cuts = self.spark.table(self.staging.name.sql).where(f"object = '{CUT}'")
        # The last cut is nearly always in one of the last two batches; files of other batches are then not read.
        for where in (f"batch >= {self.staging.last_batch - 1}", "true"):
            batches = cuts.where(where).groupBy("batch").agg({"record": "collect_list"})
            for batch, records in batches.orderBy("batch", ascending=False).limit(1).collect():
                return self._cut_of(batch, records)
        return None

    def _cut_of(self, batch: int, records: Iterable[str]) -> _Cut:
        """Return what the rows of a batch say. Raises UsageError where somebody has changed them."""
        try:
            return _Cut.of(records)
        except (Fault, ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(cut_changed_by_hand(self.staging.name, CUT, f"of batch {batch}")) from None

    def _round(self, cut: _Cut, target: int, until: int | None, may_be_last: bool = False) -> _Cut:
        """Read every partition for a while, append what came and where it ends, and return where the table ends now."""
        limits = Limits(target, self.job.round_seconds, self.job.heartbeat)
        # As many tasks as run at a time, since each reads its partitions at the same time: one more would wait a round.
        shares = shares_of(requests(cut.partitions), self.spark.sparkContext.defaultParallelism)
        rows = self._frame(shares, limits, cut.round + 1)
        if self.has_more:
            found = self._append(rows, cut.round + 1)
        else:
            found = self._append_if_worth_it(rows, cut, until, may_be_last)
        self.has_more = found.is_out_of_time or _shape(found.partitions) != _shape(cut.partitions)
        return found

    def _append_if_worth_it(self, rows: DataFrame, cut: _Cut, until: int | None, may_be_last: bool) -> _Cut:
        """Append a round if it is worth a batch; otherwise append nothing and return the cut as it was.

        A round is worth a batch if it has records or other partitions, if it may be the last round, or if the newest
        append is `_SILENCE` seconds old.
        """
        from pyspark import StorageLevel

        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            found = _Cut.of(row.record for row in rows.where(f"object = '{CUT}'").collect())
            self.low_watermark = max(self.low_watermark, lowest_watermark(found.partitions))
            if (
                found.records
                or _shape(found.partitions) != _shape(cut.partitions)
                or may_be_last
                or (until is not None and _reached(found, until))
                or self.clock.seconds() - self.appended_at >= _SILENCE
                # A killed run began this append, which has a batch number: end it, even if the round has no records.
                or self.staging.has_begun(self.begun.id, found.round)
            ):
                return self._append(rows, found.round)
            return cut
        finally:
            rows.unpersist()

    def _append(self, rows: DataFrame, number: int) -> _Cut:
        """Append a round, and return where the table ends now. Raises JobError."""
        backfill = number == 1 and self.begun.backfill
        if backfill:
            readers = 4 * self.spark.sparkContext.defaultParallelism
            source, start, longest = self.client.source, self.begun.start, self.job.longest_record
            rows = rows.unionByName(backfill_frame(self.spark, self.client, source, start, readers, longest))
        appended = self.staging.append(rows, SOURCE, self.begun.id, "", number, [f"round {number}"])
        last = self._last_cut()
        if last is None or last.round < number:
            # The format remembers this append, and the table does not have it.
            replace(self.begun, id=str(uuid.uuid4())).keep(self.staging)
            raise Fault(
                f"{self.staging.name} was restored to an older version, and nothing was appended: run the same command "
                "again, which continues from this version."
            )
        self.begun = replace(self.begun, appended=True).keep(self.staging)
        self.appended_at = self.clock.seconds()
        self.low_watermark = max(self.low_watermark, lowest_watermark(last.partitions))
        self.count(appended.batch)
        total = self.totals
        total.rounds += 1
        # Counted in the table: what a killed run had written of this round may have been published instead.
        total.records += last.records
        total.backfill_records += max(0, appended.rows - last.records - last.tasks) if backfill else 0
        total.low_watermark = as_text(lowest_watermark(last.partitions))
        self.show()
        return last

    def _frame(self, shares: list[list[Request]], limits: Limits, number: int) -> DataFrame:
        """Return what the tasks read, each its share, and where it ends: `record`, `object`, `origin`."""
        source, longest = self.client.source, self.job.longest_record

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with Client(source) as client:
                for batch in batches:
                    for share in batch.column("id").to_pylist():
                        yield from _rows_of(client, shares[share], limits, number, longest)

        numbered = self.spark.range(0, len(shares), 1, len(shares))
        return numbered.mapInArrow(read, RAW_ROWS)  # type: ignore[arg-type]

    def show(self) -> None:
        text = self.so_far(f"{self.totals.rounds:,} rounds")
        if self.totals.low_watermark is not None:
            text += f"; low watermark {self.totals.low_watermark[:19]}Z"
        self.progress(text)


def shares_of(plan: Sequence[Request], tasks: int) -> list[list[Request]]:
    """Return what to ask for, shared out among at most so many tasks, each in the order of the plan."""
    count = min(len(plan), tasks)
    return [list(plan[number::count]) for number in range(count)]


def _rows_of(
    client: Client, share: list[Request], limits: Limits, number: int, longest: int
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one task's partitions in a round of this number, and at last where they end."""
    outcomes: dict[RowRange, Outcome] = {}
    records, began = 0, client.clock.seconds()
    for found in read_partitions(client, [asked.partition for asked in share], limits):
        if isinstance(found, Finished):
            outcomes[found.rows] = found.outcome
            continue
        where, changes = found
        count = len(changes)
        records += count
        yield raw_rows(
            [change.json for change in changes],
            [client.source.table] * count,
            [f"{SOURCE}/{where}"] * count,
            longest=longest,
        )
    ends = [partition for asked in share for partition in after(asked, outcomes.get(asked.partition.rows))]
    cut = {
        "low_watermark": as_text(lowest_watermark(ends)),
        "estimated": True,
        "round": number,
        "records": records,
        "out_of_time": client.clock.seconds() - began >= limits.seconds,
        "partitions": to_json(ends),
    }
    yield raw_rows([json.dumps(cut, separators=(",", ":"))], [CUT], [SOURCE], longest=LONGEST)


def _shape(partitions: Sequence[Partition]) -> list[tuple[RowRange, list[RowRange]]]:
    """Return what changes when partitions split or merge, or begin to wait."""
    return [(one.rows, [position.rows for position in one.positions]) for one in partitions]


def _is_done(cut: _Cut, end: int | None) -> bool:
    """Whether no round is left to append; never without an end. The first round is appended in any case."""
    return cut.round > 0 and end is not None and _reached(cut, end)


def _reached(cut: _Cut, target: int) -> bool:
    """Whether every partition has got there, by its watermark, and none waits for others."""
    return all(p.is_whole and p.low_watermark >= target for p in cut.partitions)
