"""docs/internals/statements.md lists every statement of a run: a new one is a decision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals" / "statements.md").read_text()
SHAPES = {
    "first": "mysql_composite_key/first_run",
    "news": "mysql_composite_key/increment",
    "none": "mysql_composite_key/nothing_new",
    "history": "mysql_history/increment",
    "addresses": "oracle/increment",
    "view": "mysql_view/nothing_new",
}
OF_A_RUN = [
    "begin_run/mysql_composite_key_run", "begin_run/registered", "begin_run/known_at_start", "horizons/run",
    "end_run/unread",
]  # fmt: skip


def statements(name: str) -> list[str]:
    """Return the statements of a golden file, each in one line, without schemas and digests."""
    text = (ROOT / "tests" / "sql" / f"{name}.sql").read_text()
    lines = (" ".join(statement.split()) for statement in text.split(";\n\n"))
    plain = (re.sub(r"_[0-9a-f]{12}\b", "", re.sub(r"`(demo|lake)`\.", "", line)).replace("`", "") for line in lines)
    return [line for line in plain if not line.startswith("--")]


def listed(heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading, the first one with the names of the columns."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not row[0].startswith("---")]


def pattern(cell: str) -> re.Pattern[str]:
    return re.compile(re.escape(cell.strip("`")).replace("…", ".*") + "$")


def counted(names: list[str], given: list[str]) -> dict[str, int]:
    """Return how often each pattern is met; the longest of several that a statement meets counts."""
    counts = dict.fromkeys(names, 0)
    for statement in given:
        met = [name for name in names if pattern(name).match(statement)]
        assert met, f"docs/internals/statements.md does not list: {statement[:200]}"
        counts[max(met, key=len)] += 1
    return counts


@pytest.mark.parametrize("column", SHAPES)
def test_the_statements_of_a_model_are_those_of_the_page(column: str) -> None:
    columns, *rows = listed("Of a model")
    place = columns.index(column)
    said = {row[0]: int(row[place] or 0) for row in rows}
    assert counted(list(said), statements(SHAPES[column])) == said


def test_the_statements_of_a_run_are_those_of_the_page() -> None:
    _, *rows = listed("At the start and at the end of a run")
    said = {row[0]: 1 for row in rows}
    # Each file shows a part of a run's start and end, and some statements are in two parts.
    parts = [counted(list(said), statements(name)) for name in OF_A_RUN]
    assert {name: max(part[name] for part in parts) for name in said} == said


def test_a_statement_that_is_not_listed_is_noticed() -> None:
    _, *rows = listed("Of a model")
    with pytest.raises(AssertionError, match="does not list: vacuum orders__base"):
        counted([row[0] for row in rows], ["vacuum orders__base"])
