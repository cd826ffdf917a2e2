"""When a run makes the views of a model anew: where what they show has changed, and only then."""

from __future__ import annotations

import re

import pytest
from plain_dbt import CompilerError, Relation
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


@pytest.mark.parametrize("name", ["mysql_composite_key", "oracle", "spanner"])
def test_a_new_key_is_inserted_though_it_brings_no_row(name: str) -> None:
    """A tombstone of a key that is not there keeps late inserts from bringing the row back."""
    life = Life(SHAPES[name])
    life.statements("first run")
    life._increment()
    life.warehouse.counts |= {"inserted": 0, "new_keys": 2, "tombstoned": 2}
    run(life)
    (merge,) = (text for text in life.warehouse.statements if text.startswith("merge into `demo`.`orders__base`"))
    assert "when not matched then insert" in merge


def test_a_model_without_news_asks_its_base_table_what_it_was_built_from() -> None:
    """Its live view may be of before: a run that was killed, or a table that was restored across a rebuild."""
    life = Life(SHAPES["mysql_composite_key"])
    life.statements("first run")
    life._nothing_new()
    assert run(life) == []
    assert life.warehouse.statements == ["show tblproperties `demo`.`orders__base`"]
    built = life.warehouse.properties["demo.orders__base"]
    built["reconcile.declaration"] = built["reconcile.declaration"].replace('"columns": "', '"columns": "0')
    with pytest.raises(CompilerError, match="orders__base was built with other columns"):
        run(life)


@pytest.mark.parametrize(
    ("listed", "known"),
    [
        ("reconcile.definition={0}", True), ("a=b, reconcile.definition={0}, c=d", True),
        ("a=b,reconcile.definition={0}", True),
        ("reconcile.as_of=batch 2, reconcile.definition={0}", False), ("reconcile.definition={0}0", False),
        ("a.reconcile.definition={0}", False), ("", False),
    ],
)  # fmt: skip
def test_the_definition_of_a_view_is_known_from_what_dbt_has_read_unless_it_is_of_another_moment(
    listed: str, known: bool
) -> None:
    digest = "0123456789abcdef" * 2
    view = Relation("demo", "orders", "view", f"Type: VIEW\nTable Properties: [{listed.format(digest)}]\nx")
    macros = Life(SHAPES["mysql_composite_key"]).project.macros
    assert macros.cached_definition(view) == (digest if known else None)
    assert macros.cached_definition(Relation("demo", "orders", "view")) is None


@pytest.mark.parametrize(
    ("base", "deletes", "is_so"), [(5, 3, True), (5, 4, True), (5, 2, False), (4, 3, False), (6, 3, False)]
)
def test_tables_are_as_the_ledger_says_also_if_a_run_that_died_has_added_deletes(
    base: int, deletes: int, is_so: bool
) -> None:
    account = {"base_batch": base, "ledger_base_batch": 5, "deletes_batch": deletes, "ledger_deletes_batch": 3}
    assert Life(SHAPES["oracle"]).project.macros.tables_are_as_applied(account) is is_so


def test_a_run_that_finds_its_base_table_ahead_asks_the_ledger_anew() -> None:
    """Another run may have applied the range since this one began, and its records may have been purged."""
    life = Life(SHAPES["mysql_composite_key"])
    life.statements("first run")
    life._increment()
    life.project.begin("run", ["orders"])
    life.warehouse.ledger, life.warehouse.base_batch, life.warehouse.delivered = (5, 5), 5, 0
    assert life.project.materialize(life.project.node("orders")) == "nothing new"


def test_zero_dates_of_all_columns_are_counted_together_and_said_one_by_one() -> None:
    life = Life(SHAPES["mysql_zero_dates"])
    life.statements("first run")
    *statements, said = life.statements("increment")
    (ledger,) = (text for text in statements if text.startswith("insert into `demo`.`reconcile_ledger`"))
    assert sum(count for _, count in life.warehouse.zero_dates) == 3
    assert "\n    3 as zero_dates,\n" in ledger
    assert said.endswith("zero dates that became NULL: 2 of born, 1 of seen")


@pytest.mark.parametrize("always", [True, None])
def test_a_model_that_is_always_rebuilt_is_asked_nothing_when_a_run_begins(always: bool | None) -> None:
    """What it was built from is no place to go on from: it would be taken for a model without news."""
    life = Life(SHAPES["mysql_composite_key"])
    life.statements("first run")
    life._nothing_new()
    life.project.node("orders")["config"]["full_refresh"] = always
    life.project.begin("run", ["orders"])
    assert ("demo.orders" in life.project.graph["reconcile_known"]) == (always is None)
