"""Single corruptions of a base table, of every kind and type: `reconcile.parity` finds each and no more."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
from corruptions import (
    DDL,
    DECLARED,
    FAR,
    KINDS,
    SNAPSHOT,
    Corruptions,
    by_checksums,
    found,
    record,
    true_rows,
)
from datastream import Staged
from memory import Memory
from plain_dbt import Relation
from pyspark.sql import SparkSession

ROWS, OF_EACH_KIND = 500, 10
POSITIONS = {"at the position": {"allowance": "1 second"}, "as they are": {"as_of": "now"}}
Found = list[tuple[str, tuple[str, str | None]]]


class Outcome(NamedTuple):
    """What a comparison of equal tables came to, the corruptions, and what was found of them."""

    before: Any
    corruptions: Corruptions
    found: dict[str, Found]
    # The rows of both sides and the ids by checksums, before and after the corruptions.
    checksums: list[tuple[Any, set[str]]]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession) -> Outcome:
    rows = true_rows(random.Random(20261122), ROWS)
    corruptions = Corruptions(rows, OF_EACH_KIND * len(KINDS))
    with Memory(spark) as memory:
        lake = Corrupted(memory, rows)
        lake.compare("at the position")
        (before,) = memory.rows("corrupted.reconcile_parity")
        checksums = [lake.by_checksums()]
        lake.corrupt(corruptions)
        checksums.append(lake.by_checksums())
        return Outcome(before, corruptions, {name: lake.compare(name) for name in POSITIONS}, checksums)


class Corrupted:
    """A model that equals its source until its base table is corrupted."""

    def __init__(self, memory: Memory, rows: dict[int, Any]) -> None:
        self.memory, self.project = memory, memory.project("corrupted")
        self.project.source("lake", "changes")
        self.project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.things') }}",
            DECLARED,
        )
        memory.stage("lake.changes", [Staged(record(row), "shop.things", 1) for row in rows.values()])
        self.project.run("things")
        memory.keep("lake.things", self._frame(list(rows.values())), SNAPSHOT)

    def corrupt(self, corruptions: Corruptions) -> None:
        base = self.memory.table("corrupted.things__base")
        left = base.where(~base.id.isin(list(corruptions.kinds)))
        instead = self._frame(corruptions.instead).selectExpr(
            "*", "'0000/1' as _change_sequence", "current_timestamp() as _change_time", "1L as _change_batch",
            "false as _deleted",
        )  # fmt: skip
        self.memory.keep("corrupted.things__base", left.unionByName(instead))

    def compare(self, position: str) -> Found:
        """Run the test, and return what it wrote down."""
        said = {"compare_to": Relation("lake", "things"), "key": "id", **POSITIONS[position]}
        failing = self.project.failing("parity", "things", **said)
        (run,) = self.memory.table("corrupted.reconcile_parity").orderBy("recorded_at").tail(1)
        assert (run.position is None) == (position == "as they are")
        assert len(failing) == run.confirmed == run.compared - run.matched
        return found(
            self.memory.table("corrupted.reconcile_parity_differences").where(f"run_id = '{run.run_id}'").collect()
        )

    def by_checksums(self) -> tuple[Any, set[str]]:
        """Compare what readers see with the source, by the sums that a proof compares."""
        return by_checksums(self.memory.spark, self.memory.table("lake.things"), self.memory.table("corrupted.things"))

    def _frame(self, rows: list[Any]) -> Any:
        return self.memory.spark.createDataFrame([tuple(row.values()) for row in rows], DDL)


def test_without_any_corruption_none_is_found(outcome: Outcome) -> None:
    assert (outcome.before.verdict, outcome.before.compared, outcome.before.matched) == ("match", ROWS, ROWS)
    assert outcome.before.model_digest == outcome.before.source_digest


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_corruption_of_a_kind_is_found_and_named(outcome: Outcome, kind: str, position: str) -> None:
    ids = {id for id, of in outcome.corruptions.kinds.items() if of == kind}
    expected = {id: what for id, what in outcome.corruptions.expected.items() if int(id) % FAR in ids}
    assert len(expected) == OF_EACH_KIND
    assert {id: what for id, what in outcome.found[position] if int(id) % FAR in ids} == expected


@pytest.mark.parametrize("position", POSITIONS)
def test_nothing_else_is_found_and_nothing_twice(outcome: Outcome, position: str) -> None:
    assert Counter(outcome.found[position]) == Counter(outcome.corruptions.expected.items())


def test_checksums_find_every_corruption_and_nothing_else(outcome: Outcome) -> None:
    (before, none), (after, ids) = outcome.checksums
    assert before.is_equal and before.rows == (ROWS, ROWS) and not none
    assert ids == {*outcome.corruptions.expected} and len(ids) == OF_EACH_KIND * len(KINDS)
    assert len(after.source_rows) < ROWS
