"""Which files Spark leaves out by their names, links that lead nowhere or in a ring, names that Java does not see."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plain_spark import Session
from reconcile_jobs import landing_area
from reconcile_jobs.landing_area import (
    HiddenFiles,
    broken_links,
    escaped,
    files_of_batch,
    hidden,
    is_hidden,
    lies_open_below,
    local_tops,
)
from reconcile_jobs.process.errors import UsageError


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("a.json", False), ("a_b.json", False), ("a.b", False), ("_a.json", True), (".a.json", True), ("_", True),
        ("_a=1", False), (".a=1", True), ("_metadata.json", True), ("", False),
        ("a.json._COPYING_", True), ("a.json._copying_", False), ("a._COPYING_.json", False),
    ],
)  # fmt: skip
def test_what_spark_does_not_read(name: str, hidden: bool):
    assert is_hidden(name) == hidden


def test_a_path_is_met_by_its_pattern_alone():
    assert escaped(r"/a[1]/{b}/c*d?/e\f") == r"/a\[1\]/\{b\}/c\*d\?/e\\f"


POSIX = "ANSI_X3.4-1968"


@pytest.mark.parametrize("name", ["größe.json", "größe/a.json"])
def test_a_local_name_that_java_does_not_see_is_refused(tmp_path: Path, name: str):
    (tmp_path / "plain.json").touch()
    for encoding in (POSIX, "UTF-8"):
        assert broken_links([str(tmp_path)], encoding) == []
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert broken_links([str(tmp_path)], "UTF-8") == []
    with pytest.raises(UsageError, match=r"as ANSI_X3.4-1968 here, and cannot see .*/größe.*LC_ALL to C.UTF-8"):
        broken_links([str(tmp_path)], POSIX)


def test_links_that_lead_nowhere_are_found_in_every_directory_that_spark_lists(tmp_path: Path):
    landing, elsewhere = tmp_path / "landing", tmp_path / "elsewhere"
    for directory in (landing / "day=1", landing / "_hidden", elsewhere):
        directory.mkdir(parents=True)
    (landing / "a.json").touch()
    (landing / "b.json").symlink_to("a.json")
    (landing / "linked").symlink_to(elsewhere)
    # Twice the same directory is no loop.
    (landing / "linked again").symlink_to(elsewhere)
    for link in (
        landing / "c.json",
        landing / "day=1/d.json",
        elsewhere / "e.json",
        landing / "_hidden/f",
        landing / ".g",
    ):
        link.symlink_to("nothing")
    found = broken_links([str(landing)], "UTF-8")
    assert found == [f"{landing}/{name}" for name in ("c.json", "day=1/d.json", "linked again/e.json", "linked/e.json")]
    assert broken_links([str(landing / "a.json"), str(landing / "nowhere")], "UTF-8") == []


@pytest.mark.parametrize("target", ["landing", "landing/in", ".", "/"], ids=["itself", "parent", "above", "root"])
def test_a_link_to_a_directory_above_it_is_refused_before_it_is_listed(tmp_path: Path, target: str):
    (tmp_path / "landing/in").mkdir(parents=True)
    (tmp_path / "landing/in/again").symlink_to(tmp_path / target)
    with pytest.raises(
        UsageError, match=r"/landing/in/again is a link to /\S*, a directory above it.*never end.*--path"
    ):
        broken_links([str(tmp_path / "landing")], "UTF-8")


def test_two_directories_that_link_to_each_other_are_refused(tmp_path: Path):
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / "other").symlink_to(tmp_path / other)
    with pytest.raises(UsageError, match=r"/a/other/other is a link to .*/a, a directory above it"):
        broken_links([str(tmp_path / "a")], "UTF-8")


def test_a_directory_whose_name_begins_as_another_one_is_not_above_it(tmp_path: Path):
    for name in ("land", "landing"):
        (tmp_path / name).mkdir()
    (tmp_path / "landing/other").symlink_to(tmp_path / "land")
    assert broken_links([str(tmp_path / "landing")], "UTF-8") == []


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ("file:/a/land/ck", True), ("file:///a/land/b/ck", True), ("file:/a/land", True), ("file:/a/land/d=1/ck", True),
        ("file:/a/land/_ck", False), ("file:/a/land/.ck/x", False), ("file:/a/land/_x/ck", False),
        ("file:/a/landing/ck", False), ("file:/a", False), ("s3://a/land/ck", False),
    ],
)  # fmt: skip
def test_a_checkpoint_in_the_landing_area_would_be_appended_itself(path: str, is_open: bool):
    for directory in ("file:/a/land", "file:/a/land/", "file:///a/land"):
        assert lies_open_below(path, directory) == is_open


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A checkpoint after eleven micro-batches, whose tenth list of files has those of all before it, as Spark does."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "sources" / "0").mkdir(parents=True)
    entries = [
        json.dumps({"path": f"file:///landing/of%20{at}.json", "timestamp": 1, "batchId": at}) for at in range(12)
    ]
    # The eleventh micro-batch reads two lists, as after a run that was killed before it had made its micro-batch.
    ends = [*range(10), 11]
    for number, end in enumerate(ends):
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs": 0}}\n{{"logOffset": {end}}}')
    for number, entry in enumerate(entries):
        of = tmp_path / "sources" / "0" / (f"{number}.compact" if number == 9 else str(number))
        of.write_text("\n".join(["v1", *(entries[:10] if number == 9 else [entry])]))
    return str(tmp_path)


@pytest.mark.parametrize(("epoch", "numbers"), [(0, [0]), (8, [8]), (9, [9]), (10, [10, 11])])
def test_a_micro_batch_has_its_own_files_though_spark_keeps_older_ones_in_its_list(
    checkpoint: str, epoch: int, numbers: list[int]
):
    spark: Any = Session()
    assert files_of_batch(spark, checkpoint, epoch) == [f"file:/landing/of {number}.json" for number in numbers]


class Find:
    """Hadoop's own find, which writes these names, each with an end of its own, to the stream that it is given."""

    def __init__(self, *names: str) -> None:
        self.names, self.streams, self.words = names, dict[str, Any](), list[str]()

    def setConf(self, configuration: Any) -> None: ...

    def getClass(self) -> Any:
        return SimpleNamespace(
            getField=lambda name: SimpleNamespace(set=lambda of, to: self.streams.update({name: to}))
        )

    def run(self, words: list[str]) -> None:
        self.words = list(words)
        self.streams["out"].text += "".join(f"{name}\0" for name in self.names)
        self.streams["err"].text += "file:/l/.what find says of a directory that it may not list\0"


class Stream:
    def __init__(self) -> None:
        self.text = ""

    def toString(self, encoding: str) -> str:
        assert encoding == "UTF-8"
        return self.text


def java(find: Find) -> Any:
    """A session whose JVM has as much as a search for hidden files asks of it."""
    io = SimpleNamespace(ByteArrayOutputStream=Stream, PrintStream=lambda stream, flushes, encoding: stream)
    shell = SimpleNamespace(find=SimpleNamespace(Find=lambda: find))
    hadoop = SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(shell=shell)))
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=hadoop), java=SimpleNamespace(io=io, lang=SimpleNamespace(String=None))
    )
    gateway = SimpleNamespace(new_array=lambda kind, count: [None] * count)
    return SimpleNamespace(
        _jvm=jvm, _sc=SimpleNamespace(_gateway=gateway), _jsc=SimpleNamespace(hadoopConfiguration=lambda: None)
    )


def test_of_what_is_hidden_the_uppermost_is_named_and_what_spark_lists_is_not():
    find = Find(
        "file:/l", "file:/l/_b", "file:/l/_b/_c", "file:/l/_b/d/.e", "file:/l/_bb", "file:/l/_metadata",
        "file:/l/_common_metadata", "file:/l/_day=1", "file:/l/x/.y", "file:/l/a._COPYING_", "file:/l/größe/_z",
    )  # fmt: skip
    assert hidden(java(find), "file:/l") == [
        "file:/l/_b", "file:/l/_bb", "file:/l/a._COPYING_", "file:/l/größe/_z", "file:/l/x/.y",
    ]  # fmt: skip
    assert find.words == ["file:/l", "-name", "{.*,_*,*._COPYING_}", "-print0"]
    assert hidden(java(Find()), "file:/l") == []


def test_what_a_path_names_itself_is_read_though_its_name_would_hide_it():
    assert hidden(java(Find("file:/l/_in", "file:/l/_in/_a")), "file:/l/_in") == ["file:/l/_in/_a"]
    assert hidden(java(Find("file:/l/_1", "file:/l/_2/_a")), "file:/l/_*") == ["file:/l/_2/_a"]


def test_a_search_for_hidden_files_runs_beside_the_job_and_only_once_at_a_time(monkeypatch: pytest.MonkeyPatch):
    """A job that comes back every second would otherwise list a large landing area many times at once."""
    go_on, searched = threading.Event(), list[str]()

    def search(spark: Any, pattern: str) -> list[str]:
        searched.append(pattern)
        go_on.wait(60)
        return [f"{pattern}/_a"]

    spark: Any = None
    monkeypatch.setattr(landing_area, "hidden", search)
    monkeypatch.setattr(HiddenFiles, "_latest", None)
    first = HiddenFiles(spark, "file:/l")
    assert first.found(0) is None, "not known yet"
    second = HiddenFiles(spark, "file:/l")
    go_on.set()
    assert first.found(60) == ["file:/l/_a"]
    assert second.found(60) is None and searched == ["file:/l"]
    assert HiddenFiles(spark, "file:/m").found(60) == ["file:/m/_a"], "the one before has ended"


def test_a_search_that_fails_leaves_it_open_what_is_hidden(monkeypatch: pytest.MonkeyPatch):
    """The run has the same failure where it lists the files, and says so; a trace of this one helps nobody."""
    traces: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", traces.append)
    monkeypatch.setattr(landing_area, "hidden", lambda spark, pattern: 1 / 0)
    monkeypatch.setattr(HiddenFiles, "_latest", None)
    spark: Any = None
    assert HiddenFiles(spark, "file:/l").found(60) is None and not traces


def test_links_are_looked_for_in_local_directories_alone(monkeypatch: pytest.MonkeyPatch):
    def status(path: str) -> Any:
        return SimpleNamespace(getPath=lambda: SimpleNamespace(toString=lambda: path))

    found = [status("file:/l/day=1"), status("s3a://bucket/l"), status("hdfs://n/file:/l")]
    at = SimpleNamespace(getFileSystem=lambda configuration: SimpleNamespace(globStatus=lambda path: found))
    monkeypatch.setattr(landing_area, "hadoop_path", lambda spark, pattern: at)
    spark: Any = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    assert local_tops(spark, "anything") == ["/l/day=1"]
    found = None  # type: ignore[assignment]
    assert local_tops(spark, "nothing") == []
