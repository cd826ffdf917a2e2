"""Which batches a run reads when its range has a snapshot beside the log."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from shapes import ORDERS, SHAPES, Life


@pytest.mark.parametrize(("begun", "first"), [(2, 2), (4, 4), (5, 4)], ids=["applied before", "the first", "later"])
def test_a_range_with_a_snapshot_is_read_whole_also_batches_of_long_before_the_snapshot(begun: int, first: int) -> None:
    """The range is 4 to 5; from batch `begun` on there may be changes that the snapshot does not contain."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    life.warehouse.answers["select min(batch) from"] = {"first": begun}
    life.statements("first run")
    asked = "\n".join(life.statements("increment"))
    assert re.search(rf"^ +where _change_batch between {first} and 5$", asked, re.M)


def test_records_without_notes_of_their_columns_are_read_again_too() -> None:
    """A SELECT of the user's may drop the columns that only monitoring needs; then there is nothing to except."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    form = life.project.macros.form_of_node(life.project.node("orders"))
    range_ = {"first": 4, "last": 5, "repair": {"first": 2, "oldest": {"place": 1}}}
    fields = ["_change_snapshot"]
    sql = life.project.macros.checked_records_beside_snapshot("select 1", fields, form, range_, [])
    assert sql.startswith("select * except (_change_is_placed_anew)\nfrom (\n")


def compares(change: Any = lambda life: None, **said: Any) -> bool:
    """Whether an increment with a large snapshot compares buckets; `said` is what the shape has otherwise."""
    life = Life(replace(SHAPES["postgresql_beside_a_large_snapshot"], **said))
    life.statements("first run")
    change(life)
    return any("reconcile_buckets" in statement for statement in life.statements("increment"))


def test_a_large_snapshot_is_compared_by_buckets_where_a_cast_reads_its_rows_exactly() -> None:
    snapshot = dict(SHAPES["postgresql_beside_a_large_snapshot"].snapshot or {})
    assert compares()
    assert not compares(snapshot={**snapshot, "rows": 99_999})
    # A cast to fewer digits rounds. A whole number is read or not.
    types = dict(snapshot["columns"])
    assert types["total"] == "decimal(38,10)"
    assert not compares(snapshot={**snapshot, "columns": {**types, "total": "decimal(38,12)"}})
    assert compares(snapshot={**snapshot, "columns": {**types, "id": "int"}})
    assert not compares(materialized="history")


def test_types_that_a_macro_was_given_are_compared_with_the_declared_ones() -> None:
    """A key that is hashed as another type would be in another bucket."""
    given = [{"name": name, "data_type": kind} for name, kind in ORDERS.items()]
    assert compares(arguments=f", columns={given}")
    given[0] = {"name": "id", "data_type": "int"}
    assert not compares(arguments=f", columns={given}")
