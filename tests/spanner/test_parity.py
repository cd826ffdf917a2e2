"""A database is written to, its stream is appended and dbt runs, all the while: the tables are the database's."""

import base64
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs import spanner
from reconcile_jobs.staging import TableName
from spanner_emulator import TABLES, Database, Emulator, Workload, ddl

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
def emulator() -> Iterator[Emulator]:
    running = Emulator(partition_seconds=3)
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


class Shop:
    """A database, its staging table, and a project with a model for each of its tables."""

    def __init__(self, spark: SparkSession, root: Path, database: Database) -> None:
        self.spark, self.database = spark, database
        name = f"spanner_parity_{next(numbers)}"
        self.staging = TableName.parse(f"{name}_lake.changes")
        self.checkpoint = str(root / "checkpoint")
        self.project = Project(root / "project", name, threads=2)
        self.project.source(f"{name}_lake", "changes")
        for table, columns in COLUMNS.items():
            self.project.model(
                table,
                f"{{{{ config(materialized='current_state', unique_key={TABLES[table][0]}) }}}}\n"
                f"{{{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='{table}') }}}}",
                columns,
                data_tests=[f"reconcile.{test}" for test in DATA_TESTS],
            )

    def append(self) -> spanner.Totals:
        name = self.database.name
        job = spanner.Job(name.project, name.instance, name.database, "everything", self.staging, backfill=True)
        return spanner.run(self.spark, replace(job, checkpoint=self.checkpoint))

    def rows(self, table: str) -> list[Any]:
        found = self.spark.table(f"{self.project.schema}.{table}").collect()
        return sorted((tuple(comparable(value) for value in row) for row in found), key=repr)

    def rows_of_the_database(self, table: str) -> list[Any]:
        kinds = list(COLUMNS[table].values())
        found = self.database.rows(table, list(COLUMNS[table]))
        return sorted(
            (tuple(comparable(read(k, v)) for k, v in zip(kinds, row, strict=True)) for row in found), key=repr
        )

    def check_totals(self) -> None:
        """What each transaction keeps: an order's total is the sum of its lines."""
        schema = self.project.schema
        torn = self.spark.sql(
            f"select OrderId, Total, Amount from {schema}.Orders full join "
            f"(select OrderId, sum(Amount) as Amount from {schema}.OrderLines group by OrderId) using (OrderId) "
            "where Total is null or Total <> coalesce(Amount, 0)"
        ).collect()
        assert torn == []

    def cut_times(self) -> list[datetime]:
        """The ledger's cuts, run by run."""
        ledger = self.spark.table(f"{self.project.schema}.reconcile_ledger").where("relation like '%.Orders'")
        return [row.cut_time for row in ledger.orderBy("recorded_at").collect()]


CAPTURES = ["OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES"]
CASES = [
    pytest.param(False, "OLD_AND_NEW_VALUES", 500, id="googlesql-OLD_AND_NEW_VALUES"),
    pytest.param(True, "NEW_ROW", 500, id="postgresql-NEW_ROW"),
    *(
        pytest.param(dialect, capture, 5000, id=f"{name}-{capture}-5000", marks=pytest.mark.soak)
        for (dialect, name), capture in itertools.product([(False, "googlesql"), (True, "postgresql")], CAPTURES)
    ),
]


@pytest.mark.parametrize(("postgresql", "capture", "transactions"), CASES)
def test_every_table_equals_the_database_while_it_is_written_to(
    spark: SparkSession, tmp_path: Path, emulator: Emulator, monkeypatch: pytest.MonkeyPatch,
    postgresql: bool, capture: str, transactions: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", emulator.address)
    database = emulator.database(f"parity-{next(numbers)}", postgresql, *ddl(postgresql, capture=capture))
    shop = Shop(spark, tmp_path, database)
    workload = Workload(database, seed=transactions + postgresql)
    for _ in range(40):
        workload.step()
    # The rows of before are read at the stream's start, which is now.
    workload.start()
    rounds = 0
    while workload.transactions < transactions or rounds < 3:
        time.sleep(3)
        shop.append()
        shop.project.dbt("run")
        shop.check_totals()
        rounds += 1
    workload.stop()
    appended = shop.append()
    shop.project.dbt("run")
    shop.check_totals()
    for table in COLUMNS:
        assert shop.rows(table) == shop.rows_of_the_database(table), table
    cuts = shop.cut_times()
    assert cuts == sorted(set(cuts)) and len(cuts) == rounds + 1
    assert cuts[-1].isoformat() == (appended.cut_time or "")[: len(cuts[-1].isoformat())]
    shop.project.dbt("test")
    database.client.close()
