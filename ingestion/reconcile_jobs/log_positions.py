"""Positions of snapshots in the log of their database, by which is told what a snapshot contains."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.timestamps import as_text, nanoseconds

__all__ = [
    "BIGTABLE", "DATASTREAM", "SPANNER", "CaptureNumber", "ChangeNumber", "OfDatastream", "Place",
    "Position", "ReadTimestamp", "Restated", "Seen", "position_of",
]  # fmt: skip

# The jobs that append the log of a database, by the first word that their staging table says of them.
BIGTABLE, DATASTREAM, SPANNER = "bigtable", "datastream", "spanner"


@dataclass(frozen=True)
class Seen:
    """The transactions that a snapshot of PostgreSQL sees: all before `end` but those that were open."""

    text: str
    end: int
    open: frozenset[int]

    kind = "pg_snapshot"
    log = DATASTREAM
    database = "PostgreSQL"
    form = r"[0-9]{1,20}:([0-9]{1,20}):((?:[0-9]{1,20}(?:,[0-9]{1,20})*)?)"
    meaning = "pg_current_snapshot()"
    # Whether a record, by its read method and its metadata, is one of this database.
    of_database = "lsn like '%/%' or read_method like 'postgres%'"
    # Where a record lies in the log, as SQL. PostgreSQL's places say nothing about what a snapshot sees.
    place_of_record = "cast(null as string)"

    @classmethod
    def of(cls, text: str) -> Seen | None:
        """Return the position that a text says, or None if it says none."""
        found = re.fullmatch(cls.form, text)
        if not found:
            return None
        return cls(text, int(found[1]), frozenset(int(id_) for id_ in found[2].split(",") if id_))

    def contains(self, other: Position) -> bool:
        """Return whether every transaction that the other one sees is seen here."""
        if not isinstance(other, Seen):
            return False
        return self.end >= other.end and not any(id_ < other.end and id_ not in other.open for id_ in self.open)

    def behind(self, place: Any) -> str | None:
        """Return a place of a record as text if it surely lies behind this position, else None."""
        return None


@dataclass(frozen=True)
class Place:
    """A place in the binary log of MySQL: file and offset are numbers, as text 1000000 comes before 999999."""

    text: str
    name: str
    file: int
    offset: int

    kind = "binlog"
    log = DATASTREAM
    database = "MySQL"
    form = r"(.*\.)([0-9]{1,18}):([0-9]{1,18})"
    meaning = "place in a binary log, as mysql-bin.000017:4 is (a GTID tells no order of changes)"
    of_database = "file is not null or read_method like 'mysql%'"
    number = "try_cast(regexp_extract(file, '([0-9]{1,18})$', 1) as bigint)"
    place_of_record = (
        f"if({number} is null, null, struct({number} as file, try_cast(offset as bigint) as offset, file as name))"
    )

    @classmethod
    def of(cls, text: str) -> Place | None:
        """Return the position that a text says, or None if it says none."""
        found = re.fullmatch(cls.form, text)
        return cls(text, found[1], int(found[2]), int(found[3])) if found else None

    def contains(self, other: Position) -> bool:
        """Return whether the other one lies at this place or before it, in a log of the same name."""
        if not isinstance(other, Place):
            return False
        return self.name == other.name and (self.file, self.offset) >= (other.file, other.offset)

    def behind(self, place: Any) -> str | None:
        """Return a place of a record as text if it lies behind this position, else None."""
        if place is None or (place.file, place.offset or 0) <= (self.file, self.offset):
            return None
        return f"{place.name}:{place.offset}"


@dataclass(frozen=True)
class _Number:
    """A position that is one number."""

    text: str
    number: int

    def contains(self, other: Position) -> bool:
        """Return whether the other one is of the same kind, and the same or an earlier one."""
        return isinstance(other, type(self)) and self.number >= other.number


@dataclass(frozen=True)
class ChangeNumber(_Number):
    """An SCN of Oracle, as of which the rows were read."""

    kind = "scn"
    log = DATASTREAM
    database = "Oracle"
    form = r"[0-9]{1,18}"
    meaning = "SCN, a whole number"
    of_database = "scn is not null or read_method like 'oracle%'"
    place_of_record = "try_cast(scn as bigint)"

    @classmethod
    def of(cls, text: str) -> ChangeNumber | None:
        """Return the position that a text says, or None if it says none."""
        return cls(text, int(text)) if re.fullmatch(cls.form, text) else None

    def behind(self, place: Any) -> str | None:
        """Return the SCN of a record as text if it is greater than this one, else None."""
        return None if place is None or place <= self.number else str(place)


@dataclass(frozen=True)
class CaptureNumber(_Number):
    """The last LSN of SQL Server's change data capture. The rows have all changes up to it, and maybe more."""

    kind = "lsn"
    log = DATASTREAM
    database = "SQL Server"
    form = r"(?:0[xX])?([0-9A-Fa-f]{20})"
    meaning = "LSN, 20 hexadecimal digits"
    of_database = "lsn like '%:%' or read_method like 'sqlserver%'"
    place_of_record = "upper(array_join(transform(split(lsn, ':'), (part, i) -> lpad(part, if(i < 2, 8, 4), '0')), ''))"

    @classmethod
    def of(cls, text: str) -> CaptureNumber | None:
        """Return the position that a text says, or None if it says none."""
        found = re.fullmatch(cls.form, text)
        return cls(text, int(found[1], 16)) if found else None

    def behind(self, place: Any) -> str | None:
        """Return the LSN of a record as text if it is greater than this one, else None."""
        if place is None or not re.fullmatch("[0-9A-F]{20}", place) or int(place, 16) <= self.number:
            return None
        return f"{place[:8]}:{place[8:16]}:{place[16:]}"


@dataclass(frozen=True)
class _Moment(_Number):
    """A position that is a moment, in nanoseconds: the log is in the order of its commit timestamps."""

    meaning = "moment, as 2026-05-01T09:00:00.123456789Z is"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the position that a text says, or None if it says none."""
        try:
            return cls(text, nanoseconds(text))
        except ValueError:
            return None


class ReadTimestamp(_Moment):
    """The timestamp at which rows of Spanner were read: they have all commits up to it, and no others."""

    kind = "read_timestamp"
    log = SPANNER
    database = "Spanner"


class Restated(_Moment):
    """The moment at which the cells of Bigtable are told again: an hour before the job began to read them.

    Bigtable reads as of no moment, and its clock and that of the job may differ by an hour. So the cells have each
    change up to this moment, and perhaps a later one, which the stream has, too.
    """

    kind = "commit_timestamp"
    log = BIGTABLE
    database = "Bigtable"

    @classmethod
    def before(cls, taken_at: str) -> Self:
        """Return the moment for cells that a job began to read at this one."""
        moment = nanoseconds(taken_at) - 3600 * 10**9
        return cls(as_text(moment), moment)


OfDatastream = Seen | Place | ChangeNumber | CaptureNumber
Position = OfDatastream | ReadTimestamp | Restated


def position_of(kind: str, text: str, table: object) -> Position:
    """Return the position of a snapshot table in its log. Raises UsageError where it is none that can be used."""
    kinds: tuple[type[Position], ...] = (Seen, Place, ChangeNumber, CaptureNumber, ReadTimestamp, Restated)
    known = {of.kind: of for of in kinds}
    if kind not in known:
        raise UsageError(
            f"The position of {table} is a {kind}, and only snapshots of Oracle, MySQL, PostgreSQL, SQL Server, "
            "Spanner and Bigtable are staged beside a log so far: stage it into a staging table of its own, whose "
            "models read it with the macro snapshots."
        )
    position = known[kind].of(text)
    if position is None:
        shown = repr(text if len(text) <= 200 else f"{text[:200]}...")
        raise UsageError(f"The position of {table}, {shown}, is no {known[kind].meaning}: take it again.")
    return position
