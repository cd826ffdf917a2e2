"""What dbt's docs have of the package: a page about it, the tables it makes, and every column described."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from plain_dbt import PACKAGE, PlainProject
from reconcile_jobs.retention import tombstones
from recorder import Recorder, change_columns
from refusals import THINGS, thing
from shapes import BIGTABLE, CELL_KEY, CELLS, ORACLE, Life
from sqlglot import parse_one

MONITORING = PACKAGE / "models" / "monitoring"
TABLES = {
    table["name"]: {column["name"]: column["description"] for column in table["columns"]}
    for source in yaml.safe_load((MONITORING / "tables.yml").read_text())["sources"]
    for table in source["tables"]
}


def statements() -> list[str]:
    """What makes the tables that a project has once."""
    macros = PlainProject(Recorder(), "demo").macros
    return [
        create("iceberg") for create in (
            macros.get_create_ledger_statement, macros.get_create_columns_seen_statement,
            macros.get_create_parity_statement, macros.get_create_parity_differences_statement,
        )
    ]  # fmt: skip


def test_the_tables_of_a_project_are_described_column_by_column_as_they_describe_themselves() -> None:
    # The jobs make this one, see the comments in tombstones.py.
    columns = [re.match(r"(\w+) \w+(?: COMMENT '(.*)')?$", column) for column in tombstones._COLUMNS]
    made = {"reconcile_horizons": {column[1]: column[2] or "" for column in columns if column}}
    for statement in statements():
        name = re.findall(r"`demo`\.`(\w+)` \(", statement)[0]
        made[name] = dict(re.findall(r"^    (\w+) [^']*?(?: comment '(.*)')?,?$", statement, re.M))
    assert {name: list(columns) for name, columns in TABLES.items()} == {name: list(of) for name, of in made.items()}
    for name, columns in made.items():
        assert all(TABLES[name].values())
        assert {column: TABLES[name][column] for column, comment in columns.items() if comment} == {
            column: comment for column, comment in columns.items() if comment
        }


@pytest.mark.parametrize("is_built", [False, True])
def test_the_views_of_a_project_have_the_columns_that_are_described_in_this_order(is_built: bool) -> None:
    """With `persist_docs`, a view takes the names of its columns from there, by their places."""
    life = Life(thing(ORACLE))
    if is_built:
        life.project.run("orders")
    for view in yaml.safe_load((MONITORING / "monitoring.yml").read_text())["models"]:
        query = parse_one(life.project.compile(view["name"]), read="databricks")
        assert query.named_selects == [column["name"] for column in view["columns"]], view["name"]


def test_the_overview_is_the_packages_own_and_no_consumers() -> None:
    """A package's `__overview__` would be the first page of the docs of each project that installs it."""
    texts = [path.read_text() for path in (PACKAGE / "models").rglob("*.md")]
    assert [block for text in texts for block in re.findall(r"{% docs (\w+) %}", text)] == ["__reconcile__"]


def test_the_overview_names_what_there_is() -> None:
    named = set(re.findall(r"`(reconcile_\w+)`", (MONITORING / "overview.md").read_text()))
    assert named == {*TABLES, *(file.stem for file in MONITORING.glob("*.sql"))}


def sources(life: Life) -> list[dict[str, Any]]:
    """The sources that `tables_as_sources` prints, each table with its columns' descriptions."""
    life.project.macros.tables_as_sources()
    (printed,) = life.project.printed
    found = yaml.safe_load(printed)["sources"]
    for source in found:
        source["tables"] = {
            table["name"]: {column["name"]: column["description"] for column in table["columns"]}
            for table in source["tables"]
            if table["description"]
        }
    return list(found)


def test_tables_beside_a_model_are_printed_as_sources_of_the_targets_schema() -> None:
    life = Life(thing())
    life.project.run("orders")
    life.project.model("parts", thing().sql, THINGS)  # not built
    life.warehouse.column_types["__base"] = {"ID": "bigint", "name": "string", "_change_sequence": "string"}
    (source,) = sources(life)
    assert (source["name"], source["schema"]) == ("reconcile_tables", "{{ target.schema }}")
    assert list(source["tables"]) == ["orders__base", "orders__changes", "orders__quarantine"]
    described = source["tables"]["orders__base"]
    assert list(described) == ["ID", "name", "_change_sequence"]
    assert (described["ID"], described["name"]) == ("the id", "the name"), "as the model's YAML says"
    assert described["_change_sequence"].startswith("the place in the order")


def test_schemas_have_a_source_each() -> None:
    life = Life(thing(config={"schema": "demo_sales"}))
    life.project.model("elsewhere", thing(config={"schema": "lake"}).sql, THINGS)
    for name in ("demo_sales.orders__quarantine", "lake.elsewhere__quarantine"):
        life.warehouse.has(name)
    assert [(source["name"], source["schema"]) for source in sources(life)] == [
        ("reconcile_tables_lake", "lake"),
        ("reconcile_tables_sales", "{{ target.schema }}_sales"),
    ]


def test_a_quarantine_describes_its_own_columns_whatever_the_model_declares() -> None:
    life = Life(thing(columns={**THINGS, "record": {"data_type": "string", "description": "of the shop"}}))
    life.project.run("orders")
    life.warehouse.column_types["__quarantine"] = {"record": "string"}
    life.warehouse.column_types["__base"] = {"record": "string"}
    (source,) = sources(life)
    assert source["tables"]["orders__quarantine"] == {"record": "the record as delivered"}
    assert source["tables"]["orders__base"] == {"record": "of the shop"}


@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
@pytest.mark.parametrize("materialized", ["current_state", "history"])
def test_every_column_that_a_table_beside_a_model_can_have_is_described(materialized: str, file_format: str) -> None:
    life = Life(thing(ORACLE))
    for name in ("base", "changes", "quarantine", "row_deletes", "range_deletes"):
        life.warehouse.has(f"demo.orders__{name}")
    settings = {"columns": [], "materialized": materialized, "file_format": file_format}
    base = life.project.macros.stored_columns(settings | {"partial_records": True, "row_ids": True})
    beside = ("_row_id", "_range", "_change_fields", "_change_key", "_change_schema", "record", "origin")
    life.warehouse.column_types["orders__"] = dict.fromkeys(
        [*(name.strip("`") for name in base), *change_columns({}), *beside], "string"
    )
    (source,) = sources(life)
    assert len(source["tables"]) == 5
    assert [(table, name) for table, of in source["tables"].items() for name, said in of.items() if not said] == []


def test_meta_says_what_a_model_reads() -> None:
    """dbt's docs show it among the details of a model."""
    shapes = {
        "reconcile reads shop.orders": thing(ORACLE),
        "reconcile reads events": thing(BIGTABLE, CELLS, CELL_KEY, object="events"),
    }
    for key, shape in shapes.items():
        meta = Life(shape).project.node("orders")["config"]["meta"]
        assert list(meta) == [key] and "coordinates" in meta[key]
