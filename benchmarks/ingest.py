"""Records a second of the append, and of parsing and folding change records, against plain Spark doing the same.

Appending: `append.py datastream` on JSON lines, against Spark's text source written to a table of the same format,
partitioned by the object, which `get_json_object` finds. Parsing: the source macro's SELECT, and the fold after it,
against `from_json` with the columns' types, of the same records, of all four databases. Both sides take turns in one
session; ratios are medians of pairs.

    python benchmarks/ingest.py [--copies 40] [--warm-up 3] [--repeats 5] [--file-format iceberg]
                                [--sources oracle mysql postgresql sqlserver]
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]

import file_formats  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs import datastream  # noqa: E402
from reconcile_jobs.staging import TableName  # noqa: E402

COLUMNS = {
    "id": "bigint",
    "customer_id": "bigint",
    "status": "string",
    "total": "decimal(38,10)",
    "placed_at": "timestamp",
    "due_on": "date",
    "updated_at": "timestamp",
    "ratio": "double",
}


# The object of the orders, as Datastream names it.
OBJECTS = {"oracle": "SHOP_ORDERS", "mysql": "shop_orders", "postgresql": "shop_orders", "sqlserver": "shop_orders"}


def land(capture: Path, landing: Path, copies: int) -> int:
    """Plain JSON lines of one capture, `copies` times, in two directories' worth of files; returns the records."""
    landing.mkdir(parents=True)
    files = sorted(capture.glob("**/*.jsonl.gz"))
    lines = gzip.decompress(b"".join(file.read_bytes() for file in files)).decode().splitlines(keepends=True)
    for copy in range(copies):
        (landing / f"{copy}.jsonl").write_text("".join(lines), encoding="utf-8")
    return len(lines) * copies


def seconds(action: Callable[[], object]) -> float:
    """How long the action takes."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def report(name: str, records: int, ours: list[float], plain: list[float], target: float | None = None) -> None:
    """One line: both rates, the median ratio of the pairs, and the ratio that is the target."""
    ratio = statistics.median(b / a for a, b in zip(ours, plain, strict=True))
    rates = [records / statistics.median(side) for side in (ours, plain)]
    wanted = f"   (target {target})" if target else ""
    print(f"{name:32}{rates[0]:12,.0f}{rates[1]:12,.0f}{ratio:9.2f}{wanted}", flush=True)


def measure_append(spark: SparkSession, landing: Path, records: int, warm_up: int, repeats: int) -> None:
    """The job against text to a partitioned table."""
    ours, plain = [], []
    number = itertools.count()

    def append() -> None:
        job = datastream.Job(str(landing), TableName.parse(f"bench.ours_{next(number)}"), "auto")
        assert datastream.run(spark, job).records == records

    def write() -> None:
        text = spark.read.text(str(landing)).selectExpr(
            "value as record", "get_json_object(value, '$.object') as object"
        )
        text.write.format(file_formats.file_format()).partitionBy("object").mode("overwrite").saveAsTable("bench.plain")

    for _ in range(warm_up + repeats):
        ours.append(seconds(append))
        plain.append(seconds(write))
    report("append JSON lines", records, ours[warm_up:], plain[warm_up:], 0.8)


def measure_parse(spark: SparkSession, project: Project, source: str, warm_up: int, repeats: int) -> None:
    """The source macro and the fold against from_json, over all records of one object in staging."""
    compiled = project.root / "target" / "compiled" / "shop" / "models" / f"{source}.sql"
    staged = f"select record from bench.{source}_changes where object = '{OBJECTS[source]}'"
    records = spark.sql(staged).count()
    fields = ", ".join(f"{name.upper() if source == 'oracle' else name} {kind}" for name, kind in COLUMNS.items())
    fold = (
        "select max_by(struct(*), _change_sequence) "
        f"from ({compiled.read_text()}) where _change_error is null group by id"
    )
    typed = f"select from_json(record, 'payload struct<{fields}>') as event from ({staged})"
    took: dict[str, list[float]] = {fold: [], compiled.read_text(): [], typed: []}
    for _ in range(warm_up + repeats):
        for sql, side in took.items():
            side.append(seconds(lambda sql=sql: spark.sql(sql).write.format("noop").mode("overwrite").save()))
    folded, parsed, plain = (side[warm_up:] for side in took.values())
    report(f"parse {source}", records, parsed, plain)
    report(f"parse and fold {source}", records, folded, plain, 0.7)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--copies", type=int, default=40, help="how often the capture is repeated (15,000 records each)"
    )
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sources", nargs="+", choices=list(OBJECTS), default=list(OBJECTS))
    parser.add_argument("--file-format", choices=list(file_formats.CONFIGURATIONS), default="delta")
    arguments = parser.parse_args()
    file_formats.choose(arguments.file_format)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        directory = Path(name)
        spark = SparkSession.builder.getOrCreate()
        spark.sql("create schema bench")
        print(f"{'':32}{'ours/s':>12}{'plain/s':>12}{'ratio':>9}")
        project = Project(directory / "project", "bench_models")
        project.source("bench", *(f"{source}_changes" for source in arguments.sources))
        for source in arguments.sources:
            landing = directory / source
            records = land(ROOT / "tests" / "data" / "capture" / f"{source}_json", landing, arguments.copies)
            if source == arguments.sources[0]:
                measure_append(spark, landing, records, arguments.warm_up, arguments.repeats)
            datastream.run(spark, datastream.Job(str(landing), TableName.parse(f"bench.{source}_changes"), "auto"))
            shutil.rmtree(landing)
            call = f"reconcile.datastream_{source}(source('lake', '{source}_changes'), object='{OBJECTS[source]}')"
            project.model(
                source, f"{{{{ config(materialized='current_state', unique_key='id') }}}}\n{{{{ {call} }}}}", COLUMNS
            )
            project.dbt("compile")
            measure_parse(spark, project, source, arguments.warm_up, arguments.repeats)
        spark.stop()


if __name__ == "__main__":
    main()
