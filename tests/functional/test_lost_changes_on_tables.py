"""A tenth of the capture's changes is lost for good: one snapshot repairs every row, on tables, by jobs and by dbt.

`tests/fold/test_lost_changes.py` shows it of histories too, in memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lost_changes import COPIED, Kept, after_the_copy, kept, position, position_of_the_copy, time_of
from process.landings import Landing
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs import snapshot_job
from reconcile_jobs.snapshot_job import Job
from reconcile_jobs.staging import TableName
from tables import files_of, load_snapshot
from truth import COLUMNS, KEYS, SOURCES, counted, declared, rows_of_snapshot, table_of, true_rows

Keys = set[tuple[int, ...]]


class Shop:
    """The tables of one source: files of their changes, a staging table, a model of each, and snapshots of each."""

    def __init__(self, spark: SparkSession, root: Path, source: str) -> None:
        self.spark, self.source, self.files = spark, source, 0
        self.schema, self.lake = f"lost_{source}", f"lost_{source}_lake"
        self.landing = Landing(spark, root)
        self.landing.table = f"{self.lake}.changes"
        self.project = Project(root / "project", self.schema, threads=2)
        self.project.source(self.lake, "changes", *(f"{table}_source" for table in KEYS))
        # What was staged a moment ago counts as late: a second, and not ten minutes.
        options = ", meta={'row_ids': false}" if source == "oracle" else ""
        for table, key in KEYS.items():
            call = f"reconcile.datastream_{source}(source('lake', 'changes'), table='{table_of(source, table)}')"
            arguments = {"compare_to": f"source('lake', '{table}_source')", "key": key, "allowance": "1 second"}
            self.project.model(
                table,
                f"{{{{ config(materialized='current_state', unique_key={key}{options}) }}}}\n{{{{ {call} }}}}",
                declared(source, table),
                data_tests=["reconcile.ledger_balances", {"reconcile.parity": {"arguments": arguments}}],
            )

    def append(self, lines: list[str]) -> None:
        """Append a file of records."""
        self.files += 1
        self.landing.put(f"{self.files}.jsonl.gz", "\n".join(lines) + "\n")
        assert self.landing.append().records == len(lines)

    def take(self, table: str, then: str, at: tuple[str, str], taken: datetime) -> None:
        """Take a snapshot of a table as it is in the end or was in the middle: see `true_rows`."""
        columns = COLUMNS[table]
        rows = pa.Table.from_pylist(rows_of_snapshot(table, then), pa.schema([(name, pa.string()) for name in columns]))
        values = {"binary": "unbase64(`{0}`) as `{0}`"}
        typed = [values.get(kind, "cast(`{0}` as {1}) as `{0}`").format(name, kind) for name, kind in columns.items()]
        moment = f"{taken.isoformat(timespec='microseconds')}Z"
        said = {"": "jdbc", "position_kind": at[0], "position": at[1], "taken_at": moment, "table": f"shop.{table}"}
        into = self.copy_of(table)
        load_snapshot(self.spark.createDataFrame(rows).selectExpr(*typed), into, said)
        assert counted(self.spark.table(into.sql)) == true_rows(table, then)

    def stage(self) -> None:
        """Stage the snapshots that were taken."""
        staging = TableName.parse(self.landing.table)
        for table in KEYS:
            snapshot_job.run(self.spark, Job(table=self.copy_of(table), staging=staging))

    def copy_of(self, table: str) -> TableName:
        return TableName((self.lake, f"{table}_source"))

    def run(self, full_refresh: bool = False) -> dict[str, str]:
        """Run all models, and return what dbt says of each."""
        results = self.project.run(*KEYS, full_refresh=full_refresh).result.results
        return {result.node.name: result.message for result in results if result.node.name in KEYS}

    def test(self) -> None:
        """At the position of the snapshot every row matches, and the ledger accounts for every record."""
        results = self.project.dbt("test", "--select", *KEYS, succeed=False).result.results
        tests = [result for result in results if result.node.resource_type == "test"]
        assert [result.status for result in tests] == ["pass"] * 2 * len(KEYS), [result.message for result in tests]
        runs = self.spark.table(f"{self.schema}.reconcile_parity").collect()
        assert {run.relation for run in runs} == {f"{self.schema}.{table}" for table in KEYS}
        for run in runs:
            assert run.verdict == "match" and run.is_delivered and run.position
            assert run.compared == run.matched == true_rows(run.relation.split(".")[1]).total()

    def wrong(self) -> dict[str, Keys]:
        """Return the keys of the rows that are not as the source has them in the end."""
        found = {}
        for table, key in KEYS.items():
            frame = self.spark.table(f"{self.schema}.{table}")
            assert frame.dtypes == list(COLUMNS[table].items())
            rows, true = counted(frame), true_rows(table)
            found[table] = {row[: len(key)] for row in ((rows - true) + (true - rows))}
        return found

    def files_of_bases(self) -> dict[str, set[Path]]:
        return {table: files_of(self.spark, f"{self.schema}.{table}__base") for table in KEYS}


REPAIRED = r"; repaired at .*: (\d+) inserted, (\d+) updated, (\d+) deleted(?:, (\d+) in doubt)?$"
NONE: dict[str, Keys] = {table: set() for table in KEYS}


@pytest.fixture(params=SOURCES)
def shop(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    shop = Shop(spark, tmp_path, request.param)
    yield shop
    for schema in (shop.schema, shop.lake):
        spark.sql(f"drop schema if exists {schema} cascade")


def take_in_the_middle(shop: Shop, tables: Mapping[str, Kept]) -> bool:
    """Take the copies that were made amid the changes, and return whether their positions in the log are known."""
    positions = {table: position_of_the_copy(of) for table, of in tables.items()}
    for table, at in positions.items():
        if at:
            shop.take(table, "snapshot", at, time_of(COPIED["at"]))
    return all(positions.values())


def is_right_up_to_the_middle(shop: Shop, tables: Mapping[str, Kept], said: Mapping[str, str]) -> None:
    """A row that is wrong has lost a later change, or is one of those that the run has counted as in doubt."""
    wrong = shop.wrong()
    for table, of in tables.items():
        repaired = re.search(REPAIRED, said[table])
        assert repaired, said
        *counts, in_doubt = (int(count or 0) for count in repaired.groups())
        assert sum(counts), said
        # PostgreSQL's position decides about every change; at those of the others the changes of that day are in doubt.
        assert (in_doubt > 0) == (shop.source != "postgresql"), said
        lost_later = {of.key(uuid) for uuid in of.lost & after_the_copy(table)}
        assert lost_later & wrong[table], "nothing is left to repair"
        assert len(wrong[table] - lost_later) <= in_doubt, said


@pytest.mark.matrix
def test_every_row_on_tables_is_right_after_one_snapshot_although_a_tenth_of_the_changes_is_lost(shop: Shop) -> None:
    chance = random.Random(7)
    tables = {table: kept(shop.source, table, chance) for table in KEYS}
    lines = [line for of in tables.values() for line in of.lines]
    chance.shuffle(lines)
    half = len(lines) // 2
    shop.append(lines[:half])
    shop.run()
    shop.append(lines[half:])
    if has_copy := take_in_the_middle(shop, tables):
        shop.stage()
    said = shop.run()
    if has_copy:
        is_right_up_to_the_middle(shop, tables, said)
    assert all(len(keys) > 100 for keys in shop.wrong().values())

    # After all changes, by more than the day for which an open transaction leaves a change of Oracle in doubt.
    taken = max(of.latest for of in tables.values()) + timedelta(days=1, hours=1)

    def take(at: datetime) -> None:
        for table, of in tables.items():
            shop.take(table, "truth", position(shop.source, of.newest), at)

    take(taken)
    shop.stage()
    said = shop.run()
    assert all("repaired at " in sentence and "in doubt" not in sentence for sentence in said.values()), said
    assert shop.wrong() == NONE
    shop.test()

    # Some of the records come again, and another equal snapshot.
    written = shop.files_of_bases()
    assert all(written.values())
    shop.append(lines[::7])
    take(taken + timedelta(hours=1))
    shop.stage()
    said = shop.run()
    assert all(sentence.endswith(": 0 inserted, 0 updated, 0 deleted") for sentence in said.values()), said
    assert shop.files_of_bases() == written
    assert shop.wrong() == NONE
    shop.run(full_refresh=True)
    assert shop.wrong() == NONE
