"""The records of Datastream's files, as an executor reads them, without Spark."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
from collections import Counter

import pytest
from avro_files import avro_file, record
from reconcile_jobs.avro_json import AvroError
from reconcile_jobs.datastream_records import (
    _ARROW_ROWS,
    _avro_rows,
    _packed_rows,
    _why_unreadable,
    object_of_path,
)
from reconcile_jobs.long_records import LONGEST
from reconcile_jobs.process.errors import Fault, UsageError

PATH = "s3://bucket/incorrect.gz/zip.avro"
LANDED = "gs://bucket/shop/SHOP_ORDERS/2026/05/01/09/00/a%20b_0"
EVENT = {"uuid": "7", "object": "SHOP_ORDERS", "source_metadata": {"scn": 12, "is_deleted": False}}


def avro(*numbers: int) -> bytes:
    return avro_file(record("r", n="int"), *({"n": number} for number in numbers))


class Seen(set):
    """An accumulator, without Spark."""

    def add(self, some):
        self |= some


def rows_of(read, content, origin, longest):
    seen = Seen()
    rows = [row for batch in read(content, origin, longest, seen) for row in batch.to_pylist()]
    assert {row["origin"] for row in rows} <= {origin}
    return [row["record"] for row in rows], seen


@pytest.mark.parametrize("pack", [gzip, bz2])
def test_a_compressed_line_that_is_too_long_is_a_note_of_itself(pack):
    long = json.dumps(EVENT | {"payload": {"v": "x" * 300_000}})
    content = f'{{"object":"A"}}\n{long}\n{{"object":"B"}}'.encode()
    origin = f"{LANDED}.{'gz' if pack is gzip else 'bz2'}"
    (first, note, last), seen = rows_of(_packed_rows, pack.compress(content), origin, 1000)
    assert (first, last) == ('{"object":"A"}', '{"object":"B"}')
    digest = hashlib.sha256(long.encode()).hexdigest()
    said = {"bytes": len(long), "sha256": digest, "place": "byte 15"}
    assert json.loads(note) == {"long_record": said, **EVENT}
    assert seen == {(origin, "byte 15", len(long))}


def test_a_record_of_avro_that_is_too_long_is_a_note_of_itself():
    schema = record("r", object="string", n="int", v="string")
    content = avro_file(schema, *({"object": "A", "n": n, "v": "x" * (n * 1000)} for n in (0, 2, 1)))
    (first, note, last), seen = rows_of(_avro_rows, content, LANDED, 1500)
    assert (json.loads(first)["n"], json.loads(last)["n"]) == (0, 1)
    assert json.loads(note)["long_record"]["place"] == "record 2"
    assert {name: json.loads(note)[name] for name in ("object", "n")} == {"object": "A", "n": 2}
    assert seen == {(LANDED, "record 2", json.loads(note)["long_record"]["bytes"])}


def test_of_a_long_line_that_names_no_object_the_path_does():
    content = gzip.compress(b'{"payload":"' + b"x" * 5000 + b'"}\n')
    (note,), _ = rows_of(_packed_rows, content, f"{LANDED}.gz", 1000)
    assert json.loads(note)["object"] == "SHOP_ORDERS"
    (note,), _ = rows_of(_packed_rows, content, "file:/landing/a.gz", 1000)
    assert "object" not in json.loads(note)


@pytest.mark.parametrize(
    ("path", "object_"),
    [
        (LANDED, "SHOP_ORDERS"),
        ("file:/l/S%20T/2026/05/01/09/00/a.avro", "S T"),
        ("file:/l/2026/05/01/09/00/a.avro", "l"),
        ("file:/l/SHOP/2026/05/01/a.avro", None),
        ("file:/l/a.avro", None),
    ],
)
def test_the_object_of_a_path_is_before_its_minute(path, object_):
    assert object_of_path(path) == object_


@pytest.mark.parametrize("count", [0, 1, _ARROW_ROWS - 1, _ARROW_ROWS, _ARROW_ROWS + 1, 3 * _ARROW_ROWS + 7])
def test_each_record_of_a_file_of_any_length_is_given_once(count: int):
    found: Counter[tuple[str, int]] = Counter()
    for rows in _avro_rows(avro(*range(count)), "one", LONGEST, Seen()):
        assert 0 < rows.num_rows <= _ARROW_ROWS
        found.update((row["origin"], json.loads(row["record"])["n"]) for row in rows.to_pylist())
    assert found == Counter(("one", number) for number in range(count))


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (AvroError("no whole Avro file: it ends in the middle (after byte 7)"), "no whole Avro file: it ends in"),
        (RuntimeError("java.io.EOFException: Unexpected end of ZLIB input stream"), "it ends in the middle"),
        (
            RuntimeError("java.util.zip.ZipException: invalid stored block lengths"),
            ("does not have the format that its name shows"),
        ),
        (RuntimeError("java.io.IOException: not a gzip file"), "does not have the format that its name shows"),
        (RuntimeError("java.io.IOException: invalid block type"), "does not have the format"),
        (RuntimeError("java.io.IOException: invalid distance too far back"), "does not have the format"),
        (RuntimeError("java.io.IOException: invalid code lengths set"), "does not have the format"),
        (RuntimeError("java.io.IOException: invalid stored block lengths"), "does not have the format"),
        (RuntimeError("java.util.zip.DataFormatException: x"), "does not have the format"),
        (RuntimeError("java.io.IOException: incorrect data check"), "does not have the format"),
        (RuntimeError("java.io.IOException: gzip stream CRC failure"), "does not have the format"),
        (RuntimeError("java.io.IOException: Stream is not BZip2 formatted"), "does not have the format"),
        (RuntimeError("java.io.IOException: bad block header"), "does not have the format"),
        (RuntimeError("java.io.IOException: Too many bytes before delimiter: 2147483648"), "a line of more than 2 GiB"),
        (RuntimeError("java.io.IOException: Too many bytes before newline: 2147483648"), "a line of more than 2 GiB"),
        (RuntimeError("[FAILED_READ_FILE.FILE_LENGTH_EXCEEDS] x"), "cannot be read in parts"),
        (RuntimeError("The length 2147483648 exceeds the max length allowed"), "cannot be read in parts"),
        (RuntimeError("[FAILED_READ_FILE.FILE_NOT_EXIST] x"), "it no longer exists"),
        (RuntimeError("[PATH_NOT_FOUND] Path: x"), "it no longer exists"),
        (RuntimeError("java.io.FileNotFoundException: File does not exist"), "it no longer exists"),
    ],
)
def test_a_torn_file_is_told_by_what_reading_it_says(problem: Exception, why: str):
    assert why in _why_unreadable(problem, PATH)


@pytest.mark.parametrize("name", ["OutOfMemoryError", "Permission denied", "Python worker exited", "AccessDenied"])
def test_a_torn_file_is_one_whatever_its_schema_names(name: str):
    """Such a file would be tried again for ever, and --skip-corrupt-files would not pass it."""
    problem = OSError(f"PythonException: {AvroError.__name__}: no whole Avro file: KeyError: '{name}' (after byte 0)")
    assert name in _why_unreadable(problem, PATH)


@pytest.mark.parametrize(
    "said", ["connect timed out", "403 Forbidden", "No space left on device", f"{PATH}: Input/output error"]
)
def test_what_a_retry_may_cure_is_no_torn_file(said: str):
    """Its name has words that others know a torn file by."""
    with pytest.raises(Fault) as fault:
        _why_unreadable(OSError(said), PATH)
    assert str(fault.value).startswith(f"The file {PATH} could not be read. ")


def test_a_process_that_was_killed_while_it_read_does_not_make_its_file_a_torn_one():
    """With --skip-corrupt-files a whole file would be set aside."""
    problem = OSError("SparkException: Python worker exited unexpectedly (crashed)")
    problem.__cause__ = EOFError("java.io.EOFException")
    with pytest.raises(Fault, match=r"was ended before it had read it.*run the same command again"):
        _why_unreadable(problem, PATH)


def test_a_file_that_may_not_be_read_is_said_to_be_so_and_is_not_set_aside():
    for said in (f"java.io.FileNotFoundException: {PATH} (Permission denied)", "AccessDeniedException: 403 Forbidden"):
        with pytest.raises(
            UsageError, match=r"cannot be read, because the job has no permission.*give the job's user the right"
        ):
            _why_unreadable(OSError(said), PATH)


@pytest.mark.parametrize("said", ["java.lang.OutOfMemoryError: Java heap space", "PythonException: MemoryError"])
def test_memory_that_ends_is_said_to_be_so_and_sets_no_file_aside(said: str):
    with pytest.raises(UsageError, match=r"^There is not enough memory to read the file .*--driver-memory more"):
        _why_unreadable(OSError(said), PATH)
