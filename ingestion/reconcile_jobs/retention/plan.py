"""How far a staging table may be purged: not past what a registered model has not applied, nor past what is young."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "NOT_ENDED",
    "Account",
    "KeptBack",
    "Reader",
    "StagedObject",
    "batch_to_purge",
    "kept_objects",
    "purged_objects",
    "quarantined",
]


@dataclass(frozen=True)
class Reader:
    """A model that is registered with the staging table, by its name in its ledger.

    `staging`: the name of the staging table in that ledger. `objects`: those that the model reads; none if it is a
    SELECT of its own, which may read all of them.
    """

    staging: str
    ledger: str
    relation: str
    materialized: str
    objects: tuple[str, ...]

    @property
    def has_base(self) -> bool:
        """Whether the model keeps its rows in a base table."""
        return self.materialized != "current_view"


NOT_ENDED = "a run of it has not ended; run the model"


@dataclass(frozen=True)
class Account:
    """What the ledger and the base table of a model say: the last batch of each, and what the ledger had of the base.

    `waits_for`: the first batch after the applied ones with records of the model's objects, None if there is none.
    `quarantined`: the batches of which staging still has records that the model has quarantined, in order, each with
    how many. `problem`: why the account says nothing about the batches that staging has, None if it does.
    `appended_at`: when the last batch of the ledger was appended, in microseconds; None if the ledger does not say.
    `retried`: the number of the last marked range of the base table, see `marked_range` in retry_of_quarantine.sql.
    `deletes_batch`: the batch up to which the table of deletes without a key has them, 0 without such a table.
    `entry`: the number of the last row in the ledger.
    """

    ledger_batch: int
    ledger_base_batch: int
    base_batch: int
    waits_for: int | None = None
    quarantined: tuple[tuple[int, int], ...] = ()
    problem: str | None = None
    appended_at: int | None = None
    retried: int = 0
    deletes_batch: int = 0
    entry: int = 0

    @property
    def applied(self) -> int:
        """The last batch that the model's next run takes for applied: see macros/materializations/range_to_apply.sql.

        The ledger counts if it was written after the present state of the base table. A base table that was restored,
        or that a killed run has merged into, counts as the smaller of both.
        """
        if self.base_batch == self.ledger_base_batch:
            return self.ledger_batch
        return min(self.base_batch, self.ledger_batch)

    @property
    def last_batch(self) -> str:
        """The last batch of the ledger and when it was appended, `<batch> <microseconds>`; "" if nobody says when."""
        return "" if self.appended_at is None else f"{self.ledger_batch} {self.appended_at}"

    @property
    def is_under_way(self) -> bool:
        """Whether a run has written rows and no account of them: it goes on, or was killed.

        Nobody knows yet whether staging will have their records when the next run asks, so no copy may have them.
        """
        return self.base_batch > self.ledger_base_batch > 0

    @property
    def is_restored(self) -> bool:
        """Whether the base table was set back to before the last range of the ledger."""
        return self.base_batch < self.ledger_base_batch


@dataclass(frozen=True)
class KeptBack:
    """A model that needs records after a batch, and why."""

    reader: Reader
    batch: int
    why: str


@dataclass(frozen=True)
class StagedObject:
    """What staging has of an object up to the batch that may be purged.

    `last`: the last batch of these records. Up to there, and no further, every reader of the object has applied.
    `is_snapshot`: whether its records are of snapshots, with which the next append compares. `has_snapshot`: whether
    there is a snapshot of it beside the log.
    """

    name: str | None
    records: int
    last: int = 0
    is_snapshot: bool = False
    has_snapshot: bool = False


def batch_to_purge(
    aged: int, readers: Iterable[tuple[Reader, Account | None]], with_quarantined: bool = False
) -> tuple[int, list[KeptBack]]:
    """Return the last batch that may be purged, 0 for none, and the models that keep back what is old enough.

    `aged`: the last batch of which all records, and all of the batches before it, are old enough. An account is None
    if the ledger has nothing about the model. `with_quarantined`: whether records may go that a model has quarantined.
    """
    held = [_held(reader, account, with_quarantined) for reader, account in readers]
    kept_back = sorted(
        (one for one in held if one is not None and one.batch < aged), key=lambda one: (one.batch, one.reader.relation)
    )
    return max(0, min([aged, *(one.batch for one in kept_back)])), kept_back


def quarantined(accounts: Iterable[Account | None], batch: int) -> int:
    """Return how many records that staging has up to a batch are quarantined, for each model that has done so."""
    return sum(records for one in accounts if one for in_batch, records in one.quarantined if in_batch <= batch)


def _held(reader: Reader, account: Account | None, with_quarantined: bool) -> KeptBack | None:
    """Return the last batch that a model does not need any more; None if it needs no record that staging has."""
    if not reader.has_base:
        return KeptBack(reader, 0, "a current_view, which reads all of staging")
    if not reader.objects:
        return KeptBack(reader, 0, "without a source macro, so its objects are not known")
    if account is None:
        return KeptBack(reader, 0, "never run")
    if account.problem:
        return KeptBack(reader, 0, account.problem)
    if account.is_under_way:
        return KeptBack(reader, 0, NOT_ENDED)
    if account.quarantined and not with_quarantined:
        # A rebuild with corrected declarations applies them; it reads no record that was purged.
        first = account.quarantined[0][0]
        if account.waits_for is None or first < account.waits_for:
            records = sum(number for _, number in account.quarantined)
            noun = "record" if records == 1 else "records"
            return KeptBack(reader, first - 1, f"{records:,} quarantined {noun} from batch {first:,} on")
    if account.waits_for is None:
        return None
    batch = account.waits_for - 1
    return KeptBack(reader, batch, f"{'set back to' if account.is_restored else 'behind at'} {batch:,}")


def purged_objects(readers: Iterable[Reader], staged: Iterable[StagedObject]) -> list[StagedObject]:
    """Return the objects of which records are to be deleted."""
    read = _read(readers)
    return [of for of in staged if of.records and not _why_kept(of, read)]


def kept_objects(readers: Iterable[Reader], staged: Sequence[StagedObject]) -> dict[str, list[StagedObject]]:
    """Return the objects whose old records are not purged, by the reason, without the jobs' own objects (`#...`)."""
    kept: dict[str, list[StagedObject]] = {}
    read = _read(readers)
    for of in staged:
        why = _why_kept(of, read)
        if of.records and why and not _is_of_jobs(of):
            kept.setdefault(why, []).append(of)
    return kept


def _read(readers: Iterable[Reader]) -> set[str]:
    return {name for reader in readers for name in reader.objects}


def _is_of_jobs(of: StagedObject) -> bool:
    """Whether these rows are no records, but say how far a job has read, or are of snapshots beside the log."""
    return of.name is not None and of.name.startswith("#")


def _why_kept(of: StagedObject, read: set[str]) -> str | None:
    if _is_of_jobs(of):
        return "rows of the append jobs"
    if of.name not in read:
        return "no model reads them"
    if of.is_snapshot:
        return "the next snapshot is compared with them"
    if of.has_snapshot:
        return "a snapshot beside the log begins among them"
    return None
