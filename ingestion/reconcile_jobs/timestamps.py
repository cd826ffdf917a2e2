"""Google's timestamps: RFC 3339 texts with up to nine digits, and whole nanoseconds since 1970; never floats."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

from reconcile_jobs.process.errors import UsageError

__all__ = ["as_text", "asked_moment", "nanoseconds", "sort_key", "zulu"]

_TEXT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(Z|z|[+-](?:0[0-9]|1[0-8])(?::?[0-5][0-9])?)"
)
_SECOND = 10**9
# The seconds of the years 0001 to 9999 in UTC, which alone have a text.
_SECONDS = range(-62135596800, 253402300800)


def nanoseconds(text: str) -> int:
    """Return a timestamp as nanoseconds since 1970. Raises ValueError for what is no timestamp with a zone."""
    found = _TEXT.fullmatch(text)
    if not found:
        raise ValueError(f"{text} is not a timestamp; write it as 2026-05-01T09:00:00Z")
    day, clock, fraction, zone = found.groups()
    seconds = calendar.timegm(datetime.fromisoformat(f"{day}T{clock}").timetuple())
    if zone not in "Zz":
        offset = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
        seconds -= offset if zone[0] == "+" else -offset
    if seconds not in _SECONDS:
        raise ValueError(f"{text} is outside the years 0001 to 9999 in UTC")
    return seconds * _SECOND + int((fraction or "").ljust(9, "0"))


def asked_moment(option: str, text: str) -> int:
    """Return what an option says, as nanoseconds since 1970. Raises UsageError."""
    try:
        return nanoseconds(text)
    except ValueError as problem:
        raise UsageError(f"{option}: {problem}.") from None


def as_text(moment: int) -> str:
    """Return nanoseconds since 1970 as text with nine digits and Z; Spanner takes it in both dialects."""
    seconds, fraction = divmod(moment, _SECOND)
    whole = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z".rjust(30, "0")


def zulu(text: str) -> str:
    """Return a timestamp in UTC as Spanner gave it, every digit, with the PostgreSQL dialect's +00:00 written as Z."""
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def sort_key(text: str) -> str:
    """Return a text that compares as the timestamp does, which itself does not: its digits vary in number."""
    whole = text[:-1] if len(text) > 20 else text[:-1] + "."
    return whole.ljust(29, "0")
