"""A model that is put back to a batch has the rows of that batch, and goes on from there as if nothing had been."""

from __future__ import annotations

import pytest
from histories import generate
from laws import Lakehouse, StagedHistories, check_same, without_batches
from memory import Memory
from pyspark.sql import SparkSession
from version_laws import Histories

CASES = [
    pytest.param((Lakehouse, ["oracle", "mysql"]), id="current_state"),
    pytest.param((Lakehouse, ["postgresql", "sqlserver", "spanner"]), id="others", marks=pytest.mark.soak),
    pytest.param((Histories, ["mysql", "spanner"]), id="history", marks=pytest.mark.soak),
]  # fmt: skip


def restore(lakehouse: Lakehouse, batch: int) -> None:
    """Put the models back; staging keeps all that came."""
    lakehouse.project.variables["restore"] = {"batch": batch}
    lakehouse.run(4)
    lakehouse.project.variables.pop("restore")
    lakehouse.batch = batch


@pytest.mark.parametrize("case", CASES)
def test_a_model_that_is_put_back_goes_on_from_there(
    spark: SparkSession, case: tuple[type[Lakehouse], list[str]]
) -> None:
    """Laws 1, 3 and 5: rows, quarantine and ledger at the batch, and the same rows as before after the next run."""
    models, sources = case
    with Memory(spark) as memory:
        records = {source: generate(source, 40, seed=7) for source in sources}
        lakehouse = models("restored", StagedHistories(memory, "restore_records", records, delivery=0, again=True))
        lakehouse.run(3)
        lakehouse.run(4)
        before = {source: lakehouse.base(source) for source in sources}
        restore(lakehouse, 2)
        lakehouse.check()
        assert all(lakehouse.base(source) != before[source] for source in sources)
        lakehouse.run(4)
        lakehouse.check()
        for source in sources:
            last = lakehouse.accounts[source][-1]
            assert (last.kind, last.first_batch, last.last_batch) == ("apply", 3, 4)
            ours, theirs = lakehouse.base(source), before[source]
            if source in lakehouse.later_batches or source == "oracle":
                ours, theirs = without_batches(ours), without_batches(theirs)
            check_same(ours, theirs, source)
