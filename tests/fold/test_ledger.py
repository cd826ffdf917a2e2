"""The account of what was applied: `ledger_balances` finds what is wrong with it, and what was purged is remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import Relation
from pyspark.sql import SparkSession

LEDGER = "account.reconcile_ledger"
GAP, UNKNOWN = "batches before this range are in no range", "the base table holds this batch, and the ledger does not"
# What happened to the ledger, as a SELECT of it, and what is found of which range.
DAMAGE = {
    "a range in the middle is gone": ("* from {} where first_batch <> 2", {(3, 3): GAP, (2, 2): UNKNOWN}),
    "the last range is gone": ("* from {} where first_batch <> 3", {(3, 3): UNKNOWN}),
    "the first range is gone": ("* from {} where first_batch <> 1", {(2, 2): GAP, (1, 1): UNKNOWN}),
    "a record was not delivered": (
        "* except (delivered), delivered - 1L as delivered from {}",
        dict.fromkeys([(1, 1), (2, 2), (3, 3)], "the classes do not add up to delivered; staging holds another number"),
    ),
    "a record was applied without an effect": (
        "* except (inserted), if(first_batch = 3, inserted - 1, inserted) as inserted from {}",
        {(3, 3): "the effects do not add up to applied"},
    ),
    "a record too many is accounted for": (
        "* except (delivered, duplicate), delivered + 1L as delivered, duplicate + 1L as duplicate from {}",
        dict.fromkeys([(1, 1), (2, 2), (3, 3)], "staging holds another number of records"),
    ),
}


@pytest.fixture(scope="module")
def project(spark: SparkSession) -> Iterator[MemoryProject]:
    """A model with three ranges of a batch of two records each."""
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
            records = [event("mysql", {"id": 2 * batch + n}, object="things") for n in (0, 1)]
            memory.stage("account_lake.changes", [Staged(record, "things", batch) for record in records])
            project.run("things")
        assert project.failing("ledger_balances", "things") == []
        yield project


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_ledger_that_does_not_balance_is_found(project: MemoryProject, damage: str) -> None:
    select, expected = DAMAGE[damage]
    memory = project.memory
    version = memory.version(LEDGER)
    memory.keep(LEDGER, memory.sql("select " + select.format("`account`.`reconcile_ledger`")))
    found = {(row.first_batch, row.last_batch): row.finding for row in project.failing("ledger_balances", "things")}
    memory.restore(LEDGER, version)
    assert found.keys() == expected.keys()
    assert all(found[of].startswith(says) for of, says in expected.items()), found


def test_of_several_purges_of_an_object_the_last_one_counts(project: MemoryProject) -> None:
    staging, memory = Relation("account_lake", "changes"), project.memory
    version = memory.version(LEDGER)
    for object_, batch in (("things", 2), ("things", 1), ("others", 3)):
        memory.query(project.macros.get_purge_statement(staging, object_, batch))
    assert project.macros.purged_through(staging, ["things", "another"]) == {"things": 2}
    memory.restore(LEDGER, version)
