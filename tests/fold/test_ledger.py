"""The account of what was applied: `ledger_balances` finds what is wrong with it, and what was purged is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError, Relation, Rows
from pyspark.sql import SparkSession
from row_deletes import COLUMNS, OBJECT, change

LEDGER = "account.reconcile_ledger"
GAP, UNKNOWN = (
    "the ledger has a gap of batches before this range",
    "the base table has this batch, but the ledger does not",
)
# What happened to the ledger, as a SELECT of it, and what is found of which range.
DAMAGE = {
    "a range in the middle is gone": ("* from {} where first_batch <> 2", {(3, 3): GAP, (2, 2): UNKNOWN}),
    "the last range is gone": ("* from {} where first_batch <> 3", {(3, 3): UNKNOWN}),
    "the first range is gone": ("* from {} where first_batch <> 1", {(2, 2): GAP, (1, 1): UNKNOWN}),
    "a record was not delivered": (
        "* except (delivered), delivered - 1L as delivered from {}",
        dict.fromkeys(
            [(1, 1), (2, 2), (3, 3)], ("the classes do not add up to delivered; staging has a different number")
        ),
    ),
    "a record was applied without an effect": (
        "* except (inserted), if(first_batch = 3, inserted - 1, inserted) as inserted from {}",
        {(3, 3): "the effects do not add up to applied"},
    ),
    "a record too many is accounted for": (
        "* except (delivered, duplicate), delivered + 1L as delivered, duplicate + 1L as duplicate from {}",
        dict.fromkeys([(1, 1), (2, 2), (3, 3)], "staging has a different number of records"),
    ),
}


def stage(memory: Memory, batch: int, first: int | None = None) -> None:
    """Stage a batch of two new rows, whose ids are `first`, or twice the batch, and the next one."""
    first = 2 * batch if first is None else first
    records = [event("mysql", {"id": first + n}, object="things") for n in (0, 1)]
    memory.stage("account_lake.changes", [Staged(record, "things", batch) for record in records])


@pytest.fixture(scope="module")
def built(spark: SparkSession) -> Iterator[MemoryProject]:
    """A model that has applied three batches of two records each, one in each run."""
    with Memory(spark) as memory:
        project = memory.project("account")
        project.source("account_lake", "changes")
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}",
            {"id": "bigint"},
        )
        for batch in (1, 2, 3):
            stage(memory, batch)
            project.run("things")
        assert project.failing("ledger_balances", "things") == []
        yield project


@pytest.fixture
def project(built: MemoryProject) -> Iterator[MemoryProject]:
    """The same for one test, which may change what it likes."""
    tables = (LEDGER, "account_lake.changes", "account.things__base", "account.things__quarantine")
    versions = {table: built.memory.version(table) for table in tables}
    yield built
    for table, version in versions.items():
        built.memory.restore(table, version)


def ids(project: MemoryProject) -> list[int]:
    return sorted(row.id for row in project.memory.table("account.things").collect())


@pytest.mark.parametrize("rebuilt", [False, True], ids=["applied", "rebuilt"])
def test_a_clock_that_is_set_back_orders_nothing(project: MemoryProject, rebuilt: bool) -> None:
    memory = project.memory
    if rebuilt:
        project.run("things", full_refresh=True)
    future = "* except (recorded_at), recorded_at + interval 1 day as recorded_at"
    memory.keep(LEDGER, memory.sql(f"select {future} from `account`.`reconcile_ledger`"))
    older = memory.version("account.things__base")
    for batch in (4, 5):
        stage(memory, batch)
        assert project.run("things")["things"].startswith(f"APPLY batches {batch}-{batch}")
    memory.restore("account.things__base", older)
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert ids(project) == [*range(2, 12)]
    assert project.failing("ledger_balances", "things") == []


def test_staging_that_was_restored_is_noticed_for_good(project: MemoryProject) -> None:
    memory = project.memory
    memory.restore("account_lake.changes", 0)
    for batch, first in ((2, 20), (3, 30), (4, 40), (5, 50)):
        stage(memory, batch, first)
        if batch > 2:
            with pytest.raises(
                CompilerError, match=r"batch 3 was applied to .*, but account_lake\.changes now has another batch under"
            ):
                project.run("things")
    project.run("things", full_refresh=True)
    assert ids(project) == [2, 3, 20, 21, 30, 31, 40, 41, 50, 51]
    # The accounts of the table before the rebuild counted other records.
    stage(memory, 2, 20)
    project.run("things", full_refresh=True)
    assert project.failing("ledger_balances", "things") == []


def meanwhile(project: MemoryProject, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen just before the next MERGE into the base table."""
    merge, waits = project.memory._merge, [act]

    def merging(sql: str) -> Rows:
        if sql.startswith("merge into `account`.`things__base`") and waits:
            waits.pop()()
        return merge(sql)

    monkeypatch.setattr(project.memory, "_merge", merging)


def test_a_base_table_that_is_restored_during_a_run_stops_the_run(
    project: MemoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = project.memory
    older = memory.version("account.things__base")
    stage(memory, 4)
    project.run("things")
    stage(memory, 5)
    meanwhile(project, monkeypatch, lambda: memory.restore("account.things__base", older))
    with pytest.raises(Exception, match="another run of this model wrote at the same time, or the table was restored"):
        project.run("things")
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert ids(project) == list(range(2, 12))
    assert project.failing("ledger_balances", "things") == []


def test_staging_that_is_restored_during_a_run_is_noticed_when_its_numbers_come_again(
    project: MemoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = project.memory
    stage(memory, 4)
    meanwhile(project, monkeypatch, lambda: memory.delete("account_lake.changes", "batch = 4"))
    project.run("things")
    stage(memory, 4, first=50)
    with pytest.raises(CompilerError, match="now has another batch under this number"):
        project.run("things")


def test_a_base_table_that_is_restored_to_before_a_rebuild_gets_what_the_rebuild_had_read(
    project: MemoryProject,
) -> None:
    memory = project.memory
    whole = memory.version("account_lake.changes")
    memory.delete("account_lake.changes", "batch = 2")
    project.run("things", full_refresh=True)
    assert ids(project) == [2, 3, 6, 7]
    older = memory.version("account.things__base")
    properties = dict(memory.relation_properties("account", "things__base"))
    memory.restore("account_lake.changes", whole)
    project.run("things", full_refresh=True)
    memory.restore("account.things__base", older, properties)
    stage(memory, 4)
    assert project.run("things")["things"].startswith("REPLAY batches 1-4")
    assert ids(project) == list(range(2, 10))
    assert project.failing("ledger_balances", "things") == []


@pytest.mark.parametrize("later", ["a delete without a key", "a copy with an earlier time"])
def test_a_history_that_is_restored_to_any_version_has_all_versions_after_the_next_records(
    spark: SparkSession, later: str
) -> None:
    """A batch that only ends versions, or changes since when they are valid, leaves no record of its own."""
    staging, base = "set_back_lake.changes", "set_back.past__base"
    updated = change(1, 2, "UPDATE", 11, "b", "z")
    copied = json.dumps(json.loads(updated.text) | {"source_timestamp": "2026-01-01T00:00:00Z"})
    told = [
        [change(1, 1, "INSERT", 9, "a", "x").text, change(1, 2, "INSERT", 10, "b", "y").text, updated.text],
        [change(1, None, "DELETE", 12, "a").text if later == "a delete without a key" else copied],
        [change(1, None, "DELETE", 13, "b").text],
    ]
    with Memory(spark) as memory:
        set_back, made_anew = memory.project("set_back"), memory.project("made_anew")
        for project in (set_back, made_anew):
            project.source("set_back_lake", "changes")
            project.model(
                "past",
                "{{ config(materialized='history', unique_key=['history', 'id']) }}\n"
                f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='{OBJECT}') }}}}",
                COLUMNS,
            )
        kept = []
        for batch, records in enumerate(told, start=1):
            memory.stage(staging, [Staged(text, OBJECT, batch) for text in records])
            set_back.run("past")
            kept.append((memory.version(base), dict(memory.relation_properties("set_back", "past__base"))))
        for batch, (version, properties) in enumerate(kept, start=len(told) + 1):
            memory.restore(base, version, properties)
            memory.stage(staging, [Staged(change(1, batch, "INSERT", 10 + batch, "c", "w").text, OBJECT, batch)])
            set_back.run("past")
            made_anew.run("past", full_refresh=True)
            seen, right = (sorted(memory.table(name).toJSON().collect()) for name in (base, "made_anew.past__base"))
            assert seen == right
            assert set_back.failing("ledger_balances", "past") == []


def test_a_quarantine_that_was_restored_is_noticed_until_it_is_whole(project: MemoryProject) -> None:
    """Its records are not delivered again, and `no_quarantine` passes without them."""
    memory, quarantine = project.memory, "account.things__quarantine"
    empty, older = memory.version(quarantine), memory.version("account.things__base")
    for batch in (4, 5):
        bad = event("mysql", {"id": "none"}, object="things")
        memory.stage("account_lake.changes", [Staged(bad, "things", batch)])
        stage(memory, batch)
        project.run("things")
    whole = memory.version(quarantine)
    memory.restore(quarantine, empty)
    assert project.run("things")["things"] == "nothing new"
    told = "the quarantine has a different number of records"
    found = project.failing("ledger_balances", "things")
    assert [(row.first_batch, row.finding) for row in found] == [(4, told), (5, told)]
    memory.restore(quarantine, whole)
    assert project.failing("ledger_balances", "things") == []
    # What is applied again comes to quarantine again.
    memory.delete(quarantine, "_change_batch = 5")
    memory.restore("account.things__base", older)
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert project.failing("ledger_balances", "things") == []
    memory.restore(quarantine, empty)
    project.run("things", full_refresh=True)
    assert project.failing("ledger_balances", "things") == []
    assert memory.table(quarantine).count() == 2


def test_a_ledger_of_before_its_rows_had_numbers_is_gone_on_with(project: MemoryProject) -> None:
    memory = project.memory
    memory.keep(LEDGER, memory.table(LEDGER).drop("entry", "last_appended_at"))
    assert project.run("things")["things"] == "nothing new"
    for batch in (4, 5):
        stage(memory, batch)
        project.run("things")
    rows = memory.table(LEDGER).orderBy("last_batch").collect()
    assert [row.entry for row in rows] == [None, None, None, 1, 2]
    assert project.failing("ledger_balances", "things") == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_ledger_that_does_not_balance_is_found(project: MemoryProject, damage: str) -> None:
    select, expected = DAMAGE[damage]
    memory = project.memory
    memory.keep(LEDGER, memory.sql("select " + select.format("`account`.`reconcile_ledger`")))
    found = {(row.first_batch, row.last_batch): row.finding for row in project.failing("ledger_balances", "things")}
    assert found.keys() == expected.keys()
    assert all(found[of].startswith(says) for of, says in expected.items()), found


def test_a_record_that_is_in_no_batch_is_found(project: MemoryProject) -> None:
    """Somebody put it into staging by hand; no range of batches ever has it."""
    memory, bad = project.memory, event("mysql", {"id": 99}, object="things")
    memory.stage("account_lake.changes", [Staged(bad, "things", batch) for batch in (-1, 0)])
    without = "select * except (batch, appended_at), nullif(batch, -1) as batch, appended_at"
    memory.keep("account_lake.changes", memory.sql(f"{without} from `account_lake`.`changes`"))
    assert project.run("things")["things"] == "nothing new"
    found = project.failing("ledger_balances", "things")
    told = "staging holds records without the number of an append, which no run reads"
    assert {(row.first_batch, row.finding) for row in found} == {(None, told), (0, told)}


def test_of_several_purges_of_an_object_the_last_one_counts(project: MemoryProject) -> None:
    staging, memory = Relation("account_lake", "changes"), project.memory
    for object_, batch in (("things", 2), ("things", 1), ("others", 3)):
        for statement in project.macros.get_purge_statements(staging, object_, batch):
            memory.query(statement)
    assert project.macros.purged_through(staging, ["things", "another"]) == {"things": 2}
