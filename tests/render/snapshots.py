"""A model beside a relation with the rows of its source, as the test parity compares them."""

from __future__ import annotations

from plain_dbt import Relation
from shapes import Life, Shape

SNAPSHOT = Relation("lake", "orders_source")
TAKEN_AT = "2026-11-22T10:00:00Z"


def taken(kind: str, position: str, taken_at: str = TAKEN_AT) -> dict[str, str]:
    """Return what a snapshot says of itself."""
    job = "spanner" if kind == "read_timestamp" else "jdbc"
    return {
        "snapshot": job, "snapshot__position_kind": kind, "snapshot__position": position,
        "snapshot__taken_at": taken_at,
    }  # fmt: skip


def beside_a_snapshot(shape: Shape, said: dict[str, str]) -> Life:
    """Return a model that was run, beside a snapshot that says this of itself; both have the model's columns."""
    life = Life(shape)
    life.project.run("orders")
    life.warehouse.has(str(SNAPSHOT), **{f"reconcile__{name}": value for name, value in said.items()})
    for name in ("`demo`.`orders`", "`lake`.`orders_source`"):
        answer_columns(life, name)
    return life


def answer_columns(life: Life, name: str) -> None:
    """Let a relation have the model's columns. What is asked first of a SELECT goes by the part that was said first."""
    warehouse = life.warehouse
    warehouse.column_types = {f"select * from {name} where false": life.shape.columns, **warehouse.column_types}
