"""How a column is declared: a type that holds all that its witness allows, and never a narrower one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = [
    "TEXT",
    "Declaration",
    "Number",
    "Values",
    "declaration_of_values",
    "holds",
    "is_moment",
    "joined",
    "of_kind",
]

_BOUNDS = {name: 2 ** (bits - 1) for name, bits in {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}.items()}
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # decimal digits
_DIGITS = 38  # of the longest decimal


@dataclass(frozen=True)
class Declaration:
    """A type as a model declares it, with options, and in `witness` what shows the type.

    `zero_dates_are_null`: whether MySQL's zero dates become NULL.
    """

    data_type: str
    encoding: str | None = None
    witness: str = ""
    zero_dates_are_null: bool = False


TEXT = Declaration("string")


class Number(str):
    """A number of JSON with the very digits that it was delivered with."""

    __slots__ = ()


_FORMS = {type(None): "null", str: "text", bool: "boolean", dict: "json", list: "json"}
_WHOLE = re.compile(r"-?[0-9]+").fullmatch


@dataclass
class Values:
    """What the values of one field were in all records.

    `forms`: how many values of each form there were: null, whole number, number, boolean, text, json.
    `kinds`: how many of the values that are not null had which note of the append job about their Avro type.
    `least`, `greatest`: of the numbers, as decimal texts. `places`: decimal places without trailing zeros at most.
    `zero_dates`: how many texts were MySQL's zero date, alone or with a time of day.
    """

    forms: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    least: Decimal | None = None
    greatest: Decimal | None = None
    places: int = 0
    zero_dates: int = 0

    def add(self, value: Any, kind: str | None) -> None:
        """Take note of a value as `json.loads` has it, numbers as the text `Number`."""
        # For each value of each record: nothing else here takes as long.
        form = _FORMS.get(type(value)) or ("whole number" if _WHOLE(value) else "number")
        self.forms[form] = self.forms.get(form, 0) + 1
        if kind and value is not None:
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if isinstance(value, Number):
            self._add_number(value)
        elif form == "text" and value.startswith("0000-00-00"):
            self.zero_dates += 1

    def _add_number(self, text: str) -> None:
        try:
            number = Decimal(text)
        except InvalidOperation:
            return
        if not number.is_finite():
            return
        self.least = number if self.least is None else min(self.least, number)
        self.greatest = number if self.greatest is None else max(self.greatest, number)
        self.places = max(self.places, _places(number))

    def merge(self, other: Values) -> None:
        """Add what others saw; the order of merging does not matter."""
        for mine, theirs in ((self.forms, other.forms), (self.kinds, other.kinds)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        lows = [value for value in (self.least, other.least) if value is not None]
        highs = [value for value in (self.greatest, other.greatest) if value is not None]
        self.least, self.greatest = min(lows, default=None), max(highs, default=None)
        self.places = max(self.places, other.places)
        self.zero_dates += other.zero_dates

    @property
    def without_kind(self) -> int:
        """How many values are not null and have no note of the append job."""
        return sum(self.forms.values()) - self.forms.get("null", 0) - sum(self.kinds.values())

    @property
    def shown(self) -> set[str]:
        """The forms of the values that are not null."""
        return {*self.forms} - {"null"}

    def to_json(self) -> dict[str, Any]:
        """Return it for `from_json`, in another process."""
        bounds = [None if value is None else str(value) for value in (self.least, self.greatest)]
        numbers = {"bounds": bounds, "places": self.places, "zero_dates": self.zero_dates}
        return {"forms": self.forms, "kinds": self.kinds, **numbers}

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Values:
        """Return what `to_json` wrote."""
        least, greatest = (None if text is None else Decimal(text) for text in read["bounds"])
        return cls(read["forms"], read["kinds"], least, greatest, read["places"], read["zero_dates"])


def _places(number: Decimal) -> int:
    """Return the decimal places of a number without trailing zeros. (`normalize` would round to 28 digits.)"""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or not any(digits):
        return 0
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, -exponent - zeros)


def declaration_of_values(values: Values) -> Declaration:
    """Return the type that holds every value that came, and every later one that the same column may have.

    A whole number without a decimal point is one at the source too, since a decimal has all digits of its scale. A
    number with places may get more of them, a text may be anything: both are strings.
    """
    forms = values.shown
    if not forms:
        return Declaration("string", witness="the values: only NULL")
    witness = f"the values: {', '.join(sorted(forms))}"
    if "json" in forms:
        return Declaration("string", "json", witness)
    if forms == {"boolean"}:
        return Declaration("boolean", witness=witness)
    if forms == {"whole number"} and values.least is not None and values.greatest is not None:
        for data_type in ("bigint", "decimal(20,0)", "decimal(38,0)"):
            if holds(Declaration(data_type), values):
                return Declaration(data_type, witness=witness)
    return Declaration("string", witness=witness)


# What the append job notes of a field of an Avro record (see avro_json.py), as a model declares it.
_KINDS = {
    "bytes": ("binary", None),
    "json": ("string", "json"),
    "time-interval-micros": ("string", "microseconds"),
    "varchar": ("string", None),
    "timestampTz": ("timestamp", None),
    "datetime": ("timestamp_ntz", None),
    "timeTz": ("string", "time"),
    "interval": ("string", "interval"),
}


def of_kind(kind: str) -> Declaration | None:
    """Return the declaration that a note about an Avro type leads to, None if the note tells no type."""
    if kind.endswith("[]"):
        element = _KINDS.get(kind.removesuffix("[]"), ("string", None))[0]
        return Declaration(f"array<{element}>", witness=f"Avro, as staged: {kind}")
    if kind not in _KINDS:
        # A record of another name, as geometry: what stands in it is kept as JSON.
        return Declaration("string", "json", f"Avro, as staged: {kind}") if kind else None
    return Declaration(*_KINDS[kind], witness=f"Avro, as staged: {kind}")


def holds(declared: Declaration, values: Values) -> bool:
    """Whether a declaration takes every number, boolean and JSON value that came. What a text fits is not judged."""
    data_type = re.sub(r"\s", "", declared.data_type.lower())
    forms = values.shown
    if decimal := re.fullmatch(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?", data_type):
        digits, places = int(decimal[1] or 10), int(decimal[2] or 0)
        return forms <= {"whole number", "number", "text"} and _fits(values, Decimal(10) ** (digits - places), places)
    data_type = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(data_type, data_type)
    if data_type in _BOUNDS:
        bound = Decimal(_BOUNDS[data_type])
        above = values.greatest is None or values.greatest < bound
        below = values.least is None or values.least >= -bound
        return forms <= {"whole number", "number", "text"} and values.places == 0 and above and below
    if data_type == "boolean":
        return forms <= {"whole number", "boolean", "text"} and _fits(values, Decimal(2), 0, least=0)
    if data_type in ("float", "real", "double"):
        return forms <= {"whole number", "number", "text"}
    if is_moment(data_type):
        return forms <= {"text", "json"}
    if data_type == "binary":
        return forms <= {"text"}
    return True


def is_moment(data_type: str) -> bool:
    """Whether a type is a date or a time, which has no place for MySQL's zero date."""
    return data_type.strip().lower() in ("date", "timestamp", "timestamp_ltz", "timestamp_ntz")


def _fits(values: Values, bound: Decimal, places: int, least: int | None = None) -> bool:
    if values.least is None or values.greatest is None:
        return True
    lowest = -bound if least is None else Decimal(least) - 1
    return lowest < values.least and values.greatest < bound and values.places <= places


def joined(one: Declaration, other: Declaration) -> Declaration:
    """Return the narrowest declaration that holds whatever either of two holds."""
    if (one.data_type, one.encoding) == (other.data_type, other.encoding):
        return one
    witness = one.witness if one.witness == other.witness else f"{one.witness}; {other.witness}"
    pair = {one.data_type, other.data_type}
    if pair == {"float", "double"}:
        return Declaration("double", witness=witness)
    if pair <= {*_INTEGERS}:
        return Declaration(max(pair, key=lambda name: _INTEGERS[name]), witness=witness)
    sizes = [_size(name) for name in pair]
    if all(sizes):
        whole = max(size[0] for size in sizes if size)
        places = max(size[1] for size in sizes if size)
        if whole + places <= _DIGITS:
            return Declaration(f"decimal({whole + places},{places})", witness=witness)
    encoding = "json" if "json" in (one.encoding, other.encoding) else None
    return Declaration("string", encoding, witness)


def _size(data_type: str) -> tuple[int, int] | None:
    """Return how many digits a type has before and after the point."""
    if data_type in _INTEGERS:
        return _INTEGERS[data_type], 0
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", data_type)
    return (int(decimal[1]) - int(decimal[2]), int(decimal[2])) if decimal else None
