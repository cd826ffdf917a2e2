"""Which files Spark leaves out by their names, links that lead nowhere or in a ring, names that Java does not see."""

import json
from pathlib import Path
from typing import Any

import pytest
from plain_spark import Session
from reconcile_jobs.landing_area import broken_links, escaped, files_of_batch, is_hidden, lies_open_below
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
