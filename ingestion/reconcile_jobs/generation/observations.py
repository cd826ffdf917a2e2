"""What staged records show of their tables: source, key, number, and the values of each column."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconcile_jobs.generation.declarations import Number, Values

__all__ = ["Add", "Observations", "Observed", "Place", "decoded", "is_half"]


class _Decoder(json.JSONDecoder):
    """Reads JSON with numbers as they are written, of any length, and the words of JavaScript as texts."""

    def __init__(self) -> None:
        super().__init__(parse_int=Number, parse_float=Number, parse_constant=str)

    def __reduce__(self) -> tuple[type[_Decoder], tuple[()]]:
        # Made anew in an executor: the scanner within does not travel.
        return _Decoder, ()


_DECODER = _Decoder()


def decoded(record: str | None) -> dict[str, Any] | None:
    """Return the object that a record is, numbers as `Number`; None if it is none."""
    try:
        read = _DECODER.decode(record or "")
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def is_half(name: str) -> bool:
    """Whether a name has half of a surrogate pair, which no file and no database but by an escape can have."""
    return not name.isascii() and re.search("[\ud800-\udfff]", name) is not None


class Place(NamedTuple):
    """The name of a table as the records have it; of MySQL the schema is the database, and '' where there is none."""

    database: str | None
    schema: str
    table: str


@dataclass
class Observed:
    """What the records of one table show. `newest`: what decides whose key, and whose order of columns, counts.

    `types`: the names of types that the records themselves give for a column. `places`: what decides which record tells
    the place of a column in its table, and this place; empty where records tell no places.
    """

    records: int = 0
    objects: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    key: list[str] | None = None
    newest_key: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    newest_names: list[Any] = field(default_factory=list)
    columns: dict[str, Values] = field(default_factory=dict)
    last_seen: dict[str, int] = field(default_factory=dict)
    twins: set[str] = field(default_factory=set)
    types: dict[str, set[str]] = field(default_factory=dict)
    places: dict[str, list[Any]] = field(default_factory=dict)

    def add_key(self, key: list[str], newest: list[Any]) -> None:
        """Take note of the key that a record names."""
        if newest >= self.newest_key:
            self.key, self.newest_key = key, newest

    def add_values(self, values: Mapping[str, Any], kinds: Mapping[str, Any], newest: list[Any], batch: int) -> None:
        """Take note of the values of a row, as far as a record has them; `kinds`: notes about their Avro types."""
        # The record with the most columns tells their order: a delete may have its key alone.
        if (place := [len(values), *newest]) >= self.newest_names:
            self.names, self.newest_names = [*values], place
        for name, value in values.items():
            of_name = self.columns.get(name)
            if of_name is None:
                of_name = self.columns[name] = Values()
            kind = kinds.get(name)
            of_name.add(value, kind if isinstance(kind, str) else None)
            self.last_seen[name] = max(batch, self.last_seen.get(name, batch))
        if len({name.lower() for name in values}) < len(values):
            lower = [name.lower() for name in values]
            self.twins |= {name for name, number in Counter(lower).items() if number > 1}

    def merge(self, other: Observed) -> None:
        """Add what other records show; the order of merging does not matter."""
        self.records += other.records
        self.objects |= other.objects
        self.sources |= other.sources
        self.twins |= other.twins
        if other.key is not None:
            self.add_key(other.key, other.newest_key)
        if other.newest_names >= self.newest_names:
            self.names, self.newest_names = other.names, other.newest_names
        for name, values in other.columns.items():
            self.columns.setdefault(name, Values()).merge(values)
            self.last_seen[name] = max(other.last_seen[name], self.last_seen.get(name, other.last_seen[name]))
        for name, types in other.types.items():
            self.types.setdefault(name, set()).update(types)
        for name, place in other.places.items():
            self.places[name] = max(place, self.places.get(name, place))

    def ordered(self) -> list[str]:
        """Return the columns as their table has them, or as the newest record of the most columns; others by name."""
        if self.places:
            last = [name for name in self.columns if name not in self.places]
            return [*sorted({*self.columns} - {*last}, key=lambda name: (self.places[name][-1], name)), *sorted(last)]
        return [*self.names, *sorted({*self.columns} - {*self.names})]

    def to_json(self) -> dict[str, Any]:
        """Return it for `from_json`, in another process."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: sorted(getattr(self, name)) for name in _SETS},
            "columns": {name: values.to_json() for name, values in self.columns.items()},
            "types": {name: sorted(types) for name, types in self.types.items()},
        }

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Observed:
        """Return what `to_json` wrote."""
        plain = {name: read[name] for name in _PLAIN}
        sets = {name: set(read[name]) for name in _SETS}
        columns = {name: Values.from_json(of) for name, of in read["columns"].items()}
        types = {name: set(of) for name, of in read["types"].items()}
        return cls(**{**plain, **sets, "columns": columns, "types": types})


_PLAIN = ("records", "key", "newest_key", "names", "newest_names", "last_seen", "places")
_SETS = ("objects", "sources", "twins")


@dataclass
class Observations:
    """What the records of all tables show, and how many records name no table."""

    tables: dict[Place, Observed] = field(default_factory=dict)
    nameless: int = 0

    def of(self, place: Place) -> Observed:
        """Return what the records of a table show, of which nothing may be known yet."""
        return self.tables.setdefault(place, Observed())

    def merge(self, other: Observations) -> None:
        """Add what other records show."""
        self.nameless += other.nameless
        for place, observed in other.tables.items():
            self.of(place).merge(observed)

    def rows(self) -> Iterable[str]:
        """Yield it as texts for `from_rows`, in another process, one for each table."""
        if self.nameless:
            yield json.dumps({"nameless": self.nameless})
        for place, observed in self.tables.items():
            yield json.dumps({"place": place, **observed.to_json()})

    @classmethod
    def from_rows(cls, rows: Iterable[str]) -> Observations:
        """Return the sum of what `rows` yielded, in any order."""
        found = cls()
        for row in rows:
            read = json.loads(row)
            if "place" in read:
                found.merge(cls({Place(*read["place"]): Observed.from_json(read)}))
            else:
                found.nameless += read["nameless"]
        return found


# How the records of a source are read: record, object and batch of each row of staging.
Add = Callable[[Observations, str | None, str | None, int], None]
