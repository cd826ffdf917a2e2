"""Data Docs are shown without internet, whatever was delivered, and a page that failed looks like none that passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from reconcile_jobs import data_docs
from reconcile_jobs.data_docs import Run

HOSTILE = "<script>document.title = 'ran'</script><img src=\"https://example.com/x\" onerror='alert(1)'/>&amp;\"'"
COLOURS = {"passed": "#1a7f37", "failed": "#b3261e"}


def found(description: str, *bad: str, **of_other_form: Any) -> dict[str, Any]:
    """Return what Great Expectations says of an expectation that these objects did not meet."""
    examples = [{"change_type": name, "object": name, "batch": 4, "origin": name} for name in bad]
    result = {"unexpected_count": len(bad), "element_count": 12345, "partial_unexpected_index_list": examples}
    whole = {"success": not bad, "expectation_config": {"description": description}, "result": result}
    return whole | {"exception_info": None} | of_other_form


PASSED = Run("lake.shop", 4, 9, 12345, "2026-11-26 16:00:00", [found("The change type is known.")])
FAILED = Run("lake.`<b>`", 4, 4, 1, "2026-11-26 17:00:00", [found("All is well."), found("So is this.", HOSTILE)])
UNCHECKED = Run(
    "lake.shop", 10, 10, 7, "2026-11-26 18:00:00", [found("x", success=False, result={}, exception_info=HOSTILE)]
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ElementTree.Element]:
    """The pages of three runs and the index, as a parser takes them that forgives nothing."""
    directory = tmp_path_factory.mktemp("docs")
    for name, run in (("1-lake.shop", PASSED), ("2-lake.%3Cb%3E", FAILED), ("3-lake.shop", UNCHECKED)):
        index = data_docs.write(directory, name, run)
    assert index == directory / "index.html"
    return {path.stem: ElementTree.parse(path).getroot() for path in directory.rglob("*.html")}


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def rows(page: ElementTree.Element) -> list[list[str]]:
    return [[words(cell) for cell in row] for row in page.iter("tr")]


def outcome(page: ElementTree.Element) -> tuple[str, str]:
    """Return the word of the page's heading, and its colour."""
    shown = page.find(".//h1/span")
    style = page.findtext(".//style")
    assert shown is not None and style is not None
    colour = next(line for line in style.splitlines() if line.startswith(f".{shown.get('class')} {{"))
    return words(shown), colour.split("background: ")[1].split(";")[0]


def test_pages_load_nothing_and_run_nothing(pages: dict[str, ElementTree.Element]) -> None:
    for page in pages.values():
        assert {element.tag for element in page.iter()}.isdisjoint(
            {"script", "link", "img", "iframe", "object", "base"}
        )
        assert not [
            name for element in page.iter() for name in element.attrib if name.startswith("on") or name == "src"
        ]
        assert "url(" not in str(page.findtext(".//style")) and "@import" not in str(page.findtext(".//style"))
        policy = page.find(".//meta[@http-equiv='Content-Security-Policy']")
        assert policy is not None and policy.get("content") == "default-src 'none'; style-src 'unsafe-inline'"


def test_links_lead_to_pages_that_are_there(tmp_path: Path) -> None:
    data_docs.write(tmp_path, "1-lake.%3Cb%3E", FAILED)
    for path in tmp_path.rglob("*.html"):
        for link in ElementTree.parse(path).getroot().iter("a"):
            assert (path.parent / str(link.get("href")).replace("%25", "%")).is_file()


def test_the_index_names_table_batches_records_and_outcome_of_each_run(pages: dict[str, ElementTree.Element]) -> None:
    assert rows(pages["index"]) == [
        ["Outcome", "Checked at (UTC)", "Staging table", "Batches", "Records", "Not as expected"],
        ["failed", "2026-11-26 18:00:00", "lake.shop", "10", "7", "x"],
        ["failed", "2026-11-26 17:00:00", "lake.`<b>`", "4", "1", "So is this."],
        ["passed", "2026-11-26 16:00:00", "lake.shop", "4 to 9", "12,345", ""],
    ]


def test_a_page_that_failed_looks_like_none_that_passed(pages: dict[str, ElementTree.Element]) -> None:
    assert outcome(pages["1-lake.shop"]) == ("passed", COLOURS["passed"])
    assert outcome(pages["2-lake.%3Cb%3E"]) == ("failed", COLOURS["failed"])


def test_what_was_delivered_is_shown_as_it_is(pages: dict[str, ElementTree.Element]) -> None:
    page = pages["2-lake.%3Cb%3E"]
    assert page.findtext(".//title") == "failed: lake.`<b>`"
    assert ["change_type", "object", "batch", "origin"] in rows(page)
    assert [HOSTILE, HOSTILE, "4", HOSTILE] in rows(page)
    assert ["failed", "So is this.", "1", "12,345"] in rows(page)


def test_an_expectation_that_could_not_be_checked_has_failed(pages: dict[str, ElementTree.Element]) -> None:
    assert rows(pages["3-lake.shop"])[1:] == [["failed", "x", f"could not be checked: {HOSTILE}"]]


def test_of_no_rows_none_is_not_as_expected(tmp_path: Path) -> None:
    nothing = {"unexpected_count": None, "element_count": 0, "partial_unexpected_index_list": []}
    run = Run("lake.shop", 1, 1, 0, "2026-11-26 16:00:00", [found("x", result=nothing)])
    data_docs.write(tmp_path, "1-lake.shop", run)
    page = ElementTree.parse(tmp_path / "runs/1-lake.shop.html").getroot()
    assert rows(page)[1:] == [["passed", "x", "0", "0"]]


def test_half_a_file_of_a_run_that_was_killed_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(Path, "replace", _interrupt)
        data_docs.write(tmp_path, "1-lake.shop", PASSED)
    index = data_docs.write(tmp_path, "2-lake.shop", UNCHECKED)
    assert [row[1] for row in rows(ElementTree.parse(index).getroot())[1:]] == ["2026-11-26 18:00:00"]


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_great_expectations_found_is_kept_beside_the_page(tmp_path: Path) -> None:
    data_docs.write(tmp_path, "1-lake.shop", FAILED)
    assert json.loads((tmp_path / "runs/1-lake.shop.json").read_text())["found"] == FAILED.found
