"""kill -9 of the append and of dbt, again and again, each followed by the same command: nothing is lost or doubled.

A round is a command that is killed, and the same command once more, which finishes. `test_dying_appends.py` has the
rounds in the tests' own process, at every place where something is written.
"""

from __future__ import annotations

import collections
import contextlib
import csv
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from file_formats import failpoints_of_an_append, file_format, table_at
from process.killed_dbt import PLACES
from projects import PACKAGE, Project
from pyspark.sql import SparkSession
from tables import stored

COUNTS = ["applied", "superseded", "duplicate", "quarantined", "pending"]
SECONDS = 1800
# How many rounds of each command a part of the matrix has.
ROUNDS = 16
# RECONCILE_KILLS_SEED repeats the moments of a run that printed its seed. They are moments of the processor's time,
# which depend little on what else the machine does.
SEED = "RECONCILE_KILLS_SEED"
# What a part's model is; its second one has the versions of each row.
MATERIALIZED = {"first": "current_state", "second": "history"}


def processor_seconds(session: int) -> float:
    """Return how long the processes of a session have run on a processor, of all their threads."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            said = process.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, said[11:15])) if int(said[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


class Shop:
    """A project of its own in its own directory, whose landing area fills delivery by delivery."""

    def __init__(self, root: Path, deliveries: int, materialized: str = "current_state") -> None:
        self.root, self.landing = root, root / "landing"
        self.landing.mkdir()
        self.project = Project(root / "project", "shop")
        self.project.source("lake", "changes")
        self.project.model(
            "table1",
            f"{{{{ config(materialized='{materialized}', unique_key='COL1') }}}}\n"
            "{{ reconcile.datastream_oracle(source('lake', 'changes'), object='USER1.TABLE1') }}",
            {"COL1": "string", "COL2": "string"},
        )
        files = sorted((PACKAGE / "tests" / "data" / "table1").glob("**/*.jsonl.gz"))
        lines = [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
        bad = json.loads(lines[0])
        bad["source_metadata"]["scn"] = None
        # Each delivery has one record that nothing orders, so that each merge has something to quarantine.
        self.waiting = [[*lines[k::deliveries], json.dumps(bad | {"uuid": f"bad {k}"})] for k in range(deliveries)]
        self.delivered: list[str] = []
        self.is_history = materialized == "history"
        self.spent = 0.0  # by the last command, in seconds of a processor

    def deliver(self) -> None:
        """The next delivery appears, whole."""
        records = self.waiting.pop(0)
        file = self.landing / f"{len(self.delivered)}.jsonl.gz"
        file.with_name("_coming").write_bytes(gzip.compress("\n".join([*records, ""]).encode()))
        file.with_name("_coming").rename(file)
        self.delivered += records

    def append(self, failpoint: str | None = None, after: float | None = None) -> bool:
        """Run the job; return whether it was killed, at the failpoint or after so many seconds of a processor."""
        job = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "datastream"]
        job += ["--path", str(self.landing), "--staging", "lake.changes"]
        return self._run(job, {"RECONCILE_FAILPOINT": failpoint} if failpoint else {}, after)

    def merge(self, place: str | None = None, after: float | None = None) -> bool:
        """Run dbt; return whether it was killed, at the place or after so many seconds of a processor."""
        killed = [str(Path(__file__).with_name("killed_dbt.py")), place] if place else ["-m", "dbt.cli.main"]
        run = [sys.executable, *killed, "--quiet", "run", "--profiles-dir", "."]
        return self._run(run, {}, after)

    def _run(self, command: list[str], more: dict[str, str], after: float | None) -> bool:
        environment = os.environ | more
        environment.pop("PYSPARK_GATEWAY_PORT", None)
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        with (self.project.root / "said.txt").open("w+") as said:
            started = subprocess.Popen(
                command,
                cwd=self.project.root,
                env=environment,
                start_new_session=True,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            began = time.monotonic()
            while started.poll() is None:
                time.sleep(0.05)
                self.spent = max(processor_seconds(started.pid), 0.1)
                if after and self.spent >= after:
                    break
                assert time.monotonic() - began < SECONDS, f"{command} did not end in {SECONDS} seconds"
            # What the killed process started dies with it; a lock that it held would last otherwise.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            said.seek(0)
            output = said.read()
        meant_to_die = bool(after or more or "killed_dbt" in " ".join(command))
        killed = started.returncode == -signal.SIGKILL
        assert killed if meant_to_die and not after else started.returncode == 0 or (killed and after), output
        return killed

    def written(self, schema: str) -> int:
        """Return how often the tables of a schema were written, as their logs on disk have it."""
        logs = {"delta": "*/_delta_log/*.json", "iceberg": "*/metadata/*.metadata.json"}[file_format()]
        newest: dict[Path, int] = {}
        for file in (self.project.root / "lakehouse" / "warehouse" / f"{schema}.db").glob(logs):
            number = int(re.match("[0-9]*", file.name)[0] or 0) + 1  # type: ignore[index]
            newest[file.parent] = max(newest.get(file.parent, 0), number)
        return sum(newest.values())

    def assert_nothing_is_lost_or_doubled(self, spark: SparkSession) -> None:
        """Compare staging, base table, quarantine and ledger with what was delivered; read where they lie."""
        warehouse = self.project.root / "lakehouse" / "warehouse"

        def table(name: str) -> str:
            return table_at(spark, warehouse / name)

        staged = [row.record for row in spark.sql(f"select record from {table('lake.db/changes')}").collect()]
        assert collections.Counter(staged) == collections.Counter(self.delivered)
        batches = [r.batch for r in spark.sql(f"select distinct batch from {table('lake.db/changes')}").collect()]
        assert sorted(batches) == list(range(1, len(batches) + 1))
        base = stored(spark, table("shop.db/table1__base"))
        now = "valid_to is null and _change_type <> 'delete'" if self.is_history else "not _deleted"
        rows = base.where(now).select("COL1", "COL2").collect()
        with (PACKAGE / "seeds" / "demo" / "table1_oracle_export.csv").open(newline="") as export:
            truth = sorted((row["COL1"], row["COL2"]) for row in csv.DictReader(export))
        assert sorted((row.COL1, row.COL2) for row in rows) == truth
        bad = spark.sql(f"select _change_id from {table('shop.db/table1__quarantine')}").collect()
        assert sorted(row[0] for row in bad) == sorted(f"bad {k}" for k in range(len(bad)))
        assert len(bad) == sum('"bad ' in record for record in self.delivered)
        ledger = spark.sql(f"select * from {table('shop.db/reconcile_ledger')} order by recorded_at").collect()
        covered = 0
        for row in ledger:
            assert row.delivered == sum(row[count] for count in COUNTS)
            assert row.delivered == sum(
                r["count"]
                for r in spark.sql(
                    f"select count(*) as count from {table('lake.db/changes')} "
                    f"where batch between {row.first_batch} and {row.last_batch}"
                ).collect()
            )
            assert row.first_batch <= covered + 1
            covered = max(covered, row.last_batch)
        assert covered == len(batches)


class Rounds:
    """Rounds of one command at random moments, and what was written until each: its account is kept under target/."""

    def __init__(self, shop: Shop, command: str, guess: float, chance: random.Random, account: Path) -> None:
        self.shop, self.command, self.seconds, self.chance, self.account = shop, command, guess, chance, account
        self.run = shop.append if command == "append" else shop.merge
        self.schema = "lake" if command == "append" else "shop"
        self.kills = 0

    def round(self) -> None:
        """Kill the command at a moment of the time that it last took, and run it again; count it if it was killed."""
        fraction, seconds = self.chance.random(), self.seconds
        before = self.shop.written(self.schema)
        killed = self.run(after=1 + fraction * (seconds - 1))
        done = self.shop.written(self.schema) - before
        if not killed:
            self.seconds = self.shop.spent
        assert not self.run()
        if killed and done == 0:
            self.seconds = self.shop.spent
        self.kills += killed
        rest = self.shop.written(self.schema) - before - done
        line = f"{self.command} {'killed' if killed else 'was done'} at {fraction:.3f} of {seconds:.1f} s"
        with self.account.open("a") as file:
            file.write(f"{line}; commits before: {done}, after: {rest}\n")


@pytest.mark.matrix
@pytest.mark.parametrize("part", MATERIALIZED)
def test_kills_at_random_moments_lose_and_double_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, part: str
) -> None:
    seed = int(os.environ.get(SEED) or random.randrange(10**6))
    print(f"{SEED}={seed}")
    account = PACKAGE / "target" / f"kills-{file_format()}-{part}.txt"
    account.parent.mkdir(exist_ok=True)
    account.write_text(f"{SEED}={seed}\n")
    shop, chance = Shop(tmp_path, 3 * ROUNDS, MATERIALIZED[part]), random.Random(seed)
    # The first of each, which make the tables, are rounds too; so how long they take is a guess.
    appends, merges = (Rounds(shop, command, 20, chance, account) for command in ("append", "dbt"))
    while min(appends.kills, merges.kills) < ROUNDS:
        shop.deliver()
        appends.round()
        merges.round()
    while shop.waiting:
        shop.deliver()
    shop.append()
    shop.merge()
    # Spark comes into the test's own process last: until then a command has the machine to itself.
    shop.assert_nothing_is_lost_or_doubled(request.getfixturevalue("spark"))


@pytest.mark.matrix
def test_kills_at_every_named_place_lose_and_double_nothing(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    places = failpoints_of_an_append()
    shop = Shop(tmp_path, deliveries=len(PLACES))
    for number, place in enumerate(PLACES):
        shop.deliver()
        if number < len(places):
            assert shop.append(places[number])
        shop.append()
        assert shop.merge(place)
        shop.merge()
    shop.assert_nothing_is_lost_or_doubled(request.getfixturevalue("spark"))
