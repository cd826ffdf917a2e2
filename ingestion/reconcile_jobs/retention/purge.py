"""The purge of a staging table: copies of base tables first, then what says that it was purged, then the delete.

Each statement leaves a state from which the same command goes on. Before the delete, a property of the staging table,
`reconcile.purge`, says what is to be deleted and what was purged before. The delete is one commit. So the next command
finds either all of these records, and takes the marks of the purge back, or none of them.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault, JobError, UsageError
from reconcile_jobs.retention.plan import (
    Account,
    KeptBack,
    Reader,
    StagedObject,
    batch_to_purge,
    kept_objects,
    purged_objects,
    quarantined,
)
from reconcile_jobs.retention.tables import Tables, beside, named
from reconcile_jobs.staging import TableName, batch_of_mark, purge_mark

__all__ = ["Purge", "Result", "last_purged"]

# Properties of the staging table, without their common beginning: the purge that has begun, and the purged objects.
_BEGUN, _PURGED = "purge", "purged."

_ATTEMPTS = 5


@dataclass
class Result:
    """What a purge came to; `batch` is 0 if nothing is purged."""

    batch: int
    records: int
    models: int
    kept_back: list[KeptBack]
    quarantined: int = 0  # of the records, those that models have quarantined, counted for each model
    snapshots: list[str] = field(default_factory=list)
    kept_objects: dict[str, list[StagedObject]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Plan:
    batch: int
    objects: dict[str, StagedObject]  # those of which records go
    kept_back: list[KeptBack]
    kept_objects: dict[str, list[StagedObject]]
    readers: list[Reader]
    accounts: dict[Reader, Account]
    quarantined: int


@dataclass(frozen=True)
class _Begun:
    """A purge that has begun: its id in the ledgers, what it deletes, and what was purged before it, by object.

    `marks`: the last batch of the deleted records, by object. A model that has applied all records of an object has
    applied this batch, even if nothing has come for the model since.
    """

    id: str
    batch: int
    marks: dict[str, int]
    before: dict[str, int]
    ledgers: list[tuple[str, str]]  # a ledger, and the name of the staging table in it

    def text(self) -> str:
        return json.dumps(self.__dict__, ensure_ascii=False, sort_keys=True)

    @classmethod
    def read(cls, text: str, table: TableName) -> _Begun:
        """Raises UsageError for a text that this job has not written."""
        try:
            said = json.loads(text)
            marks, before = ({str(of): int(n) for of, n in said[part].items()} for part in ("marks", "before"))
            ledgers = [(ledger, staging) for ledger, staging in said["ledgers"]]
            return cls(str(said["id"]), int(said["batch"]), marks, before, ledgers)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise UsageError(
                f"The property reconcile.{_BEGUN} of the staging table {table} is {text[:80]!r}, which this job has "
                "not written: set it to what it was before somebody changed it."
            ) from None


class Purge:
    """The purge of one staging table, of records that are older than `keep`."""

    def __init__(
        self,
        tables: Tables,
        staging: TableName,
        keep: timedelta,
        say: Callable[[str], None],
        clock: Clock | None = None,
        with_quarantined: bool = False,
    ) -> None:
        """Take the moment of the purge: whatever it asks later is about this moment.

        `with_quarantined`: whether records may go that a model has quarantined.
        """
        self._tables, self._staging, self._say, self._clock = tables, staging, say, clock or Clock()
        self._with_quarantined = with_quarantined
        self._before = self._clock.now() // 1000 - keep // timedelta(microseconds=1)

    def run(self, dry_run: bool = False) -> Result:
        """Purge, or only find what would be purged. Raises JobError."""
        begun = self._begun()
        if begun is not None and dry_run:
            self._say(f"A purge up to batch {begun.batch:,} has begun and not ended; without --dry-run it is ended.")
        elif begun is not None:
            self._end(begun)
        if not dry_run:
            self._tables.make_readers()
        plan = self._plan(last_purged(self._tables.properties()))
        records = sum(of.records for of in plan.objects.values())
        result = Result(plan.batch if records else 0, records, len(plan.readers), plan.kept_back)
        result.kept_objects, result.quarantined = plan.kept_objects, plan.quarantined if records else 0
        if records:
            copied = [reader for reader in plan.readers if plan.objects.keys() & set(reader.objects)]
            result.snapshots = [str(beside(named(reader.relation), "snapshot")) for reader in copied]
            if not dry_run:
                for reader in copied:
                    self._keep_copy(reader, plan)
                self._purge(plan)
        return result

    # --- the plan ---

    def _plan(self, purged: int) -> _Plan:
        """Return what may be purged. `purged`: the last batch that was purged before."""
        readers = self._tables.readers()
        if not readers:
            raise UsageError(
                f"No model is registered with {self._staging}: run `dbt run` with this version of the package in every "
                "project that reads the table, and then this command."
            )
        accounts = self._tables.accounts(readers, purged)
        batch, kept_back = batch_to_purge(self._tables.aged(self._before), accounts, self._with_quarantined)
        staged = self._tables.staged(batch)
        objects = {of.name: of for of in purged_objects(readers, staged) if of.name is not None}
        known = {reader: account for reader, account in accounts if account is not None}
        gone = quarantined((account for _, account in accounts), batch)
        return _Plan(batch, objects, kept_back, kept_objects(readers, staged), readers, known, gone)

    # --- the copies ---

    def _keep_copy(self, reader: Reader, plan: _Plan) -> None:
        """Copy the base table of a model, unless there is a copy that has the purged batches."""
        base, copy = (beside(named(reader.relation), part) for part in ("base", "snapshot"))
        copied = self._tables.copied_batch(base, copy)
        if copied is not None and copied >= plan.batch:
            return
        account = plan.accounts[reader]
        largest = self._tables.copy(base, copy)
        if largest != account.base_batch:
            raise Fault(
                f"{base} was written to or restored while it was copied, and nothing was purged: run the same command "
                "again."
            )
        quarantine = beside(named(reader.relation), "quarantine")
        purged = max((of.last for name, of in plan.objects.items() if name in reader.objects), default=0)
        self._tables.finish_copy(copy, plan.batch, account.last_batch, account.deletes_batch, quarantine, purged)
        if self._tables.has_keyless_deletes(base):
            limits = (
                "The model can be rebuilt only as long as its base table exists, and no earlier moment (as_of) can be "
                "built: the copy lacks deletes without a key."
            )
        else:
            limits = f"Earlier moments (as_of) can be built from batch {max(largest, plan.batch):,} on."
        self._say(f"{base} was copied to {copy}, with which a rebuild begins. {limits}")

    # --- the purge ---

    def _purge(self, plan: _Plan) -> None:
        """Write what says that the records are purged, and delete them. Raises Fault if the plan no longer holds."""
        properties = self._tables.properties()
        purged = last_purged(properties)
        before = {of: batch_of_mark(properties, purge_mark(of)) for of in plan.objects}
        ledgers = sorted({(reader.ledger, reader.staging) for reader in plan.readers})
        marks = {name: of.last for name, of in plan.objects.items()}
        begun = _Begun(str(uuid.uuid4()), plan.batch, marks, before, ledgers)
        self._tables.keep({_BEGUN: begun.text(), **_marks(begun, properties)})
        try:
            self._write_into_ledgers(begun)
            self._delete(plan, begun, purged)
        except JobError:
            raise
        except Exception:
            # A right that is missing, a table that only takes appends, memory: nothing may be marked that is not gone.
            if self._begun() == begun:
                self._end(begun)
            raise

    def _delete(self, plan: _Plan, begun: _Begun, purged: int) -> None:
        """Delete the records of a purge that has begun. `purged`: the last batch that was purged before it."""
        for attempt in range(_ATTEMPTS):
            # A model that was registered before the marks, a base table that was restored before them, and a snapshot
            # beside the log are seen here. Whatever comes later sees the marks.
            now = self._plan(purged)
            if self._begun() != begun:
                raise Fault(
                    f"Another purge of {self._staging} has begun at this moment, and this one has deleted nothing: "
                    "run the same command again when the other one has ended."
                )
            smaller = now.batch < plan.batch or not begun.marks.keys() <= now.objects.keys()
            # The copy lacks a range that a model has marked since. The next one is refused by the marks.
            retried = {of: account.retried for of, account in plan.accounts.items()}
            lacking = any(retried.get(of) != account.retried for of, account in now.accounts.items())
            # A model that has registered and run since the plan has neither a copy nor, perhaps, a mark in its ledger.
            if smaller or lacking or set(now.readers) != set(plan.readers):
                self._end(begun)
                raise Fault(
                    f"What may be purged of {self._staging} has changed since this command began, and this command has "
                    "deleted nothing: run it again."
                )
            if self._tables.delete(list(begun.marks), plan.batch):
                self._finish(begun)
                return
            self._clock.wait(threading.Event(), 1 + attempt)
        if self._begun() == begun:
            self._end(begun)
        raise Fault(
            f"Other processes wrote to {self._staging} each time that its records were to be deleted, and nothing was "
            "purged: run the same command again."
        )

    def _finish(self, begun: _Begun) -> None:
        """Note that all records of a purge are deleted."""
        if self._begun() == begun:
            self._tables.keep({_BEGUN: ""})
        else:
            # Another job has taken this one for killed, and its marks back, just before the delete.
            self._tables.keep(_marks(begun, self._tables.properties()))
            self._write_into_ledgers(begun)

    def _write_into_ledgers(self, begun: _Begun) -> None:
        for ledger, staging in begun.ledgers:
            self._tables.write_purge(named(ledger), staging, begun.marks, begun.id)

    def _begun(self) -> _Begun | None:
        text = self._tables.properties().get(_BEGUN)
        return _Begun.read(text, self._staging) if text else None

    def _end(self, begun: _Begun) -> None:
        """End a purge that does not go on: its records are all there, or they are all gone."""
        if self._tables.records(list(begun.marks), begun.batch):
            self._take_back(begun)
            if not self._tables.records(list(begun.marks), begun.batch):
                # It was not killed.
                self._finish(begun)
        else:
            self._tables.keep({_BEGUN: ""})
            self._say(f"All records of a purge up to batch {begun.batch:,} that had begun earlier are deleted.")

    def _take_back(self, begun: _Begun) -> None:
        """Take back what says that records were purged, of which none was deleted."""
        for ledger, staging in begun.ledgers:
            self._tables.take_back_purge(named(ledger), staging, begun.id)
        # A purge by hand may have gone further meanwhile: its marks stay.
        properties = self._tables.properties()
        own = [of for of, mark in begun.marks.items() if batch_of_mark(properties, purge_mark(of)) <= mark]
        self._tables.keep({_BEGUN: "", **{purge_mark(of): str(begun.before[of]) for of in own}})


def _marks(begun: _Begun, properties: dict[str, str]) -> dict[str, str]:
    """Return the properties that say what a purge deletes. `properties`: those that are there."""
    return {
        purge_mark(of): str(max(mark, batch_of_mark(properties, purge_mark(of)))) for of, mark in begun.marks.items()
    }


def last_purged(properties: dict[str, str]) -> int:
    """Return the last batch from which records of any object were purged, 0 if none were."""
    return max((batch_of_mark(properties, name) for name in properties if name.startswith(_PURGED)), default=0)
