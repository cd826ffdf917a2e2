"""What a file of Datastream is by its name, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs import datastream_files
from reconcile_jobs.datastream import Totals, _Run
from reconcile_jobs.datastream_files import _NEVER_EMPTY, Files, changed_since, format_of_file, of_other_codecs
from reconcile_jobs.long_records import LongRecord
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


def saying(said: list[str], **of_run: Any) -> _Run:
    """A run over a session of two stages of three tasks each, which says what it says to a list."""
    run = _Run.__new__(_Run)
    run.job = SimpleNamespace(staging="lake.changes", longest_record=2**20)  # type: ignore[assignment]
    run.totals, run.say, run.progress = Totals(files=3, records=12_345), said.append, said.append
    stage = SimpleNamespace(numTasks=3, numCompletedTasks=1)
    stages = {7: stage, 9: SimpleNamespace(numTasks=3, numCompletedTasks=3), 11: None}  # of one nothing is known
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(stages), getStageInfo=stages.get)
    run.spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))  # type: ignore[assignment]
    run.clock, run.started, run.reading = SimpleNamespace(seconds=lambda: 14.0), 10.0, 0  # type: ignore[assignment]
    for name, value in of_run.items():
        setattr(run, name, value)
    return run


def test_while_files_are_read_a_run_tells_how_many_and_how_far_it_is():
    said: list[str] = []
    saying(said).show()
    saying(said, reading=5).show()
    so_far = "3 files, 12,345 records, 3,086/s"
    assert said == [so_far, f"{so_far}; reading 5 files, 66 %"]
    for stages, more in (([], ""), ([SimpleNamespace(numTasks=2, numCompletedTasks=0)], ", 0 %")):
        run = saying(said, reading=5)
        tracker = SimpleNamespace(getActiveStageIds=lambda of=stages: range(len(of)), getStageInfo=stages.__getitem__)
        of_tracker = SimpleNamespace(statusTracker=lambda of=tracker: of)
        run.spark = SimpleNamespace(sparkContext=of_tracker)  # type: ignore[assignment]
        run.show()
        assert said[-1] == f"{so_far}; reading 5 files{more}"


def test_of_the_records_that_are_too_long_the_first_is_named():
    """Record 9 comes before record 10, and the files in the order of their names."""
    said: list[str] = []
    run = saying(said)
    long = LongRecord("byte 7")
    long.add(b"x" * 2_000_000)
    files = Files(json=["b.json"], long={"b.json": [long]})
    run._name_long(files, {("a.avro", "record 10", 3_000_000), ("a.avro", "record 9", 1_048_577)})
    assert said == [
        "too long for staging: the record of 1,048,577 bytes at record 9 of a.avro, and 2 more; lake.changes has a "
        "note in its place, which models put into quarantine. The limit is 1,048,576 bytes; raise it with "
        "--longest-record"
    ]
    assert run.totals.long_records == 3
    run._name_long(Files(json=["b.json"]), set())
    assert len(said) == 1 and run.totals.long_records == 3


def test_what_is_hidden_is_counted_once_a_run_and_the_first_is_named():
    said: list[str] = []
    run = saying(said)
    run._name_hidden(None)
    assert run.totals.hidden_files is None, "the search took longer than the run"
    run._name_hidden(["/l/.a", "/l/_b", "/l/_c"])
    run._name_hidden(["/l/.a", "/l/_b", "/l/_c", "/l/_d"])
    assert run.totals.hidden_files == 3
    assert said == [
        "not read, because names that begin with . or _, or end in ._COPYING_, are hidden: /l/.a, and 2 more"
    ]
    run = saying(said)
    run._name_hidden([])
    assert run.totals.hidden_files == 0 and len(said) == 1
    saying(said)._name_hidden(["/l/.a", "/l/_b"])
    saying(said)._name_hidden(["/l/.a"])
    assert [sentence.partition("hidden: ")[2] for sentence in said[1:]] == ["/l/.a, and 1 more", "/l/.a"]
