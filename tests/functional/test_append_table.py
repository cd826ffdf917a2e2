"""Tables to which Datastream appends each change: each row is staged once, and the number of the change orders it."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from erased import register_erased
from file_formats import failpoints_of_an_append, file_format
from memory import Memory
from pyspark.sql import SparkSession
from reconcile_jobs.append_table import Job, Totals, run
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.staging import TableName
from tables import restore, versions

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = (
    "COL1 string, COL2 string, datastream_metadata struct<uuid string, source_timestamp bigint, "
    "change_sequence_number string, change_type string, sort_keys array<string>>"
)


def operations() -> list[tuple[Any, ...]]:
    """Return the thousand operations of the TABLE1 experiment as rows of an append table, in their order.

    The numbers are hex, of one to three sections, some of them padded: no number of Datastream's was ever seen.
    """
    lines = [
        json.loads(line)
        for path in sorted((ROOT / "tests" / "data" / "table1").rglob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
    ]
    lines.sort(key=lambda line: [line["source_metadata"][name] for name in ("scn", "rs_id", "ssn")])
    rows = []
    for place, line in enumerate(lines):
        high, low = divmod(place + 250, 256)
        number = f"{high:x}/{low:x}" if low % 3 else f"{high:016X}/{low:X}/0"
        metadata = (
            line["uuid"],
            1732186800000 + place // 20 * 1000,
            number,
            line["source_metadata"]["change_type"],
            [],
        )
        rows.append((line["payload"]["COL1"], line["payload"].get("COL2"), metadata))
    return rows


OPERATIONS = operations()

# The place at which most is there already is tried in `make test`, the others in `make soak`.
DEATHS = [
    pytest.param(name, marks=[] if name == "after_data_commit" else pytest.mark.soak)
    for name in failpoints_of_an_append()
    if "checkpoint" not in name
]


class Place:
    """An append table and the staging table that it is read into."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.table, self.staging = spark, TableName(("appends", name)), TableName(("appends", f"{name}_s"))
        self.said: list[str] = []
        spark.sql("create schema if not exists appends")
        spark.sql(f"create table {self.table.sql} ({SCHEMA}) using {file_format()}")

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        self.spark.createDataFrame(rows, SCHEMA).coalesce(1).writeTo(self.table.sql).append()

    def append(self, **options: Any) -> Totals:
        job = Job(**{"tables": (self.table,), "staging": self.staging, "object": "TABLE1", **options})
        return run(self.spark, job, Caller(say=self.said.append))

    def staged(self) -> int:
        return self.spark.table(self.staging.sql).where("object = 'TABLE1'").count()

    def compact(self) -> None:
        if file_format() == "iceberg":
            rewrite = "options => map('rewrite-all', 'true')"
            self.spark.sql(f"call spark_catalog.system.rewrite_data_files(table => '{self.table}', {rewrite})")
        else:
            self.spark.sql(f"optimize {self.table.sql}")


@pytest.fixture
def place(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Place]:
    name = f"a{abs(hash(request.node.name)) % 10**8}"
    yield Place(spark, name)
    for table in (name, f"{name}_s"):
        spark.sql(f"drop table if exists appends.{table}")


def test_the_experiment_in_any_order_in_halves_and_twice_leaves_its_188_rows(spark: SparkSession, place: Place):
    rows = list(OPERATIONS)
    random.Random(5).shuffle(rows)
    export = ROOT / "seeds" / "demo" / "table1_oracle_export.csv"
    with Memory(spark) as memory, export.open(encoding="utf-8", newline="") as file:
        wanted = {tuple(row) for row in list(csv.reader(file))[1:]}
        project = memory.project("shop")
        project.source("lake", "staged")
        project.model(
            "table1",
            "{{ config(materialized='current_state', unique_key='COL1') }}\n"
            "{{ reconcile.datastream_append(source('lake', 'staged'), object='TABLE1') }}",
            {"COL1": "string", "COL2": "string"},
            data_tests=["reconcile.ledger_balances", "reconcile.no_quarantine"],
        )
        for part, delivered in ((rows[:500], 500), (rows[500:], 1000), (rows, 2000)):
            place.add(part)
            assert place.append().records == len(part)
            assert place.append().first_batch is None, "nothing came since"
            assert place.staged() == delivered
            if delivered != 500:
                memory.keep("lake.staged", spark.table(place.staging.sql))
                project.run()
                assert {tuple(row) for row in memory.rows("shop.table1")} == wanted
        place.compact()
        assert place.append().records == 0
        project.run(full_refresh=True)
        assert {tuple(row) for row in memory.rows("shop.table1")} == wanted and len(wanted) == 188
        assert not project.failing_tests("table1")


@pytest.mark.parametrize("place_of_death", DEATHS)
def test_killed_anywhere_the_same_command_brings_each_row_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, place_of_death: str
):
    def reach(reached: str) -> None:
        if reached == place_of_death:
            raise RuntimeError(f"killed at {place_of_death}")

    place.add(OPERATIONS[:10])
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        with pytest.raises(Fault, match=place_of_death):
            place.append()
    place.add(OPERATIONS[10:15])
    place.append()
    assert place.staged() == 15


def test_a_table_that_did_something_else_than_append_is_refused_until_it_is_read_again(
    spark: SparkSession, place: Place
):
    place.add(OPERATIONS[:10])
    before = versions(spark, place.table.sql)[-1]
    place.append()
    place.add(OPERATIONS[10:20])
    key = next(row[0] for row in OPERATIONS[:10] if row[0] not in {later[0] for later in OPERATIONS[10:20]})
    spark.sql(f"delete from {place.table.sql} where COL1 = '{key}'")
    with pytest.raises(UsageError, match=r"was changed by \w+ (at version|in snapshot) \d+, which is not an append"):
        place.append()
    assert place.staged() == 10
    assert place.append(reread=True).records == 10
    assert place.staged() == 20, "only what staging did not hold"
    assert place.append().records == 0
    restore(spark, place.table.sql, before)
    with pytest.raises(UsageError, match="give --reread"):
        place.append()


def test_rows_of_erased_keys_are_dropped_and_counted_also_when_the_table_is_read_again(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
):
    """A note takes the place of each; of a table that is read again, none, since it would come each time."""
    keys = [row[0] for row in OPERATIONS[:6]]
    of_key = sum(key == keys[0] for key in keys)
    place.add(OPERATIONS[:6])
    assert (place.append().records, place.append().erased_records) == (6, 0)
    register_erased(spark, place.staging, monkeypatch, "TABLE1", "COL1", keys[0])
    place.add(OPERATIONS[:6])
    totals = place.append()
    assert (totals.records, totals.erased_records) == (6 - of_key, of_key)
    notes = spark.table(place.staging.sql).where("source = 'erasure'").select("object", "record").collect()
    assert [tuple(note) for note in notes] == [("#erased", '{"erased_record":{"object":"TABLE1"}}')] * of_key
    staged = spark.table(place.staging.sql).where("object <> '#cut'").count()
    totals = place.append(reread=True)
    assert (totals.records, totals.erased_records) == (0, 2 * of_key)
    assert spark.table(place.staging.sql).where("object <> '#cut'").count() == staged


def test_a_restore_that_only_brings_files_back_is_no_append(spark: SparkSession, place: Place):
    place.add(OPERATIONS[:5])
    before = versions(spark, place.table.sql)[-1]
    spark.sql(f"delete from {place.table.sql}")
    place.add(OPERATIONS[5:8])
    assert place.append().records == 3
    spark.sql(f"delete from {place.table.sql}")
    place.append(reread=True)
    restore(spark, place.table.sql, before)
    with pytest.raises(UsageError, match="give --reread"):
        place.append()
    assert place.staged() == 3


def test_tables_that_no_change_can_be_read_from_are_refused(spark: SparkSession, place: Place):
    spark.sql(
        f"create table if not exists appends.merged using {file_format()} as "
        "select 1 as id, named_struct('uuid', 'u', 'source_timestamp', 1L, 'is_deleted', true) as datastream_metadata"
    )
    spark.sql(f"create table if not exists appends.plain using {file_format()} as select 1 as id")
    for name, sentence in {
        "merged": "has no change_sequence_number and no change_type, so its rows have no order",
        "plain": "has no column datastream_metadata",
        "nowhere": "There is no table",
    }.items():
        with pytest.raises(UsageError, match=sentence):
            place.append(tables=(TableName(("appends", name)),))
    with pytest.raises(UsageError, match="--object '#cut' is not a valid name"):
        place.append(object="#cut")
    for name in ("merged", "plain"):
        spark.sql(f"drop table appends.{name}")
