"""Seconds of the whole of `report.py` by spark-submit, and megabytes of its page, for a project of many models.

One model is built by the package's own statements. All others have tables that are further names of its base table and
of its quarantine, and copies of its rows in the ledger and in `reconcile_columns_seen`, by SQL. Every model has a
record in quarantine and a row in the ledger for each of the last 30 days; one in ten has records that it has not
applied. Of each model the ledger has two files. Making the tables takes far longer than the report.

    python benchmarks/report.py [--models 2000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
# What has more than these is a target that is missed.
SECONDS, MEGABYTES = 10, 5
_MODEL = """{{{{ config(materialized='current_state', unique_key='id') }}}}
{{{{ reconcile.datastream_mysql(source('lake', 'changes'), table='shop.t{number}') }}}}"""
_COLUMNS = {"id": "bigint", "name": "string", "n": "tinyint"}
_VIEWS = ("reconcile_quarantine", "reconcile_status", "reconcile_models")


def prepare(models: int) -> None:
    """Make the tables and the views in the working directory, in a process that holds its metastore alone."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
    from plain_dbt import PlainProject
    from process.spark_warehouse import SparkWarehouse
    from pyspark.sql import SparkSession as Sessions

    spark = Sessions.builder.getOrCreate()
    warehouse = SparkWarehouse(spark)
    spark.sql("create schema lake")
    _stage(spark, models, 1, "true")
    project = PlainProject(warehouse, "shop")
    project.source("lake", "changes")
    project.model("m0", _MODEL.format(number=0), _COLUMNS)
    project.run("m0")
    for number in range(1, models):
        project.model(f"m{number}", _MODEL.format(number=number), _COLUMNS)
    for kind in ("base", "quarantine"):
        _name(spark, f"m0__{kind}", [f"m{number}__{kind}" for number in range(1, models)])
    for table in ("reconcile_ledger", "reconcile_columns_seen"):
        others = _of_the_others(spark, f"shop.{table}", models)
        others.writeTo(f"shop.{table}").append()
    _days(spark, models).writeTo("shop.reconcile_ledger").append()
    _stage(spark, models, 2, "t % 10 = 0")
    project.run(*_VIEWS)
    spark.stop()


def _stage(spark: SparkSession, models: int, batch: int, where: str) -> None:
    """Append a batch of two records of each table, of which the first one fits."""
    from datastream import event

    record = event("mysql", {"id": 1, "name": "a" * 20, "n": 5}, metadata={"database": "shop", "table": "t7"})
    named = f"replace('{record}', '\"t7\"', concat('\"t', t, '\"'))"
    of_id = f"replace({named}, '\"id\": 1', concat('\"id\": ', id % 2 + 1))"
    (
        spark.range(models * 2)
        .selectExpr("id div 2 as t", "id")
        .where(where)
        .selectExpr(
            f"if(id % 2 = 0, {of_id}, replace({of_id}, '\"n\": 5', '\"n\": 300')) as record",
            "'datastream' as source",
            "concat('shop_t', t) as object",
            "'a file' as origin",
            f"{batch}L as batch",
            "current_timestamp() as appended_at",
        )
        .repartition(4, "object")
        .write.format("delta")
        .mode("append")
        .partitionBy("object")
        .saveAsTable("lake.changes")
    )


def _name(spark: SparkSession, table: str, names: list[str]) -> None:
    """Give the files of a table more names: the views ask whether tables exist, and read the ledger."""
    location = spark.sql(f"describe detail shop.{table}").collect()[0]["location"]
    begun = time.monotonic()
    for name in names:
        spark.sql(f"create table shop.{name} using delta location '{location}'")
    print(f"{len(names)} tables like {table}: {time.monotonic() - begun:.0f} s", flush=True)


def _of_the_others(spark: SparkSession, table: str, models: int) -> DataFrame:
    """Return the rows of the one model, for every other model."""
    rows = spark.table(table).where("relation = 'shop.m0'").drop("relation")
    others = spark.range(1, models).selectExpr("concat('shop.m', id) as relation")
    return others.crossJoin(rows).select(spark.table(table).columns).repartition(4, "relation")


def _days(spark: SparkSession, models: int) -> DataFrame:
    """Return a row of each model for each of the last 30 days, older than what the ledger has."""
    table = "shop.reconcile_ledger"
    earlier = "make_interval(0, 0, 0, cast(day as int))"
    rows = spark.table(table).where("relation = 'shop.m0'").drop("relation", "kind", "entry")
    every = spark.range(models).selectExpr("concat('shop.m', id) as relation")
    days = spark.range(1, 31).selectExpr("id as day")
    return (
        every.crossJoin(days)
        .crossJoin(rows)
        .selectExpr(
            "* except (recorded_at, last_appended_at)",
            "'apply' as kind",
            "0L as entry",
            f"recorded_at - {earlier} as recorded_at",
            f"last_appended_at - {earlier} as last_appended_at",
        )
        .select(spark.table(table).columns)
        .repartition(4, "relation")
    )


def report(models: int) -> tuple[float, float, float]:
    """Run `report.py` in the working directory; return its seconds, and the megabytes of the page and the metrics."""
    command = [str(Path(sys.executable).with_name("spark-submit")), str(ROOT / "ingestion" / "report.py")]
    command += ["--status", "shop.reconcile_status", "--html", "state.html", "--metrics", "metrics.prom"]
    begun = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - begun
    page, metrics = Path("state.html").read_text(), Path("metrics.prom").read_text()
    built = metrics.count("reconcile_model_built{")
    # 1: every model has a record in quarantine. A page that says less was made faster.
    if ended.returncode != 1 or built != models or page.count("is not exactly a tinyint") < models:
        sys.exit(f"report.py ended with {ended.returncode}, {built} of {models} models:\n{ended.stderr[-3000:]}")
    return seconds, len(page.encode()) / 1e6, len(metrics.encode()) / 1e6


def main() -> None:
    """Prepare in a process of its own, as the embedded metastore has one at a time; then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if given.prepare:
        prepare(given.models)
        return
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        again = [sys.executable, str(Path(__file__).resolve()), "--prepare", "--models", str(given.models)]
        begun = time.monotonic()
        subprocess.run(again, check=True)
        print(f"{given.models} models made in {time.monotonic() - begun:.0f} s", flush=True)
        runs = [report(given.models) for _ in range(given.repeats)]
        os.chdir(ROOT)
    seconds = statistics.median(run[0] for run in runs)
    shown = ", ".join(f"{run[0]:.1f}" for run in runs)
    print(f"report.py by spark-submit: {seconds:.1f} s, the median of {shown} (target {SECONDS})")
    print(f"the page: {runs[-1][1]:.2f} MB (target {MEGABYTES}); the metrics: {runs[-1][2]:.2f} MB")


if __name__ == "__main__":
    main()
