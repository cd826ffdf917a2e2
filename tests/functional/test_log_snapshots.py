"""Snapshots staged beside a log: whole, once, with their position; the log's own job goes on meanwhile."""

from __future__ import annotations

import itertools
import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from datastream import event
from erased import register_erased
from file_formats import failpoints_of_an_append, file_format
from mariadb import MariaDB
from plain_dbt import PlainProject, Relation
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.log_snapshots import Totals
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.snapshot_job import Job, run
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.staging import RAW_ROWS, Staging, TableName
from tables import load_snapshot

DEATHS = [
    pytest.param(name, marks=[] if name == "after_data_commit" else pytest.mark.soak)
    for name in failpoints_of_an_append()
    if "checkpoint" not in name
]
SCHEMA = "snapshots_of_logs"


class Log:
    """A staging table of a log of its own, and a table with snapshots of the source."""

    def __init__(self, spark: SparkSession, name: str, job: str = "datastream files") -> None:
        self.spark, self.job, self.id, self.epoch = spark, job, str(uuid.uuid4()), -1
        self.staging, self.table = TableName((SCHEMA, f"{name}_staged")), TableName((SCHEMA, f"{name}_copy"))
        self.said: list[str] = []
        self.opened: Staging | None = None

    def open(self) -> Staging:
        self.opened = Staging(self.spark, self.staging, self.job)
        return self.opened

    def append(self, *ids: int, object_: str = "shop_things") -> int | None:
        """Append records of the log, with the job that is running."""
        self.epoch += 1
        return self.append_again(*ids, object_=object_)

    def append_again(self, *ids: int, object_: str = "shop_things") -> int | None:
        return self._append([change(id_, f"n{id_}", id_) for id_ in ids], object_)

    def append_changes(self, *records: str) -> None:
        self.epoch += 1
        self._append(records, "shop_things")

    def _append(self, records: Sequence[str], object_: str) -> int | None:
        staging = self.opened or self.open()
        rows = self.spark.createDataFrame([(r, object_, "a file") for r in records], RAW_ROWS)
        return staging.append(rows, "datastream", self.id, "place", self.epoch, [str(len(records))]).batch

    def load(
        self, *rows: tuple[Any, ...], position: str = "9:9:", at: str = "2026-05-01T00:00:00.000000000Z",
        columns: str = "id bigint, name string", **properties: str,
    ) -> None:  # fmt: skip
        """Take a snapshot of these rows."""
        said = {
            "": "jdbc",
            "position_kind": "pg_snapshot",
            "position": position,
            "taken_at": at,
            "table": "shop.things",
        }
        load_snapshot(self.spark.createDataFrame(list(rows), columns), self.table, said | properties)

    def stage(self, **options: Any) -> Totals:
        totals = run(self.spark, Job(table=self.table, staging=self.staging, **options), Caller(say=self.said.append))
        assert isinstance(totals, Totals)
        return totals

    def rows(self, object_: str) -> list[tuple[int, str]]:
        staged = self.spark.table(self.staging.sql)
        return [
            (r.batch, r.record) for r in staged.where(staged.object == object_).orderBy("batch", "record").collect()
        ]

    def counts(self) -> dict[int, int]:
        """Return how many rows each batch has."""
        rows = self.spark.table(self.staging.sql).groupBy("batch").count().collect()
        return {row.batch: row["count"] for row in sorted(rows)}


def change(id_: int, name: str | None, place: int, transaction: int = 1) -> str:
    """Return a record of a change; without a name, a delete."""
    return event(
        "postgresql", {"id": id_, "name": name}, "UPDATE" if name else "DELETE",
        metadata={"lsn": f"0/{place}", "tx_id": str(transaction)},
    )  # fmt: skip


@pytest.fixture
def log(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Log]:
    spark.sql(f"create schema if not exists {SCHEMA}")
    log = Log(spark, f"t{abs(hash(request.node.name)) % 10**8}")
    yield log
    for table in (log.staging, log.table):
        spark.sql(f"drop table if exists {table.sql}")


def test_a_snapshot_is_staged_once_and_both_jobs_go_on(log: Log) -> None:
    assert log.append(1, 2) == 1
    log.load((1, "n1"), (3, None))
    totals = log.stage()
    assert (totals.object, totals.rows, totals.first_batch, totals.position) == ("shop_things", 2, 2, "9:9:")
    assert log.rows("#snapshot of shop_things") == [
        (2, '{"row":{"id":"1","name":"n1"}}'), (2, '{"row":{"id":"3","name":null}}')
    ]  # fmt: skip
    ((batch, cut),) = log.rows("#snapshot")
    assert batch == 2
    known = json.loads(cut)
    assert known.pop("snapshot")
    assert known == {
        "number": 1, "object": "shop_things", "place": 1, "position_kind": "pg_snapshot", "position": "9:9:",
        "taken_at": "2026-05-01T00:00:00.000000000Z", "key": ["id"], "rows": 2, "uncertainty": "1 hour",
        "columns": {"id": "bigint", "name": "string"},
    }  # fmt: skip
    assert log.stage().first_batch is None
    assert log.said[-1] == f"this snapshot of shop_things is already in {log.staging}, and nothing was appended"
    # The job of the log that was running meanwhile, and one that begins now.
    assert log.append(4) == 3
    log.opened = None
    assert log.append(5) == 4
    log.load((1, "n1"), position="9:12:10", at="2026-05-02T00:00:00Z")
    assert log.stage().first_batch == 5
    assert log.append(6) == 6
    assert log.counts() == {1: 2, 2: 3, 3: 1, 4: 1, 5: 2, 6: 1}


def test_a_snapshot_is_staged_without_the_rows_of_erased_keys_and_says_how_many_it_has(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(1, 2)
    register_erased(log.spark, log.staging, monkeypatch, "shop_things", "name", "n2", "n7")
    log.load((1, "n1"), (2, "n2"), (3, None), (7, "n7"))
    totals = log.stage()
    assert (totals.rows, totals.erased_rows) == (2, 2)
    assert [record for _, record in log.rows("#snapshot of shop_things")] == [
        '{"row":{"id":"1","name":"n1"}}', '{"row":{"id":"3","name":null}}'
    ]  # fmt: skip
    ((_, cut),) = log.rows("#snapshot")
    assert json.loads(cut)["rows"] == 2


@pytest.mark.parametrize("place_of_death", DEATHS)
def test_killed_anywhere_the_same_command_stages_it_once(
    log: Log, monkeypatch: pytest.MonkeyPatch, place_of_death: str
) -> None:
    def reach(reached: str) -> None:
        if reached == place_of_death:
            raise RuntimeError(f"killed at {place_of_death}")

    log.append(1)
    log.load((1, "n1"), (2, "n2"))
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        with pytest.raises(Fault, match=place_of_death):
            log.stage()
    visible = sum(log.counts().values()) - 1
    assert visible == (3 if place_of_death == "after_data_commit" else 0), "all of it or nothing"
    log.append(3)
    log.stage()
    assert len(log.rows("#snapshot of shop_things")) == 2
    assert len(log.rows("#snapshot")) == 1
    assert len(log.rows("shop_things")) == 2


@pytest.mark.parametrize("place_of_death", DEATHS)
def test_an_append_of_the_log_that_was_killed_is_there_once_with_a_snapshot_in_between(
    log: Log, monkeypatch: pytest.MonkeyPatch, place_of_death: str
) -> None:
    def reach(reached: str) -> None:
        if reached == place_of_death:
            raise RuntimeError("killed")

    log.append(1)
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        with pytest.raises(RuntimeError, match="killed"):
            log.append(2, 3)
    log.load((1, "n1"))
    log.stage()
    log.opened = None
    batch = log.append_again(2, 3)
    assert len(log.rows("shop_things")) == 3
    assert [number for number, _ in log.rows("shop_things")] == [1, batch, batch]
    batches = [number for number, _ in log.rows("#snapshot")]
    assert len(batches) == 1
    assert batches[0] != batch


def refused(log: Log, kind: type[Exception], sentence: str, act: Callable[[], Any]) -> None:
    before = log.counts()
    with pytest.raises(kind, match=sentence):
        act()
    assert log.counts() == before


def test_what_is_no_complete_snapshot_of_this_log_is_refused(log: Log) -> None:
    log.append(1)
    log.load()
    refused(log, DataError, "has no rows, which would delete every row of shop_things; if", log.stage)
    log.load((1, "a"), (None, "b"))
    refused(log, DataError, "1 rows of .* have NULL in the key id", log.stage)
    log.load((1, "a"), (1, "b"))
    refused(log, DataError, 'id does not identify a row of .*: 2 rows have {"id":"1"}', log.stage)
    log.load((1, "a"))
    refused(log, UsageError, "The key of shop_things is id, as its records", lambda: log.stage(key=("name",)))
    refused(log, UsageError, "has no records of x: --object names a table as", lambda: log.stage(object="x"))
    refused(log, UsageError, "--at is not for a snapshot beside a log", lambda: log.stage(at="2026-05-01T00:00:00Z"))
    log.load((1, "a"), position="")
    refused(log, UsageError, "has no position, because the job that took it did not finish", log.stage)
    log.load((1, "a"), **{"": "table", "position": "", "position_kind": ""})
    refused(log, UsageError, "has no position in a log", log.stage)
    log.load((1, "a"), position="2026-11-21T11:00:00Z", position_kind="read_timestamp")
    said = "belongs to the job datastream files, and the snapshot is of Spanner: take it from the database of the log"
    refused(log, UsageError, said, log.stage)
    log.load((1, "a"), table="shop.others")
    refused(log, UsageError, "--object is missing: .* The log has shop_things", log.stage)
    log.load((1, "a"))
    elsewhere = TableName((SCHEMA, "nowhere"))
    for kind, said in (("append table", "only beside the files of"), ("spanner x", "the snapshot is of PostgreSQL")):
        Staging(log.spark, elsewhere, kind)
        with pytest.raises(UsageError, match=f"belongs to the job {kind}, and {said}"):
            run(log.spark, Job(table=log.table, staging=elsewhere))
        log.spark.sql(f"drop table {elsewhere.sql}")
    with pytest.raises(UsageError, match=r"--key is missing: .* say --beside-log too"):
        run(log.spark, Job(table=log.table, staging=elsewhere))
    log.load((1, "a"), columns="other bigint, name string")
    refused(log, UsageError, "has no column id; it has other, name", log.stage)


def test_a_snapshot_that_cannot_follow_the_one_before_it_is_refused(log: Log) -> None:
    log.append(1)
    log.load((1, "a"), position="9:12:10")
    log.stage()
    log.load((1, "b"), position="12:12:")
    refused(log, UsageError, "stage snapshots in the order in which they were taken", log.stage)
    later = "2026-05-02T00:00:00Z"
    log.load((1, "b"), position="9:11:", at=later)
    refused(log, UsageError, "does not contain the one at 9:12:10", log.stage)
    log.load((1, "b"), position="9:14:9,10", at=later)
    refused(log, UsageError, "does not contain the one at 9:12:10", log.stage)
    log.load((1,), position="12:12:", at=later, columns="id bigint")
    refused(log, UsageError, "lacks the column name, which", log.stage)
    log.load((1, "b"), position="10:14:10,13", at=later)
    assert log.stage().rows == 1


def test_a_snapshot_of_another_binary_log_than_that_of_the_records_is_refused(log: Log) -> None:
    """Of the server of the log, a snapshot contains what was appended long before it was taken."""
    places = [("mysql-bin.999999", 900), ("mysql-bin.1000000", 4)]
    log.append_changes(*(
        event("mysql", {"id": 1, "name": "n1"}, "UPDATE-INSERT", metadata={"log_file": file, "log_position": place})
        for file, place in places
    ))  # fmt: skip
    said: dict[str, Any] = {"position_kind": "binlog", "at": "2199-01-01T00:00:00Z"}
    log.load((1, "a"), position="mysql-bin.999999:1000", **said)
    refused(log, UsageError, "has a change of shop_things at mysql-bin.1000000:4, appended an hour or more", log.stage)
    log.load((1, "a"), position="bin.2000000:4", **said)
    refused(log, UsageError, "The records of shop_things in .* are of mysql-bin.*, and the snapshot is of", log.stage)
    log.load((1, "a"), position="9:9:")
    refused(log, UsageError, "No record of shop_things in .* is one of PostgreSQL, as the snapshot is", log.stage)
    log.load((1, "a"), position="mysql-bin.1000000:4", **said)
    assert log.stage().rows == 1
    assert log.said[-1] == "shop_things: 1 rows at binlog mysql-bin.1000000:4"


def test_a_copy_may_come_before_every_record_of_the_log(log: Log) -> None:
    log.load((1, "a"))
    totals = log.stage(beside_log=True, object="shop_things", key=("id",))
    assert totals.first_batch == 1
    assert "if the log has another name for shop_things, no model will see this snapshot" in log.said[-2]
    assert log.append(1) == 2
    log.load((1, "b"), position="12:12:", at="2026-05-02T00:00:00Z")
    assert log.stage().first_batch == 3
    assert not any("another name" in said for said in log.said[-2:])
    with pytest.raises(UsageError, match="belongs to another job"):
        Staging(log.spark, log.staging, "datastream other files")


def test_a_record_of_the_log_whose_object_has_the_name_of_the_jobs_own_is_none_of_the_jobs(log: Log) -> None:
    log.append(1)
    log.append(2, object_="#snapshot")
    log.load((1, "a"))
    assert log.stage().first_batch == 3
    log.load((1, "b"), position="12:12:", at="2026-05-02T00:00:00Z")
    assert log.stage().first_batch == 4


def test_an_empty_source_is_staged_if_it_is_said(log: Log) -> None:
    log.append(1)
    log.load()
    assert log.stage(allow_empty=True).first_batch == 2
    assert log.rows("#snapshot of shop_things") == []
    assert json.loads(log.rows("#snapshot")[0][1])["rows"] == 0


@pytest.mark.soak
def test_a_copy_of_the_staging_table_made_by_hand_has_its_snapshots(log: Log) -> None:
    """Such a copy has lost the properties by which models and the job know of them."""
    warehouse, schema = SparkWarehouse(log.spark), f"{SCHEMA}_copied"
    copy = TableName((SCHEMA, f"{log.staging.parts[-1]}_by_hand"))
    log.append_changes(change(1, "a", 1), change(2, "b", 2))
    log.load((1, "A"), at="2026-11-21T12:00:00Z")
    log.stage()
    log.spark.sql(f"create table {copy.sql} using {file_format()} as select * from {log.staging.sql}")
    log.spark.sql(f"drop schema if exists {schema} cascade")
    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(SCHEMA, copy.parts[-1])
    project.model(
        "things",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        f"{{{{ reconcile.datastream_postgresql(source('lake', '{copy.parts[-1]}'), 'shop_things') }}}}",
        {"id": "bigint", "name": "string"},
    )

    def rows() -> dict[int, str]:
        return {row.id: row.name for row in warehouse.table(f"{schema}.things").collect()}

    project.run("things")
    assert rows() == {1: "A"}
    log.staging, original = copy, log.staging
    log.opened, log.id, log.epoch = None, str(uuid.uuid4()), -1
    log.append_changes(change(3, "c", 12, 12), change(2, "late", 3))
    project.run("things")
    assert rows() == {1: "A", 3: "c"}
    project.run("things", full_refresh=True)
    assert rows() == {1: "A", 3: "c"}
    log.load((1, "B"), position="20:20:", at="2026-11-21T13:00:00Z")
    assert log.stage().rows == 1
    project.run("things")
    assert rows() == {1: "B"}
    log.spark.sql(f"drop schema {schema} cascade")
    log.spark.sql(f"drop table {original.sql}")


def test_a_snapshot_comes_although_the_log_appends_all_the_time(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log takes its next number while the snapshot is written, and waits until the snapshot is there."""
    log.append(1)
    log.load((1, "n1"), (2, "n2"))
    numbers: list[int | None] = []
    others: list[threading.Thread] = []

    def reach(reached: str) -> None:
        if reached == "before_data_commit" and not others:
            others.append(threading.Thread(target=lambda: numbers.append(log.append(3))))
            others[0].start()
            time.sleep(5)
            assert numbers == []

    monkeypatch.setattr(failpoints, "reach", reach)
    assert log.stage().first_batch == 2
    others[0].join()
    assert numbers == [3]
    assert log.counts() == {1: 1, 2: 3, 3: 1}


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_repair_from_end_to_end(log: Log, fresh: bool) -> None:
    """On tables of the session's format, and parity at the position of the snapshot."""
    warehouse, schema = SparkWarehouse(log.spark), f"{SCHEMA}_{'fresh' if fresh else 'merged'}"
    log.spark.sql(f"drop schema if exists {schema} cascade")
    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(SCHEMA, log.staging.parts[-1])
    project.model(
        "things",
        f"{{{{ config(materialized='current_state', unique_key='id', meta={{'fresh': {str(fresh).lower()}}}) }}}}\n"
        f"{{{{ reconcile.datastream_postgresql(source('lake', '{log.staging.parts[-1]}'), 'shop_things') }}}}",
        {"id": "bigint", "name": "string"},
    )

    project.model(
        "story",
        "{{ config(materialized='history', unique_key='id') }}\n"
        f"{{{{ reconcile.datastream_postgresql(source('lake', '{log.staging.parts[-1]}'), 'shop_things') }}}}",
        {"id": "bigint", "name": "string"},
    )
    models = ["things"] if fresh else ["things", "story"]

    def rows() -> dict[int, str]:
        found = [
            {row.id: row.name for row in warehouse.table(f"{schema}.{model}").where(current).collect()}
            for model, current in zip(models, ("true", "is_current"), strict=False)
        ]
        assert found[0] == found[-1]
        return found[0]

    def story() -> list[str]:
        return [] if fresh else sorted(map(str, warehouse.table(f"{schema}.story").collect()))

    def failing(test: str, **arguments: Any) -> list[Any]:
        return warehouse.sql(project.test(test, "things", **arguments)).collect()

    log.append_changes(change(1, "a", 1), change(2, "b", 2), change(3, "c", 3, 9), change(4, "d", 4))
    project.run(*models)
    taken_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    log.load((1, "A"), (2, "b"), (5, "e"), position="9:10:9", at=taken_at)
    log.stage()
    log.append_changes(change(2, "B", 12, 12), change(4, "late", 5, 2))
    said = project.run(*models)["things"]
    assert said.endswith("; repaired at pg_snapshot 9:10:9: 1 inserted, 1 updated, 1 deleted"), said
    repaired = {1: "A", 2: "B", 3: "c", 5: "e"}
    assert rows() == repaired
    assert failing("ledger_balances") == []
    assert failing("parity", compare_to=Relation(*log.table.parts), key="id") == []
    log.append_changes(change(6, "late", 6, 2), change(5, None, 13, 13), change(1, "A", 7, 2))
    project.run(*models)
    after = {1: "A", 2: "B", 3: "c"}
    assert rows() == after
    assert project.run("things")["things"] == "nothing new"
    assert failing("parity", compare_to=Relation(*log.table.parts), key="id") == []
    told = story()
    assert fresh or len(told) > len(after)
    project.run(*models, full_refresh=True)
    assert rows() == after
    assert story() == told
    for model in models:
        assert warehouse.sql(project.test("ledger_balances", model)).collect() == []
    log.spark.sql(f"drop schema {schema} cascade")


# --- a real MariaDB --------------------------------------------------------------------------------------------------


class Write(NamedTuple):
    """A statement that changes one row, and so gives one event of the binary log."""

    kind: str
    id: int
    name: str | None

    @property
    def sql(self) -> str:
        if self.kind == "Delete":
            return f"DELETE FROM shop.things WHERE id = {self.id}"
        if self.kind == "Update":
            return f"UPDATE shop.things SET name = '{self.name}' WHERE id = {self.id}"
        return f"INSERT INTO shop.things VALUES ({self.id}, '{self.name}', {born(self.id)[0]})"


def born(id_: int) -> tuple[str, str]:
    """Return a date in SQL and in a record; some are zero dates."""
    return ("0", "0000-00-00") if id_ % 5 == 0 else ("'2026-11-21'", "2026-11-21T00:00:00.000000Z")


class Writer:
    """Writes small transactions into a table of MariaDB, one after the other, and knows what it has written."""

    def __init__(self, mariadb: MariaDB) -> None:
        self.mariadb, self.chance, self.numbers = mariadb, random.Random(1), itertools.count()
        self.names: dict[int, str] = {}
        self.written: list[Write] = []
        mariadb.query("CREATE TABLE shop.things (id bigint PRIMARY KEY, name varchar(20), born date NULL)")
        [[self.file, self.begun, *_]] = mariadb.query("SHOW MASTER STATUS")

    def write(self, transactions: int) -> None:
        sql = ["SET sql_mode = ''"]
        for _ in range(transactions):
            writes = [self._next() for _ in range(self.chance.randint(1, 3))]
            sql += ["START TRANSACTION", *(write.sql for write in writes), "COMMIT"]
        self.mariadb.query("; ".join(sql))

    def _next(self) -> Write:
        id_, name = self.chance.randrange(60), f"v{next(self.numbers)}"
        write = Write("Write", id_, name)
        if id_ in self.names:
            write = Write("Delete", id_, None) if self.chance.random() < 0.3 else Write("Update", id_, name)
        if write.name is None:
            del self.names[id_]
        else:
            self.names[id_] = write.name
        self.written.append(write)
        return write

    def places(self) -> list[tuple[str, int, int]]:
        """Return the file of each write's event, where the event begins in it, and where it ends."""
        found = []
        for file, *_ in self.mariadb.query("SHOW BINARY LOGS"):
            for _, begins, name, _, ends, *_ in self.mariadb.query(f"SHOW BINLOG EVENTS IN '{file}'"):
                kind, is_of_rows, _ = name.partition("_rows")
                # Annotate_rows holds the text of the statement.
                if is_of_rows and kind != "Annotate" and (file, int(begins)) >= (self.file, int(self.begun)):
                    found.append((kind, file, int(begins), int(ends)))
        assert [kind for kind, *_ in found] == [write.kind for write in self.written]
        return [(file, begins, ends) for _, file, begins, ends in found]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDB]:
    server = MariaDB()
    yield server
    server.stop()


@pytest.mark.soak
def test_a_table_of_a_real_mariadb_is_repaired_while_it_is_written(log: Log, mariadb: MariaDB) -> None:
    """A third of what the snapshot contains is lost, and the rest comes in any order."""
    warehouse, schema, writer = SparkWarehouse(log.spark), f"{SCHEMA}_mysql", Writer(mariadb)
    log.spark.sql(f"drop schema if exists {schema} cascade")
    log.spark.sparkContext.setLogLevel("OFF")  # as in the job
    properties = {"user": mariadb.user, "password": mariadb.password}
    source = Source(MySQL(), f"jdbc:mariadb://127.0.0.1:{mariadb.port}/shop", properties)
    writer.write(20)
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            writer.write(3)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        snapshot = snapshot_jdbc.load_jdbc(
            log.spark, source, "shop.things", log.table, columns="id, name, born date zero_date_is_null"
        )
    finally:
        stop.set()
        writing.join()
    mariadb.query("FLUSH BINARY LOGS")
    writer.write(20)

    chance = random.Random(2)
    file, _, place = snapshot.position.rpartition(":")
    records, lost, later = list[str](), 0, 0
    for written, (of, begins, ends) in zip(writer.written, writer.places(), strict=True):
        later += of == file and begins >= int(place)
        if (of, ends) <= (file, int(place)) and chance.random() < 0.3:
            lost += 1
            continue
        # Whether Datastream names an event by its beginning or by its end does not matter.
        said = {"log_file": of, "log_position": begins if written.id % 2 else ends}
        payload = {"id": written.id, "name": written.name, "born": born(written.id)[1]}
        kind = {"Write": "INSERT", "Update": "UPDATE-INSERT", "Delete": "DELETE"}[written.kind]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        records.append(event("mysql", payload, kind, metadata=said, source_timestamp=now))
    assert lost
    assert later, "the snapshot was taken amid the changes of a file"
    chance.shuffle(records)
    half = len(records) // 2

    project = PlainProject(warehouse, schema, file_format=file_format())
    project.source(SCHEMA, log.staging.parts[-1])
    project.model(
        "things",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        f"{{{{ reconcile.datastream_mysql(source('lake', '{log.staging.parts[-1]}'), 'shop_things') }}}}",
        {
            "id": "bigint",
            "name": "string",
            "born": {"data_type": "date", "config": {"meta": {"zero_date": "null"}}},
        },
    )
    expected = {
        int(id_): (name, None if day == "0000-00-00" else day)
        for id_, name, day in mariadb.query("SELECT id, name, born FROM shop.things")
    }

    def rows() -> dict[int, tuple[str, str | None]]:
        found = warehouse.table(f"{schema}.things").collect()
        return {row.id: (row.name, row.born and str(row.born)) for row in found}

    def failing(test: str, **arguments: Any) -> list[Any]:
        return warehouse.sql(project.test(test, "things", **arguments)).collect()

    log.append_changes(*records[:half])
    project.run("things")
    assert log.stage().position == snapshot.position
    log.append_changes(*records[half:])
    said = project.run("things")["things"]
    # Nothing is in doubt: no event of a row begins or ends where a transaction does.
    repaired = rf"; repaired at binlog {re.escape(snapshot.position)}: \d+ inserted, \d+ updated, \d+ deleted(;|$)"
    assert re.search(repaired, said), said
    assert rows() == expected
    assert failing("ledger_balances") == []
    assert failing("parity", compare_to=Relation(*log.table.parts), key="id") == []
    assert project.run("things")["things"] == "nothing new"
    project.run("things", full_refresh=True)
    assert rows() == expected
    assert failing("parity", compare_to=Relation(*log.table.parts), key="id") == []
    log.spark.sql(f"drop schema {schema} cascade")
