"""By which columns base tables are clustered: what is written, under which names, and what a rebuild takes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from refusals import thing
from shapes import MYSQL, ORACLE, SHAPES, Life, Shape

BASE = "create or replace table `demo`.`orders__base`"


def base(shape: Shape, phase: str = "first run") -> str:
    (made,) = (sql for sql in Life(shape).statements(phase) if sql.startswith(BASE))
    return made


def noted(sql: str) -> list[str] | None:
    """Return the columns that the property names; None without it."""
    _, found, rest = sql.partition("'reconcile.cluster_by' = '")
    said: list[str] | None = json.loads(bytes.fromhex(rest.split("'")[0])) if found else None
    return said


@pytest.mark.parametrize("materialized", ["current_state", "history"])
@pytest.mark.parametrize("by", ["id", ["id"]])
def test_one_column_may_stand_alone(by: Any, materialized: str) -> None:
    shape = thing(meta={"cluster_by": by}, materialized=materialized)
    made = base(shape)
    assert "using delta\ncluster by (`id`)\n" in made
    assert noted(made) is None and "order by `id`" not in made
    made = base(replace(shape, file_format="iceberg"))
    assert "cluster by" not in made and made.endswith("\norder by `id`")
    assert noted(made) == ["id"]


@pytest.mark.parametrize("name", ["a`b", "it's", "sel ect", "url token"])
def test_columns_have_their_names_in_the_table(name: str) -> None:
    columns = {"id": "bigint", name: "string"}
    quoted = "`" + name.replace("`", "``") + "`"
    assert f"cluster by ({quoted}, `id`)" in base(thing(columns=columns, meta={"cluster_by": [name, "id"]}))
    made = base(thing(columns=columns, meta={"cluster_by": [name, "id"]}, file_format="iceberg"))
    assert made.endswith(f"\norder by {quoted}, `id`")
    assert noted(made) == [name, "id"]


def test_an_address_that_is_the_key_has_its_name_in_the_table() -> None:
    shape = Shape(ORACLE, key="_row_id", row_ids=True, meta={"cluster_by": "_row_id"})
    assert "cluster by (`_row_id`)" in base(shape)
    made = base(replace(shape, file_format="iceberg"))
    assert made.endswith("order by `_change_row_id`") and noted(made) == ["_change_row_id"]


def test_own_statistics_are_trusted() -> None:
    columns = {"id": "bigint", **{f"c{place}": "int" for place in range(2, 120)}}
    for file_format, own in (
        ("delta", {"delta.dataSkippingStatsColumns": "c110"}),
        ("iceberg", {"write.metadata.metrics.column.c110": "full"}),
    ):
        base(
            thing(columns=columns, meta={"cluster_by": "c110"}, config={"tblproperties": own}, file_format=file_format)
        )


def test_a_table_of_an_earlier_moment_is_not_clustered() -> None:
    for name in ("mysql_clustered", "iceberg_clustered"):
        shape = replace(SHAPES[name], as_of={"batch": 2})
        (made,) = (sql for sql in Life(shape).statements("first run") if "`orders__base`\nusing" in sql)
        assert "cluster" not in made and "\norder by" not in made


def test_a_rebuild_without_the_option_takes_back_what_iceberg_keeps() -> None:
    life = Life(SHAPES["iceberg_clustered"])
    life.statements("first run")
    assert "reconcile.cluster_by" in life.warehouse.properties["demo.orders__base"]
    node = life.project.node("orders")
    node["config"]["meta"] = {}
    life.project.model("orders", replace(SHAPES["iceberg_clustered"], meta={}).sql, node["columns"], config={})
    (made,) = (sql for sql in life.statements("rebuild") if sql.startswith(BASE))
    assert "'reconcile.cluster_by' = ''" in made and "\norder by" not in made


def test_a_table_that_never_was_clustered_says_nothing_of_it() -> None:
    for file_format in ("delta", "iceberg"):
        made = base(Shape(MYSQL, file_format=file_format))
        assert "cluster" not in made and "\norder by" not in made
