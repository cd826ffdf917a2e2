"""Seconds that a snapshot beside the log of PostgreSQL takes: where it equals the base table, and where rows differ.

A log of inserts, of two days before, is staged and merged. A snapshot of the same rows is staged and merged, and then
one in which some rows differ: a third of them changed, a third missing from the log, a third missing from the source.
All in one Spark session under the settings of conf/. The floor reads both sides once, as the run has to: it parses the
staged rows of the snapshot, reads the base table, and adds up a hash of all columns of each.

    python benchmarks/repair.py [--rows 10000000] [--differences 10000] [--repeats 3] [--file-format iceberg]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

import file_formats  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.process.caller import Caller  # noqa: E402
from reconcile_jobs.snapshot_job import Job, run  # noqa: E402
from reconcile_jobs.snapshots import snapshot_table  # noqa: E402
from reconcile_jobs.staging import Staging, TableName  # noqa: E402

SCHEMA = "bench_repair"
STAGING, COPY = TableName((SCHEMA, "changes")), TableName((SCHEMA, "orders_source"))
COLUMNS = {
    "id": "bigint", "customer_id": "bigint", "status": "string", "total": "decimal(18,2)", "placed_at": "timestamp",
    "note": "string", "quantity": "int", "vip": "boolean",
}  # fmt: skip
HASH = f"sum(xxhash64({', '.join(COLUMNS)}) % 1000000007L)"
TABLES = ("orders__base", "orders__quarantine")


def rows(ids: str, change: int = 0) -> str:
    """SQL for rows whose values follow from the id, and from the number of a change."""
    return f"""
        select id, id % 1000 as customer_id, concat('status ', (id + {change}) % 7) as status,
            cast((id * 37 % 100000000 + {change}) / 100 as decimal(18,2)) as total,
            timestamp_seconds(1700000000 + id) as placed_at, repeat('n', cast(id % 40 as int)) as note,
            cast(id % 100 as int) as quantity, id % 2 = 0 as vip
        from ({ids})"""


class Repair:
    """A log, its model, and snapshots of the source."""

    def __init__(self, spark: SparkSession, root: Path, count: int) -> None:
        self.spark, self.snapshots = spark, 0
        spark.sql(f"create schema {SCHEMA}")
        self.project = Project(root, SCHEMA)
        self.project.source(SCHEMA, "changes")
        self.project.model(
            "orders",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), table='shop.orders') }}",
            COLUMNS,
        )
        # A run with a snapshot reads again what was appended in the last hour before it.
        long_ago = datetime.now(UTC) - timedelta(days=2)
        stamp = long_ago.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = (
            "named_struct('schema', 'shop', 'table', 'orders', 'change_type', 'INSERT', 'is_deleted', false, "
            "'tx_id', 100L, 'lsn', concat('0/', hex(id + 16)), 'primary_keys', array('id'))"
        )
        records = spark.sql(f"""
            select to_json(named_struct(
                'uuid', concat('u', id), 'read_timestamp', '{stamp}', 'source_timestamp', '{stamp}',
                'object', 'shop_orders', 'read_method', 'postgresql-cdc', 'source_metadata', {metadata},
                'payload', struct({", ".join(COLUMNS)})
            )) as record, 'shop_orders' as object, 'a file' as origin
            from ({rows(f"select id from range({count})")})""")
        Staging(spark, STAGING, "datastream benchmark").append(records, "datastream", str(uuid.uuid4()), "x", 0, ["1"])
        spark.sql(f"update {STAGING.sql} set appended_at = timestamp'{stamp}'")

    def merge(self) -> tuple[float, str]:
        """Return what dbt says that the model took, and what the run said of it."""
        outcome = self.project.dbt("run", "--select", "orders")
        (result,) = [result for result in outcome.result.results if result.node.name == "orders"]
        return float(result.execution_time), str(result.message)

    def stage(self, source: str) -> tuple[float, float]:
        """Take a snapshot of these rows, and stage it; return the seconds, and the megabytes that staging grew by."""
        self.snapshots += 1
        taken_at = datetime.now(UTC) + timedelta(seconds=1)
        said = {
            "reconcile.snapshot": "jdbc", "reconcile.snapshot.position_kind": "pg_snapshot",
            "reconcile.snapshot.position": f"{200 + self.snapshots}:{200 + self.snapshots}:",
            "reconcile.snapshot.taken_at": taken_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reconcile.snapshot.table": "shop.orders",
        }  # fmt: skip
        snapshot_table.prepare(self.spark, COPY)
        snapshot_table.writer(self.spark.sql(source), COPY, "a benchmark", said).createOrReplace()
        time.sleep(max(0.0, (taken_at - datetime.now(UTC)).total_seconds()))
        before, began = self.megabytes(), time.monotonic()
        run(self.spark, Job(table=COPY, staging=STAGING), Caller(say=lambda text: None))
        return time.monotonic() - began, self.megabytes() - before

    def megabytes(self) -> float:
        """Return the size of the staging table."""
        if file_formats.file_format() == "iceberg":
            sizes = self.spark.sql(f"select sum(file_size_in_bytes) from {SCHEMA}.changes.files")
        else:
            sizes = self.spark.sql(f"describe detail {SCHEMA}.changes").select("sizeInBytes")
        return float(sizes.collect()[0][0]) / 1e6

    def floor(self) -> float:
        """Read the staged rows of the newest snapshot and the base table once; return the seconds."""
        texts = ", ".join(f"{name}: string" for name in COLUMNS)
        typed = ", ".join(f"cast(row.{name} as {kind}) as {name}" for name, kind in COLUMNS.items())
        staged = f"{SCHEMA}.changes where object = '#snapshot of shop_orders' and batch = {1 + self.snapshots}"
        parsed = f"select {typed} from (select from_json(record, 'row struct<{texts}>').row as row from {staged})"
        began = time.monotonic()
        for side in (f"({parsed})", f"{SCHEMA}.orders__base"):
            self.spark.sql(f"select {HASH} from {side}").collect()
        return time.monotonic() - began

    def written(self) -> dict[str, Any]:
        """Return of each table that the model keeps what identifies its files."""
        iceberg = file_formats.file_format() == "iceberg"
        names = "select file_path from {0}.files" if iceberg else "select distinct _metadata.file_path from {0}"
        return {
            table: sorted(str(row[0]) for row in self.spark.sql(names.format(f"{SCHEMA}.{table}")).collect())
            for table in TABLES
        }

    def differing(self, source: str) -> int:
        """Return how many rows of the model and of the source differ."""
        both = f"select {', '.join(COLUMNS)} from {SCHEMA}.orders"
        one = self.spark.sql(both).exceptAll(self.spark.sql(source)).count()
        return int(one + self.spark.sql(source).exceptAll(self.spark.sql(both)).count())


def source_of(count: int, differences: int, change: int) -> str:
    """SQL for the rows of the source: of the ids that differ a third is changed, a third is new, a third is gone."""
    third = differences // 3
    changed = rows(f"select id from range({third})", change)
    same = rows(f"select id from range({2 * third}, {count + third})")
    return f"{changed} union all {same}"


def main() -> None:
    """Print a line for each run, and then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--differences", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="pairs of an equal snapshot and the floor")
    parser.add_argument("--file-format", choices=["delta", "iceberg"], default="delta")
    asked = parser.parse_args()
    file_formats.choose(asked.file_format)
    with tempfile.TemporaryDirectory(prefix="bench-repair-") as directory:
        os.chdir(directory)
        spark = SparkSession.builder.getOrCreate()
        repair = Repair(spark, Path(directory) / "project", asked.rows)
        seconds, said = repair.merge()
        print(f"log of {asked.rows:,} inserts merged: {seconds:.1f} s ({said})", flush=True)
        ratios = []
        equal = source_of(asked.rows, 0, 0)
        for _ in range(asked.repeats):
            staged, megabytes = repair.stage(equal)
            before = repair.written()
            seconds, said = repair.merge()
            assert repair.written() == before, "an equal snapshot has changed a table"
            floor = repair.floor()
            ratios.append(seconds / floor)
            print(
                f"equal snapshot: staged in {staged:.1f} s ({megabytes:.0f} MB), run {seconds:.1f} s, both read once "
                f"{floor:.1f} s ({said})",
                flush=True,
            )
        print(f"run to both read once: {statistics.median(ratios):.2f} (target 1.5)")
        source = source_of(asked.rows, asked.differences, 1)
        staged, megabytes = repair.stage(source)
        seconds, said = repair.merge()
        differ = repair.differing(source)
        print(
            f"{asked.differences:,} rows differ: staged in {staged:.1f} s ({megabytes:.0f} MB), run {seconds:.1f} s, "
            f"{seconds / repair.floor():.2f} times both read once; afterwards {differ} rows differ ({said})"
        )
        spark.stop()


if __name__ == "__main__":
    main()
