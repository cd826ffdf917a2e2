"""Histories of Bigtable cells as data changes of a change stream, a plain fold, and checks of what dbt made."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from datastream import Staged
from lakes import Lake, stored
from laws import COUNTS, demand, some
from one_model import OneModel

OBJECT = "events"
KEY = ["row_key", "family", "qualifier", "cell_time"]
COLUMNS = {"row_key": "binary", "family": "string", "qualifier": "binary", "cell_time": "timestamp", "value": "binary"}
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
Cell = tuple[bytes, str, bytes, int]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def set_cell(family: str, qualifier: bytes, micros: int, value: bytes) -> dict[str, Any]:
    said = {"family": family, "qualifier": b64(qualifier), "timestamp_micros": micros, "value": b64(value)}
    return {"set_cell": said}


def delete_from_column(family: str, qualifier: bytes, start: int = 0, end: int = 0) -> dict[str, Any]:
    """Return the deletion of a column's cells from `start` to before `end`; an `end` of 0 is none."""
    said = {"family": family, "qualifier": b64(qualifier)}
    return {"delete_from_column": {**said, "start_timestamp_micros": start, "end_timestamp_micros": end}}


def delete_from_family(family: str) -> dict[str, Any]:
    return {"delete_from_family": {"family": family}}


def data_change(
    row_key: bytes, entries: Any, /, nanoseconds: int = 0, tiebreaker: float = 0, *,
    without: Iterable[str] = (), **fields: Any,
) -> str:  # fmt: skip
    """Return one data change as the reader stages it; `nanoseconds` after a certain hour; `fields` replace."""
    record = {
        "row_key": b64(row_key),
        "type": "user",
        "source_cluster_id": "c1",
        "commit_timestamp": f"2026-11-22T10:00:{nanoseconds // 10**9:02}.{nanoseconds % 10**9:09}Z",
        "tiebreaker": tiebreaker,
        "token": "AAA=",
        "estimated_low_watermark": "2026-11-22T09:59:59.000000000Z",
        "entries": entries,
        **fields,
    }
    return json.dumps({name: value for name, value in record.items() if name not in without})


@dataclass(frozen=True)
class Entry:
    """An entry of a data change: `value` is None of a deletion, whose `cell` is not there; `rank` orders."""

    text: str
    rank: tuple[int, int, int]
    row_key: bytes
    said: Mapping[str, Any]
    type: str = "user"
    bad: bool = False
    batch: int = 1

    @property
    def cell(self) -> Cell | None:
        said = self.said.get("set_cell")
        return said and (self.row_key, said["family"], base64.b64decode(said["qualifier"]), said["timestamp_micros"])

    @property
    def value(self) -> bytes | None:
        return base64.b64decode(self.said["set_cell"]["value"]) if self.cell else None

    @property
    def range(self) -> tuple[Any, ...] | None:
        """Return row key, family, qualifier, start and end of what is deleted; None: all of them, or no end."""
        column, family = self.said.get("delete_from_column"), self.said.get("delete_from_family")
        if column:
            start, end = column["start_timestamp_micros"], column["end_timestamp_micros"]
            return self.row_key, column["family"], base64.b64decode(column["qualifier"]), start, end or None
        return family and (self.row_key, family["family"], None, 0, None)

    @property
    def identity(self) -> Any:
        return (self.cell or self.range, self.rank)


def entries_of(text: str, bad: bool = False, batch: int = 1) -> list[Entry]:
    """Return the entries of a data change, each with its place in the order."""
    change = json.loads(text)
    seconds, fraction = change["commit_timestamp"][17:-1].split(".")
    rank = (int(seconds) * 10**9 + int(fraction), change["tiebreaker"])
    row_key = base64.b64decode(change["row_key"])
    return [
        Entry(text, (*rank, place), row_key, said, change["type"], bad, batch)
        for place, said in enumerate(change["entries"])
    ]


# --- the fold ---------------------------------------------------------------------------------------------------------


def newest(entries: Iterable[Entry]) -> dict[Cell, Entry]:
    """Return the newest SetCell of each cell, in its first batch."""
    found: dict[Cell, Entry] = {}
    for entry in entries:
        if entry.cell and not entry.bad:
            known = found.get(entry.cell)
            if known is None or (entry.rank, -entry.batch) > (known.rank, -known.batch):
                found[entry.cell] = entry
    return found


def deleted(entries: Iterable[Entry]) -> dict[Any, int]:
    """Return the first batch of each deletion of a range, by range and rank."""
    found: dict[Any, int] = {}
    for entry in entries:
        if entry.range and not entry.bad:
            found[entry.identity] = min(entry.batch, found.get(entry.identity, entry.batch))
    return found


def covers(place: tuple[Any, ...], cell: Cell) -> bool:
    row_key, family, qualifier, start, end = place
    of_column = (row_key, family) == cell[:2] and qualifier in (None, cell[2])
    return of_column and start <= cell[3] and (end is None or cell[3] < end)


def by_row(ranges: Iterable[Any]) -> dict[bytes, list[Any]]:
    """Return places and ranks of deletions by the row that they are of."""
    found: dict[bytes, list[Any]] = {}
    for place, rank in ranges:
        found.setdefault(place[0], []).append((place, rank))
    return found


def is_visible(entry: Entry | None, ranges: Mapping[bytes, list[Any]]) -> bool:
    """The whole semantics: no deletion of a range that covers the cell is newer than what set it."""
    if entry is None or entry.cell is None:
        return False
    return not any(rank > entry.rank and covers(place, entry.cell) for place, rank in ranges.get(entry.row_key, ()))


def visible(entries: Iterable[Entry]) -> dict[Cell, bytes | None]:
    told = list(entries)
    ranges = by_row(deleted(told))
    return {cell: entry.value for cell, entry in newest(told).items() if is_visible(entry, ranges)}


def account(known: list[Entry], come: list[Entry]) -> dict[str, int]:
    """Return the ledger's counts of the entries that come, given those that were applied before."""
    count = Counter(delivered=len(come), quarantined=sum(entry.bad for entry in come))
    before, after = newest(known), newest(known + come)
    known_ranges = deleted(known)
    ranges_before, ranges_after = by_row(known_ranges), by_row(deleted(known + come))
    gone: dict[bytes, list[Cell]] = {}
    for cell in after:
        if is_visible(before.get(cell), ranges_before) and not is_visible(after[cell], ranges_after):
            gone.setdefault(cell[0], []).append(cell)
    copies: dict[Any, list[Entry]] = {}
    for entry in come:
        if not entry.bad:
            copies.setdefault(entry.identity, []).append(entry)
    for identity, same in copies.items():
        entry, place = same[0], identity[0]
        is_known = identity in known_ranges if entry.range else place in before and before[place].rank == entry.rank
        count["duplicate"] += len(same) - 1 + is_known
        if is_known:
            continue
        if entry.range:
            is_latest = entry.rank == max(rank for other, rank in ranges_after[entry.row_key] if other == place)
            left = gone.get(entry.row_key, [])
            takes = any(covers(place, cell) and after[cell].rank < entry.rank for cell in left)
            effect = "deleted" if takes else "tombstoned"
        else:
            is_latest = after[place].rank == entry.rank and is_visible(entry, ranges_after)
            effect = "updated" if is_visible(before.get(place), ranges_before) else "inserted"
        count["applied" if is_latest else "superseded"] += 1
        count[effect] += is_latest
    return {name: count[name] for name in COUNTS}


def replay(entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
    """Return the versions of all cells: cell, value, first and last microsecond, entry, what ended it, was it live."""
    told = [entry for entry in entries if not entry.bad]
    ranges = by_row(deleted(told))
    by_cell: dict[Cell, dict[Any, Entry]] = {}
    for entry in told:
        if entry.cell:
            by_cell.setdefault(entry.cell, {}).setdefault(entry.rank, entry)
    versions: list[tuple[Any, ...]] = []
    for cell, copies in by_cell.items():
        live = False
        order = [copies[rank] for rank in sorted(copies)]
        for entry, later in zip(order, [*order[1:], None], strict=True):
            ends = sorted(
                (rank, place) for place, rank in ranges.get(cell[0], ())
                if covers(place, cell) and rank > entry.rank and (later is None or rank < later.rank)
            )  # fmt: skip
            valid_to = ends[0][0] if ends else later.rank if later else None
            until = None if valid_to is None else valid_to[0] // 1000
            undone = (ends[0][1], ends[0][0]) if ends else None
            versions.append((cell, entry.value, entry.rank[0] // 1000, until, entry, undone, live))
            live = not ends
    return versions


def account_of_versions(known: list[Entry], come: list[Entry]) -> dict[str, int]:
    """Return the ledger's counts of the entries that come to a history, given those that were applied before."""
    count = Counter(delivered=len(come), quarantined=sum(entry.bad for entry in come))
    after = replay(known + come)
    ended = {version[5] for version in after}
    was_live = {version[4].identity: version[6] for version in after}
    identities = {entry.identity for entry in known if not entry.bad}
    for entry in come:
        if entry.bad:
            continue
        if entry.identity in identities:
            count["duplicate"] += 1
            continue
        identities.add(entry.identity)
        count["applied"] += 1
        if entry.range:
            count["deleted" if entry.identity in ended else "tombstoned"] += 1
        else:
            count["updated" if was_live[entry.identity] else "inserted"] += 1
    return {name: count[name] for name in COUNTS}


# --- histories that nobody thought of ---------------------------------------------------------------------------------


def invent(number: int, chance: random.Random) -> list[list[Entry]]:
    """Return the data changes of one row, each as its entries. Few cells, so that they meet; the order is total."""
    row_key = b"\xff\x00" + number.to_bytes(3, "big")  # no text
    families, qualifiers, times = ["f", "g"], [b"", b"q", b"\x80"], [0, 1000, 2000, 10_000]
    ranks = [(n, t) for n in (0, 1, 999, 1000, 1001, 59 * 10**9) for t in (-1, 0, 9, 10)]
    chance.shuffle(ranks)
    changes: list[str] = []
    backfill = chance.random() < 0.3
    for step in range(chance.randint(2, 7)):
        said: list[Any] = []
        for place in range(chance.choice([1, 1, 2, 3])):
            family, qualifier = chance.choice(families), chance.choice(qualifiers)
            kind = chance.choice(["set", "set", "set", "set", "column", "column", "family"])
            if kind == "set" or (backfill and step == 0):
                value = chance.choice([b"", f"{step}.{place}".encode(), b"\x00\xfe"])
                said.append(set_cell(family, qualifier, chance.choice(times), value))
            elif kind == "column":
                start, end = chance.choice([(0, 0), (0, 2000), (1000, 0), (1000, 2000), (1000, 10_000), (2000, 1000)])
                said.append(delete_from_column(family, qualifier, start, end))
            else:
                said.append(delete_from_family(family))
        nanoseconds, tiebreaker = ranks.pop()
        if backfill and step == 0:
            said_of = {"type": "backfill", "source_cluster_id": ""}
        elif all("set_cell" not in entry for entry in said) and chance.random() < 0.5:
            said_of = {"type": "garbage_collection", "source_cluster_id": ""}
        else:
            said_of = {"type": "user", "source_cluster_id": chance.choice(["c1", "c2"])}
        changes.append(data_change(row_key, said, nanoseconds, tiebreaker, **said_of))
    told = [entries_of(text) for text in changes]
    if chance.random() < 0.2:
        nanoseconds, tiebreaker = ranks.pop()
        said = [set_cell("f", b"q", 0, b"of a change with more"), {"add_to_cell": {"family": "f"}}]
        told.append(entries_of(data_change(row_key, said, nanoseconds, tiebreaker), bad=True))
    told += chance.choices(told, k=chance.choice([0, 0, 1, 2]))
    chance.shuffle(told)
    return told


def invented(histories: int, seed: int, split: int, backwards: bool = False) -> list[Entry]:
    """Return the entries of many histories, delivered in `split` batches."""
    chance, batch = random.Random(seed), random.Random(split)
    changes = [change for number in range(histories) for change in invent(number, chance)]
    if backwards:
        changes.reverse()
    entries = []
    for change in changes:
        number = batch.randint(1, split)
        entries += [replace(entry, batch=number) for entry in change]
    return entries


# --- histories with a moral: each with the cells that are visible in the end ------------------------------------------


def hidden_and_back() -> tuple[list[Entry], dict[Cell, bytes]]:
    """Cells that are set, deleted and set again, their three records in every split into three batches."""
    entries = []
    for number, batches in enumerate(itertools.product((1, 2, 3), repeat=3)):
        said = [set_cell("f", b"q", 1000, b"a")], [delete_from_column("f", b"q")], [set_cell("f", b"q", 1000, b"b")]
        for place, (one, batch) in enumerate(zip(said, batches, strict=True)):
            entries += entries_of(data_change(bytes([number]), one, place), batch=batch)
    return entries, {(bytes([number]), "f", b"q", 1000): b"b" for number in range(27)}


def far_times() -> tuple[list[Entry], dict[Cell, bytes]]:
    """Times that are no dates: they are what their writer says, often what is left of 64 bits, newest first."""
    times = [0, 253402300800000000, 2**62, 2**63 - 1_800_000_000_000_000, 2**63 - 1]
    said = [
        [set_cell("f", b"q", time, b"a") for time in times],
        [set_cell("f", b"q", time, b"b") for time in times[1:]],
        [delete_from_column("f", b"q", times[3], 2**63 - 1), delete_from_column("f", b"q", 1, times[2])],
    ]
    entries = [
        e for place, one in enumerate(said) for e in entries_of(data_change(b"far", one, place), batch=place + 1)
    ]
    left = [(0, b"a"), (2**62, b"b"), (2**63 - 1, b"b")]
    return entries, {(b"far", "f", b"q", time): value for time, value in left}


# --- what dbt makes of them -------------------------------------------------------------------------------------------


class Cells(OneModel[Entry]):
    """A model of cells."""

    name, materialized = "cells", "current_state"
    tests: tuple[str, ...] = ("ledger_balances", "no_pending_rows", "one_payload_per_sequence")
    account = staticmethod(account)

    def __init__(
        self, lake: Lake, schema: str, entries: Iterable[Entry],
        replaced: Mapping[str, Mapping[str, str]] | None = None, garbage_collection: str = "", fresh: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(lake, schema, entries, replaced)
        self.keeps = (garbage_collection or {"history": "keep"}.get(self.materialized, "apply")) == "keep"
        said = f", garbage_collection='{garbage_collection}'" if garbage_collection else ""
        self.macro = f"{{{{ reconcile.bigtable_change_stream(source('lake', 'changes'), object='{OBJECT}'{said}) }}}}"
        self.model("cells", self.materialized, fresh, data_tests=[f"reconcile.{name}" for name in self.tests])

    def staged(self) -> Iterable[Staged]:
        return [Staged(e.text, OBJECT, e.batch, source="bigtable") for e in self.records if e.rank[2] == 0]

    def model(self, name: str, materialized: str, fresh: bool = False, **properties: Any) -> None:
        config = f"materialized='{materialized}', unique_key={KEY}, meta={ {'fresh': True} if fresh else {} }"
        self.project.model(name, f"{{{{ config({config}) }}}}\n{self.macro}", COLUMNS, **properties)

    def upto(self, batch: int, first: int = 1) -> list[Entry]:
        taken = super().upto(batch, first)
        return [entry for entry in taken if not (self.keeps and entry.type == "garbage_collection")]

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows of a relation of cells, `cell` the key of each, its time in microseconds."""
        found = []
        for row in (
            stored(self.lake, f"{self.schema}.{relation}")
            .selectExpr("* except (cell_time)", "unix_micros(cell_time) as us")
            .collect()
        ):
            cell = (bytes(row.row_key), row.family, bytes(row.qualifier), row.us)
            found.append({**row.asDict(), "cell": cell, "value": None if row.value is None else bytes(row.value)})
        return found

    def base(self) -> dict[Cell, dict[str, Any]]:
        rows = self.rows("cells__base")
        found = {row["cell"]: row for row in rows}
        demand(len(found) == len(rows), "the base has a cell twice")
        return found

    def live(self, relation: str = "cells") -> dict[Cell, bytes | None]:
        rows = self.rows(relation)
        found = {row["cell"]: row["value"] for row in rows}
        demand(len(found) == len(rows), "the view has a cell twice")
        return found

    def deletes(self) -> set[tuple[Any, ...]]:
        """Return the deletions that are kept: row key, family, qualifier, start, end, sequence and batch."""
        if not self.lake.has(f"{self.schema}.cells__range_deletes"):
            return set()
        rows = self.lake.table(f"{self.schema}.cells__range_deletes").selectExpr(
            "_range.row_key", "_range.family", "_range.qualifier", "_change_sequence", "_change_batch",
            "unix_micros(_range.start_time) as starts", "unix_micros(_range.end_time) as ends",
        ).collect()  # fmt: skip
        found = {
            (
                bytes(r.row_key), r.family, None if r.qualifier is None else bytes(r.qualifier), r.starts, r.ends,
                r._change_sequence, r._change_batch,
            )
            for r in rows
        }  # fmt: skip
        demand(len(found) == len(rows), "the deletion of a range is kept twice")
        return found

    def now(self) -> set[tuple[Any, ...]]:
        return set(self.live().items())

    # --- the laws ---

    def check_state(self) -> None:
        """Law 1: base, deletions of ranges and visible cells follow from the entries that were delivered."""
        delivered = self.upto(self.batch)
        cells, ranges = newest(delivered), deleted(delivered)
        seen = {cell: (row["value"], row["_deleted"], row["_change_batch"]) for cell, row in self.base().items()}
        kept = {cell: (entry.value, False, entry.batch) for cell, entry in cells.items()}
        demand(seen == kept, f"cells are not as folded: {some(seen.items() ^ kept.items())}")
        known = Counter((*row[:5], row[6]) for row in self.deletes())
        expected = Counter((*place, batch) for (place, _), batch in ranges.items())
        demand(
            known == expected,
            f"deletions of ranges are not those delivered: {some((known - expected) | (expected - known))}",
        )
        self.check_live("cells")

    def check_live(self, relation: str) -> None:
        """Law 1, of a view alone."""
        live, right = self.live(relation), visible(self.upto(self.batch))
        demand(
            live == right,
            f"{relation}: the view's cells are not the visible ones: {some(live.items() ^ right.items())}",
        )


class CellVersions(Cells):
    """The same with a model that keeps every version of a cell."""

    materialized = "history"
    tests = ("ledger_balances", "no_pending_rows", "history_is_sound")
    account = staticmethod(account_of_versions)

    def base(self) -> dict[Any, dict[str, Any]]:
        """Return the rows of the base table, by cell and sequence."""
        rows = self.rows("cells__base")
        found = {(row["cell"], row["_change_sequence"]): row for row in rows}
        demand(len(found) == len(rows), "the base has a version twice")
        return found

    def now(self) -> set[tuple[Any, ...]]:
        return {(row["cell"], row["value"]) for row in self.rows("cells") if row["is_current"]}

    def check_state(self) -> None:
        """Law 1: the versions are those of a replay, and end where a deletion of a range says so."""
        delivered = self.upto(self.batch)
        seen = Counter(
            (row["cell"], row["value"], _micros(row["valid_from"]), _micros(row["valid_to"]))
            for row in self.base().values()
        )
        expected = Counter(version[:4] for version in replay(delivered))
        demand(seen == expected, f"versions are not as replayed: {some((seen - expected) | (expected - seen))}")
        current, right = self.now(), set(visible(delivered).items())
        demand(current == right, f"the current versions are not the visible cells: {some(current ^ right)}")


def _micros(time: datetime | None) -> int | None:
    """Return the microseconds after the hour in which all changes were committed."""
    hour = datetime(2026, 11, 22, 10, tzinfo=UTC)
    return None if time is None else (time.astimezone(UTC) - hour) // timedelta(microseconds=1)
