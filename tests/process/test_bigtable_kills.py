"""kill -9 of append.py bigtable, and dbt in between: the lakehouse has the server's cells and rows."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from bigtable_workload import Workload, check_changes, staging_at, submit
from cells import COLUMNS, KEY
from fake_bigtable import FakeBigtable, set_cell
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.timestamps import as_text

KILLS = 10

# name of a column: where its cell is, and how its bytes are read
DECLARED: dict[str, tuple[str, bytes, str]] = {
    "nameless": ("f", b"", "raw"),
    "bytes": ("g", b"\xff\x00", "raw"),
    "word": ("f", b"q", "text"),
}


class Lakehouse:
    """What dbt makes of the job's staging table: the cells of the table, and its rows."""

    def __init__(self, spark: SparkSession, root: Path, schema: str) -> None:
        self.spark, self.schema, self.batch = spark, schema, 0
        self.project = Project(root, schema)
        self.project.source(f"{schema}_staging", "changes")
        self.project.model(
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
        self.project.model(
            "rows",
            f"{{{{ config(materialized='view') }}}}\n{{{{ reconcile.bigtable_rows(ref('cells'), {columns}) }}}}",
            {},
        )
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

    def cells(self) -> dict[tuple[bytes, str, bytes, int], bytes]:
        rows = self.spark.sql(f"select * except (cell_time), unix_micros(cell_time) as us from {self.schema}.cells")
        found = rows.collect()
        cells = {(bytes(r.row_key), r.family, bytes(r.qualifier), r.us): bytes(r.value) for r in found}
        assert len(cells) == len(found), "the view has a cell twice"
        return cells

    def rows(self) -> dict[bytes, tuple[Any, ...]]:
        found = self.spark.table(f"{self.schema}.rows").collect()
        rows = {
            bytes(row.row_key): (
                *(bytes(row[name]) if isinstance(row[name], bytearray) else row[name] for name in DECLARED),
                row.undecoded,
            )
            for row in found
        }
        assert len(rows) == len(found), "the view has a row twice"
        return rows


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


@pytest.mark.matrix
def test_the_lakehouse_has_the_cells_and_rows_of_the_server(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 mutations of all kinds on two clusters, splits, merges, faults, cells that were there before."""
    with FakeBigtable(value_chunk=16, entries_per_message=2, fault_rate=0.0005) as server:
        chance = random.Random(7)
        for number in range(500):
            key, qualifier = chance.randbytes(2), chance.choice([b"", b"q", b"\xff\x00"])
            server.commit(key, set_cell(chance.choice("fg"), qualifier, 1000 * (number % 7), b"v%d" % number))
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
        cuts = {(row.batch, json.loads(row.record)["round"]) for row in rows if row.object == "#cut"}
        assert sorted(cuts) == [(number, number) for number in range(1, len(cuts) + 1)]
        changes = [row.record for row in rows if row.object != "#cut" and row.origin != "bigtable/backfill"]
        assert len(changes) >= 20_000
        check_changes(changes, server, start)
        assert lakehouse.cells() == server.cells()
        assert lakehouse.rows() == rows_of(server)
        undecoded = [row for row in lakehouse.rows().values() if row[-1]]
        assert undecoded and len(undecoded) < len(lakehouse.rows())
        lakehouse.project.dbt("test")
        assert len(server.closings) > 10, "the partitions did not change: this shows nothing"
