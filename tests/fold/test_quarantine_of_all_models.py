"""One test on a staging table asks all models that read it, says why it fails, and so does one view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import Relation
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit
from reconcile_jobs.monitoring.facts import Limits, findings
from spanner import data_change_record, mod

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
        project.run("reconcile_quarantine", "reconcile_status", "reconcile_models", "one", "two", "three")
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
        (3, (
            "shop.four: the model four is declared and was never built: run `dbt run --select four`, and see what it "
            "says if it fails; or disable the model"
        )),
    }  # fmt: skip
    before = said_of(project)
    project.memory.stage(STAGING, [change("one", 3, 8, 1)])
    project.memory.stage(STAGING, [change("one", 4, 9, 1), change("three", 4, 10, 1)])
    rows = {row.relation: row for row in project.memory.rows("shop.reconcile_models")}
    assert {name: (row.state, row.batches_behind, row.records_behind) for name, row in rows.items()} == {
        "shop.one": ("wrong", 2, 2), "shop.two": ("wrong", 0, 0), "shop.three": ("wait", 1, 1),
        "shop.four": ("look", None, None),
    }  # fmt: skip
    staged = {row.batch: row.appended_at for row in project.memory.rows(STAGING)}
    assert (rows["shop.one"].as_of, rows["shop.two"].as_of) == (staged[3], staged[4]), "two waits for nothing"
    ((_, one), (_, three)) = sorted(said_of(project) - before)
    assert one.startswith("shop.one: 2 records not applied yet, batches 3 to 4, the first of 20")
    assert three.startswith("shop.three: 1 record not applied yet, batch 4, the first of 20")
    project.run("one", "three")
    assert said_of(project) == before


def test_each_model_has_a_row_and_the_worst_comes_first(project: MemoryProject) -> None:
    """After the test above, in which one and three applied a second range."""
    shown = project.memory.rows("shop.reconcile_models")
    assert [(row.relation, row.state) for row in shown] == [
        ("shop.one", "wrong"), ("shop.two", "wrong"), ("shop.four", "look"), ("shop.three", "right"),
    ]  # fmt: skip
    one, _, four, three = shown
    nothing = {
        name for name, value in four.asDict().items() if value is None or value == [] or value is False
    }  # fmt: skip
    assert {*four.asDict()} - nothing == {"relation", "state", "staging", "materialized"}, "nothing is known of it"
    shown = [row for row in shown if row.is_built]
    assert [row.relation for row in shown] == ["shop.one", "shop.two", "shop.three"]
    assert {(row.staging, row.materialized, row.batches_behind, row.records_behind) for row in shown} == {
        (STAGING, "current_state", 0, 0)
    }
    (last,) = {row.appended_at for row in project.memory.rows(STAGING) if row.batch == 4}
    assert {row.as_of for row in shown} == {last} and 0 <= three.lag_seconds < 3600
    assert [row.quarantined for row in shown] == [2, 1, 0]
    ((records, reason),) = one.quarantine_reasons
    assert records == 2 and reason.startswith("n: '300' is not exactly a tinyint; declare bigint")
    assert (three.quarantine_reasons, three.drift, three.set_back, three.pending_rows) == ([], [], None, 0)
    assert {(row.parity_verdict, row.compared_at) for row in shown} == {(None, None)}, "it was never compared"
    assert [row.stored_rows for row in shown] == [3, 0, 2]
    assert [sum(day.applied for day in row.days) for row in shown] == [2, 0, 1], "a rebuild is no increment"
    assert all(day.lag_seconds >= 0 for row in shown for day in row.days)


def test_a_staging_table_that_was_set_back_is_wrong_and_one_that_was_purged_is_not(project: MemoryProject) -> None:
    memory, ledger = project.memory, "shop.reconcile_ledger"
    before, now, account = said_of(project), memory.version(STAGING), memory.version(ledger)
    memory.restore(STAGING, 0)
    gone = f"batch 4 was applied, and {STAGING} has no record of it any more"
    assert {said.split(": ")[1] for code, said in said_of(project) - before if code == 1} == {gone}
    shown = {row.relation: row for row in memory.rows("shop.reconcile_models")}
    assert [(name, row.state, row.as_of, row.lag_seconds) for name, row in shown.items() if row.set_back == gone] == [
        ("shop.one", "wrong", None, None), ("shop.three", "wrong", None, None),
    ]  # fmt: skip
    # A ledger of an earlier version does not know when the batch was appended; then the numbers tell.
    untimed = memory.table(ledger).withColumn("last_appended_at", lit(None).cast("timestamp"))
    memory.keep(ledger, untimed)
    assert {row.relation for row in memory.rows("shop.reconcile_models") if row.set_back == gone} == {
        "shop.one", "shop.three",
    }  # fmt: skip
    memory.restore(ledger, account)
    # It goes on from there, and reaches the same numbers.
    memory.stage(STAGING, [change("five", 4, 11, 1)])
    another = f"batch 4 was applied, and {STAGING} has another batch under this number"
    assert {row.set_back for row in memory.rows("shop.reconcile_models")} == {None, another}
    memory.restore(STAGING, now)
    for object_ in ("shop_one", "shop_three"):
        memory.query(project.macros.get_purge_statements(Relation("lake", "changes"), object_, 4)[0])
    # Of a purge of the last batch alone, older records are left, which were not the last that was appended.
    (last,) = {row.appended_at for row in memory.rows(STAGING) if row.batch == 4}
    memory.delete(STAGING, "batch = 4")
    (appended,) = (row for row in memory.rows("shop.reconcile_status") if row.kind == "appended")
    assert (appended.at, appended.first_batch, appended.last_batch) == (last, 1, 4)
    memory.delete(STAGING, "true")
    # What was unrouted is gone with the records; nothing else has changed, and the last append is known.
    assert said_of(project) == {(code, said) for code, said in before if said.startswith("shop.")}
    (appended,) = (row for row in memory.rows("shop.reconcile_status") if row.kind == "appended")
    assert (appended.at, appended.first_batch, appended.last_batch) == (last, None, 4)
    assert {row.as_of for row in memory.rows("shop.reconcile_models") if row.is_built} == {last}
    memory.restore(STAGING, now)
    memory.restore(ledger, account)
    assert said_of(project) == before


def said_of(project: MemoryProject) -> set[tuple[int, str]]:
    rows = project.memory.table("shop.reconcile_status").selectExpr("*", "current_timestamp() as now").collect()
    always = timedelta(days=36500)
    return {(code, said.replace('"', "'")) for code, said in findings(rows, Limits(always, always))}


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


def test_records_that_wait_are_counted_for_the_model_of_their_table_where_an_object_is_of_two(
    spark: SparkSession,
) -> None:
    """`a`.`b_c` and `a_b`.`c` have one object, and each model names its table."""

    def of_table(schema: str, table: str, batch: int, id_: int) -> Staged:
        metadata = {"schema": schema, "table": table, "lsn": f"0/{batch}{id_:x}"}
        return Staged(event("postgresql", {"id": id_, "n": 1}, metadata=metadata), "a_b_c", batch)

    with Memory(spark) as memory:
        memory.stage(STAGING, [of_table("a", "b_c", 1, 1), of_table("a_b", "c", 1, 2)])
        project = memory.project("shop")
        project.source("lake", "changes")
        for name, table in (("one", "'a.b_c'"), ("two", "'a_b.c'")):
            project.model(
                name,
                "{{ config(materialized='current_state', unique_key='id') }}\n"
                f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), table={table}) }}}}",
                COLUMNS,
            )
        project.run("one", "two")
        project.run("reconcile_status")
        memory.stage(STAGING, [of_table("a_b", "c", 2, 3)])
        memory.stage(STAGING, [of_table("a", "b_c", 3, 4), of_table("a", "b_c", 3, 5), of_table("a_b", "c", 3, 6)])
        waiting = {
            (row.relation, row.records, row.first_batch, row.last_batch)
            for row in memory.rows("shop.reconcile_status")
            if row.kind == "not_applied"
        }
        assert waiting == {("shop.one", 2, 3, 3), ("shop.two", 2, 2, 3)}
        project.run("one")
        assert [row.relation for row in memory.rows("shop.reconcile_status") if row.kind == "not_applied"] == [
            "shop.two"
        ]
        # Of two models that go on from different batches of one table, each gets what it has not applied.
        said = project.run("one", "two")
        assert said["one"].startswith("nothing new") and said["two"].startswith("APPLY batches 2-3: 2 of 2 applied")


def test_the_state_has_the_three_commonest_reasons_the_drift_that_is_not_ignored_and_what_is_pending(
    spark: SparkSession,
) -> None:
    """Of four columns of one model values are too great; of a row of the other model only some columns are known."""
    small = ("a", "b", "c", "d")
    rows = [dict.fromkeys(small, 1), *({**dict.fromkeys(small, 1), name: 300} for name in "bcdbcba")]
    records = [
        event("postgresql", {"id": id_, **row, "known": 1, "more": 1}, lsn=f"0/1{id_:x}")
        for id_, row in enumerate(rows, 1)
    ]
    partial = [
        data_change_record([mod({"id": "1"}, {"name": "a", "size": "1"})], "INSERT", table_name="things"),
        data_change_record([mod({"id": "2"}, {"name": "b"})], "UPDATE", table_name="things"),
    ]
    with Memory(spark) as memory:
        memory.stage(STAGING, [Staged(record, "shop_many", 1) for record in records])
        memory.stage("lake.stream", [Staged(record, "things", 1, source="spanner") for record in partial])
        project = memory.project("states")
        project.source("lake", "changes", "stream")
        project.model(
            "many",
            "{{ config(materialized='current_state', unique_key='id', meta={'ignored_columns': ['known']}) }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_many') }}",
            {"id": "bigint", **dict.fromkeys(small, "tinyint")},
        )
        project.model(
            "waiting",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.spanner_change_stream(source('lake', 'stream'), object='things') }}",
            {"id": "bigint", "name": "string", "size": "bigint"},
        )
        project.run("many", "waiting")
        project.run("reconcile_status", "reconcile_models")
        many, waiting = memory.rows("states.reconcile_models")
    assert (many.relation, many.state, many.quarantined, many.pending_rows) == ("states.many", "wrong", 7, 0)
    assert [(records, reason[:2]) for records, reason in many.quarantine_reasons] == [(3, "b:"), (2, "c:"), (1, "a:")]
    assert many.drift == ["column more is new"]
    assert (waiting.relation, waiting.state, waiting.quarantined, waiting.pending_rows) == (
        "states.waiting", "look", 0, 1,
    )  # fmt: skip
