"""An append table becomes appends to a staging table: the rows that were appended since the last run, exactly once.

An append table is one to which Datastream itself appends each change (append-only write mode), or a copy of such a
table, in Delta or Iceberg. What staging holds (`source` is `append table`, `object` the name that the job was given,
`origin` the table and its version or snapshot):

- one record for each row: `{"datastream_metadata": {...}, "row": {...}}`, as in rows_as_json.py.
- one row with object `#cut` for each append, with `table_id` and `position`, up to which the table was read: cuts.py.

Versions of Delta and snapshots of Iceberg do not change, so what lies between two of them is the same whenever it is
read. What a table does besides appending is looked at version by version: files that were compacted have no new rows
and are passed over; anything else is refused, since rows may have been changed or be gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reconcile_jobs.cuts import Cuts, again_if_overtaken, checked_object
from reconcile_jobs.erased_keys import Register
from reconcile_jobs.keyed_records import APPEND_TABLE
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import DataError, UsageError, causes, in_sentences
from reconcile_jobs.process.session import settings
from reconcile_jobs.rows_as_json import EXACT, JSON_OPTIONS, rows_as_json
from reconcile_jobs.staging import Staging, TableName, quoted
from reconcile_jobs.table_formats import NotFollowed, format_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Job", "Totals", "run"]

SOURCE = "append table"

# What Datastream adds to each row, and what of it a change needs.
_METADATA = "datastream_metadata"
_NEEDED = ("change_sequence_number", "change_type")


@dataclass(frozen=True)
class Job:
    """What the command line asks for. `every`: seconds between looks at the tables (None: one look).

    `reread`: read each table whole, and append the records that staging does not have. `erasure_key_file`: the file
    with the key of the register of erased keys.
    """

    tables: tuple[TableName, ...]
    staging: TableName
    object: str | None = None
    every: float | None = None
    reread: bool = False
    longest_record: int = LONGEST
    erasure_key_file: str | None = None


@dataclass
class Totals:
    """What one run has appended. `erased_records`: those of erased keys, which were dropped."""

    tables: int = 0
    records: int = 0
    erased_records: int = 0
    first_batch: int | None = None
    last_batch: int | None = None


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append what was appended to the tables since the last run, and return the counts. Raises JobError."""
    with in_sentences(), settings(spark, EXACT):
        return _Run(spark, job, caller or Caller()).run()


class _Run:
    def __init__(self, spark: SparkSession, job: Job, caller: Caller) -> None:
        self.spark, self.job, self.caller, self.totals = spark, job, caller, Totals()
        if job.object is not None and len(job.tables) > 1:
            raise UsageError("--object names one table: run this command once for each --table.")
        self.objects = {checked_object(job.object or table.parts[-1]): table for table in job.tables}
        if len(self.objects) < len(job.tables):
            raise UsageError(
                "Two tables have the same name: run this command once for each, with an --object of its own."
            )

    def run(self) -> Totals:
        job, clock, stop = self.job, self.caller.clock, self.caller.stop
        for table in job.tables:
            self._refuse_unless_append_only(table)
        register = Register(job.erasure_key_file, APPEND_TABLE)
        self.staging = Staging(self.spark, job.staging, SOURCE, register=register)
        self.cuts = Cuts(self.spark, self.staging, SOURCE)
        while True:
            began = clock.seconds()
            for name, table in self.objects.items():
                if stop.is_set():
                    if job.every is None:
                        self.caller.refuse_early_end()
                    return self.totals
                again_if_overtaken(partial(self._append, name, table))
            if job.every is None:
                return self.totals
            clock.wait(stop, max(0.0, job.every - (clock.seconds() - began)))

    def _refuse_unless_append_only(self, table: TableName) -> None:
        """Raise UsageError where a table is not one that Datastream writes in append-only mode."""
        from pyspark.sql.types import StructType

        if not self.spark.catalog.tableExists(table.sql):
            raise UsageError(f"There is no table {table} in this session: name another with --table.")
        fields = {field.name.lower(): field.dataType for field in self.spark.table(table.sql).schema}
        metadata = fields.get(_METADATA)
        if not isinstance(metadata, StructType):
            raise UsageError(
                f"{table} has no column {_METADATA}: name a table that Datastream writes in append-only mode."
            )
        names = [name.lower() for name in metadata.names]
        if missing := [name for name in _NEEDED if name not in names]:
            raise UsageError(
                f"{_METADATA} of {table} has no {' and no '.join(missing)}, so its rows have no order: Datastream "
                "writes this table in merge mode. Set the write mode of the stream to append-only."
            )

    def _append(self, name: str, table: TableName) -> None:
        cut = self.cuts.newest(name)
        known = None if cut is None or self.job.reread else cut
        self.caller.progress(f"reading {table}")
        try:
            position = None if known is None else str(known["position"])
            found = format_of(self.spark, table.catalog).appended_since(self.spark, table.sql, position)
        except NotFollowed as problem:
            raise UsageError(f"{table} {problem}. {_AGAIN}") from None
        if cut is not None and found.table_id != cut["table_id"] and cut["table"] != str(table):
            raise UsageError(
                f"{name} in {self.job.staging} is already the name of the table {cut['table']}: give {table} another "
                "--object."
            )
        if known is not None and found.table_id != known["table_id"]:
            raise UsageError(f"{table} is not the table that was staged as {name}. {_AGAIN}")
        if found.rows is None and found.position == position:
            return
        origin = f"{table}@{found.position}"
        kept = {"table": str(table), "table_id": found.table_id, "position": found.position}
        try:
            records = self._records(found.rows, name, only_new=self.job.reread and cut is not None)
            appended = self.cuts.append(records, name, origin, kept)
        except Exception as problem:
            if any("FILE_NOT_EXIST" in text or "FileNotFound" in f"{kind} {text}" for kind, text in causes(problem)):
                raise UsageError(f"{table} has no files of its versions since {position} any more. {_AGAIN}") from None
            raise
        total = self.totals
        staged = max(0, appended.rows - 1 - appended.erased)
        total.tables += appended.rows > 1
        total.records += staged
        total.erased_records += appended.erased
        total.first_batch = total.first_batch or appended.batch
        total.last_batch = appended.batch or total.last_batch
        self.caller.say(f"{name}: {staged:,} records, up to {origin}")

    def _records(self, rows: DataFrame | None, name: str, only_new: bool) -> DataFrame:
        """Return the records of rows. Raises DataError where one is too long for staging."""
        from pyspark.sql import functions as f

        if rows is None:
            return self.spark.createDataFrame([], "record string")
        metadata = next(column for column in rows.columns if column.lower() == _METADATA)
        others = [column for column in rows.columns if column != metadata]
        if self.job.reread:
            # A note of what was erased does not say which record it was, so these rows would leave one more each time.
            rows, erased = self.staging.leave_out_erased(rows, name, rows_as_json(rows, others))
            self.totals.erased_records += erased
        kinds = rows.select(f"{quoted(metadata)}.*").dtypes
        fields = ", ".join(
            f"{value if kind.startswith('array') else f'cast({value} as string)'} as {quoted(field.lower())}"
            for field, kind in kinds
            for value in [quoted(metadata, field)]
        )
        record = (
            f"concat('{{\"{_METADATA}\":', to_json(struct({fields}), {JSON_OPTIONS}), "
            f"',\"row\":', {rows_as_json(rows, others)}, '}}')"
        )
        records = rows.select(f.expr(record).alias("record"))
        longest = records.selectExpr("coalesce(max(octet_length(record)), 0)").collect()[0][0]
        if longest > self.job.longest_record:
            raise DataError(
                f"A row of {self.objects[name]} has {longest} bytes: give --longest-record, up to 1g. Nothing was "
                "appended."
            )
        if only_new:
            staged = self.spark.table(self.staging.name.sql)
            known = staged.where(staged.object == name).select(f.sha2("record", 256).alias("digest"))
            records = records.withColumn("digest", f.sha2("record", 256)).join(known, "digest", "left_anti")
        return records.select("record")


_AGAIN = (
    "If the table holds all changes, give --reread: it reads the whole table, and appends the records that staging "
    "does not have."
)
