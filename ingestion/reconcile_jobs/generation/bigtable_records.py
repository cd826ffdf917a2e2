"""What staged data changes of a Bigtable table show: the families and qualifiers of its cells, and their bytes."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from reconcile_jobs.cuts import CUT
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.names import safe_name
from reconcile_jobs.generation.observations import Observations, Observed, Place, decoded
from reconcile_jobs.generation.tables import Column, Refusal, Table, label_of

__all__ = ["MOST", "Cell", "CellTable", "add_data_change", "cell_tables", "named"]

# Of a family with more qualifiers than this, the qualifiers are data, and no columns of a view.
MOST = 200

_KEY = ("row_key", "family", "qualifier", "cell_time")
_COLUMNS = {"row_key": "binary", "family": "string", "qualifier": "binary", "cell_time": "timestamp", "value": "binary"}
# Columns that the view has beside those of cells.
OF_THE_VIEW = {"row_key": "binary", "undecoded": "array<string>"}

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FAMILY = re.compile(r"[-_.a-zA-Z0-9]+")


@dataclass(frozen=True)
class Cell:
    """A family and a qualifier, whose bytes are hex here. `forms`: what its values were, as `_form` tells them."""

    family: str
    qualifier: str
    forms: frozenset[str]

    @property
    def text(self) -> str | None:
        """The qualifier as a text that people can read; None if it is none."""
        return _readable(bytes.fromhex(self.qualifier))

    @property
    def label(self) -> str:
        """How people call it: stats:hits."""
        return f"{self.family}:{self.qualifier if self.text is None else self.text}"

    @property
    def declaration(self) -> Declaration:
        """What the bytes are by the values: text, or whatever else they are."""
        if all(form.startswith("text") for form in self.forms):
            return Declaration("string", "text", "the values: text")
        if all(form.endswith(" of 8") for form in self.forms):
            return Declaration("binary", "raw", "the values: 8 bytes each, as whole numbers in big_endian have them")
        return Declaration("binary", "raw", "the values: bytes")

    def fits(self, encoding: str, data_type: str) -> bool:
        """Whether every value that came is of an encoding, as far as its bytes tell."""
        if encoding == "text":
            return not any(form.startswith("bytes") for form in self.forms)
        return not (encoding == "big_endian" and data_type in ("bigint", "long")) or all(
            form.endswith(" of 8") for form in self.forms
        )


@dataclass(frozen=True)
class CellTable:
    """A table of Bigtable: the model of its cells, and the cells that a view of its rows has as columns."""

    table: Table
    cells: tuple[Cell, ...]


def add_data_change(found: Observations, record: str | None, object_: str | None, batch: int) -> None:
    """Take note of a staged record."""
    if not object_:
        found.nameless += 1
    if not object_ or object_ == CUT:
        return
    observed = found.of(Place(None, "", object_))
    observed.records += 1
    observed.objects.add(object_)
    observed.sources.add("bigtable")
    change = decoded(record)
    entries = change.get("entries") if change else None
    for entry in entries if isinstance(entries, list) else []:
        cell = entry.get("set_cell") if isinstance(entry, dict) and len(entry) == 1 else None
        if isinstance(cell, dict):
            _add_cell(observed, cell)


def _add_cell(observed: Observed, cell: dict[str, Any]) -> None:
    family, qualifier, value = cell.get("family"), _bytes(cell.get("qualifier")), _bytes(cell.get("value"))
    if not isinstance(family, str) or not family or qualifier is None or value is None:
        return  # the change goes to quarantine
    name = f"{family}:{qualifier.hex()}"
    forms = observed.types.get(name)
    if forms is None:
        # Enough to see that there are too many, and no more: a qualifier may be a user or a moment.
        if sum(other.startswith(f"{family}:") for other in observed.types) > MOST:
            return
        forms = observed.types[name] = set()
    forms.add(_form(value))


def _bytes(text: Any) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return None


def _form(value: bytes) -> str:
    """Return what bytes are: text that people can read, other UTF-8, or bytes; and whether they are eight."""
    size = " of 8" if len(value) == 8 else ""
    if _readable(value) is not None:
        return f"text{size}"
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return f"bytes{size}"
    return f"UTF-8{size}"


def _readable(value: bytes) -> str | None:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def cell_tables(
    observations: Observations, select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> tuple[list[CellTable], list[Refusal]]:
    """Return the tables by their names, and the families that no view has as columns."""
    tables, refusals = [], []
    for place, observed in sorted(observations.tables.items(), key=lambda item: item[0].table):
        label = label_of(place)
        if (select and not any(fnmatchcase(label, pattern) for pattern in select)) or any(
            fnmatchcase(label, pattern) for pattern in exclude
        ):
            continue
        columns = tuple(
            Column(name, of := Declaration(data_type), own=of)
            for name, data_type in _COLUMNS.items()
        )  # fmt: skip
        table = Table(label, "bigtable", None, "", place.table, _KEY, columns, objects=(place.table,))
        cells = [Cell(*_parts(name), frozenset(forms)) for name, forms in observed.types.items()]
        numbers = Counter(cell.family for cell in cells)
        for family, number in sorted(numbers.items()):
            if number > MOST:
                refusals.append(Refusal(f"{label}: {family}", "too many qualifiers", _TOO_MANY))
            elif not _FAMILY.fullmatch(family):
                refusals.append(Refusal(f"{label}: {family}", "no family", _NO_FAMILY))
        taken = [cell for cell in cells if numbers[cell.family] <= MOST and _FAMILY.fullmatch(cell.family)]
        tables.append(CellTable(table, tuple(sorted(taken, key=lambda cell: (cell.family, cell.qualifier)))))
    return tables, refusals


def _parts(name: str) -> tuple[str, str]:
    family, _, qualifier = name.rpartition(":")
    return family, qualifier


_TOO_MANY = (
    f"The family has more than {MOST} qualifiers, so that they are data, and no columns. Read them in the model of "
    "cells, or name those that are columns in the view by hand."
)
_NO_FAMILY = "Bigtable has no family of this name: letters, digits, `-`, `_` and `.`. Look at the records."


def named(cells: Sequence[Cell], taken: Sequence[str] = ()) -> dict[str, Cell]:
    """Return cells by the names of their columns: the qualifier, with its family where several have this name."""
    used = {name.lower() for name in (*taken, *OF_THE_VIEW)}
    wanted = [_name_of(cell) for cell in cells]
    several = Counter(name.lower() for name in wanted)
    found: dict[str, Cell] = {}
    for cell, name in zip(cells, wanted, strict=True):
        if several[name.lower()] > 1 or name.lower() in used:
            name = f"{safe_name(cell.family)}_{name}"
        number, free = 2, name
        while free.lower() in used:
            number, free = number + 1, f"{name}_{number}"
        used.add(free.lower())
        found[free] = cell
    return found


def _name_of(cell: Cell) -> str:
    if not cell.qualifier:
        return safe_name(cell.family)
    if cell.text is None:
        return safe_name(f"x_{cell.qualifier}")
    return cell.text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,89}", cell.text) else safe_name(cell.text)
