"""Snapshots of a table that also has a log, in plain Python: the model that docs/decisions/0037 decides on.

A change has a place in the log, by which the changes of one key are ordered, and belongs to a transaction. A snapshot
has all rows of one moment: what it contains is told by its `place`, up to which the log was written then, and by
`sees`, the transactions that it sees. Of two snapshots at one place, `taken` tells which is the later one: a
transaction may have ended between them, which writes no change. A source that does not tell transactions has
`sees=None`: then a snapshot contains surely what lies at or before its place, and that place is chosen early enough.
Where a place says when a row was changed, and not when that was committed, the time of a change decides as well:
`until`, early enough for the longest transaction.

A backfill row is a row as it was at some moment, and only its time says when. That time may be wrong by `UNCERTAINTY`:
the clock is another one, or the query began earlier. So a snapshot contains the backfill rows that were read up to so
much later. Nothing is lost by that: every later change of such a row is in the log too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

Values = str | None  # None: the row is deleted
Rank = tuple[int, int, int, int]

# How far the time of a backfill row may be from the moment whose row it has.
UNCERTAINTY = 8


@dataclass(frozen=True)
class Change:
    """One change of a row."""

    key: int
    place: int
    transaction: int
    values: Values
    at: int = 0  # when, as the record says


@dataclass(frozen=True)
class Backfill:
    """A row as it was at some moment. `read`: when it was read, as the record says."""

    key: int
    read: int
    values: str


@dataclass(frozen=True)
class Snapshot:
    """All rows of a moment."""

    place: int
    taken: int
    rows: tuple[tuple[int, str], ...]
    sees: frozenset[int] | None = None
    until: int | None = None

    def contains(self, change: Change | Backfill) -> bool:
        """Whether the rows have this change, or are at least as new as this backfill row."""
        if isinstance(change, Backfill):
            return change.read <= self.taken + UNCERTAINTY
        if self.until is not None and change.at >= self.until:
            return False
        return change.place <= self.place and (self.sees is None or change.transaction in self.sees)


Record = Change | Backfill | Snapshot

# Below every rank.
NOTHING: Rank = (-1, 0, 0, 0)


def rank_of_snapshot(snapshot: Snapshot) -> Rank:
    """Return where the rows of a snapshot stand in the order: above all changes at its place that it contains."""
    return (snapshot.place, snapshot.taken, 1, 0)


def rank_of_change(change: Change, snapshots: Iterable[Snapshot]) -> Rank:
    """Return where a change stands in the order.

    That is its own place, unless a snapshot does not contain it although it was written before: its transaction was
    open. Then it stands above the rows of that snapshot.
    """
    above = [(s.place, s.taken) for s in snapshots if change.place <= s.place and not s.contains(change)]
    return (*max(above), 2, change.place) if above else (change.place, 0, 0, 0)


def rank_of_backfill(row: Backfill, snapshots: Iterable[Snapshot]) -> Rank:
    """Return where a backfill row stands: below all changes, above the rows of snapshots that do not contain it."""
    older = [(s.place, s.taken) for s in snapshots if not s.contains(row)]
    return (*max(older), 1, row.read) if older else (0, 0, 0, row.read)


def rank(record: Change | Backfill, snapshots: Iterable[Snapshot]) -> Rank:
    """Return where a record of the log stands in the order."""
    return rank_of_backfill(record, snapshots) if isinstance(record, Backfill) else rank_of_change(record, snapshots)


def fold(records: Iterable[Record]) -> dict[int, str]:
    """Return the rows that a set of records makes: the newest snapshot, and the changes above it."""
    known = set(records)
    snapshots = [record for record in known if isinstance(record, Snapshot)]
    newest = max(snapshots, key=rank_of_snapshot, default=None)
    rows: dict[int, tuple[Rank, Values]] = {}
    if newest is not None:
        rows = {key: (rank_of_snapshot(newest), values) for key, values in newest.rows}
    floor = NOTHING if newest is None else rank_of_snapshot(newest)
    for change in known:
        if not isinstance(change, Snapshot):
            place = rank(change, snapshots)
            if place > max(floor, rows.get(change.key, (floor, None))[0]):
                rows[change.key] = (place, change.values)
    return {key: values for key, (_, values) in rows.items() if values is not None}


Version = tuple[str, float, bool]  # its values, when it begins, whether it is current


def versions(records: Iterable[Record], time: Callable[[Record], float]) -> dict[int, list[Version]]:
    """Return the versions of each key that a set of records makes, as a history shows them.

    All snapshots count. Each is a record of every key: its row, or a delete. A snapshot that changes nothing is none.
    """
    known = set(records)
    snapshots = sorted((record for record in known if isinstance(record, Snapshot)), key=rank_of_snapshot)
    of_key: dict[int, list[tuple[tuple[float, ...], Values, Record]]] = {}
    for record in known:
        if not isinstance(record, Snapshot):
            generation = max((n for n, s in enumerate(snapshots, 1) if not s.contains(record)), default=0)
            place = (0, record.read) if isinstance(record, Backfill) else (1, record.place)
            of_key.setdefault(record.key, []).append(((generation, *place), record.values, record))
    for snapshot in snapshots:
        for key, _ in snapshot.rows:
            of_key.setdefault(key, [])
    found: dict[int, list[Version]] = {}
    for key, changes in of_key.items():
        rows = [((n, 0, s.taken), dict(s.rows).get(key), s) for n, s in enumerate(snapshots, 1)]
        kept: list[tuple[Values, float]] = []
        for _, values, record in sorted([*changes, *rows], key=lambda one: one[0]):
            if not isinstance(record, Snapshot) or values != (kept[-1][0] if kept else None):
                kept.append((values, time(record)))
        before: tuple[Values, float] | None = None
        for number, (values, _) in enumerate(kept):
            begins = min(at for _, at in kept[number:])
            ends = min((at for _, at in kept[number + 1 :]), default=float("inf"))
            if values is not None:
                if before == (values, begins):
                    found[key][-1] = (*found[key][-1][:2], ends == float("inf"))
                else:
                    found.setdefault(key, []).append((values, begins, ends == float("inf")))
                before = (values, ends)
    return found


@dataclass
class BaseTable:
    """What a run keeps: a row per key with its rank, tombstones too, and the snapshots that were applied."""

    rows: dict[int, tuple[Rank, Values]] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)
    written: int = 0  # rows that the last run has written

    def apply(self, batch: Sequence[Record], staged: Sequence[Record]) -> None:
        """Apply a batch; `staged` are all records that staging has by then.

        A new snapshot changes the rank of few changes of before: those of transactions that were open when it was
        taken, and backfill rows that were read later. They are read again from staging; no other row is ranked anew. A
        row that the snapshot has as it is is not written: the floor, and not its own rank, keeps older changes away.
        """
        known = set(self.snapshots)
        new = {record for record in batch if isinstance(record, Snapshot)} - known
        snapshots = [*self.snapshots, *new]
        before = dict(self.rows)
        ranked_anew = [
            c for c in staged if not isinstance(c, Snapshot) and new and rank(c, snapshots) != rank(c, self.snapshots)
        ]
        newest = max(snapshots, key=rank_of_snapshot, default=None)
        floor = NOTHING if newest is None else rank_of_snapshot(newest)
        for change in [*(c for c in batch if not isinstance(c, Snapshot)), *ranked_anew]:
            place = rank(change, snapshots)
            if place > floor and place > self.rows.get(change.key, (NOTHING, None))[0]:
                self.rows[change.key] = (place, change.values)
        if newest in new:
            here = dict(newest.rows)
            for key in here.keys() | self.rows.keys():
                known_rank, values = self.rows.get(key, (NOTHING, None))
                if known_rank < floor and values != here.get(key):
                    self.rows[key] = (floor, here.get(key))
        self.snapshots = snapshots
        self.written = sum(self.rows[key] != before.get(key) for key in self.rows)

    def live(self) -> dict[int, str]:
        """Return the rows that people read."""
        return {key: values for key, (_, values) in self.rows.items() if values is not None}


@dataclass
class Database:
    """A database with row locks, a log, and snapshots that see what was committed."""

    changes: list[Change] = field(default_factory=list)
    committed: dict[int, Values] = field(default_factory=dict)
    locked: dict[int, int] = field(default_factory=dict)  # key -> the open transaction that has changed it
    open: dict[int, dict[int, Values]] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    place: int = 0
    clock: int = 0

    def tick(self) -> None:
        """Let time pass."""
        self.clock += 1

    def change(self, transaction: int, key: int, values: Values) -> bool:
        """Let a transaction change a row, unless another has it locked."""
        if self.locked.get(key, transaction) != transaction or transaction in self.finished:
            return False
        self.locked[key] = transaction
        self.place += 1
        self.open.setdefault(transaction, {})[key] = values
        self.changes.append(Change(key, self.place, transaction, values, self.clock))
        return True

    def commit(self, transaction: int) -> None:
        self.committed |= self.open.pop(transaction, {})
        self.finished.add(transaction)
        self.locked = {key: by for key, by in self.locked.items() if by != transaction}

    def snapshot(self, tells_transactions: bool = True) -> Snapshot:
        """Take a snapshot; where transactions are not told, its place lies before the changes of all open ones."""
        rows = tuple(sorted((key, values) for key, values in self.committed.items() if values is not None))
        self.tick()
        if tells_transactions:
            return Snapshot(self.place, self.clock, rows, frozenset(self.finished))
        still_open = [change.place for change in self.changes if change.transaction in self.open]
        return Snapshot(min(still_open, default=self.place + 1) - 1, self.clock, rows)

    def backfill(self, keys: Iterable[int], late: int) -> list[Backfill]:
        """Return rows as they are now, with a time that is so much later, or earlier."""
        read = self.clock + late
        return [Backfill(key, read, values) for key in keys if (values := self.committed.get(key)) is not None]

    def delivered(self) -> list[Change]:
        """Return the changes of transactions that were committed: a log gives out no others."""
        return [change for change in self.changes if change.transaction in self.finished]

    def rows(self) -> Mapping[int, str]:
        return {key: values for key, values in self.committed.items() if values is not None}


@dataclass
class BinaryLog(Database):
    """A database whose log gets the changes of a transaction when it is committed: MySQL's.

    All changes of a transaction are at one place. That is where the transaction begins in the log, or where it ends,
    which is where the next one begins; `named_by_end` says which, by the key. A reader does not know which. So a
    snapshot that was taken between two transactions surely contains only what lies before the place between them.
    """

    named_by_end: Callable[[int], bool] = lambda key: False
    place: int = 1

    def tick(self) -> None:
        """Let time pass. Transactions that are committed then are at another place."""
        super().tick()
        newest = self.changes[-1] if self.changes else None
        if newest is not None and newest.place == self.place + self.named_by_end(newest.key):
            self.place += 1

    def change(self, transaction: int, key: int, values: Values) -> bool:
        """Let a transaction change a row, unless another has it locked. The log does not have the change yet."""
        if self.locked.get(key, transaction) != transaction or transaction in self.finished:
            return False
        self.locked[key] = transaction
        self.open.setdefault(transaction, {})[key] = values
        return True

    def commit(self, transaction: int) -> None:
        for key, values in self.open.get(transaction, {}).items():
            self.changes.append(Change(key, self.place + self.named_by_end(key), transaction, values, self.clock))
        super().commit(transaction)

    def snapshot(self, tells_transactions: bool = False) -> Snapshot:
        """Take a snapshot at the present place: the end of the last transaction, the beginning of the next one."""
        rows = tuple(sorted(self.rows().items()))
        self.tick()
        return Snapshot(self.place - 1, self.clock, rows)


@dataclass
class ChangeNumbers(Database):
    """A database whose log has a change where the row was changed, and does not tell transactions: Oracle's.

    No transaction is open for as long as `longest`. So a snapshot surely contains what is older.
    """

    longest: int = UNCERTAINTY

    def snapshot(self, tells_transactions: bool = False) -> Snapshot:
        """Take a snapshot at the present place."""
        rows = tuple(sorted(self.rows().items()))
        self.tick()
        return Snapshot(self.place, self.clock, rows, until=self.clock - self.longest)


@dataclass
class LateCapture(BinaryLog):
    """A database whose log is written behind its transactions: SQL Server's. `lags`: by how many places, in turn.

    The place of a snapshot is the last one that the log had, and its rows may have more.
    """

    lags: Iterator[int] = field(default_factory=lambda: itertools.cycle((0, 2, 1)))
    captured: int = 0

    def snapshot(self, tells_transactions: bool = False) -> Snapshot:
        """Take a snapshot at the last place that the log has."""
        taken = super().snapshot()
        self.captured = max(self.captured, taken.place - next(self.lags))
        return replace(taken, place=self.captured)
