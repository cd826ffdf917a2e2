"""The staging table: append-only and raw, one writing job, numbered appends that happen exactly once."""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconcile_jobs.checkpoints import checkpoint_damage, checkpoint_id, last_commit
from reconcile_jobs.erased_keys import Register
from reconcile_jobs.hadoop_files import hadoop_path
from reconcile_jobs.long_records import if_long
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.counted import first_of
from reconcile_jobs.process.errors import Fault, UsageError, explained
from reconcile_jobs.table_formats import format_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "RAW_ROWS",
    "SNAPSHOT",
    "Appended",
    "Staging",
    "TableName",
    "batch_of_mark",
    "changed_by_hand",
    "cut_changed_by_hand",
    "is_purged",
    "keep",
    "keep_all",
    "kept",
    "property_pairs",
    "purge_mark",
    "quoted",
    "raw_rows",
    "was_set_back",
]

_COLUMNS = {
    "record": "string",
    "source": "string",
    "object": "string",
    "origin": "string",
    "batch": "bigint",
    "appended_at": "timestamp",
}

# What a source's reader hands to an append.
RAW_ROWS = "record string, object string, origin string"

# Properties of the table. What they say must outlive the rows (a purge) and the checkpoint (a loss).
_JOB = "reconcile.job"  # kind of source and path: who may append
_CHECKPOINT = "reconcile.checkpoint"  # query id and place of the checkpoint that appends
_LAST_BATCH = "reconcile.last_batch"  # the largest number that was given out
_APPEND = "reconcile.append"  # query id, micro-batch and files that it was given to
_PURGED = "reconcile.purged."  # and a digest of an object: the batch up to which its records are gone
_NUMBER = "reconcile.append_batch"  # the number itself: others may have been given out since
_MASKS = "reconcile.masks"  # what is masked: see reconcile_jobs/masks.py
_ERASED = "reconcile.erased"  # that there is a register of erased keys: see reconcile_jobs/erased_keys.py
# The same of the job that stages snapshots beside the log of another job.
_APPEND_BESIDE = "reconcile.snapshot_append"
_NUMBER_BESIDE = "reconcile.snapshot_append_batch"
# While that job writes, the job of the log waits, so that it does not take the next number: else a snapshot that takes
# longer to write than the pause between two appends of the log would never come. Of the append, its id; or nothing.
_TURN, _LONGEST_TURN = "reconcile.snapshot_turn", 600  # seconds, as a job that was killed does not end its turn
# The object under which that job says what a snapshot is, and what it has appended to a table that somebody copied.
SNAPSHOT, _COPIED = "#snapshot", "copied/0/"
_EMPTY = " was empty"  # after an append that had nothing, and gave its number back

# The forms of the values that jobs write there.
_FORMS = {
    _CHECKPOINT: "[^ ]+ .*",
    **dict.fromkeys((_LAST_BATCH, _NUMBER, _NUMBER_BESIDE), "[0-9]+"),
    **dict.fromkeys((_APPEND, _APPEND_BESIDE), "[^/]*/[0-9]+/.*"),
}

# The object that follows each record while it is parsed. If the record is not one whole JSON document, this object does
# not come second.
_AFTER = "<after the record>"

# The reader's own limits are shorter than what databases hold: macros/change_records/parsed_record.sql.
JSON_LIMITS = "map('maxStringLen', '2147483647', 'maxNumLen', '150000')"

# What Spark says where two jobs make one table at once: the one that comes second finds files and no table.
_MADE_BY_ANOTHER = re.compile(
    r"NON_EMPTY_LOCATION|ALREADY_EXISTS|AlreadyExists|(?:Protocol|Metadata)Changed|ConcurrentWrite"
)
_PATIENCE = 20  # seconds

# Objects that Delta cannot tell from NULL, as names of directories: they are NULL in every format.
_NO_NAMES = "('', '__HIVE_DEFAULT_PARTITION__')"


def quoted(*parts: str) -> str:
    """Return an identifier as SQL, each part in backticks, whatever it holds."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def changed_by_hand(table: TableName, name: str, text: str) -> str:
    """Return the sentence about a property that is not as a job has written it."""
    return (
        f"The property {name} of the staging table {table} is {text[:80]!r}, which no job has written: set it to what "
        "it was before somebody changed it, or name a new table with --staging."
    )


def cut_changed_by_hand(table: TableName, cut: str, which: str) -> str:
    """Return the sentence about a row that says how far a job has read, and is not as the job has written it."""
    return (
        f"The rows {which} of {table} that say how far was read (object {cut}) are not as a job has written them, and "
        "where to go on cannot be told: restore the table as it was before somebody changed them, or name a new one "
        "with --staging."
    )


def literal(text: str) -> str:
    """Return a text as an SQL literal. Spark would replace ${...} by a variable, in literals as well."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"


def raw_rows(records: Sequence[str], objects: Sequence[str], origins: Sequence[str], *, longest: int) -> pa.RecordBatch:
    """Return `RAW_ROWS` as Arrow has them; of a record with more bytes than the longest may have, a note."""
    import pyarrow as pa

    if 4 * max(map(len, records), default=0) > longest:
        # What a job writes for itself, as `#cut`, is never too long: it goes on from there.
        limits = [sys.maxsize if of.startswith("#") else longest for of in objects]
        found = map(if_long, records, limits)
        records = [long.note() if long else record for record, long in zip(records, found, strict=True)]
    columns = {"record": records, "object": objects, "origin": origins}
    return pa.RecordBatch.from_pydict({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


@dataclass(frozen=True)
class TableName:
    """A table's name as the user gave it: a schema and a table, perhaps after a catalog."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, option: str = "--staging") -> TableName:
        """Read schema.table or catalog.schema.table, where a part in backticks may hold anything.

        Raises UsageError, which names the option.
        """
        part = r"`(?:[^`]|``)+`|[^`.\s]+"
        if not re.fullmatch(rf"(?:{part})(?:\.(?:{part})){{1,2}}", text):
            raise UsageError(
                f"{option} {text} is not the name of a table: write it as schema.table or catalog.schema.table, parts "
                "with dots or spaces in backticks, as in lake.`shop changes`."
            )
        found = re.findall(part, text)
        return cls(tuple(p[1:-1].replace("``", "`") if p[0] == "`" else p for p in found))

    @property
    def catalog(self) -> str | None:
        """The catalog that the name begins with, None for the session's own."""
        return self.parts[0] if len(self.parts) == 3 else None

    @property
    def schema(self) -> str:
        """The schema, after its catalog, as the YAML of a dbt project has it."""
        return ".".join(self.parts[:-1])

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return quoted(*self.parts)

    @property
    def schema_sql(self) -> str:
        """The schema's name as SQL."""
        return quoted(*self.parts[:-1])

    @property
    def file_name(self) -> str:
        """A name for files about this table, different for different tables."""
        return ".".join(quote(part.lower(), safe="").replace(".", "%2E") for part in self.parts)

    def __str__(self) -> str:
        return ".".join(part if re.fullmatch(r"\w+", part) else quoted(part) for part in self.parts)


@dataclass(frozen=True)
class Appended:
    """What one append left in staging: its number (None: no rows), its rows, and how many of these have no object.

    `erased`: how many change records of erased keys were dropped.
    """

    batch: int | None
    rows: int
    without_object: int
    erased: int = 0


class Staging:
    """A staging table, opened by the one job that appends to it."""

    # The properties of this job's appends.
    _beside, _append_name, _number_name = False, _APPEND, _NUMBER

    def __init__(
        self,
        spark: SparkSession,
        name: TableName,
        job: str,
        without_checkpoint: str = "append every file again",
        skips_epochs: bool = False,
        beside: bool = False,
        register: Register | None = None,
    ) -> None:
        """Open the table, made if it is missing.

        `without_checkpoint`: what the job does after its checkpoint was deleted, for messages. `skips_epochs`: whether
        the job appends only some of its micro-batches. `beside`: whether it appends beside the job to which the table
        belongs, without a checkpoint. `register`: how the job knows records of erased keys; None if it does not.
        Raises UsageError for a table of another job, or of another form, and for one with erased keys that the job
        could not drop.
        """
        self.name = name
        self._spark = spark
        self._format = format_of(spark, name.catalog)
        self._job = job
        self._without_checkpoint = without_checkpoint
        self._register = register
        self._left_out_by: str | None = None  # the register by which rows were left out before they came here
        self._skips_epochs = skips_epochs
        if beside:
            self._beside, self._append_name, self._number_name = True, _APPEND_BESIDE, _NUMBER_BESIDE
        if not spark.catalog.tableExists(name.sql):
            self._create()
        self._properties = self._read_properties()
        self._refuse_unknown_properties()
        self._refuse_others()
        self._refuse_erased()
        self._set(dict(self._format.append_properties))
        if _LAST_BATCH in self._properties:
            self._last = int(self._properties[_LAST_BATCH])
        else:
            # A table that was filled or copied by hand. Its last batches may be purged: their numbers are used.
            is_snapshot = f"count_if(object = '{SNAPSHOT}' and source = 'snapshot')"
            found, snapshots = spark.table(name.sql).selectExpr("max(batch)", is_snapshot).collect()[0]
            if snapshots and _APPEND_BESIDE not in self._properties:
                self._set({_APPEND_BESIDE: _COPIED})  # by which models know that there are snapshots
            purged = [int(batch) for key, batch in self._properties.items() if key.startswith(_PURGED)]
            self._last = max(found or 0, *purged, 0)

    def open_checkpoint(self, location: str | None) -> tuple[str, bool]:
        """Return the full name of the checkpoint (None: the table's own), and whether its content was lost.

        Raises UsageError for the checkpoint of another table.
        """
        path = hadoop_path(self._spark, location or f"lakehouse/_checkpoints/{self.name.file_name}")
        files = path.getFileSystem(self._spark._jsc.hadoopConfiguration())
        location = str(files.makeQualified(path).toString())
        if files.exists(path) and files.getFileStatus(path).isFile():
            raise UsageError(f"The checkpoint {location} is a file: name a directory with --checkpoint.")
        if damage := checkpoint_damage(self._spark, location):
            raise self.damaged_checkpoint(location, damage)
        committed = last_commit(self._spark, location)
        return location, self.check_checkpoint(location, checkpoint_id(self._spark, location), committed)

    def damaged_checkpoint(self, location: str, damage: str) -> UsageError:
        """Return the sentence about a checkpoint from which Spark or the job cannot go on."""
        return UsageError(
            f"The checkpoint {location} is damaged, as after a power cut ({damage}): delete it to "
            f"{self._without_checkpoint}, under new batch numbers. No row is lost by that, and none is there twice."
        )

    def check_checkpoint(self, location: str, query_id: str | None, committed: int | None) -> bool:
        """Return whether a checkpoint was lost, so that its files come again.

        `query_id` is the id in the checkpoint, None if it is new; `committed`: its last finished micro-batch, if any.
        Raises UsageError for the checkpoint of another table. Raises UsageError, too, if the table was set back to a
        version without appends that the checkpoint has as done.
        """
        known_id, _, known_location = self._properties.get(_CHECKPOINT, "").partition(" ")
        if query_id is not None and query_id == known_id:
            if self.was_set_back(committed):
                raise UsageError(
                    f"The staging table {self.name} was restored to a version before its last appends, and the "
                    f"checkpoint {location} has these appends as done: restore the table's newest version; or delete "
                    f"the checkpoint to {self._without_checkpoint}, under batch numbers that were not used before."
                )
            return False
        if committed is not None:
            # By this checkpoint some files are done that this table never received.
            raise UsageError(
                f"The checkpoint {location} belongs to another table than {self.name}, or to a table that was dropped: "
                f"name another with --checkpoint, or delete it to {self._without_checkpoint}."
            )
        self.number_after_all_appends()
        if not known_id:
            return False
        if known_location != location and checkpoint_id(self._spark, known_location) == known_id:
            raise UsageError(
                f"The staging table {self.name} is written with the checkpoint {known_location}: name it with "
                f"--checkpoint, or delete it to {self._without_checkpoint}."
            )
        return True

    def was_set_back(self, committed: int | None = None) -> bool:
        """Return whether the table was restored to a version from before its last append.

        `committed`: the last micro-batch that the checkpoint has as done. A table that was copied back as files has
        no trace of later appends; but the checkpoint has.
        """
        query_id, _, append = self._properties.get(self._append_name, "//").partition("/")
        if not query_id:
            return False
        epoch = int(append.partition("/")[0])
        if not self._skips_epochs and committed is not None and committed > epoch:
            return True
        return self._format.was_set_back(self._spark, self.name.sql, query_id, epoch)

    def number_after_all_appends(self) -> None:
        """Continue the numbers after all that were ever given out: a table that was restored knows fewer."""
        self._last = max(self._last, self._format.appends(self._spark, self.name.sql))

    def kept(self, name: str) -> str | None:
        """Return what the job keeps with its table under this name."""
        return self._properties.get(f"reconcile.{name}")

    def keep(self, name: str, value: str) -> None:
        """Keep a text with the table. The text outlives the table's rows and its checkpoint."""
        self._set({f"reconcile.{name}": value})

    @property
    def last_batch(self) -> int:
        """The largest number of an append, 0 before the first."""
        return self._last

    def has_begun(self, query_id: str, epoch: int) -> bool:
        """Whether this micro-batch has been given a number."""
        return self._properties.get(self._append_name, "").startswith(f"{query_id}/{epoch}/")

    def begun(self, query_id: str) -> int:
        """Return the micro-batch of this query that last got a number; -1 if the last one was of another query."""
        of, _, rest = self._properties.get(self._append_name, "").partition("/")
        return int(rest.partition("/")[0]) if of == query_id else -1

    def append(
        self, records: DataFrame, source: str, query_id: str, location: str, epoch: int, files: Iterable[str]
    ) -> Appended:
        """Append `record` and `origin` of the frame as one atomic batch, once for each (query id, epoch).

        The frame may have the `object` of each record, and then its `source`, too; else the object is read from the
        record.

        The batch gets its number before its data: the table's properties say which micro-batch the number belongs to.
        If the job is killed in between, the same micro-batch takes the number again, and no other ever does. The rows
        of a micro-batch that the table already has are dropped. `files` are all files of the micro-batch. Raises
        UsageError if another job has appended in the meantime. Raises UsageError, too, if the checkpoint was restored
        to an earlier state: its new files would be dropped as rows that the table already has.
        """
        self._refuse_second_writer()
        self._refuse_other_register()
        content = hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()[:16]
        append = f"{query_id}/{epoch}/{content}"
        known = self._properties.get(self._append_name, "")
        again = known == append
        seen = re.match(rf"{re.escape(query_id)}/(\d+)/", known)
        if seen and epoch <= int(seen[1]) and known.removesuffix(_EMPTY) != append:
            raise UsageError(
                f"The checkpoint {location} was restored: the staging table {self.name} already has its append "
                f"{epoch}, with other content. Delete the checkpoint to {self._without_checkpoint}."
            )
        given = int(self._properties.get(self._number_name, self._last))
        taken = self._taken_number(query_id, epoch, given) if again else self._last
        batch = given if taken is None else max(taken, self._last) + 1
        own = {_TURN: append} if self._beside else {_CHECKPOINT: f"{query_id} {location}"}
        self._last = max(self._last, batch)
        self._set({_LAST_BATCH: str(self._last), self._append_name: append, self._number_name: str(batch), **own})
        failpoints.reach("before_data_commit")
        try:
            rows_to_append = self._without_erased(self._rows(records, source, batch))
            self._format.append(self._spark, rows_to_append, self.name.sql, query_id, epoch, batch)
        except Exception:
            with suppress(Exception):
                self._end_turn()
            raise
        self._end_turn()
        failpoints.reach("after_data_commit")
        # Counted in the table, since rows of a micro-batch that the table already has are dropped by the append.
        of_erased = [self._register.records.erased_in_batch] if self._register and self.kept("erased") else []
        counts = ["count(*)", "count_if(object is null)", *of_erased]
        rows, without_object, *erased = (
            self._spark.table(self.name.sql).where(f"batch = {batch}").selectExpr(*counts).collect()[0]
        )
        if rows == 0 and not again and records.isEmpty():
            # An append without rows gives its number back. If the rows were purged since, the number stays used. The
            # job beside this one may have been given the next number meanwhile: then no number is given back.
            is_last = self._read_properties().get(_LAST_BATCH) == str(batch)
            self._last = batch - 1 if is_last else batch
            given_back = {_LAST_BATCH: str(self._last)} if is_last else {}
            self._set({**given_back, self._append_name: f"{append}{_EMPTY}"})
        return Appended(batch if rows else None, rows, without_object, *erased)

    def _without_erased(self, rows: DataFrame) -> DataFrame:
        """Return the rows of an append without what has erased keys."""
        text = self._properties.get(_ERASED)
        if not text or self._register is None or self._left_out_by is not None:
            return rows
        return self._register.marked(self._spark, str(self.name), self._register_sql, text, rows)

    def leave_out_erased(self, rows: DataFrame, object_: str, row: str) -> tuple[DataFrame, int]:
        """Return the rows of a table, to be staged for an object, without those of erased keys, and how many these are.

        `row`: SQL for the JSON of a row. For jobs that compare or count rows before they append them.
        """
        text = self._left_out_by = self._properties.get(_ERASED) or ""
        if not text or self._register is None:
            return rows, 0
        return self._register.left_out(self._spark, str(self.name), self._register_sql, text, rows, object_, row)

    @property
    def _register_sql(self) -> str:
        return quoted(*self.name.parts[:-1], f"{self.name.parts[-1]}__erased")

    def _refuse_other_register(self) -> None:
        """Raise Fault where keys were erased since rows were left out."""
        if self._left_out_by not in (None, self._properties.get(_ERASED) or ""):
            raise Fault(
                f"Keys were erased from {self.name} while this job read its rows, and nothing was appended: run the "
                "same command again."
            )

    def _refuse_erased(self) -> None:
        """Raise UsageError where records of erased keys would come back, or where the secret is missing or another."""
        if not (text := self._properties.get(_ERASED)):
            return
        if self._register is None:
            raise UsageError(
                f"The staging table {self.name} has erased keys, and this job ({self._job}) cannot drop later records "
                "of them so far, so nothing was appended: leave the rows out at the source, and name another table "
                "with --staging."
            )
        self._register.refuse_other_secret(str(self.name), text)

    def _taken_number(self, query_id: str, epoch: int, given: int) -> int | None:
        """Return the largest number in the table if the micro-batch cannot use the number `given`; None if it can.

        Another job, or a hand, may have taken the number. Or the job beside this one was given a later number: what a
        model has applied up to that one must not be followed by rows under an earlier number.
        """
        if self._format.has_appended(self._spark, self.name.sql, query_id, epoch):
            return None
        taken = self._spark.table(self.name.sql).where(f"batch >= {given}").selectExpr("max(batch)").collect()
        largest: int | None = taken[0][0]
        return largest if self._last <= given else max(largest or 0, self._last)

    def _rows(self, records: DataFrame, source: str, batch: int) -> DataFrame:
        from pyspark.sql import functions as f

        if "object" in records.columns:
            return records.select(
                "record",
                f.col("source") if "source" in records.columns else f.lit(source).alias("source"),
                "object",
                "origin",
                f.lit(batch).cast("bigint").alias("batch"),
                f.current_timestamp().alias("appended_at"),
            )
        # from_json reads up to the end of the first document, so a second document is looked for. from_json also turns
        # an object or a number into a text, so the type of what looks like one is asked.
        both = f"concat('[', record, ',{{\"object\":\"{_AFTER}\"}}]')"
        parsed = f.expr(f"from_json({both}, 'array<struct<object string>>', {JSON_LIMITS})")
        name = "parsed[0].object"
        kind = f"schema_of_variant(from_json(record, 'object variant', {JSON_LIMITS}).object)"
        text_or_not = (
            f"if(left({name}, 1) rlike '[-0-9{{\\\\[]' or {name} in ('true', 'false'), "
            f"if({kind} = 'STRING', {name}, null), {name})"
        )
        return records.select("record", "origin", parsed.alias("parsed")).select(
            "record",
            f.lit(source).alias("source"),
            f.expr(
                f"if(size(parsed) = 2 and parsed[1].object = '{_AFTER}' and is_valid_utf8(record) "
                f"and {name} not in {_NO_NAMES}, {text_or_not}, null)"
            ).alias("object"),
            "origin",
            f.lit(batch).cast("bigint").alias("batch"),
            f.current_timestamp().alias("appended_at"),
        )

    def _create(self) -> None:
        if not self._spark.catalog.databaseExists(self.name.schema_sql):
            self._spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.name.schema_sql}")
        columns = ", ".join(f"{column} {kind}" for column, kind in _COLUMNS.items())
        properties = {
            **self._format.staging_properties,
            **self._format.append_properties,
            **({} if self._beside else {_JOB: self._job}),
            _LAST_BATCH: "0",
        }
        create = (
            f"CREATE TABLE IF NOT EXISTS {self.name.sql} ({columns}) USING {self._format.name} PARTITIONED BY (object) "
            f"COMMENT 'Change records as delivered; one writing job' TBLPROPERTIES ({property_pairs(properties)})"
        )
        try:
            self._spark.sql(create)
        except Exception as problem:
            if not _MADE_BY_ANOTHER.search(str(problem)):
                raise
            self._wait_until_made(problem, create)

    def _wait_until_made(self, problem: Exception, create: str) -> None:
        """Wait until another job has made the table that both began; the table shows who may append. Raises Fault.

        If that job was killed while it did so, and left nothing but what a table begins with, make it anew.
        """
        for _ in range(_PATIENCE):
            if self._spark.catalog.tableExists(self.name.sql):
                return
            time.sleep(1)
        # Of another catalog it is not known where its tables lie.
        if self.name.catalog is None and self._format.go_on_making(self._spark, self.name.sql, *self.name.parts):
            self._spark.sql(create)
            return
        raise Fault(
            f"Another job is creating the staging table {self.name}, or was killed while it did so: run the "
            "same command again. If it says this again and no other job runs, look at the table's directory: delete "
            f"what a killed job left there, and nothing else. Spark says: {explained(problem)}"
        ) from problem

    def _refuse_unknown_properties(self) -> None:
        for name, form in _FORMS.items():
            text = self._properties.get(name)
            if text is not None and not re.fullmatch(form, text, re.DOTALL):
                raise UsageError(changed_by_hand(self.name, name, text))

    def _refuse_others(self) -> None:
        columns = {f.name: f.dataType.simpleString() for f in self._spark.table(self.name.sql).schema.fields}
        if columns != _COLUMNS:
            advice = "name another with --staging, and it will be created"
            if self._properties.get(_JOB):
                advice = "make its columns what they were before somebody changed them"
            raise UsageError(f"The table {self.name} is not a staging table. It {_differences(columns)}: {advice}.")
        owner = self._properties.get(_JOB)
        if self._beside:
            return
        if owner is None:
            self._set({_JOB: self._job})
        elif owner != self._job:
            raise UsageError(
                f"The staging table {self.name} belongs to another job ({owner}): name another with --staging; or, if "
                f"that one is gone for good, ALTER TABLE {self.name.sql} UNSET TBLPROPERTIES ({literal(_JOB)})."
            )

    def _refuse_second_writer(self) -> None:
        """Raise UsageError where another job appends as this one does, or Fault if that one is done with one append.

        Of the log and the snapshots beside it each goes on from the numbers that the other has given out. If both give
        out one at the same moment, the table's format refuses the second append.
        """
        own, stored = self._properties, self._properties_after_a_turn()
        others = (_APPEND, _NUMBER, _CHECKPOINT, _JOB) if self._beside else (_APPEND_BESIDE, _NUMBER_BESIDE)
        if own.get(_ERASED) != stored.get(_ERASED):
            own[_ERASED] = stored.get(_ERASED, "")
            self._refuse_erased()
        if any(own.get(key) != stored.get(key) for key in others):
            self._last = max(self._last, int(stored.get(_LAST_BATCH, 0)))
            own |= {key: stored[key] for key in (*others, _LAST_BATCH) if key in stored}
        if self._beside and own.get(self._append_name) != stored.get(self._append_name):
            raise Fault(
                f"Another snapshot was staged into {self.name} at this moment, and nothing of this one was appended: "
                "run the same command again."
            )
        if any(own.get(key) != stored.get(key) for key in (_JOB, _CHECKPOINT, _LAST_BATCH, _APPEND, self._append_name)):
            raise UsageError(
                f"Another job is appending to the staging table {self.name} at this moment: end it, or name another "
                "table with --staging. One job at a time writes a staging table."
            )
        if own.get(_MASKS) != stored.get(_MASKS):
            raise UsageError(
                f"Another job has masked more fields in {self.name} than this one does: end this job, and start it "
                "with the same --masks and key."
            )

    def _properties_after_a_turn(self) -> dict[str, str]:
        """Return the stored properties; the job of the log waits while the job beside it has its turn."""
        began, awaited = time.monotonic(), ""
        while True:
            stored = self._read_properties()
            turn = stored.get(_TURN, "")
            if self._beside or not turn:
                return stored
            if turn != awaited:
                began, awaited = time.monotonic(), turn
            if time.monotonic() - began >= _LONGEST_TURN:
                self._set({_TURN: ""})
                return stored
            time.sleep(1)

    def _end_turn(self) -> None:
        if self._beside:
            self._set({_TURN: ""})

    def _read_properties(self) -> dict[str, str]:
        return self._format.properties(self._spark, self.name.sql)

    def _set(self, properties: dict[str, str]) -> None:
        if any(self._properties.get(key) != value for key, value in properties.items()):
            _set_properties(self._spark, self.name, properties)
            self._properties |= properties


def kept(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return what is kept with a staging table, name by name, for those who do not append to it."""
    properties = format_of(spark, table.catalog).properties(spark, table.sql)
    return {name.removeprefix("reconcile."): value for name, value in properties.items()}


def is_purged(properties: Mapping[str, str], object_: str) -> bool:
    """Return whether records of an object were purged. `properties`: those of the staging table, as `kept` has them."""
    return batch_of_mark(properties, purge_mark(object_)) > 0


def batch_of_mark(properties: Mapping[str, str], mark: str) -> int:
    """Return how far a purge mark says that an object was purged, 0 if it was not. Raises UsageError."""
    text = properties.get(mark) or "0"
    if not re.fullmatch("[0-9]{1,18}", text):
        raise UsageError(
            f"The property reconcile.{mark} of the staging table is {text[:80]!r}, which no job has written: set it to "
            "what it was before somebody changed it."
        )
    return int(text)


def purge_mark(object_: str) -> str:
    """Return the name under which a staging table keeps how far an object was purged: see `kept`.

    macros/ledger/purged_through.sql has the same name.
    """
    return f"{_PURGED.removeprefix('reconcile.')}{hashlib.md5(object_.encode()).hexdigest()}"


def was_set_back(spark: SparkSession, table: TableName) -> bool:
    """Return whether a staging table was restored to before its last append, for those who do not append to it."""
    table_format = format_of(spark, table.catalog)
    properties = table_format.properties(spark, table.sql)
    for name in (_APPEND, _APPEND_BESIDE):
        found = re.match(r"([^/]+)/([0-9]+)/", properties.get(name, ""))
        if found and table_format.was_set_back(spark, table.sql, found[1], int(found[2])):
            return True
    return False


def keep(spark: SparkSession, table: TableName, name: str, value: str) -> None:
    """Keep a text with a staging table that somebody else appends to."""
    keep_all(spark, table, {name: value})


def keep_all(spark: SparkSession, table: TableName, texts: dict[str, str]) -> None:
    """Keep several texts with a staging table that somebody else appends to, all of them in one commit."""
    _set_properties(spark, table, {f"reconcile.{name}": value for name, value in texts.items()})


def _set_properties(spark: SparkSession, table: TableName, properties: dict[str, str]) -> None:
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({property_pairs(properties)})")


def property_pairs(properties: dict[str, str]) -> str:
    """Return what stands in the brackets of TBLPROPERTIES."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def _differences(columns: dict[str, str]) -> str:
    """Return how the columns of a table differ from those of a staging table."""
    lacking = [f"{name} {kind}" for name, kind in _COLUMNS.items() if name not in columns]
    other = [
        f"{name} as {columns[name]} in place of {kind}"
        for name, kind in _COLUMNS.items() if columns.get(name, kind) != kind
    ]  # fmt: skip
    more = [name for name in columns if name not in _COLUMNS]
    said = [f"lacks {', '.join(lacking)}"] if lacking else []
    said += [f"has {', '.join(other)}"] if other else []
    said += [f"has columns that no staging table has ({first_of(more, 8)})"] if more else []
    return "; it ".join(said)
