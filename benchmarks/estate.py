"""Seconds and memory of a run of thousands of models of which few, or none, have news.

Models of the package run with `only_new_records`, or, with --no-only-new-records, without variables.

Models of PostgreSQL's records by Datastream, JSON of five columns, read an object each in a few staging tables. Two
pairs of runs take turns in one Spark session under the settings of conf/: all models without news, and a project of as
many models with the same sources in the same schema, of a materialization that does nothing; all models where --news of
them have news, and those alone, each after a batch of its own. Ratios are medians of pairs.

A run's seconds are those that dbt says of it, with the list of relations that dbt asks for at its start, which also
stands apart. Beside them is what else the command took, mostly dbt's parsing, of which each of these runs does the
least, since no file has changed. What dbt says of a parse of all files is printed too. Memory is VmHWM of /proc, set
back before each run: of Python, in which dbt runs, and of Java, which keeps what it once took up to the 4 GB of conf/.
What Java holds in use after a collection is printed at the end.

dbt builds the first model of each staging table. Of Delta's tables the others are copies, with their own names and
digests, as dbt would have made them: that is checked, as a run without news must write nothing. The ledger then has two
commits in place of one for each model. Iceberg's files name their place, so dbt builds all, as with --no-copies.

    python benchmarks/estate.py [--models 2000] [--news 50] [--staging 10] [--records 20] [--threads 4] [--repeats 3]
    python benchmarks/estate.py --models 20 --news 2 --statements
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

import file_formats  # noqa: E402
import pyarrow as pa  # noqa: E402
from datastream import Staged, event, frame_of  # noqa: E402
from merge import ratio  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.staging import Staging, TableName  # noqa: E402
from small_models import NO_OP, print_statements, seconds_of_statements  # noqa: E402

SCHEMA, LAKE = "bench_estate", "bench_estate_lake"
COLUMNS = {
    "id": "bigint", "customer_id": "bigint", "status": "string", "total": "decimal(12,2)", "placed_at": "timestamp",
}  # fmt: skip
KEYS = 1000
# What a model's tables say of its declaration, see `declaration_of`: a line of each model.
DECLARATIONS = """{% macro declarations() %}
{%- for node in reconcile.reconciled_nodes() if execute -%}
  {%- set declaration = reconcile.declaration_of(reconcile.form_of_node(node), reconcile.model_inputs(node)) -%}
  {%- do print(node.name ~ ' ' ~ tojson(declaration, sort_keys=true)) -%}
{%- endfor -%}
{% endmacro %}"""
# How the statements begin by which a model writes; a run itself begins with `create table if not exists`.
WRITES = ("create or replace", "create view", "insert", "merge", "alter", "cache")
ALL, ALONE, IDLE, NOTHING = "all, some with news", "those with news alone", "all, none with news", "doing nothing"
PAIRS = ((IDLE, NOTHING), (ALL, ALONE))
TARGET = 1.5  # of both pairs


class Run(NamedTuple):
    """What one run of dbt took."""

    seconds: float  # as dbt says
    listing: float  # of these, the list of relations
    beside: float
    python: float  # megabytes
    java: float


def table_of(number: int) -> str:
    """Return the name of a table at the source and of its model: all are equally long, and none is part of another."""
    return f"table_{number:05}"


def records(batch: int, numbers: Sequence[int], count: int) -> list[Staged]:
    """Return what comes in a batch: so many records of each table, of keys that repeat from batch to batch."""
    return [
        Staged(
            event(
                "postgresql",
                {
                    "id": (batch * count + n) * 7 % KEYS, "customer_id": n, "status": f"status {n % 7}",
                    "total": f"{n * 37 + batch}.25", "placed_at": "2026-01-01T00:00:00Z",
                },
                "INSERT" if batch == 1 else "UPDATE",
                metadata={"lsn": f"{batch:X}/{n:X}", "table": table_of(number)},
                object=f"shop_{table_of(number)}",
            ),
            f"shop_{table_of(number)}",
            batch,
        )
        for number in numbers
        for n in range(count)
    ]  # fmt: skip


def say_progress(what: str, wanted: int, steps: Iterable[int]) -> None:
    """Print from time to time how many models there are. A step is done when it yields the number."""
    began = time.monotonic()
    for done in steps:
        if done % 100 == 0 or done == wanted:
            print(f"{done:,} models, the last ones {what}: {time.monotonic() - began:.0f} s", flush=True)


class Estate:
    """Two projects of as many models, and the staging tables that both have as sources."""

    def __init__(self, spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
        self.spark, self.arguments = spark, arguments
        self.tables = [f"changes_{number}" for number in range(min(arguments.staging, arguments.models))]
        # The last models have news: those that were copied, if any were.
        self.news = range(arguments.models - arguments.news, arguments.models)
        self.project = Project(directory / "estate", SCHEMA, threads=arguments.threads)
        self.nothing = Project(directory / "nothing", SCHEMA, threads=arguments.threads)
        for project, name, macro in ((self.project, "declarations", DECLARATIONS), (self.nothing, "nothing", NO_OP)):
            project.source(LAKE, *self.tables)
            (project.root / "macros").mkdir()
            (project.root / "macros" / f"{name}.sql").write_text(macro)
        for number in range(arguments.models):
            self._write_models(number)
        self.staging = [Staging(spark, TableName((LAKE, table)), "datastream") for table in self.tables]
        self.batch = 0

    def _write_models(self, number: int) -> None:
        name, source = table_of(number), f"source('lake', '{self._staging_of(number)}')"
        tags = ["estate", "news"] if number in self.news else ["estate"]
        macro = f"reconcile.datastream_postgresql({source}, object='shop_{name}')"
        config = f"{{{{ config(materialized='current_state', unique_key='id', tags={tags}) }}}}"
        self.project.model(name, f"{config}\n{{{{ {macro} }}}}", COLUMNS)
        config = f"{{{{ config(materialized='nothing', tags={tags}) }}}}"
        self.nothing.model(name, f"{config}\nselect * from {{{{ {source} }}}}", COLUMNS)

    def _staging_of(self, number: int) -> str:
        return self.tables[number % len(self.tables)]

    def append(self, numbers: Sequence[int]) -> None:
        """Append a batch with records of these tables, as the append job does."""
        self.batch += 1
        for place, staging in enumerate(self.staging):
            of_table = [number for number in numbers if number % len(self.staging) == place]
            if of_table:
                frame = frame_of(self.spark, records(self.batch, of_table, self.arguments.records))
                rows = frame.select("record", "object", "origin").coalesce(1)
                staging.append(rows, "datastream", "a query", "a checkpoint", self.batch, [f"{self.batch}.jsonl"])

    # --- the tables of all models ---

    def build(self) -> None:
        """Append the first batch, and build all models."""
        began = time.monotonic()
        self.append(range(self.arguments.objects))
        print(f"{self.arguments.objects:,} objects staged: {time.monotonic() - began:.0f} s", flush=True)
        models = self.arguments.models
        built = len(self.tables) if self.arguments.copies else models
        say_progress("built by dbt", built, map(self._build, range(0, built, 100)))
        if built < models:
            copies = Copies(self.spark, self.project, self.tables)
            with ThreadPoolExecutor(self.arguments.threads) as pool:
                say_progress("copied", models, pool.map(copies.copy, range(built, models)))
            copies.note(range(built, models))

    def _build(self, first: int) -> int:
        """Build the next hundred models, and return how many there are now."""
        end = min(first + 100, len(self.tables) if self.arguments.copies else self.arguments.models)
        self.project.dbt("run", "--select", *map(table_of, range(first, end)))
        return end

    # --- the runs ---

    def run(self, side: str, says_statements: bool) -> Run:
        """Run the models of a side, once."""
        project = self.nothing if side == NOTHING else self.project
        log = project.root / "logs" / "dbt.log"
        log.unlink(missing_ok=True)
        set_peaks_back()
        words = ["--select", "tag:news" if side == ALONE else "tag:estate", "--log-level-file", "debug"]
        if self.arguments.only_new_records and project is self.project:
            words += ["--vars", "{only_new_records: true}"]
        began = time.monotonic()
        seconds = float(project.dbt("run", *words).result.elapsed_time)
        taken = time.monotonic() - began
        python, java = peaks()
        statements = seconds_of_statements(log.read_text())
        listing = sum(sum(each) for words, each in statements.items() if words.startswith("show table extended"))
        written = [words for words in statements if words.lower().startswith(WRITES)]
        if side == IDLE and written:
            raise SystemExit(f"A run without news has written:\n{chr(10).join(written)}")
        if says_statements:
            print(f"\n{side}")
            print_statements(log.read_text(), self.arguments.models)
        return Run(seconds, listing, taken - seconds, python, java)

    def parse(self, project: Project, *words: str) -> float:
        """Return the seconds that dbt says of the parsing of a project's files."""
        project.dbt("parse", *words)
        said = json.loads((project.root / "target" / "perf_info.json").read_text())
        return float(said["load_all_elapsed"])

    def check(self, runs: int) -> None:
        """Show that models with news have all batches, and that others were left alone. `runs`: of those with news."""
        ledger = self.spark.sql(f"select relation, count(*), max(last_batch) from {SCHEMA}.reconcile_ledger group by 1")
        found = {relation: (rows, last) for relation, rows, last in ledger.collect()}
        wanted = {
            f"{SCHEMA}.{table_of(number)}": (1 + runs, 1 + runs) if number in self.news else (1, 1)
            for number in range(self.arguments.models)
        }
        wrong = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
        for number in self.news:
            base = f"{SCHEMA}.{table_of(number)}__base"
            if self.spark.sql(f"select max(_change_batch) from {base}").collect()[0][0] != 1 + runs:
                wrong.append(base)
        print(f"models whose ledger or base table is not as it must be   {len(wrong)}")
        if wrong:
            raise SystemExit(f"for example {wrong[0]}: {found.get(wrong[0])} and not {wanted.get(wrong[0])}")


class Copies:
    """Makes the tables and views of models from those of the models that dbt has built, one of each staging table.

    Model and table have names of one length, so that a name is replaced in a file of Delta's log as it stands there.
    """

    def __init__(self, spark: SparkSession, project: Project, tables: Sequence[str]) -> None:
        self.spark, self.project, self.tables = spark, project, tables
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            project.dbt("run-operation", "declarations")
        lines = [line.split(" ", 1) for line in said.getvalue().splitlines() if line.startswith("table_")]
        self.declarations = {name: declaration for name, declaration in lines}
        built = [table_of(number) for number in range(len(tables))]
        self.details = {
            table: spark.sql(f"describe detail {SCHEMA}.{table}").collect()[0]
            for model in built
            for table in (f"{model}__base", f"{model}__quarantine")
        }
        self.queries = {view: self._query(view, model) for model in built for view in (model, f"{model}__changes")}

    def _query(self, view: str, model: str) -> str:
        described = self.spark.sql(f"describe extended {SCHEMA}.{view}").where("col_name = 'View Text'").collect()
        properties = self.spark.sql(f"show tblproperties {SCHEMA}.{view}").where("key = 'reconcile.definition'")
        definition = properties.collect()[0]["value"]
        # Spark keeps a query without the empty lines around it; the digest is of a model's SELECT as dbt compiled it.
        compiled = self.project.root / "target" / "compiled" / "shop" / "models" / f"{model}.sql"
        for query in (str(described[0]["data_type"]), compiled.read_text()):
            if self._definition(query, model) == definition:
                return query
        raise SystemExit(f"{view} has another digest than `get_view_statement` gave when this was written")

    def _definition(self, query: str, model: str) -> str:
        return hashlib.md5((self.declarations[model] + query).encode()).hexdigest()

    def copy(self, number: int) -> int:
        """Make the tables and views of a model, and return how many models there are then."""
        built, name = table_of(number % len(self.tables)), table_of(number)
        replaced = dict(self._replaced(built, name))
        for kind in ("__base", "__quarantine"):
            self._copy_table(f"{built}{kind}", f"{name}{kind}", replaced)
        for kind in ("__changes", ""):
            query = self.queries[f"{built}{kind}"].replace(built, name)
            properties = f"'reconcile.definition' = '{self._definition(query, name)}'"
            self.spark.sql(f"create view {SCHEMA}.{name}{kind} tblproperties ({properties}) as\n{query}")
        return number + 1

    def _replaced(self, built: str, name: str) -> Iterator[tuple[str, str]]:
        """Yield what a table's log says otherwise of another model: its name, also in hex, and its declaration."""
        yield built, name
        yield built.encode().hex().upper(), name.encode().hex().upper()
        of_other = json.loads(self.declarations[name])
        for aspect, digest in json.loads(self.declarations[built]).items():
            yield digest, of_other[aspect]

    def _copy_table(self, built: str, name: str, replaced: dict[str, str]) -> None:
        detail = self.details[built]
        # Without Hadoop's own checksums, which are hidden files: those of changed files would be wrong.
        files = Path(unquote(urlparse(detail["location"]).path))
        copied = Path(shutil.copytree(files, Path.cwd() / "copies" / name, ignore=shutil.ignore_patterns(".*.crc")))
        # One id for all files of the log: Delta refuses a table whose commit and checksum have different ones.
        replaced = {**replaced, detail["id"]: str(uuid.uuid4())}
        # Directories for commits that a catalog coordinates are empty.
        for file in filter(Path.is_file, (copied / "_delta_log").rglob("*")):
            if file.suffix not in (".json", ".crc"):
                raise SystemExit(f"The log of {built} is longer than that of a table that was just made: {file.name}")
            text = file.read_text(encoding="utf-8")
            for found, other in replaced.items():
                text = text.replace(found, other)
            file.write_text(text, encoding="utf-8")
        self.spark.sql(f"create table {SCHEMA}.{name} using delta location '{copied}'")

    def note(self, numbers: Sequence[int]) -> None:
        """Write what the package's own tables have of copied models."""
        names = [(table_of(number % len(self.tables)), table_of(number)) for number in numbers]
        copies = pa.Table.from_pylist([dict(zip(("built", "name"), pair, strict=True)) for pair in names])
        self.spark.createDataFrame(copies).createOrReplaceTempView("copies")
        for table in ("reconcile_ledger", "reconcile_columns_seen"):
            columns = {column: f"known.{column}" for column in self.spark.table(f"{SCHEMA}.{table}").columns}
            for column in ("relation", "object"):
                if column in columns:
                    columns[column] = f"replace(known.{column}, copies.built, copies.name)"
            values = ", ".join(f"{value} as {column}" for column, value in columns.items())
            known = f"{SCHEMA}.{table} as known join copies on known.relation = concat('{SCHEMA}.', copies.built)"
            self.spark.sql(f"insert into {SCHEMA}.{table} by name select {values} from {known}")


# --- memory ----------------------------------------------------------------------------------------------------------


def processes() -> Iterator[Path]:
    """Yield the directories in /proc of this process and of those that it has started."""
    left = [str(os.getpid())]
    while left:
        directory = Path("/proc", left.pop())
        with contextlib.suppress(OSError):  # it has ended
            for task in (directory / "task").iterdir():
                left.extend((task / "children").read_text().split())
            yield directory


def set_peaks_back() -> None:
    """Let VmHWM begin anew."""
    for directory in processes():
        with contextlib.suppress(OSError):
            (directory / "clear_refs").write_text("5")


def peaks() -> tuple[float, float]:
    """Return the most megabytes that Python's processes have been resident with since, and Java's."""
    megabytes: dict[bool, float] = collections.defaultdict(float)
    for directory in processes():
        with contextlib.suppress(OSError):
            is_java = (directory / "comm").read_text().strip() == "java"
            kibibytes = (directory / "status").read_text().partition("VmHWM:")[2].split()[0]
            megabytes[is_java] += int(kibibytes) * 1024 / 1e6
    return megabytes[False], megabytes[True]


def megabytes_in_use(spark: SparkSession) -> float:
    """Return what Java's objects take once those that nobody uses are collected."""
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


# ---------------------------------------------------------------------------------------------------------------------


def measure(estate: Estate) -> dict[str, list[Run]]:
    """Let all sides take turns, and return what was counted."""
    asked = estate.arguments
    taken: dict[str, list[Run]] = {side: [] for pair in PAIRS for side in pair}
    for number in range(asked.warm_up + asked.repeats):
        is_last = number + 1 == asked.warm_up + asked.repeats
        for pair in PAIRS:
            # Who comes first is the first to read what was written before.
            for side in pair if number % 2 else reversed(pair):
                if side in (ALL, ALONE):
                    estate.append(estate.news)
                taken[side].append(estate.run(side, asked.statements and is_last))
        seconds = ", ".join(f"{side} {runs[-1].seconds:.1f}" for side, runs in taken.items())
        print(f"round {number + 1}: {seconds}", flush=True)
    return {side: runs[asked.warm_up :] for side, runs in taken.items()}


def report(estate: Estate, taken: dict[str, list[Run]]) -> None:
    """Print medians and ratios."""
    asked = estate.arguments
    print(
        f"\n{asked.models:,} models of {asked.objects:,} objects in {len(estate.tables)} staging tables, "
        f"{asked.news} with news, {asked.records} records each, "
        f"{'only_new_records' if asked.only_new_records else 'without variables'}; "
        f"{file_formats.file_format()}, {asked.threads} threads; "
        f"medians of {asked.repeats}"
    )
    print("| models | seconds of the run | of these, the list of relations | beside the run | MB Python | MB Java |")
    print("| --- | --- | --- | --- | --- | --- |")
    for side, runs in taken.items():
        of_run = [statistics.median(values) for values in zip(*runs, strict=True)]
        shown = [f"{seconds:,.1f}" for seconds in of_run[:3]] + [f"{megabytes:,.0f}" for megabytes in of_run[3:]]
        print(f"| {side} | {' | '.join(shown)} |")
    print()
    for one, other in PAIRS:
        times = ratio(*([run.seconds for run in taken[side]] for side in (one, other)))
        print(f"{one}, to {other}   {times:.2f}   (target {TARGET})")
    beyond = [a.seconds - b.seconds for a, b in zip(taken[IDLE], taken[NOTHING], strict=True)]
    print(f"a model without news beyond one that does nothing   {statistics.median(beyond) / asked.models:.4f} s")


def print_parsing(estate: Estate) -> None:
    """Print what dbt takes to parse the files of both projects: all of them, and none, as nothing has changed."""
    print("\n| dbt's parsing | all files | nothing has changed |\n| --- | --- | --- |")
    for name, project in (("the estate", estate.project), ("models that do nothing", estate.nothing)):
        parsed = [
            [estate.parse(project, *words) for _ in range(estate.arguments.repeats)]
            for words in (["--no-partial-parse"], [])
        ]
        print(f"| {name} | {' | '.join(f'{statistics.median(seconds):.1f} s' for seconds in parsed)} |", flush=True)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--news", type=int, default=50, help="models that have news")
    parser.add_argument("--objects", type=int, help="objects in staging; a model reads one (default: as many)")
    parser.add_argument("--staging", type=int, default=10, help="staging tables")
    parser.add_argument("--records", type=int, default=20, help="of each object, in each batch")
    parser.add_argument("--threads", type=int, default=4, help="of dbt")
    parser.add_argument("--warm-up", type=int, default=1, help="rounds that are not counted")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--copies", action=argparse.BooleanOptionalAction, help="of tables that dbt has built")
    parser.add_argument("--only-new-records", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--statements", action="store_true", help="print what the last round issued")
    parser.add_argument("--file-format", choices=list(file_formats.CONFIGURATIONS), help="instead of SPARK_CONF_DIR")
    parser.add_argument("--directory", help="where tables and projects are written (default: a temporary one)")
    arguments = parser.parse_args()
    if arguments.file_format:
        file_formats.choose(arguments.file_format)
    arguments.objects = arguments.objects or arguments.models
    is_delta = file_formats.file_format() == "delta"
    if arguments.copies is None:
        arguments.copies = is_delta
    if arguments.copies and not is_delta:
        parser.error("--copies: Iceberg's files name their place; leave it out")
    if not 0 < arguments.news <= arguments.models <= arguments.objects:
        parser.error("--news is at most --models, and --models at most --objects")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name, contextlib.chdir(name):
        spark = SparkSession.builder.getOrCreate()
        estate = Estate(spark, Path(name), arguments)
        estate.build()
        taken = measure(estate)
        report(estate, taken)
        print_parsing(estate)
        print(f"\nJava's objects in use after a collection   {megabytes_in_use(spark):,.0f} MB")
        estate.check(2 * (arguments.warm_up + arguments.repeats))
        spark.stop()


if __name__ == "__main__":
    main()
