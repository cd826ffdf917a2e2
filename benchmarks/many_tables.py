"""Seconds and files of a model's read of one of many tables of a staging table, and of the test `no_drift`.

One batch holds records of each of --tables tables. The SELECT of a model's change records is read of that staging
table, and of a staging table that has the model's table alone: medians of pairs, in one Spark session under the
settings of conf/. Then `reconcile_columns_seen` gets notes of as many models, and the SELECT of `no_drift` of one
model is timed beside a SELECT of the table's rows of that model.

    python benchmarks/many_tables.py [--tables 2000] [--records 20] [--notes 40] [--repeats 7] [--file-format delta]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
arguments = argparse.ArgumentParser()
arguments.add_argument("--tables", type=int, default=2000)
arguments.add_argument("--records", type=int, default=20, help="of each table")
arguments.add_argument("--notes", type=int, default=40, help="of each model")
arguments.add_argument("--repeats", type=int, default=7)
arguments.add_argument("--file-format", choices=("delta", "iceberg"), default="delta")
given = arguments.parse_args()
CONF = ROOT / "conf" / ("iceberg" if given.file_format == "iceberg" else "")
os.environ["SPARK_CONF_DIR"] = str(CONF)
os.chdir(tempfile.mkdtemp())

from collections.abc import Callable  # noqa: E402

from datastream import event  # noqa: E402
from functional.test_pruned_reads import files_read  # noqa: E402
from plain_dbt import PlainProject  # noqa: E402
from process.spark_warehouse import SparkWarehouse  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

MODEL = """{{{{ config(materialized='current_state', unique_key='id') }}}}
{{{{ reconcile.datastream_mysql(source('lake', '{}'), table='shop.t7') }}}}"""
RECORD = "replace(replace('{}', '\"t7\"', concat('\"t', t, '\"')), '\"id\": 1', concat('\"id\": ', id)) as record"
NOTES = """insert into shop.reconcile_columns_seen
select
    concat('shop.m', model), 1 + note, 'column', concat('c', note), concat('c', note),
    'text', true, 1
from (select id div {notes} as model, id % {notes} as note from range({tables} * {notes}))"""


def staged(spark: SparkSession, table: str, only: int | None) -> None:
    """Make a staging table of one batch."""
    record = event("mysql", {"id": 1, "name": "a" * 20, "n": 5}, metadata={"database": "shop", "table": "t7"})
    rows = spark.range(given.tables * given.records).selectExpr(f"id div {given.records} as t", "id")
    (
        rows.where("true" if only is None else f"t = {only}")
        .selectExpr(
            RECORD.format(record),
            "'datastream' as source",
            "concat('shop_t', t) as object",
            "'a file' as origin",
            "1L as batch",
            "current_timestamp() as appended_at",
        )
        .repartition(4, "object")
        .write.format(given.file_format)
        .partitionBy("object")
        .saveAsTable(table)
    )


def pairs(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float, float]:
    """Return the median seconds of both, and of their ratios, after two rounds that warm up."""
    seconds: list[tuple[float, float]] = []
    for number in range(given.repeats + 2):
        taken = {}
        for which in (0, 1) if number % 2 else (1, 0):
            begun = time.perf_counter()
            (one, other)[which]()
            taken[which] = time.perf_counter() - begun
        seconds.append((taken[0], taken[1]))
    kept = seconds[2:]
    return (*(statistics.median(pair[i] for pair in kept) for i in (0, 1)), statistics.median(a / b for a, b in kept))  # type: ignore[return-value]


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    warehouse = SparkWarehouse(spark)
    spark.sql("create schema lake")
    staged(spark, "lake.all", None)
    staged(spark, "lake.alone", 7)
    project = PlainProject(warehouse, "shop", file_format=given.file_format)
    project.source("lake", "all", "alone")
    for name in ("all", "alone"):
        project.model(name, MODEL.format(name), {"id": "bigint", "name": "string", "n": "bigint"})
    changes = {
        name: f"select * from (\n{project.compile(name)}\n) where _change_batch = 1" for name in ("all", "alone")
    }
    print(f"{given.tables} tables, {given.records} records of each, {given.file_format}")
    for name, sql in changes.items():
        rows, everything = warehouse.sql(sql), warehouse.sql(f"select * from lake.{name}")
        print(f"  {name}: {files_read(rows)} of {files_read(everything)} files, {rows.count()} records")
    of_many, alone, ratio = pairs(*(lambda sql=sql: warehouse.sql(sql).collect() for sql in changes.values()))
    print(f"  one of many {of_many:.2f} s, alone {alone:.2f} s: {ratio:.2f} times")

    project.run("all")
    warehouse.query(NOTES.format(notes=given.notes, tables=given.tables))
    test = project.test("no_drift", "all")
    same = "select * from shop.reconcile_columns_seen where relation = 'shop.all'"
    drift, plain, ratio = pairs(lambda: warehouse.sql(test).collect(), lambda: warehouse.sql(same).collect())
    print(f"  no_drift among {given.notes} notes of each of {given.tables} models: {drift:.2f} s")
    print(f"  the rows of the model alone {plain:.2f} s: {ratio:.2f} times")


if __name__ == "__main__":
    main()
