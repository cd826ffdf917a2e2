"""What a file of Datastream is by its name, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from reconcile_jobs import datastream_files
from reconcile_jobs.datastream import Totals, _Run
from reconcile_jobs.datastream_files import _NEVER_EMPTY, Files, changed_since, format_of_file, of_other_codecs
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.staging import Appended


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


@pytest.mark.parametrize("name", ["a.json", "a.jsonl.gz", "a.avro"])
def test_a_file_of_any_kind_that_was_written_to_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch):
    """Spark does not read it again, so what was added would be missing from staging."""
    paths = [f"file:/landing/{prefix}{name}" for prefix in ("same-", "longer-", "later-", "filled-", "gone-")]
    same, longer, later, filled, gone = paths
    now = {same: (7, 1), longer: (8, 1), later: (7, 2), filled: (7, 1), gone: None}
    listed = {same: (7, 1), longer: (7, 1), later: (7, 1), gone: (7, 1)}  # Spark lists no file without a byte
    files = Files(avro=paths) if name.endswith(".avro") else Files(json=paths)
    monkeypatch.setattr(datastream_files, "_present", lambda spark, files: now)
    assert changed_since(None, files, listed) == [longer, later, filled]  # type: ignore[arg-type]


def test_notes_of_files_that_are_set_aside_are_no_records():
    """Staging has a row for each of them, which a run does not count as a record, nor as one that it cannot read.

    Nor is a note in the place of a record of an erased key one of the records.
    """
    run = _Run.__new__(_Run)
    run.job, run.totals, run.say = SimpleNamespace(staging="lake.changes"), Totals(), lambda sentence: None
    files = Files(json=["a.json"], avro=["b.avro"], corrupt={"c.avro": "torn"}, ignored={"d.txt": "its name"})
    run._count(files, Appended(4, 13, 3, erased=1))
    assert run.totals == Totals(
        files=2,
        records=10,
        unreadable=1,
        erased_records=1,
        corrupt_files=1,
        ignored_files=1,
        first_batch=4,
        last_batch=4,
    )
