"""Seconds of a run of many small models: current_state, and dbt-spark's incremental merge; and of one with nothing new.

All read one staging table of Oracle's records by Datastream, JSON of ten columns, and take turns on the same batches,
in one Spark session under the settings of conf/: ratios are medians of pairs. A side's seconds are those that dbt says
of its run, parsing left out. `no-op` is a materialization that does nothing: what dbt itself takes for as many models.

    python benchmarks/small_models.py [--models 20] [--records 200] [--repeats 5] [--threads 4] [--statements]
    python benchmarks/small_models.py --materialized history --statements

--statements: what the last round of each side issued, each kind of statement with its number and milliseconds.
--materialized: what our models are; only a current_state has the rows of the other side.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from datastream import Staged, event, stage  # noqa: E402
from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

COLUMNS = {
    "ID": "bigint", "CUSTOMER_ID": "bigint", "STATUS": "string", "TOTAL": "decimal(38,10)", "PLACED_AT": "timestamp",
    "DUE_ON": "date", "NOTE": "string", "QUANTITY": "int", "RATIO": "double", "VIP": "boolean",
}  # fmt: skip
KEYS = 1000
SCHEMA, LAKE = "bench_small", "bench_small_lake"
# What a project without the package writes: the newest record of each key, by its SCN, typed by from_json.
THEIRS = """{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='ID', tags=['theirs']) }}}}
select {columns}
from (
    select payload.*, row_number() over (partition by payload.ID order by source_metadata.scn desc) as place
    from (
        select inline(array(from_json(record, 'source_metadata struct<scn: bigint>, payload struct<{types}>')))
        from {{{{ source('lake', 'changes') }}}}
        where object = '{object}' and batch = (select max(batch) from {{{{ source('lake', 'changes') }}}})
    )
)
where place = 1"""
NO_OP = """{% materialization nothing, adapter='spark' %}
{%- call noop_statement('main', 'nothing') -%}{%- endcall -%}
{{ return({'relations': []}) }}
{% endmaterialization %}"""


def prepare(project: Project, models: int, materialized: str) -> None:
    """Write the models of all sides."""
    project.source(LAKE, "changes")
    (project.root / "macros").mkdir()
    (project.root / "macros" / "nothing.sql").write_text(NO_OP)
    types = ", ".join(f"{name}: {type_}" for name, type_ in COLUMNS.items())
    for number in range(models):
        our_model(project, number, materialized)
        theirs = THEIRS.format(columns=", ".join(COLUMNS), types=types, object=f"SHOP_T{number}")
        project.model(f"theirs_{number}", theirs, COLUMNS)
        project.model(f"noop_{number}", "{{ config(materialized='nothing', tags=['noop']) }}\nselect 1 as ID", {})


def our_model(project: Project, number: int, materialized: str = "current_state") -> None:
    """Write the model of a table, as a project with the package has it."""
    project.model(
        f"ours_{number}",
        f"{{{{ config(materialized='{materialized}', unique_key='ID', tags=['ours']) }}}}\n"
        f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='SHOP_T{number}') }}}}",
        COLUMNS,
    )


def records(batch: int, models: int, count: int) -> list[Staged]:
    """Return what comes in a batch: so many updates of each table, of keys that repeat from batch to batch."""
    return [
        Staged(
            event(
                "oracle",
                {
                    "ID": (batch * count + n) * 7 % KEYS, "CUSTOMER_ID": n, "STATUS": f"status {n % 7}",
                    "TOTAL": f"{n * 37 + batch}.25", "PLACED_AT": "2026-01-01T00:00:00Z", "DUE_ON": "2026-02-01",
                    "NOTE": "n" * (n % 40), "QUANTITY": n % 100, "RATIO": n / 8, "VIP": n % 2 == 0,
                },
                "UPDATE",
                metadata={"scn": batch * 1_000_000 + n, "ssn": n},
                object=f"SHOP_T{number}",
            ),
            f"SHOP_T{number}",
            batch,
        )
        for number in range(models)
        for n in range(count)
    ]  # fmt: skip


class Race:
    """The project, and the seconds of its sides."""

    def __init__(self, spark: SparkSession, project: Project, arguments: argparse.Namespace) -> None:
        self.spark, self.project, self.arguments = spark, project, arguments
        self.batch, self.is_last = 0, False
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    def round(self, number: int) -> None:
        """Let each side have its turn."""
        self.is_last = number + 1 == self.arguments.warm_up + self.arguments.repeats
        self.stage()
        # Who comes first is the first to read what was staged.
        sides = [("one thread", "ours"), ("dbt-spark", "theirs")]
        for side, tag in sides if number % 2 else reversed(sides):
            self.run(side, tag)
        self.run("nothing new", "ours")
        self.run("no-op", "noop")
        self.stage()
        self.run("more threads", "ours", self.arguments.threads)
        self.project.dbt("run", "--select", "tag:theirs")  # its models read the last batch alone
        taken = ", ".join(f"{side} {seconds[-1]:.2f}" for side, seconds in self.seconds.items())
        print(f"round {number + 1}: {taken}", flush=True)
        if number + 1 == self.arguments.warm_up:
            self.seconds.clear()

    def stage(self) -> None:
        """Append a batch."""
        self.batch += 1
        stage(self.spark, f"{LAKE}.changes", records(self.batch, self.arguments.models, self.arguments.records))

    def run(self, side: str, tag: str, threads: int = 1) -> None:
        """Run the models of a tag, once."""
        log = self.project.root / "logs" / "dbt.log"
        log.unlink(missing_ok=True)
        words = ["--select", f"tag:{tag}", "--threads", str(threads), "--log-level-file", "debug"]
        self.seconds[side].append(float(self.project.dbt("run", *words).result.elapsed_time))
        if self.arguments.statements and self.is_last:
            print(f"\n{side}")
            print_statements(log.read_text(), self.arguments.models)

    def ratio(self, one: str, other: str) -> float:
        """Return how many times the seconds of the other the one took: the median of pairs."""
        return statistics.median(a / b for a, b in zip(self.seconds[one], self.seconds[other], strict=True))

    def report(self) -> None:
        """Print medians and ratios, and how many rows differ between both sides."""
        models, repeats = self.arguments.models, self.arguments.repeats
        medians = {side: statistics.median(seconds) for side, seconds in self.seconds.items()}
        print(f"\n{models} models, {self.arguments.records} records each; seconds of a run, medians of {repeats}")
        for side, median in medians.items():
            print(f"  {side:<12}{median:8.2f}")
        print(f"one thread to dbt-spark's merge   {self.ratio('one thread', 'dbt-spark'):.2f}   (target 1.2)")
        print(
            f"{self.arguments.threads} threads to one   {self.ratio('more threads', 'one thread'):.2f}   (target 0.6)"
        )
        beyond = (medians["nothing new"] - medians["no-op"]) / models
        print(f"a model without news beyond one that does nothing   {beyond:.3f} s   (target 0.03)")
        if self.arguments.materialized != "current_state":
            return
        names = ", ".join(COLUMNS)
        differ = sum(
            self.spark.sql(
                f"(select {names} from {SCHEMA}.{one}_{n} except select {names} from {SCHEMA}.{other}_{n})"
            ).count()
            for n in range(models)
            for one, other in (("ours", "theirs"), ("theirs", "ours"))
        )
        print(f"rows that differ   {differ}")


_LINE = re.compile(r"^(?:\x1b\[0m)?(?P<time>\d\d:\d\d:\d\d\.\d{6}) \[\w+ *\] \[(?P<thread>.*?) *\]: (?P<said>.*)")


def print_statements(log: str, models: int) -> None:
    """Print the statements of a dbt log by their kinds: how many, and their milliseconds for each model."""
    for words, seconds in sorted(seconds_of_statements(log).items(), key=lambda of: -sum(of[1])):
        print(f"{len(seconds):>6} {1000 * sum(seconds) / models:>9.0f} ms a model   {words}")


def seconds_of_statements(log: str) -> dict[str, list[float]]:
    """Return the seconds of each statement of a dbt log, by their kinds.

    A statement lasts until the same thread logs the next one or the end of its node: dbt logs its status before it
    fetches rows, and Spark reads only then.
    """
    current: dict[str, tuple[datetime.datetime, list[str]]] = {}  # by thread: when its statement began, and its lines
    taken: dict[str, list[float]] = collections.defaultdict(list)
    thread = ""
    for line in log.splitlines():
        logged = _LINE.match(line)
        if not logged:  # a statement goes on
            if thread in current:
                current[thread][1].append(line)
            continue
        thread, said = logged["thread"], logged["said"]
        time = datetime.datetime.strptime(logged["time"], "%H:%M:%S.%f")
        starts = re.match(r"On \S+: (/\*.*)", said)
        if thread in current and (starts or said.startswith(("Timing info", "Finished running", "On "))):
            began, lines = current.pop(thread)
            taken[_kind_of_statement("\n".join(lines))].append((time - began).total_seconds())
        if starts:
            current[thread] = time, [starts[1]]
    return taken


def _kind_of_statement(sql: str) -> str:
    """Return the beginning of a statement, with neither names nor numbers."""
    words = " ".join(re.sub(r"/\*.*?\*/", "", sql, flags=re.S).split())
    return re.sub(r"\w*\d+\w*|`[^`]*`(\.`[^`]*`)*", "#", words)[:90]


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--records", type=int, default=200, help="of each model, in each batch")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--threads", type=int, default=4, help="of the side that runs models at once")
    parser.add_argument("--statements", action="store_true", help="print what the last round issued")
    materializations = ["current_state", "history", "current_view"]
    parser.add_argument("--materialized", choices=materializations, default=materializations[0])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        spark = SparkSession.builder.getOrCreate()
        spark.sql(f"create schema {LAKE}")
        project = Project(Path(directory) / "project", SCHEMA)
        prepare(project, arguments.models, arguments.materialized)
        race = Race(spark, project, arguments)
        for number in range(arguments.warm_up + arguments.repeats):
            race.round(number)
        race.report()


if __name__ == "__main__":
    main()
