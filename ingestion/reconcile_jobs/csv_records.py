"""CSV as RFC 4180 has it: quoted and unquoted values are distinguished, and nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["LONGEST", "Broken", "Dialect", "records"]


# The default, in bytes: Arrow's arrays of text hold twice this.
LONGEST = 2**30


class Broken(ValueError):
    """What stands at a line is no CSV; the message says why, and `line` is counted from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Dialect:
    r"""What stands between values, and the text without quotes that means NULL.

    As in PostgreSQL's COPY ... CSV: with the marker `\N`, `\N` is NULL and "\N" a text of two characters; with the
    empty marker, a value without any character is NULL, and "" is the empty text.
    """

    delimiter: str = ","
    null: str = ""
    _value: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        between = re.escape(self.delimiter)
        # A value is all in quotes, or has none. Possessive: a broken record must not cost a search.
        pattern = rf'{between}("(?:[^"]++|"")*+"|[^"\r\n{between}]*+)'
        object.__setattr__(self, "_value", re.compile(pattern))

    def values(self, text: str) -> list[str | None]:
        """Return the values of one record, None for NULL. Raises ValueError where the text is no record."""
        found: list[str] = self._value.findall(self.delimiter + text)
        # findall leaves out what does not match, and then the lengths do not add up.
        if sum(map(len, found)) + len(found) != len(text) + 1:
            raise ValueError(self._why(text))
        null = self.null
        return [
            value[1:-1].replace('""', '"') if value[:1] == '"' else None if value == null else value for value in found
        ]

    def _why(self, text: str) -> str:
        text = self.delimiter + text
        position, number = 0, 0
        while matched := self._value.match(text, position):
            position, number = matched.end(), number + 1
        if text[position] == '"':
            return f"value {number} has a quote inside, but is not in quotes with those inside doubled"
        if text[position] in "\r\n":
            return f"value {number} holds a line break without being in quotes"
        return f"value {number} goes on after its closing quote"


def records(
    lines: Iterable[bytes], dialect: Dialect, columns: int, longest: int = LONGEST
) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the records of one file: the number of the first line, counted from 1, and the values, None for NULL.

    The lines come without their line feeds. A value in quotes may span lines. Either every record ends in CR LF or
    every record ends in LF; the last record may have no line end. A byte order mark at the beginning of the file is
    dropped. An empty line is a record only where there is one column. `longest`: the most bytes of the lines of a
    record, so that a quote that is never closed does not bring the rest of a file into memory. Raises Broken.
    """
    begun: list[bytes] = []  # the lines of a record whose last quote is still open
    first, size, crlf = 0, 0, None
    without_cr = 0  # in a file with CR LF: the first line of a record without CR, which only the last record may be
    for number, line in enumerate(lines, start=1):
        if without_cr:
            raise Broken(without_cr, "it ends with LF, and the lines before it with CR LF")
        odd = line.count(b'"') % 2 == 1
        if not begun:
            first = number
        if odd != bool(begun):
            begun.append(line)
            size += len(line) + 1
            if size > longest:
                raise Broken(first, f"a quote that opens there is not closed within {longest:,} bytes")
            continue
        if begun:
            line = b"\n".join([*begun, line])
            begun, size = [], 0
        if crlf is None:
            crlf = line.endswith(b"\r")
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.endswith(b"\r"):
            if not crlf:
                raise Broken(first, "it ends with CR LF, and the lines before it with LF")
            line = line[:-1]
        elif crlf:
            without_cr = first
        if line or columns == 1:
            try:
                yield first, dialect.values(line.decode("utf-8"))
            except UnicodeDecodeError as problem:
                raise Broken(first, f"byte {problem.start + 1} of the record is not UTF-8; convert the file") from None
            except ValueError as problem:
                raise Broken(first, str(problem)) from None
    if begun:
        raise Broken(first, "a quote that opens there is never closed")
