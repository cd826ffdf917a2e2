"""A snapshot table becomes an append beside the records of a log: all of its rows, and its position, exactly once.

A base table begins from it, or is repaired by it where changes of the log were lost. What staging holds of a snapshot:

- its rows, `{"row": {...}}`, with object `#snapshot of <object>`: under an object of their own, since they are no
  records of the log. Values are as rows_as_json.py writes them.
- one row with object `#snapshot`, whose record says what it is, see `_Cut`, and how many rows it has; `place` counts
  the snapshots of the object. The models read it: macros/model/snapshot_of_log.sql.

All of it is one commit, with one number of a batch. The log's own job goes on appending meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from reconcile_jobs.bigtable.restated_cells import restated_cells
from reconcile_jobs.cuts import Cuts, again_if_overtaken, checked_object
from reconcile_jobs.log_positions import (
    BIGTABLE,
    DATASTREAM,
    SPANNER,
    OfDatastream,
    Place,
    Position,
    ReadTimestamp,
    Restated,
    position_of,
)
from reconcile_jobs.masks import keep_masks_of_rows
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import UsageError, in_sentences
from reconcile_jobs.process.session import settings
from reconcile_jobs.rows_as_json import EXACT, rows_as_json
from reconcile_jobs.snapshot_differences import (
    OF_SNAPSHOT,
    SOURCE,
    Job,
    has_no_key,
    key_of,
    moment_of,
    refuse_empty,
    refuse_keys,
    refuse_loaded_anew,
    refuse_long,
    refuse_other,
    snapshot_properties,
)
from reconcile_jobs.staging import SNAPSHOT, Appended, Staging, is_purged, kept, literal
from reconcile_jobs.table_formats import format_of
from reconcile_jobs.timestamps import nanoseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CUT", "Totals", "is_beside_log", "rows_object", "run"]

CUT = SNAPSHOT

# A property of staging tables of a log: their job. Tables of snapshots alone say `snapshot`.
_JOB, _APPENDS_BESIDE = "reconcile.job", "reconcile.appends_beside"

# What identifies a cell of Bigtable.
_KEY_OF_CELL = ("row_key", "family", "qualifier", "cell_time")

# Four hex digits of `_change_sequence`.
_MOST = 0xFFFF


def rows_object(object_: str) -> str:
    """Return the object under which the rows of an object's snapshots are staged."""
    return f"{CUT} of {object_}"


@dataclass
class Totals:
    """What one run has appended: the rows of the snapshot, 0 if it was there.

    `erased_rows`: those of erased keys, which were left out; they are none of the rows.
    """

    object: str
    rows: int = 0
    erased_rows: int = 0
    position: str | None = None
    taken_at: str | None = None
    first_batch: int | None = None
    last_batch: int | None = None


@dataclass(frozen=True)
class _Cut:
    """What staging says of a snapshot. `uncertainty`: how far around its moment a position of time is uncertain."""

    place: int
    snapshot: str
    position_kind: str
    position: str
    taken_at: str
    key: list[str]
    columns: dict[str, str]
    rows: int
    uncertainty: str = "1 hour"


def is_beside_log(spark: SparkSession, job: Job) -> bool:
    """Return whether the staging table holds a log, or is to hold one."""
    if job.beside_log or not spark.catalog.tableExists(job.staging.sql):
        return job.beside_log
    properties = format_of(spark, job.staging.catalog).properties(spark, job.staging.sql)
    return properties.get(_JOB, SOURCE) != SOURCE or _APPENDS_BESIDE in properties


def run(spark: SparkSession, job: Job, caller: Caller | None = None) -> Totals:
    """Append one snapshot whole, with its position, and return what it was. Raises JobError."""
    with in_sentences(), settings(spark, EXACT):
        return again_if_overtaken(_Run(spark, job, caller or Caller()).run)


class _Run:
    def __init__(self, spark: SparkSession, job: Job, caller: Caller) -> None:
        self.spark, self.job, self.say, self.progress = spark, job, caller.say, caller.progress

    def run(self) -> Totals:
        job = self.job
        if job.at is not None:
            raise UsageError(
                "--at is not for a snapshot beside a log: its table says when it was taken, and a wrong moment would "
                "set rows back."
            )
        properties = snapshot_properties(self.spark, job.table)
        position = self._position_of(properties)
        moment = moment_of(job, properties)
        rows = self.spark.table(job.table.sql)
        staging = Staging(self.spark, job.staging, SOURCE, beside=True, register=job.register)
        self._refuse_other_job(position, properties)
        object_ = self._object_of(properties)
        key = self._key(rows, object_, position, moment)
        self.cuts = Cuts(self.spark, staging, SOURCE, CUT, beside=True)
        known = self.cuts.newest(object_)
        snapshot = properties[f"{OF_SNAPSHOT}.id"]
        totals = Totals(object_, position=position.text, taken_at=moment)
        if known is not None and known["snapshot"] == snapshot:
            self.say(f"this snapshot of {object_} is already in {job.staging}, and nothing was appended")
            return totals
        if known is not None:
            self._refuse_earlier(known, position, object_)
            columns = dict(rows.dtypes)
            refuse_other(job, object_, known["taken_at"], known["key"], known["columns"], moment, key, columns)
        cut = _Cut(
            place=1 + (known["place"] if known else 0),
            snapshot=snapshot,
            position_kind=position.kind,
            position=position.text,
            taken_at=moment,
            key=key,
            columns=dict(rows.dtypes),
            rows=0,
        )
        if cut.place > _MOST:
            raise UsageError(f"{job.staging} has {_MOST:,} snapshots of {object_}: stage into a new --staging.")
        self.mark = keep_masks_of_rows(staging, object_, properties, cut.columns)
        self.progress(f"reading {job.table}")
        rows, totals.erased_rows = staging.leave_out_erased(rows, object_, rows_as_json(rows, cut.columns))
        self._append(rows, position, cut, totals)
        return totals

    def _position_of(self, properties: Mapping[str, str]) -> Position:
        """Return the position of the snapshot in the log. Raises UsageError where it has none that can be used."""
        if properties.get(OF_SNAPSHOT) == BIGTABLE:
            return Restated.before(moment_of(self.job, properties))
        kind, position = (properties.get(f"{OF_SNAPSHOT}.{name}") for name in ("position_kind", "position"))
        if not kind or not position:
            raise UsageError(
                f"{self.job.table} has no position in a log, so nothing says which changes it contains: take it from "
                "the database with snapshot.py jdbc, or name the position with snapshot.py csv --pg-snapshot."
            )
        return position_of(kind, position, self.job.table)

    def _refuse_other_job(self, position: Position, properties: Mapping[str, str]) -> None:
        """Raise UsageError where the staging table is not that of a log of the snapshot's database."""
        staging = self.job.staging
        owner = format_of(self.spark, staging.catalog).properties(self.spark, staging.sql).get(_JOB)
        if owner == SOURCE:
            raise UsageError(
                f"{staging} holds snapshots of tables without a log: leave --beside-log out, or name the staging table "
                "of the log with --staging."
            )
        if owner is None:
            return
        job, _, source = owner.partition(" ")
        if job not in (DATASTREAM, SPANNER, BIGTABLE):
            raise UsageError(
                f"{staging} belongs to the job {owner}, and only beside the files of Datastream and the change streams "
                "of Spanner and Bigtable are snapshots staged so far: stage it into a staging table of its own, whose "
                "models read it with the macro snapshots."
            )
        database = properties.get(f"{OF_SNAPSHOT}.database")
        if job == BIGTABLE:
            database = "{}/tables/{}".format(
                *(properties.get(f"{OF_SNAPSHOT}.{name}") for name in ("instance", "table"))
            )
        if job != position.log or (job != DATASTREAM and database and not f"{source}/".startswith(f"{database}/")):
            raise UsageError(
                f"{staging} belongs to the job {owner}, and the snapshot is of {database or position.database}: take "
                "it from the database of the log."
            )

    def _object_of(self, properties: Mapping[str, str]) -> str:
        """Return the log's name of the table. Raises UsageError where nothing says it."""
        job = self.job
        staged = self.spark.table(job.staging.sql).where("object is not null and object not like '#%'")
        objects = sorted(row.object for row in staged.select("object").distinct().collect())
        self.has_records = bool(objects)
        if job.object is not None:
            is_there = job.object in objects or is_purged(kept(self.spark, job.staging), job.object)
            if objects and not is_there:
                raise UsageError(
                    f"{job.staging} has no records of {job.object}: --object names a table as the log does, one of "
                    f"{', '.join(objects)}."
                )
            return checked_object(job.object)
        table = properties.get(f"{OF_SNAPSHOT}.table") or job.table.parts[-1]
        meant = {table.lower(), table.lower().replace(".", "_")}
        found = [object_ for object_ in objects if object_.lower() in meant]
        if len(found) != 1:
            raise UsageError(
                f"--object is missing: which table of the log {job.table} is does not follow from its name, {table}. "
                f"The log has {', '.join(objects) or 'no records yet'}."
            )
        return str(found[0])

    def _key(self, rows: DataFrame, object_: str, position: Position, moment: str) -> list[str]:
        """Return the key, which the newest record of the log names, as the table spells it. Raises UsageError."""
        if isinstance(position, Restated):
            of_log: Sequence[str] = _KEY_OF_CELL
        elif isinstance(position, ReadTimestamp):
            of_log = self._key_of_spanner(object_)
        else:
            of_log = self._key_of_datastream(object_, position, moment)
        if self.job.key is None and not of_log:
            raise UsageError(
                f"--key is missing: no record of {object_} in {self.job.staging} names the key of the table."
            )
        asked = list(self.job.key or of_log)
        if of_log and sorted(map(str.lower, asked)) != sorted(map(str.lower, of_log)):
            raise UsageError(
                f"The key of {object_} is {', '.join(of_log)}, as its records in {self.job.staging} say, and not "
                f"{', '.join(asked)}: leave --key out."
            )
        return key_of(rows, asked, self.job.table)

    def _key_of_datastream(self, object_: str, position: OfDatastream, moment: str) -> Sequence[str]:
        logs = [f"{log}_{part} string" for log in ("log", "binlog") for part in ("file", "position")]
        fields = ["primary_keys array<string>", "replication_index array<string>", "lsn string", "scn string", *logs]
        was_before = f"appended_at < to_timestamp({literal(moment)}) - interval '1 hour'"
        newest = (
            self.spark.table(self.job.staging.sql)
            .where(f"object = {literal(object_)} and source = 'datastream'")
            .selectExpr(
                "batch", "appended_at",
                f"from_json(record, 'read_method string, source_metadata struct<{', '.join(fields)}>') as said",
            )
            .selectExpr("batch", "appended_at", "said.read_method", "said.source_metadata.*")
            .selectExpr(
                "batch", "appended_at", "read_method", "lsn", "scn",
                "coalesce(primary_keys, replication_index) as key",
                "coalesce(log_file, binlog_file) as file", "coalesce(log_position, binlog_position) as offset",
            )
            .where("cardinality(key) > 0")
            .selectExpr(
                "max_by(key, batch) as key", "count(*) as records", f"count_if({position.of_database}) as of_database",
                "max_by(file, if(file is null, null, batch)) as file",
                f"max(if({was_before}, {position.place_of_record}, null)) as place",
            )
            .collect()[0]
        )  # fmt: skip
        if newest.records and not newest.of_database:
            raise UsageError(
                f"No record of {object_} in {self.job.staging} is one of {position.database}, as the snapshot is: take "
                "it from the database of the log."
            )
        self._refuse_other_log(object_, position, newest.file, newest.place)
        return list(newest.key or ())

    def _key_of_spanner(self, object_: str) -> Sequence[str]:
        newest = (
            self.spark.table(self.job.staging.sql)
            .where(f"object = {literal(object_)} and source = 'spanner'")
            .selectExpr("batch", "json_object_keys(get_json_object(record, '$.mods[0].keys')) as key")
            .selectExpr("max_by(key, if(key is null, null, batch)) as key")
            .collect()[0]
        )
        return list(newest.key or ())

    def _refuse_other_log(self, object_: str, position: OfDatastream, file: str | None, place: Any) -> None:
        """Raise UsageError where the log of the snapshot is not that of the records.

        `file`: the binary log of the newest record, None if it names none. `place`: the last one of the records that
        were appended before the snapshot was taken, which a snapshot of the log's server contains, in the form of
        `place_of_record`; None if there is none. Clocks may differ by an hour.
        """
        behind = position.behind(place)
        if isinstance(position, Place) and file and file.rstrip("0123456789") != position.name:
            said = f"The records of {object_} in {self.job.staging} are of {file}"
        elif behind is not None:
            said = (
                f"{self.job.staging} has a change of {object_} at {behind}, appended an hour or more before the "
                "snapshot was taken"
            )
        else:
            return
        log = "binary log" if isinstance(position, Place) else "log"
        raise UsageError(
            f"{said}, and the snapshot is of {position.text}: it is of another server, or the {log} has begun anew. "
            "Take it from the server of the log; for a log that has begun anew, stage into a new --staging."
        )

    def _refuse_earlier(self, known: Mapping[str, Any], position: Position, object_: str) -> None:
        """Raise UsageError where this snapshot does not contain all that the snapshot before it contains."""
        before = position_of(known["position_kind"], known["position"], self.job.table)
        if not position.contains(before):
            raise UsageError(
                f"This snapshot of {object_} at {position.text} does not contain the one at {before.text} that "
                f"{self.job.staging} has: it is of an earlier moment, or of another server. Take a new one."
            )

    def _append(self, rows: DataFrame, position: Position, cut: _Cut, totals: Totals) -> None:
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        job, head = self.job, f'{{{self.mark}"row":'
        made = rows.select(
            f.expr(rows_as_json(rows, cut.key)).alias("key"),
            f.expr(f"concat({literal(head)}, {rows_as_json(rows, list(cut.columns))}, '}}')").alias("record"),
            f.expr(has_no_key(cut.key)).alias("has_no_key"),
        ).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            counted = made.selectExpr(
                "count(*)", "count_if(has_no_key)", "max_by(key, octet_length(record))",
                "coalesce(max(octet_length(record)), 0)",
            ).collect()[0]  # fmt: skip
            totals.rows = counted[0]
            repeated = made.groupBy("key").count().orderBy(f.desc("count")).limit(1).collect()
            refuse_keys(job, cut.key, counted[1], *((repeated[0][1], repeated[0][0]) if repeated else (0, None)))
            refuse_long(job, counted[3], counted[2])
            refuse_empty(job, totals.object, totals.rows)
            refuse_loaded_anew(self.spark, job.table, cut.snapshot)
            content = asdict(cut) | {"rows": totals.rows}
            origin = f"{job.table}/{cut.snapshot}"
            if isinstance(position, Restated):
                appended = self._append_restated(rows, position, origin, content, totals)
            else:
                appended = self.cuts.append(
                    made.select("record"), totals.object, origin, content, rows_object(totals.object)
                )
        finally:
            made.unpersist()
        totals.first_batch = totals.last_batch = appended.batch
        if not self.has_records:
            self.say(
                f"{job.staging} has no records of a log yet: if the log has another name for {totals.object}, no model "
                "will see this snapshot. Then take it back, and stage it with --object as the log names the table."
            )
        self.say(f"{totals.object}: {totals.rows:,} rows at {cut.position_kind} {cut.position}")

    def _refuse_behind(self, position: Restated) -> None:
        """Raise UsageError where staging perhaps lacks changes of before the position.

        Then it does not name all rows that may have to be emptied, and a change that reaches the stream later, as from
        another cluster, may not be in the cells that were read.
        """
        cuts = self.spark.table(self.job.staging.sql).where(f"object = '#cut' and source = '{BIGTABLE}'")
        newest = (
            cuts.groupBy("batch")
            .agg({"record": "collect_list"})
            .selectExpr(
                "batch", "array_min(transform(`collect_list(record)`, r -> get_json_object(r, '$.low_watermark')))"
            )
            .orderBy("batch", ascending=False)
            .limit(1)
            .collect()
        )
        watermark = newest[0][1] if newest else None
        if watermark is None or nanoseconds(watermark) < position.number:
            raise UsageError(
                f"{self.job.staging} has the changes up to {watermark or 'no known moment'}, and the snapshot counts "
                f"as of {position.text}, an hour before it was taken: run append.py bigtable, and then the same "
                "command again."
            )

    def _append_restated(
        self, cells: DataFrame, position: Restated, origin: str, content: Mapping[str, Any], totals: Totals
    ) -> Appended:
        """Append the cells as changes of the log, with what says that they are those of a snapshot."""
        job, object_ = self.job, totals.object
        if is_purged(kept(self.spark, job.staging), object_):
            raise UsageError(
                f"Records of {object_} were purged from {job.staging}, so nothing says which rows the models have that "
                "the snapshot lacks: stage the table into a new --staging, with append.py bigtable --backfill."
            )
        self._refuse_behind(position)
        of_log = self.spark.table(job.staging.sql).where(f"object = {literal(object_)} and source = '{BIGTABLE}'")
        changes = restated_cells(cells, of_log, position.number)
        return self.cuts.append(changes, object_, origin, content, source=BIGTABLE)
