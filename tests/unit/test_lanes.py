"""The lanes: their versions lie in the ranges that users install, and a lane that passed gets its row."""

from __future__ import annotations

import tomllib
from pathlib import Path

import lanes
import matrix
import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((lanes.ROOT / "pyproject.toml").read_text())["project"]
MAIN = "lane-3.12-spark-4.0"


def test_a_name_is_a_lane():
    assert len(lanes.LANES) == 6
    assert {*matrix.LANES} == {"lanes", *lanes.LANES}


@pytest.mark.parametrize("lane", lanes.LANES.values(), ids=list(lanes.LANES))
def test_the_versions_of_a_lane_are_in_the_ranges_of_the_package(lane: lanes.Lane):
    extras = PROJECT["optional-dependencies"]
    ranges = {r.name: r for r in map(Requirement, [*extras["spark"], *extras["dbt"]])}
    for name, version in {"pyspark": lane.pyspark, "dbt-core": lane.dbt_core, "dbt-spark": lane.dbt_spark}.items():
        assert ranges[name].specifier.contains(version), name
    assert Requirement(f"python {PROJECT['requires-python']}").specifier.contains(f"{lane.python}.0")
    spark = lane.pyspark.rpartition(".")[0]
    rows = [line.split()[:2] for line in (lanes.ROOT / "conf" / "coordinates").read_text().splitlines()]
    assert [spark, lane.file_format] in rows


def test_no_range_is_without_a_lane():
    of_lanes = [lane for lane in lanes.LANES.values() if lane.file_format == "delta"]
    sparks = {lane.pyspark.rpartition(".")[0] for lane in of_lanes}
    assert sparks == {"4.0", "4.1", "4.2"}
    assert {lane.python for lane in of_lanes} == {"3.11", "3.12", "3.13"}


def test_everything_that_a_lane_does_not_choose_is_as_locked():
    wanted, locked = lanes.requirements(lanes.LANES[MAIN])
    assert "pyspark==4.0.1" in wanted and [one for one in wanted if one.startswith("pytest>=")]
    assert not [one for one in wanted if one.startswith(("ruff", "sqlfluff", "mypy"))], "these look at the code alone"
    assert [one for one in locked if one.startswith("fastavro==")], "an extra is no part of a constraint"
    assert not [one for one in locked if one.split("==")[0] in lanes.CHOSEN]


def test_a_python_that_is_not_there_is_one_sentence():
    with pytest.raises(lanes.Failed, match=r"Python 3\.99 is not on PATH"):
        lanes.python_of("3.99")


def test_a_lane_that_passed_gets_its_row_in_place_of_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "docs" / "versions.md"
    page.parent.mkdir()
    head = "| lane | Python |\n" + lanes._RULE + "\n"
    page.write_text(f"# Versions\n\n{head}\nMore.\n")
    monkeypatch.setattr(lanes, "RESULTS", page)
    second = "lane-3.13-spark-4.2"
    for name, result in ((second, "render 1 passed"), (MAIN, "render 2 passed"), (MAIN, "render 3 passed")):
        lanes.note(lanes.LANES[name], ["3.12.1", "4.0.1", "delta", "1.11", "1.11", "17"], result, "abc1234")
    text = page.read_text()
    assert text.startswith(f"# Versions\n\n{head}| `{MAIN}` | 3.12.1 |") and text.endswith("|\n\nMore.\n")
    rows = lanes.last_results()
    assert {name: row["result"] for name, row in rows.items()} == {MAIN: "render 3 passed", second: "render 1 passed"}
    assert text.count(MAIN) == 1


def test_steps_that_passed_on_another_commit_do_not_count(tmp_path: Path):
    file = tmp_path / "lane.json"
    lanes.Passed(file, "a").add("render", "1 passed")
    lanes.Passed(file, "b").add("cluster", "2 passed")
    lanes.Passed(file, "b").add("lifecycle", "3 passed")
    assert lanes.Passed(file, "b").steps() == {"cluster": "2 passed", "lifecycle": "3 passed"}
    assert lanes.Passed(file, "a").steps() == {}
