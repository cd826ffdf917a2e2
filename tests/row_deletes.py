"""Histories of Oracle rows with addresses: deletes that name nothing else, and keys that pass from row to row."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from datastream import Staged, event
from histories import KINDS
from lakes import Lake, stored
from laws import COUNTS, demand, some
from one_model import OneModel

OBJECT = "SHOP.ROWS"
COLUMNS = {"history": "int", "id": "bigint", "note": "string"}
BEGINNING = datetime(2026, 11, 21, 11, tzinfo=UTC)
Key = tuple[int, int]


@dataclass(frozen=True)
class Record:
    """A record of a row, of a row delete (`key` is None), or one that must be quarantined."""

    uuid: str
    text: str
    key: Key | None
    rank: tuple[int, ...]  # 0 and the time of reading, or 1, scn, ssn; 0 for a delete, 1 for what lies above it
    kind: str
    address: str | None
    note: str | None
    bad: bool = False
    batch: int = 1
    transaction: str | None = None

    @property
    def identity(self) -> Any:
        return (self.key or self.address, self.rank)


def change(
    history: int, key: int | None, change_type: str, scn: int, address: str | None, note: str | None = None,
    ssn: int = 0, uuid: str = "", bad: bool = False, payload: Mapping[str, Any] | str | None = None,
    transaction: str | None = None, **said: Any,
) -> Record:  # fmt: skip
    """Return a change; without a key it is a row delete, unless it is bad. Addresses are the history's own."""
    row_id = address and f"AAA{history:06}{address}"
    uuid = uuid or f"{history}-{key}-{change_type}-{scn}-{ssn}-{address}-{note}{'-bad' * bad}"
    if payload is None:
        payload = {"HISTORY": None if key is None else history, "ID": key, "NOTE": note}
    metadata = {"scn": scn, "rs_id": "0x0073cb.0000194d.0020", "ssn": ssn, "row_id": row_id, "tx_id": transaction}
    # What undoes a change may tell a time before that of the change.
    said = {"source_timestamp": _iso(scn - 7 if key is None and scn % 3 == 0 else scn), **said}
    text = event("oracle", payload, change_type, metadata=metadata, uuid=uuid, object=OBJECT, **said)
    kind = KINDS[change_type]
    above = int(kind != "delete")
    return Record(
        uuid, text, None if key is None else (history, key), (1, scn, ssn, above), kind, row_id,
        None if kind == "delete" else note, bad, transaction=transaction,
    )  # fmt: skip


def backfill(history: int, key: int, after: int, note: str) -> Record:
    """Return a row as a backfill read it; what it may say of an address does not count."""
    uuid = f"{history}-{key}-backfill-{after}-{note}"
    row = {"HISTORY": history, "ID": key, "NOTE": note}
    text = event(
        "oracle", row, uuid=uuid, object=OBJECT, read_method="oracle-backfill", read_timestamp=_iso(after),
        metadata={"row_id": f"AAA{history:06}a"}, without=["scn", "rs_id", "ssn"],
    )  # fmt: skip
    return Record(uuid, text, (history, key), (0, after, 0, 1), "insert", None, note)


# --- what can happen, in the order of the log, and the rows that are there in the end ---------------------------------

WAYS: dict[str, tuple[list[tuple[Any, ...]], set[tuple[int, str]]]] = {
    "rolled back": ([(1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "updated and rolled back": ([(1, "INSERT", "a", "x"), (1, "UPDATE", "a", "y"), (None, "DELETE", "a")], set()),
    "rolled back, the address then used by another row":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (2, "INSERT", "a", "y")], {(2, "y")}),
    "the address used by another row before":
        ([(2, "INSERT", "a", "y"), (2, "DELETE", "a"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "rolled back, and inserted again at that address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "a", "y")], {(1, "y")}),
    "rolled back, and inserted again at another address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "b", "y")], {(1, "y")}),
    "rolled back, inserted again, and deleted":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "b", "y"), (1, "DELETE", "b")], set()),
    "rolled back twice at one address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "the key changed, the address kept, all rolled back": (
        [(1, "INSERT", "a", "x"), (1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"), (None, "DELETE", "a")],
        set(),
    ),
    "another row at another address":
        ([(2, "INSERT", "b", "y"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], {(2, "y")}),
}  # fmt: skip
# What was there before, what one transaction does, and what comes after it.
Events = list[tuple[Any, ...]]
SHIFTS: dict[str, tuple[Events, Events, Events, set[tuple[int, str]]]] = {
    "two rows shift": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"),
         (2, "UPDATE-DELETE", "b"), (3, "UPDATE-INSERT", "b", "y")],
        [], {(2, "x"), (3, "y")},
    ),
    "two rows change places": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"),
         (2, "UPDATE-DELETE", "b"), (1, "UPDATE-INSERT", "b", "y")],
        [], {(2, "x"), (1, "y")},
    ),
    "the row that took the key is deleted too": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"), (2, "DELETE", "b"), (2, "DELETE", "a")],
        [], set(),
    ),
    "the row that took the key moves on, and a third one takes it": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"), (2, "DELETE", "b"), (2, "UPDATE-DELETE", "a"),
         (2, "INSERT", "c", "z")],
        [], {(2, "z")},
    ),
    "rows come and go at one key": (
        [(2, "INSERT", "b", "y")],
        [(2, "DELETE", "b"), (2, "INSERT", "c", "z"), (2, "DELETE", "c"), (2, "INSERT", "d", "w"), (2, "DELETE", "d")],
        [], set(),
    ),
    "one row moves on": (
        [(1, "INSERT", "a", "x")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"),
         (2, "UPDATE-DELETE", "a"), (5, "UPDATE-INSERT", "a", "x")],
        [], {(5, "x")},
    ),
    "a later transaction deletes the row that took the key": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"), (2, "DELETE", "b")],
        [(2, "DELETE", "a")], set(),
    ),
}  # fmt: skip
# The same, where the transaction has statements that fail: the log has the insert, and a delete of its address alone.
FAILED: Events = [(1, "INSERT", "b", "failed"), (None, "DELETE", "b")]
FAILURES: dict[str, tuple[Events, Events, Events, set[tuple[int, str]]]] = {
    "the key is taken": ([(1, "INSERT", "a", "x")], FAILED, [], {(1, "x")}),
    "the key is taken by a row that was updated":
        ([(1, "INSERT", "a", "x"), (1, "UPDATE", "a", "y")], FAILED, [], {(1, "y")}),
    "the key is not taken": ([], FAILED, [], set()),
    "the key was deleted before": ([(1, "INSERT", "a", "x"), (1, "DELETE", "a")], FAILED, [], set()),
    "two inserts, each at an address of its own":
        ([(1, "INSERT", "a", "x")], [*FAILED, (1, "INSERT", "c", "failed"), (None, "DELETE", "c")], [], {(1, "x")}),
    "two inserts at one address": ([(1, "INSERT", "a", "x")], FAILED * 2, [], {(1, "x")}),
    "the address is used later by a row of the transaction":
        ([(1, "INSERT", "a", "x")], [*FAILED, (2, "INSERT", "b", "y")], [], {(1, "x"), (2, "y")}),
    "the address is used later by a row of another transaction":
        ([(1, "INSERT", "a", "x")], FAILED, [(2, "INSERT", "b", "y")], {(1, "x"), (2, "y")}),
    "the address was used by a row that the transaction deleted":
        ([(1, "INSERT", "a", "x"), (2, "INSERT", "b", "y")], [(2, "DELETE", "b"), *FAILED], [], {(1, "x")}),
    "the next transaction fails too":
        ([(1, "INSERT", "a", "x")], FAILED, [(1, "INSERT", "c", "failed"), (None, "DELETE", "c")], {(1, "x")}),
    "the next transaction updates the row": ([(1, "INSERT", "a", "x")], FAILED, [(1, "UPDATE", "a", "y")], {(1, "y")}),
    "the next transaction deletes the row": ([(1, "INSERT", "a", "x")], FAILED, [(1, "DELETE", "a")], set()),
    "an update is undone":
        ([(1, "INSERT", "a", "x")], [(1, "UPDATE", "a", "failed"), (1, "UPDATE", "a", "x")], [], {(1, "x")}),
    "an update, and then an insert that fails":
        ([(1, "INSERT", "a", "x")], [(1, "UPDATE", "a", "y"), *FAILED], [], {(1, "y")}),
    "a delete, and back to a savepoint after it": ([(1, "INSERT", "a", "x")], [(1, "DELETE", "a"), *FAILED], [], set()),
    "a delete, and back to a savepoint before it":
        ([(1, "INSERT", "a", "x")], [(1, "DELETE", "a"), *FAILED, (1, "INSERT", "a", "x")], [], {(1, "x")}),
    "an update and a delete, and back to a savepoint before them": (
        [(1, "INSERT", "a", "x")],
        [(1, "UPDATE", "a", "y"), (1, "DELETE", "a"), *FAILED, (1, "INSERT", "a", "y"), (1, "UPDATE", "a", "x")],
        [], {(1, "x")},
    ),
    "a delete, and the key is inserted after all":
        ([(1, "INSERT", "a", "x")], [*FAILED, (1, "DELETE", "a"), (1, "INSERT", "b", "y")], [], {(1, "y")}),
    "rows shift before": (
        [(1, "INSERT", "a", "x"), (2, "INSERT", "c", "y")],
        [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"),
         (2, "UPDATE-DELETE", "c"), (3, "UPDATE-INSERT", "c", "y"),
         (2, "INSERT", "b", "failed"), (None, "DELETE", "b")],
        [], {(2, "x"), (3, "y")},
    ),
}  # fmt: skip
# The same, where a record is lost, or a key is taken again: each shows one rule alone.
OTHERS: dict[str, tuple[Events, Events, Events, set[tuple[int, str]]]] = {
    "two rows had the key, and the delete of the first one is lost": (
        [],
        [(2, "UPDATE", "a", "x"), (2, "UPDATE-INSERT", "b", "y"), (2, "UPDATE-DELETE", "b")],
        [], set(),
    ),
    "the key is inserted after all, at another address": ([], [*FAILED, (1, "INSERT", "c", "y")], [], {(1, "y")}),
    "the next transaction writes the values that were there":
        ([(1, "INSERT", "a", "x")], FAILED, [(1, "UPDATE", "a", "x")], {(1, "x")}),
}  # fmt: skip
BATCHES = 3
SPLITS = 70
INVENTED = 10001  # the first number of the histories that are invented


def arrivals() -> tuple[list[Record], set[tuple[Any, ...]]]:
    """Return every way in every split into three batches, side by side, and the rows that are there in the end.

    And a bulk insert that is rolled back row by row: one redo record for all rows, and one for what undoes them, each
    told twice.
    """
    records, end, numbers = [], set(), itertools.count(1)
    for events, rows in WAYS.values():
        for batches in itertools.product(range(1, BATCHES + 1), repeat=len(events)):
            number = next(numbers)
            for place, ((key, change_type, address, *note), batch) in enumerate(zip(events, batches, strict=True)):
                records.append(replace(change(number, key, change_type, 9 + place, address, *note), batch=batch))
            end |= {(number, *row) for row in rows}
    chance = random.Random(BATCHES)
    told_ways = [(way, SPLITS) for way in SHIFTS.values()] + [(way, SPLITS // 2) for way in FAILURES.values()]
    told_ways += [(way, SPLITS) for way in OTHERS.values()]
    for (before, transaction, after, rows), splits in told_ways:
        for _ in range(splits):
            number = next(numbers)
            # Of what was there before, some transactions are known: such a row may have been undone itself.
            earlier = chance.choice([None, "s"])
            told = [*((step, earlier) for step in before), *((step, "t") for step in transaction)]
            for place, ((key, kind, at, *note), name) in enumerate([*told, *((step, "u") for step in after)]):
                record = change(number, key, kind, 9 + place, at, *note, transaction=name)
                records.append(replace(record, batch=chance.randint(1, BATCHES)))
            end |= {(number, *row) for row in rows}
    for key in range(50):
        inserted = replace(change(0, key, "INSERT", 9, f"r{key}", "x"), batch=1 + key % 3)
        undone = replace(change(0, None, "DELETE", 10, f"r{key}"), batch=1 + key // 3 % 3)
        records += [inserted, undone, replace(again(undone, f"{undone.uuid}-again"), batch=1 + key // 9 % 3)]
    return records, end


# --- histories that nobody thought of ---------------------------------------------------------------------------------


def invent(number: int, chance: random.Random) -> list[Record]:
    """Return the records of a history; they need not make sense, but the changes of a key have an order."""
    # numbers that compare otherwise as text; each once, but for row deletes
    numbers = chance.sample([8, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, 1002], k=11)
    told: list[Record] = []
    for step in range(chance.randint(2, 7)):
        scn, key, address = numbers.pop(), chance.randint(1, 2), chance.choice("aab")
        kind = chance.choice(
            [
                "change",
                "change",
                "change",
                "undone",
                "undone",
                "undone",
                "backfill",
                "moved",
                "passed",
                "passed",
                *["failed"] * 3,
                "bad",
            ]
        )
        if kind == "change":
            change_type = chance.choice(["INSERT", "INSERT", "UPDATE", "UPDATE-INSERT", "DELETE"])
            told.append(change(number, key, change_type, scn, address, f"note {step}"))
        elif kind == "undone":
            at = chance.choice(
                [scn, *(record.rank[1] for record in told if record.rank[0] and record.rank[2:] == (0, 1))]
            )
            payload = chance.choice([None, None, {}, "null"])
            names = [None, *(record.transaction for record in told)] if at == scn else [None]
            told.append(change(number, None, "DELETE", at, address, payload=payload, transaction=chance.choice(names)))
        elif kind == "backfill":
            told.append(backfill(number, key, step, f"note {step}"))
        elif kind == "moved":
            told.append(change(number, key, "UPDATE-DELETE", scn, address))
            told.append(change(number, 3 - key, "UPDATE-INSERT", scn, address, f"note {step}", ssn=1))
        elif kind == "failed":  # inserts that are undone, most of them
            for place in range(0, 2 * chance.randint(1, 3), 2):
                at, name = chance.choice("abc"), f"t{scn}"
                told.append(
                    change(number, chance.randint(1, 2), "INSERT", scn, at, f"note {step}/{place}", ssn=place,
                           transaction=name)
                )  # fmt: skip
                if chance.random() < 0.8:
                    told.append(change(number, None, "DELETE", scn, at, ssn=place + 1, transaction=name))
        elif kind == "passed":  # some records of one transaction, of several rows, some of which it undoes
            for place in range(chance.randint(2, 6)):
                if chance.random() < 0.3:
                    name = chance.choice([f"t{scn}", f"t{scn}", f"t{scn}", "another", None])
                    used = [record.address[-1] for record in told if record.address and record.transaction == name]
                    at = chance.choice([*"abc", *used * 3])
                    told.append(change(number, None, "DELETE", scn, at, ssn=place, transaction=name))
                    continue
                change_type, at = (
                    chance.choice(["INSERT", "UPDATE-INSERT", "UPDATE-DELETE", "DELETE"]),
                    chance.choice([*"aabbc", None]),
                )
                told.append(
                    change(number, chance.randint(1, 2), change_type, scn, at, f"note {step}/{place}", ssn=place,
                           transaction=f"t{scn}")
                )  # fmt: skip
        else:
            no_key = {"HISTORY": number, "ID": None, "NOTE": None}
            told.append(
                chance.choice([
                    change(number, None, "DELETE", scn, None, bad=True),
                    change(number, None, "DELETE", scn, address, payload=no_key, bad=True),
                    change(number, None, "UPDATE", scn, address, bad=True),
                ])
            )  # fmt: skip
    for record in chance.choices(told, k=chance.choice([0, 0, 1, 2])):
        told.append(again(record, f"{record.uuid}-again" if chance.random() < 0.5 else record.uuid))
    chance.shuffle(told)
    return told


def invented(histories: int, seed: int, split: int, backwards: bool = False) -> list[Record]:
    """Return the records of many histories, delivered in `split` batches; their numbers begin at `INVENTED`."""
    chance, batch = random.Random(seed), random.Random(split)
    records = [record for number in range(INVENTED, INVENTED + histories) for record in invent(number, chance)]
    if backwards:
        records.reverse()
    return [replace(record, batch=batch.randint(1, split)) for record in records]


def again(record: Record, uuid: str) -> Record:
    """Return a copy of a record, with a uuid of its own."""
    return replace(record, uuid=uuid, text=record.text.replace(f'"{record.uuid}"', f'"{uuid}"'))


# --- the fold ---------------------------------------------------------------------------------------------------------


def newest(records: Iterable[Record]) -> dict[Key, Record]:
    """Return the record that decides on each key, in the batch by which all is there that it rests on.

    That is the newest record; but within its transaction the row to which an update gave the key last has it, until
    that row, told by its address, gives it up.
    """
    told = list(records)
    undoing = undoings(told)
    return {key: _deciding(list(copies.values()), undoing) for key, copies in distinct(told).items()}


def distinct(records: Iterable[Record]) -> dict[Key, dict[Any, Record]]:
    """Return of each key its records by rank, of copies the earliest one."""
    by_key: dict[Key, dict[Any, Record]] = {}
    for record in records:
        if record.key is not None and not record.bad:
            copies = by_key.setdefault(record.key, {})
            known = copies.get(record.rank)
            if known is None or record.batch < known.batch:
                copies[record.rank] = record
    return by_key


Undoings = dict[tuple[str | None, str], list[Record]]


def undoings(records: Iterable[Record]) -> Undoings:
    """Return the row deletes of each address and transaction."""
    found: Undoings = {}
    for record in records:
        if record.key is None and not record.bad and record.transaction:
            found.setdefault((record.address, record.transaction), []).append(record)
    return found


def undone_in(record: Record, undoing: Undoings) -> int | None:
    """Return the first batch with a row delete by which its transaction undid an insert; None if it stands."""
    if not _may_be_undone(record):
        return None
    found = undoing.get((record.address, record.transaction or ""), [])
    return min((delete.batch for delete in found if delete.rank > record.rank), default=None)


def _may_be_undone(record: Record) -> bool:
    return record.kind == "insert" and None not in (record.address, record.transaction)


def _deciding(records: list[Record], undoing: Undoings) -> Record:
    """Return the row of a key, in the batch since which its base table has had it as it is.

    An insert that is undone takes no part, unless nothing else is known of the key. An insert that stands may be undone
    yet: so the row rests on all inserts that stand, and on what is there without them.
    """
    certain = [record for record in records if not _may_be_undone(record)]
    kept = _kept(certain) if certain else []
    last = kept[0] if kept else None
    taken = max((record.rank for record in certain if last and record.kind != "delete" and last.transaction
                 and record.transaction == last.transaction), default=())  # fmt: skip
    recent = [
        record for record in records
        if _may_be_undone(record) and (
            last is None or record.rank > last.rank or (record.transaction == last.transaction and record.rank > taken)
        )
    ]  # fmt: skip
    gone = {record.rank: undone_in(record, undoing) for record in recent}
    standing = [record for record in recent if gone[record.rank] is None]
    undone = [record for record in recent if gone[record.rank] is not None]
    if not certain and undone:  # nothing else may be known of the key in the end
        newest_undone = max(undone, key=lambda record: record.rank)
        kept, standing = [newest_undone], standing or [newest_undone]
    row = _row([*certain, *standing])
    # An insert that stood in an earlier batch than that of its undoing has set the row.
    since = [batch for record in recent if (batch := gone[record.rank]) and batch > record.batch]
    return replace(row, batch=max([record.batch for record in [*kept, *standing]] + since))


def _row(records: list[Record]) -> Record:
    """Return the record that sets the row."""
    last, taken, given_up = _of_newest_transaction(records)
    return last if taken is None or any(_ends(record, taken) for record in given_up) else taken


def _kept(records: list[Record]) -> list[Record]:
    """Return the records on which the row rests, the newest one first."""
    last, taken, given_up = _of_newest_transaction(records)
    return [last, *given_up, *([taken] if taken else [])]


def _of_newest_transaction(records: list[Record]) -> tuple[Record, Record | None, list[Record]]:
    """Return the newest record; of its transaction the newest one that sets a row, and the deletes after that one."""
    last = max(records, key=lambda record: record.rank)
    if last.transaction is None:
        return last, None, []
    of_it = [record for record in records if record.transaction == last.transaction]
    taken = max((record for record in of_it if record.kind != "delete"), key=lambda record: record.rank, default=None)
    given_up: dict[str | None, Record] = {}
    for record in sorted(of_it, key=lambda record: record.rank):
        if record.kind == "delete" and (taken is None or record.rank > taken.rank):
            given_up[record.address] = record
    return last, taken, list(given_up.values())


def _ends(delete: Record, taken: Record) -> bool:
    """Whether a delete ends the row that an earlier record of its transaction gave the key to."""
    return taken.kind == "insert" or None in (taken.address, delete.address) or taken.address == delete.address


def row_deletes(records: Iterable[Record]) -> dict[tuple[str, tuple[int, ...]], int]:
    """Return the first batch of each row delete, by address and rank."""
    found: dict[Any, int] = {}
    for record in records:
        if record.key is None and not record.bad:
            found[record.identity] = min(record.batch, found.get(record.identity, record.batch))
    return found


def last_of_each(undone: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str | None, tuple[int, ...]]:
    """Return the rank of the newest row delete of each address."""
    found: dict[str | None, tuple[int, ...]] = {}
    for address, rank in undone:
        found[address] = max(rank, found.get(address, ()))
    return found


def is_live(row: Record | None, undone: Mapping[str | None, tuple[int, ...]]) -> bool:
    """The whole semantics: the newest record is no delete, and no row delete of its address is newer."""
    return row is not None and row.kind != "delete" and undone.get(row.address, ()) <= row.rank


def live_rows(records: Iterable[Record]) -> set[tuple[Any, ...]]:
    """Return the keys and notes of the rows that are there in the end."""
    told = list(records)
    undone = last_of_each(row_deletes(told))
    return {(*key, row.note) for key, row in newest(told).items() if is_live(row, undone)}


@dataclass(frozen=True)
class Version:
    """What a record makes of its row; `undone` is the place of the row delete that ended it."""

    record: Record
    valid_from: int
    valid_to: int | None
    undone: tuple[int, ...] | None
    was_live: bool
    never_was: bool = False  # an insert that its transaction undid

    @property
    def is_version(self) -> bool:
        return self.record.kind != "delete" and not self.never_was


def replay(records: Iterable[Record]) -> dict[Key, list[Version]]:
    """Return the versions of each key, in the order of the log."""
    told = list(records)
    undoing: dict[str | None, dict[Any, Record]] = {}
    for record in told:
        if record.key is None and not record.bad:
            undoing.setdefault(record.address, {})[record.identity] = record
    undoing_inserts = undoings(told)
    versions: dict[Key, list[Version]] = {}
    for key, copies in distinct(told).items():
        every, holder = [copies[rank] for rank in sorted(copies)], None
        undone = {record.rank for record in every if undone_in(record, undoing_inserts)}
        # What says nothing of the row: undone inserts, and deletes of the row from which the key had been passed on.
        of_other_rows = set(undone)
        for record in every:
            if record.rank in undone:
                continue
            if record.kind != "delete":
                holder = record
            elif holder and record.transaction and holder.transaction == record.transaction:
                of_other_rows |= set() if _ends(record, holder) else {record.rank}
        live = False
        for record in every:
            after = [later for later in every if later.rank > record.rank and later.rank not in of_other_rows]
            next_from = min(map(_time, after), default=None)
            if record.rank in of_other_rows:
                valid_from = _time(record) if next_from is None else next_from
                is_undone = record.rank in undone
                versions.setdefault(key, []).append(Version(record, valid_from, next_from, None, live, is_undone))
                continue
            ends = sorted(
                (r.rank, _time(r))
                for r in undoing.get(record.address, {}).values()
                if record.kind != "delete"
                and r.rank > record.rank and (not after or r.rank < after[0].rank)
            )  # fmt: skip
            valid_from = min(map(_time, [record, *after]))
            valid_to = min([*map(_time, after), *(time for _, time in ends[:1])], default=None)
            valid_to = valid_to if valid_to is None else max(valid_from, valid_to)
            versions.setdefault(key, []).append(
                Version(record, valid_from, valid_to, ends[0][0] if ends else None, live)
            )
            live = record.kind != "delete" and not ends
    return versions


def shown_versions(records: Iterable[Record]) -> Counter[tuple[Any, ...]]:
    """Return key, value and validity of what people read: of versions that only repeat the one before, the first."""
    shown: Counter[tuple[Any, ...]] = Counter()
    for key, every in replay(records).items():
        chains: list[list[Version]] = []
        for version in [version for version in every if version.is_version]:
            before = chains[-1][-1] if chains else None
            if before and before.valid_to == version.valid_from and before.record.note == version.record.note:
                chains[-1].append(version)
            else:
                chains.append([version])
        shown.update((*key, chain[0].record.note, chain[0].valid_from, chain[-1].valid_to) for chain in chains)
    return shown


def account_of_versions(known: list[Record], come: list[Record]) -> dict[str, int]:
    """Return the ledger's counts of the records that come to a history, given those that were applied before."""
    count = Counter(delivered=len(come), quarantined=sum(record.bad for record in come))
    after = [version for versions in replay(known + come).values() for version in versions]
    at: dict[str | None, list[Version]] = {}
    for version in after:
        at.setdefault(version.record.address, []).append(version)
    version_of = {version.record.identity: version for version in after}
    identities = {record.identity for record in known if not record.bad}
    for record in come:
        if record.bad:
            continue
        if record.identity in identities:
            count["duplicate"] += 1
            continue
        identities.add(record.identity)
        if record.key is None:
            there = [version for version in at.get(record.address, []) if version.record.rank < record.rank]
            ended = any(version.undone == record.rank for version in there)
            count["applied" if ended else "superseded" if there else "pending"] += 1
            count["deleted"] += ended
            continue
        version = version_of[record.identity]
        if version.never_was:
            count["superseded"] += 1
            continue
        count["applied"] += 1
        effects = ("inserted", "updated") if version.is_version else ("tombstoned", "deleted")
        count[effects[version.was_live]] += 1
    return {name: count[name] for name in COUNTS}


def _time(record: Record) -> int:
    """Return the seconds after the beginning that a record tells; a backfill row tells those of its reading."""
    told = datetime.fromisoformat(json.loads(record.text)["source_timestamp"].replace("Z", "+00:00"))
    return (told - BEGINNING) // timedelta(seconds=1)


def _after(time: datetime | None) -> int | None:
    return None if time is None else (time.astimezone(UTC) - BEGINNING) // timedelta(seconds=1)


def account(known: list[Record], come: list[Record]) -> dict[str, int]:
    """Return the ledger's counts of the records that come, given those that were applied before."""
    count = Counter(delivered=len(come), quarantined=sum(record.bad for record in come))
    before, after = newest(known), newest(known + come)
    undone_before, undone_after = row_deletes(known), row_deletes(known + come)
    last_before, last_after = last_of_each(undone_before), last_of_each(undone_after)
    at: dict[str | None, list[Key]] = {}
    for key, row in after.items():
        at.setdefault(row.address, []).append(key)
    seen = {r.address for r in come if r.key and not r.bad} | {row.address for row in before.values()}
    copies: dict[Any, list[Record]] = {}
    for record in come:
        if not record.bad:
            copies.setdefault(record.identity, []).append(record)
    undoing = undoings(known + come)
    # Of each key whose row changes, the record that counts as applied; none if a row comes back that was there before.
    applied: dict[Key, Any] = {}
    for key, row in after.items():
        if key not in before or before[key].rank != row.rank:
            come_of_key = [same[0] for same in copies.values() if same[0].key == key]
            stand = [record.rank for record in come_of_key if undone_in(record, undoing) is None]
            applied[key] = row.rank if row.rank in {record.rank for record in come_of_key} else max(stand, default=None)
    for identity, same in copies.items():
        record = same[0]
        is_known = (
            identity in undone_before if record.key is None
            else record.key in before and before[record.key].rank == record.rank
        )  # fmt: skip
        count["duplicate"] += len(same) - 1 + is_known
        if is_known:
            continue
        latest = last_after.get(record.address, ())
        if record.key is None:
            there = [key for key in at.get(record.address, []) if after[key].rank < record.rank]
            if record.rank < latest:
                count["superseded"] += 1
            elif there:
                gone = [key for key in there if after[key].kind != "delete" and is_live(before.get(key), last_before)]
                count["applied"] += 1
                count["deleted" if gone else "tombstoned"] += 1
            else:
                count["superseded" if record.address in seen else "pending"] += 1
            continue
        was_live, lives = is_live(before.get(record.key), last_before), is_live(after[record.key], last_after)
        row = after[record.key]
        latest = last_after.get(row.address, ())
        undone_now = latest > row.rank and (row.address, latest) not in undone_before
        is_undone = row.kind != "delete" and not lives
        if applied.get(record.key) != record.rank or (is_undone and (undone_now or not was_live)):
            count["superseded"] += 1
        else:
            count["applied"] += 1
            effects = {(0, 0): "tombstoned", (0, 1): "inserted", (1, 0): "deleted", (1, 1): "updated"}
            count[effects[was_live, lives]] += 1
    return {name: count[name] for name in COUNTS}


def _iso(seconds: int) -> str:
    return (BEGINNING + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- what is made of them ---------------------------------------------------------------------------------------------


class Rows(OneModel[Record]):
    """A model of an Oracle table."""

    name, materialized = "tbl", "current_state"
    tests: tuple[str, ...] = ("ledger_balances", "no_pending_rows", "one_payload_per_sequence")
    account = staticmethod(account)

    def __init__(
        self, lake: Lake, schema: str, records: Iterable[Record],
        replaced: Mapping[str, Mapping[str, str]] | None = None, key: Any = ("history", "id"), fresh: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lake, schema, records, replaced)
        self.key = key if isinstance(key, str) else list(key)
        self.model("tbl", self.materialized, fresh, data_tests=[f"reconcile.{name}" for name in self.tests])

    def model(self, name: str, materialized: str, fresh: bool = False, **properties: Any) -> None:
        config = f"materialized='{materialized}', unique_key={self.key!r}, meta={ {'fresh': True} if fresh else {} }"
        macro = f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='{OBJECT}') }}}}"
        self.project.model(name, f"{{{{ config({config}) }}}}\n{macro}", COLUMNS, **properties)

    def staged(self) -> Iterable[Staged]:
        return [Staged(record.text, OBJECT, record.batch) for record in self.records]

    def base(self) -> dict[Key, dict[str, Any]]:
        rows = stored(self.lake, f"{self.schema}.tbl__base").collect()
        found = {(row.history, row.id): row.asDict() for row in rows}
        demand(len(found) == len(rows), "the base has a key twice")
        return found

    def live(self, relation: str = "tbl") -> set[tuple[Any, ...]]:
        return {tuple(row) for row in self.lake.table(f"{self.schema}.{relation}").collect()}

    def has_row_deletes(self) -> bool:
        return self.lake.has(f"{self.schema}.tbl__row_deletes")

    def deletes(self) -> set[tuple[Any, ...]]:
        """Return address, sequence, id and batch of the row deletes that are kept."""
        if not self.has_row_deletes():
            return set()
        rows = stored(self.lake, f"{self.schema}.tbl__row_deletes").collect()
        found = {(row._row_id, row._change_sequence, row._change_id, row._change_batch) for row in rows}
        demand(len(found) == len(rows), "a row delete is kept twice")
        return found

    def now(self) -> set[tuple[Any, ...]]:
        return self.live()

    def pending(self) -> set[str | None]:
        """Return the addresses of row deletes that came alone, in `arrivals`: each address has one of them."""
        delivered = [record for record in self.upto(self.batch) if (record.address or "~") < f"AAA{INVENTED:06}"]
        return {
            address for address, rank in row_deletes(delivered)
            if not any(record.key and record.address == address and record.rank < rank for record in delivered)
        }  # fmt: skip

    def sequences(self) -> dict[str, str]:
        changes = self.lake.table(f"{self.schema}.tbl__changes").select("_change_id", "_change_sequence")
        return {row._change_id: row._change_sequence for row in changes.collect()}

    # --- the laws ---

    def check_state(self) -> None:
        """Law 1: base, row deletes and live rows follow from the records that were delivered."""
        delivered = self.upto(self.batch)
        rows, undone = newest(delivered), row_deletes(delivered)
        seen = {key: (r["_deleted"], r["note"], r["_row_id"], r["_change_batch"]) for key, r in self.base().items()}
        kept = {key: (row.kind == "delete", row.note, row.address, row.batch) for key, row in rows.items()}
        demand(seen == kept, f"rows are not as folded: {some(seen.items() ^ kept.items())}")
        sequences, copies = self.sequences(), dict[Any, set[str]]()
        for record in delivered:
            if record.identity in undone and record.key is None:
                copies.setdefault(record.identity, set()).add(record.uuid)
        # Of copies the least id is kept, whatever came first.
        expected = {
            (address, sequences[min(uuids)], min(uuids), undone[address, rank])
            for (address, rank), uuids in copies.items()
        }
        known = self.deletes()
        demand(known == expected, f"row deletes are not those delivered: {some(known ^ expected)}")
        self.check_live("tbl")

    def check_live(self, relation: str) -> None:
        """Law 1, of a view alone."""
        live, right = self.live(relation), live_rows(self.upto(self.batch))
        demand(live == right, f"{relation}: the view's rows are not the live ones: {some(live ^ right)}")


class RowVersions(Rows):
    """The same with a model that keeps every version."""

    materialized = "history"
    tests = ("ledger_balances", "no_pending_rows", "history_is_sound")
    account = staticmethod(account_of_versions)

    def base(self) -> Any:
        """Return the rows of the base table, by key and sequence."""
        rows = stored(self.lake, f"{self.schema}.tbl__base").collect()
        found = {(row.history, row.id, row._change_sequence): row.asDict() for row in rows}
        demand(len(found) == len(rows), "the base has a version twice")
        return found

    def check_state(self) -> None:
        """Law 1: the versions are those of a replay, and end where a row delete says so."""
        delivered = self.upto(self.batch)
        sequences = self.sequences()
        expected = {
            (*version.record.key, sequences[version.record.uuid]): (
                version.record.kind, version.record.note, version.valid_from, version.valid_to,
            )
            for versions in replay(delivered).values()
            for version in versions
            if version.record.key
        }  # fmt: skip
        seen = {
            identity: (row["_change_type"], row["note"], _after(row["valid_from"]), _after(row["valid_to"]))
            for identity, row in self.base().items()
        }
        demand(seen == expected, f"versions are not as replayed: {some(seen.items() ^ expected.items())}")
        shown, right_versions = self.shown(), shown_versions(delivered)
        demand(shown == right_versions, f"the versions are not shown as replayed: {some(shown - right_versions)}")
        current, right = self.now(), live_rows(delivered)
        demand(current == right, f"the current versions are not the live rows: {some(current ^ right)}")

    def shown(self) -> Counter[tuple[Any, ...]]:
        """Return key, value and validity of what the view shows."""
        rows = self.lake.table(f"{self.schema}.tbl").collect()
        return Counter((r.history, r.id, r.note, _after(r.valid_from), _after(r.valid_to)) for r in rows)

    def now(self) -> set[tuple[Any, ...]]:
        return {tuple(row[:3]) for row in self.lake.table(f"{self.schema}.tbl").where("is_current").collect()}
