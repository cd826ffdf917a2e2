"""The laws, on histories that hypothesis invents, through the SQL that users get.

Many histories lie side by side in one table, their number in the key: a handful of runs proves them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import pytest
from histories import COORDINATES, generate
from lakes import Lake
from laws import Lakehouse, StagedHistories, check_same, without_batches
from memory import Memory
from pyspark.sql import SparkSession
from version_laws import Histories


class Proof:
    """One set of histories, delivered twice in different orders and splits, and the base tables after each step."""

    def __init__(
        self, lake: Lake, name: str, models: type[Lakehouse], sources: Iterable[str], histories: int, seed: int
    ) -> None:
        records = {source: generate(source, histories, seed) for source in sources}
        one = StagedHistories(lake, f"{name}_records", records, delivery=0, again=True)
        other = StagedHistories(lake, f"{name}_records", records, delivery=1)
        self.number_of_histories = sum(len({record.key[0] for record in told}) for told in records.values())
        self.one = models(f"{name}_one", one)
        self.other = models(f"{name}_other", other)
        self.sources = list(records)
        self.bases: dict[str, dict[str, Any]] = {}
        self._steps: Iterator[tuple[str, Lakehouse]] = self._walk()

    def after(self, step: str) -> dict[str, Any]:
        """Go on to a step unless that is done, checking the state after each, and return the base tables after it."""
        while step not in self.bases:
            done, lakehouse = next(self._steps)
            lakehouse.check_state()
            lakehouse.check_quarantine()
            self.bases[done] = {source: lakehouse.base(source) for source in self.sources}
        return self.bases[step]

    def _walk(self) -> Iterator[tuple[str, Lakehouse]]:
        self.one.run(1)
        yield "first batch", self.one
        self.one.run(3)
        yield "all batches", self.one
        self.other.run(1)
        yield "another first batch", self.other
        self.other.run(2)
        yield "all in another order", self.other
        self.one.forget_last_account()
        self.one.run(4)
        yield "applied again", self.one
        self.one.run(4, full_refresh=True)
        yield "rebuilt", self.one


# materialization, sources, histories of each, and hypothesis' seed: of the long ones another one each day, which their
# names tell
TODAY = date.today().toordinal()
ALL = [*COORDINATES, "spanner"]
CASES = [
    pytest.param((Lakehouse, COORDINATES, 60, 1), id="4x60"),
    pytest.param((Lakehouse, ["spanner"], 200, 1), id="spanner-200"),
    pytest.param((Histories, ALL, 50, 1), id="history-5x50", marks=pytest.mark.soak),
    pytest.param((Lakehouse, COORDINATES, 150, TODAY), id=f"4x150-seed-{TODAY}", marks=pytest.mark.matrix),
    pytest.param((Lakehouse, ["spanner"], 1000, TODAY), id=f"spanner-1000-seed-{TODAY}", marks=pytest.mark.matrix),
    pytest.param((Histories, ALL, 150, TODAY), id=f"history-5x150-seed-{TODAY}", marks=pytest.mark.matrix),
]


@pytest.fixture(scope="module", params=CASES)
def proof(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Proof]:
    models, sources, histories, seed = request.param
    with Memory(spark) as memory:
        yield Proof(memory, "laws", models, sources, histories, seed)


def test_histories_are_many(proof: Proof) -> None:
    assert proof.number_of_histories >= 200


def test_every_state_is_the_fold_of_what_was_delivered(proof: Proof) -> None:
    proof.after("first batch")
    proof.after("all batches")


def test_another_order_and_another_split_give_the_same_rows(proof: Proof) -> None:
    one, other = proof.after("all batches"), proof.after("all in another order")
    for source in proof.sources:
        check_same(without_batches(one[source]), without_batches(other[source]), source)


def test_applying_everything_again_changes_nothing(proof: Proof) -> None:
    """Batches again, because the ledger did not learn of them; and all records again, delivered anew."""
    before, after = proof.after("all batches"), proof.after("applied again")
    for source in proof.sources:
        check_same(before[source], after[source], source)
        last = [line for line in proof.one.accounts[source] if line.kind != "rebuild"][-1]
        assert (last.kind, last.first_batch, last.last_batch, last.applied) == ("replay", 2, 4, 0)


def test_a_rebuild_gives_the_very_rows_of_the_increments(proof: Proof) -> None:
    before, after = proof.after("applied again"), proof.after("rebuilt")
    for source in proof.sources:
        check_same(before[source], after[source], source)


def test_the_ledger_balances(proof: Proof) -> None:
    proof.after("rebuilt")
    proof.one.check_ledger()
    proof.other.check_ledger()
