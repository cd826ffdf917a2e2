"""One test on a staging table asks all models that read it, says why it fails, and so does one view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession
from reconcile_jobs.monitoring.facts import Limits, findings

STAGING = "lake.changes"
COLUMNS = {"id": "bigint", "n": "tinyint"}


def change(table: str, batch: int, id_: int, n: int, **said: str) -> Staged:
    record = event("postgresql", {"id": id_, "n": n}, lsn=f"0/{batch}{id_:x}", **said)
    return Staged(record, f"shop_{table}", batch, origin=f"{batch}.json")


STAGED = [
    change("one", 1, 1, 1), change("one", 1, 2, 300), change("one", 2, 3, 301),
    change("two", 2, 4, 1, change_type="MOVE"),
    change("three", 1, 5, 5),
    change("four", 1, 6, 300),  # whose model has not been built
    change("five", 1, 7, 1),  # that no model reads
    Staged("{torn", None, 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def project(spark: SparkSession) -> Iterator[MemoryProject]:
    with Memory(spark) as memory:
        memory.stage(STAGING, STAGED)
        project = memory.project("shop")
        project.source("lake", "changes")
        for name in ("one", "two", "three", "four"):
            project.model(
                name,
                "{{ config(materialized='current_state', unique_key='id') }}\n"
                f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_{name}') }}}}",
                COLUMNS,
            )
        project.run("reconcile_quarantine", "reconcile_status", "one", "two", "three")
        project.end()
        yield project


def test_the_view_has_each_reason_of_each_model_with_an_example(project: MemoryProject) -> None:
    shown = {
        (row.relation, row.reason, row.records, row.first_batch, row.last_batch, row.example_key, row.example_origin)
        for row in project.memory.rows("shop.reconcile_quarantine")
    }
    assert shown == {
        ("shop.one", "n: '300' is not exactly a tinyint; declare bigint", 2, 1, 2, '{"id":"2"}', "1.json"),
        ("shop.two", "change type 'MOVE' is unknown", 1, 2, 2, '{"id":"4"}', "2.json"),
    }  # fmt: skip


def test_a_test_of_the_staging_table_fails_on_what_any_model_could_not_apply(project: MemoryProject) -> None:
    project.logged.clear()
    rows = project.failing("no_quarantine", STAGING)
    assert {(row.relation, row.records) for row in rows} == {("shop.one", 2), ("shop.two", 1)}
    assert project.logged == [
        "no_quarantine of shop.one: 2 times, batches 1 to 2: n: '300' is not exactly a tinyint; declare bigint "
        '(for example the key {"id":"2"})',
        'no_quarantine of shop.two: 1 time, batch 2: change type \'MOVE\' is unknown (for example the key {"id":"4"})',
    ]


def test_a_test_of_a_model_says_its_own_reasons_and_fails_on_the_records(project: MemoryProject) -> None:
    project.logged.clear()
    assert {row._change_batch for row in project.failing("no_quarantine", "one")} == {1, 2}
    assert [said.split(":")[0] for said in project.logged] == ["no_quarantine of shop.one"]
    project.logged.clear()
    assert project.failing("no_quarantine", "three") == []
    assert project.logged == []


def test_an_object_that_is_ignored_hides_no_record_without_an_object(project: MemoryProject) -> None:
    assert {row.object for row in project.failing("no_unrouted", STAGING)} == {None, "shop_five"}
    assert {row.object for row in project.failing("no_unrouted", STAGING, ignore=["shop_five"])} == {None}


def test_the_status_has_a_line_for_each_thing_that_is_not_right(project: MemoryProject) -> None:
    assert said_of(project) == {
        (
            1, "shop.one: 2 records in quarantine, batches 1 to 2: n: '300' is not exactly a tinyint; declare bigint "
            "(for example the key {'id':'2'})",
        ),
        (1, (
            "shop.two: 1 record in quarantine, batch 2: change type 'MOVE' is unknown (for example the key "
            "{'id':'4'})"
        )),
        (1, "lake.changes: 1 record without an object, batch 2: see reconcile_unrouted"),
        (3, "lake.changes: no model reads shop_five, 1 record, batch 1: postgresql, key id"),
    }  # fmt: skip
    before = said_of(project)
    project.memory.stage(STAGING, [change("one", 3, 8, 1), change("one", 4, 9, 1), change("three", 4, 10, 1)])
    ((_, one), (_, three)) = sorted(said_of(project) - before)
    assert one.startswith("shop.one: 2 records not applied yet, batches 3 to 4, the first of 20")
    assert three.startswith("shop.three: 1 record not applied yet, batch 4, the first of 20")
    project.run("one", "three")
    assert said_of(project) == before


def said_of(project: MemoryProject) -> set[tuple[int, str]]:
    rows = project.memory.table("shop.reconcile_status").selectExpr("*", "current_timestamp() as now").collect()
    return {(code, said.replace('"', "'")) for code, said in findings(rows, Limits(timedelta(days=36500)))}


def test_the_accounts_of_all_models_are_judged_at_once(project: MemoryProject) -> None:
    project.logged.clear()
    assert project.failing("ledger_balances", STAGING) == []
    assert project.logged == []
    # Records that no model has been told of, after the range that it has applied.
    project.memory.stage(STAGING, [change("two", 1, 7, 1), change("three", 1, 8, 1), change("three", 1, 9, 1)])
    rows = project.failing("ledger_balances", STAGING)
    assert {(row.relation, row.delivered, row.finding) for row in rows} == {
        ("shop.two", 1, "staging has a different number of records"),
        ("shop.three", 1, "staging has a different number of records"),
    }
    assert project.logged == [
        f"ledger_balances of shop.{name}: 1 time, batches 1 to 2: staging has a different number of records"
        for name in ("three", "two")
    ]
    assert [row.relation for row in project.failing("ledger_balances", "two")] == ["shop.two"]
