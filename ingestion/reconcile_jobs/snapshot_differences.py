"""A snapshot table becomes an append to a staging table: its differences from the snapshot before it, exactly once.

For tables that have no log: reference tables, an export each night. What staging holds of a batch (`source` is
snapshot, `object` the name that the job was given, `origin` the snapshot table and the id of its load):

- one record for each key that differs: `{"snapshot": ..., "taken_at": ..., "change": "insert" | "update" | "delete",
  "key": {...}, "row": {...}, "digest": ...}`. `row` has the key alone if the snapshot lacks the key; `digest` is the
  SHA-256 of the text of `row`, by which the next snapshot is compared. Numbers and moments are texts, binary is base64.
- one row with object `#cut`, whose record says which snapshot it was: see `_Cut` and cuts.py.

A snapshot that equals the one before it leaves its cut alone. Snapshots of one object are staged in the order of their
moments; so the records of a key need no other order than `taken_at`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from reconcile_jobs.cuts import Cuts, again_if_overtaken, checked_object
from reconcile_jobs.erased_keys import Register
from reconcile_jobs.keyed_records import SNAPSHOT
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.masks import keep_masks_of_rows
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import DataError, Fault, UsageError, in_sentences
from reconcile_jobs.process.session import settings
from reconcile_jobs.rows_as_json import EXACT, rows_as_json
from reconcile_jobs.staging import JSON_LIMITS, Staging, TableName, literal, quoted
from reconcile_jobs.table_formats import format_of
from reconcile_jobs.timestamps import as_text, asked_moment, nanoseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "OF_SNAPSHOT",
    "SOURCE",
    "Job",
    "Totals",
    "has_no_key",
    "key_of",
    "moment_of",
    "refuse_empty",
    "refuse_keys",
    "refuse_loaded_anew",
    "refuse_long",
    "refuse_other",
    "run",
    "snapshot_properties",
]

SOURCE = "snapshot"

# What a snapshot must say of itself: macros/parity and snapshot_table.py write and read the same properties.
OF_SNAPSHOT = "reconcile.snapshot"


@dataclass(frozen=True)
class Job:
    """What the command line asks for. `at` is RFC 3339: the moment of the snapshot, where its table does not say it.

    `key` may be None beside a log, whose records name it. `beside_log`: the snapshot is for the log of the staging
    table, which may be empty as yet.
    """

    table: TableName
    staging: TableName
    key: tuple[str, ...] | None = None
    object: str | None = None
    at: str | None = None
    allow_empty: bool = False
    allow_new_columns: bool = False
    beside_log: bool = False
    longest_record: int = LONGEST
    erasure_key_file: str | None = None

    @property
    def register(self) -> Register:
        """How the job knows the rows of erased keys."""
        return Register(self.erasure_key_file, SNAPSHOT)


@dataclass
class Totals:
    """What one run has appended: the rows of the snapshot, and how many keys differ from the snapshot before it.

    `erased_rows`: those of erased keys, which were left out; they are none of the rows.
    """

    rows: int = 0
    erased_rows: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    taken_at: str | None = None
    first_batch: int | None = None
    last_batch: int | None = None


@dataclass(frozen=True)
class _Cut:
    """What staging says of a snapshot."""

    snapshot: str
    taken_at: str
    key: list[str]
    columns: dict[str, str]
    rows: int


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append the differences of one snapshot from the one before it, and return their counts. Raises JobError."""
    with in_sentences(), settings(spark, EXACT):
        return again_if_overtaken(_Run(spark, job, caller or Caller()).run)


class _Run:
    def __init__(self, spark: SparkSession, job: Job, caller: Caller) -> None:
        self.spark, self.job, self.say, self.progress = spark, job, caller.say, caller.progress
        self.object = checked_object(job.table.parts[-1] if job.object is None else job.object)

    def run(self) -> Totals:
        properties = snapshot_properties(self.spark, self.job.table)
        if self.job.key is None:
            raise UsageError(
                "--key is missing: name the columns that identify a row, as --key id. If it is for a log whose "
                "records are still to come, say --beside-log too."
            )
        # Of Iceberg and Delta both: the rows of one version, whatever is written to the table meanwhile.
        rows = self.spark.table(self.job.table.sql)
        key, columns = key_of(rows, self.job.key, self.job.table), dict(rows.dtypes)
        self.staging = Staging(self.spark, self.job.staging, SOURCE, register=self.job.register)
        self.cuts = Cuts(self.spark, self.staging, SOURCE)
        found = self.cuts.newest(self.object)
        known = None if found is None else _Cut(**{name: found[name] for name in _Cut.__annotations__})
        moment = moment_of(self.job, properties)
        totals = Totals(taken_at=moment)
        if known is not None and known.snapshot == properties[f"{OF_SNAPSHOT}.id"]:
            self.say(f"this snapshot of {self.object} is already in {self.job.staging}, and nothing was appended")
            return totals
        if known is not None:
            refuse_other(self.job, self.object, known.taken_at, known.key, known.columns, moment, key, columns)
        cut = _Cut(
            snapshot=properties[f"{OF_SNAPSHOT}.id"],
            taken_at=moment,
            key=key,
            columns=columns,
            rows=0,
        )
        self.mark = keep_masks_of_rows(self.staging, self.object, properties, columns, known.key if known else ())
        self.progress(f"comparing {self.job.table} with the snapshot before it")
        rows, totals.erased_rows = self.staging.leave_out_erased(rows, self.object, rows_as_json(rows, columns))
        # In the order of before: the text of a row follows it.
        names = [
            *(known.columns if known else ()),
            *(name for name in columns if not known or name not in known.columns),
        ]
        with self._compared(rows, cut, names) as compared:
            self._count(compared, totals, key)
            self._refuse_purged(totals, known)
            refuse_empty(self.job, self.object, totals.rows)
            refuse_loaded_anew(self.spark, self.job.table, cut.snapshot)
            self._append(compared, cut, totals)
        return totals

    @contextmanager
    def _compared(self, rows: DataFrame, cut: _Cut, names: list[str]) -> Iterator[DataFrame]:
        """Yield what became of each row since the snapshot before, kept while it is counted and appended.

        There is a row for each row of this snapshot (`copies`: how many rows have its key), and for each key that only
        the snapshot before has.
        """
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        now = rows.select(
            f.expr(rows_as_json(rows, cut.key)).alias("key"),
            f.expr(rows_as_json(rows, names)).alias("row"),
            f.expr(has_no_key(cut.key)).alias("has_no_key"),
        ).withColumn("digest", f.sha2("row", 256))
        staged = f"from_json(record, 'change string, key string, digest string', {JSON_LIMITS})"
        before = (
            self.spark.table(self.job.staging.sql)
            .where(f"object = {literal(self.object)}")
            .select("batch", f.expr(staged).alias("newest"))
            .groupBy("newest.key")
            .agg(f.max_by("newest", "batch").alias("newest"))
            .where("newest.change <> 'delete'")
            .selectExpr("key as known_key", "newest.digest as known_digest")
        )
        # Spark's JSON reader may change how a text is written. Keys in staging passed through it, so these keys do too.
        now = now.withColumn(
            "key", f.expr(f"from_json(concat('{{\"key\":', key, '}}'), 'key string', {JSON_LIMITS}).key")
        )
        now = now.withColumn("copies", f.expr("count(*) over (partition by key)"))
        both = now.join(before, f.expr("key = known_key"), "full_outer")
        compared = both.selectExpr(
            "coalesce(key, known_key) as key",
            "coalesce(row, known_key) as row",
            "digest",
            "coalesce(has_no_key, false) as has_no_key",
            "coalesce(copies, 1) as copies",
            "case when key is null then 'delete' when known_key is null then 'insert' "
            "when not digest <=> known_digest then 'update' else 'unchanged' end as change",
        ).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield compared
        finally:
            compared.unpersist()

    def _count(self, compared: DataFrame, totals: Totals, key: list[str]) -> None:
        """Count what differs.

        Raises DataError if a key has a NULL, if two rows have the same key, or if a row is too long for staging.
        """
        counts = compared.selectExpr(
            *(f"count_if(change = '{change}')" for change in ("insert", "update", "delete", "unchanged")),
            "count_if(has_no_key)",
            "max_by(key, copies)",
            "max(copies)",
            "max_by(key, octet_length(row))",
            "coalesce(max(octet_length(row)), 0)",
        ).collect()[0]
        totals.inserted, totals.updated, totals.deleted, totals.unchanged = counts[:4]
        totals.rows = totals.inserted + totals.updated + totals.unchanged
        without_key, repeated, copies, longest, size = counts[4:]
        refuse_keys(self.job, key, without_key, copies, repeated)
        refuse_long(self.job, size, longest)

    def _refuse_purged(self, totals: Totals, known: _Cut | None) -> None:
        """Raise UsageError where staging lacks records of the snapshot before: which rows are gone cannot be told."""
        before = totals.unchanged + totals.updated + totals.deleted
        if known is not None and before != known.rows:
            raise UsageError(
                f"{self.job.staging} has records of {before:,} of the {known.rows:,} rows that the snapshot of "
                f"{known.taken_at} had: some were purged or deleted there, so the deleted rows cannot be found. "
                f"Restore the records, or stage {self.object} into a new --staging and build its models again."
            )

    def _append(self, compared: DataFrame, cut: _Cut, totals: Totals) -> None:
        from pyspark.sql import functions as f

        head = f'{{{self.mark}"snapshot":{json.dumps(cut.snapshot)},"taken_at":{json.dumps(cut.taken_at)},"change":"'
        record = f.concat(
            f.lit(head),
            "change",
            f.lit('","key":'),
            "key",
            f.lit(',"row":'),
            "row",
            f.expr("coalesce(concat(',\"digest\":\"', digest, '\"'), '')"),
            f.lit("}"),
        )
        records = compared.where("change <> 'unchanged'").select(record.alias("record"))
        content = asdict(cut) | {"rows": totals.rows}
        appended = self.cuts.append(records, self.object, f"{self.job.table}/{cut.snapshot}", content)
        totals.first_batch = totals.last_batch = appended.batch
        self.say(
            f"{self.object}: {totals.rows:,} rows, {totals.inserted:,} inserted, {totals.updated:,} updated, "
            f"{totals.deleted:,} deleted, {totals.unchanged:,} as before"
        )


def snapshot_properties(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return the properties of a snapshot table. Raises UsageError where it is none, or is not finished."""
    if not spark.catalog.tableExists(table.sql):
        raise UsageError(f"There is no table {table}: load it with snapshot.py, or name another with --table.")
    try:
        properties = format_of(spark, table.catalog).properties(spark, table.sql)
    except UsageError:  # a table of another format, which snapshot.py does not write
        properties = {}
    kind = properties.get(OF_SNAPSHOT)
    if kind is None:
        raise UsageError(
            f"{table} was not created by snapshot.py, so it may be incomplete: load it with snapshot.py. For any table "
            "of the session, use snapshot.py table."
        )
    if kind in ("jdbc", "spanner") and not properties.get(f"{OF_SNAPSHOT}.position"):
        raise UsageError(
            f"{table} has no position, because the job that took it did not finish. Take the snapshot again."
        )
    if f"{OF_SNAPSHOT}.id" not in properties:
        raise UsageError(f"{table} was taken by an earlier version of snapshot.py: take the snapshot again.")
    return properties


def refuse_loaded_anew(spark: SparkSession, table: TableName, snapshot: str) -> None:
    """Raise Fault where a snapshot table has another snapshot than the one that was read."""
    if snapshot_properties(spark, table)[f"{OF_SNAPSHOT}.id"] != snapshot:
        raise Fault(f"{table} was replaced while it was read: run the same command again.")


def moment_of(job: Job, properties: Mapping[str, str]) -> str:
    """Return the moment of a snapshot, to the nanosecond. Raises UsageError."""
    if job.at is not None:
        return _in_range(job, asked_moment("--at", job.at))
    is_time = properties.get(f"{OF_SNAPSHOT}.position_kind") == "read_timestamp"
    moment_text = properties.get(f"{OF_SNAPSHOT}.{'position' if is_time else 'taken_at'}")
    try:
        moment = nanoseconds(moment_text or "")
    except ValueError:
        raise UsageError(f"{job.table} does not have the time when it was taken: give the time with --at.") from None
    return _in_range(job, moment)


def _in_range(job: Job, moment: int) -> str:
    # What orders the records holds these moments.
    if not 0 <= moment < 1 << 63:
        raise UsageError(f"{job.table}: the time of a snapshot must be between 1970 and 2262. Give another --at.")
    return as_text(moment)


def key_of(rows: DataFrame, key: Iterable[str], table: TableName) -> list[str]:
    """Return the columns of a key as the table spells them. Raises UsageError."""
    key = list(key)
    names = {name.lower(): name for name in rows.columns}
    if unknown := [name for name in key if name.lower() not in names]:
        raise UsageError(f"--key: {table} has no column {', '.join(unknown)}; it has {', '.join(rows.columns)}.")
    return [names[name.lower()] for name in key]


def refuse_other(
    job: Job, object_: str, known_moment: str, known_key: list[str], known_columns: Mapping[str, str],
    moment: str, key: list[str], columns: Mapping[str, str],
) -> None:  # fmt: skip
    """Raise UsageError where a snapshot cannot follow the one before it, the known one."""
    staging = job.staging
    if moment <= known_moment:
        raise UsageError(
            f"This snapshot of {object_} was taken at {moment}, and {staging} already has one of {known_moment}: stage "
            "snapshots in the order in which they were taken. If the time is wrong, give --at."
        )
    if key != known_key:
        raise UsageError(
            f"The key of {object_} in {staging} is {', '.join(known_key)}, and not {', '.join(key)}: give the same "
            "--key, or another --object or --staging."
        )
    if gone := [name for name in known_columns if name not in columns]:
        raise UsageError(
            f"This snapshot of {object_} lacks the column {', '.join(gone)}, which {staging} has: take the snapshot "
            "with this column, or stage it as another --object."
        )
    changed = [f"{name} {known_columns[name]}" for name in known_columns if columns[name] != known_columns[name]]
    new = [name for name in columns if name not in known_columns]
    if (new or changed) and not job.allow_new_columns:
        what = [f"new columns: {', '.join(new)}"] if new else []
        what += [f"other types than before: {', '.join(changed)}"] if changed else []
        raise UsageError(
            f"This snapshot of {object_} has {' and '.join(what)}. Give --allow-new-columns to stage it. A row of "
            "which a value is then written differently counts as updated."
        )


def has_no_key(key: Iterable[str]) -> str:
    """Return the condition in SQL under which a row has no key: a part of it is NULL."""
    return " or ".join(f"{quoted(name)} is null" for name in key)


def refuse_keys(job: Job, key: list[str], without_key: int, copies: int, repeated: str | None) -> None:
    """Raise DataError where the key of a snapshot identifies no row: NULLs, or several rows with one key."""
    name = ", ".join(key)
    if without_key:
        raise DataError(
            f"{without_key} rows of {job.table} have NULL in the key {name}: name other columns with --key."
        )
    if copies > 1:
        raise DataError(
            f"{name} does not identify a row of {job.table}: {copies} rows have {repeated}. Give another --key."
        )


def refuse_long(job: Job, size: int, longest: str | None) -> None:
    """Raise DataError where the longest row of a snapshot is too long for staging."""
    if size > job.longest_record:
        raise DataError(
            f"The row {longest} of {job.table} has {size} bytes: raise --longest-record, up to 1g, or take the "
            "snapshot without the long column."
        )


def refuse_empty(job: Job, object_: str, rows: int) -> None:
    """Raise DataError where a snapshot has no rows, and nobody has said that this is right."""
    if rows == 0 and not job.allow_empty:
        raise DataError(
            f"{job.table} has no rows, which would delete every row of {object_}; if the source's table is empty, give "
            "--allow-empty."
        )
