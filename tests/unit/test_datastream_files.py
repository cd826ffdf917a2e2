"""What a file of Datastream is by its name, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reconcile_jobs.datastream import _Run
from reconcile_jobs.datastream_files import _NEVER_EMPTY, Files, format_of_file, of_other_codecs
from reconcile_jobs.process.errors import DataError


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


def test_what_hadoop_alone_would_decompress_is_not_read():
    """Of a `.deflate` file of 600 kB it made a line of 600 MB, which ended the job."""
    files = [f"file:/landing/{name}" for name in ("a", "a.json", "a.gz", "a.bz2", "deflate", "x.zst/a.json")]
    assert not of_other_codecs(files)
    packed = [f"file:/landing/a.json.{end}" for end in ("deflate", "zst", "snappy", "lz4")]
    assert list(of_other_codecs([*files, *packed])) == packed
