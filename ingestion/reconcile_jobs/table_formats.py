"""The two formats of tables, Delta Lake and Iceberg, and all in which they differ. A catalog has one of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from reconcile_jobs.hadoop_files import hadoop_path
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.errors import Fault, UsageError, causes
from reconcile_jobs.process.session import configured_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BESIDE",
    "AppendedSince",
    "NotFollowed",
    "TableFormat",
    "format_of",
    "iceberg_table",
    "properties_of_columns",
]


@dataclass(frozen=True)
class AppendedSince:
    """The rows that were appended to a table up to a position, a version or a snapshot; None if there are none."""

    rows: DataFrame | None
    position: str
    table_id: str


class NotFollowed(Exception):
    """A table did something else than append since a position; the message completes "the table ... "."""


class TableFormat(Protocol):
    """What a staging table needs of the format that it is written in."""

    name: ClassVar[str]  # as SQL calls it
    staging_properties: ClassVar[Mapping[str, str]]  # set when a staging table is made
    append_properties: ClassVar[Mapping[str, str]]  # set before any append
    any_names: ClassVar[Mapping[str, str]]  # for a column's name that the format otherwise refuses
    timestamps_ntz: ClassVar[Mapping[str, str]]  # for such a column where the table before had none

    def properties(self, spark: SparkSession, table: str) -> dict[str, str]:
        """Return a table's properties in full: SHOW TBLPROPERTIES would hide values that speak of a url or a token.

        Raises UsageError for a table of another format.
        """
        ...

    def append(self, spark: SparkSession, rows: DataFrame, table: str, query_id: str, epoch: int, batch: int) -> None:
        """Append rows in one commit, unless this micro-batch of the query was appended before.

        Raises what `errors.explained` knows, and appends nothing, where rows have this number of a batch already.
        """
        ...

    def has_appended(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether this micro-batch was appended, even if a restore took it back since.

        Delta also says so of earlier ones than the query's last; Iceberg knows only the table's last append.
        """
        ...

    def was_set_back(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether the table was restored to a version from before its last append.

        `query_id`, `epoch`: the last append in the table's properties, which a restore may set back too.
        """
        ...

    def was_set_back_before(self, spark: SparkSession, table: str, noted: str) -> bool:
        """Return whether the table does not follow from a snapshot of Iceberg; of Delta never asked.

        `noted`: as `present_snapshot` has returned it. The number tells where the snapshot has expired; a note of an
        earlier version of this package has none.
        """
        ...

    def present_snapshot(self, spark: SparkSession, table: str) -> str:
        """Return the snapshot of Iceberg and its number in the table's sequence, `<snapshot> <number>`; of Delta ''."""
        ...

    def appended_since(self, spark: SparkSession, table: str, position: str | None) -> AppendedSince:
        """Return the rows that were appended after a position, or all rows if it is None. Raises NotFollowed."""
        ...

    def go_on_making(self, spark: SparkSession, table: str, schema: str, name: str) -> bool:
        """Let a table be made of which a job that was killed while it made it has left a part, and no rows.

        Return whether its CREATE TABLE IF NOT EXISTS goes through now. What has rows, or more than one commit, or files
        of somebody else, stays as it is.
        """
        ...

    def appends(self, spark: SparkSession, table: str) -> int:
        """Return an upper bound of the appends that the table has had, where a restore sets its properties back.

        Return 0 where the properties survive a restore.
        """
        ...


class Delta:
    """Delta Lake."""

    name: ClassVar[str] = "delta"
    staging_properties: ClassVar[Mapping[str, str]] = {
        # Nobody looks for records by their first characters, and Delta would gather these for every file.
        "delta.dataSkippingStatsColumns": "batch,appended_at",
        # Directories named after objects would end at 255 bytes; these are short, whatever the objects are called.
        "delta.randomizeFilePrefixes": "true",
    }
    append_properties: ClassVar[Mapping[str, str]] = {}
    any_names: ClassVar[Mapping[str, str]] = {"delta.columnMapping.mode": "name"}
    timestamps_ntz: ClassVar[Mapping[str, str]] = {"delta.feature.timestampNtz": "supported"}

    def properties(self, spark: SparkSession, table: str) -> dict[str, str]:
        """Return a table's properties."""
        detail = spark.sql(f"DESCRIBE DETAIL {table}").select("format", "properties").collect()[0]
        if detail.format != "delta":
            raise _other_format(table, "Delta Lake")
        return dict(detail.properties)

    def append(self, spark: SparkSession, rows: DataFrame, table: str, query_id: str, epoch: int, batch: int) -> None:
        """Append rows. Delta's log has the last micro-batch of each query, and Delta drops one that it already has."""
        writer = _if_number_is_free(rows, table, batch).write.format("delta").mode("append")
        writer.option("txnAppId", query_id).option("txnVersion", epoch).saveAsTable(table)

    def has_appended(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether this micro-batch was appended: a RESTORE leaves in Delta's log which ones were."""
        return _transactions(spark, table).get(query_id, -1) >= epoch

    def was_set_back(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether Delta's log knows a later append than the table's properties, which a RESTORE sets back."""
        return self.has_appended(spark, table, query_id, epoch + 1)

    def was_set_back_before(self, spark: SparkSession, table: str, noted: str) -> bool:
        """Return False: a RESTORE sets back the properties too, in which a snapshot could be noted."""
        return False

    def present_snapshot(self, spark: SparkSession, table: str) -> str:
        """Return '': see `was_set_back_before`."""
        return ""

    def appended_since(self, spark: SparkSession, table: str, position: str | None) -> AppendedSince:
        """Return the rows of the files that were added since a version, as Delta's own streams read them."""
        detail = spark.sql(f"DESCRIBE DETAIL {table}").select("format", "location").collect()[0]
        if detail.format != "delta":
            raise _other_format(table, "Delta Lake")
        jvm: Any = spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, detail.location)
        snapshot = log.unsafeVolatileSnapshot()
        version, table_id = int(snapshot.version()), str(snapshot.metadata().id())
        if position is None:
            return AppendedSince(spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}"), str(version), table_id)
        added = jvm.java.util.ArrayList()
        if version < int(position):
            raise NotFollowed(
                f"was created again or restored: it is at version {version}, and was read up to version {position}"
            )
        for number, actions in _delta_changes(jvm, log, int(position) + 1, version):
            operation, has_removed, has_added = "another operation", False, False
            for action in actions:
                kind = action.getClass().getSimpleName()
                if kind == "CommitInfo":
                    operation = str(action.operation())
                elif kind == "AddFile" and action.dataChange():
                    added.add(action)
                    has_added = True
                elif kind == "RemoveFile" and action.dataChange():
                    has_removed = True
            # A RESTORE may only add files, of rows that were read before.
            if has_removed or (has_added and operation == "RESTORE"):
                raise NotFollowed(f"was changed by {operation} at version {number}, which is not an append")
        if added.isEmpty():
            return AppendedSince(None, str(version), table_id)
        files = jvm.scala.jdk.javaapi.CollectionConverters.asScala(added).toSeq()
        from pyspark.sql import DataFrame as Frame

        rows = log.createDataFrame(snapshot, files, False, jvm.scala.Option.empty())
        return AppendedSince(Frame(rows, spark), str(version), table_id)

    def go_on_making(self, spark: SparkSession, table: str, schema: str, name: str) -> bool:
        """Remove a log without a commit, or give a log whose only commit made the table back to the catalog.

        Delta makes no table of the catalog's where anything lies.
        """
        jvm: Any = spark._jvm
        of = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Option.apply(schema))
        place = hadoop_path(spark, spark._jsparkSession.sessionState().catalog().defaultTablePath(of).toString())
        files = place.getFileSystem(spark._jsc.hadoopConfiguration())
        log = hadoop_path(spark, place.toString(), "_delta_log")
        try:
            if [found.getPath().getName() for found in files.listStatus(place)] != ["_delta_log"]:
                return False
            begun = list(files.listStatus(log))
            commits = [entry for entry in begun if not _is_before_a_commit(entry)]
            if {str(entry.getPath().getName()) for entry in commits} - _FIRST_COMMIT:
                return False
            if commits:
                spark.catalog.createTable(table, path=place.toString(), source="delta")
                return True
            # No directory with anything in it: a job that is slow, and not dead, may have made its commit by now.
            return all(files.delete(path, False) for path in (*(entry.getPath() for entry in begun), log, place))
        except Exception:
            return False

    def appends(self, spark: SparkSession, table: str) -> int:
        """Return how many micro-batches all queries have appended, each of which was given one number at most."""
        return sum(last + 1 for last in _transactions(spark, table).values())


_FIRST_COMMIT = {f"{0:020}.json", f"{0:020}.crc"}


def _is_before_a_commit(status: Any) -> bool:
    """Return whether Delta writes an entry of its log before a commit has its name. `status`: Hadoop's FileStatus."""
    name = str(status.getPath().getName())
    return name == "_staged_commits" if status.isDirectory() else name.startswith(".")


# What Delta says where versions of its log are gone.
_NO_HISTORY = (
    r"DELTA_MISSING_FILES_UNEXPECTED_VERSION|DELTA_LOG_FILE_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS|FileNotFound"
)


def _delta_changes(jvm: Any, log: Any, first: int, last: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield the versions of a table and their actions. Raises NotFollowed where its log does not go back so far."""
    as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    gone = f"no longer has the history of version {first}"
    if first > last:
        return
    try:
        changes = as_java(log.getChanges(first, last, jvm.scala.Option.empty(), True))
        expected = first
        while changes.hasNext():
            change = changes.next()
            if int(change._1()) != expected:
                raise NotFollowed(gone)
            yield expected, list(as_java(change._2()))
            expected += 1
    except Exception as problem:
        if re.search(_NO_HISTORY, str(problem)):
            raise NotFollowed(gone) from problem
        raise
    if expected <= last:
        raise NotFollowed(gone)


def _if_number_is_free(rows: DataFrame, table: str, batch: int) -> DataFrame:
    """Return the rows, whose query fails if a row has their number, or a later one.

    Delta asks in the very commit that appends them. Of two jobs Iceberg publishes one by the number; here it notices
    rows that somebody has put into the table by hand.
    """
    taken = f"Another job has appended under the batch number {batch}"
    return rows.where(f"if((SELECT count(*) FROM {table} WHERE batch >= {batch}) = 0, true, raise_error('{taken}'))")


def _transactions(spark: SparkSession, table: str) -> dict[str, int]:
    """Return the last micro-batch that each query has appended, as Delta's log has it."""
    jvm: Any = spark._jvm
    # Which reads the log up to its end.
    location = spark.sql(f"DESCRIBE DETAIL {table}").select("location").collect()[0].location
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)
    known = log.unsafeVolatileSnapshot().transactions()
    return {str(query): int(last) for query, last in jvm.scala.jdk.javaapi.CollectionConverters.asJava(known).items()}


class Iceberg:
    """Apache Iceberg."""

    name: ClassVar[str] = "iceberg"
    staging_properties: ClassVar[Mapping[str, str]] = {
        "format-version": "3",
        # Nobody looks for records by their first characters, and Iceberg would gather these for every file.
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.batch": "full",
        "write.metadata.metrics.column.appended_at": "full",
        # Directories named after objects would end at 255 bytes; these are short, whatever the objects are called.
        "write.object-storage.enabled": "true",
        "write.object-storage.partitioned-paths": "false",
        # Each task writes the records of all objects, as they come: else one would write all those of the largest.
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
        # Each append leaves three files that list all snapshots, of which only the newest is needed.
        "write.metadata.delete-after-commit.enabled": "true",
    }
    append_properties: ClassVar[Mapping[str, str]] = {"write.wap.enabled": "true"}
    any_names: ClassVar[Mapping[str, str]] = {}
    timestamps_ntz: ClassVar[Mapping[str, str]] = {}

    def properties(self, spark: SparkSession, table: str) -> dict[str, str]:
        """Return a table's properties."""
        return dict(iceberg_table(spark, table).properties())

    def append(self, spark: SparkSession, rows: DataFrame, table: str, query_id: str, epoch: int, batch: int) -> None:
        """Append rows: write them as a snapshot that nobody sees, and publish it together with a note that it was.

        Iceberg itself refuses to publish a second snapshot of one WAP id, so a job that was taken for dead and writes
        on does not append twice either. The note is a property of the table: snapshots may expire.
        """
        append = f"{query_id}/{epoch}"
        if self.has_appended(spark, table, query_id, epoch):
            return
        staged = _staged(spark, table, append, batch)
        if staged is None:
            session = rows.sparkSession  # a micro-batch has a session of its own
            # Of two jobs that give out one number at the same moment Iceberg publishes one.
            session.conf.set("spark.wap.id", f"batch {batch}")
            free = _if_number_is_free(rows, table, batch)
            writer = free.write.format("iceberg").mode("append").option(f"snapshot-property.{_OF_APPEND}", append)
            try:
                writer.saveAsTable(table)
            finally:
                session.conf.unset("spark.wap.id")
            staged = _staged(spark, table, append, batch)
        failpoints.reach("before_publish")
        for attempt in range(_ATTEMPTS):
            try:
                _publish(spark, table, staged, query_id, epoch, batch)
                break
            except Exception as problem:
                if attempt + 1 == _ATTEMPTS or not any(kind.endswith(_STALE) for kind, _ in causes(problem)):
                    raise
                time.sleep(0.1 * attempt)
        spark.catalog.refreshTable(table)

    def has_appended(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether this micro-batch is the one that was published last."""
        return self.properties(spark, table).get(_published(query_id)[0]) == f"{query_id}/{epoch}"

    def was_set_back(self, spark: SparkSession, table: str, query_id: str, epoch: int) -> bool:
        """Return whether the table does not follow from the snapshot that was published last."""
        published = self.properties(spark, table).get(_published(query_id)[1]) or ""
        return self.was_set_back_before(spark, table, published)

    def was_set_back_before(self, spark: SparkSession, table: str, noted: str) -> bool:
        """Return whether the table does not follow from the snapshot; see the macro of this name in declared_in.sql."""
        snapshot, _, number = noted.partition(" ")
        if not snapshot.isdecimal():
            return False
        found = iceberg_table(spark, table)
        if found.snapshot(int(snapshot)) is None:
            current = found.currentSnapshot()
            return number.isdecimal() and current is not None and int(current.sequenceNumber()) < int(number)
        ancestors = spark._jvm.org.apache.iceberg.util.SnapshotUtil.currentAncestorIds(found)  # type: ignore[union-attr]
        return int(snapshot) not in set(ancestors)

    def present_snapshot(self, spark: SparkSession, table: str) -> str:
        """Return what a property of the table is to note, so that a rollback, which leaves properties, is noticed."""
        return _in_sequence(iceberg_table(spark, table).currentSnapshot())

    def appended_since(self, spark: SparkSession, table: str, position: str | None) -> AppendedSince:
        """Return the rows that later snapshots have added: Iceberg skips what is no append, and does not say so."""
        found = iceberg_table(spark, table)
        table_id, current = str(found.uuid()), found.currentSnapshot()
        if current is None:
            return AppendedSince(None, "", table_id)
        newest = str(current.snapshotId())
        if not position:
            return AppendedSince(spark.sql(f"SELECT * FROM {table} VERSION AS OF {newest}"), newest, table_id)
        snapshot, has_appends = current, False
        while str(snapshot.snapshotId()) != position:
            operation, parent = str(snapshot.operation()), snapshot.parentId()
            if operation not in ("append", "replace"):
                raise NotFollowed(
                    f"was changed by {operation} in snapshot {snapshot.snapshotId()}, which is not an append"
                )
            has_appends = has_appends or operation == "append"
            # The snapshot that was read last may have expired; it is still the parent of the next one.
            if str(parent) == position:
                break
            snapshot = None if parent is None else found.snapshot(parent)
            if snapshot is None:
                raise NotFollowed(
                    f"was restored, or its snapshots have expired: snapshot {position}, up to which it was read, is "
                    "not before the current one"
                )
        if not has_appends:
            return AppendedSince(None, newest, table_id)
        rows = spark.read.option("start-snapshot-id", position).option("end-snapshot-id", newest).table(table)
        return AppendedSince(rows, newest, table_id)

    def go_on_making(self, spark: SparkSession, table: str, schema: str, name: str) -> bool:
        """Return False: Iceberg makes a table wherever the catalog has none."""
        return False

    def appends(self, spark: SparkSession, table: str) -> int:
        """Return 0: the properties, which know the last number, are not set back with the rows."""
        return 0


# How the query ids of the job that appends beside another one begin: each job asks for its own last append.
BESIDE = "beside-"


def _in_sequence(snapshot: Any) -> str:
    return "" if snapshot is None else f"{snapshot.snapshotId()} {snapshot.sequenceNumber()}"


def _published(query_id: str) -> tuple[str, str]:
    """Return the properties of Iceberg tables with the last append of a job, its micro-batch and its snapshot."""
    last = "reconcile.published_beside" if query_id.startswith(BESIDE) else "reconcile.published"
    return last, f"{last}_as"


# A property of Iceberg tables: the largest number of a batch that was published.
_PUBLISHED_BATCH = "reconcile.published_batch"

# How often an append is published anew where others changed the table in the same moment, and what Iceberg then says.
_ATTEMPTS, _STALE = 20, "CommitFailedException"


def _publish(spark: SparkSession, table: str, staged: int | None, query_id: str, epoch: int, batch: int) -> None:
    """Publish the snapshot that an append has written, and note it in the table, in one commit.

    Of two jobs, the one that publishes second must have the later number: models have perhaps applied the batches up to
    the later number, and would never read an earlier one. Iceberg's own transaction would put the commit on top of
    whatever has come meanwhile, and ask for nothing; so the commit is for the table as it was when that was asked.
    """
    transaction: Any = iceberg_table(spark, table).newTransaction()
    before = int(transaction.table().properties().get(_PUBLISHED_BATCH) or 0)
    last, last_snapshot = _published(query_id)
    published = {last: f"{query_id}/{epoch}"}
    # One of nothing is not published: its number is given to the next one, and a number is published once.
    if transaction.table().snapshot(staged).summary().get("added-records"):
        if before > batch:
            raise Fault(
                f"Another job has appended batch {before} to {table} while this one wrote its batch {batch}, and "
                "nothing of this batch was appended: run the same command again."
            )
        transaction.manageSnapshots().cherrypick(staged).commit()
        snapshot = transaction.table().currentSnapshot()
        published[last_snapshot] = _in_sequence(snapshot)
        published[_PUBLISHED_BATCH] = str(batch)
    properties = transaction.updateProperties()
    for name, value in published.items():
        properties.set(name, value)
    properties.commit()
    transaction.underlyingOps().commit(transaction.startMetadata(), transaction.currentMetadata())


# A property of snapshots: query id and micro-batch of the append that wrote one.
_OF_APPEND = "reconcile.append"


def iceberg_table(spark: SparkSession, table: str) -> Any:
    """Return a table of Iceberg as its own library has it, in its present state. Raises UsageError for another one."""
    from pyspark.errors import IllegalArgumentException

    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.SparkSession
    if sessions.getActiveSession().isEmpty():
        # In a thread that has none, Spark would take its own catalog for the one that is configured.
        sessions.setActiveSession(spark._jsparkSession)
    try:
        found = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    except IllegalArgumentException as problem:
        if "is not an Iceberg table" in str(problem):
            raise _other_format(table, "Iceberg") from None
        raise
    found.refresh()  # a catalog may have kept it for a while
    return found


def _other_format(table: str, session: str) -> UsageError:
    return UsageError(
        f"{table} is a view, or does not have the format of this session, {session}: name another table, or set "
        "SPARK_CONF_DIR to a configuration for its format."
    )


def _staged(spark: SparkSession, table: str, append: str, batch: int) -> int | None:
    """Return the snapshot that an append has written under this number, None if there is none.

    Snapshots are in the order in which they were written. The previous append was published before this one was
    written, so the thousands of snapshots before it need not be looked at.
    """
    for snapshot in reversed(iceberg_table(spark, table).snapshots()):
        summary = snapshot.summary()
        if (summary.get(_OF_APPEND), summary.get("wap.id")) == (append, f"batch {batch}"):
            identity: int = snapshot.snapshotId()
            return identity
        if summary.get(_OF_APPEND) not in (None, append):
            return None
    return None


def properties_of_columns(table_format: TableFormat, names: Iterable[str], types: Iterable[str]) -> dict[str, str]:
    """Return the properties that a table needs for its columns. `types`: the columns' types, as Spark names them."""
    # Parquet has no such names: see macros/table_formats/format_properties.sql. The table then keeps its own.
    odd = any(re.search(r"[ ,;{}()\n\t=]", name) for name in names)
    ntz = any("timestamp_ntz" in type_ for type_ in types)
    return {**(table_format.any_names if odd else {}), **(table_format.timestamps_ntz if ntz else {})}


def format_of(spark: SparkSession, catalog: str | None = None) -> TableFormat:
    """Return the format of a catalog's tables, of the session's own catalog if the table's name has none.

    Raises UsageError for a catalog that the session does not have, and for one of another kind.
    """
    if catalog is None:
        found = configured_format(spark.conf.get)
        assert found, "session.start refuses others"
        return Delta() if found == Delta.name else Iceberg()
    setting = f"spark.sql.catalog.{catalog}"
    kind = spark.conf.get(setting, "") or ""
    if not kind:
        # Spark takes the name for that of a schema, and its error is about that.
        raise UsageError(
            f"This Spark session has no catalog {catalog}: set {setting} and its options where the session gets its "
            "configuration, or correct the name of the table."
        )
    for known in (Delta, Iceberg):
        if known.name in kind.lower():
            return known()
    raise UsageError(
        f"The catalog {catalog} is of the class {kind}, which is neither Delta Lake's nor Iceberg's: name a table in "
        "another catalog."
    )
