"""What differs between the sources: how their records are read, and what stands in the models."""

from __future__ import annotations

from dataclasses import dataclass

from reconcile_jobs.generation.datastream_records import add_event
from reconcile_jobs.generation.observations import Add

__all__ = ["DATASTREAM", "Stream"]

# One of each on the staging table covers all models that read it.
_OF_STAGING = ("reconcile.no_quarantine", "reconcile.ledger_balances")


@dataclass(frozen=True)
class Stream:
    """A kind of stream. `source`: the word in the column `source` of staging; `tests`: what staging is tested for."""

    source: str
    add: Add
    tests: tuple[str, ...] = _OF_STAGING


DATASTREAM = Stream("datastream", add_event)
