"""The ledger has the reasons and the sizes that the tables of the models have, whatever runs came before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import Relation
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import lit
from spanner import backfill_record, data_change_record, mod

STAGING, BASE, LEDGER = "lake.changes", "shop.orders__base", "shop.reconcile_ledger"


def change(batch: int, id_: int, n: object, **said: str) -> Staged:
    record = event("postgresql", {"id": id_, "n": n}, lsn=f"0/{batch}{id_:x}", **said)
    return Staged(record, "shop_orders", batch, origin=f"{batch}.json")


@pytest.fixture
def project(spark: SparkSession) -> Iterator[MemoryProject]:
    with Memory(spark) as memory:
        project = memory.project("shop")
        project.source("lake", "changes")
        declare(project)
        yield project


def declare(project: MemoryProject, **config: object) -> None:
    project.model(
        "orders",
        f"{{{{ config(materialized='current_state', unique_key='id', **{config}) }}}}\n"
        "{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_orders') }}",
        {"id": "bigint", "n": "tinyint"},
    )


def in_ledger(project: MemoryProject) -> set[Row]:
    return set(project.memory.sql(project.macros.quarantine_reasons([project.node("orders")])).collect())


def in_quarantine(project: MemoryProject) -> set[Row]:
    """What the table itself says, by the statement that asks the quarantine of a view."""
    asked = project.macros._reasons_of_view("shop.orders", "`shop`.`orders__quarantine`", ["id"])
    return set(project.memory.sql(asked).collect())


def size(project: MemoryProject) -> int | None:
    project.run("reconcile_status", "reconcile_models", "reconcile_quarantine")
    (row,) = project.memory.rows("shop.reconcile_models")
    found: int | None = row.stored_rows
    return found


def test_reasons_and_size_are_those_of_the_tables_after_increments_a_replay_and_a_rebuild(
    project: MemoryProject,
) -> None:
    memory = project.memory
    batches = {
        1: [change(1, 1, 1), change(1, 2, 300), change(1, 3, 301)],
        2: [change(2, 4, 302), change(2, 5, 1, change_type="MOVE"), change(2, 6, 6)],
        3: [change(3, 7, 7), change(3, 1, None, change_type="DELETE")],
        4: [change(4, 8, 1, change_type="MOVE"), change(4, 9, 9)],
    }
    seen = []

    def agree() -> None:
        assert size(project) == memory.table(BASE).count()
        assert in_ledger(project) == in_quarantine(project) == {*memory.rows("shop.reconcile_quarantine")}
        seen.append({(row.reason[:2], row.records, row.first_batch, row.last_batch) for row in in_ledger(project)})

    versions = {}
    for first, last in ((1, 1), (2, 3), (4, 4)):
        memory.stage(STAGING, [each for batch in range(first, last + 1) for each in batches[batch]])
        project.run("orders")
        versions[last] = memory.version(BASE)
        agree()
    assert seen == [{("n:", 2, 1, 1)}, {("n:", 3, 1, 2), ("ch", 1, 2, 2)}, {("n:", 3, 1, 2), ("ch", 2, 2, 4)}]
    # A restored base table is replayed from the middle of what the ledger has.
    memory.restore(BASE, versions[1])
    project.run("orders")
    assert memory.rows(LEDGER)[-1].kind in {"apply", "replay"}
    agree()
    project.run("orders", full_refresh=True)
    agree()
    assert seen[2] == seen[3] == seen[4]


def test_of_very_many_reasons_the_ledger_keeps_those_of_most_records_and_the_number_of_the_others(
    project: MemoryProject,
) -> None:
    """An apostrophe in a value ends what counts as quoted, so that each such value is a reason of its own."""
    bad = [change(1, n, f"it's {n:03} ' wrong") for n in range(150)]
    project.memory.stage(STAGING, [*bad, *(change(2, n, "it's 149 ' wrong") for n in range(200, 203))])
    project.run("orders")
    (account,) = project.memory.rows(LEDGER)
    assert len(account.quarantine_reasons) == 101
    shown = {row.reason: row for row in in_ledger(project)}
    assert len(shown) == 101 and sum(row.records for row in shown.values()) == 153
    (most,) = (row for row in shown.values() if row.records == 4)
    assert (most.first_batch, most.last_batch, most.example_key) == (1, 2, '{"id":"149"}')
    others = shown["reasons that only shop.orders__quarantine has"]
    assert (others.records, others.first_batch, others.last_batch, others.example_key) == (50, 1, 1, None)


def test_of_ranges_that_an_earlier_version_wrote_the_ledger_has_the_number_of_records(project: MemoryProject) -> None:
    project.memory.stage(STAGING, [change(1, 1, 300), change(1, 2, 2)])
    project.run("orders")
    project.memory.keep(LEDGER, project.memory.table(LEDGER).drop("quarantine_reasons", "stored_rows"))
    assert len(project.macros.get_alter_ledger_statements()) == 1
    of_before = project.memory.table(LEDGER)
    for name, type_ in (("quarantine_reasons", project.macros._type_of_reasons()), ("stored_rows", "bigint")):
        of_before = of_before.withColumn(name, lit(None).cast(type_))
    project.memory.keep(LEDGER, of_before)
    assert {(row.reason, row.records, row.first_batch) for row in in_ledger(project)} == {
        ("reasons that only shop.orders__quarantine has", 1, 1)
    }
    assert size(project) is None, "not known until the next records come"
    project.memory.stage(STAGING, [change(2, 3, 301), change(2, 4, 4)])
    project.run("orders")
    assert {(row.records, row.first_batch) for row in in_ledger(project)} == {(1, 1), (1, 2)}
    assert size(project) == 2


def test_a_rebuild_from_a_base_snapshot_keeps_the_reasons_of_the_batches_that_were_purged(
    project: MemoryProject,
) -> None:
    """As the quarantine keeps their records."""
    memory = project.memory
    memory.stage(STAGING, [change(1, 1, 1), change(1, 2, 300)])
    project.run("orders")
    memory.keep("lake.kept", memory.table(BASE), {"reconcile.base_snapshot": "1"})
    declare(project, meta={"base_snapshot": "lake.kept"})
    memory.stage(STAGING, [change(2, 3, 3), change(2, 4, 301)])
    project.run("orders")
    before = in_ledger(project)
    for statement in project.macros.get_purge_statements(Relation("lake", "changes"), "shop_orders", 1):
        memory.query(statement)
    memory.delete(STAGING, "batch = 1")
    project.run("orders", full_refresh=True)
    assert memory.rows(LEDGER)[-1].first_batch == 2
    assert in_ledger(project) == before == in_quarantine(project)


def test_the_example_of_a_record_of_several_rows_is_the_row_that_is_quarantined(project: MemoryProject) -> None:
    project.model(
        "orders",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='orders') }}",
        {"id": "bigint", "n": "tinyint"},
    )
    mods = data_change_record([mod({"id": "8"}, {"n": "1"}), mod({"id": "7"}, {"n": "300"})])
    rows = backfill_record([({"id": "9"}, {"n": "1"}), ({"id": "5"}, {"n": "x/0"})], "2026-11-21T11:33:12Z")
    for batch, record in enumerate((mods, rows), 1):
        project.memory.stage(STAGING, [Staged(record, "orders", batch, source="spanner")])
        project.run("orders")
        assert in_ledger(project) == in_quarantine(project)
    examples = project.memory.table(LEDGER).selectExpr("explode(quarantine_reasons.example_key) as key").collect()
    assert {row.key for row in examples} == {'{"id":"5"}', '{"id":"7"}'}
