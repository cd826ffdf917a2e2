"""What differs between the sources: how their records are read, and what stands in the models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcile_jobs.generation import bigtable_records, spanner_records
from reconcile_jobs.generation.datastream_records import add_event
from reconcile_jobs.generation.observations import Add, Observations
from reconcile_jobs.generation.witnesses import Testimony

__all__ = ["BIGTABLE", "DATASTREAM", "SPANNER", "Stream"]

# One of each on the staging table covers all models that read it.
_OF_STAGING = ("reconcile.no_quarantine", "reconcile.ledger_balances")


@dataclass(frozen=True)
class Stream:
    """A kind of stream. `source`: the word in the column `source` of staging.

    `tests`, `tests_of_models`: what staging is tested for, and each model beside its key. `testimony`: what the records
    themselves tell of types, None of a source whose records tell none.
    """

    source: str
    add: Add
    tests: tuple[str, ...] = _OF_STAGING
    tests_of_models: tuple[str, ...] = ()
    testimony: Callable[[Observations], Testimony] | None = None


DATASTREAM = Stream("datastream", add_event)
SPANNER = Stream(
    "spanner",
    spanner_records.add_data_change,
    (*_OF_STAGING, "reconcile.transactions_complete"),
    ("reconcile.no_pending_rows",),
    spanner_records.of_column_types,
)
BIGTABLE = Stream("bigtable", bigtable_records.add_data_change)
