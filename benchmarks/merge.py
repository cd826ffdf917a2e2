"""Seconds to apply one batch of changes at random keys: current_state, dbt-spark's incremental merge, and the floor.

The three take turns on the same batches, and so do tables of all sizes, in one Spark session under the settings of
conf/, or with --thrift through the Thrift server of a cluster on this machine, two workers with a core each: ratios are
medians of pairs, also that of our own time on one size of base table to that on another.
The floor reads the batch, scans key and sequence of the base table and writes the batch as Parquet. Of the others, what
is timed is what dbt times of a model, with all its bookkeeping.

    python benchmarks/merge.py [--rows 1000000 10000000] [--changes 10000 100000]
                               [--warm-up 3] [--repeats 5]
                               [--file-format iceberg [--buckets 8]] [--thrift]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

import file_formats  # noqa: E402
from cluster.spark_cluster import Cluster  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from tables import DELETED  # noqa: E402

Ask = Callable[[str], list[Any]]

VALUES = {
    "customer_id": "bigint",
    "status": "string",
    "total": "decimal(38,10)",
    "placed_at": "timestamp",
    "due_on": "date",
    "note": "string",
    "quantity": "int",
    "ratio": "double",
    "vip": "boolean",
}
COLUMNS = {"id": "bigint", **VALUES}
CHANGE = """
    'update' as _change_type, lpad(hex(batch), 16, '0') as _change_sequence, cast(id as string) as _change_id,
    timestamp'2026-01-01' as _change_time, cast(null as string) as _change_transaction, batch as _change_batch,
    cast(null as array<string>) as _change_columns, cast(null as string) as _change_error"""


def rows(count: int, batch: str) -> str:
    """SQL for `count` rows whose values follow from id and batch."""
    return f"""
        select id, id % 1000 as customer_id, concat('status ', (id + {batch}) % 7) as status,
            cast((id * 37 + {batch}) / 100 as decimal(38,10)) as total, timestamp_seconds(1700000000 + id) as placed_at,
            date_add(date'2026-01-01', cast(id % 365 as int)) as due_on, repeat('n', cast(id % 40 as int)) as note,
            cast(id % 100 as int) as quantity, id / 7.0d as ratio, id % 2 = 0 as vip, cast({batch} as bigint) as batch
        from ({count})"""


def prepare(ask: Ask, project: Project, schema: str, base_rows: int, buckets: int) -> None:
    """Both tables with `base_rows` rows, made by their own first runs and then filled alike."""
    form = file_formats.file_format()
    ask(f"create schema {schema}")
    ask(f"create table {schema}.changes using {form} partitioned by (batch) as {rows('select 0L as id', '1')}")
    project.source(schema, "changes")
    changes, meta = "{{ source('lake', 'changes') }}", {"buckets": buckets}
    project.model(
        "ours",
        f"{{{{ config(materialized='current_state', unique_key='id'{f', meta={meta}' if buckets else ''}) }}}}\n"
        f"select {', '.join(COLUMNS)},{CHANGE} from {changes}",
        COLUMNS,
    )
    project.model(
        "theirs",
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}\n"
        f"select {', '.join(COLUMNS)} from {changes} where batch = (select max(batch) from {changes})",
        COLUMNS,
    )
    project.dbt("run")
    all_rows = rows(f"select id from range(1, {base_rows})", "1")
    ask(
        f"insert into {schema}.ours__base by name select {', '.join(COLUMNS)}, lpad(hex(1), 16, '0') "
        f"as _change_sequence, timestamp'2026-01-01' as _change_time, 1L as _change_batch, false as {DELETED[form]} "
        f"from ({all_rows})"
    )
    ask(f"insert into {schema}.theirs by name select {', '.join(COLUMNS)} from ({all_rows})")


def seconds_of_dbt(project: Project, model: str) -> float:
    """What dbt says that the model took."""
    outcome = project.dbt("run", "--select", model)
    # What runs at the start and at the end of the run has results, too.
    (seconds,) = [result.execution_time for result in outcome.result.results if result.node.name == model]
    return float(seconds)


def seconds_of_floor(ask: Ask, schema: str, batch: int, directory: str) -> float:
    """Read the batch, scan key and sequence of the base, write the batch."""
    began = time.monotonic()
    ask(f"select max(id), max(_change_sequence) from {schema}.ours__base")
    ask(f"insert overwrite directory '{directory}' using parquet select * from {schema}.changes where batch = {batch}")
    return time.monotonic() - began


def megabytes_written(ask: Ask, table: str) -> float:
    """What the last version of a table added, data files and deletion vectors, by its own account."""
    if file_formats.file_format() == "iceberg":
        [(last,)] = ask(f"select max_by(summary, committed_at) from {table}.snapshots")
        return float(last.get("added-files-size", 0)) / 1e6
    [(*_, metrics, _, _)] = ask(f"describe history {table} limit 1")
    metrics = json.loads(metrics) if isinstance(metrics, str) else metrics  # through Thrift it is a text
    return float(metrics.get("numTargetBytesAdded") or metrics.get("numOutputBytes") or 0) / 1e6


class Race:
    """Tables of one size, their batches of one size, and the seconds of the three sides."""

    def __init__(
        self, ask: Ask, target: dict[str, Any] | None, directory: Path, base_rows: int, changes: int, buckets: int
    ) -> None:
        self.ask, self.base_rows, self.changes = ask, base_rows, changes
        self.schema = f"bench_{base_rows}_{changes}"
        self.floor_directory = directory / f"{self.schema}_floor"
        self.project = Project(directory / self.schema, self.schema, target=target)
        prepare(ask, self.project, self.schema, base_rows, buckets)
        self.batch = 1
        self.seconds: dict[str, list[float]] = {"ours": [], "dbt-spark": [], "floor": []}

    def round(self) -> None:
        """Append a batch, and let each side have its turn."""
        self.batch += 1
        keys = f"select distinct cast(rand({self.batch}) * {self.base_rows} as bigint) as id from range({self.changes})"
        self.ask(f"insert into {self.schema}.changes by name {rows(keys, str(self.batch))}")
        self.seconds["ours"].append(seconds_of_dbt(self.project, "ours"))
        # Ours sets it; dbt-spark's MERGE from a view of Iceberg's tables that is kept so Spark 4.1.1 cannot plan.
        self.ask("set spark.sql.legacy.storeAnalyzedPlanForView = false")
        self.seconds["dbt-spark"].append(seconds_of_dbt(self.project, "theirs"))
        floor = seconds_of_floor(self.ask, self.schema, self.batch, str(self.floor_directory))
        self.seconds["floor"].append(floor)

    def report(self) -> None:
        """Print one line of the table, and drop what was made."""
        written = [megabytes_written(self.ask, f"{self.schema}.{table}") for table in ("ours__base", "theirs")]
        rows_of = f"(select id, struct({', '.join(VALUES)}) as row from {self.schema}.{{0}}) as {{0}}"
        [(differ,)] = self.ask(
            "select count_if(not ours.row <=> theirs.row) "
            f"from {rows_of.format('ours')} full join {rows_of.format('theirs')} using (id)"
        )
        self.ask(f"drop schema {self.schema} cascade")
        sizes = f"{self.base_rows:>11,} {self.changes:>8,}"
        seconds = "".join(f"{statistics.median(side):11.2f}" for side in self.seconds.values())
        ours, theirs, floor = self.seconds.values()
        print(
            f"{sizes}{seconds}{ratio(theirs, ours):11.2f} x{ratio(ours, floor):9.2f} x"
            f"{written[0]:11.2f}{written[1]:11.2f}{differ:>8}",
            flush=True,
        )


def ratio(one: list[float], other: list[float]) -> float:
    """Return how many times the seconds of the other the one took: the median of pairs."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


# What is wanted of 10,000 changes: of our time to dbt-spark's, of dbt-spark's to ours, and of ours to ours on a tenth.
WANTED = {1_000_000: ("   (target 0.9)", "", ""), 10_000_000: ("", "   (target 4)", "   (target 1.6)")}


def print_ratios(races: list[Race]) -> None:
    """Print the ratios that have targets, and the same ones of other sizes."""
    for race in races:
        ours, theirs = race.seconds["ours"], race.seconds["dbt-spark"]
        wanted = WANTED.get(race.base_rows, ("", "", "")) if race.changes == 10_000 else ("", "", "")
        print(f"\n{race.changes:,} changes into {race.base_rows:,} rows")
        print(f"  ours to dbt-spark's   {ratio(ours, theirs):.2f}{wanted[0]}")
        print(f"  dbt-spark's to ours   {ratio(theirs, ours):.2f}{wanted[1]}")
        for other in races:
            if other.changes == race.changes and other.base_rows < race.base_rows:
                times = ratio(ours, other.seconds["ours"])
                is_tenth = other.base_rows * 10 == race.base_rows
                print(f"  ours to ours on {other.base_rows:,} rows   {times:.2f}{wanted[2] if is_tenth else ''}")


@contextlib.contextmanager
def in_a_session() -> Iterator[tuple[Ask, None]]:
    """Ask the Spark session that dbt has."""
    spark = SparkSession.builder.getOrCreate()
    yield lambda sql: spark.sql(sql).collect(), None
    spark.stop()


@contextlib.contextmanager
def through_thrift(directory: Path) -> Iterator[tuple[Ask, dict[str, Any]]]:
    """Ask a Thrift server, and have dbt ask it."""
    with Cluster(directory / "cluster", thrift_cores=2) as cluster:
        yield cluster.query, cluster.target


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="rows of the base table")
    parser.add_argument("--changes", type=int, nargs="+", default=[10_000, 100_000], help="changes of a batch")
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--file-format", choices=list(file_formats.CONFIGURATIONS), help="instead of SPARK_CONF_DIR")
    parser.add_argument("--buckets", type=int, default=0, help="buckets of our base table, with Iceberg")
    parser.add_argument("--thrift", action="store_true", help="through a Thrift server")
    arguments = parser.parse_args()
    if arguments.file_format:
        file_formats.choose(arguments.file_format)
    with contextlib.ExitStack() as opened:
        directory = opened.enter_context(tempfile.TemporaryDirectory())
        opened.enter_context(contextlib.chdir(directory))
        ask, target = opened.enter_context(through_thrift(Path(directory)) if arguments.thrift else in_a_session())
        races = [
            Race(ask, target, Path(directory), base_rows, changes, arguments.buckets)
            for base_rows in arguments.rows
            for changes in arguments.changes
        ]
        for number in range(arguments.warm_up + arguments.repeats):
            for race in races:
                if number == arguments.warm_up:
                    race.seconds = {side: [] for side in race.seconds}
                race.round()
                taken = ", ".join(f"{side} {seconds[-1]:.2f}" for side, seconds in race.seconds.items())
                print(f"round {number + 1}, {race.base_rows:,} rows, {race.changes:,} changes: {taken}", flush=True)
        print(f"\n{'':20}{'seconds':^33}{'ratios':^24}{'MB written':^22}   rows")
        print(
            f"{'base rows':>11} {'changes':>8}{'ours':>11}{'dbt-spark':>11}{'floor':>11}{'dbt-spark':>13}"
            f"{'to floor':>11}"
            f"{'ours':>11}{'dbt-spark':>11}{'differ':>8}"
        )
        for race in races:
            race.report()
        print_ratios(races)


if __name__ == "__main__":
    main()
