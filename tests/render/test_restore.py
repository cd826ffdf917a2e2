"""What a run with the variable restore sends, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from recorder import normalized
from refusals import SENTENCE, THINGS, Refusal, run, thing
from shapes import SHAPES, Life

ROWS_FROM = "what is left, with the base snapshot, gives rows from batch {} on; name that or a later batch"


def built(shape: Any = None, restore: Any = None, **variables: Any) -> Callable[[], Life]:
    """Return a model that has applied batch 3, and that the next run puts back."""

    def living() -> Life:
        life = Life(shape or thing())
        life.statements("first run")
        life._nothing_new()
        life.project.variables |= {"restore": restore or {"batch": 2}, **variables}
        return life

    return living


def beside_another(**said: Any) -> Callable[[], Life]:
    def living() -> Life:
        life = built()()
        life.project.source("lake", "others")
        life.project.model("more", "{{ reconcile.datastream_mysql(source('lake', 'others'), object='more') }}", THINGS,
                           config={"materialized": "current_state", "unique_key": "id"})  # fmt: skip
        return life

    return living


def purged(shape: Any, batch: int, copy: int | None = None) -> Callable[[], Life]:
    """Return a model whose staging table was purged up to a batch; its copy may have come further."""

    def living() -> Life:
        life = built(shape, {"batch": 2})()
        life._purge()
        life.warehouse.has("lake.orders_kept", reconcile__base_snapshot=str(batch))
        life.warehouse.purges, life.warehouse.base_batch = {life.shape.object: batch}, copy or batch
        life.warehouse.column_types["orders_kept"] = life.warehouse.column_types["orders_kept"] | {
            "_row_id": "string", "_change_transaction": "string", "_change_is_insert": "boolean",
            "_change_contenders": "array<struct<address:string,sequence:string,time:timestamp,batch:bigint>>",
            "_change_displaced": "array<struct<... 7 more fields>>",
        }  # fmt: skip
        return life

    return living


REFUSED = [
    Refusal(
        run(built(restore="yesterday")),
        ["The variable restore is 'yesterday', which is not a position; write one of batch, appended_at, commit_time, "
         "sequence, pg_snapshot with its value, for example {batch: 17}."], SENTENCE,
    ),
    Refusal(
        run(built(restore={"commit_time": "2026-11-21 11:33:14+00"})),
        ["The variable restore is {commit_time: ...}, and tables are put back to a batch; write {batch: 17}, or build "
         "the rows of another position beside the present ones with as_of."], SENTENCE,
    ),
    Refusal(
        lambda: built()().project.begin("build", ["orders"]),
        ["The variable restore works only with dbt run: tests and seeds know the present alone. Use dbt run, or "
         "remove restore."], SENTENCE,
    ),
    *(
        Refusal(
            run(built(**{name: said})),
            [f"restore puts models back to a batch, which does not go together with {name}; use one of the two "
             "variables."], SENTENCE,
        )
        for name, said in (("as_of", {"batch": 2}), ("retry_quarantine", True), ("only_new_records", True))
    ),
    Refusal(
        run(built(SHAPES["mysql_view"])),
        ["restore: orders is a current_view, and only a current_state or history of staged records can be put back; "
         "select other models with --select."], SENTENCE,
    ),
    Refusal(
        run(built(SHAPES["own_select"])),
        ["restore: orders is a model of its own SELECT, and only a current_state or history of staged records can be "
         "put back; select other models with --select."], SENTENCE,
    ),
    Refusal(
        run(beside_another(), "orders", "more"),
        ["restore: {batch: 2} is a batch of one staging table, and the selected models read lake.others, "
         "lake.shop_changes, each with its own batch numbers; select models of one staging table with --select."],
        SENTENCE,
    ),
    Refusal(
        run(built(restore={"batch": 4})),
        ["restore is batch 4, but the last batch of lake.shop_changes is 3; name a batch that exists."], SENTENCE,
    ),
    Refusal(
        run(purged(replace(SHAPES["oracle"], meta=SHAPES["mysql_after_a_purge"].meta), 1)),
        ["restore is batch 2, and staging was purged up to batch 1: the deletes without a key that came later would be "
         "applied too; restore the base table by the means of its format, and run the model"],
    ),
    *(
        Refusal(
            run(purged(SHAPES["mysql_after_a_purge"], purge, copy)),
            ["restore is batch 2, and staging was purged: " + ROWS_FROM.format(3)],
        )
        for purge, copy in ((3, 3), (1, 3))
    ),
    Refusal(
        run(built(thing(config={"full_refresh": False}))),
        ["restore makes demo.orders__base anew, and the config of the model has full_refresh: false; remove that for "
         "this run"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_put_back_is_refused_and_nothing_is_written(number: int) -> None:
    REFUSED[number].check()


def test_the_last_batch_is_one_that_exists() -> None:
    life = built(restore={"batch": 3})()
    life.project.begin("run", ["orders"])
    assert life.project.materialize(life.project.node("orders")).startswith("REBUILD batches 1-3: ")


@pytest.mark.parametrize(("purge", "copy"), [(2, 2), (1, 2), (1, 1)])
def test_a_model_may_be_put_back_to_the_batch_of_the_copy_with_which_it_begins(purge: int, copy: int) -> None:
    life = purged(SHAPES["mysql_after_a_purge"], purge, copy)()
    life.project.begin("run", ["orders"])
    said = life.project.materialize(life.project.node("orders"))
    assert said.startswith("REBUILD")


@pytest.mark.parametrize("name", ["mysql_composite_key", "oracle", "mysql_history", "iceberg_mysql"])
def test_a_restore_is_a_rebuild_with_an_earlier_cut(name: str) -> None:
    """Every statement is that of a full refresh, but for the last batch."""
    life = built(SHAPES[name])()
    life.project.begin("run", ["orders"])
    life.warehouse.statements.clear()
    life.project.materialize(life.project.node("orders"))
    restored = life.warehouse.statements
    other = Life(SHAPES[name])
    other.statements("first run")
    other._nothing_new()
    other.warehouse.staged = 2
    other.project.begin("run", ["orders"], full_refresh=True)
    other.warehouse.statements.clear()
    other.project.materialize(other.project.node("orders"))
    assert normalized(restored) == normalized(other.warehouse.statements)
    assert any(sql.lstrip().startswith("create or replace table") for sql in restored)
