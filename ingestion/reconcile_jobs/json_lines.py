"""JSON lines in bounded memory: those of compressed files, and the long ones of files that Spark reads line by line."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, cast

from reconcile_jobs.long_records import LongRecord

__all__ = ["PackedError", "long_lines", "packed_lines"]

_CHUNK = 2**20
# What is read of a compressed file at a time: at the end of each stream, the rest of it is copied.
_PIECE = 2**14
# Most stretches of a file have a line feed near their beginning.
_FIRST_LOOK = 2**16
_BOM = b"\xef\xbb\xbf"


class PackedError(ValueError):
    """A compressed file is torn, or is none; the message says what and where, in bytes."""


def packed_lines(content: bytes, name: str, longest: int) -> Iterator[list[bytes | LongRecord]]:
    """Yield the lines of a file in gzip or bzip2, many at a time.

    For a line with more bytes than the longest may have (its line feed counts), a LongRecord. Raises PackedError.
    """
    chunks = _decompressed(content, name)
    chunk = next(chunks, b"")
    while len(chunk) < len(_BOM) and (more := next(chunks, b"")):  # streams of bzip2 may share the mark
        chunk += more
    place = len(_BOM) if chunk.startswith(_BOM) else 0  # where the unfinished line begins
    chunk = chunk[place:] or next(chunks, b"")
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
        chunk = next(chunks, b"")
    if long is not None:
        yield [long]
    elif begun:
        yield [begun]


def _decompressed(content: bytes, name: str) -> Iterator[bytes]:
    packed = io.BytesIO(content)
    try:
        yield from (
            _bunzip2(packed)
            if name.endswith(".bz2")
            else iter(partial(gzip.GzipFile(fileobj=packed).read, _CHUNK), b"")
        )
    except EOFError as problem:
        raise PackedError(f"it ends in the middle (after byte {packed.tell()})") from problem
    except (OSError, ValueError, zlib.error) as problem:
        raise PackedError(
            f"its content does not have the format that its name shows, or is damaged (after byte {packed.tell()}: "
            f"{problem})"
        ) from problem


def _bunzip2(packed: BinaryIO) -> Iterator[bytes]:
    # Not bz2.BZ2File, which takes a damaged stream after the first one for the end of the file.
    piece = packed.read(_PIECE)
    while piece:
        stream = bz2.BZ2Decompressor()
        while not stream.eof:
            if stream.needs_input and not piece and not (piece := packed.read(_PIECE)):
                raise EOFError
            if chunk := stream.decompress(piece, _CHUNK):
                yield chunk
            piece = b""
        piece = stream.unused_data or packed.read(_PIECE)


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
    # A line begins at the origin. Hadoop's reader does not count the mark either.
    origin = place = len(_BOM) if read(0, len(_BOM)) == _BOM else 0
    while place + stretch <= length:
        if _has_feed(read, place, place + stretch):
            place += stretch
            continue
        begins = origin if place == origin else _after_last_feed(read, place - stretch, place)
        long, ends = _read_line(read, begins, length)
        if ends == begins:  # the file is shorter by now
            return
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
