"""Seconds from a file that lands to its rows in the base tables, of one warm process that appends and merges.

The process is `append.py datastream --every 1s --dbt 'run ...'` by spark-submit, as docs/operations/scheduling.md says,
in a session of its own under the settings of conf/. Each round moves one file into the landing area, with records of
the table of every model, at any moment between two passes. It ends when dbt has said of the last model that it is done:
its MERGE is committed before. So nothing reads while it is measured: what dbt says, as JSON on the standard error of
the process, is all that is looked at. When the process has ended, every base table is compared with a fold of all files
in plain Python.

    python benchmarks/landing.py [--models 20] [--records 200] [--threads 4] [--every 1s] [--warm-up 3] [--repeats 5]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "ingestion")]
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))

from projects import Project  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from reconcile_jobs.process.command_line import seconds_of  # noqa: E402
from small_models import LAKE, SCHEMA, our_model, records  # noqa: E402


class Done(NamedTuple):
    """When dbt began, and when the first and the last model were done, on the clock of time.monotonic."""

    began: float
    first: float
    last: float


class Process:
    """append.py with dbt, in a process of its own."""

    def __init__(self, project: Project, threads: int, every: str) -> None:
        dbt = f"run --select tag:ours --threads {threads} --profiles-dir . --log-format json"
        words = ["spark-submit", str(ROOT / "ingestion" / "append.py"), "datastream", "--path", "landing"]
        words += ["--staging", f"{LAKE}.changes", "--every", every, "--dbt", dbt]
        print(shlex.join(["spark-submit", "append.py", *words[2:]]), flush=True)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        self.popen = subprocess.Popen(
            words, cwd=project.root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self.said: collections.deque[str] = collections.deque(maxlen=30)

    def wait(self, models: int) -> Done:
        """Wait until dbt has said of so many models that they are done."""
        began, done = 0.0, dict[str, float]()
        assert self.popen.stderr
        for line in self.popen.stderr:
            self.said.append(line)
            event = _event(line)
            if event["info"].get("level") == "error":
                raise SystemExit(f"dbt has failed:\n{event['info'].get('msg')}")
            if event["info"].get("name") == "MainReportVersion":
                began = time.monotonic()
            elif event["info"].get("name") == "LogModelResult":
                done[event["data"]["node_info"]["node_name"]] = time.monotonic()
                if len(done) == models:
                    return Done(began, min(done.values()), max(done.values()))
        raise SystemExit(f"append.py has ended, with exit code {self.popen.wait()}:\n{''.join(self.said)}")

    def end(self) -> dict[str, Any]:
        """Ask the process to end, and return its line of JSON."""
        self.popen.terminate()
        out, err = self.popen.communicate(timeout=120)
        if self.popen.returncode:
            raise SystemExit(f"append.py has ended with exit code {self.popen.returncode}:\n{''.join(self.said)}{err}")
        return dict(json.loads(out))


def _event(line: str) -> dict[str, Any]:
    """Return what dbt says in a line; of a line that dbt has not written, an event of no name."""
    with contextlib.suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict) and "info" in said:
            return said
    return {"info": {}}


@contextlib.contextmanager
def running(process: Process) -> Iterator[Process]:
    """End the process and what it has started, if it did not end."""
    try:
        yield process
    finally:
        if process.popen.poll() is None:
            os.killpg(process.popen.pid, signal.SIGKILL)
            process.popen.wait()


class Landing:
    """The landing area, and what the tables are to hold."""

    def __init__(self, project: Project, models: int, count: int) -> None:
        self.project, self.models, self.count = project, models, count
        self.batch = 0
        self.totals: dict[int, Decimal] = {}  # by key; all tables have the same rows
        (project.root / "landing").mkdir()

    def put(self) -> float:
        """Move one more file there, and return when."""
        self.batch += 1
        staged = records(self.batch, self.models, self.count)
        for record in staged[: self.count]:
            row = json.loads(record.record)["payload"]
            self.totals[row["ID"]] = Decimal(row["TOTAL"])
        name = f"{self.batch}.jsonl"
        written = self.project.root / name
        written.write_text("".join(f"{record.record}\n" for record in staged), encoding="utf-8")
        began = time.monotonic()
        written.rename(self.project.root / "landing" / name)
        return began

    def tables_that_differ(self) -> int:
        """Return how many base tables do not hold what was delivered."""
        with contextlib.chdir(self.project.root):
            spark = SparkSession.builder.getOrCreate()
            found = [
                {row.ID: row.TOTAL for row in spark.table(f"{SCHEMA}.ours_{n}__base").select("ID", "TOTAL").collect()}
                for n in range(self.models)
            ]
            spark.stop()
        return sum(rows != self.totals for rows in found)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--records", type=int, default=200, help="of each model, in each file")
    parser.add_argument("--threads", type=int, default=4, help="of dbt")
    parser.add_argument("--every", default="1s", help="how often the process looks for files")
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as directory:
        project = Project(Path(directory) / "project", SCHEMA)
        project.source(LAKE, "changes")
        for number in range(arguments.models):
            our_model(project, number)
        landing = Landing(project, arguments.models, arguments.records)
        landing.put()
        taken = []
        with running(Process(project, arguments.threads, arguments.every)) as process:
            process.wait(arguments.models)
            print(f"{'':9}{'dbt begins':>12}{'first model':>13}{'last model':>12}   seconds after the file has landed")
            for number in range(arguments.warm_up + arguments.repeats):
                # The run of the round before ends, and passes without news begin.
                time.sleep(3 + moments.uniform(0, seconds_of(arguments.every)))
                landed = landing.put()
                done = process.wait(arguments.models)
                taken.append(done.last - landed)
                seconds = [moment - landed for moment in done]
                what = f"round {number + 1}" if number >= arguments.warm_up else "warms up"
                print(f"{what:9}{seconds[0]:12.2f}{seconds[1]:13.2f}{seconds[2]:12.2f}", flush=True)
            result = process.end()
        median = statistics.median(taken[arguments.warm_up :])
        print(
            f"\n{arguments.models} models, {arguments.records} records each, {arguments.threads} threads; "
            f"median of {arguments.repeats}"
        )
        print(f"  from a file landing to the last rows readable   {median:.2f} s   (target 12)")
        print(f"  runs of dbt {result['dbt']['runs']}, files {result['files']}, batches up to {result['last_batch']}")
        print(f"  tables that differ from what was delivered   {landing.tables_that_differ()}")


if __name__ == "__main__":
    main()
