"""A job that dies again and again, and models in between: the lakehouse has the server's cells and rows."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import plain_spark
import pytest
from bigtable_workload import Workload, check_changes, staging_at, submit
from cells import COLUMNS, KEY
from datastream import Staged
from fake_bigtable import FakeBigtable, set_cell
from file_formats import file_format
from memory import Memory
from projects import Project
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs.bigtable.job import Job, run
from reconcile_jobs.process import errors, failpoints
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text

KILLS = 10

# name of a column: where its cell is, and how its bytes are read
DECLARED: dict[str, tuple[str, bytes, str]] = {
    "nameless": ("f", b"", "raw"),
    "bytes": ("g", b"\xff\x00", "raw"),
    "word": ("f", b"q", "text"),
}


def declare(project: Any, schema: str) -> None:
    """Let a project have the cells of the table, and its rows."""
    project.source(f"{schema}_staging", "changes")
    project.model(
        "cells",
        f"{{{{ config(materialized='current_state', unique_key={KEY}) }}}}\n"
        "{{ reconcile.bigtable_change_stream(source('lake', 'changes'), object='t') }}",
        COLUMNS,
        data_tests=["reconcile.ledger_balances", "reconcile.no_quarantine", "reconcile.no_pending_rows"],
    )
    columns = [
        {
            "name": name,
            "cell": f"{family}:",
            **({"qualifier_hex": qualifier.hex()} if qualifier else {}),
            "data_type": "string" if encoding == "text" else "binary",
            "encoding": encoding,
        }
        for name, (family, qualifier, encoding) in DECLARED.items()
    ]
    project.model(
        "rows",
        f"{{{{ config(materialized='view') }}}}\n{{{{ reconcile.bigtable_rows(ref('cells'), {columns}) }}}}",
        {},
    )


def cells_in(model: DataFrame) -> dict[tuple[bytes, str, bytes, int], bytes]:
    """Return the cells of the view `cells`."""
    found = model.selectExpr("* except (cell_time)", "unix_micros(cell_time) as us").collect()
    cells = {(bytes(r.row_key), r.family, bytes(r.qualifier), r.us): bytes(r.value) for r in found}
    assert len(cells) == len(found), "the view has a cell twice"
    return cells


def rows_in(model: DataFrame) -> dict[bytes, tuple[Any, ...]]:
    """Return the rows of the view `rows`."""
    found = model.collect()
    rows = {
        bytes(row.row_key): (
            *(bytes(row[name]) if isinstance(row[name], bytearray) else row[name] for name in DECLARED),
            row.undecoded,
        )
        for row in found
    }
    assert len(rows) == len(found), "the view has a row twice"
    return rows


class Lakehouse:
    """What dbt makes of the command's staging table."""

    def __init__(self, spark: SparkSession, root: Path, schema: str) -> None:
        self.spark, self.schema, self.batch = spark, schema, 0
        self.project = Project(root, schema)
        declare(self.project, schema)
        spark.sql(f"create schema {schema}_staging")

    def take(self, directory: Path) -> None:
        """Take over what the command has appended since, and let dbt merge it."""
        changes = f"{self.schema}_staging.changes"
        source = staging_at(self.spark, directory)
        if self.batch == 0:
            how = f"using {file_format()} partitioned by (batch)"
            self.spark.sql(f"create table {changes} {how} as select * from {source} where false")
        self.spark.sql(f"insert into {changes} by name select * from {source} where batch > {self.batch}")
        self.batch = self.spark.sql(f"select max(batch) as last from {changes}").first()["last"] or 0  # type: ignore[index]
        self.project.dbt("run")

    def table(self, name: str) -> DataFrame:
        return self.spark.table(f"{self.schema}.{name}")


def rows_of(server: FakeBigtable) -> dict[bytes, tuple[Any, ...]]:
    """Return the rows of the server's table: the newest cell of each declared column, and what is no text."""
    newest: dict[bytes, dict[tuple[str, bytes], bytes]] = {}
    for (row, family, qualifier, _), value in sorted(server.cells().items(), key=lambda cell: cell[0][3]):
        newest.setdefault(row, {})[family, qualifier] = value
    rows = {}
    for row, cells in newest.items():
        values: list[Any] = []
        undecoded = []
        for name, (family, qualifier, encoding) in DECLARED.items():
            value: Any = cells.get((family, qualifier))
            if value is not None and encoding == "text":
                try:
                    value = value.decode("utf-8")
                except UnicodeDecodeError:
                    value = None
                    undecoded.append(name)
            values.append(value)
        rows[row] = (*values, undecoded or None)
    return rows


def fill(server: FakeBigtable, count: int, chance: random.Random) -> None:
    """Write the cells that are there before the start."""
    for number in range(count):
        key, qualifier = chance.randbytes(2), chance.choice([b"", b"q", b"\xff\x00"])
        server.commit(key, set_cell(chance.choice("fg"), qualifier, 1000 * (number % 7), b"v%d" % number))


def check_rounds(rows: list[Any]) -> None:
    """See that each batch is a round, and none is left out."""
    cuts = {(row.batch, json.loads(row.record)["round"]) for row in rows if row.object == "#cut"}
    assert sorted(cuts) == [(number, number) for number in range(1, len(cuts) + 1)]


@pytest.mark.soak
@pytest.mark.skipif(file_format() == "iceberg", reason="these tables are in memory")
def test_what_a_dying_job_stages_comes_to_the_cells_and_rows_of_the_server(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations of all kinds on two clusters, splits, merges, faults, cells that were there before; in one process."""
    plain_spark.stage_in_plain_python(monkeypatch)
    session, chance = plain_spark.Session(), random.Random(7)
    with FakeBigtable(value_chunk=16, entries_per_message=2, fault_rate=0.0005) as server, Memory(spark) as memory:
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.address)
        fill(server, 200, chance)
        start = server.now()
        workload = Workload(server, seed=7, count=2000, pause=0.01, endless=True)
        workload.start()
        job = Job(
            *("p", "i", "t", "single", TableName.parse("lake.changes")),
            start=as_text(start * 1000), backfill=True, round_seconds=0.2, heartbeat=0.02,
        )  # fmt: skip
        project = memory.project("bigtable_deaths")
        declare(project, "bigtable_deaths")
        taken, deaths = 0, 0

        def take() -> int:
            rows = session.table("lake.changes").where(f"batch > {taken}").collect()
            staged = [Staged(row.record, row.object, row.batch, row.origin, row.source) for row in rows]
            memory.stage("bigtable_deaths_staging.changes", staged)
            project.run("cells")
            return max([taken, *(row.batch for row in rows)])

        for number in range(2000):
            # However quick the machine is, the partitions have changed meanwhile, or this would show nothing.
            is_last = deaths >= 6 and len(server.log) >= 1500 and len(server.closings) > 5
            if is_last:
                workload.over.set()
                workload.join()
            place = "" if is_last else ["before_data_commit", "after_data_commit"][number % 2]
            reaches = itertools.count(-chance.randrange(2))  # it dies in the first round, or the second

            def reach(name: str, place: str = place, reaches: Any = reaches) -> None:
                if name == place and next(reaches) >= 0:
                    raise RuntimeError(f"killed at {name}")

            monkeypatch.setattr(failpoints, "reach", reach)
            try:
                run(session, job)
            except errors.Fault as died:
                assert place and f"killed at {place}" in str(died)
                deaths += 1
            if deaths == 3 and not taken:
                taken = take()
            if is_last:
                break
        assert is_last and taken
        taken = take()
        rows = session.table("lake.changes").collect()
        check_rounds(rows)
        changes = [row.record for row in rows if row.object != "#cut" and row.origin != "bigtable/backfill"]
        check_changes(changes, server, start)
        assert cells_in(memory.table("bigtable_deaths.cells")) == server.cells()
        found = rows_in(memory.sql(project.compile("rows")))
        assert found == rows_of(server)
        undecoded = [row for row in found.values() if row[-1]]
        assert undecoded and len(undecoded) < len(found)
        assert project.failing_tests("cells") == set()


@pytest.mark.matrix
def test_the_lakehouse_has_the_cells_and_rows_of_the_server(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 mutations of all kinds on two clusters, splits, merges, faults, cells that were there before."""
    with FakeBigtable(value_chunk=16, entries_per_message=2, fault_rate=0.0005) as server:
        chance = random.Random(7)
        fill(server, 500, chance)
        start = server.now()
        workload = Workload(server, seed=7, count=20_000, pause=0.08, endless=True)
        workload.start()
        lakehouse = Lakehouse(spark, tmp_path / "project", "bigtable_kills")
        words = ("--backfill", "--start", as_text(start * 1000))
        places = ["before_data_commit", "after_data_commit", ""]
        if file_format() == "iceberg":
            places.append("before_publish")
        for number in range(KILLS):
            failpoint = places[number % len(places)]
            job = submit(server, tmp_path, *words, "--every", "1s", failpoint=failpoint)
            if not failpoint:
                time.sleep(12 + chance.random() * 10)
                os.killpg(job.pid, signal.SIGKILL)
            job.communicate(timeout=300)
            assert job.returncode != 0
            if number % 4 == 3:
                lakehouse.take(tmp_path)
        workload.over.set()
        workload.join()
        job = submit(server, tmp_path, *words)
        _, err = job.communicate(timeout=300)
        assert (job.returncode, err) == (0, "")
        lakehouse.take(tmp_path)

        rows = spark.table("bigtable_kills_staging.changes").collect()
        check_rounds(rows)
        changes = [row.record for row in rows if row.object != "#cut" and row.origin != "bigtable/backfill"]
        assert len(changes) >= 20_000
        check_changes(changes, server, start)
        assert cells_in(lakehouse.table("cells")) == server.cells()
        found = rows_in(lakehouse.table("rows"))
        assert found == rows_of(server)
        undecoded = [row for row in found.values() if row[-1]]
        assert undecoded and len(undecoded) < len(found)
        lakehouse.project.dbt("test")
        assert len(server.closings) > 10, "the partitions did not change: this shows nothing"
