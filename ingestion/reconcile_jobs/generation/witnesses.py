"""Witnesses: who tells the types of a table's columns, and what else each knows, in one form whatever the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from reconcile_jobs.generation.avro_types import Header
from reconcile_jobs.generation.declarations import Declaration, joined
from reconcile_jobs.generation.observations import Place

__all__ = ["Testimony", "Witness", "of_headers", "types_of"]


@dataclass(frozen=True)
class Witness:
    """What one witness tells of one table; without a key `key` is empty. Case does not distinguish columns."""

    columns: Mapping[str, Declaration] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    description: str = ""


# What one witness tells of all tables that it knows: a dictionary, the headers of files, the records of a source.
Testimony = Mapping[Place, Witness]


def of_headers(headers: Iterable[Header]) -> Testimony:
    """Return what the headers of Avro files tell; of a column that has several types, the one that holds all."""
    declared: dict[Place, dict[str, list[Declaration]]] = {}
    for header in headers:
        columns = declared.setdefault(header.place, {})
        for name, declaration in header.columns.items():
            columns.setdefault(name.lower(), []).append(declaration)
    return {
        place: Witness({name: reduce(joined, several) for name, several in columns.items()})
        for place, columns in declared.items()
    }


def types_of(witnesses: Sequence[Witness]) -> dict[str, Declaration]:
    """Return what the best witness that knows a column tells of it, by names in lower case."""
    return {
        name.lower(): declaration for witness in reversed(witnesses) for name, declaration in witness.columns.items()
    }
