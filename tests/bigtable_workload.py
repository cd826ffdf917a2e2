"""Work for a Bigtable table, the command that appends its changes, and what has to come of it."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fake_bigtable import FakeBigtable, delete_column, delete_family, delete_row, set_cell
from file_formats import table_at
from pyspark.sql import Row, SparkSession
from reconcile_jobs.bigtable.partitions import Outcome, Partition, Request, RowRange, after, whole_table

ROOT = Path(__file__).resolve().parents[1]


class Workload(threading.Thread):
    """Mutations of all kinds on two clusters, garbage collection, splits and merges: so many, and until `over`."""

    def __init__(self, server: FakeBigtable, seed: int, count: int, pause: float = 0.0, endless: bool = False) -> None:
        super().__init__(daemon=True)
        self.server, self.count, self.pause, self.endless = server, count, pause, endless
        self.chance = random.Random(seed)
        self.keys = [bytes([self.chance.randrange(97, 123), self.chance.randrange(256)]) for _ in range(300)]
        self.over = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            if number >= self.count:
                if not self.endless or self.over.is_set():
                    break
                time.sleep(0.1)
            self.step()
            if self.pause and number % 10 == 0:
                time.sleep(self.pause)
        self.server.replicate()

    def step(self) -> None:
        chance, server = self.chance, self.server
        key = chance.choice(self.keys)
        entries = [self.entry() for _ in range(1 + chance.randrange(3))]
        if chance.random() < 0.03:
            entries = [delete_row()]
        cluster = chance.choice(["c1", "c1", "c1", "c2"])
        # Two clusters now and then commit at the same moment, and only the tiebreaker says who wins.
        micros = server.log[-1].micros if cluster == "c2" and server.log and chance.random() < 0.3 else None
        tie = None if micros is None else chance.randrange(2**31)
        server.commit(key, *entries, cluster=cluster, micros=micros, tiebreaker=tie, arrives=cluster == "c1")
        if chance.random() < 0.03:
            server.collect_garbage(key)
        if chance.random() < 0.02:
            server.replicate(1 + chance.randrange(9))
        if chance.random() < 0.01:
            server.split(bytes([chance.randrange(98, 122)]))
        if chance.random() < 0.01 and len(server.ranges) > 1:
            server.merge(chance.choice(sorted(server.ranges)[1:])[0])

    def entry(self) -> Any:
        chance = self.chance
        family, qualifier = chance.choice("fg"), chance.choice([b"", b"q", b"\xff\x00"])
        kind = chance.random()
        if kind < 0.8:
            value = bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
            return set_cell(family, qualifier, chance.randrange(6) * 1000, value)
        if kind < 0.95:
            return delete_column(family, qualifier, *sorted(chance.choices(range(0, 7000, 1000), k=2)))
        return delete_family(family)


def advanced(asked: Sequence[Request], outcomes: Mapping[RowRange, Outcome]) -> list[Partition]:
    """Return the partitions after a round, as a job without tasks would have them."""
    return whole_table(part for one in asked for part in after(one, outcomes.get(one.partition.rows)))


def submit(server: FakeBigtable, cwd: Path, *words: str, failpoint: str = "") -> subprocess.Popen[str]:
    """Start the command in `cwd`, where its metastore and staging table are then."""
    command = ["spark-submit", str(ROOT / "ingestion" / "append.py"), "bigtable", "--project", "p", "--instance", "i"]
    command += ["--table", "t", "--app-profile", "single", "--staging", "lake.changes", *words]
    environment = os.environ | {"BIGTABLE_EMULATOR_HOST": server.address, "RECONCILE_FAILPOINT": failpoint}
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def staging_at(spark: SparkSession, cwd: Path) -> str:
    """Return a name in SQL of the staging table of a command that was started in `cwd`."""
    return table_at(spark, cwd / "lakehouse/warehouse/lake.db/changes")


def staged_by(spark: SparkSession, cwd: Path) -> list[Row]:
    """Return what such a command has staged."""
    return spark.sql(f"SELECT record, object, origin, batch FROM {staging_at(spark, cwd)}").collect()


def check_changes(records: list[str], server: FakeBigtable, start: int) -> None:
    """See that staged changes are the server's log from the start on, each once."""
    found = []
    for text in records:
        record = json.loads(text)
        assert record.pop("token") and record.pop("estimated_low_watermark")
        found.append(json.dumps(record, sort_keys=True))
    expected = [json.dumps(commit.record(), sort_keys=True) for commit in server.log if commit.micros >= start]
    assert Counter(found) == Counter(expected)
