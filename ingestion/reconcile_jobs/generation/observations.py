"""What staged records of Datastream show of their tables: source, key, number, and the values of each column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconcile_jobs.generation.declarations import Number, Values

__all__ = ["Observations", "Observed", "Place", "key_of", "place_of", "source_of"]


class _Decoder(json.JSONDecoder):
    """Reads JSON with numbers as they are written, of any length, and the words of JavaScript as texts."""

    def __init__(self) -> None:
        super().__init__(parse_int=Number, parse_float=Number, parse_constant=str)

    def __reduce__(self) -> tuple[type[_Decoder], tuple[()]]:
        # Made anew in an executor: the scanner within does not travel.
        return _Decoder, ()


_DECODER = _Decoder()


class Place(NamedTuple):
    """The name of a table as the records' metadata have it; of MySQL the schema is the database."""

    database: str | None
    schema: str
    table: str


@dataclass
class Observed:
    """What the records of one table show. `newest`: what decides whose key, and whose order of columns, counts."""

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

    def add(self, event: dict[str, Any], object_: str | None, batch: int) -> None:
        """Take note of a record."""
        metadata = event["source_metadata"]
        self.records += 1
        if object_:
            self.objects.add(object_)
        if source := source_of(event.get("read_method"), metadata):
            self.sources.add(source)
        newest = [batch, str(event.get("read_timestamp") or ""), str(event.get("uuid") or "")]
        key = key_of(metadata)
        if key is not None and newest >= self.newest_key:
            self.key, self.newest_key = key, newest
        payload = event.get("payload")
        if not isinstance(payload, dict):
            return
        kinds = event.get("avro_types")
        kinds = kinds if isinstance(kinds, dict) else {}
        # The record with the most columns tells their order: a delete may have its key alone.
        if (place := [len(payload), *newest]) >= self.newest_names:
            self.names, self.newest_names = [*payload], place
        for name, value in payload.items():
            values = self.columns.get(name)
            if values is None:
                values = self.columns[name] = Values()
            values.add(value, kinds.get(name))
            self.last_seen[name] = max(batch, self.last_seen.get(name, batch))
        if len({name.lower() for name in payload}) < len(payload):
            lower = [name.lower() for name in payload]
            self.twins |= {name for name in lower if lower.count(name) > 1}

    def merge(self, other: Observed) -> None:
        """Add what other records show; the order of merging does not matter."""
        self.records += other.records
        self.objects |= other.objects
        self.sources |= other.sources
        self.twins |= other.twins
        if other.key is not None and other.newest_key >= self.newest_key:
            self.key, self.newest_key = other.key, other.newest_key
        if other.newest_names >= self.newest_names:
            self.names, self.newest_names = other.names, other.newest_names
        for name, values in other.columns.items():
            self.columns.setdefault(name, Values()).merge(values)
            self.last_seen[name] = max(other.last_seen[name], self.last_seen.get(name, other.last_seen[name]))

    def ordered(self) -> list[str]:
        """Return the columns as the newest record of the most columns has them, then the others by name."""
        return [*self.names, *sorted({*self.columns} - {*self.names})]

    def to_json(self) -> dict[str, Any]:
        """Return it for `from_json`, in another process."""
        return {
            **{name: getattr(self, name) for name in ("records", "key", "newest_key", "names", "newest_names")},
            **{name: sorted(getattr(self, name)) for name in ("objects", "sources", "twins")},
            "columns": {name: values.to_json() for name, values in self.columns.items()},
            "last_seen": self.last_seen,
        }

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Observed:
        """Return what `to_json` wrote."""
        plain = {name: read[name] for name in ("records", "key", "newest_key", "names", "newest_names", "last_seen")}
        sets = {name: set(read[name]) for name in ("objects", "sources", "twins")}
        columns = {name: Values.from_json(of) for name, of in read["columns"].items()}
        return cls(**{**plain, **sets, "columns": columns})


@dataclass
class Observations:
    """What the records of all tables show, and how many records name no table."""

    tables: dict[Place, Observed] = field(default_factory=dict)
    nameless: int = 0

    def add(self, record: str | None, object_: str | None, batch: int) -> None:
        """Take note of a staged record."""
        try:
            event = _DECODER.decode(record or "")
        except (ValueError, RecursionError):
            event = None
        place = place_of(event.get("source_metadata")) if isinstance(event, dict) else None
        if place is None:
            self.nameless += 1
            return
        self.tables.setdefault(place, Observed()).add(event, object_, batch)

    def merge(self, other: Observations) -> None:
        """Add what other records show."""
        self.nameless += other.nameless
        for place, observed in other.tables.items():
            self.tables.setdefault(place, Observed()).merge(observed)

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


def place_of(metadata: Any) -> Place | None:
    """Return the table that the metadata of a record name, None if they name none."""
    if not isinstance(metadata, dict):
        return None
    database, schema, table = (_text(metadata.get(name)) for name in ("database", "schema", "table"))
    # Datastream's documentation shows SQL Server's schema as a list of one name.
    schema = re.sub(r'^\["|"\]$', "", schema) if schema else schema
    if not table or not (schema or database):
        return None
    return Place(database if schema else None, schema or database or "", table)


def _text(value: Any) -> str | None:
    # As Spark's from_json reads what is no text into a string.
    if value is None or value == "":
        return None
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def source_of(read_method: Any, metadata: dict[str, Any]) -> str | None:
    """Return the source database of a record, as the macro `source_of_event` finds it; None if nothing shows it."""
    method, lsn = str(read_method or ""), str(metadata.get("lsn") or "")
    if metadata.get("scn") is not None or metadata.get("row_id") is not None or method.startswith("oracle"):
        return "oracle"
    if "/" in lsn or method.startswith("postgres"):
        return "postgresql"
    if ":" in lsn or method.startswith("sqlserver"):
        return "sqlserver"
    positions = (metadata.get("log_position"), metadata.get("binlog_position"))
    return "mysql" if any(position is not None for position in positions) or method.startswith("mysql") else None


def key_of(metadata: dict[str, Any]) -> list[str] | None:
    """Return the key columns that a record names, as the macro `key_of_record`; []: none; None: it tells no key."""
    primary, index = metadata.get("primary_keys"), metadata.get("replication_index")
    for names in (primary or None, index, primary):
        if isinstance(names, list):
            return [str(name) for name in names]
    return None
