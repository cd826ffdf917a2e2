"""What docs/operations/runbook.md says of runs after a table was lost, moved or copied, if no other test has it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import test_horizons
from plain_dbt import CompilerError
from refusals import thing
from shapes import STAGING, Life, Shape

PURGED = "reconcile.purged." + hashlib.md5(b"shop.orders").hexdigest()
LEDGER, BASE, COPY = "demo.reconcile_ledger", "demo.orders__base", "demo.orders__snapshot"
OF_OTHER_FORM = {"macros/model/model_settings.sql": {"| list else 1) }}": "| list else 3) }}"}}
RESTORED = (
    "demo.orders__base lacks batch 1, and the records of shop.orders up to batch 2 were purged from lake.shop_changes"
)


def built(shape: Shape | None = None, *, without: str = "", in_form: Any = None, **said: Any) -> Life:
    """Return a model that has applied batch 3; a relation that is gone; what else is so of the warehouse."""
    life = Life(shape or thing())
    life.statements("first run")
    later = Life(life.shape, replaced=in_form) if in_form else life
    later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
    later._nothing_new()
    later.warehouse.delivered, later.warehouse.last_appended_at = 100, 1_767_225_600_000_000
    later.warehouse.answers["where object = '#snapshot' and source = 'snapshot'"] = []
    later.warehouse.relations.pop(without, None)
    for name, value in said.items():
        setattr(later.warehouse, name, value)
    return later


def copied(life: Life, name: str = COPY, **properties: str) -> Life:
    """Let a copy of the base table be there, with the columns of Delta."""
    life.warehouse.has(name, **properties)
    life.warehouse.column_types[name.rpartition(".")[2]] = life.warehouse.column_types["orders_kept"]
    return life


def with_iceberg_names(life: Life, name: str) -> Life:
    types = dict(life.warehouse.column_types[name])
    types["_change_deleted"] = types.pop("_deleted")
    life.warehouse.column_types[name] = types
    return life


def in_ice(**said: Any) -> Life:
    """Return a model of Iceberg's that is not built, on staging of Delta that was purged up to batch 2."""
    catalogs = {"ice": "org.apache.iceberg.spark.SparkCatalog", "ice.type": "hive"}
    life = Life(replace(thing(file_format="iceberg", **said), schema="ice.demo", catalogs=catalogs))
    life.warehouse.extensions += ",org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    life.warehouse.answers["where object = '#snapshot' and source = 'snapshot'"] = []
    life.warehouse.purges, life.warehouse.base_batch = {"shop.orders": 2}, 2
    return life


def says(life: Life, **flags: Any) -> str:
    try:
        return life.project.run("orders", **flags)["orders"]
    except CompilerError as error:
        return str(error)


def marked(life: Life, batch: int = 2) -> Life:
    life.warehouse.properties[STAGING][PURGED] = str(batch)
    return life


LOST: dict[str, Any] = {"without": LEDGER, "ledger": (0, 0), "base_batch": 3, "last_appended_at": None}
GONE: dict[str, Any] = {"purges": {"shop.orders": 2}, "without": BASE}
CASES: dict[str, tuple[Callable[[], str], str]] = {
    "a lost ledger": (lambda: says(built(**LOST)), "REPLAY batches 1-3: "),
    "a lost ledger of a history": (lambda: says(built(thing(materialized="history"), **LOST)), "REPLAY batches 1-3: "),
    "a lost ledger after a purge": (lambda: says(marked(built(**LOST))), RESTORED),
    "a lost ledger after a purge, rebuilt": (
        lambda: says(copied(marked(built(**LOST)), reconcile__base_snapshot="2"), full_refresh=True),
        "REBUILD batches 3-3: ",
    ),
    "an older ledger": (lambda: says(built(ledger=(3, 3), base_batch=5, staged=5)), "REPLAY batches 4-5: "),
    "an older base table": (lambda: says(built(ledger=(5, 5), base_batch=3, staged=5)), "REPLAY batches 4-5: "),
    "a lost base table": (lambda: says(built(without=BASE)), "REBUILD batches 1-3: "),
    "a lost base table after a purge": (lambda: says(built(**GONE)), "but a rebuild needs them"),
    "a lost base table after a purge, with a copy": (
        lambda: says(copied(built(**GONE), reconcile__base_snapshot="2")), "REBUILD batches 3-3: ",
    ),
    "a copy that was copied by a SELECT": (lambda: says(copied(built(**GONE))), "but a rebuild needs them"),
    "staging without its properties": (
        lambda: says(without_properties(built(staged=4, purges={"shop.orders": 2}))), "APPLY batches 4-4: ",
    ),
    "the same, and the ledger is lost": (lambda: says(without_properties(built(**LOST))), "REPLAY batches 1-3: "),
    "no columns seen": (lambda: says(built(staged=4, without="demo.reconcile_columns_seen")), "APPLY batches 4-4: "),
    "another form of the order after a purge": (
        lambda: says(other_form("reconcile.declaration"), full_refresh=True), "was built with another sequence",
    ),
    # Nothing shows of which form this copy is.
    "the same with a copy by hand": (lambda: says(other_form(), full_refresh=True), "REBUILD batches 3-3: "),
    "Iceberg after a purge": (
        lambda: says(with_iceberg_names(copied(in_ice(), "ice.demo.orders__snapshot", reconcile__base_snapshot="2",
                                               reconcile__declaration=declaration_of_delta()), "orders__snapshot")),
        "REBUILD batches 3-3: ",
    ),
    "Iceberg from a copy with the names of Delta": (
        lambda: says(copied(in_ice(), "ice.demo.orders__snapshot", reconcile__base_snapshot="2")),
        "has no column `_change_deleted`; ",
    ),
}  # fmt: skip


def without_properties(life: Life) -> Life:
    life.warehouse.properties[STAGING] = {}
    return life


def declaration_of_delta() -> str:
    return str(built().warehouse.properties[BASE]["reconcile.declaration"])


def other_form(*kept: str) -> Life:
    """Return a model after an upgrade and a purge, and a copy of before, with these properties of its base table."""
    life = built(in_form=OF_OTHER_FORM, purges={"shop.orders": 2})
    of_base = {name.replace(".", "__"): life.warehouse.properties[BASE][name] for name in kept}
    return copied(life, reconcile__base_snapshot="2", **of_base)


@pytest.mark.parametrize("name", CASES)
def test_the_run_takes_the_way_that_the_runbook_says(name: str) -> None:
    act, expected = CASES[name]
    assert expected in act()


def test_views_that_were_not_moved_are_made() -> None:
    life = built()
    life.warehouse.relations = {of: type for of, type in life.warehouse.relations.items() if type == "table"}
    assert says(life) == "nothing new"
    assert {"demo.orders", "demo.orders__changes"} <= life.warehouse.relations.keys()


def late_if(life: Life) -> str | None:
    life.project.begin("run", ["orders"])
    life.warehouse.statements.clear()
    life.project.materialize(life.project.node("orders"))
    return test_horizons.late_if(life.warehouse.statements)


def test_a_lost_table_of_horizons_is_lost_where_no_tombstone_is_gone() -> None:
    """Where one is, the base table says so: see test_horizons.py."""
    life = test_horizons.living(thing(), (2, "0/0A"))
    life._increment()
    assert late_if(life)
    life = test_horizons.living(thing(), (2, "0/0A"))
    life._increment()
    del life.warehouse.relations["demo.reconcile_horizons"]
    assert late_if(life) is None


@pytest.mark.parametrize("of", ["demo.orders", "ice.demo.orders"])
def test_horizons_are_those_of_a_name(of: str) -> None:
    """A model that moves has that of the copy alone, unless somebody gives them to its new name."""
    life = copied(in_ice(), "ice.demo.orders__snapshot", reconcile__base_snapshot="2")
    with_iceberg_names(life, "orders__snapshot").warehouse.has("ice.demo.reconcile_horizons")
    delta = Life(thing())
    declaration = delta.project.macros.declaration_of_order(test_horizons.declaration_of(delta))
    row = {"relation": of, "kind": "taken", "first_batch": 2, "declaration": declaration, "sequence": "0/0A"}
    life.warehouse.answers[test_horizons.KNOWN] = [row]
    assert (late_if(life) is not None) == (of == "ice.demo.orders")
