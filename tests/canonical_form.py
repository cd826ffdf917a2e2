"""The canonical form in plain Python, its test vectors, and a table of them for each database."""

import hashlib
import json
import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from reconcile_jobs.jdbc.database import Column
from reconcile_jobs.proofs.canonical_form import Field, field_of, parts_of_type
from reconcile_jobs.proofs.dialect import Dialect

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "data" / "canonical_form" / "vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text())

# What the package must not have a hand in: docs/canonical_form.md, read anew.
_OF_NAN = "7ff8000000000000"


def canonical(kind: str, value: Any) -> str | None:
    """Return the canonical text of a vector's value, None for NULL. A map is a list of pairs."""
    if value is None:
        return None
    if kind.startswith("array<"):
        return "".join(_element(kind[6:-1], each) for each in value)
    if kind.startswith("map<"):
        of_keys, _, of_values = kind[4:-1].partition(",")
        return "".join(sorted(_element(of_keys, key) + _element(of_values, each) for key, each in value))
    if kind == "number":
        whole, _, places = f"{Decimal(value):f}".partition(".")
        text = f"{whole}.{places.rstrip('0')}".rstrip(".")
        return "0" if text == "-0" else text
    if kind == "boolean":
        return {"true": "1", "false": "0"}[value]
    if kind == "float":
        number = float(value)
        return _OF_NAN if math.isnan(number) else struct.pack(">d", number).hex()
    if kind in ("text", "text_digest"):
        data = value.encode()
    elif kind in ("bytes", "bytes_digest"):
        data = bytes.fromhex(value)
    else:
        return value
    return hashlib.sha256(data).hexdigest() if kind.endswith("_digest") else data.hex()


def _element(kind: str, value: Any) -> str:
    text = canonical(kind, value)
    return "n" if text is None else f"{len(text)}:{text}"


def row_form(texts: Sequence[str | None]) -> str:
    """Return the canonical form of a row, given the texts of its fields."""
    fields = ["~" if text is None else f"={text}" for text in texts]
    if len(fields) <= 50:
        return "".join(fields)
    return "".join(digest("".join(fields[first : first + 50])) for first in range(0, len(fields), 50))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sums(rows: Iterable[tuple[str, str]], digits: int) -> dict[str, tuple[int, int, int]]:
    """Return for each bucket how many rows it has and the two sums, given the forms of keys and rows."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, row in rows:
        found[digest(key)[:digits]].append((int(digest(row)[:15], 16), int(digest(row)[15:30], 16)))
    return {bucket: (len(some), sum(a for a, _ in some), sum(b for _, b in some)) for bucket, some in found.items()}


def spark_column(name: str, type_: str) -> Column:
    """Return a column of Spark, as if Spark were a source."""
    elements = tuple(spark_column(name, part) for part in parts_of_type(type_)[1])
    return Column(name, type_, "{}", type_, elements=elements)


@dataclass(frozen=True)
class VectorTable:
    """Every vector in one table: a column for each type, a row for the first vectors of all, the second, and so on.

    A value that the dialect cannot hold is NULL, and a type that it does not have is no column.
    """

    dialect: Dialect
    key: str  # what the dialect calls a whole number of 64 bits
    types: dict[str, str]  # what the dialect calls a type of the vectors
    whose: str  # the dialect's name in what vectors say of it
    expressions: dict[str, str]  # of its types: how a snapshot reads the text
    odd: str = '"]` '  # what a column's name may hold
    is_wide: bool = True  # whether a row of more fields than a group has is tried

    @property
    def columns(self) -> list[str]:
        """The vectors' types that are columns."""
        return [type_ for type_ in dict.fromkeys(vector["type"] for vector in VECTORS) if type_ in self.types]

    @property
    def fields(self) -> list[Field]:
        """The key, and the columns."""
        kinds = {vector["type"]: vector["kind"] for vector in VECTORS}
        return [
            Field("id", "number", self.key, self.expressions.get(self.key, "{}")),
            *(self._field(f"c{self.odd}{place}", type_, kinds[type_]) for place, type_ in enumerate(self.columns)),
        ]

    def _field(self, name: str, type_: str, whole_kind: str) -> Field:
        (kind, kinds), (_, types), of = parts_of_type(whole_kind), parts_of_type(type_), self.types[type_]
        elements = tuple(self._field(name, type_, kind) for type_, kind in zip(types, kinds, strict=False) if kinds)
        return Field(name, kind, of, self.expressions.get(of, "{}"), elements)  # type: ignore[arg-type]

    @property
    def rows(self) -> list[list[Any]]:
        """The values, the key first."""
        of_type: dict[str, list[Any]] = {type_: [] for type_ in self.columns}
        for vector in VECTORS:
            if vector["type"] in of_type:
                is_there = self.whose not in vector.get("without", {})
                of_type[vector["type"]].append(vector["value"] if is_there else None)
        most = max(map(len, of_type.values()))
        return [
            [str(number), *(values[number] if number < len(values) else None for values in of_type.values())]
            for number in range(most)
        ]

    def expected(self) -> list[list[str | None]]:
        """The canonical texts of the fields of each row."""
        kinds = [field.whole_kind for field in self.fields]
        return [[canonical(kind, value) for kind, value in zip(kinds, row, strict=True)] for row in self.rows]

    def forms(self) -> list[tuple[str, str]]:
        """The canonical forms of each row's key and of the row."""
        return [(row_form(texts[:1]), row_form(texts)) for texts in self.expected()]

    def of_fields(self, relation: str) -> str:
        """The query of the fields' forms, row by row."""
        shown = ", ".join(f"{self.dialect.field(field)} AS f{place}" for place, field in enumerate(self.fields))
        return f"SELECT {shown} FROM {relation} ORDER BY {self.dialect.quoted('id')}"

    def of_buckets(self, relation: str, digits: int, within: Sequence[str] = ()) -> str:
        return self.dialect.buckets(relation, self.fields[:1], self.fields, digits, within)

    def check_without_form(self, query: Any, values: dict[str, list[str]]) -> None:
        """Values without a canonical form, by the kind of their column, are what no other database writes."""
        for kind, literals in values.items():
            field = self.dialect.field(Field("c", kind))  # type: ignore[arg-type]
            for literal in literals:
                (row,) = query(f"SELECT {field} AS f FROM (SELECT {literal} AS {self.dialect.quoted('c')}) t")
                assert row == [f"=!{self.dialect.name}"], literal

    def check_array(self, query: Any, kind: str, literal: str, text: str) -> None:
        """An array that is no vector, of elements of a kind, has this canonical form."""
        field = self.dialect.field(field_of("c", f"array<{kind}>", f"array<{kind}>"))
        assert query(f"SELECT {field} AS f FROM (SELECT {literal} AS {self.dialect.quoted('c')}) t") == [[text]]

    def check(self, query: Any, relation: str) -> None:
        """Compare every field, the buckets, a split of one, and its rows. `query` returns rows of texts."""
        found = query(self.of_fields(relation))
        expected = [["~" if text is None else f"={text}" for text in texts] for texts in self.expected()]
        assert len(found) == len(expected)
        wrong = [
            (field.kind, field.source_type, self.rows[number][place], ours, theirs)
            for number, (theirs_all, ours_all) in enumerate(zip(found, expected, strict=True))
            for place, (field, theirs, ours) in enumerate(zip(self.fields, theirs_all, ours_all, strict=True))
            if theirs != ours
        ]
        assert not wrong, wrong
        rows = query(self.of_buckets(relation, 1))
        ours = sums(self.forms(), 1)
        assert {bucket: tuple(int(number) for number in numbers) for bucket, *numbers in rows} == ours
        if self.is_wide:
            times = 50 // len(self.fields) + 1
            rows = query(self.dialect.buckets(relation, self.fields[:1], self.fields * times, 1))
            wide = [
                (key, row_form(texts * times)) for (key, _), texts in zip(self.forms(), self.expected(), strict=True)
            ]
            assert {bucket: tuple(int(number) for number in numbers) for bucket, *numbers in rows} == sums(wide, 1)
        some = sorted(ours)[1:3]
        rows = query(self.of_buckets(relation, 3, some))
        parts = {bucket: numbers for bucket, numbers in sums(self.forms(), 3).items() if bucket[0] in some}
        assert {bucket: tuple(int(number) for number in numbers) for bucket, *numbers in rows} == parts
        rows = query(self.dialect.rows(relation, self.fields[:1], self.fields, sorted(parts)))
        assert {tuple(row) for row in rows} == {
            (key, digest(row)) for key, row in self.forms() if digest(key)[:3] in parts
        }
        assert len(rows) == sum(count for count, *_ in parts.values()) > 1


PAGE = ROOT / "docs" / "canonical_form.md"
BEGIN = "<!-- The tables below are written by `python tests/canonical_form.py`. -->"


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"`{json.dumps(value, ensure_ascii=False)}`"
    if kind in ("text", "text_digest") and value:
        return " ".join(f"U+{ord(letter):04X}" for letter in value) if len(value) <= 5 else f"{len(value)} characters"
    return f"`{value}`" if value else "empty"


def _short(text: str | None) -> str:
    if text is None:
        return "`~`"
    return f"`={text}`" if len(text) <= 66 else f"`={text[:60]}`... {len(text)} digits"


def lines_of_vectors() -> list[str]:
    """Return the lines of the specification's tables, a line for each vector."""
    return [
        " | ".join(
            [
                f"| `{vector['type']}`",
                vector["what"],
                _cell(vector["value"], vector["kind"]),
                f"{_short(vector['text'])} |",
            ]
        )
        for vector in VECTORS
    ]


def write_tables() -> None:
    """Write the tables into the specification."""
    before = PAGE.read_text().partition(BEGIN)[0]
    parts = [before.rstrip("\n"), BEGIN]
    lines = dict(zip(map(json.dumps, VECTORS), lines_of_vectors(), strict=True))
    for kind in dict.fromkeys(parts_of_type(vector["kind"])[0] for vector in VECTORS):
        of_kind = [lines[json.dumps(vector)] for vector in VECTORS if parts_of_type(vector["kind"])[0] == kind]
        parts.append(f"### {kind}\n\n| type | | value | field |\n| --- | --- | --- | --- |\n" + "\n".join(of_kind))
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    write_tables()
