"""The laws of models some of whose deletes name no key: Oracle rows with addresses, Bigtable cells, and their versions.

Many histories lie side by side in one table, beside such as show in what way a delete can come before or after what it
deletes: a handful of runs proves them all, against a plain fold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import cells
import pytest
import row_deletes
from cells import Cells, CellVersions
from laws import check_same, without_batches
from memory import Memory
from one_model import OneModel
from pyspark.sql import SparkSession
from row_deletes import Rows, RowVersions


class Told(NamedTuple):
    """Records in three batches; the same ones in another order and split; what must be there in the end of some."""

    once: list[Any]
    otherwise: list[Any]
    end: set[tuple[Any, ...]]
    is_of_end: Callable[[tuple[Any, ...]], bool]


def of_rows(histories: int, seed: int, split: int) -> Told:
    arrive, end = row_deletes.arrivals()
    once = [*arrive, *row_deletes.invented(histories, seed, 3)]
    otherwise = [*_shuffled(arrive, split), *row_deletes.invented(histories, seed, split, backwards=True)]
    return Told(once, otherwise, end, lambda row: 0 <= row[0] < row_deletes.INVENTED)


def of_cells(histories: int, seed: int, split: int) -> Told:
    (back, back_end), (far, far_end) = cells.hidden_and_back(), cells.far_times()
    once = [*back, *far, *cells.invented(histories, seed, 3)]
    otherwise = [*_shuffled([*back, *far], split), *cells.invented(histories, seed, split, backwards=True)]
    return Told(once, otherwise, {*back_end.items(), *far_end.items()}, lambda cell: cell[0][0][0] != 0xFF)


def _shuffled(records: list[Any], split: int) -> list[Any]:
    chance = random.Random(split)
    batches = {record.text: chance.randint(1, split) for record in records}
    return [replace(record, batch=batches[record.text]) for record in reversed(records)]


class Proof:
    """One set of records, delivered twice in different orders and splits, and what is stored after each step."""

    def __init__(self, memory: Memory, name: str, models: type[OneModel[Any]], told: Told, **said: Any) -> None:
        self.memory, self.told = memory, told
        again = [replace(record, batch=4) for record in told.once]
        self.one = models(memory, f"{name}_one", [*told.once, *again], **said)
        self.is_state = self.one.materialized == "current_state"
        self.other = models(memory, f"{name}_other", told.otherwise, **said, fresh=self.is_state)
        if self.is_state:
            self.other.model("view", "current_view")  # type: ignore[attr-defined]
        self.states: dict[str, tuple[Any, ...]] = {}
        self._steps = self._walk()

    def after(self, step: str) -> tuple[Any, ...]:
        """Go on to a step unless that is done, and return base table, deletes and what is shown after it."""
        while step not in self.states:
            done, model = next(self._steps)
            model.check_quarantine()
            self.states[done] = model.base(), model.deletes(), model.now()
        return self.states[step]

    def _walk(self) -> Iterator[tuple[str, OneModel[Any]]]:
        one, other = self.one, self.other
        for batch in (1, 2, 3):
            one.run(batch)
            one.check_state()
            one.check_quarantine()
            if isinstance(one, Rows) and batch != 2:
                self._check_pending(one)
        yield "all batches", one
        one.forget_last_account()
        one.run(4)
        yield "applied again", one
        self.memory.restore(f"{one.schema}.{one.name}__base", 0)
        one.run(4)
        # What it counts of rows that were known and then lost, no replay tells.
        one.accounts.pop()
        yield "restored", one
        one.run(4, full_refresh=True)
        yield "rebuilt", one
        other.run(1)
        if self.is_state:
            other.project.run("view")
            other.deliver(2)
            other.check_live(other.name)  # type: ignore[attr-defined]
            other.check_live("view")  # type: ignore[attr-defined]
            other.run(2)
        other.check_state()
        yield "all in another order", other

    def _check_pending(self, rows: Rows) -> None:
        """What no_pending_rows finds are the row deletes that came alone; in the end none of those that make sense."""
        failing = rows.project.failing("no_pending_rows", rows.name)  # type: ignore[attr-defined]
        assert {row._row_id for row in failing if row._row_id < f"AAA{row_deletes.INVENTED:06}"} == rows.pending()
        assert bool(rows.pending()) == (rows.batch < 3)


ROWS, CELLS, VERSIONS, CELL_VERSIONS = 300, 250, 200, 250
CASES = [
    pytest.param(lambda m: Proof(m, "rows", Rows, of_rows(ROWS, 1, 2)), id="rows"),
    pytest.param(lambda m: Proof(m, "cells", Cells, of_cells(CELLS, 1, 2)), id="cells"),
    pytest.param(
        lambda m: Proof(m, "row_versions", RowVersions, of_rows(VERSIONS, 3, 1)),
        id="row versions", marks=pytest.mark.soak,
    ),
    pytest.param(
        lambda m: Proof(m, "cell_versions", CellVersions, of_cells(CELL_VERSIONS, 3, 1)),
        id="cell versions with what garbage collection deletes", marks=pytest.mark.soak,
    ),
    pytest.param(
        lambda m: Proof(
            m, "collected", CellVersions, of_cells(CELL_VERSIONS, 3, 1), garbage_collection="apply"
        ),
        id="cell versions without what garbage collection deletes", marks=pytest.mark.soak,
    ),
]  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def proof(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Proof]:
    with Memory(spark) as memory:
        yield request.param(memory)


def test_the_histories_have_what_matters(proof: Proof) -> None:
    """What is deleted, what is there again after a deletion, and what must be quarantined."""
    told = proof.one.upto(3)
    assert len(proof.told.end) >= 30
    assert sum(record.bad for record in told) > 20
    if isinstance(proof.one, Cells):
        shown = cells.visible(told)
        known = {entry.cell for entry in told if entry.cell and not entry.bad}
        assert len(known - shown.keys()) > CELLS // 4
        assert len(shown) > CELLS
    else:
        assert len({record.key[0] for record in told if record.key}) > 600
        assert len(row_deletes.row_deletes(told)) > 400


def test_every_state_is_the_fold_of_what_was_delivered(proof: Proof) -> None:
    """After each batch; what is pending is what nothing explains yet, and in the end nothing of it is left."""
    proof.after("all batches")


def test_in_whatever_order_and_split_a_delete_comes_the_same_is_there_in_the_end(proof: Proof) -> None:
    *_, shown = proof.after("all batches")
    assert {row for row in shown if proof.told.is_of_end(row)} == proof.told.end


def test_applying_everything_again_changes_nothing(proof: Proof) -> None:
    """Batches again, which the ledger did not learn of, and all records again, delivered anew."""
    before, after = proof.after("all batches"), proof.after("applied again")
    last = next(line for line in proof.one.accounts if line.last_batch == 4)
    assert (last.kind, last.first_batch, last.applied, last.pending) == ("replay", 2, 0, 0)
    _same(before, after)


def test_a_base_table_that_was_restored_is_mended(proof: Proof) -> None:
    _same(proof.after("applied again"), proof.after("restored"))


def test_a_rebuild_gives_the_very_rows_of_the_increments(proof: Proof) -> None:
    _same(proof.after("restored"), proof.after("rebuilt"))


def test_another_order_and_another_split_give_the_same_rows(proof: Proof) -> None:
    """And views of live staging have them before they are merged."""
    (base, deletes, shown), other = proof.after("all batches"), proof.after("all in another order")
    check_same(without_batches(base), without_batches(other[0]), "two deliveries")
    assert {found[:-1] for found in deletes} == {found[:-1] for found in other[1]}
    assert shown == other[2]


def test_the_ledger_balances(proof: Proof) -> None:
    proof.after("all in another order")
    proof.one.check_ledger()
    proof.other.check_ledger()
    # Of what is invented, row deletes may stay pending, and records of one sequence differ.
    allowed = set() if isinstance(proof.one, Cells) else {"no_pending_rows", "one_payload_per_sequence"}
    assert proof.one.failing_tests() <= allowed


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    check_same(one[0], other[0], "base tables")
    assert one[1:] == other[1:]
