"""When a run makes the views of a model anew: where what they show has changed, and only then."""

from __future__ import annotations

import re

import pytest
from shapes import SHAPES, Life

GROWING = [name for name, shape in SHAPES.items() if "increment" in shape.phases]


def run(life: Life, empty: bool = False) -> list[str]:
    """Run the model, and return the statements that make views."""
    life.project.begin("run", ["orders"], empty=empty)
    life.warehouse.statements.clear()
    assert life.project.materialize(life.project.node("orders"))
    return [text for text in life.warehouse.statements if re.match("create (or replace )?view", text)]


@pytest.mark.parametrize("name", GROWING)
def test_a_view_goes_on_to_show_what_it_showed_once_deletes_without_a_key_have_come(name: str) -> None:
    """Runs that bring none of them look at the old ones. But for its last batch a fresh view stays as it is, too."""
    life = Life(SHAPES[name])
    life.statements("first run")
    life.statements("increment")
    w = life.warehouse
    w.ledger, w.base_batch, w.delivered = (5, 5), 5, 0
    shown = [re.sub(r"'[0-9a-f]{32}'|\d+", "N", text) for text in life.warehouse.statements if " view " in text[:30]]
    assert run(life) == []
    w.staged, w.delivered, w.keyless_deletes = 6, 10, 0
    assert {re.sub(r"'[0-9a-f]{32}'|\d+", "N", text) for text in run(life)} <= set(shown)


def test_an_empty_run_leaves_the_views_that_are_there_alone_and_the_next_one_makes_them_anew() -> None:
    life = Life(SHAPES["mysql_documented"])
    life.statements("first run")
    life.project.node("orders")["description"] = "What people have ordered."
    assert run(life, empty=True) == []
    assert len(run(life)) == 1
