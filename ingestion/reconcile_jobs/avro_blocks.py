"""The blocks of an Avro file, looked at before any of them is decompressed: a few bytes can hold gigabytes."""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import fastavro

__all__ = ["LARGEST", "Block", "blocks", "decompressed", "first_too_large", "long_at"]

# Bytes of a block, decompressed. Writers end a block after some 16 to 64 kB, or after one record that is longer.
LARGEST = 256 * 2**20

# Of one byte deflate makes no more than this.
_DEFLATE = 1032

_CHUNK = 2**20

# Writers compress a block as one stream. At the end of each, Python's decompressors copy the rest of the block.
_STREAMS = 100

# What xz may take of memory: its largest preset has a dictionary of 64 MiB, and a header may ask for one of 4 GiB.
_XZ = 256 * 2**20

# The mark that ends each block.
_MARK = 16


class Block(NamedTuple):
    """A block as it stands in a file: where it begins and ends, how many records it says, and its bytes, compressed."""

    begins: int
    records: int
    data: memoryview
    mark: bytes
    ends: int


def first_too_large(content: bytes, place: int, codec: str, largest: int = LARGEST) -> int | None:
    """Return where the first block begins that holds more bytes than the largest may, or very many streams, or None.

    `place`: where the first block begins. What is torn is left to the reader to find.
    """
    try:
        for block in blocks(content, place):
            if _is_larger(block.data, codec, largest):
                return block.begins
    except (EOFError, IndexError, ValueError):
        pass
    return None


def blocks(content: bytes, place: int) -> Iterator[Block]:
    """Yield the blocks from a place on. Raises EOFError for one that is cut, and ValueError for one that is damaged."""
    view = memoryview(content)
    while place < len(content):
        begins = place
        try:
            records, place = long_at(content, place)
            length, place = long_at(content, place)
        except IndexError:
            raise EOFError from None
        if length < 0:
            raise ValueError("a block has fewer than no bytes")
        ends = place + length + _MARK
        if ends > len(content):
            raise EOFError
        yield Block(begins, records, view[place : place + length], content[ends - _MARK : ends], ends)
        place = ends


def _number(content: bytes, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, seven bits to a byte, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        byte = content[place]
        place += 1
        if byte < 128:
            number |= byte << shift
            break
        number |= (byte & 127) << shift
    else:
        raise ValueError("a number has more than ten bytes")
    if number >> 64:
        raise ValueError("a number has more than 64 bits")
    return number, place


def long_at(content: bytes, place: int) -> tuple[int, int]:
    """Return Avro's long that begins at a place, which has its sign last, and where it ends.

    Raises IndexError where the bytes end, and ValueError for a number that does not fit in 64 bits.
    """
    number = content[place]
    if number < 128:
        return (number >> 1) ^ -(number & 1), place + 1
    number, place = _number(content, place)
    return (number >> 1) ^ -(number & 1), place


def decompressed(block: memoryview, codec: str) -> bytes:
    """Return what a block holds. Raises EOFError or whatever a decompressor raises if it is cut or damaged.

    Bytes behind the end of a stream are damage, if they are no further stream: the records in them would be lost.
    """
    if codec == "null":
        return bytes(block)
    if codec == "deflate":
        return _inflated(block)
    decompressor = _decompressor(codec)
    if decompressor is not None:
        return b"".join(_streams(decompressor, bytes(block)))
    if codec == "snappy" and len(block) < 4:  # its checksum
        raise EOFError
    return _by_fastavro(block, codec)


def _by_fastavro(block: memoryview, codec: str) -> bytes:
    # What has one stream alone, which says its length. fastavro takes whole files: one with this block and no more.
    mark = bytes(_MARK)
    header = b"".join(map(_text, (b"avro.schema", b'"null"', b"avro.codec", codec.encode())))
    file = b"Obj\x01" + _long(2) + header + _long(0) + mark + _long(0) + _text(bytes(block)) + mark
    read: Any = next(fastavro.block_reader(io.BytesIO(file)))
    held: bytes = read.bytes_.getvalue()
    return held


def _text(text: bytes) -> bytes:
    return _long(len(text)) + text


def _long(number: int) -> bytes:
    written = bytearray()
    number <<= 1
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _inflated(block: memoryview) -> bytes:
    if not block:  # a block of no records
        return b""
    stream = zlib.decompressobj(-15)
    content = stream.decompress(block)
    if not stream.eof:
        raise EOFError
    # Avro's own library for Python and fastavro take zlib's frame away, but for three of four bytes of its checksum.
    rest, checksum = stream.unused_data, zlib.adler32(content).to_bytes(4, "big")
    if rest and rest not in (checksum[:3], checksum):
        raise ValueError("a block has bytes behind the end of its compressed stream")
    return content


def _streams(decompressor: Callable[[], Any], data: bytes) -> Iterator[bytes]:
    while data:
        stream = decompressor()
        yield stream.decompress(data)
        if not stream.eof:
            raise EOFError
        data = stream.unused_data


def _decompressor(codec: str) -> Callable[[], Any] | None:
    if codec == "bzip2":
        return bz2.BZ2Decompressor
    if codec == "xz":
        return lambda: lzma.LZMADecompressor(memlimit=_XZ)
    if codec == "zstandard" and (zstd := _zstd()):
        decompressor: Callable[[], Any] = zstd.ZstdDecompressor
        return decompressor
    return None


def _is_larger(data: memoryview, codec: str, largest: int) -> bool:
    if codec == "snappy":  # which says its length first
        return bool(data) and _number(bytes(data[:10]), 0)[0] > largest
    if codec == "lz4":
        return int.from_bytes(data[:4], "little") > largest
    if codec == "deflate":
        return len(data) * _DEFLATE > largest and _is_longer(_Deflate, data, largest)
    decompressor = _decompressor(codec)
    return len(data) > largest if decompressor is None else _is_longer(decompressor, data, largest)


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
