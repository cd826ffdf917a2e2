"""Lines of any length are read in bounded memory, and those that are too long are told by place, length and digest."""

import bz2
import gzip
import hashlib
import random

import pytest
from reconcile_jobs import json_lines
from reconcile_jobs.json_lines import PackedError, long_lines, packed_lines
from reconcile_jobs.long_records import LongRecord


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(json_lines, "_CHUNK", 7)
    monkeypatch.setattr(json_lines, "_FIRST_LOOK", 3)


def content_of(seed):
    chance = random.Random(seed)
    lines = [bytes(chance.choices(b'{"a1} ', k=chance.choice([0, 1, 5, 19, 20, 21, 60]))) for _ in range(30)]
    return b"\n".join(lines) + chance.choice([b"", b"\n"])


def expected(content, longest):
    """What is too long, from the whole content: a line's bytes are counted with its line feed."""
    place, lines, long = 0, [], []
    for line in content.splitlines(keepends=True):
        record = line.rstrip(b"\n")
        if len(line) > longest:
            long.append((f"byte {place}", len(record), hashlib.sha256(record).hexdigest()))
            lines.append(long[-1])
        else:
            lines.append(record)
        place += len(line)
    return lines, long


def told(long):
    return (long.place, long.bytes, long._digest.hexdigest())


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.bz2"])
def test_compressed_lines_are_those_of_the_file_but_for_long_ones(name):
    pack = gzip.compress if name.endswith("gz") else bz2.compress
    for seed in range(200):
        content = content_of(seed)
        lines = [line for some in packed_lines(pack(content), name, 20) for line in some]
        assert [told(line) if isinstance(line, LongRecord) else line for line in lines] == expected(content, 20)[0]


def test_long_lines_of_a_plain_file_are_found_without_reading_it_whole():
    for seed in range(300):
        content = content_of(seed)
        found = long_lines(lambda place, count, content=content: content[place : place + count], len(content), 20)
        assert [told(long) for long in found] == expected(content, 20)[1], seed


def test_of_short_lines_a_file_is_hardly_read(monkeypatch):
    monkeypatch.undo()
    read = []
    content = b'{"a":1}\n' * 2**21

    def of_file(place, count):
        read.append(count)
        return content[place : place + count]

    assert list(long_lines(of_file, len(content), 2**20)) == []
    assert sum(read) < len(content) / 4


def test_members_of_a_gzip_follow_one_another_and_a_byte_order_mark_is_no_record():
    lines = [b'{"a":1}', b'{"b":2}']
    content = gzip.compress(b'\xef\xbb\xbf{"a":1}\n{"b"') + gzip.compress(b":2}")
    assert [line for some in packed_lines(content, "a.gz", 100) for line in some] == lines
    # Alone in its stream, it is not the end.
    content = bz2.compress(b"\xef\xbb\xbf") + bz2.compress(b"\n".join(lines))
    assert [line for some in packed_lines(content, "a.bz2", 100) for line in some] == lines


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.bz2", bz2.compress)])
def test_a_byte_order_mark_that_streams_share_is_no_record(name, pack):
    mark, lines = b"\xef\xbb\xbf", [b'{"a":1}', b"2"]
    for content, found in ((mark + b"\n".join(lines), lines), (mark, []), (mark[:2], [mark[:2]]), (b"2", [b"2"])):
        for first in range(4):
            for second in range(first, 4):
                parts = (content[:first], content[first:second], content[second:])
                packed = b"".join(map(pack, parts))
                assert [line for some in packed_lines(packed, name, 100) for line in some] == found


def test_streams_of_bzip2_follow_one_another():
    lines = [b'{"a":%d}' % number for number in range(300)]
    content = b"".join(bz2.compress(line + b"\n") for line in lines)
    assert [line for some in packed_lines(content, "a.bz2", 100) for line in some] == lines


def test_behind_a_byte_order_mark_a_line_is_as_long_as_it_is_without():
    for length, is_long in ((19, False), (20, True)):
        content = b"\xef\xbb\xbf" + b"x" * length + b"\n" + b"y" * 40
        found = list(long_lines(lambda place, count, content=content: content[place : place + count], len(content), 20))
        assert [long.place for long in found] == (["byte 3"] if is_long else []) + [f"byte {length + 4}"]


def test_a_file_that_is_shorter_by_now_has_an_end():
    for left in (b"", b"x" * 30, b"x" * 5 + b"\n"):
        list(long_lines(lambda place, count, left=left: left[place : place + count], 10_000, 20))


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (gzip.compress(b"{}\n" * 100, mtime=0)[:-12], "a.gz", "it ends in the middle"),
        (bz2.compress(b"{}\n" * 100)[:-12], "a.bz2", "it ends in the middle"),
        (b"{}\n{}\n", "a.gz", "its content does not have the format that its name shows, or is damaged"),
        (b"{}\n{}\n", "a.bz2", "its content does not have the format that its name shows, or is damaged"),
        (bz2.compress(b"{}\n") + b"X" + bz2.compress(b"{}\n")[1:], "a.bz2", "its content does not have the format"),
        (bz2.compress(b"{}\n") + b"more", "a.bz2", "its content does not have the format"),
        (gzip.compress(b"{}\n", mtime=0) + b"more", "a.gz", "its content does not have the format"),
        (gzip.compress(b"{}\n" * 100, mtime=0)[:-8] + b"\0" * 8, "a.gz", "its content does not have the format"),
    ],
)
def test_a_torn_file_is_refused(content, name, sentence):
    with pytest.raises(PackedError, match=sentence):
        list(packed_lines(content, name, 100))
