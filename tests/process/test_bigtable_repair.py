"""Changes of a Bigtable table are lost; a snapshot of its cells, staged beside the stream, makes every cell right."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bigtable_workload import Workload
from cells import COLUMNS, KEY
from fake_bigtable import Cell, FakeBigtable
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs import snapshot_job
from reconcile_jobs.bigtable.calls import SourceTable
from reconcile_jobs.bigtable.job import Job, run
from reconcile_jobs.log_snapshots import Totals
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshots.snapshot_bigtable import load_bigtable
from reconcile_jobs.staging import TableName

# How many microseconds the clocks are before the machine's: what Spark's workers run may close over no server.
AHEAD = "RECONCILE_TESTS_AHEAD"
SCHEMA, LAKE = "bigtable_repair", "bigtable_repair_lake"
STAGING, COPY = TableName((LAKE, "changes")), TableName((LAKE, "cells_source"))


class Repair:
    """A table of Bigtable, its staging table, a model of its cells, and time that passes faster."""

    def __init__(self, spark: SparkSession, root: Path, server: FakeBigtable) -> None:
        self.spark, self.server, self.seen = spark, server, 0
        self.project = Project(root, SCHEMA)
        self.project.source(LAKE, "changes", "cells_source")
        tests: list[Any] = ["reconcile.ledger_balances", "reconcile.no_quarantine"]
        parity = {"compare_to": "source('lake', 'cells_source')", "key": KEY}
        tests.append({"reconcile.parity": {"name": "parity_of_cells", "arguments": parity}})
        self.project.model(
            "cells",
            f"{{{{ config(materialized='current_state', unique_key={KEY}) }}}}\n"
            "{{ reconcile.bigtable_change_stream(source('lake', 'changes'), object='t') }}",
            COLUMNS,
            data_tests=tests,
        )

    def write(self, seed: int, count: int = 400) -> None:
        workload = Workload(self.server, seed, count)
        workload.start()
        workload.join()

    def append(self, loses: bool) -> None:
        """Append what came since, of which a tenth is lost for good."""
        job = Job("p", "i", "t", "single", STAGING, backfill=True, heartbeat=0.1, round_seconds=5.0)
        run(self.spark, job, Caller(threading.Event()))
        if loses:
            lost = f"batch > {self.seen} and object = 't' and pmod(xxhash64(record), 10) = 0"
            assert self.spark.table(STAGING.sql).where(lost).count() > 5
            self.spark.sql(f"delete from {STAGING.sql} where {lost}")
        self.seen = self.spark.table(STAGING.sql).agg({"batch": "max"}).collect()[0][0]

    def stage(self) -> Totals:
        """Take a snapshot of the cells, and stage it."""
        load_bigtable(self.spark, SourceTable("p", "i", "t", "single", self.server.address), COPY)
        totals = snapshot_job.run(self.spark, snapshot_job.Job(table=COPY, staging=STAGING))
        assert isinstance(totals, Totals)
        return totals

    def wait(self, hours: int) -> None:
        """Let hours pass, for the server and for the jobs."""
        self.server.ahead += hours * 3600 * 10**6
        os.environ[AHEAD] = str(self.server.ahead)

    def rows(self) -> dict[Cell, bytes]:
        rows = self.spark.table(f"{SCHEMA}.cells").selectExpr("*", "unix_micros(cell_time) as micros").collect()
        found = {(bytes(r.row_key), r.family, bytes(r.qualifier), r.micros): bytes(r.value) for r in rows}
        assert len(found) == len(rows), "a cell is there twice"
        return found


@pytest.fixture
def repair(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repair]:
    with FakeBigtable() as server:
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.address)
        monkeypatch.setenv(AHEAD, "0")
        monkeypatch.setattr(Clock, "now", lambda self: time.time_ns() + 1000 * int(os.environ.get(AHEAD, "0")))
        made = Repair(spark, tmp_path / "project", server)
        yield made
        for table in (STAGING, COPY):
            spark.sql(f"drop table if exists {table.sql}")


@pytest.mark.soak
def test_every_cell_is_right_after_one_snapshot_although_a_tenth_of_the_changes_is_lost(repair: Repair) -> None:
    server, project = repair.server, repair.project
    for seed in (1, 2):
        repair.write(seed)
        repair.append(loses=True)
        project.run()
    assert repair.rows() != server.cells(), "nothing of it was missing"
    # The cells have all that was written an hour before they are read.
    repair.wait(hours=2)
    with pytest.raises(UsageError, match=r"has the changes up to \S+Z, and the snapshot counts as of \S+Z, an hour"):
        repair.stage()
    repair.append(loses=False)
    assert repair.stage().rows == len(server.cells()) > 100
    project.run()
    assert repair.rows() == server.cells()
    project.dbt("test")
    repair.write(3)
    repair.append(loses=False)
    project.run()
    assert repair.rows() == server.cells()
    # A second repair changes no cell, and a rebuild gives the same.
    repair.wait(hours=2)
    repair.append(loses=False)
    repair.stage()
    project.run()
    assert repair.rows() == server.cells()
    project.run(full_refresh=True)
    assert repair.rows() == server.cells()
    project.dbt("test")


@pytest.mark.soak
def test_a_snapshot_of_another_table_of_bigtable_is_refused(repair: Repair) -> None:
    repair.write(1, 50)
    repair.append(loses=False)
    load_bigtable(repair.spark, SourceTable("p", "i", "t", "single", repair.server.address), COPY)
    repair.spark.sql(f"alter table {COPY.sql} set tblproperties ('reconcile.snapshot.table' = 'other')")
    said = r"belongs to the job bigtable \S+/tables/t, and the snapshot is of \S+/tables/other: take it from"
    with pytest.raises(UsageError, match=said):
        snapshot_job.run(repair.spark, snapshot_job.Job(table=COPY, staging=STAGING))
