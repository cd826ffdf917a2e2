"""The verdict of a comparison is the worst verdict of its rows."""

from __future__ import annotations

import itertools

import pytest
from plain_dbt import PlainProject, Relation
from recorder import Recorder
from snapshots import SNAPSHOT
from test_golden_sql import PG_SNAPSHOT, POSTGRESQL, of
from test_proof import comparing

WORST_FIRST = ("confirmed", "unprovable", "in_flight")


@pytest.mark.parametrize("numbers", list(itertools.product((0, 1, 3), repeat=4)))
def test_a_comparison_has_the_worst_verdict_of_its_rows(numbers: tuple[int, ...]) -> None:
    counts = dict(zip(("matched", *WORST_FIRST), numbers, strict=True))
    expected = next((name for name in WORST_FIRST if counts[name]), "match")
    macros = PlainProject(Recorder(), "demo").macros
    assert macros._verdict_of({**counts, "compared": sum(numbers)}) == expected


def test_what_was_not_delivered_is_said_where_rows_differ() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    compared = {
        "model": Relation("shop", "orders"),
        "compared_to": "lake.orders_source",
        "position": {"label": "LSN 7"},
    }
    counts = {"compared": 3, "matched": 3, "confirmed": 0, "in_flight": 0, "unprovable": 0, "tolerated": "{}"}
    late = {"reason": "less time than the allowance has passed; test again later"}
    said = macros.summary_of_comparison(compared, late, counts, []).strip()
    assert said == "parity of shop.orders with lake.orders_source as of LSN 7: 3 of 3 rows match"
    differing = [("total", 1), ("doc", 1)]
    said = macros.summary_of_comparison(compared, late, counts | {"matched": 2, "in_flight": 1}, differing).strip()
    assert said.endswith(
        "2 of 3 rows match, 1 in_flight; rows that differ, by column: 1 in total, 1 in doc; less time than the "
        "allowance has passed; test again later"
    )


@pytest.mark.parametrize(
    ("which", "is_compared"), [("test", True), ("build", True), ("run", False), ("compile", False)]
)
def test_dbt_test_and_dbt_build_compare_and_write_the_result_down(which: str, is_compared: bool) -> None:
    """Their tables are made before, since tests in several threads would make them at the same time."""
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    life.project.test("parity", "orders", which=which, compare_to=SNAPSHOT, key="id")
    about = [sql.split("(")[0].split("\n")[0] for sql in life.warehouse.statements if "`demo`.`reconcile_parity" in sql]
    made = [sql for sql in about if sql.startswith("create")]
    written = [sql for sql in about if sql.startswith("insert into")]
    assert (len(made), len(written)) == ((2, 2) if is_compared else (0, 0))
    assert about[:2] == made
