"""The blocks of an Avro file, looked at before any of them is decompressed: a few bytes can hold gigabytes."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["LARGEST", "first_too_large"]

# Bytes of a block, decompressed. Writers end a block after some 16 to 64 kB, or after one record that is longer.
LARGEST = 256 * 2**20

# Of one byte deflate makes no more than this.
_DEFLATE = 1032

_CHUNK = 2**20

# Writers compress a block as one stream. At the end of each, Python's decompressors copy the rest of the block.
_STREAMS = 100


def first_too_large(content: bytes, place: int, codec: str, largest: int = LARGEST) -> int | None:
    """Return where the first block begins that holds more bytes than the largest may, or very many streams, or None.

    `place`: where the first block begins. What is torn is left to the reader to find.
    """
    for begins, data in _blocks(content, place):
        if _is_larger(data, codec, largest):
            return begins
    return None


def _blocks(content: bytes, place: int) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(content)
    while place < len(content):
        begins = place
        _, place = _long(content, place)
        length, place = _long(content, place)
        if length < 0 or place + length > len(content):
            return
        yield begins, view[place : place + length]
        place += length + 16


def _number(content: bytes, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, seven bits to a byte, and where it ends."""
    read = shift = 0
    for byte in content[place : place + 10]:
        read |= (byte & 127) << shift
        shift += 7
        place += 1
        if byte < 128:
            break
    return read, place


def _long(content: bytes, place: int) -> tuple[int, int]:
    """Return Avro's long that begins at a place, which has its sign last, and where it ends."""
    read, place = _number(content, place)
    return (read >> 1) ^ -(read & 1), place


def _is_larger(data: memoryview, codec: str, largest: int) -> bool:
    if codec == "snappy":  # which says its length first
        return _number(bytes(data[:10]), 0)[0] > largest
    if codec == "lz4":
        return int.from_bytes(data[:4], "little") > largest
    if codec == "deflate":
        return len(data) * _DEFLATE > largest and _is_longer(_Deflate, data, largest)
    if codec == "bzip2":
        return _is_longer(bz2.BZ2Decompressor, data, largest)
    if codec == "xz":
        return _is_longer(lzma.LZMADecompressor, data, largest)
    if codec == "zstandard" and (zstd := _zstd()):
        return _is_longer(zstd.ZstdDecompressor, data, largest)
    return len(data) > largest


class _Deflate:
    """Deflate with the interface that the other decompressors have."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(-15)
        self.eof = self.needs_input = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._decompressor.decompress(self._decompressor.unconsumed_tail or data, max_length)
        self.eof, self.needs_input = self._decompressor.eof, not self._decompressor.unconsumed_tail and not found
        return found


def _is_longer(decompressor: Callable[[], Any], data: memoryview, largest: int) -> bool:
    length, streams, given = 0, 0, bytes(data)
    try:
        while given:  # one stream after the other
            streams += 1
            if streams > _STREAMS:
                return True
            stream = decompressor()
            while not stream.eof and not (stream.needs_input and not given):
                length += len(stream.decompress(given, max_length=_CHUNK))
                if length > largest:
                    return True
                given = b""
            given = stream.unused_data
    except Exception:  # damaged: the reader says how
        return False
    return False


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    return zstd
