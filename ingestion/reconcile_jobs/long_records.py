"""Records that are too long for a row of staging: a note of each stands there, and its bytes stay where they are."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["LONGEST", "LongRecord", "if_long"]

# The default, in bytes. While a model reads a record, memory holds it some ten times.
LONGEST = 32 * 2**20

# How many bytes of a record are searched for its first members.
_HEAD = 64 * 2**10


class LongRecord:
    """What is known of a record that is read piece by piece, and never held whole.

    `place`: where it is in its file, as `byte 4096` or `record 17`; None if it is in none.
    """

    def __init__(self, place: str | None = None) -> None:
        self.place = place
        self.bytes = 0
        self._head = b""
        self._digest = hashlib.sha256()

    def add(self, piece: bytes) -> None:
        """Read on."""
        self.bytes += len(piece)
        self._digest.update(piece)
        if len(self._head) < _HEAD:
            self._head += piece[: _HEAD - len(self._head)]

    def note(self, object_of_path: str | None = None) -> str:
        """Return what staging holds in place of the record: JSON, with the first members of the record.

        `object_of_path`: the object, for a record that does not name it.
        """
        details = {"bytes": self.bytes, "sha256": self._digest.hexdigest(), "place": self.place}
        # First, since a model looks there.
        members = (
            {"long_record": details} | _first_members(self._head.decode(errors="replace")) | {"long_record": details}
        )
        if object_of_path is not None:
            members.setdefault("object", object_of_path)
        return json.dumps(members, separators=(",", ":"))


def if_long(record: str, longest: int, place: str | None = None) -> LongRecord | None:
    """Return what is known of a record that has more bytes than the longest may have, None of any other."""
    if len(record) * 4 <= longest:
        return None
    content = record.encode()
    if len(content) <= longest:
        return None
    long = LongRecord(place)
    long.add(content)
    return long


def _first_members(text: str) -> dict[str, Any]:
    """Return the members of a JSON object that stand whole in its beginning."""
    members: dict[str, Any] = {}
    # Python reads no whole number of more than 4,300 digits.
    decoder = json.JSONDecoder(
        parse_float=str, parse_constant=str, parse_int=lambda digits: int(digits) if len(digits) < 40 else digits
    )
    place = _after_blanks(text, 0)
    if text[place : place + 1] != "{":
        return members
    try:
        while text[place] in "{,":
            name, place = decoder.raw_decode(text, _after_blanks(text, place + 1))
            place = _after_blanks(text, place)
            value, place = decoder.raw_decode(text, _after_blanks(text, place + 1))
            if not isinstance(name, str):
                break
            # A number at the end may go on.
            if (place := _after_blanks(text, place)) < len(text):
                members[name] = value
    except (ValueError, IndexError, TypeError, RecursionError):
        pass
    return members


def _after_blanks(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place
