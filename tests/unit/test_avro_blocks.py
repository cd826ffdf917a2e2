"""A few bytes of Avro do not become gigabytes: blocks, records and arrays are bounded before they are read."""

import bz2
import io
import lzma
import zlib

import fastavro
import pytest
from avro_files import avro_file, record
from reconcile_jobs import avro_blocks
from reconcile_jobs.avro_blocks import first_too_large
from reconcile_jobs.avro_json import AvroError, json_records

CODECS = ["null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4"]


def blocks_of(content):
    """Return where the blocks begin and how long they are, as the library reads them."""
    reader = fastavro.block_reader(io.BytesIO(content))
    return [(block.offset, len(block.bytes_.getbuffer())) for block in reader]


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_is_as_large_as_the_library_makes_it(codec, monkeypatch):
    monkeypatch.setattr(avro_blocks, "_CHUNK", 1000)
    texts = ("a" * size for size in (10, 300_000, 20, 500_000))
    content = avro_file(record("r", v="string"), *({"v": text} for text in texts), codec=codec, sync_interval=100)
    blocks = blocks_of(content)
    assert len(blocks) > 1
    for largest in sorted({length + more for _, length in blocks for more in (-1, 0, 1)}):
        larger = [place for place, length in blocks if length > largest]
        assert first_too_large(content, blocks[0][0], codec, largest) == (larger[0] if larger else None)


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_that_is_too_large_is_refused_before_it_is_read(codec, monkeypatch):
    content = avro_file(record("r", v="string"), {"v": "a" * 100_000}, codec=codec)
    assert len(list(json_records(content))) == 1
    monkeypatch.setattr(avro_blocks, "first_too_large", lambda *_: first_too_large(*_, largest=99_999))
    with pytest.raises(AvroError, match="a block holds more than 268,435,456 bytes"):
        list(json_records(content))


@pytest.mark.parametrize("cut", [1, 5, 20, 50])
def test_what_is_torn_is_left_to_the_reader(cut):
    content = avro_file(record("r", v="string"), {"v": "abc" * 20}, codec="deflate")
    place = blocks_of(content)[0][0]
    assert first_too_large(content[:-cut], place, "deflate", 5) in (None, place)


def test_records_without_bytes_are_not_as_many_as_a_block_says():
    content = avro_file(record("r"), {})
    head, block = content[:-18], content[-16:]
    many = head + b"\x80\x80\x80\x80\x80\x80\x01" + b"\x00" + block
    with pytest.raises(AvroError, match=r"a block of 2,199,023,255,552 records has fewer bytes"):
        next(json_records(many))


@pytest.mark.parametrize(
    "elements",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "record", "name": "e", "fields": []},
        {"type": "record", "name": "e", "fields": [{"name": "n", "type": "null"}]},
    ],
)
def test_an_array_of_elements_without_bytes_is_refused(elements):
    content = avro_file(record("r", v={"type": "array", "items": elements}), {"v": []})
    with pytest.raises(AvroError, match="an array of elements without bytes"):
        list(json_records(content))


@pytest.mark.parametrize(("codec", "pack"), [("bzip2", bz2.compress), ("xz", lzma.compress)])
def test_of_a_block_of_several_streams_all_count(codec, pack):
    data = pack(b"a" * 1000) * 3
    block = bytes([2, *varint(len(data) << 1)]) + data + b"s" * 16
    assert (first_too_large(block, 0, codec, 2999), first_too_large(block, 0, codec, 3000)) == (0, None)


@pytest.mark.parametrize(("streams", "found"), [(100, None), (101, 0)])
def test_a_block_of_very_many_streams_is_too_large_however_little_they_hold(streams, found):
    data = bz2.compress(b"") * streams
    block = bytes([2, *varint(len(data) << 1)]) + data + b"s" * 16
    assert first_too_large(block, 0, "bzip2", 10**6) == found


MARK = b"s" * 16


def packed(codec, count):
    """Return so many booleans as one block of a codec holds them, as its library writes it."""
    content = avro_file("boolean", *[True] * count, codec=codec, sync_marker=MARK)
    data = content[len(avro_file("boolean", codec=codec, sync_marker=MARK)) : -16]
    counts = [*varint(count << 1)]
    lengths = next(length for length in (1, 2) if len(data) - len(counts) - length < 64**length)
    return data[len(counts) + lengths :]


def records_of(codec, count, data):
    """Return how many records a file has with one block, of so many booleans by its own account."""
    head = avro_file("boolean", codec=codec, sync_marker=MARK)
    block = bytes([*varint(count << 1), *varint(len(data) << 1)]) + data + MARK
    return len(list(json_records(head + block)))


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_behind_the_stream_of_a_block_are_damage(codec):
    """What stood in them was lost in silence, where the block says as many records as the first stream has."""
    stream, other = packed(codec, 10), packed(codec, 30)
    assert (records_of(codec, 10, stream), records_of(codec, 30, other)) == (10, 30)
    damaged = bytearray(other)
    damaged[len(other) // 2] ^= 255
    for rest in (b"any bytes", b"\x00", bytes(4), other, bytes(damaged), other[:2]):
        with pytest.raises(AvroError, match=r"no whole Avro file|a block is damaged"):
            records_of(codec, 10, stream + rest)


@pytest.mark.parametrize("codec", ["bzip2", "xz", "zstandard"])
def test_two_streams_of_a_block_are_read_where_it_says_the_records_of_both(codec):
    assert records_of(codec, 40, packed(codec, 10) + packed(codec, 30)) == 40


def test_behind_deflate_stands_zlibs_checksum_or_nothing():
    """Avro's library for Python leaves three of its four bytes there, as fastavro does."""
    data = b"\x01" * 10
    whole = zlib.compress(data)[2:]
    assert packed("deflate", 10) == whole[:-1]
    for end in (0, -1, -4):
        assert records_of("deflate", 10, whole[: end or None]) == 10
    for end in range(len(whole)):
        if end - len(whole) not in (-1, -4):
            with pytest.raises(AvroError, match=r"behind the end of its compressed stream|ends in the middle"):
                records_of("deflate", 10, whole[:end])
    for place in range(len(whole) - 4, len(whole)):
        with pytest.raises(AvroError, match="a block has bytes behind the end of its compressed stream"):
            records_of("deflate", 10, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def varint(number):
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number


@pytest.mark.parametrize("size", [2**26, 2**31], ids=["of the largest preset", "that nobody needs"])
def test_a_dictionary_of_xz_is_not_as_large_as_a_header_asks_for(size: int):
    """A lack of memory would be no damage, and such a file never be passed by --skip-corrupt-files."""
    schema = record("r", v="string")
    content = avro_file(schema, {"v": "abc"}, codec="null")
    ((_, length),) = blocks_of(content)
    packed = lzma.compress(content[-16 - length : -16], filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**16}])
    # The size of the dictionary is one byte of the header, of which a checksum stands at its end.
    header = bytearray(packed[12:24])
    place = header.index(bytes([0x21, 0x01])) + 2
    header[place] = {2**26: 28, 2**31: 38}[size]
    header[8:12] = zlib.crc32(bytes(header[:8])).to_bytes(4, "little")
    packed = packed[:12] + bytes(header) + packed[24:]
    with_codec = avro_file(schema, {"v": "abc"}, codec="xz")
    ((begins, _),) = blocks_of(with_codec)
    block = bytes([2]) + _zigzag(len(packed)) + packed + with_codec[-16:]
    content = with_codec[:begins] + block
    if size == 2**26:
        assert list(json_records(content)) == ['{"v":"abc"}']
    else:
        with pytest.raises(AvroError, match="no whole Avro file: LZMAError: Memory usage limit exceeded"):
            list(json_records(content))


def _zigzag(number: int) -> bytes:
    number, found = number << 1, b""
    while True:
        number, low = number >> 7, number & 127
        if not number:
            return found + bytes([low])
        found += bytes([low | 128])
