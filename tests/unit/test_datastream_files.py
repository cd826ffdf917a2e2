"""Files of Datastream, as an executor and the driver see them, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pytest
from avro_files import avro_file, record
from reconcile_jobs.avro_json import AvroError
from reconcile_jobs.datastream import _Run
from reconcile_jobs.datastream_files import (
    _ARROW_ROWS,
    _NEVER_EMPTY,
    Files,
    _avro_rows,
    _why_unreadable,
    format_of_file,
)
from reconcile_jobs.errors import DataError, Fault, UsageError

PATH = "s3://bucket/incorrect.gz/zip.avro"


def avro(*numbers: int) -> bytes:
    return avro_file(record("r", n="int"), *({"n": number} for number in numbers))


@pytest.mark.parametrize("count", [0, 1, _ARROW_ROWS - 1, _ARROW_ROWS, _ARROW_ROWS + 1, 3 * _ARROW_ROWS + 7])
def test_each_record_of_a_file_of_any_length_is_given_once(count: int):
    contents = [avro(*range(count)), avro(-1)]
    batch = pa.RecordBatch.from_pydict({"content": contents, "origin": ["one", "two"]})
    found: Counter[tuple[str, int]] = Counter()
    for rows in _avro_rows([batch]):
        assert 0 < rows.num_rows <= _ARROW_ROWS
        found.update((row["origin"], json.loads(row["record"])["n"]) for row in rows.to_pylist())
    assert found == Counter([*(("one", number) for number in range(count)), ("two", -1)])


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (AvroError("no whole Avro file: it ends in the middle (after byte 7)"), "no whole Avro file: it ends in"),
        (RuntimeError("java.io.EOFException: Unexpected end of ZLIB input stream"), "it ends in the middle"),
        (RuntimeError("java.util.zip.ZipException: invalid stored block lengths"), "not what its name says"),
        (RuntimeError("java.io.IOException: not a gzip file"), "not what its name says"),
        (RuntimeError("[FAILED_READ_FILE.FILE_NOT_EXIST] x"), "it was there, and has vanished"),
    ],
)
def test_a_torn_file_is_told_by_what_reading_it_says(problem: Exception, why: str):
    assert why in _why_unreadable(problem, PATH)


@pytest.mark.parametrize(
    "said", ["connect timed out", "403 Forbidden", "No space left on device", f"{PATH}: Input/output error"]
)
def test_what_a_retry_may_cure_is_no_torn_file(said: str):
    """Its name has words that others know a torn file by."""
    with pytest.raises(Fault) as fault:
        _why_unreadable(OSError(said), PATH)
    assert str(fault.value).startswith(f"The file {PATH} could not be read. ")


def test_a_file_that_may_not_be_read_is_said_to_be_so_and_is_not_set_aside():
    for said in (f"java.io.FileNotFoundException: {PATH} (Permission denied)", "AccessDeniedException: 403 Forbidden"):
        with pytest.raises(UsageError, match=r"may not be read.*give the job's user the right"):
            _why_unreadable(OSError(said), PATH)


@pytest.mark.parametrize(
    ("name", "may_be_empty"),
    [("a.json", True), ("a.jsonl", True), ("a.json.gz", False), ("a.jsonl.bz2", False), ("a.avro", False)],
)
def test_of_what_kind_a_file_without_a_byte_was_cut_off(name: str, may_be_empty: bool):
    assert (_NEVER_EMPTY.search(f"file:/landing/{name}") is None) == may_be_empty


def test_a_file_that_is_ignored_by_its_name_is_no_torn_file():
    for skip in (False, True):
        run = _Run.__new__(_Run)
        run.job = SimpleNamespace(skip_corrupt_files=skip)
        files = Files(json=["a.json"], ignored={"notes.txt.gz": "its name"})
        run._set_aside(files, {"notes.txt.gz": "it is empty"})
        assert (files.corrupt, files.json, list(files.ignored)) == ({}, ["a.json"], ["notes.txt.gz"])
    run._set_aside(files, {"a.json": "it is empty", "notes.txt.gz": "it is empty"})
    assert (files.corrupt, files.json) == ({"a.json": "it is empty"}, [])
    run.job.skip_corrupt_files = False
    with pytest.raises(DataError, match=r"b\.json"):
        run._set_aside(Files(json=["b.json"]), {"b.json": "it is empty"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((f"a.{end}{more}", "json") for end in ("json", "jsonl", "ndjson") for more in ("", ".gz", ".bz2")),
        ("a.avro", "avro"), ("a.avro.gz", None), ("a.json.zip", None), ("ajson", None), ("json", None),
    ],
)  # fmt: skip
def test_the_end_of_a_name_says_how_a_file_is_read(name: str, kind: str | None):
    assert format_of_file(f"file:/landing/{name}", "auto") == kind
    assert format_of_file(f"file:/landing/{name}", "avro") == "avro"
