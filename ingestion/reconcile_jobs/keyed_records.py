"""Of which keys the staged records of each source are, and what stands in staging once some of the keys are erased.

A record of Datastream, of an append table or of a snapshot is of one row: once its key is erased, a note takes the
place of the whole record. A record of Spanner holds several mods, each of one row: a mark takes the place of each mod
whose key is erased. The other mods keep their places, by which they are ordered, and the record still counts as one of
its transaction.

Nothing here raises a value of a record, or writes one into a message.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from reconcile_jobs.plain_forms import plain_number, spellings

__all__ = [
    "APPEND_TABLE",
    "DATASTREAM",
    "NOTES",
    "NOTES_SOURCE",
    "RECORDS",
    "SNAPSHOT",
    "SPANNER",
    "Key",
    "KeyColumn",
    "KeyedRecords",
    "Left",
    "Reading",
    "key_of_values",
]

# The object and the source of a note. No model reads them.
NOTES, NOTES_SOURCE = "#erased", "erasure"

# What an erased mod of Spanner has instead of its members; macros/sources/spanner_change_stream.sql passes it over.
_ERASED_MOD = "erased"

# The values of a key, as texts in one form: see `KeyColumn.text`.
Key = tuple[str, ...]


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key: its name in the models, the field's names in records, and whether values are numbers."""

    name: str
    fields: tuple[str, ...]
    is_number: bool

    def text(self, value: Any) -> str | None:
        """Return the one text of a value, as a record or a file of keys has it; None of what cannot be a key."""
        if isinstance(value, bool):
            return None if self.is_number else str(value).lower()
        if not isinstance(value, str):
            return None
        return plain_number(value.strip()) if self.is_number else str(value)


@dataclass(frozen=True)
class Reading:
    """What one record says: the keys of each of its parts, None where they cannot be read, and the name of its table.

    A part is what the record says of one row. It has several keys if a name of the key stands there twice.
    """

    parts: tuple[frozenset[Key] | None, ...]
    table: str | None = None

    @property
    def can_be_read(self) -> bool:
        """Whether the keys of a part can be read."""
        return any(keys is not None for keys in self.parts)

    def places(self, is_wanted: Callable[[Key], bool], with_unreadable: bool = False) -> list[int]:
        """Return which parts have a key that is wanted."""
        return [
            place for place, keys in enumerate(self.parts)
            if (with_unreadable if keys is None else any(map(is_wanted, keys)))
        ]  # fmt: skip


@dataclass(frozen=True)
class Left:
    """What stands in staging in place of a record some parts of which are erased. `is_note`: of all of it."""

    record: str
    is_note: bool


class KeyedRecords(ABC):
    """The records of a source whose keys can be erased."""

    # What staging has as their source.
    source: str
    # Whether the origin of a record is a file; what follows the name of a table in it, "" where it names none.
    is_of_file: bool = False
    end_of_table: str = ""
    # An aggregate, as SQL: how many parts of the rows of a new batch were erased by the append itself.
    erased_in_batch: ClassVar[str]
    # SQL: the ids of the erasures whose marks stand in a record; "" if it has none but notes.
    erasures_of_marks: ClassVar[str] = ""

    @abstractmethod
    def reading(self, content: bytes, columns: Sequence[KeyColumn]) -> Reading:
        """Return of which keys a record is."""

    @abstractmethod
    def without(self, content: bytes, places: Collection[int], object_: str, erasure: str | None) -> Left:
        """Return what is left of a record without some of its parts. `erasure`: its id; None where an append does it.

        The places are those of the reading of the record.
        """

    @abstractmethod
    def own_place(self, change_id: str | None, read: Reading, columns: Sequence[KeyColumn]) -> int | None:
        """Return the part of its record that a quarantined row is of; None if that cannot be known.

        `change_id`: as the source macro makes it.
        """


class _Number(str):
    """The text of a number, as a record has it."""


class _Object(list[tuple[str, Any]]):
    """The members of an object. A name may stand there twice."""


_UNREADABLE = Reading((None,))


def _parsed(content: bytes) -> Any:
    """Return a record, with each number as its text; None of what cannot be read."""
    try:
        return json.loads(
            content.decode(), parse_float=_Number, parse_int=_Number, parse_constant=_Number, object_pairs_hook=_Object
        )
    except (ValueError, RecursionError):
        return None


class _Piece(str):
    """A part of a JSON text that is written as it is."""


def _text(value: Any) -> str:
    """Return the JSON of what `_parsed` has read: the same names, digits and order, however deep."""
    written, left = [], [value]
    while left:
        one = left.pop()
        if isinstance(one, _Piece | _Number):
            written.append(str(one))
        elif isinstance(one, _Object):
            pieces: list[Any] = [_Piece("{")]
            for place, (name, member) in enumerate(one):
                pieces += [_Piece(f"{',' if place else ''}{_quoted(name)}:"), member]
            left += reversed([*pieces, _Piece("}")])
        elif isinstance(one, list):
            pieces = [_Piece("[")]
            for place, member in enumerate(one):
                pieces += [_Piece("," if place else ""), member]
            left += reversed([*pieces, _Piece("]")])
        else:
            written.append(_quoted(one))
    return "".join(written)


def _quoted(value: Any) -> str:
    """Return the JSON of a text, or of a constant. Half of a surrogate pair can only be written as an escape."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _note(object_: str, erasure: str | None) -> Left:
    said = {"object": object_, **({"erasure": erasure} if erasure else {})}
    return Left(json.dumps({"erased_record": said}, separators=(",", ":")), True)


def key_of_values(members: Iterable[tuple[str, Any]], columns: Sequence[KeyColumn]) -> set[Key] | None:
    """Return the keys that these names and values hold; None where a column of the key has no value."""
    of_column: list[list[str]] = [[] for _ in columns]
    for name, value in members:
        for place, column in enumerate(columns):
            if any(spelling in column.fields for spelling in spellings(name)):
                text = column.text(value)
                if text is not None:
                    of_column[place].append(text)
    return set(itertools.product(*of_column)) if all(of_column) else None


def _keys_in(objects: Iterable[Any], columns: Sequence[KeyColumn]) -> frozenset[Key] | None:
    """Return the keys that objects of one name hold; None where one of them cannot be read."""
    keys: set[Key] = set()
    for one in objects:
        found = key_of_values(one, columns) if isinstance(one, _Object) else None
        if found is None:
            return None
        keys |= found
    return frozenset(keys)


class _OfOneRow(KeyedRecords):
    """Records of one row each, in a member of a record: the note takes the place of a whole record."""

    erased_in_batch = f"count_if(object = '{NOTES}' and source = '{NOTES_SOURCE}')"

    def __init__(self, source: str, member: str, end_of_table: str = "") -> None:
        self.source, self._member = source, member
        self.is_of_file, self.end_of_table = not end_of_table, end_of_table

    def reading(self, content: bytes, columns: Sequence[KeyColumn]) -> Reading:
        record = _parsed(content)
        if not isinstance(record, _Object):
            return _UNREADABLE
        table = next((_table(value) for name, value in record if name == "source_metadata"), None)
        rows = [value for name, value in record if name == self._member]
        # A delete by an address has no values, so it is of no key.
        is_of_no_row = rows and all(row is None for row in rows)
        keys = frozenset[Key]() if is_of_no_row else _keys_in(rows, columns) if rows else None
        return Reading((keys,), table)

    def without(self, content: bytes, places: Collection[int], object_: str, erasure: str | None) -> Left:
        return _note(object_, erasure)

    def own_place(self, change_id: str | None, read: Reading, columns: Sequence[KeyColumn]) -> int | None:
        return 0


def _table(metadata: Any) -> str | None:
    """Return the table that a record names, "" if it names none; None of what are no metadata."""
    if not isinstance(metadata, _Object):
        return None
    said = dict(metadata)
    return ".".join(json.dumps(said[name]) for name in ("database", "schema", "table") if said.get(name) is not None)


class _Spanner(KeyedRecords):
    source = "spanner"
    # As the source macro reads mods. Few records have a mark, so the others are not parsed.
    erasures_of_marks = (
        f"if(contains(record, '\"{_ERASED_MOD}\"'), transform(filter(transform("
        "from_json(record, 'mods array<variant>', map('maxStringLen', '2147483647', 'maxNumLen', '150000')).mods, "
        f"mod -> try_cast(mod AS map<string, variant>)), mod -> map_contains_key(mod, '{_ERASED_MOD}')), "
        f"mod -> cast(mod['{_ERASED_MOD}'] AS string)), array())"
    )
    erased_in_batch = f"coalesce(sum(cardinality({erasures_of_marks})), 0)"

    def reading(self, content: bytes, columns: Sequence[KeyColumn]) -> Reading:
        mods = _mods(_parsed(content))
        return Reading(tuple(_keys_of_mod(mod, columns) for mod in mods)) if mods else _UNREADABLE

    def without(self, content: bytes, places: Collection[int], object_: str, erasure: str | None) -> Left:
        record = _parsed(content)
        mods = _mods(record)
        if not mods:
            return _note(object_, erasure)
        mark = _Object([(_ERASED_MOD, erasure or "")])
        left = [mark if place in places else mod for place, mod in enumerate(mods)]
        members = _Object((name, left if name == "mods" else value) for name, value in record)
        return Left(_text(members), False)

    def own_place(self, change_id: str | None, read: Reading, columns: Sequence[KeyColumn]) -> int | None:
        if len(read.parts) == 1:
            return 0
        said = change_id or ""
        _, backfill, keys = said.partition("/backfill/")
        last = said.rpartition("/")[2]
        if not backfill and last.isascii() and last.isdigit():
            return int(last) if int(last) < len(read.parts) else None
        # A backfill record has no number. A mod of which the id names no key, or one that is no key, is unreadable.
        own = _keys_in([_parsed(keys.encode(errors="replace"))], columns) if backfill else None
        return next((place for place, of in enumerate(read.parts) if of == own), None)


def _mods(record: Any) -> list[Any]:
    """Return the mods of a data change record; none of what is no such record."""
    named = [value for name, value in record if name == "mods"] if isinstance(record, _Object) else []
    is_list = len(named) == 1 and isinstance(named[0], list) and not isinstance(named[0], _Object)
    return named[0] if is_list else []


def _keys_of_mod(mod: Any, columns: Sequence[KeyColumn]) -> frozenset[Key] | None:
    if not isinstance(mod, _Object):
        return None
    if any(name == _ERASED_MOD for name, _ in mod):
        return frozenset()
    # An object, or the JSON text of one.
    keys = [value for name, value in mod if name == "keys"]
    keys = [_parsed(value.encode(errors="replace")) if isinstance(value, str) else value for value in keys]
    return _keys_in(keys, columns) if keys else None


DATASTREAM, SPANNER = _OfOneRow("datastream", "payload"), _Spanner()
# Of a table at a version; of a snapshot table with the id of its load.
APPEND_TABLE, SNAPSHOT = _OfOneRow("append table", "row", "@"), _OfOneRow("snapshot", "row", "/")

# By the source that staging has of them.
RECORDS: dict[str, KeyedRecords] = {
    records.source: records for records in (DATASTREAM, SPANNER, APPEND_TABLE, SNAPSHOT)
}
