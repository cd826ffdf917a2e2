"""Positions of snapshots in the log of their database, by which is told what a snapshot contains."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconcile_jobs.process.errors import UsageError

__all__ = ["Place", "Position", "Seen", "position_of"]


@dataclass(frozen=True)
class Seen:
    """The transactions that a snapshot of PostgreSQL sees: all before `end` but those that were open."""

    text: str
    end: int
    open: frozenset[int]

    kind = "pg_snapshot"
    database = "PostgreSQL"
    form = r"[0-9]{1,20}:([0-9]{1,20}):((?:[0-9]{1,20}(?:,[0-9]{1,20})*)?)"
    meaning = "pg_current_snapshot()"
    # Whether a record, by its read method and its metadata, is one of this database.
    of_database = "lsn like '%/%' or read_method like 'postgres%'"

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


@dataclass(frozen=True)
class Place:
    """A place in the binary log of MySQL: file and offset are numbers, as text 1000000 comes before 999999."""

    text: str
    name: str
    file: int
    offset: int

    kind = "binlog"
    database = "MySQL"
    form = r"(.*\.)([0-9]{1,18}):([0-9]{1,18})"
    meaning = "place in a binary log, as mysql-bin.000017:4 is (a GTID tells no order of changes)"
    of_database = "file is not null or read_method like 'mysql%'"

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


Position = Seen | Place


def position_of(kind: str, text: str, table: object) -> Position:
    """Return the position of a snapshot table in its log. Raises UsageError where it is none that can be used."""
    known: dict[str, type[Seen] | type[Place]] = {of.kind: of for of in (Seen, Place)}
    if kind not in known:
        raise UsageError(
            f"The position of {table} is a {kind}, and only snapshots of PostgreSQL and MySQL are staged beside a log "
            "so far: stage it into a staging table of its own, whose models read it with the macro snapshots."
        )
    position = known[kind].of(text)
    if position is None:
        shown = repr(text if len(text) <= 200 else f"{text[:200]}...")
        raise UsageError(f"The position of {table}, {shown}, is no {known[kind].meaning}: take it again.")
    return position
