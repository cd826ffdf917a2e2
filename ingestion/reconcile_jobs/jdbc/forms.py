"""A database's texts in the form that a model has them in, which follows from what Datastream writes.

macros/values/datastream_texts.sql turns a value of a type into a text. These functions turn a database's text of the
same value into the same text, so that both sides of a comparison are equal. A text of another form, as `infinity` or a
day that does not exist, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

__all__ = ["TEXT_FORMS", "microseconds_of_span"]

_MOMENT = re.compile(
    r"(-?)([0-9]{4,9})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?)?"
    r"(?: ?(?:Z|[+]00(?::?00)?))?( BC)?"
)
_CLOCK = re.compile(r"([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(?:([+-][0-9]{2})((?::[0-9]{2})*))?")
_SPAN = re.compile(r"(-?)([0-9]{2,3}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_WHOLE = "([-+]?[0-9]{1,18})"
_ISO_INTERVAL = re.compile(
    rf"P(?=[-+0-9T])(?:{_WHOLE}Y)?(?:{_WHOLE}M)?(?:{_WHOLE}W)?(?:{_WHOLE}D)?"
    rf"(?:T(?=[-+0-9])(?:{_WHOLE}H)?(?:{_WHOLE}M)?(?:([-+]?[0-9]+(?:\.[0-9]{{1,6}})?)S)?)?"
)
# Oracle's: +02-03 is years and months, +02 03:04:05.000006 days and a time of day.
_MONTHS_OF_ORACLE = re.compile(r"([+-])([0-9]+)-([0-9]+)")
_DAYS_OF_ORACLE = re.compile(r"([+-])([0-9]+) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6})0*)?")


def _fraction(digits: str | None) -> str:
    # Six digits, and more only if the further ones are not all zero.
    return (digits or "").rstrip("0").ljust(6, "0")


def _day(sign: str, year: str, month: str, day: str, bc: str | None) -> str | None:
    if "00" in (month, day) or not int(year):
        return None
    # As ISO 8601 counts: the year before 1 is 0.
    number = 1 - int(year) if sign or bc else int(year)
    return f"{'-' if number < 0 else '+' if number > 9999 else ''}{abs(number):04}-{month}-{day}"


def _moment(text: str) -> str:
    """2026-11-21T11:33:13.049844Z, also where the source has no zone: so Datastream has both."""
    found = _MOMENT.fullmatch(text)
    day = _day(found[1], found[2], found[3], found[4], found[7]) if found else None
    return f"{day}T{found[5] or '00:00:00'}.{_fraction(found[6])}Z" if found and day else text


def _date(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    day = _day(found[1], found[2], found[3], found[4], found[7]) if found and not found[5] else None
    return day or text


def _time(text: str) -> str:
    """08:15:30.000000, and with an offset 08:15:30.000000-05:00."""
    found = _CLOCK.fullmatch(text)
    if not found:
        return text
    offset = f"{found[3]}{found[4] or ':00'}" if found[3] else ""
    return f"{found[1]}.{_fraction(found[2])}{offset}"


def _span(text: str) -> str:
    """MySQL's TIME, from -838:59:59.000000 to 838:59:59.000000."""
    found = _SPAN.fullmatch(text)
    return f"{found[1]}{found[2]}:{found[3]}:{found[4]}.{_fraction(found[5])}" if found else text


def microseconds_of_span(text: str) -> str:
    """Return MySQL's TIME as the number of its microseconds."""
    found = _SPAN.fullmatch(text)
    if not found:
        return text
    seconds = (int(found[2]) * 60 + int(found[3])) * 60 + int(found[4])
    micros = seconds * 1_000_000 + int(_fraction(found[5]))
    return str(-micros if found[1] else micros)


def _interval(text: str) -> str:
    """Months, hours and seconds, each with its sign: P14MT76H306.789000S. A day is 24 hours in Datastream."""
    if found := _ISO_INTERVAL.fullmatch(text):
        years, months, weeks, days, hours, minutes = (int(part or 0) for part in found.groups()[:6])
        return _of_parts(12 * years + months, 168 * weeks + 24 * days + hours, 60 * minutes + Decimal(found[7] or 0))
    if found := _MONTHS_OF_ORACLE.fullmatch(text):
        return _of_parts(int(found[1] + str(12 * int(found[2]) + int(found[3]))), 0, Decimal(0))
    if found := _DAYS_OF_ORACLE.fullmatch(text):
        sign = -1 if found[1] == "-" else 1
        seconds = 60 * int(found[4]) + Decimal(f"{found[5]}.{found[6] or 0}")
        return _of_parts(0, sign * (24 * int(found[2]) + int(found[3])), sign * seconds)
    return text


def _of_parts(months: int, hours: int, seconds: Decimal) -> str:
    # Zero has no sign.
    return f"P{months}MT{hours}H{seconds or Decimal(0):.6f}S"


TEXT_FORMS: Mapping[str, Callable[[str], str]] = {
    "moment": _moment,
    "date": _date,
    "time": _time,
    "span": _span,
    "interval": _interval,
}
