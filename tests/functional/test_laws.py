"""The laws, on histories that hypothesis invents, through the SQL that users get.

Many histories lie side by side in one table, their number in the key: a handful of dbt runs proves them all.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from histories import COORDINATES, generate
from laws import Lakehouse, StagedHistories, check_same
from pyspark.sql import SparkSession


class Proof:
    """One set of histories, delivered twice in different orders and splits; what each run left is kept."""

    def __init__(self, spark: SparkSession, root: Path, name: str, histories: int, seed: int) -> None:
        records = {source: generate(source, histories, seed) for source in COORDINATES}
        one = StagedHistories(spark, f"{name}_records", records, delivery=0, again=True)
        other = StagedHistories(spark, f"{name}_records", records, delivery=1)
        self.number_of_histories = sum(len({record.key[0] for record in told}) for told in records.values())
        self.one = Lakehouse(spark, root / "one", f"{name}_one", one)
        self.other = Lakehouse(spark, root / "other", f"{name}_other", other)


# histories of each source, and hypothesis' seed: of the long one a new one each time, which its name tells
FEW = (60, 1)
MANY = (400, random.SystemRandom().randrange(2, 1_000_000))
CASES = [
    pytest.param(FEW, id="4x60"),
    pytest.param(MANY, id=f"4x400-seed-{MANY[1]}", marks=pytest.mark.soak),
]


@pytest.fixture(scope="module", params=CASES)
def proof(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    histories, seed = request.param
    return Proof(spark, tmp_path_factory.mktemp("laws"), f"laws_{seed}", histories, seed)


def test_histories_are_many(proof: Proof) -> None:
    assert proof.number_of_histories >= 200


def test_every_state_is_the_fold_of_what_was_delivered(proof: Proof) -> None:
    for upto in (1, 3):
        proof.one.run(upto)
        proof.one.check_state()
        proof.one.check_quarantine()


def test_another_order_and_another_split_give_the_same_rows(proof: Proof) -> None:
    for upto in (1, 2):
        proof.other.run(upto)
        proof.other.check_state()
    for source in proof.one.sources:
        check_same(proof.one.base(source), proof.other.base(source), source, apart_from=["_change_batch"])


def test_applying_everything_again_changes_nothing(proof: Proof) -> None:
    """Batches again, because the ledger did not learn of them; and all records again, delivered anew."""
    before = {source: proof.one.base(source) for source in proof.one.sources}
    proof.one.forget_last_account()
    proof.one.run(4)
    for source in proof.one.sources:
        check_same(before[source], proof.one.base(source), source)
        assert proof.one.accounts[source][-1].applied == 0
    proof.one.check_quarantine()


def test_a_rebuild_gives_the_very_rows_of_the_increments(proof: Proof) -> None:
    before = {source: proof.one.base(source) for source in proof.one.sources}
    proof.one.run(4, "--full-refresh")
    for source in proof.one.sources:
        check_same(before[source], proof.one.base(source), source)
    proof.one.check_state()
    proof.one.check_quarantine()


def test_the_ledger_balances(proof: Proof) -> None:
    proof.one.check_ledger()
    proof.other.check_ledger()
