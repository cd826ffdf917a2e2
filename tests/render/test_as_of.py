"""An earlier moment that cannot be told, or whose rows would stand where others do, is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from plain_dbt import PlainProject
from recorder import Recorder
from refusals import SENTENCE, THINGS, Refusal, run, thing
from shapes import MYSQL, ORACLE, OWN_SELECT, POSTGRESQL, SQLSERVER, STAGING, Life, Shape

ONE_OF = "write one of batch, appended_at, commit_time, sequence, pg_snapshot with its value, for example {batch: 17}."
TIME = "a time with a zone, for example '2026-11-21 11:33:14+00'"
SEQUENCE = "a value of _change_sequence, or its first sections"
PG_SNAPSHOT = "a result of PostgreSQL's pg_current_snapshot(), for example '18642:18650:18644'"


def as_of(position: Any, shape: Shape | None = None, schema: str | None = None, **warehouse: Any) -> Callable[[], Life]:
    """Return a model that is built as of a position, where the warehouse answers this."""

    def living() -> Life:
        life = Life(shape or thing())
        life.project.variables |= {"as_of": position, **({"as_of_schema": schema} if schema else {})}
        for name, value in warehouse.items():
            assert hasattr(life.warehouse, name)
            setattr(life.warehouse, name, value)
        return life

    return living


# --- positions --------------------------------------------------------------------------------------------------------

NAMES: list[Any] = [
    {"batch": 1, "sequence": "0000"}, {}, {"lsn": "0/1"}, {"Batch": 1}, 17, "2026-11-21", ["batch", 1],
]  # fmt: skip
VALUES: list[tuple[str, Any, str]] = [
    *(("batch", value, "a batch number, for example 17") for value in ("seventeen", 0, -1, 1.5, "1 or 1=1", 10**18)),
    *(
        (position, value, TIME)
        for position in ("commit_time", "appended_at")
        for value in ("2026-11-21 11:33:14", "2026-11-21", "2026-02-30 00:00:00Z", "now", 1795260792)
    ),
    *(("sequence", value, SEQUENCE) for value in ("", "0000/", "/0000", "00g0", "0000' or '1'='1")),
    *(("pg_snapshot", value, PG_SNAPSHOT) for value in ("18642", "1:2", "1:2:3,", "1:2:a", 18642)),
]
OF_POSITIONS: dict[str, Refusal] = {
    **{
        str(position): Refusal(
            run(as_of(position)),
            [f"The variable as_of is '{position}', which is not a position; {ONE_OF}"],
            SENTENCE,
        )
        for position in NAMES
    },
    **{
        f"{position} {value}": Refusal(
            run(as_of({position: value})), [f"The variable as_of: {{{position}: {value}}} is not {said}."], SENTENCE
        )
        for position, value, said in VALUES
    },
    **{
        f"schema {schema}": Refusal(
            run(as_of({"batch": 1}, schema=schema)),
            [f"as_of_schema: '{schema}' is not a schema name that Spark's catalog accepts; use only ASCII letters, "
             "digits and _, and write a catalog before it as catalog.schema."],
            SENTENCE,
        )
        for schema in ("a b", "a`b", "ä", "a.b.c", "a.", ".b", "a\n")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OF_POSITIONS)
def test_a_position_that_is_none_is_refused_before_anything_is_read(name: str) -> None:
    OF_POSITIONS[name].check()


# --- what there was ---------------------------------------------------------------------------------------------------

OWN = Shape(OWN_SELECT, THINGS)
MATERIALIZED = ("current_state", "history", "current_view")
OF_STAGING: dict[str, Refusal] = {
    **{
        f"a batch to come, of a {materialized}": Refusal(
            run(as_of({"batch": 4}, thing(materialized=materialized))),
            [f"as_of is batch 4, but the last batch of {STAGING} is 3; name a batch that exists"],
        )
        for materialized in MATERIALIZED
    },
    "a batch of nothing": Refusal(
        run(as_of({"batch": 1}, staged=None)),
        [f"as_of is batch 1, but the last batch of {STAGING} is 0; name a batch that exists"]
    ),
    **{
        f"a time before all, of a {materialized}": Refusal(
            run(as_of({"appended_at": "2020-01-01 00:00:00+00"}, thing(materialized=materialized), as_of_batch=None)),
            [f"as_of is appended_at 2020-01-01 00:00:00+00, but nothing had been appended to {STAGING} at this time; "
             "use a later time"],
        )
        for materialized in MATERIALIZED
    },
    "a time of appending to no staging table": Refusal(
        run(as_of({"appended_at": "2026-11-21 00:00:00Z"}, OWN)),
        ["as_of: {appended_at: ...} is a time of appends to a staging table, and the model has no source macro that "
         "reads one; name another position"],
    ),
    "no staging table": Refusal(
        run(as_of({"batch": 1}, relations={})),
        [f"the staging table {STAGING} does not exist; create it with ingestion/append.py first"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_STAGING)
def test_a_position_that_staging_does_not_have_is_refused(name: str) -> None:
    OF_STAGING[name].check()


# --- where it is built ------------------------------------------------------------------------------------------------


def where(relation: str, position: Any = None, materialized: str = "current_state", **made: str) -> Callable[[], Life]:
    """Return a model at a position or at the present, where somebody has made a relation."""

    def living() -> Life:
        life = as_of(position, thing(materialized=materialized))()
        life.warehouse.has(relation, "table", **made)
        return life

    return living


NOT_THEN = "exists and was not built by a run with as_of, so it is not replaced; name another schema in the variable"
OF_RELATIONS: dict[str, Refusal] = {
    **{
        f"{materialized} orders{part} of the present": Refusal(
            run(where(f"demo_as_of.orders{part}", {"batch": 1}, materialized, reconcile__declaration="{}")),
            [f"demo_as_of.orders{part} {NOT_THEN} as_of_schema"],
        )
        for materialized in MATERIALIZED
        for part in ("", "__base", "__changes", "__quarantine")
    },
    "a base table of an earlier moment": Refusal(
        run(where("demo.orders__base", None, reconcile__as_of="batch 2", reconcile__declaration="{}")),
        [
            (
                "demo.orders__base was built as of batch 2, and this run builds the present state; drop it, or build "
                "into another schema"
            )
        ],
    ),
}


@pytest.mark.parametrize("name", OF_RELATIONS)
def test_rows_of_another_moment_are_not_replaced(name: str) -> None:
    OF_RELATIONS[name].check()


def test_a_model_at_an_earlier_moment_is_replaced_by_one_at_another() -> None:
    life = as_of({"batch": 1})()
    life.project.run("orders")
    life.project.variables["as_of"] = {"batch": 2}
    life.project.run("orders")
    assert life.warehouse.properties["demo_as_of.orders__base"]["reconcile.as_of"] == "batch 2"


# --- what else is selected --------------------------------------------------------------------------------------------


def several(position: Any, schema: str | None = None, **shapes: Shape) -> Callable[[], Life]:
    """Return more models beside orders: those of `others` read another staging table."""

    def living() -> Life:
        life = as_of(position, thing(POSTGRESQL), schema)()
        life.project.source("lake", "others")
        life.warehouse.has("lake.others", reconcile__last_batch="9")
        for name, shape in shapes.items():
            life.project.model(name, shape.sql.replace("shop_changes", "others"), THINGS)
        for name in ("big", "small"):
            life.project.model(name, "select * from {{ ref('orders') }} where id > 1000", {})
        return life

    return living


def other(source: str, **config: Any) -> Shape:
    return thing(source, config=config, object="shop.others")


FIRST = {"batch": 1}
SNAPSHOT = {"pg_snapshot": "1:1:"}
BUILD = (
    "The variable as_of works only with dbt run: tests would read the present tables, and seeds and snapshots have "
    "no earlier state. Use dbt run, or remove as_of."
)
OF_POSTGRESQL = (
    "as_of: {pg_snapshot: ...} is a position of PostgreSQL, and a selected model reads another source; select "
    "models of PostgreSQL with --select."
)
PRESENT = "which is a model of the present state; name another schema in the variable as_of_schema."


def selected(life: Callable[[], Life], *names: str) -> Callable[[], None]:
    return run(life, *names)


def build(life: Callable[[], Life]) -> Callable[[], None]:
    return lambda: life().project.begin("build", ["orders"])


OF_A_RUN: dict[str, tuple[Callable[[], None], str]] = {
    "a build": (build(as_of(FIRST)), BUILD),
    "a model of dbt's own": (
        selected(several(FIRST), "orders", "big"),
        (
            "The variable as_of builds only models of this package, and model.shop.big is selected too; select only "
            "models of this package with --select."
        ),
    ),
    "several models of dbt's own": (
        selected(several(FIRST), "orders", "small", "big", "reconcile_lag"),
        "The variable as_of builds only models of this package, and model.reconcile.reconcile_lag, model.shop.big, "
        "model.shop.small are selected too; select only models of this package with --select.",
    ),
    "a batch of several staging tables": (
        selected(several(FIRST, other=other(POSTGRESQL)), "orders", "other"),
        "as_of: {batch: 1} is a batch of one staging table, and the selected models read lake.others, "
        "lake.shop_changes, each with its own batch numbers; select models of one staging table with --select, or "
        "give a time.",
    ),
    "a sequence of several orders": (
        selected(several({"sequence": "0000"}, other=other(ORACLE)), "orders", "other"),
        "as_of: {sequence: ...} is a position in one order, and the selected models have several orders (lsn of "
        "PostgreSQL; scn, rs_id, ssn); select models of one source with --select.",
    ),
    **{
        f"a snapshot of PostgreSQL of {source}": (
            selected(several(SNAPSHOT, other=other(source)), "orders", "other"), OF_POSTGRESQL
        )
        for source in (ORACLE, MYSQL, SQLSERVER)
    },
    "the schema of the present": (
        selected(as_of(FIRST, schema="demo"), "orders"), f"as_of would build orders as demo.orders, {PRESENT}",
    ),
    "the schema of the present in capitals": (
        selected(as_of(FIRST, schema="DEMO"), "orders"), f"as_of would build orders as demo.orders, {PRESENT}",
    ),
    "a schema in which a model of the present is": (
        selected(several(FIRST, other=other(POSTGRESQL, schema="demo_as_of", alias="orders")), "orders"),
        f"as_of would build orders as demo_as_of.orders, {PRESENT}",
    ),
    "one relation for two models": (
        selected(several({"sequence": "0000"}, "then", other=other(POSTGRESQL, schema="more", alias="Orders")),
                 "orders", "other"),
        "as_of would build both orders and other as then.orders; build them in separate runs, each with its own "
        "as_of_schema.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_A_RUN)
def test_a_run_at_an_earlier_moment_that_would_touch_more_is_refused_before_anything_is_built(name: str) -> None:
    act, says = OF_A_RUN[name]
    Refusal(act, [says], SENTENCE).check()


def test_models_that_are_not_selected_do_not_matter() -> None:
    several(SNAPSHOT, other=other(ORACLE))().project.run("orders")


REFUSED = [
    *OF_POSITIONS.values(), *OF_STAGING.values(), *OF_RELATIONS.values(),
    *(Refusal(act, [says], SENTENCE) for act, says in OF_A_RUN.values()),
]  # fmt: skip


@pytest.mark.parametrize("materialized", ["current_state", "history", "current_view"])
def test_hooks_are_for_the_present(materialized: str) -> None:
    """They grant rights on the present relations, or copy them."""
    for position, ran in (({"batch": 1}, [[], []]), (None, [["before"], ["after"]])):
        life, seen = as_of(position, thing(materialized=materialized))(), list[list[str]]()
        if position is None:
            del life.project.variables["as_of"]
        life.project.context |= {"pre_hooks": ["before"], "post_hooks": ["after"], "run_hooks": seen.append}
        life.project.begin("run", ["orders"])
        life.project.materialize(life.project.node("orders"))
        assert [hooks for hooks in seen if hooks is not None] == ran


# --- transaction ids --------------------------------------------------------------------------------------------------

WRAP = 2**32


@pytest.mark.parametrize(
    "newest", [5, 1000, WRAP // 2 + 3, WRAP - 1, WRAP, WRAP + 5, 2 * WRAP - 1, 3 * WRAP + WRAP // 2]
)
def test_32_bits_of_a_transaction_id_are_of_the_id_that_is_nearest_to_the_snapshot(newest: int) -> None:
    """Run by SQLite, which has this much of the SQL."""
    in_progress = [newest - 2, newest - 1]
    macros = PlainProject(Recorder(), "demo").macros
    sql = macros.is_seen(f"{newest - 3}:{newest}:{newest - 2},{newest - 1}").replace("try_cast(", "cast(")
    database = sqlite3.connect(":memory:")
    for distance in (-WRAP // 2, -1000, -3, -2, -1, 0, 1, 1000, WRAP // 2 - 1):
        id_ = newest + distance
        if id_ < 0:
            continue
        for logged in {id_ % WRAP, id_ if id_ >= WRAP else id_ % WRAP}:
            (seen,) = database.execute(f"select {sql} from (select ? as _change_transaction)", [str(logged)]).fetchone()
            assert bool(seen) == (id_ < newest and id_ not in in_progress), (newest, distance, logged)
