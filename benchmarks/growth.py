"""Seconds of a run, and bytes of its tables, while rows, changes, models or batches grow; and the life of one model.

Four axes, one after the other in one Spark session under the settings of conf/. Each point of the first three has
tables of its own: the median of some runs, after one that is not counted. Of batches one model goes on and on: a point
is the median of its last runs up to that batch. Axes begin alike, with --base-rows rows and --batch-changes changes;
models have --records records each and a base table that begins empty. Records are JSON of ten columns by Datastream
from PostgreSQL, at random keys: nine of ten update a row, the others delete one or bring a new one.

Seconds are those that dbt says of its run, parsing left out; staging is filled by SQL and not timed. Megabytes are of
all files in the directories of base tables and of staging, those of older versions too. A slope is the exponent of a
fit through logarithms (1: twice as much takes twice as long), beside it that between the last two points alone: what a
run takes however small hides the growth of small points. The plot is SVG; an axis without points is left out.

--increments 300: one model, so many increments; the medians of the first ten and of the last ten, and their ratio. Java
still compiles during the first ones, so beside the last ten a new model of the same size has its own first ten, in
turns. --optimize-every compacts staging and base table, as docs/operations/scheduling.md says; --maintain-every purges
staging of all that is applied, as docs/operations/maintenance.md says. Their seconds are counted apart.

    python benchmarks/growth.py [--rows 1000000 30000000] [--changes 1000 1000000] [--models 1 200] [--batches 1 500]
    python benchmarks/growth.py --increments 300 [--optimize-every 50] [--maintain-every 50]
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from file_formats import file_format  # noqa: E402
from fresh import NAMES, SEQUENCE, staged  # noqa: E402
from merge import COLUMNS, ratio, rows  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.retention.purge import Purge  # noqa: E402
from reconcile_jobs.retention.tables import Tables  # noqa: E402
from reconcile_jobs.staging import TableName  # noqa: E402
from reconcile_jobs.table_formats import format_of  # noqa: E402
from tables import DELETED  # noqa: E402

AXES = {
    "rows": "rows of the base table",
    "changes": "changes of a batch",
    "models": "models of a run",
    "batches": "batches that a model has had",
}
KEYS = 1000  # of a table whose base table begins empty
ENDS = 10  # increments at both ends of a model's life


class Point(NamedTuple):
    """What was measured at one point of an axis."""

    axis: str
    value: int
    seconds: float
    base: float  # megabytes
    staging: float


class Shop:
    """A staging table, models that read one of its tables each, and the seconds of their increments."""

    def __init__(self, spark: SparkSession, directory: Path, name: str, models: int = 1, base_rows: int = 0) -> None:
        self.spark, self.schema, self.models = spark, f"growth_{name}", models
        self.keys = base_rows or KEYS
        self.batch = 0
        self.seconds: list[float] = []
        self.project = Project(directory / name, self.schema)
        self.project.source(self.schema, "changes")
        for number in range(models):
            self.project.model(
                f"orders_{number}",
                "{{ config(materialized='current_state', unique_key='id', tags=['orders']) }}\n"
                f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_orders_{number}') }}}}",
                COLUMNS,
            )
        spark.sql(f"create schema {self.schema}")
        self.append(1)
        self.run()
        if base_rows:
            self._fill(base_rows)

    def _fill(self, base_rows: int) -> None:
        base = f"{self.schema}.orders_0__base"
        self.spark.sql(f"delete from {base}")
        self.spark.sql(
            f"insert into {base} by name select {NAMES}, {SEQUENCE} as _change_sequence, "
            f"timestamp'2026-01-01' as _change_time, 1L as _change_batch, false as {DELETED[file_format()]} "
            f"from ({rows(f'select id from range({base_rows})', '1')})"
        )

    def append(self, count: int) -> None:
        """Append a batch, of so many records of each model's table."""
        self.batch += 1
        records = f"""
            select replace(record, '"object":"shop_orders"', concat('"object":"shop_orders_', model, '"')) as record,
                source, concat('shop_orders_', model) as object, origin, batch, appended_at
            from ({staged(count, self.keys, self.batch, False)})
            cross join (select id as model from range({self.models}))"""
        table = f"{self.schema}.changes"
        if self.batch == 1:
            # As the append jobs make it.
            properties = ", ".join(
                f"'{name}' = '{value}'" for name, value in format_of(self.spark).staging_properties.items()
            )
            form = f"using {file_format()} partitioned by (object) tblproperties ({properties})"
            self.spark.sql(f"create table {table} {form} as {records}")
        else:
            self.spark.sql(f"insert into {table} by name {records}")

    def run(self) -> float:
        """Run all models, and return the seconds that dbt says of it."""
        return float(self.project.dbt("run", "--select", "tag:orders").result.elapsed_time)

    def increment(self, count: int) -> None:
        """Append a batch, and merge it."""
        self.append(count)
        self.seconds.append(self.run())
        last = self.spark.sql(f"select max(_change_batch) from {self.schema}.orders_0__base").collect()[0][0]
        assert last == self.batch, f"batch {self.batch} was staged, and the base table has {last}"

    def point(self, axis: str, value: int, last: int) -> Point:
        """Return the median of the last increments, and what the tables take now."""
        base = sum(self._megabytes(f"orders_{number}__base") for number in range(self.models))
        return Point(axis, value, statistics.median(self.seconds[-last:]), base, self._megabytes("changes"))

    def _megabytes(self, table: str) -> float:
        warehouse = Path(str(self.spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
        directory = warehouse / f"{self.schema}.db" / table
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        assert size, f"no files of the table are in {directory}"
        return size / 1e6

    def optimize(self) -> float:
        """Compact staging and base tables, and return the seconds."""
        began = time.monotonic()
        for table in ("changes", *(f"orders_{number}__base" for number in range(self.models))):
            if file_format() == "iceberg":
                name = f"{self.schema}.{table}"
                self.spark.sql(f"call spark_catalog.system.rewrite_data_files(table => '{name}')").collect()
            else:
                self.spark.sql(f"optimize {self.schema}.{table}").collect()
        return time.monotonic() - began

    @property
    def staging(self) -> TableName:
        return TableName((self.schema, "changes"))

    def let_models_register(self) -> None:
        """Do what the first call of maintain.py does."""
        Tables(self.spark, self.staging).make_readers()

    def maintain(self) -> float:
        """Purge all that is applied, as maintain.py does, and return the seconds."""
        began = time.monotonic()
        result = Purge(Tables(self.spark, self.staging), self.staging, timedelta(), lambda sentence: None).run()
        assert result.records, f"nothing was purged: {result.kept_back}"
        return time.monotonic() - began

    def drop(self) -> None:
        self.spark.sql(f"drop schema {self.schema} cascade")


class Growth:
    """The axes, in one session."""

    def __init__(self, spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
        self.spark, self.directory, self.arguments = spark, directory, arguments

    def shop(self, name: str, models: int = 1, base_rows: int = 0) -> Shop:
        return Shop(self.spark, self.directory, name, models, base_rows)

    def warm_up(self) -> None:
        """Let Java compile what the increments of a model need."""
        shop = self.shop("warm_up", base_rows=1000)
        for _ in range(self.arguments.warm_up):
            shop.increment(100)
        shop.drop()

    def points(self) -> Iterator[Point]:
        """Yield the points of all axes."""
        asked = self.arguments
        for value in asked.rows:
            yield self._point("rows", value, self.shop(f"rows_{value}", base_rows=value), asked.batch_changes)
        for value in asked.changes:
            yield self._point("changes", value, self.shop(f"changes_{value}", base_rows=asked.base_rows), value)
        for value in asked.models:
            yield self._point("models", value, self.shop(f"models_{value}", models=value), asked.records)
        if asked.batches:
            shop = self.shop("batches", base_rows=asked.base_rows)
            for number in range(1, max(asked.batches) + 1):
                shop.increment(asked.batch_changes)
                if number in asked.batches:
                    yield shop.point("batches", number, min(number, asked.repeats))
            shop.drop()

    def _point(self, axis: str, value: int, shop: Shop, changes: int) -> Point:
        for _ in range(1 + self.arguments.repeats):
            shop.increment(changes)
        point = shop.point(axis, value, self.arguments.repeats)
        shop.drop()
        return point

    def life(self) -> None:
        """Print what the increments of one model take at both ends of its life."""
        asked = self.arguments
        ends = min(ENDS, max(1, asked.increments // 2))
        shop, young = self.shop("life", base_rows=asked.base_rows), None
        if asked.maintain_every:
            shop.let_models_register()
        care: dict[str, list[float]] = {"optimize": [], "maintain": []}
        print_head()
        for number in range(1, asked.increments + 1):
            if number == asked.increments - ends + 1:
                young = self.shop("young", base_rows=asked.base_rows)
            shop.increment(asked.batch_changes)
            if young:
                young.increment(asked.batch_changes)
            if number in (ends, asked.increments) or number % 50 == 0:
                print_point(shop.point("batches", number, ends))
            is_last = number == asked.increments
            if asked.optimize_every and number % asked.optimize_every == 0 and not is_last:
                care["optimize"].append(shop.optimize())
            if asked.maintain_every and number % asked.maintain_every == 0 and not is_last:
                care["maintain"].append(shop.maintain())
        first, last = shop.seconds[:ends], shop.seconds[-ends:]
        medians = statistics.median(first), statistics.median(last)
        print(f"\n{asked.increments} increments of {asked.batch_changes:,} changes, {asked.base_rows:,} rows at first")
        print(f"  median of the first {ends}   {medians[0]:.2f} s")
        print(f"  median of the last {ends}    {medians[1]:.2f} s")
        print(f"  the last to the first   {medians[1] / medians[0]:.2f}   (target 1.3)")
        if young:
            new = statistics.median(young.seconds)
            print(f"  the last to a new model's first, {new:.2f} s, in turns   {ratio(last, young.seconds):.2f}")
        for what, seconds in care.items():
            if seconds:
                median, total = statistics.median(seconds), sum(seconds)
                print(f"  {what}, {len(seconds)} times: median {median:.2f} s, together {total:.1f} s")
        print(f"  all increments together   {sum(shop.seconds):.1f} s")


def slopes(points: list[Point], of: str) -> tuple[str, str]:
    """Return the exponent of a fit through all points, and that between the last two."""
    logs = [(math.log(point.value), math.log(getattr(point, of))) for point in points]
    fits = []
    for some in (logs, logs[-2:]):
        x, y = zip(*some, strict=True)
        fits.append(f"{statistics.linear_regression(x, y).slope:.2f}" if len(set(x)) > 1 else "-")
    return fits[0], fits[1]


def print_head() -> None:
    print("| axis | at | seconds | MB base tables | MB staging |\n| --- | --- | --- | --- | --- |")


def print_point(point: Point) -> None:
    print(
        f"| {AXES[point.axis]} | {point.value:,} | {point.seconds:.2f} | {point.base:.1f} | {point.staging:.1f} |",
        flush=True,
    )


def print_slopes(points: list[Point]) -> None:
    print("\n| slope; between the last two points | seconds | MB base tables | MB staging |\n| --- | --- | --- | --- |")
    for axis in dict.fromkeys(point.axis for point in points):
        there = [point for point in points if point.axis == axis]
        fits = (slopes(there, of) for of in ("seconds", "base", "staging"))
        print(f"| {AXES[axis]} | {' | '.join('; '.join(of) for of in fits)} |")


# --- the plot --------------------------------------------------------------------------------------------------------

WIDE, HIGH = 190, 150  # of a panel, within its frame
PANELS = [
    [("seconds", "seconds", "#0b5fa5")],
    [("base", "MB base tables", "#0b5fa5"), ("staging", "MB staging", "#b8500a")],
]


def plot(points: list[Point]) -> str:
    """Return the points as SVG: of each axis a panel of seconds, and one of megabytes below it, all logarithmic."""
    axes = list(dict.fromkeys(point.axis for point in points))
    drawn = []
    for row, lines in enumerate(PANELS):
        values = [getattr(point, of) for point in points for of, _, _ in lines]
        for column, axis in enumerate(axes):
            there = sorted((point for point in points if point.axis == axis), key=lambda point: point.value)
            drawn.append(f'<g transform="translate({50 + column * (WIDE + 50)},{50 + row * (HIGH + 80)})">')
            drawn.append(f'<rect width="{WIDE}" height="{HIGH}" fill="none" stroke="#999"/>')
            xs = [_place(point.value, there[0].value, there[-1].value) * (WIDE - 30) + 15 for point in there]
            for x, point in zip(xs, there, strict=True):
                drawn.append(_text(x, HIGH + 14, _short(point.value)))
            drawn.append(_text(WIDE / 2, HIGH + 28, AXES[axis]))
            for number, (of, name, colour) in enumerate(lines):
                ys = [HIGH - 20 - _place(getattr(point, of), min(values), max(values)) * (HIGH - 40) for point in there]
                along = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
                drawn.append(f'<polyline points="{along}" fill="none" stroke="{colour}"/>')
                for x, y, point in zip(xs, ys, there, strict=True):
                    drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>')
                    is_lower = getattr(point, of) < max(getattr(point, other) for other, _, _ in lines)
                    drawn.append(_text(x, y + (14 if is_lower else -6), _short(getattr(point, of)), colour))
                title = f"{name}: slope {slopes(there, of)[0]}"
                drawn.append(_text(WIDE / 2, 13 * (number - len(lines)) + 7, title, colour))
            drawn.append("</g>")
    size = f'width="{50 + len(axes) * (WIDE + 50)}" height="{50 + 2 * (HIGH + 80)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *drawn, "</svg>", ""])


def _place(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low) if high > low else 0.5


def _text(x: float, y: float, text: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}">{text}</text>'


def _short(value: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--changes", type=int, nargs="*", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--models", type=int, nargs="*", default=[1, 5, 20])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 10, 30, 100])
    parser.add_argument("--increments", type=int, help="the life of one model, in place of the axes")
    parser.add_argument("--optimize-every", type=int, default=0, metavar="N", help="increments; with --increments")
    parser.add_argument("--maintain-every", type=int, default=0, metavar="N", help="increments; with --increments")
    parser.add_argument("--base-rows", type=int, default=1_000_000, help="rows, where they are not the axis")
    parser.add_argument("--batch-changes", type=int, default=10_000, help="changes of a batch, where not the axis")
    parser.add_argument("--records", type=int, default=200, help="of each of many models, in each batch")
    parser.add_argument("--warm-up", type=int, default=10, help="increments of another model before all")
    parser.add_argument("--repeats", type=int, default=3, help="runs at each point")
    parser.add_argument("--plot", type=Path, default=ROOT / "target" / "growth.svg", help="the file of the plot")
    arguments = parser.parse_args()
    file = arguments.plot.resolve()
    for axis in AXES:
        setattr(arguments, axis, sorted(set(getattr(arguments, axis))))
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        spark = SparkSession.builder.getOrCreate()
        growth = Growth(spark, Path(directory), arguments)
        growth.warm_up()
        if arguments.increments:
            growth.life()
        else:
            print_head()
            points = []
            for point in growth.points():
                print_point(point)
                points.append(point)
            print_slopes(points)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(plot(points), encoding="utf-8")
            print(f"\nthe plot: {file}")
        spark.stop()


if __name__ == "__main__":
    main()
