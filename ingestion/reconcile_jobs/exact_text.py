"""Texts become values of Spark's scalar types exactly, or not at all."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

__all__ = ["ExactText", "NotExact", "reader_of", "shown"]


class NotExact(ValueError):
    """A text is no value of its type; the message completes the sentence "the value ... "."""


def shown(text: str) -> str:
    """Return a value's text as a complaint quotes it."""
    return json.dumps(text if len(text) <= 100 else text[:100] + "...", ensure_ascii=False)


@dataclass(frozen=True)
class ExactText:
    """How one type is read from text.

    `read` gives what Arrow takes for `arrow()`: timestamps in microseconds and dates in days since 1970.
    Invariant: it returns the very value that the text denotes, or raises NotExact.
    """

    type_name: str
    arrow_type: str
    read: Callable[[str], Any]
    precision: int = 0
    scale: int = 0

    @property
    def stored_type(self) -> str:
        """The type of the table's column, as DDL: texts of limited length are kept as string."""
        return "string" if self.arrow_type == "string" else self.type_name

    def arrow(self) -> pa.DataType:
        """Return the Arrow type that Spark takes for this type."""
        import pyarrow as pa

        if self.arrow_type == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.arrow_type == "timestamp":
            return pa.timestamp("us", tz="UTC")
        if self.arrow_type == "timestamp_ntz":
            return pa.timestamp("us")
        return pa.type_for_alias(self.arrow_type)


def reader_of(data_type: DataType) -> ExactText | None:
    """Return how a Spark scalar type is read from text, or None for a type that is no scalar with a text form."""
    from pyspark.sql import types

    name = data_type.simpleString()
    if isinstance(data_type, types.DecimalType):
        return ExactText(
            name, "decimal", _decimal(data_type.precision, data_type.scale), data_type.precision, data_type.scale
        )
    if isinstance(data_type, types.CharType | types.VarcharType):
        return ExactText(name, "string", _limited(data_type.length))
    if isinstance(data_type, types.ByteType):
        return ExactText(name, "int8", _integer(8))
    if isinstance(data_type, types.ShortType):
        return ExactText(name, "int16", _integer(16))
    if isinstance(data_type, types.IntegerType):
        return ExactText(name, "int32", _integer(32))
    if isinstance(data_type, types.LongType):
        return ExactText(name, "int64", _integer(64))
    plain: dict[type[DataType], tuple[str, Callable[[str], Any]]] = {
        types.StringType: ("string", str),
        types.BooleanType: ("bool", _boolean),
        types.FloatType: ("float32", _float32),
        types.DoubleType: ("float64", _float64),
        types.BinaryType: ("binary", _binary),
        types.DateType: ("date32", _date),
        types.TimestampType: ("timestamp", _timestamp),
        types.TimestampNTZType: ("timestamp_ntz", _timestamp_ntz),
    }
    found = plain.get(type(data_type))
    if found is None or "collate" in name:
        return None
    return ExactText(name, *found)


# Possessive, here and below: of a long text that is none, a search would try each place at which it may be cut.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9})?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NOT_FINITE = {
    "nan": math.nan,
    **dict.fromkeys(("infinity", "+infinity", "inf", "+inf"), math.inf),
    **dict.fromkeys(("-infinity", "-inf"), -math.inf),
}
_BOOLEANS = {**dict.fromkeys(("t", "true", "1"), True), **dict.fromkeys(("f", "false", "0"), False)}
_HEX = re.compile(r"\\x([0-9a-fA-F]*+)")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?: ?(Z|UTC|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?))?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_FIRST = (date.min.toordinal() - _EPOCH) * _DAY
_LAST = (date.max.toordinal() - _EPOCH + 1) * _DAY - 1


def _exact_number(text: str, precision: int, scale: int) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise NotExact("is not a number")
    number = Decimal(text)
    if number.adjusted() >= precision - scale and number:
        raise NotExact(f"has {number.adjusted() + 1} digits before the decimal point, and {precision - scale} fit")
    try:
        return number.quantize(Decimal(1).scaleb(-scale), context=_context(precision))
    except Inexact:
        places = "no decimal places" if scale == 0 else f"{scale} decimal places"
        raise NotExact(f"would be rounded to {places}") from None
    except InvalidOperation:  # cannot happen for what passed the check of the digits before the point
        raise NotExact(f"does not fit in {precision} digits") from None


_CONTEXTS: dict[int, Context] = {}


def _context(precision: int) -> Context:
    if precision not in _CONTEXTS:
        _CONTEXTS[precision] = Context(prec=precision, traps=[Inexact, InvalidOperation])
    return _CONTEXTS[precision]


def _decimal(precision: int, scale: int) -> Callable[[str], Decimal]:
    return lambda text: _exact_number(text, precision, scale)


def _integer(bits: int) -> Callable[[str], int]:
    limit = 1 << bits - 1

    def read(text: str) -> int:
        # 12.0 and 1.2E1 are whole numbers, written as some exports write them.
        plain = len(text) <= 40 and _INTEGER.fullmatch(text)
        number = int(text) if plain else int(_exact_number(text, 38, 0))
        if not -limit <= number < limit:
            raise NotExact(f"is outside {-limit} to {limit - 1}")
        return number

    return read


def _float64(text: str) -> float:
    # The nearest double, as everywhere: but infinity is not near to a number.
    if text.lower() in _NOT_FINITE:
        return _NOT_FINITE[text.lower()]
    if not _NUMBER.fullmatch(text):
        raise NotExact("is not a number")
    number = float(text)
    if math.isinf(number):
        raise NotExact("is too large for a double")
    return number


def _float32(text: str) -> float:
    # A double between two floats may be rounded to the wrong one of them if it was rounded itself.
    number = _unrounded(text, _float64(text))
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise NotExact("is too large for a float") from None


def _unrounded(text: str, number: float) -> float:
    """Return the nearest double; of one whose last bit is 0, if it is not exactly the text, its neighbor beyond it."""
    if not math.isfinite(number) or struct.pack("<d", number)[0] % 2:
        return number
    exact, nearest = Decimal(text), Decimal(number)
    return number if exact == nearest else math.nextafter(number, math.inf if exact > nearest else -math.inf)


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise NotExact("is none of t, true, 1, f, false, 0") from None


def _limited(length: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if len(text) > length:
            raise NotExact(f"has {len(text)} characters")
        return text

    return read


def _binary(text: str) -> bytes:
    found = _HEX.fullmatch(text)
    if not found or len(found[1]) % 2:
        raise NotExact(r"is not binary data as PostgreSQL writes it: \x and two hexadecimal digits for each byte")
    return bytes.fromhex(found[1])


def _moment(text: str) -> tuple[int, str | None]:
    """Return the microseconds since 1970 of the text as it stands, and its zone."""
    found = _MOMENT.fullmatch(text)
    if not found:
        raise NotExact("is not of the form 2026-11-21 11:33:13.049844+00")
    day, hour, minute, second, fraction, zone = found.groups()
    try:
        micros = (date.fromisoformat(day).toordinal() - _EPOCH) * _DAY
    except ValueError:
        raise NotExact("names a day that does not exist") from None
    if hour is None:
        return micros, zone
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise NotExact("names a time of day that does not exist")
    micros += (hours * 3600 + minutes * 60 + seconds) * 1_000_000
    if fraction:
        if fraction[6:].strip("0"):
            raise NotExact("is more precise than a microsecond")
        micros += int(fraction[:6].ljust(6, "0"))
    return micros, zone


def _timestamp(text: str) -> int:
    micros, zone = _moment(text)
    if zone is not None and zone not in ("Z", "UTC"):
        digits = zone[1:].replace(":", "").ljust(6, "0")
        hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        if hours > 18 or minutes > 59 or seconds > 59:
            raise NotExact("names a time zone that does not exist")
        offset = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
        micros += offset if zone[0] == "-" else -offset
        if not _FIRST <= micros <= _LAST:
            raise NotExact("is outside the years 0001 to 9999 in UTC")
    return micros


def _timestamp_ntz(text: str) -> int:
    micros, zone = _moment(text)
    if zone is not None:
        raise NotExact("has a time zone, and the type has none")
    return micros


def _date(text: str) -> int:
    # A time of day at midnight is how some databases print a date; any other would be lost.
    micros, zone = _moment(text)
    if micros % _DAY:
        raise NotExact("has a time of day, and the type has none")
    if zone is not None:
        raise NotExact("has a time zone, and the type has none")
    return micros // _DAY
