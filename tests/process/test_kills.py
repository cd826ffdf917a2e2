"""kill -9 of the append and of dbt, again and again, each followed by the same command: nothing is lost or doubled."""

from __future__ import annotations

import collections
import contextlib
import csv
import gzip
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from file_formats import table_at
from process.killed_dbt import PLACES
from projects import PACKAGE, Project
from pyspark.sql import SparkSession
from tables import stored

# PLACES of dbt, in the order in which a merge comes to them: the first three leave it undone.
FAILPOINTS = ["before_data_commit", "after_data_commit", "before_checkpoint", "after_checkpoint"]
COUNTS = ["applied", "superseded", "duplicate", "quarantined", "pending"]
SECONDS = 600


class Shop:
    """A project of its own in its own directory, whose landing area fills delivery by delivery."""

    def __init__(self, root: Path, deliveries: int) -> None:
        self.root, self.landing = root, root / "landing"
        self.landing.mkdir()
        self.project = Project(root / "project", "shop")
        self.project.source("lake", "changes")
        self.project.model(
            "table1",
            "{{ config(materialized='current_state', unique_key='COL1') }}\n"
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

    def deliver(self) -> None:
        """The next delivery appears, whole."""
        records = self.waiting.pop(0)
        file = self.landing / f"{len(self.delivered)}.jsonl.gz"
        file.with_name("_coming").write_bytes(gzip.compress("\n".join([*records, ""]).encode()))
        file.with_name("_coming").rename(file)
        self.delivered += records

    def append(self, failpoint: str | None = None, after: float | None = None) -> bool:
        """Run the job; return whether it was killed, at the failpoint or after so many seconds."""
        job = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "datastream"]
        job += ["--path", str(self.landing), "--staging", "lake.changes"]
        return self._run(job, {"RECONCILE_FAILPOINT": failpoint} if failpoint else {}, after)

    def merge(self, place: str | None = None, after: float | None = None) -> bool:
        """Run dbt; return whether it was killed, at the place or after so many seconds."""
        killed = [str(Path(__file__).with_name("killed_dbt.py")), place] if place else ["-m", "dbt.cli.main"]
        run = [sys.executable, *killed, "--quiet", "run", "--profiles-dir", "."]
        return self._run(run, {}, after)

    def _run(self, command: list[str], more: dict[str, str], after: float | None) -> bool:
        environment = os.environ | more
        environment.pop("PYSPARK_GATEWAY_PORT", None)
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        started = subprocess.Popen(
            command,
            cwd=self.project.root,
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = started.communicate(timeout=after or SECONDS)
        except subprocess.TimeoutExpired:
            assert after, f"{command} did not end in {SECONDS} seconds"
            output = ""
        meant_to_die = bool(after or more or "killed_dbt" in " ".join(command))
        # What the killed process started dies with it; a lock that it held would last otherwise.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        killed = started.returncode == -signal.SIGKILL
        assert killed if meant_to_die and not after else started.returncode == 0 or (killed and after), output
        return killed

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
        rows = base.where("not _deleted").select("COL1", "COL2").collect()
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


@pytest.mark.matrix
def test_forty_kills_at_every_named_place_and_at_random_moments_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(40)
    shop = Shop(tmp_path, deliveries=4)
    kills: list[bool] = []
    while shop.waiting:
        turn = len(shop.waiting)
        shop.deliver()
        # A random moment falls into the start of Spark or dbt, or after it; the last place leaves nothing to do.
        for failpoint in FAILPOINTS[:3]:
            kills.append(shop.append(after=chance.uniform(1, 4)))
            kills.append(shop.append(failpoint))
        kills.append(shop.append(FAILPOINTS[3]))
        shop.append()
        kills.append(shop.merge(PLACES[turn % 3]))
        kills.append(shop.merge(after=chance.uniform(2, 6)))
        kills.append(shop.merge(PLACES[3 + turn % 3]))
        shop.merge()
    assert kills == [True] * 40
    shop.assert_nothing_is_lost_or_doubled(spark)
