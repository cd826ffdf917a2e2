"""What a proof says of a model: equal, different, in flight, or not proven and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconcile_jobs.process.counted import counted
from reconcile_jobs.proofs.comparison import Bucket, Comparison
from reconcile_jobs.proofs.plans import Plan

__all__ = ["COUNTS", "Difference", "Proven", "megabytes", "worst"]

COUNTS = ("compared", "matched", "confirmed", "in_flight", "unprovable", "missing", "unexpected", "different")

# Worst first.
_STATES = ("different", "not proven", "in flight", "equal")


def worst(states: Sequence[str]) -> str:
    """Return the worst of the states of models."""
    return next(state for state in _STATES if state in states)


@dataclass(frozen=True)
class Difference:
    """A row that differs. `columns`: those that differ, each with both values if they were asked for."""

    key: str | None
    verdict: str
    difference: str | None
    reason: str | None
    columns: Sequence[Mapping[str, str | None]]


@dataclass
class Proven:
    """The result of one model.

    `sides`: what the macro `rows_to_prove` said last, and `account`: what it said first of ledger and quarantine.
    `found`: None if nothing could be compared. `counts`: the verdicts of the rows that differ. `reasons`: why nothing
    is proven. `bytes`: what came from the source. `sql`: the queries of the first level, of source and model.
    """

    plan: Plan
    compared_to: str
    sides: dict[str, Any] = field(default_factory=dict)
    found: Comparison | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    sql: tuple[str, str] = ("", "")

    @property
    def state(self) -> str:
        """One of _STATES. Only what nothing speaks against is equal."""
        if self.counts.get("confirmed"):
            return "different"
        if self.reasons or self.counts.get("unprovable") or self.found is None:
            return "not proven"
        if self.counts.get("in_flight"):
            return "in flight"
        return "equal"

    @property
    def sums(self) -> tuple[Bucket, Bucket]:
        """The sums of source and model."""
        return self.found.sums if self.found else (Bucket(), Bucket())

    def add_reasons(self) -> None:
        """Note what speaks against an equality although the rows are equal."""
        self.reasons += [*self.plan.unprovable.values()] if not self.plan.complaints else []
        said = self.sides
        if number := said.get("quarantined"):
            self.reasons.append(f"{counted(number, 'record')} of the model {_are(number)} in quarantine")
        if number := said.get("pending"):
            self.reasons.append(f"{counted(number, 'row')} of the model {_are(number)} pending")
        self.reasons += [
            f"the ledger does not account for all records of the model: {gap}" for gap in said.get("gaps", ())
        ]
        if self.found is None:
            return
        if self.found.rows == (0, 0) and not self.plan.model.get("allow_empty"):
            self.reasons.append(
                "both sides are empty; if they are expected to be empty, set `allow_empty: true` in the test of parity"
            )
        if self.found.unread:
            self.reasons.append(
                f"{self.found.differing:,} of {self.found.buckets:,} buckets differ, and their {self.found.unread:,} "
                "rows are too many to be read: raise --max-rows, or compare rows by the test reconcile.parity"
            )

    def totals(self) -> dict[str, Any]:
        """Return the counts of all rows, as reconcile_parity has them, with the digests of both sides."""
        counts = {name: self.counts.get(name, 0) for name in COUNTS}
        tolerated = self.counts.get("tolerated") or "{}"
        equal = 0
        if self.found and not self.found.unread:
            differing = self.found.keys
            equal = self.found.rows[0] - sum(row.key in differing for row in self.found.source_rows)
        counts["compared"] += equal
        counts["matched"] += equal
        source, model = (f"{side.first}:{side.second}" for side in self.sums)
        return {**counts, "tolerated": tolerated, "source_digest": source, "model_digest": model}

    @property
    def verdict(self) -> str:
        """The state in the words of reconcile_parity."""
        return {"different": "confirmed", "in flight": "in_flight", "equal": "match"}.get(self.state, "unprovable")

    def line(self, width: int) -> str:
        """Return the result as a line for people."""
        parts = [f"{self.plan.name:<{width}}"]
        if self.found is None:
            parts.append("not proven")
        else:
            source, model = self.found.rows
            parts.append(f"{source:,} rows" if source == model else f"{source:,} rows at the source, {model:,} here")
            if self.found.differing:
                parts.append(
                    f"{self.found.buckets - self.found.differing:,} buckets equal, {self.found.differing:,} differ"
                )
                parts.append(f"{self.found.read:,} rows read")
                kinds = [
                    f"{self.counts[kind]:,} {kind}"
                    for kind in ("missing", "unexpected", "different")
                    if self.counts.get(kind)
                ]
                confirmed = self.counts.get("confirmed", 0)
                parts.append(f"{confirmed:,} confirmed" + (f" ({', '.join(kinds)})" if confirmed and kinds else ""))
                parts.append(f"{self.counts.get('in_flight', 0):,} in flight")
                if self.counts.get("unprovable"):
                    parts.append(f"{self.counts['unprovable']:,} unprovable")
            if self.state == "equal":
                parts.append("equal")
            elif self.reasons:
                parts.append("not proven")
            parts.append(f"{self.seconds:,.0f} s, {megabytes(self.bytes)} from the source")
        line = "   ".join(parts)
        return "\n".join([line, *(f"{'':<{width}}   {reason}" for reason in self.reasons)])


def megabytes(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size / 1e6:,.1f} MB" if size >= 50_000 else f"{size / 1e3:,.1f} kB"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
