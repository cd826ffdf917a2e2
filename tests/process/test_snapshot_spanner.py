"""Snapshots of Spanner, by its emulator, are the rows of one timestamp, whatever is written meanwhile."""

import base64
import itertools
import json
import os
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from reconcile_jobs.process.errors import DataError, Undecided, UsageError
from reconcile_jobs.snapshots import snapshot_spanner
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text, nanoseconds
from spanner_emulator import EVERY_TYPE, Emulator, Workload, ddl, delete, write

ROOT = Path(__file__).resolve().parents[2]
LONG_AGO = "2020-01-01T00:00:00Z"
numbers = itertools.count()


@pytest.fixture(scope="module")
def emulator():
    running = Emulator()
    yield running
    running.stop()


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.soak)], ids=["googlesql", "postgresql"])
def database(emulator, request):
    return emulator.database(f"snapshot{next(numbers)}", request.param, *ddl(request.param))


@pytest.fixture
def load(spark, database):
    def load(table: str, into: str = "lake.of_spanner", **how):
        spark.sparkContext.setLogLevel("OFF")  # as in the job
        return snapshot_spanner.load_spanner(spark, database.name, table, TableName.parse(into), **how)

    return load


def rows_of(spark, table: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.table(table).collect())


READERS = {
    "bool": bool, "int64": int, "float64": float, "float32": float, "numeric": Decimal, "string": str,
    "bytes": lambda text: bytearray(base64.b64decode(text)), "date": date.fromisoformat, "json": str,
    "timestamp": lambda _: 1770091506000000,
}  # fmt: skip


def test_every_type(spark, database, load):
    most = max(len(values) for *_, values in EVERY_TYPE.values())
    for row in range(most):
        values = {name: values[row] for name, (*_, values) in EVERY_TYPE.items() if row < len(values)}
        database.commit(write("insert", "AllTypes", {"Id": str(row), **values}))
    snapshot = load("AllTypes")
    assert snapshot.rows == most
    frame = spark.table("lake.of_spanner").orderBy("Id")
    kinds = dict(frame.dtypes)
    numeric = "string" if database.postgresql else "decimal(38,9)"
    assert [kinds[name] for name in ("c_numeric", "a_numeric", "c_float32", "c_json", "a_bytes")] == [
        *(numeric, f"array<{numeric}>", "float", "string", "array<binary>")
    ]
    micros = {"timestamp": "unix_micros({0})", "array<timestamp>": "transform({0}, each -> unix_micros(each))"}
    found = frame.selectExpr(*(micros.get(kinds[name], "{0}").format(name) for name in frame.columns)).collect()
    written = {row[0]: row for row in database.rows("AllTypes", ["Id", *EVERY_TYPE])}
    for row in found:
        for place, name in enumerate(EVERY_TYPE, 1):
            read = READERS[name[2:]]
            if name.endswith("numeric") and database.postgresql:
                read = str
            value = written[row[0]][place]
            expected = value if value is None else [*map(read, value)] if name[0] == "a" else read(value)
            assert row[place] == expected, (name, row[0])


def test_the_rows_of_an_earlier_time(spark, database, load):
    database.commit(*(write("insert", "Orders", {"OrderId": str(n), "Total": "1", "Note": "n"}) for n in range(9)))
    before = as_text(database.client.now())
    database.commit(write("update", "Orders", {"OrderId": "1", "Total": "2"}), delete("Orders", "2"))
    assert load("Orders", columns="OrderId, Total int").rows == 8
    assert rows_of(spark, "lake.of_spanner") == [(n, 2 if n == 1 else 1) for n in range(9) if n != 2]
    snapshot = load("Orders", at=before, columns="OrderId, Total int")
    assert (snapshot.rows, snapshot.position) == (9, before)
    assert rows_of(spark, "lake.of_spanner") == [(n, 1) for n in range(9)]
    properties = spark.sql("DESCRIBE DETAIL lake.of_spanner").select("properties").collect()[0][0]
    assert properties["reconcile.snapshot.position"] == before
    assert properties["reconcile.snapshot.position_kind"] == "read_timestamp"


def test_two_tables_at_one_time_while_transactions_go_on(spark, database, load):
    workload = Workload(database, seed=7)
    for _ in range(30):
        workload.step()
    workload.start()
    try:
        position = load("Orders").position
        load("OrderLines", "lake.lines_of_spanner", at=position)
    finally:
        workload.stop()
    totals = {order: total for order, total, *_ in rows_of(spark, "lake.of_spanner")}
    sums = dict.fromkeys(totals, 0)
    for order, _, amount in rows_of(spark, "lake.lines_of_spanner"):
        sums[order] += amount
    assert totals == sums and totals


@pytest.mark.soak
def test_the_job(emulator, tmp_path):
    database = emulator.database("snapshot_of_the_job", False, *ddl(False))
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "300", "Note": "x"}))
    name = database.name
    where = ["--project", name.project, "--instance", name.instance, "--database", name.database, "--table", "Orders"]
    command = [str(Path(sys.executable).with_name("spark-submit")), str(ROOT / "ingestion" / "snapshot.py"), "spanner"]
    done = subprocess.run(
        [*command, *where, "--into", "lake.orders"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"SPANNER_EMULATOR_HOST": emulator.address},
    )
    assert (done.returncode, done.stderr) == (0, "snapshot: Orders of Spanner is being read into lake.orders\n")
    result = json.loads(done.stdout)
    assert set(result) == {"rows", "into", "position", "seconds"}
    assert result["rows"] == 1 and nanoseconds(result["position"]) <= database.client.now()


def test_refusals(spark, database, load):
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "300", "Note": "x"}))
    load("Orders")
    for kind, complaint, how in [
        (DataError, r'Column Total, INT64: "300" is outside -128 to 127', {"columns": "OrderId, Total tinyint"}),
        # Of the PostgreSQL dialect the emulator says first that there was no such table then.
        *(
            []
            if database.postgresql
            else [(Undecided, "no longer has the rows as they were at --at", {"at": LONG_AGO})]
        ),
        (UsageError, "is in the future", {"at": "2999-01-01T00:00:00Z"}),
        (UsageError, "is not a timestamp", {"at": "yesterday"}),
        (UsageError, "Absent", {"columns": "Absent"}),
        (UsageError, "cannot become blob", {"columns": "Note blob"}),
        (UsageError, "Spanner has no table Absent", {"table": "Absent"}),
    ]:
        with pytest.raises(kind, match=complaint):
            load(**{"table": "Orders", **how})
    assert rows_of(spark, "lake.of_spanner") == [(1, 300, "x")]
