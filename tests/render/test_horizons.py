"""Which runs take a horizon, and what a run quarantines by the horizons that were taken; see decision 0074."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from recorder import normalized
from refusals import thing
from shapes import BIGTABLE, CELL_KEY, CELLS, MYSQL, POSTGRESQL, SHAPES, SNAPSHOT_BESIDE, SPANNER, Life, Shape

TOO_LATE = "too late"
AFTER = "not startswith(_change_sequence, '-') and _change_sequence <="
KNOWN = "select relation, kind, first_batch, declaration, max(sequence) as sequence"


def declaration_of(life: Life) -> str:
    macros, node = life.project.macros, life.project.node("orders")
    return json.dumps(macros.declaration_of(macros.form_of_node(node), macros.model_inputs(node)))


def living(
    shape: Shape, *horizons: tuple[int | None, str], built: bool = True, declared: str | None = None, may_begin: int = 4
) -> Life:
    """Return a model that was built, of which such horizons are known; of `None` the one that is proposed.

    `declared`: what the base table was built from then, if it was something else. `may_begin`: the first batch with
    which a run may take what is proposed.
    """
    life = Life(shape)
    if built:
        life.statements("first run")
    life.warehouse.has("demo.reconcile_horizons")
    declaration = declared or life.project.macros.declaration_of_order(declaration_of(life))
    life.warehouse.answers[KNOWN] = [
        {
            "relation": "demo.orders",
            "kind": "taken" if first else "proposed",
            "first_batch": first or may_begin,
            "declaration": declaration,
            "sequence": sequence,
        }
        for first, sequence in horizons
    ]
    return life


def taken(statements: list[str]) -> list[str]:
    return [sql for sql in statements if sql.startswith("insert into `demo`.`reconcile_horizons`")]


def parsed(statements: list[str]) -> str:
    """Return the statement that reads the records of the range."""
    (sql,) = [sql for sql in statements if sql.startswith("cache") and "_change_complaint" in sql]
    return sql


def late_if(statements: list[str]) -> str | None:
    """Return the condition under which a record came too late; None if no record can."""
    lines = [line.strip() for line in parsed(statements).splitlines() if TOO_LATE in line]
    if not lines:
        return None
    (line,) = lines
    return line.removeprefix("if(_change_error is null and ").partition(", 'the change")[0]


def test_a_run_takes_a_horizon_before_it_reads_a_record_and_keeps_to_it():
    statements = living(thing(), (None, "0/0B"), (2, "0/0A")).statements("increment")
    (insert,) = taken(statements)
    assert "'taken' as kind,\n    '0/0B' as sequence,\n    cast(4 as bigint) as first_batch," in insert
    assert statements.index(insert) < statements.index(parsed(statements))
    assert late_if(statements) == f"{AFTER} '0/0B'"


@pytest.mark.parametrize("phase", ["replay", "rebuild", "nothing new"])
def test_a_run_takes_no_horizon_for_batches_that_may_have_been_applied_without_it(phase: str):
    statements = living(thing(), (None, "0/0B"), (2, "0/0A")).statements(phase)
    assert not taken(statements)
    assert phase == "nothing new" or "0/0B" not in parsed(statements)


@pytest.mark.parametrize(
    "shape",
    [
        thing(materialized="history"), thing(POSTGRESQL, SNAPSHOT_BESIDE["columns"], snapshot=SNAPSHOT_BESIDE),
        Shape(BIGTABLE, CELLS, CELL_KEY, object="events"), SHAPES["mysql_shards"],
    ],
    ids=["history", "beside a snapshot", "cells", "several sources"],
)  # fmt: skip
def test_a_model_whose_tombstones_cannot_go_takes_no_horizon(shape: Shape):
    assert not taken(living(shape, (None, "0/0B")).statements("increment"))


@pytest.mark.parametrize("shape", [thing(), thing(SPANNER), thing(meta={"partial_records": True})])
def test_others_take_one(shape: Shape):
    assert len(taken(living(shape, (None, "0/0B")).statements("increment"))) == 1


@pytest.mark.parametrize("place", range(3), ids=["staging", "sources", "order"])
def test_horizons_of_another_staging_table_order_or_source_are_left(place: int):
    life = living(thing(), (None, "0/0B"), (2, "0/0A"))
    now = life.project.macros.declaration_of_order(declaration_of(life)).split(" ")
    now[place] = "0"
    statements = living(thing(), (None, "0/0B"), (2, "0/0A"), declared=" ".join(now)).statements("increment")
    assert (taken(statements), late_if(statements)) == ([], None)


def test_a_model_that_was_put_back_takes_no_horizon_that_was_proposed_for_later_batches():
    assert not taken(living(thing(), (None, "0/0B"), may_begin=5).statements("increment"))


def test_what_was_proposed_before_a_rebuild_does_not_count():
    life = living(thing(), (None, "0/0B"))
    life.project.begin("run", ["orders"])
    (asked,) = [sql for sql in normalized(life.warehouse.statements) if sql.startswith(KNOWN)]
    assert "kind = 'taken' or kind = 'proposed' and entry >= coalesce(rebuilt, 0)" in asked


def test_a_base_table_whose_tombstones_are_gone_says_so_if_the_table_of_horizons_is_lost():
    life = living(thing())
    life.warehouse.properties["demo.orders__base"]["reconcile.horizon"] = "2 0/0A"
    assert late_if(life.statements("increment")) == f"{AFTER} '0/0A'"
    # A rebuild from all records has the tombstones again, one from a copy that lacks them has not.
    assert late_if(life.statements("rebuild")) is None
    assert life.warehouse.properties["demo.orders__base"]["reconcile.horizon"] == ""
    life = living(SHAPES["mysql_after_a_purge"], built=False)
    life.statements("first run")
    life.warehouse.properties["demo.orders__base"]["reconcile.horizon"] = "2 0/0A"
    life._purge()
    life.warehouse.properties["lake.orders_kept"]["reconcile.horizon"] = "2 0/0A"
    life.statements("rebuild")
    assert life.warehouse.properties["demo.orders__base"]["reconcile.horizon"] == "2 0/0A"


def test_a_horizon_that_is_not_farther_than_the_last_one_is_not_taken_again():
    statements = living(thing(), (None, "0/0A"), (2, "0/0A")).statements("increment")
    assert not taken(statements)
    assert late_if(statements) == f"{AFTER} '0/0A'"


def test_of_several_horizons_that_were_taken_the_farthest_tells_whether_a_proposal_is_farther():
    for farthest, number in (("0/0C", 0), ("0/0B", 0), ("0/0A", 1)):
        life = living(thing(), (None, "0/0B"), (2, farthest), (3, "0/09"))
        assert len(taken(life.statements("increment"))) == number


def test_a_rebuild_compares_the_records_of_each_batch_with_the_horizon_of_then():
    life = living(thing(), (2, "0/0A"), (4, "0/0B"), (5, "0/0C"), (9, "0/0F"))
    life.statements("increment")
    statements = life.statements("rebuild")
    assert late_if(statements) == (
        f"{AFTER} case when _change_batch >= 5 then '0/0C' when _change_batch >= 4 then '0/0B' "
        "when _change_batch >= 2 then '0/0A' else null end"
    )


def test_a_view_that_is_fresh_knows_the_horizon_of_its_run():
    statements = living(thing(meta={"fresh": True}), (None, "0/0B")).statements("increment")
    (view,) = [sql for sql in statements if sql.startswith("create or replace view `demo`.`orders`\n")]
    assert f"{AFTER} '0/0B'" in view


def test_an_earlier_moment_has_the_horizons_of_the_present_model():
    life = living(replace(thing(MYSQL), as_of={"batch": 5}), (2, "0/0A"), built=False)
    life.warehouse.staged = 5
    assert late_if(life.statements("first run")) == f"{AFTER} case when _change_batch >= 2 then '0/0A' else null end"


def test_a_project_without_horizons_asks_for_none():
    life = Life(thing())
    life.statements("first run")
    life.project.begin("run", ["orders"])
    assert not [sql for sql in (*life.warehouse.statements, *life.statements("increment")) if "horizon" in sql]


def test_a_retry_of_the_quarantine_does_not_begin_with_what_came_too_late():
    life = living(thing(), (2, "0/0A"))
    life.project.variables["retry_quarantine"] = True
    life.warehouse.answers["as first_batch, count_if"] = {"first_batch": None, "purged_records": 0}
    (asked,) = [sql for sql in life.statements("increment") if "as first_batch, count_if" in sql]
    assert asked.endswith("it came too late')") and " where not endswith(_change_error, 'the change" in asked


def test_an_account_is_not_found_wrong_when_tombstones_are_gone():
    life = living(thing(), (2, "0/0A"))
    of_model = life.project.macros.account_findings([life.project.node("orders")])
    assert "and coalesce(thinned_at < coalesce(account.entry, 0), true)" in of_model
    assert "from `demo`.`reconcile_horizons`\n" in of_model
