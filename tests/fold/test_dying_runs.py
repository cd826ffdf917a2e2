"""A run of dbt dies before each of its statements that write, and the same run follows: the laws hold as before.

Models of each kind, in their first run, with news and as a rebuild. What a declaration does that is corrected or
changed, and a snapshot beside a log, die in the tests of those; `tests/process/test_killed_runs.py` has tables of a
format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cells
import pytest
import row_deletes
from histories import generate
from laws import Lakehouse, StagedHistories, demand
from mortal_memory import MortalMemory
from one_model import OneModel
from pyspark.sql import SparkSession
from version_laws import Histories

HISTORIES = 12


class Life(NamedTuple):
    """A project: what lets its records up to a batch be there, what runs it, and what the laws say of it."""

    deliver: Callable[[int], None]
    run: Callable[[bool], object]
    check: Callable[[], None]
    last: int


def of_histories(models: type[Lakehouse], source: str, config: str = "") -> Callable[[MortalMemory, str], Life]:
    """Return models of histories that hypothesis invents: of Spanner's, most records are partial."""

    def born(memory: MortalMemory, schema: str) -> Life:
        staged = StagedHistories(memory, f"{schema}_records", {source: generate(source, HISTORIES, seed=5)}, delivery=0)
        lakehouse = models(schema, staged, config=config)

        def check() -> None:
            lakehouse.check_state()
            lakehouse.check_quarantine()
            demand(not lakehouse.project.failing("ledger_balances", source), f"{source}: the ledger")  # type: ignore[attr-defined]

        def run(full_refresh: bool) -> object:
            return lakehouse.project.run(source, full_refresh=full_refresh)

        return Life(lakehouse.deliver, run, check, staged.last)

    return born


def of_deletes(models: type[OneModel[Any]], records: Any, **said: Any) -> Callable[[MortalMemory, str], Life]:
    """Return models of records with deletes that name no key: by an address, or of a range of cells."""

    def born(memory: MortalMemory, schema: str) -> Life:
        model = models(memory, schema, records.invented(HISTORIES, 5, split=2), **said)  # type: ignore[call-arg]

        def check() -> None:
            model.check_state()
            model.check_quarantine()
            demand("ledger_balances" not in model.failing_tests(), "the ledger does not balance")

        def run(full_refresh: bool) -> object:
            return model.project.run(model.name, full_refresh=full_refresh)

        return Life(model.deliver, run, check, model.last)

    return born


MODELS = {
    "mysql": of_histories(Lakehouse, "mysql"),
    "spanner": of_histories(Lakehouse, "spanner"),
    "spanner_fresh": of_histories(Lakehouse, "spanner", ", meta={'fresh': true}"),
    "oracle_history": of_histories(Histories, "oracle"),
    "spanner_history": of_histories(Histories, "spanner"),
    "row_deletes": of_deletes(row_deletes.Rows, row_deletes),
    "row_deletes_fresh": of_deletes(row_deletes.Rows, row_deletes, fresh=True),
    "row_deletes_history": of_deletes(row_deletes.RowVersions, row_deletes),
    "range_deletes": of_deletes(cells.Cells, cells),
    "range_deletes_fresh": of_deletes(cells.Cells, cells, fresh=True),
    "range_deletes_history": of_deletes(cells.CellVersions, cells),
}


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[MortalMemory]:
    with MortalMemory(spark) as memory:
        yield memory


@pytest.mark.matrix
@pytest.mark.parametrize("phase", ["first", "news", "rebuild"])
@pytest.mark.parametrize("name", MODELS)
def test_a_run_dies_before_each_statement_and_the_next_one_makes_it_good(
    memory: MortalMemory, name: str, phase: str
) -> None:
    life = MODELS[name](memory, f"{name}_{phase}")
    if phase != "first":
        life.deliver(1)
        life.run(False)

    def command() -> None:
        life.deliver(life.last)
        life.run(phase == "rebuild")

    assert memory.die_before_each(f"{name}, {phase}", command, life.check) >= 4, memory.written
