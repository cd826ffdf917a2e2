"""Histories that hypothesis invents, the events that tell of them, and the fold that says what they come to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import hypothesis
from datastream import READ_METHODS, event
from hypothesis import strategies as st
from spanner import CHANGED_COLUMNS, WHOLE_ROWS, backfill_record, data_change_record, mod

KEY = ("history", "id", "part")
COLUMNS = {
    "history": "int",
    "id": "bigint",
    "part": "string",
    "amount": "decimal(38,10)",
    "note": "string",
    "other": "string",
}
Values = tuple[Decimal | None, str | None, str | None]
NOTHING: Values = (None, None, None)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGINNING = 1795260792000  # milliseconds
VALUE_COLUMNS = tuple(name for name in COLUMNS if name not in KEY)


@dataclass(frozen=True)
class Record:
    """One record of a history: what it says, and what it weighs."""

    text: str
    uuid: str
    key: tuple[Any, ...]
    order: tuple[int, ...]  # 0 and the time of reading for a backfill row, 1 and the coordinates for a change
    kind: str  # insert, update or delete
    values: Values
    time: datetime
    bad: bool = False
    batches: tuple[int, int] = (1, 1)  # of the first delivery, of the second
    columns: frozenset[str] | None = None  # what an update carries beside the key; None for all, and of no update
    place: int = 0  # in its staged record, which may hold several

    @property
    def rank(self) -> tuple[Any, ...]:
        """A delete loses against an insert or update of the same coordinates."""
        return (self.order, self.kind != "delete")

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self.key, self.order, self.kind, self.columns, self.values)


@dataclass(frozen=True)
class Folded:
    """What a key's records come to: the row, and the records that it consists of."""

    values: Values
    deleted: bool  # what last set the whole row was a delete
    live: bool
    pending: bool  # an update of some columns has come, and nothing that says what the row was before
    writers: tuple[Record, ...]


def fold(records: Iterable[Record]) -> dict[tuple[Any, ...], list[Folded]]:
    """Return what the records of each key come to, one after the other in their order: what the SQL is compared with.

    Several answers are right if the source gives the same coordinates to different payloads of whole rows.
    """
    by_key: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        if not record.bad:
            by_key.setdefault(record.key, []).append(record)
    return {key: list(_folds(sorted(told, key=lambda record: record.rank))) for key, told in by_key.items()}


def _folds(records: list[Record]) -> Iterator[Folded]:
    whole = [record for record in records if record.columns is None]
    rivals = {record.identity: record for record in whole if record.rank == whole[-1].rank}
    for last in [*rivals.values()] or [None]:
        deleted = last is not None and last.kind == "delete"
        values = (
            dict.fromkeys(VALUE_COLUMNS)
            if last is None or deleted
            else dict(zip(VALUE_COLUMNS, last.values, strict=True))
        )
        writers = dict.fromkeys((*VALUE_COLUMNS, "row", "newest"), last)
        for record in records:
            if record.columns is not None and (last is None or record.rank > last.rank):
                for column in record.columns:
                    values[column], writers[column] = record.values[VALUE_COLUMNS.index(column)], record
                writers["newest"] = record
        known = last is not None and not deleted
        yield Folded(
            tuple(values.values()), deleted, known, not known and writers["newest"] is not last,
            tuple(writer for writer in writers.values() if writer is not None),
        )  # fmt: skip


# --- coordinates: numbers to compare, and what the source's metadata makes of them -----------------------------------

_TIMES = st.sampled_from([0, 1, 9, 10, 999, 1000, 60_000]).map(lambda after: BEGINNING + after)
Coordinates = tuple[tuple[int, ...], int, dict[str, Any]]  # the order, source_timestamp, metadata


def _statement_time(*order: int) -> int:
    """Return the one source_timestamp of these coordinates; it does not rise with them."""
    return BEGINNING + sum(order) % 9_973


def _oracle() -> st.SearchStrategy[Coordinates]:
    # two redo threads, so rs_id falls while scn rises; the number of digits changes
    scn = st.sampled_from([999_999_999, 1_000_000_000, 15869128507100, 15869128507101, 158691504732555])
    block = st.sampled_from([0x9, 0x10, 0xFFFF, 0x10000])
    rs_id = st.tuples(st.sampled_from([0x6CF6, 0x73CB]), block, st.sampled_from([0x10, 0x1D0, 0x1E1]))
    form = "0x{:06x}.{:08x}.{:04x}"
    return st.builds(
        lambda scn, rs_id, ssn, padding: (
            (scn, *rs_id, ssn),
            _statement_time(scn, *rs_id, ssn),
            {
                "scn": scn, "rs_id": padding.format(_cased(form.format(*rs_id), sum(rs_id))), "ssn": ssn,
                # The changes of one key by one transaction lie together in the log.
                "tx_id": "-".join(map(str, (scn, *rs_id, ssn))),
            },
        ),
        scn, rs_id, st.sampled_from([0, 1, 9, 10]), st.sampled_from(["{}", " {} "]),
    )  # fmt: skip


def _mysql() -> st.SearchStrategy[Coordinates]:
    return st.builds(
        lambda file, position: (
            (file, position),
            _statement_time(file, position),
            {"log_file": f"mysql8-bin.{file:06}", "log_position": position},
        ),
        st.sampled_from([999_998, 999_999, 1_000_000, 1_000_001]), st.sampled_from([4, 99, 100, 156_500]),
    )  # fmt: skip


def _postgresql() -> st.SearchStrategy[Coordinates]:
    lsn = st.tuples(
        st.sampled_from([0, 1, 0x10]), st.sampled_from([0, 0x9, 0x10, 0x9, 0x10, 0xAB00, 0xB001, 0x2326350, 0xFFFFFFFF])
    )
    return st.builds(lambda time, lsn: (lsn, time, {"lsn": _cased("{:x}/{:x}".format(*lsn), sum(lsn))}), _TIMES, lsn)


def _sqlserver() -> st.SearchStrategy[Coordinates]:
    lsn = st.tuples(
        st.sampled_from([0x9, 0x10]), st.sampled_from([0x9A, 0x238, 0x1000]), st.sampled_from([0x2, 0xA, 0xB, 0x10])
    )
    return st.builds(
        lambda time, lsn: (lsn, time, {"lsn": _cased("{:08x}:{:08x}:{:04x}".format(*lsn), sum(lsn))}),
        _TIMES, lsn,
    )  # fmt: skip


def _cased(digits: str, number: int) -> str:
    """Return hex digits as one reader or another writes them: in capitals or not, also side by side."""
    return digits.upper() if number % 2 else digits


COORDINATES: dict[str, Callable[[], st.SearchStrategy[Coordinates]]] = {
    "oracle": _oracle, "mysql": _mysql, "postgresql": _postgresql, "sqlserver": _sqlserver,
}  # fmt: skip
# the two halves of an update, as the source calls them
HALVES = {"oracle": ("UPDATE-DELETE", "UPDATE-INSERT"), "mysql": ("UPDATE-DELETE", "UPDATE-INSERT")}
KINDS = {
    "INSERT": "insert",
    "UPDATE": "update",
    "UPDATE-INSERT": "update",
    "DELETE": "delete",
    "UPDATE-DELETE": "delete",
}


# --- histories -------------------------------------------------------------------------------------------------------

_TEXTS = st.sampled_from([None, "", "a", "b", "NULL"])
_AMOUNTS = st.sampled_from([None, *map(Decimal, ["0", "1.1", "-12345678901234567890.0123456789", "0.0000000001"])])
_VALUES = st.tuples(_AMOUNTS, _TEXTS, _TEXTS)
# where no digit of an amount may be rounded, and other defects: (which, what to change)
_DEFECTS = ["rounded", "text in a number", "no key", "unknown type", "no coordinates", "no payload", "no metadata"]


class _Teller:
    """Writes the events of one history."""

    def __init__(self, source: str, number: int, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.source, self.number, self.draw = source, number, draw
        self.records: list[Record] = []
        self.values: list[Values] = []  # a row is often what it was before

    def uuid(self) -> str:
        return f"{self.source}-{self.number}-{len(self.records)}"

    def change(self, part: tuple[int, str], change_type: str, at: Coordinates, values: Values, **said: Any) -> None:
        order, time, metadata = at
        self._tell(part, change_type, (1, *order), time, values, metadata=metadata, **said)

    def backfill(self, part: tuple[int, str], read_at: int, values: Values) -> None:
        method = {"read_method": READ_METHODS[self.source][1], "read_timestamp": _iso(read_at)}
        without = [*COORDINATES_OF[self.source]]
        self._tell(part, "INSERT", (0, read_at), BEGINNING, values, without=without, **method)

    def bad(self, part: tuple[int, str], at: Coordinates, values: Values, defect: str) -> None:
        said: dict[str, Any] = {
            "unknown type": {"change_type": "TRUNCATE"},
            "no coordinates": {"without": [COORDINATES_OF[self.source][-1]]},
            "no payload": {"without": ["payload"]},
            "no metadata": {"without": ["source_metadata"]},
            "no key": {"payload": {"part": None}},
            "rounded": {"payload": {"amount": "1.123456789012"}},
            "text in a number": {"payload": {"amount": "one"}},
        }[defect]
        self.change(part, said.pop("change_type", "INSERT"), at, values, bad=True, **said)

    def copy(self, record: Record, other_uuid: bool) -> None:
        if other_uuid:
            uuid = self.uuid()
            record = replace(record, uuid=uuid, text=json.dumps({**json.loads(record.text), "uuid": uuid}))
        self.records.append(record)

    def _tell(
        self, part: tuple[int, str], change_type: str, order: tuple[int, ...], time: int, values: Values,
        bad: bool = False, payload: dict[str, Any] | None = None, **said: Any,
    ) -> None:  # fmt: skip
        kind, uuid = KINDS.get(change_type, ""), self.uuid()
        row = dict(
            zip(COLUMNS, (self.number, *part, None if values[0] is None else str(values[0]), *values[1:]), strict=True)
        )
        row.update(payload or {})
        if kind == "delete" and self.draw(st.booleans()):
            row = {name: row[name] for name in KEY}  # some tables log only the key of what they delete
            values = (None, None, None)
        said = {"read_timestamp": _iso(BEGINNING + 5_000_000), "source_timestamp": _iso(time), **said}
        text = _spelled(event(self.source, row, change_type, uuid=uuid, **said), len(self.records) % 3)
        moment = EPOCH + timedelta(milliseconds=time)
        self.records.append(Record(text, uuid, (self.number, *part), order, kind, values, moment, bad))


def _spelled(text: str, spelling: int) -> str:
    """Return an event in one of the spellings of Datastream: as its documentation has it, bare, or with numbers.

    Streams of all kinds write into one table, so the records of one key mix them.
    """
    if spelling == 0:
        return text
    record = json.loads(text)
    method, metadata = record["read_method"], record.get("source_metadata") or {}
    if "supplementation" not in method:
        record["read_method"] = "backfill" if "backfill" in method else "cdc"
    for name in ("read_timestamp", "source_timestamp"):
        moment = datetime.fromisoformat(record[name])
        blank = record[name].replace("T", " ").removesuffix("Z").removesuffix("+00:00")
        record[name] = blank if spelling == 1 else (moment - EPOCH) // timedelta(milliseconds=1)
    for name in ("log_file", "log_position"):
        if spelling == 2 and name in metadata:
            metadata[f"bin{name}"] = metadata.pop(name)
    if str(metadata.get("tx_id")).isdigit():
        metadata["tx_id"] = int(metadata["tx_id"])
    return json.dumps(record, ensure_ascii=False)


COORDINATES_OF = {
    "oracle": ["scn", "rs_id", "ssn"],
    "mysql": ["log_file", "log_position"],
    "postgresql": ["lsn"],
    "sqlserver": ["lsn"],
}


@st.composite
def histories(draw: Callable[[st.SearchStrategy[Any]], Any], source: str, number: int) -> list[Record]:
    """Return the records of a few keys, each with the batch in which either delivery brings it."""
    teller = _Teller(source, number, draw)
    parts = [(1, "a"), (1, "b"), (2, "")]
    coordinates, part = COORDINATES[source](), st.sampled_from(parts)
    insert_half, delete_half = (*reversed(HALVES.get(source, ("DELETE", "INSERT"))),)
    steps = draw(
        st.lists(
            st.sampled_from(
                [
                    *["change"] * 6,
                    "backfill",
                    "backfill",
                    "move",
                    "halves",
                    "reinsert",
                    "again",
                    "bulk delete",
                    "tie",
                    "bad",
                ]
            ),
            min_size=3,
            max_size=9,
        )
    )
    for step in steps:
        at, this = draw(coordinates), draw(part)
        values = draw(st.one_of(_VALUES, st.sampled_from(teller.values or [NOTHING])))
        teller.values.append(values)
        if step == "change":
            supplemented = (
                {"read_method": "oracle-supplementation"} if source == "oracle" and draw(st.booleans()) else {}
            )
            change_type = draw(st.sampled_from(["INSERT", "UPDATE", insert_half, "DELETE", delete_half]))
            teller.change(this, change_type, at, values, **supplemented)
        elif step == "backfill":
            teller.backfill(this, BEGINNING + draw(st.sampled_from([0, 9, 10, 100_000, 10_000_000])), values)
        elif step == "move":  # the key changes
            teller.change(this, delete_half, at, values)
            teller.change(parts[(parts.index(this) + 1) % 3], insert_half, at, values)
        elif step == "halves":  # the key stays
            teller.change(this, delete_half, at, values)
            teller.change(this, insert_half, at, values)
        elif step == "reinsert":  # in one transaction: one commit time, the coordinates of the statements apart
            order, time, metadata = draw(coordinates)
            if source in ("postgresql", "sqlserver"):
                time = at[1]
            before, after = sorted([at, (order, time, metadata)], key=lambda it: it[0])
            teller.change(this, "DELETE", before, values)
            teller.change(this, "INSERT", after, draw(_VALUES))
        elif step == "again":  # as it was before it was deleted
            inserted, deleted, again = sorted([at, draw(coordinates), draw(coordinates)], key=lambda it: it[0])
            teller.change(this, "INSERT", inserted, values)
            teller.change(this, "DELETE", deleted, values)
            teller.change(this, "INSERT", again, values)
        elif step == "bulk delete":  # one redo record for many rows
            for each in parts:
                teller.change(each, "DELETE", at, values)
        elif step == "tie":  # one place in the order, two payloads that a careless hash takes for one
            amount, text = values[0], values[1] or "a"
            teller.change(this, "UPDATE", at, (amount, None, text))
            teller.change(this, "UPDATE", at, (amount, text, None))
        else:
            teller.bad(this, at, values, draw(st.sampled_from(_DEFECTS)))
    for index in draw(st.lists(st.integers(0, len(teller.records) - 1), max_size=3)):
        teller.copy(teller.records[index], other_uuid=draw(st.booleans()))
    batches = st.tuples(st.integers(1, 3), st.integers(1, 2))
    told = [replace(record, batches=draw(batches)) for record in teller.records]
    return draw(st.permutations(told))


# --- histories of Spanner: records of several mods, of which some carry only some columns -----------------------------

_NANOSECONDS = st.sampled_from([0, 1, 2, 999, 1000, 1001, 999_999_999, 10**9, 10**9 + 500_000_000, 60 * 10**9])
_SPANNER_DEFECTS = {
    "rounded": {"new_values": {"amount": "1.123456789012"}},
    "text in a number": {"new_values": {"amount": "one"}},
    "no key": {"keys": {"part": None}},
    "no keys": {"keys": None},
    "unknown type": {"mod_type": "TRUNCATE"},
    "unknown capture": {"value_capture_type": "NEW_THINGS"},
    "no sequence": {"without": ["record_sequence"]},
    "no time": {"commit_timestamp": "yesterday"},
}


@st.composite
def spanner_histories(draw: Callable[[st.SearchStrategy[Any]], Any], number: int) -> list[Record]:
    """Return the records of a few keys, as `histories` does.

    The order of one key's records is total, as Spanner's is. Otherwise they need not make sense: updates of rows that
    were never inserted come of a stream that is read from the middle, and inserts upon inserts of a backfill.
    """
    parts = [(1, "a"), (1, "b"), (2, "")]
    told: list[Record] = []
    used: set[Any] = set()
    for _ in range(draw(st.integers(2, 8))):
        after, place, several = draw(_NANOSECONDS), draw(st.integers(0, 2)), draw(st.integers(1, 3))
        step = draw(st.sampled_from([1, 1, 1, 0]))  # 0: mods of one row
        these = [parts[(place + i * step) % 3] for i in range(several)]
        if step and draw(st.integers(0, 5)) == 0:
            if not used.intersection((after, part) for part in these):
                used.update((after, part) for part in these)
                told.extend(_deliveries(draw, _backfilled(draw, number, after, these)))
            continue
        sequence = draw(st.sampled_from([0, 1, 9, 10, 15]))
        if (after, sequence) not in used:
            used.add((after, sequence))
            told.extend(_deliveries(draw, _changed(draw, number, after, sequence, these)))
    return draw(st.permutations(told))


def _backfilled(draw: Any, number: int, after: int, parts: list[tuple[int, str]]) -> list[Record]:
    values = [draw(_VALUES) for _ in parts]
    keys = [{"history": str(number), "id": str(part[0]), "part": part[1]} for part in parts]
    text = backfill_record(
        [(key, _said(row, VALUE_COLUMNS)) for key, row in zip(keys, values, strict=True)], _nanoseconds(after)
    )
    return [
        Record(
            text, f"{_nanoseconds(after)}/backfill/{json.dumps(key, separators=(',', ':'))}", (number, *part),
            (after, 1), "insert", row, _moment(after), place=place,
        )
        for place, (part, key, row) in enumerate(zip(parts, keys, values, strict=True))
    ]  # fmt: skip


def _changed(draw: Any, number: int, after: int, sequence: int, parts: list[tuple[int, str]]) -> list[Record]:
    mod_type = draw(st.sampled_from(["INSERT", "INSERT", "UPDATE", "UPDATE", "UPDATE", "UPDATE", "DELETE"]))
    capture = draw(st.sampled_from([*WHOLE_ROWS, *CHANGED_COLUMNS * 3]))
    # A whole row lacks what the stream did not watch.
    partial = mod_type == "UPDATE" and (capture in CHANGED_COLUMNS or draw(st.integers(0, 3)) == 0)
    defect = _SPANNER_DEFECTS.get(draw(st.sampled_from([*_SPANNER_DEFECTS, *[""] * 24])), {})
    transaction = f"{number}-{after}"
    whole_record = {name: said for name, said in defect.items() if name not in ("keys", "new_values")}
    mods, rows = [], []
    for place, part in enumerate(parts):
        carried = draw(st.sets(st.sampled_from([*VALUE_COLUMNS, "undeclared"]))) if partial else set(VALUE_COLUMNS)
        row = draw(_VALUES)
        keys: Any = {"history": str(number), "id": str(part[0]), "part": part[1]}
        said = {} if mod_type == "DELETE" else _said(row, carried)
        bad = bool(whole_record)
        if place == 0 and "keys" in defect:
            keys, bad = defect["keys"] and {**keys, **defect["keys"]}, True
        if place == 0 and "new_values" in defect and mod_type != "DELETE":
            said, bad = {**said, **defect["new_values"]}, True
        rows.append((part, row, carried, bad))
        mods.append(mod(keys, said))
        if draw(st.booleans()):
            mods[-1] = {name: json.dumps(value) for name, value in mods[-1].items()}
    kind = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}[mod_type]
    text = data_change_record(
        mods, **{
            "mod_type": mod_type, "value_capture_type": capture, "commit_timestamp": _nanoseconds(after),
            "record_sequence": f"{sequence:08X}", "server_transaction_id": transaction,
            **whole_record,
        },
    )  # fmt: skip
    return [
        Record(
            text, f"{_nanoseconds(after)}/{transaction}/{sequence:08X}/{place}", (number, *part),
            (after, 0, sequence, place), kind, (None, None, None) if kind == "delete" else row, _moment(after), bad,
            columns=frozenset(carried) - {"undeclared"} if partial and not carried >= set(VALUE_COLUMNS) else None,
            place=place,
        )
        for place, (part, row, carried, bad) in enumerate(rows)
    ]  # fmt: skip


def _deliveries(draw: Any, records: list[Record]) -> list[Record]:
    """Draw the batches of one staged record, which brings all that it holds; sometimes it comes twice."""
    batches = st.tuples(st.integers(1, 3), st.integers(1, 2))
    often = draw(st.sampled_from([1, 1, 1, 2]))
    return [replace(record, batches=came) for came in [draw(batches) for _ in range(often)] for record in records]


def _said(values: Values, columns: Iterable[str]) -> dict[str, Any]:
    row = dict(zip(VALUE_COLUMNS, (None if values[0] is None else str(values[0]), *values[1:]), strict=True))
    return {column: row.get(column, "not declared") for column in columns}


def _nanoseconds(after: int) -> str:
    seconds, nanoseconds = divmod(after, 10**9)
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return (EPOCH + timedelta(milliseconds=BEGINNING, seconds=seconds)).strftime(f"%Y-%m-%dT%H:%M:%S{fraction}Z")


def _moment(after: int) -> datetime:
    return EPOCH + timedelta(milliseconds=BEGINNING, microseconds=after // 1000)


def generate(source: str, count: int, seed: int = 0) -> list[Record]:
    """Return the records of `count` histories, which hypothesis draws: always the same for one seed."""
    found: list[Record] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def collect(data: st.DataObject) -> None:
        number = len({record.key[0] for record in found})
        found.extend(data.draw(spanner_histories(number) if source == "spanner" else histories(source, number)))

    collect()
    return found


def _iso(milliseconds: int) -> str:
    return (EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
