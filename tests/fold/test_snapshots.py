"""Differences between snapshots of a table without a log: what orders them, what a row is, and what cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from datastream import Staged
from long_notes import long_record
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession
from reconcile_jobs.erasure.tables import ErasureTables, Found
from reconcile_jobs.keyed_records import SNAPSHOT, Left
from reconcile_jobs.staging import TableName

COLUMNS = {"id": "bigint", "name": "string", "small": "tinyint"}
DAYS = [f"2026-05-0{day}T01:30:00.000000000Z" for day in (1, 2, 3)]
MODELS = {"rows": "current_state", "lives": "history"}


def difference(change: str, id_: int, day: int = 0, name: str | None = None, /, **said: Any) -> str:
    """Return what the job stages of a key; of a key that the snapshot lacks, the row has the key alone."""
    row = {"id": str(id_)} | ({} if change == "delete" else {"name": name, "small": "1"})
    whole = {"snapshot": f"load {day}", "taken_at": DAYS[day], "change": change, "key": {"id": str(id_)}, "row": row}
    return json.dumps({field: value for field, value in (whole | said).items() if value != "left out"})


# Of each key in the order of the moments, which is not that of the texts `delete`, `insert` and `update`.
SNAPSHOTS = [
    [*(difference("insert", id_, 0, "a") for id_ in (1, 2, 3, 5)), difference("insert", 6, 0, "a")],
    [difference("update", 1, 1, "b"), difference("delete", 2, 1), difference("delete", 3, 1),
     difference("update", 5, 1, None)],
    [difference("insert", 3, 2, "c"), difference("insert", 4, 2, "d")],
]  # fmt: skip
# A nanosecond apart.
SNAPSHOTS[1].append(difference("update", 6, 0, "b", taken_at=DAYS[0].replace("000Z", "001Z")))
ROWS = {(1, "b"), (3, "c"), (4, "d"), (5, None), (6, "b")}
LIVES = {
    (1, "a", False), (1, "b", True), (2, "a", False), (3, "a", False), (3, "c", True), (4, "d", True), (5, "a", False),
    (5, None, True),
}  # fmt: skip

FORM = "the record does not have the form of a difference between snapshots"
UNPLACED = "taken_at, which orders snapshots, is missing or unreadable"
MALFORMED = [
    (FORM, difference("insert", 90)[:-2]),
    (FORM, difference("insert", 91, row=["a"])),
    ("the record has no row", difference("insert", 92, row=None)),
    ("the record has no row", difference("delete", 93, row="left out")),
    ("change 'upsert' is unknown", difference("upsert", 94)),
    ("change 'INSERT' is unknown", difference("INSERT", 95)),
    ("change is missing", difference("insert", 96, change="left out")),
    (UNPLACED, difference("insert", 97, taken_at="left out")),
    (UNPLACED, difference("update", 98, taken_at="2026-02-30T00:00:00Z")),
    (UNPLACED, difference("delete", 99, taken_at="1969-12-31T23:59:59Z")),
    ("too long for staging", long_record(difference("insert", 100))),
    ("small: '300' is not exactly a tinyint", difference("insert", 101, row={"id": "101", "small": "300"})),
    ("key id is missing or NULL", difference("delete", 102, row={"name": "x"})),
]


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def project_of(memory: Memory, name: str) -> MemoryProject:
    project = memory.project(name)
    project.source(f"{name}_lake", "changes")
    for model, materialized in MODELS.items():
        project.model(
            model,
            f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n"
            "{{ reconcile.snapshots(source('lake', 'changes'), object='countries') }}",
            COLUMNS,
            data_tests=["reconcile.ledger_balances"],
        )
    return project


def test_the_moments_of_the_snapshots_order_whatever_comes_first(memory: Memory) -> None:
    project = project_of(memory, "differences")
    for batch, records in enumerate(reversed(SNAPSHOTS), 1):
        rows = [Staged(text, "countries", batch, source="snapshot") for text in records]
        memory.stage("differences_lake.changes", rows)
        project.run()
    for again in (False, True):
        if again:
            project.run(full_refresh=True)
        assert {(row.id, row.name) for row in memory.rows("differences.rows")} == ROWS
        lives = {(row.id, row.name, row.is_current) for row in memory.rows("differences.lives") if row.id != 6}
        assert lives == LIVES
        assert memory.rows("differences.rows__quarantine") == []
        assert project.failing_tests("rows") == project.failing_tests("lives") == set()
    ids = {(row.id, row._change_id) for row in memory.rows("differences.lives") if row.id in (1, 4)}
    assert ids == {(1, "load 0"), (1, "load 1"), (4, "load 2")}


def test_what_is_no_difference_is_quarantined_and_the_others_arrive(memory: Memory) -> None:
    records = [*(text for _, text in MALFORMED), difference("insert", 1, 0, "a")]
    memory.stage("no_differences_lake.changes", [Staged(text, "countries", 1, source="snapshot") for text in records])
    project = project_of(memory, "no_differences")
    project.run("rows")
    assert [(row.id, row.name, row.small) for row in memory.rows("no_differences.rows")] == [(1, "a", 1)]
    reasons = {row.record: row._change_error for row in memory.rows("no_differences.rows__quarantine")}
    assert len(reasons) == len(MALFORMED)
    assert [(words, reasons[text]) for words, text in MALFORMED if words not in reasons[text]] == []
    assert project.failing_tests("rows") == set()


def test_an_erasure_lowers_the_number_of_rows_of_the_newest_snapshot_by_the_keys_that_it_has(spark: SparkSession):
    """Otherwise the next snapshot would be refused, since records of its predecessor seem to be gone."""

    def cut(number: int, object_: str, rows: int) -> str:
        return json.dumps({"number": number, "object": object_, "rows": rows}, separators=(",", ":"))

    records = [(record, "countries", batch) for batch, day in enumerate(SNAPSHOTS, 1) for record in day]
    # Of a row with a new value in the erased column, an earlier record goes, and the snapshot keeps the row.
    records.append((difference("insert", 6, 2, "c"), "cities", 3))
    cuts = [(cut(1, "countries", 5), 1), (cut(2, "countries", 3), 2), (cut(3, "cities", 9), 3),
            (cut(4, "countries", 5), 3)]  # fmt: skip
    rows = [(record, "snapshot", object_, batch) for record, object_, batch in records]
    rows += [(record, "snapshot", "#cut", batch) for record, batch in cuts]
    rows.append((cut(9, "countries", 1), "datastream", "#cut", 9))
    spark.createDataFrame(rows, "record string, source string, object string, batch bigint").createOrReplaceTempView(
        "staged_snapshots"
    )

    def becomes(*erased: tuple[str, str, int]) -> dict[tuple[int, str], int]:
        tables = ErasureTables.__new__(ErasureTables)
        tables.spark, tables.staging, tables._records = spark, TableName(("staged_snapshots",)), SNAPSHOT
        found = [
            Found(object_, batch, sha256(record.encode()).hexdigest(), left=Left("{}", True))
            for record, object_, batch in erased
        ]
        corrected = tables._cuts_of_snapshots(found)
        assert all(row[0] == "#cut" and row[4:] == (None, None) for row in corrected)
        digests = {sha256(record.encode()).hexdigest() for record, _ in cuts}
        assert {row[2] for row in corrected} <= digests
        said = [(row[1], json.loads(row[3])) for row in corrected]
        return {(batch, of["object"]): of["rows"] for batch, of in said}

    def of_key(id_: int) -> list[tuple[str, str, int]]:
        return [row for row in records if f'"key": {{"id": "{id_}"}}' in row[0]]

    assert becomes(*of_key(1)) == {(3, "countries"): 4}
    assert becomes(*of_key(2)) == {}, "the newest snapshot does not have the key"
    assert becomes(*of_key(3), *of_key(4)) == {(3, "countries"): 3}
    assert becomes(*of_key(6)) == {(3, "countries"): 4, (3, "cities"): 8}
    assert becomes(of_key(1)[0]) == {}, "its newest record stays, and so does the row"
    assert becomes(*of_key(2)[:1], *of_key(3)[:2]) == {}
