"""The model of snapshots beside a log: whatever is lost before a snapshot, and in whatever order the rest comes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import snapshot_model
from snapshot_model import (
    UNCERTAINTY,
    Backfill,
    BaseTable,
    BinaryLog,
    Change,
    ChangeNumbers,
    Database,
    LateCapture,
    Record,
    Snapshot,
    fold,
)

HISTORIES = 200


# The times of backfill rows begin later than any of them may be early.
BEGINNING = 2 * UNCERTAINTY


def history(chance: random.Random, kind: str) -> tuple[Database, list[Snapshot], list[Change | Backfill]]:
    """Return a database after a life with snapshots at random moments, and those of its changes that were not lost.

    There are backfills at random moments too, whose times are somewhat wrong.
    """
    database = Database(clock=BEGINNING)
    if kind == "binary log":
        database = BinaryLog(clock=BEGINNING, named_by_end=lambda key: key % 2 == 1)
    elif kind == "change numbers":
        database = ChangeNumbers(clock=BEGINNING)
    elif kind == "late capture":
        database = LateCapture(clock=BEGINNING)
    snapshots, backfills = list[Snapshot](), dict[tuple[int, int], Backfill]()
    of_backfills = random.Random(chance.getrandbits(32))
    transaction, began = 0, dict[int, int]()
    for _ in range(chance.randrange(20, 60)):
        what = chance.random()
        running = list(database.open)
        database.tick()
        for old in [*database.open] if kind == "change numbers" else []:
            if database.clock - began[old] >= UNCERTAINTY - 1:
                database.commit(old)
                running.remove(old)
        if what < 0.6:
            transaction += 1
            by = chance.choice([transaction, *running])
            values = None if chance.random() < 0.3 else f"v{database.clock}"
            began.setdefault(by, database.clock)
            database.change(by, chance.randrange(6), values)
        elif what < 0.85 and running:
            database.commit(chance.choice(running))
        elif what > 0.92:
            snapshots.append(database.snapshot(kind == "transactions"))
        if of_backfills.random() < 0.2:
            rows = database.backfill(range(6), of_backfills.randint(-UNCERTAINTY, UNCERTAINTY))
            backfills |= {(row.key, row.read): row for row in rows}
    for running in list(database.open):
        database.commit(running)
    newest = max(snapshots, key=lambda s: s.taken, default=None)
    kept = [c for c in database.delivered() if not (newest and newest.contains(c)) or chance.random() < 0.6]
    return database, snapshots, [*kept, *backfills.values()]


def batches(chance: random.Random, records: Sequence[Record]) -> list[list[Record]]:
    """Return the records in any order, some of them twice, in batches."""
    shuffled = [*records, *(record for record in records if chance.random() < 0.3)]
    chance.shuffle(shuffled)
    found: list[list[Record]] = [[]]
    for record in shuffled:
        if chance.random() < 0.3:
            found.append([])
        found[-1].append(record)
    return found


def wrong(kind: str) -> int:
    """Return in how many histories the increments or the fold do not give the rows of the database."""
    bad = 0
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        database, snapshots, kept = history(chance, kind)
        records = [*kept, *snapshots]
        base, staged = BaseTable(), []
        for batch in batches(chance, records):
            staged += batch
            base.apply(batch, staged)
            if base.live() != snapshot_model.fold(staged):
                bad += 1
                break
        else:
            bad += base.live() != database.rows()
    return bad


@pytest.mark.parametrize("kind", ["transactions", "places", "binary log", "change numbers", "late capture"])
def test_what_is_lost_before_a_snapshot_is_repaired_by_it_in_any_order(kind: str):
    assert wrong(kind) == 0


def test_a_change_at_the_very_place_of_a_snapshot_is_the_end_of_one_transaction_or_the_beginning_of_the_next():
    database = BinaryLog(named_by_end=lambda key: key == 1)
    database.change(1, 1, "in the snapshot")
    database.commit(1)
    snapshot = database.snapshot()
    database.change(2, 2, "after it")
    database.commit(2)
    assert {change.key: change.place for change in database.delivered()} == {1: 2, 2: 2}
    assert (dict(snapshot.rows), snapshot.place) == ({1: "in the snapshot"}, 1)
    assert fold([snapshot, *database.delivered()]) == {1: "in the snapshot", 2: "after it"}


def test_a_change_of_a_transaction_that_was_open_wins_over_the_snapshot():
    database = Database()
    database.change(1, 7, "old")
    database.commit(1)
    database.change(2, 7, "new")
    snapshot = database.snapshot()
    database.commit(2)
    assert dict(snapshot.rows) == {7: "old"}
    assert fold([snapshot, *database.delivered()]) == {7: "new"}


def test_a_late_change_from_before_a_snapshot_changes_nothing():
    database = Database()
    database.change(1, 7, "gone")
    database.change(2, 8, "stays")
    database.commit(1)
    database.commit(2)
    late = database.delivered()[0]
    database.change(3, 7, None)
    database.commit(3)
    base = BaseTable()
    snapshot = database.snapshot()
    base.apply([snapshot], [snapshot])
    base.apply([late], [snapshot, late])
    assert base.live() == {8: "stays"}


def test_a_snapshot_that_is_equal_writes_no_row_and_a_second_one_neither():
    database = Database()
    for key in range(4):
        database.change(key, key, f"v{key}")
        database.commit(key)
    base, staged = BaseTable(), list[Record](database.delivered())
    base.apply(staged, staged)
    for _ in range(2):
        snapshot = database.snapshot()
        staged.append(snapshot)
        base.apply([snapshot], staged)
        assert base.written == 0


def test_a_backfill_row_from_before_a_snapshot_changes_nothing_although_its_time_is_later():
    """Its query began before, or its clock is fast: docs/decisions/0044."""
    database = Database(clock=BEGINNING)
    database.change(1, 1, "old")
    database.commit(1)
    old = database.backfill([1], late=UNCERTAINTY)
    database.change(2, 1, "new")
    database.commit(2)
    snapshot = database.snapshot()
    assert old[0].read > snapshot.taken
    assert fold([*database.delivered(), *old, snapshot]) == {1: "new"}
    base, staged = BaseTable(), list[Record]()
    for record in [*old, snapshot, *database.delivered()]:
        staged.append(record)
        base.apply([record], staged)
    assert base.live() == {1: "new"}
    later = Backfill(1, snapshot.taken + UNCERTAINTY + 1, "newer")
    base.apply([later], [*staged, later])
    assert base.live() == fold([*staged, later]) == {1: "newer"}


def replaced(monkeypatch: pytest.MonkeyPatch, name: str, by: Callable[..., object]) -> None:
    monkeypatch.setattr(snapshot_model, name, by)


BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "an open transaction counts as contained": lambda patch: replaced(
        patch, "rank_of_change", lambda change, snapshots: (change.place, 0, 0, 0)
    ),
    "a change above one snapshot is not above the next": lambda patch: replaced(
        patch,
        "rank_of_change",
        lambda change, snapshots: (
            (*min(above), 2, change.place)
            if (above := [(s.place, s.taken) for s in snapshots if change.place <= s.place and not s.contains(change)])
            else (change.place, 0, 0, 0)
        ),
    ),
    "a snapshot stands below changes that it contains": lambda patch: replaced(
        patch, "rank_of_snapshot", lambda snapshot: (snapshot.place - 6, snapshot.taken, 1, 0)
    ),
    "of two snapshots at one place any is the later one": lambda patch: replaced(
        patch, "rank_of_snapshot", lambda snapshot: (snapshot.place, -snapshot.taken, 1, 0)
    ),
    "a snapshot deletes what came after it": lambda patch: replaced(
        patch, "rank_of_snapshot", lambda snapshot: (snapshot.place + 3, snapshot.taken, 1, 0)
    ),
    "the time of a backfill row is believed": lambda patch: patch.setattr(snapshot_model, "UNCERTAINTY", 0),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, bug: str):
    BUGS[bug](monkeypatch)
    assert wrong("transactions") > 0
