"""JSON lines in bounded memory: those of compressed files, and the long ones of files that Spark reads line by line."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from reconcile_jobs.long_records import LongRecord

__all__ = ["PackedError", "long_lines", "packed_lines"]

_CHUNK = 2**20
# Most stretches of a file have a line feed near their beginning.
_FIRST_LOOK = 2**16
_BOM = b"\xef\xbb\xbf"


class PackedError(ValueError):
    """A compressed file is torn, or is none; the message says what and where, in bytes."""


def packed_lines(content: bytes, name: str, longest: int) -> Iterator[list[bytes | LongRecord]]:
    """Yield the lines of a file in gzip or bzip2, many at a time.

    Of a line with more bytes than the longest may have (its line feed counts), what is known of it. Raises PackedError.
    """
    packed = io.BytesIO(content)
    stream = cast(BinaryIO, bz2.BZ2File(packed) if name.endswith(".bz2") else gzip.GzipFile(fileobj=packed))
    chunk = _next(stream, packed)
    place = len(_BOM) if chunk.startswith(_BOM) else 0  # where the line begins that is not yet whole
    chunk = chunk[place:]
    begun, long = b"", None
    while chunk:
        if long is not None:
            piece, feed, chunk = chunk.partition(b"\n")
            long.add(piece)
            if feed:
                yield [long]
                place, long = place + long.bytes + 1, None
        if long is None:
            lines = (begun + chunk).split(b"\n")
            begun = lines.pop()
            if lines:
                yield _with_long_ones(lines, place, longest)
                place += sum(map(len, lines)) + len(lines)
            if len(begun) > longest:
                begun, long = b"", _long(begun, place)
        chunk = _next(stream, packed)
    if long is not None:
        yield [long]
    elif begun:
        yield [begun]


def _next(stream: BinaryIO, packed: BinaryIO) -> bytes:
    place = packed.tell()
    try:
        return stream.read(_CHUNK)
    except EOFError as problem:
        raise PackedError(f"it ends in the middle (after byte {place})") from problem
    except Exception as problem:  # zlib.error, BadGzipFile, OSError, ValueError
        raise PackedError(
            f"what it holds is not what its name says, or was damaged (after byte {place}: {problem})"
        ) from problem


def _with_long_ones(lines: list[bytes], place: int, longest: int) -> list[bytes | LongRecord]:
    if max(map(len, lines)) < longest:
        return cast("list[bytes | LongRecord]", lines)
    found: list[bytes | LongRecord] = []
    for line in lines:
        found.append(line if len(line) < longest else _long(line, place))
        place += len(line) + 1
    return found


def _long(line: bytes, place: int) -> LongRecord:
    long = LongRecord(f"byte {place}")
    long.add(line)
    return long


def long_lines(read: Callable[[int, int], bytes], length: int, longest: int) -> Iterator[LongRecord]:
    """Yield the lines of a file that have more bytes than the longest may have, without reading the others.

    `read` returns the bytes from a place on, so many, fewer only where the file ends.
    """
    # A longer line holds at least one of these stretches whole, in which there is no line feed then.
    stretch = longest // 2
    origin = place = 0  # a line begins at the origin
    while place + stretch <= length:
        if _has_feed(read, place, place + stretch):
            place += stretch
            continue
        begins = origin if place == origin else _after_last_feed(read, place - stretch, place)
        long, ends = _read_line(read, begins, length)
        if ends - begins > longest:
            yield long
        origin = place = ends


def _pieces(read: Callable[[int, int], bytes], begins: int, ends: int, first: int = _CHUNK) -> Iterator[bytes]:
    count = first
    while begins < ends and (piece := read(begins, min(count, ends - begins))):
        yield piece
        begins += len(piece)
        count = _CHUNK


def _has_feed(read: Callable[[int, int], bytes], begins: int, ends: int) -> bool:
    return any(b"\n" in piece for piece in _pieces(read, begins, ends, _FIRST_LOOK))


def _after_last_feed(read: Callable[[int, int], bytes], begins: int, ends: int) -> int:
    while (start := max(begins, ends - _CHUNK)) < ends:
        if (found := read(start, ends - start).rfind(b"\n")) >= 0:
            return start + found + 1
        ends = start
    return begins


def _read_line(read: Callable[[int, int], bytes], begins: int, length: int) -> tuple[LongRecord, int]:
    """Return the line that begins there, and where the next one begins."""
    long = LongRecord(f"byte {begins}")
    for piece in _pieces(read, begins, length):
        line, feed, _ = piece.partition(b"\n")
        long.add(line)
        if feed:
            return long, begins + long.bytes + 1
    return long, begins + long.bytes
