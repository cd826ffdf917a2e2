"""Bytes and seconds of prove.py, and of snapshot.py with the test reconcile.parity, for one table in a real PostgreSQL.

Ten columns. Both ways take turns in one Spark session under the settings of conf/; the server is on this machine. Bytes
are those of the values that came from the source, texts in UTF-8. snapshot.py reads in two ranges. With --differences
so many rows in random places have another value at the source.

    python benchmarks/prove.py [--rows 10000000] [--repeats 1] [--differences 0]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))
os.environ.setdefault("RECONCILE_PACKAGES", (ROOT / "tests" / "packages").read_text())

from datastream import Staged, event, stage  # noqa: E402
from file_formats import file_format  # noqa: E402
from postgres import Postgres  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.jdbc.connection import Source  # noqa: E402
from reconcile_jobs.jdbc.postgresql import PostgreSQL  # noqa: E402
from reconcile_jobs.proofs.project_side import DbtProject  # noqa: E402
from reconcile_jobs.proofs.proving import Asked, Proof, forget, prove  # noqa: E402
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions, load_jdbc  # noqa: E402
from reconcile_jobs.staging import TableName  # noqa: E402
from tables import DELETED  # noqa: E402

# A column: its type in the model and at the source, and its value there by the row's id, in Spark and in PostgreSQL.
COLUMNS = {
    "id": ("bigint", "bigint", "id", "id"),
    "customer_id": ("bigint", "bigint", "id % 1000", "id % 1000"),
    "status": ("string", "text", "concat('status ', id % 7)", "'status ' || id % 7"),
    "total": (
        "decimal(14,2)",
        "numeric(14,2)",
        "cast(id % 100000 as decimal(12,0)) + cast(0.25 as decimal(14,2))",
        "id % 100000 + 0.25",
    ),
    "placed_at": ("timestamp", "timestamptz", "timestamp_seconds(1700000000 + id)", "to_timestamp(1700000000 + id)"),
    "due_on": (
        "date",
        "date",
        "date_add(date'2026-01-01', cast(id % 365 as int))",
        "date '2026-01-01' + (id % 365)::int",
    ),
    "note": ("string", "text", "repeat('n', cast(id % 40 as int))", "repeat('n', (id % 40)::int)"),
    "quantity": ("int", "integer", "cast(id % 100 as int)", "id % 100"),
    "ratio": ("double", "double precision", "id / 8.0d", "id / 8.0"),
    "vip": ("boolean", "boolean", "id % 2 = 0", "id % 2 = 0"),
}
SCHEMA, LAKE = "bench_prove", "bench_prove_lake"


def fill(spark: SparkSession, server: Postgres, project: Project, rows: int) -> None:
    """Give the table at the source and the base table of the model the same rows."""
    declared = ", ".join(f"{name} {of[1]}" for name, of in COLUMNS.items())
    server.query(f"CREATE SCHEMA shop; CREATE TABLE shop.orders ({declared})")
    values = ", ".join(of[3] for of in COLUMNS.values())
    server.query(f"INSERT INTO shop.orders SELECT {values} FROM generate_series(1::bigint, {rows}) AS g (id)")
    server.query("ALTER TABLE shop.orders ADD PRIMARY KEY (id); ANALYZE shop.orders")
    project.source(LAKE, "changes", "orders_source")
    project.model(
        "orders",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.orders') }}",
        {name: of[0] for name, of in COLUMNS.items()},
        data_tests=[
            {"reconcile.parity": {"arguments": {"compare_to": "source('lake', 'orders_source')", "key": "id",
                                                "allowance": "1 second"}}}
        ],
    )  # fmt: skip
    spark.sql(f"create schema {LAKE}")
    payload = {**dict.fromkeys(COLUMNS), "id": 1}
    record = event("postgresql", payload, metadata={"lsn": "0/1", "tx_id": "10"}, object="shop.orders")
    stage(spark, f"{LAKE}.changes", [Staged(record, "shop.orders", 1)])
    project.run("orders")
    own = f"_change_sequence, _change_time, _change_batch, {DELETED[file_format()]}"
    spark.sql(
        f"insert overwrite {SCHEMA}.orders__base ({', '.join(COLUMNS)}, {own}) "
        f"select {', '.join(of[2] for of in COLUMNS.values())}, '0000/1', current_timestamp(), 1L, false "
        f"from (select id + 1 as id from range({rows}))"
    )


def bytes_of_rows(server: Postgres) -> int:
    """Return the bytes of all values, as the texts that snapshot.py reads."""
    return int(
        server.query(f"SELECT sum({' + '.join(f'octet_length({name}::text)' for name in COLUMNS)}) FROM shop.orders")
    )


def by_rows(spark: SparkSession, source: Source, project: Project) -> tuple[float, Any]:
    """Take a snapshot and compare rows; return the seconds and the row of reconcile_parity."""
    began = time.monotonic()
    into = TableName.parse(f"{LAKE}.orders_source")
    load_jdbc(spark, source, "shop.orders", into, partitions=Partitions("id", 2))
    project.dbt("test", "--select", "orders", succeed=False)
    seconds = time.monotonic() - began
    return seconds, spark.table(f"{SCHEMA}.reconcile_parity").orderBy("recorded_at").tail(1)[0]


def by_checksums(spark: SparkSession, source: Source, project: Project) -> tuple[float, Proof]:
    """Prove the same; return the seconds and the proof."""
    began = time.monotonic()
    dbt = DbtProject(["--project-dir", str(project.root), "--profiles-dir", str(project.root)], io.StringIO())
    proof = prove(spark, dbt, source, Asked(["orders"], waits=False), lambda sentence: None)
    forget(spark, [result.plan for result in proof.results])
    return time.monotonic() - began, proof


def main() -> None:
    """Print seconds and bytes of both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--differences", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory), contextlib.ExitStack() as left:
        server = Postgres()
        left.callback(server.stop)
        spark = SparkSession.builder.getOrCreate()
        left.callback(spark.stop)
        project = Project(Path(directory) / "project", SCHEMA)
        fill(spark, server, project, options.rows)
        if options.differences:
            server.query(
                "UPDATE shop.orders SET quantity = quantity + 1 WHERE id IN (SELECT 1 + floor(random() * "
                f"{options.rows})::bigint FROM generate_series(1, {options.differences}))"
            )
        source = Source(
            PostgreSQL(),
            server.environment["RECONCILE_METASTORE_URL"],
            {"user": server.user, "password": server.password},
        )
        of_rows, of_checksums, whole = [], [], bytes_of_rows(server)
        for _ in range(options.repeats):
            seconds, parity = by_rows(spark, source, project)
            of_rows.append(seconds)
            seconds, proof = by_checksums(spark, source, project)
            of_checksums.append(seconds)
            (result,) = proof.results
            differing = result.found.keys if result.found else set()
            print(
                f"rows: {of_rows[-1]:.1f} s, {parity.verdict}, {parity.compared - parity.matched} differ;   "
                f"checksums: {of_checksums[-1]:.1f} s, {result.state}, {len(differing)} differ, "
                f"{result.found.read if result.found else 0} rows read, {result.bytes:,} bytes"
            )
        pairs = statistics.median(b / a for a, b in zip(of_rows, of_checksums, strict=True))
        print(
            f"{options.rows:,} rows, {options.differences:,} changed: {statistics.median(of_rows):.1f} s and {whole:,} "
            f"bytes by rows, {statistics.median(of_checksums):.1f} s and {result.bytes:,} bytes by checksums: "
            f"{pairs:.2f} of the time, 1/{whole / result.bytes:.0f} of the bytes"
        )


if __name__ == "__main__":
    main()
