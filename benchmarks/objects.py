"""Files, log, and seconds of appends whose records are of many objects, for several layouts of a staging table.

Each layout has a table of its own. The job `append.py datastream` appends one landing with records of --objects
objects, a file of JSON by Datastream from PostgreSQL for each, and then --appends landings. Each of these has records
of so many of the objects as --series names; each number begins with a new table. After each --every appends a row says
how many data files the table has, and how large its log is (`_delta_log`, Iceberg's `metadata`), in megabytes. A reader
needs the newest checkpoint of the log and the commits after it; of Iceberg the newest metadata, manifest list and
manifests. Seconds of an append, and what Java has had of the processors in it (`cpu`, which other work on them changes
little), are medians since the row before. The records of one object are read: all (`object`), and those of the last
batch (`news`), each with the number of files that the scan opens; and all in a session that does not know the table yet
(`cold`; Iceberg's readers ask for the metadata each time). Then the table is compacted, and the records of that object
are deleted up to the last batch, as maintain.py does both.

The product has the layout `object`. The others are made here alone:

    object   a partition for each object
    sorted   no partitions: each batch is sorted, by object and origin, into --files files with bounds of `object`
    bucket   --buckets partitions by a hash of the object, a file for each in a batch, sorted, with bounds of `object`
    liquid   Delta's liquid clustering by object, which an OPTIMIZE does, and no append

Of Delta a read of `bucket` has to name the bucket; the benchmark does.

    python benchmarks/objects.py [--objects 2000] [--records 3] [--appends 200] [--series 50 2000] [--every 50]
                                 [--layouts object sorted bucket liquid] [--buckets 64] [--files 4] [--repeats 5]
                                 [--file-format iceberg]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]

import datastream as events  # noqa: E402
import file_formats  # noqa: E402
from functional.test_pruned_reads import files_read  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from reconcile_jobs import datastream, staging  # noqa: E402
from reconcile_jobs.process.session import list_in_few_tasks  # noqa: E402
from reconcile_jobs.retention.files import compaction  # noqa: E402
from reconcile_jobs.staging import Staging, TableName, literal  # noqa: E402
from reconcile_jobs.table_formats import format_of  # noqa: E402

LAYOUTS = ("object", "sorted", "bucket", "liquid")
COLUMNS = (
    *("layout", "objects an append", "appends", "data files", "MB data", "append s", "cpu s", "MB log", "MB needed"),
    *("object s", "files", "news s", "files", "cold s"),
)
SCHEMA = "bench"
MILLION = 1e6


class Layout(NamedTuple):
    """How the records of a staging table lie in its files."""

    name: str
    buckets: int
    files: int

    @property
    def hash(self) -> str:
        """The bucket of a row."""
        return f"pmod(hash(object), {self.buckets})"

    @property
    def has_bucket_column(self) -> bool:
        """Whether the table has its buckets as a column: Iceberg hides them."""
        return self.name == "bucket" and file_formats.file_format() == "delta"

    def create(self, spark: SparkSession, table: str) -> None:
        """Make the table; the job itself makes that of the product's layout."""
        if self.name == "object":
            return
        is_delta = file_formats.file_format() == "delta"
        clause = {
            "sorted": "",
            "bucket": f"partitioned by ({'bucket' if is_delta else f'bucket({self.buckets}, object)'})",
            "liquid": "cluster by (object)",
        }[self.name]
        table_format = format_of(spark)
        bounds = (
            {"delta.dataSkippingStatsColumns": "object,batch,appended_at"}
            if is_delta
            else {"write.metadata.metrics.column.object": "full"}
        )
        properties = {**table_format.staging_properties, **table_format.append_properties, **bounds}
        pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.columns.items())
        using = f"using {file_formats.file_format()}"
        spark.sql(f"create table {table} ({columns}) {using} {clause} tblproperties ({pairs})")
        if not is_delta:  # which sorts, and shuffles by its own buckets, itself
            within = "" if self.name == "sorted" else "distributed by partition locally "
            spark.sql(f"alter table {table} write {within}ordered by object, origin")

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the table."""
        return {**staging._COLUMNS, **({"bucket": "int"} if self.has_bucket_column else {})}

    def arranged(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a batch as the layout wants them."""
        if file_formats.file_format() == "iceberg" or self.name in ("object", "liquid"):
            return rows
        if self.name == "sorted":
            return rows.repartitionByRange(self.files, "object", "origin").sortWithinPartitions("object", "origin")
        rows = rows.selectExpr("*", f"{self.hash} as bucket")
        return rows.repartition(self.files, "bucket").sortWithinPartitions("bucket", "object")

    def where(self, object_: str) -> str:
        """The condition by which a read finds the records of an object."""
        name = literal(object_)
        found = f"object = {name}"
        return f"{found} and bucket = {self.hash.replace('object', name)}" if self.has_bucket_column else found

    def compact(self, spark: SparkSession, table: TableName) -> None:
        """Combine small files, and keep the layout."""
        statements = compaction(file_formats.file_format(), table)
        if file_formats.file_format() == "delta" and self.name in ("sorted", "bucket"):
            statements = [f"{statement} zorder by (object)" for statement in statements]
        elif self.name in ("sorted", "bucket"):
            statements[0] = statements[0].replace("options =>", "strategy => 'sort', options =>")
        for statement in statements:
            spark.sql(statement).collect()


@contextlib.contextmanager
def laid_out(layout: Layout) -> Iterator[None]:
    """Let the job write this layout."""
    rows = Staging._rows

    def arranged(self: Staging, *arguments: Any) -> DataFrame:
        return layout.arranged(rows(self, *arguments))

    with mock.patch.object(Staging, "_rows", arranged), mock.patch.object(staging, "_COLUMNS", layout.columns):
        yield


class Log(NamedTuple):
    """Megabytes of a table's log: of all its files, and of those that a reader needs."""

    all: float
    needed: float


class Table:
    """A staging table of a layout, and the landing area that is appended to it."""

    def __init__(self, spark: SparkSession, directory: Path, layout: Layout, name: str, records: int) -> None:
        self.spark, self.layout, self.records = spark, layout, records
        self.name = TableName((SCHEMA, name))
        self.landing = directory / name
        self.checkpoint = directory / f"{name}_checkpoint"
        self.landing.mkdir()
        self.landings = 0
        self.seconds: list[float] = []
        self.busy: list[float] = []  # of the appends, too
        self.has: dict[str, int] = {}  # records of each object
        layout.create(spark, self.name.sql)

    @property
    def directory(self) -> Path:
        warehouse = Path(str(self.spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
        return warehouse / f"{SCHEMA}.db" / self.name.parts[-1]

    def land(self, objects: list[str]) -> None:
        """Write a file for each object, as Datastream does."""
        self.landings += 1
        for object_ in objects:
            file = self.landing / object_ / "2026" / "11" / "28" / "00" / "00" / f"cdc_{self.landings}_0_0.jsonl"
            file.parent.mkdir(parents=True)
            lines = [record(object_, self.landings * self.records + number) for number in range(self.records)]
            file.write_text("".join(lines), encoding="utf-8")
            self.has[object_] = self.has.get(object_, 0) + self.records

    def append(self, objects: list[str]) -> None:
        """Append a landing with records of the objects, and note the seconds."""
        self.land(objects)
        job = datastream.Job(str(self.landing), self.name, "auto", str(self.checkpoint))
        with laid_out(self.layout):
            began, busy = time.monotonic(), processor_seconds(self.spark)
            totals = datastream.run(self.spark, job)
            self.seconds.append(time.monotonic() - began)
            self.busy.append(processor_seconds(self.spark) - busy)
        assert totals.records == len(objects) * self.records, totals
        assert totals.last_batch == self.landings, totals
        for object_ in objects:  # as the landing area is tidied; else the job would list more files with each append
            shutil.rmtree(self.landing / object_)

    def files(self) -> tuple[int, float]:
        """Return the number of the table's data files, and their megabytes."""
        if file_formats.file_format() == "delta":
            row = self.spark.sql(f"describe detail {self.name.sql}").select("numFiles", "sizeInBytes").collect()[0]
        else:
            files = self.spark.table(f"{SCHEMA}.{self.name.parts[-1]}.files")
            row = files.selectExpr("count(*)", "coalesce(sum(file_size_in_bytes), 0)").collect()[0]
        return int(row[0]), row[1] / MILLION

    def log(self) -> Log:
        """Return the size of the log. Hadoop's checksums beside local files do not count."""
        if file_formats.file_format() == "delta":
            files = [file for file in (self.directory / "_delta_log").rglob("*") if not file.name.startswith(".")]
            sizes = {file: file.stat().st_size for file in files if file.is_file()}
            pointer = self.directory / "_delta_log" / "_last_checkpoint"
            newest = json.loads(pointer.read_text())["version"] if pointer.exists() else -1
            needed = sum(
                size
                for file, size in sizes.items()
                if (".checkpoint" in file.name and file.name.startswith(f"{newest:020}"))
                or (file.suffix == ".json" and file.stem.isdigit() and int(file.stem) > newest)
            )
        else:
            sizes = {
                file: file.stat().st_size
                for file in (self.directory / "metadata").iterdir()
                if not file.name.startswith(".")
            }
            name = f"{SCHEMA}.{self.name.parts[-1]}"
            (manifests,) = self.spark.table(f"{name}.manifests").selectExpr("sum(length)").collect()[0]
            newest_of = [
                max((file for file in sizes if file.match(glob)), key=lambda file: file.stat().st_mtime_ns)
                for glob in ("*.metadata.json", "snap-*.avro")
            ]
            needed = manifests + sum(sizes[file] for file in newest_of)
        return Log(sum(sizes.values()) / MILLION, needed / MILLION)

    def read(self, object_: str, repeats: int, is_news: bool = False, is_cold: bool = False) -> tuple[float, int]:
        """Return the median seconds of reads of an object's records, and the files that a read opens."""
        query = f"select record from {self.name.sql} where {self.layout.where(object_)}"
        if is_news:
            query += f" and batch = {self.landings}"
        found = self.spark.sql(query)
        files = files_read(found)
        assert found.count() == (self.records if is_news else self.has[object_]), query
        seconds = []
        for _ in range(repeats):
            if is_cold and file_formats.file_format() == "delta":
                jvm: Any = self.spark._jvm
                jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            began = time.monotonic()
            self.spark.sql(query).collect()
            seconds.append(time.monotonic() - began)
        return statistics.median(seconds), files

    def print_row(self, series: int, appends: str, object_: str, repeats: int, since: int | None) -> None:
        """Print what the table is now; `object_` was in the last append, and medians begin with the append `since`."""
        number, megabytes = self.files()
        log = self.log()
        whole, whole_files = self.read(object_, repeats)
        news, news_files = self.read(object_, repeats, is_news=True)
        cold, _ = self.read(object_, repeats, is_cold=True)
        cells = [self.layout.name, f"{series:,}", appends, f"{number:,}", f"{megabytes:.1f}"]
        for seconds in (self.seconds, self.busy):
            cells.append("" if since is None else f"{statistics.median(seconds[since:]):.1f}")
        cells += [f"{log.all:.2f}", f"{log.needed:.2f}"]
        cells += [f"{whole:.2f}", f"{whole_files:,}", f"{news:.2f}", f"{news_files:,}", f"{cold:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)

    def drop(self) -> None:
        self.spark.sql(f"drop table {self.name.sql}")
        shutil.rmtree(self.checkpoint, ignore_errors=True)  # there is none before the first append
        shutil.rmtree(self.landing)


def processor_seconds(spark: SparkSession) -> float:
    """Return what the session's Java process has had of the processors, which other work on them changes little."""
    gateway: Any = spark.sparkContext._gateway
    fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(object_: str, number: int) -> str:
    """Return a line of Datastream from PostgreSQL: a change of a row with ten columns."""
    payload = {
        "id": number,
        "customer_id": number * 7919 % 100_000,
        "status": "paid" if number % 3 else "shipped",
        "total": number / 8,
        "placed_at": "2026-11-21T11:33:13.061581Z",
        "due_on": "2026-12-24",
        "updated_at": "2026-11-21T11:34:05.415Z",
        "ratio": number / 64,
        "note": f"change {number} of {object_}",
        "is_paid": bool(number % 3),
    }
    place = {"table": object_.removeprefix("shop_"), "lsn": f"0/{number:X}"}
    return events.event("postgresql", payload, "UPDATE-INSERT", metadata=place, object=object_) + "\n"


def measure(spark: SparkSession, directory: Path, layout: Layout, series: int, asked: argparse.Namespace) -> None:
    """Print the rows of one layout and one series."""
    objects = [f"shop_t{number:05}" for number in range(asked.objects)]
    table = Table(spark, directory, layout, f"{layout.name}_{series}", asked.records)
    table.append(objects)
    of_one = objects[len(objects) // 2]
    table.print_row(series, "1", of_one, asked.repeats, 0)
    since = 1
    for number in range(1, asked.appends + 1):
        chosen = sorted(random.Random(number).sample(objects, series))
        table.append(chosen)
        of_one = chosen[len(chosen) // 2]
        if number % asked.every == 0 or number == asked.appends:
            table.print_row(series, f"1 + {number:,}", of_one, asked.repeats, since)
            since = len(table.seconds)
    began = time.monotonic()
    layout.compact(spark, table.name)
    seconds = time.monotonic() - began
    table.print_row(series, f"compacted in {seconds:.1f} s", of_one, asked.repeats, None)
    began = time.monotonic()
    spark.sql(f"delete from {table.name.sql} where {layout.where(of_one)} and batch <= {table.landings}").collect()
    seconds = time.monotonic() - began
    left = spark.table(table.name.sql).count()
    assert left == sum(table.has.values()) - table.has[of_one], left
    print(f"| {layout.name} | {series:,} | delete: {seconds:.1f} s |{' |' * (len(COLUMNS) - 3)}", flush=True)
    table.drop()


def warm_up(spark: SparkSession, directory: Path, layouts: list[Layout], appends: int) -> None:
    """Let Java compile what appends and reads need."""
    for layout in layouts if appends else []:
        table = Table(spark, directory, layout, f"warm_up_{layout.name}", 3)
        for _ in range(appends):
            table.append([f"shop_t{number}" for number in range(20)])
            table.read("shop_t7", 1)
        table.drop()


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--records", type=int, default=3, help="of each object in an append")
    parser.add_argument("--appends", type=int, default=200, help="after the landing of all objects; 0: that one alone")
    parser.add_argument("--series", type=int, nargs="+", default=[50, 2000], help="objects of an append")
    parser.add_argument("--every", type=int, default=50, help="appends between two rows")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--buckets", type=int, default=64)
    parser.add_argument("--files", type=int, default=4, help="of a sorted batch, and tasks that write buckets")
    parser.add_argument("--repeats", type=int, default=5, help="reads")
    parser.add_argument("--warm-up", type=int, default=3, help="small appends to each layout before all")
    parser.add_argument("--file-format", choices=list(file_formats.CONFIGURATIONS), default="delta")
    asked = parser.parse_args()
    if max(asked.series) > asked.objects:
        parser.error(f"--series {max(asked.series)}: there are {asked.objects} objects; give --objects or --series")
    if asked.appends == 0:
        asked.series = [asked.objects]
    file_formats.choose(asked.file_format)
    names = [name for name in asked.layouts if name != "liquid" or asked.file_format == "delta"]
    layouts = [Layout(name, asked.buckets, asked.files) for name in names]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        directory = Path(name)
        spark = SparkSession.builder.getOrCreate()
        list_in_few_tasks(spark)  # as each job does
        spark.conf.set("spark.sql.shuffle.partitions", asked.files)
        spark.sql(f"create schema {SCHEMA}")
        warm_up(spark, directory, layouts, asked.warm_up)
        print(f"{asked.objects:,} objects, {asked.records} records of each in an append, {asked.file_format}\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
        for series in asked.series:
            for layout in layouts:
                measure(spark, directory, layout, series, asked)
        spark.stop()


if __name__ == "__main__":
    main()
