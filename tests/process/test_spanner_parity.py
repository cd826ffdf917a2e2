"""A database is written to, its stream is appended and dbt runs, all the while: the tables are the database's."""

import base64
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import generate
import plain_spark
import pytest
from datastream import Staged
from file_formats import failpoints_of_an_append, file_format
from memory import Memory
from projects import PACKAGE, Project
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs import snapshot_job
from reconcile_jobs.process.console import Console
from reconcile_jobs.snapshots.snapshot_spanner import load_spanner
from reconcile_jobs.spanner.job import Job, Totals, run
from reconcile_jobs.staging import TableName
from spanner_emulator import INSTANCE, PROJECT, TABLES, Database, Emulator, Workload, ddl, events_of

SCALARS = {
    "bool": "boolean", "int64": "bigint", "float64": "double", "float32": "float", "numeric": "decimal(38,9)",
    "string": "string", "bytes": "binary", "date": "date", "timestamp": "timestamp", "json": "string",
}  # fmt: skip
COLUMNS = {
    "Orders": {"OrderId": "bigint", "Total": "bigint", "Note": "string"},
    "OrderLines": {"OrderId": "bigint", "LineNo": "bigint", "Amount": "bigint"},
    "AllTypes": {
        "Id": "string",
        **{f"c_{name}": kind for name, kind in SCALARS.items()},
        **{f"a_{name}": f"array<{kind}>" for name, kind in SCALARS.items()},
    },
}
DATA_TESTS = ["no_quarantine", "no_pending_rows", "ledger_balances", "transactions_complete"]
numbers = itertools.count()


@pytest.fixture(scope="module")
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    running = Emulator(partition_seconds=getattr(request, "param", 3))
    yield running
    running.stop()


def read(kind: str, value: Any) -> Any:
    """Return what Spanner's JSON says as Spark has it."""
    if value is None:
        return None
    if kind.startswith("array"):
        return [read(kind[6:-1], item) for item in value]
    readers = {
        "bigint": int,
        "decimal(38,9)": Decimal,
        "binary": base64.b64decode,
        "date": date.fromisoformat,
        "timestamp": lambda text: datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None),
    }
    return readers.get(kind, lambda as_it_is: as_it_is)(value)


def comparable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(comparable(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


def rows_of(table: DataFrame) -> list[Any]:
    return sorted((tuple(comparable(value) for value in row) for row in table.collect()), key=repr)


def rows_of_the_database(database: Database, table: str) -> list[Any]:
    kinds = list(COLUMNS[table].values())
    found = database.rows(table, list(COLUMNS[table]))
    return sorted((tuple(comparable(read(k, v)) for k, v in zip(kinds, row, strict=True)) for row in found), key=repr)


def declare(project: Any, table: str, *data_tests: Any) -> None:
    """Let a project have a model of a table."""
    project.model(
        table,
        f"{{{{ config(materialized='current_state', unique_key={TABLES[table][0]}) }}}}\n"
        f"{{{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='{table}') }}}}",
        COLUMNS[table],
        data_tests=list(data_tests) or [f"reconcile.{test}" for test in DATA_TESTS],
    )


class Shop:
    """A database, its staging table, and a project with a model for each of its tables."""

    def __init__(self, spark: SparkSession, root: Path, emulator: Emulator, postgresql: bool, capture: str) -> None:
        name = f"spanner_parity_{next(numbers)}"
        self.spark = spark
        self.database = emulator.database(name.replace("_", "-"), postgresql, *ddl(postgresql, capture=capture))
        self.staging = f"{name}_lake.changes"
        self.checkpoint = str(root / "checkpoint")
        self.project = Project(root / "project", name, threads=2)
        self.project.source(f"{name}_lake", "changes", *(f"{table}_source" for table in COLUMNS))
        for table in COLUMNS:
            declare(self.project, table)

    def append(self) -> Totals:
        name = self.database.name
        staging = TableName.parse(self.staging)
        job = Job(name.project, name.instance, name.database, "everything", staging, backfill=True)
        return run(self.spark, replace(job, checkpoint=self.checkpoint))

    def submit(self, *words: str, **environment: str) -> "subprocess.Popen[str]":
        name = self.database.name
        command = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "spanner", "--stream", "everything"]
        command += ["--project", name.project, "--instance", name.instance, "--database", name.database]
        return subprocess.Popen(
            [*command, "--staging", "lake.changes", "--backfill", *words], cwd=self.project.root, text=True,
            env=os.environ | environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def append_until_killed(self, failpoint: str | None, seconds: float) -> None:
        """Let the job go on until it dies at the failpoint, or is killed after so long."""
        job = self.submit("--every", "1s", **({"RECONCILE_FAILPOINT": failpoint} if failpoint else {}))
        try:
            said, _ = job.communicate(timeout=300 if failpoint else seconds)
        except subprocess.TimeoutExpired:
            said = "it went on"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL and (said != "it went on" or not failpoint), said

    def find_staging(self) -> None:
        """Let the table that the command made, in a metastore of its own, be the staging table of this session."""
        table = self.project.root / "lakehouse" / "warehouse" / "lake.db" / "changes"
        self.spark.sql(f"create schema if not exists {self.staging.split('.')[0]}")
        self.spark.sql(f"create table {self.staging} using delta location '{table}'")

    def run(self) -> None:
        """Run dbt, and see that what each transaction keeps is kept: an order's total is the sum of its lines."""
        self.project.dbt("run")
        schema = self.project.schema
        torn = self.spark.sql(
            f"select OrderId, Total, Amount from {schema}.Orders full join "
            f"(select OrderId, sum(Amount) as Amount from {schema}.OrderLines group by OrderId) using (OrderId) "
            "where Total is null or Total <> coalesce(Amount, 0)"
        ).collect()
        assert torn == []

    def assert_every_table_equals_the_database(self) -> None:
        for table in COLUMNS:
            found = self.spark.table(f"{self.project.schema}.{table}")
            assert rows_of(found) == rows_of_the_database(self.database, table), table
        self.project.dbt("test")

    def cut_times(self) -> list[datetime]:
        """The ledger's cuts, run by run."""
        ledger = self.spark.table(f"{self.project.schema}.reconcile_ledger").where("relation like '%.Orders'")
        return [row.cut_time for row in ledger.orderBy("recorded_at").collect()]


CAPTURES = ["OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES"]
DIALECTS = {False: "googlesql", True: "postgresql"}


def case(postgresql: bool, captures: list[str], transactions: int, *marks: pytest.MarkDecorator) -> Any:
    what = captures[0] if len(captures) == 1 else "altered"
    return pytest.param(
        postgresql, captures, transactions, id=f"{DIALECTS[postgresql]}-{what}-{transactions}", marks=marks
    )


CASES = [
    case(False, CAPTURES[:1], 500, pytest.mark.matrix),
    *(case(dialect, CAPTURES, 5000, pytest.mark.matrix) for dialect in DIALECTS),
    *(case(dialect, [capture], 1500, pytest.mark.matrix) for dialect in DIALECTS for capture in CAPTURES),
]


@pytest.fixture
def shop(
    spark: SparkSession, tmp_path: Path, emulator: Emulator, monkeypatch: pytest.MonkeyPatch,
    postgresql: bool, captures: list[str],
) -> Iterator[Shop]:  # fmt: skip
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", emulator.address)
    made = Shop(spark, tmp_path, emulator, postgresql, captures[0])
    yield made
    made.database.client.close()


@pytest.fixture
def workload(shop: Shop) -> Iterator[Workload]:
    """Transactions all the while, and some that were there before."""
    going = Workload(shop.database, seed=5)
    for _ in range(40):
        going.step()
    going.start(pause=0.02)
    yield going
    going.stop()


@pytest.mark.skipif(file_format() == "iceberg", reason="these tables are in memory")
@pytest.mark.parametrize("captures", [CAPTURES], ids=["altered"])
@pytest.mark.parametrize(
    ("postgresql", "takes"),
    [pytest.param(False, 1, id="googlesql"), pytest.param(True, 2, id="postgresql", marks=pytest.mark.soak)],
)
def test_what_is_staged_while_a_database_is_written_to_comes_to_its_tables(
    spark: SparkSession, tmp_path: Path, emulator: Emulator, monkeypatch: pytest.MonkeyPatch,
    postgresql: bool, captures: list[str], takes: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", emulator.address)
    plain_spark.stage_in_plain_python(monkeypatch)
    session, name = plain_spark.Session(), f"spanner_staged_{next(numbers)}"
    database = emulator.database(name.replace("_", "-"), postgresql, *ddl(postgresql, capture=captures[0]))
    job = Job(
        *(PROJECT, INSTANCE, database.name.database, "everything", TableName.parse("lake.changes")),
        backfill=True, checkpoint=str(tmp_path / "checkpoint"),
    )  # fmt: skip
    workload = Workload(database, seed=5)
    for _ in range(40):
        workload.step()
    workload.start(pause=0.005)
    with Memory(spark) as memory:
        project = memory.project(name)
        project.source(f"{name}_lake", "changes")
        for table in COLUMNS:
            declare(project, table)
        taken = 0

        def take() -> int:
            rows = session.table("lake.changes").where(f"batch > {taken}").collect()
            staged = [Staged(row.record, row.object, row.batch, row.origin, row.source) for row in rows]
            memory.stage(f"{name}_lake.changes", staged)
            project.run()
            return max(row.batch for row in rows)

        for number, capture in enumerate(captures):
            database.capture(capture)
            run(session, job)
            time.sleep(0.3)
            if number == 1 and takes == 2:
                taken = take()
        workload.stop()
        run(session, job)
        take()
        for table in COLUMNS:
            found = rows_of(memory.table(f"{name}.{table}"))
            assert found == rows_of_the_database(database, table) and found, table
            assert takes == 1 or project.failing_tests(table) == set(), table
    database.client.close()
    assert workload.transactions > 150


@pytest.mark.soak
@pytest.mark.parametrize("captures", [CAPTURES[:1]], ids=["old-and-new"])
@pytest.mark.parametrize("postgresql", DIALECTS, ids=DIALECTS.values())
def test_dbt_builds_what_is_generated_of_a_stream_and_it_equals_the_database(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = Workload(shop.database, seed=7)
    for steps in (60, 60):
        for _ in range(steps):
            workload.step()
        shop.append()
    models = shop.project.root / "models"
    for file in models.iterdir():
        if file.name != "sources.yml":
            file.unlink()
    monkeypatch.chdir(shop.project.root)
    words = ["spanner", "--staging", shop.staging, "--into", "models/shop"]

    def generated(*more: str) -> tuple[int, dict[str, Any]]:
        console = Console("generate")
        code = console.exit_code(lambda: generate.main([*words, *more], console))
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    code, result = generated()
    assert (code, result["written"], result["not_written"]) == (0, 3, {})
    assert {row.status for row in shop.project.dbt("build").result} <= {"success", "pass"}
    built = {path.stem.replace("_", "").lower(): path.stem for path in (models / "shop").glob("*.sql")}
    for table, columns in COLUMNS.items():
        found = shop.spark.table(f"{shop.project.schema}.{built[table.lower()]}")
        typed = found.selectExpr(*(f"cast({name} as {kind}) as {name}" for name, kind in columns.items()))
        assert rows_of(typed) == rows_of_the_database(shop.database, table) and found.count(), table
    assert generated("--check") == (0, result | {"written": 0, "unchanged": 3, "status": "unchanged"})


@pytest.mark.parametrize(("postgresql", "captures", "transactions"), CASES)
def test_every_table_equals_the_database_while_it_is_written_to(
    shop: Shop, workload: Workload, captures: list[str], transactions: int
) -> None:
    rounds = 0
    while workload.transactions < transactions or rounds < max(2, len(captures)):
        shop.database.capture(captures[rounds % len(captures)])
        shop.append()
        shop.run()
        rounds += 1
    workload.stop()
    appended = shop.append()
    shop.run()
    shop.assert_every_table_equals_the_database()
    cuts = shop.cut_times()
    assert cuts == sorted(set(cuts)) and len(cuts) == rounds + 1
    assert cuts[-1].isoformat() == (appended.cut_time or "")[: len(cuts[-1].isoformat())]


# The comparisons take minutes, in which hundreds of partitions of three seconds would come and go.
@pytest.mark.parametrize("emulator", [30], indirect=True)
@pytest.mark.parametrize("captures", [CAPTURES[1:2]], ids=CAPTURES[1:2])
@pytest.mark.parametrize(
    "postgresql",
    [
        pytest.param(False, id="googlesql", marks=pytest.mark.matrix),
        pytest.param(True, id="postgresql", marks=pytest.mark.matrix),
    ],
)
def test_at_the_cut_of_each_batch_every_row_matches_under_live_writes(shop: Shop, workload: Workload) -> None:
    # The PostgreSQL dialect's numeric holds more than any decimal of Spark.
    tables = [table for table in COLUMNS if table != "AllTypes" or not shop.database.postgresql]
    for table in tables:
        arguments = {"compare_to": f"source('lake', '{table}_source')", "key": TABLES[table][0], "store_values": True}
        declare(shop.project, table, {"reconcile.parity": {"name": f"parity_of_{table}", "arguments": arguments}})
    shop.append()
    shop.run()
    for _ in range(3):
        at = shop.append().cut_time
        assert at
        for table in tables:
            into = TableName.parse(f"{shop.staging.split('.')[0]}.{table}_source")
            snapshot = load_spanner(shop.spark, shop.database.name, table, into, at)
            assert snapshot.position == at and snapshot.rows > 0
        # What was not merged yet is folded from staging.
        for merged in (False, True):
            if merged:
                shop.run()
            shop.project.dbt("test")
    runs = shop.spark.table(f"{shop.project.schema}.reconcile_parity").collect()
    assert len(runs) == 6 * len(tables)
    assert {(run.verdict, run.is_delivered, run.matched - run.compared) for run in runs} == {("match", True, 0)}
    # Before the position is appended nothing is confirmed.
    workload.stop()
    into = TableName.parse(f"{shop.staging.split('.')[0]}.Orders_source")
    workload.step()
    load_spanner(shop.spark, shop.database.name, "Orders", into, "now")
    [(first,)] = shop.spark.sql(f"select min(OrderId) from {into.sql}").collect()
    shop.spark.sql(f"delete from {into.sql} where OrderId = {first}")
    outcome = shop.project.dbt("test", "--select", "parity_of_Orders", succeed=False)
    assert not outcome.success
    last = shop.spark.table(f"{shop.project.schema}.reconcile_parity").orderBy("recorded_at").collect()[-1]
    assert last.confirmed == 0 < last.in_flight and not last.is_delivered


class Repair:
    """Snapshots of tables of Spanner, staged beside their change stream, of which records were lost."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.seen = shop, 0
        # Of the PostgreSQL dialect's numeric a snapshot has texts; and transactions that wrote this table lack records.
        declare(shop.project, "AllTypes", "reconcile.no_quarantine")
        self.tables = [table for table in COLUMNS if table != "AllTypes" or not shop.database.postgresql]
        for table in self.tables:
            arguments = {"compare_to": f"source('lake', '{table}_source')", "key": TABLES[table][0]}
            parity = {"reconcile.parity": {"name": f"parity_of_{table}", "arguments": arguments}}
            tests = [f"reconcile.{test}" for test in ("no_quarantine", "no_pending_rows", "ledger_balances")]
            declare(shop.project, table, *tests, parity)

    def append(self, loses: bool) -> int:
        """Append what was committed since, of which a tenth of the records is lost for good; return how many."""
        self.shop.append()
        rows = self.shop.spark.table(self.shop.staging)
        names = ", ".join(f"'{table}'" for table in self.tables)
        lost = f"batch > {self.seen} and object in ({names}) and pmod(xxhash64(record), 10) = 0"
        count = rows.where(lost).count() if loses else 0
        if loses:
            self.shop.spark.sql(f"delete from {self.shop.staging} where {lost}")
        self.seen = rows.agg({"batch": "max"}).collect()[0][0]
        return count

    def stage(self) -> None:
        """Take a snapshot of each table at a moment of its own, and stage it."""
        for table in self.tables:
            into = TableName.parse(f"{self.shop.staging.split('.')[0]}.{table}_source")
            load_spanner(self.shop.spark, self.shop.database.name, table, into)
            snapshot_job.run(self.shop.spark, snapshot_job.Job(table=into, staging=TableName.parse(self.shop.staging)))

    def run(self, *words: str) -> dict[str, str]:
        return {row.node.name: str(row.message) for row in self.shop.project.dbt("run", *words).result.results}

    def wrong(self) -> set[str]:
        """Return the tables whose rows are not those of the database."""
        found = {table: self.shop.spark.table(f"{self.shop.project.schema}.{table}") for table in COLUMNS}
        return {table for table in found if rows_of(found[table]) != rows_of_the_database(self.shop.database, table)}


@pytest.mark.matrix
@pytest.mark.parametrize("captures", [CAPTURES[:1], CAPTURES[2:3]], ids=[CAPTURES[0], CAPTURES[2]])
@pytest.mark.parametrize("postgresql", DIALECTS, ids=DIALECTS.values())
def test_every_row_is_right_after_one_snapshot_although_a_tenth_of_the_records_is_lost(shop: Shop) -> None:
    repair, workload = Repair(shop), Workload(shop.database, seed=5)
    for _ in range(60):
        workload.step()
    repair.append(loses=True)
    repair.run()
    for _ in range(240):
        workload.step()
    # Slow enough that minutes of runs leave a table that can be compared.
    workload.start(pause=0.3)
    assert repair.append(loses=True) > 10
    repair.run()
    # The snapshots are taken amid the writes; nothing is in doubt, as the position shows each commit's side.
    repair.stage()
    repair.append(loses=False)
    said = {table: sentence for table, sentence in repair.run().items() if table in repair.tables}
    assert all("repaired at read_timestamp" in sentence and "doubt" not in sentence for sentence in said.values()), said
    shop.project.dbt("test")
    workload.stop()
    repair.append(loses=False)
    repair.run()
    assert repair.wrong() == set()
    # A second repair changes nothing, and a rebuild gives the same rows.
    repair.stage()
    said = repair.run()
    assert all("0 inserted, 0 updated, 0 deleted" in said[table] for table in repair.tables), said
    assert repair.wrong() == set()
    repair.run("--full-refresh")
    assert repair.wrong() == set()
    shop.project.dbt("test")


@pytest.mark.parametrize("captures", [CAPTURES[:1]], ids=CAPTURES[:1])
@pytest.mark.parametrize(
    "postgresql",
    [
        pytest.param(False, id="googlesql", marks=pytest.mark.matrix),
        pytest.param(True, id="postgresql", marks=pytest.mark.matrix),
    ],
)
def test_every_table_equals_the_database_while_the_job_is_killed(shop: Shop, workload: Workload) -> None:
    chance = random.Random(10)
    places = [*failpoints_of_an_append(), *[None] * 10]
    chance.shuffle(places)
    shop.append_until_killed("after_data_commit", 0)
    shop.find_staging()
    for number, place in enumerate(places):
        shop.append_until_killed(place, chance.uniform(12, 35))
        if number % 3 == 0:
            shop.run()
    workload.stop()
    job = shop.submit()
    said, _ = job.communicate(timeout=900)
    assert job.returncode == 0, said
    shop.run()
    shop.assert_every_table_equals_the_database()
    staged = [row.record for row in shop.spark.table(shop.staging).where("object not like '#%'").collect()]
    changes = events_of([record for record in staged if not json.loads(record).get("backfill")])
    assert set(changes.values()) == {1}
    assert set(changes) <= set(workload.events)
