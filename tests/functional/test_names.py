"""Names of columns, objects and tables, whatever they hold, in dbt and a catalog: they work, nothing is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import tables_in

LAKE = "lake_names"
# A table that somebody would drop, and Jinja that somebody would evaluate.
DROP = f"'; drop table {LAKE}.canary; --"
RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
EVERYTHING = f"SHOP.{DROP} `; \" {RAISE} {{% raw %}} {{# #}} ${{env:HOME}} %s \\ \\' ÄÖ 李雷 /* */"

ODD = [
    "a`b\"c'd e.f;g,h=i(j){k}\tl\\m/n%s$o?p:q--r/*s", "``", " a", "a\\'b", "*", "\\E.*", "ÄÖ 李雷 🦆",
    "a" * 200, "0", "select", "null", "%(a)s", "{% raw %}", "{# #}", RAISE, DROP,
]  # fmt: skip


def jinja(text: str) -> str:
    """Return a text as a literal of Jinja."""
    return json.dumps(text)


def yaml_name(name: str) -> str:
    """Return a name for dbt's YAML, where Jinja is evaluated."""
    return f"{{{{ {jinja(name)} }}}}" if "{" in name else name


def model(staging: str, object_: str, unique_key: list[str], **config: Any) -> str:
    options = "".join(f", {name}={jinja(value)}" for name, value in config.items())
    return (
        f"{{{{ config(materialized='current_state', unique_key=[{', '.join(map(jinja, unique_key))}]{options}) }}}}\n"
        f"{{{{ reconcile.datastream_mysql(source('lake', {jinja(staging)}), object={jinja(object_)}) }}}}\n"
    )


def change(object_: str, payload: dict[str, Any], batch: int = 1, change_type: str = "INSERT") -> Staged:
    place = {"log_position": 1000 + batch}
    return Staged(event("mysql", payload, change_type, metadata=place, object=object_), object_, batch)


@pytest.fixture(autouse=True)
def canary(spark: SparkSession) -> Any:
    """The table that must not be dropped."""
    spark.sql(f"create schema if not exists {LAKE}")
    spark.sql(f"create table if not exists {LAKE}.canary using {file_format()} as select 'lives' as it")
    yield
    assert [row.it for row in spark.table(f"{LAKE}.canary").collect()] == ["lives"]


def failures(outcome: Any) -> dict[str, str]:
    assert not outcome.success
    return {r.node.alias: r.message for r in outcome.result.results if r.status not in ("success", "pass")}


@pytest.mark.matrix
def test_columns_and_keys_of_any_name_hold_their_values(spark: SparkSession, tmp_path: Path) -> None:
    schema = "names_columns"
    names, keys = ["id", *ODD], ["id", ODD[0], "``", DROP, RAISE]
    project = Project(tmp_path / "project", schema)
    project.source(LAKE, schema)
    parity = {"arguments": {"compare_to": "ref('odd')", "key": [yaml_name(key) for key in keys]}}
    tests = ["no_quarantine", "one_payload_per_sequence", "ledger_balances"]
    project.model(
        "odd",
        model(schema, "shop.odd", keys),
        {yaml_name(name): "string" for name in names},
        data_tests=[{"reconcile.parity": parity}, *(f"reconcile.{test}" for test in tests)],
        config={"persist_docs": {"columns": True}},
    )
    first = {name: f"{number} of {name}" for number, name in enumerate(names)}
    second = {**first, "id": "2"}
    stage(spark, f"{LAKE}.{schema}", [change("shop.odd", first), change("shop.odd", second)])
    project.dbt("run", "--select", "odd")
    assert spark.table(f"{schema}.odd").columns == names
    rows = {row[0]: tuple(row) for row in spark.table(f"{schema}.odd").collect()}
    assert rows == {row["id"]: tuple(row.values()) for row in (first, second)}
    changed = {name: value if name in keys else f"new {value}" for name, value in first.items()}
    changes = [change("shop.odd", changed, 2, "UPDATE"), change("shop.odd", second, 2, "DELETE")]
    stage(spark, f"{LAKE}.{schema}", changes)
    project.dbt("build", "--select", "odd")
    assert [tuple(row) for row in spark.table(f"{schema}.odd").collect()] == [tuple(changed.values())]


@pytest.mark.soak
def test_an_object_of_any_name_is_found(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", "names_objects")
    project.source(LAKE, "of_objects")
    project.model(
        "odd", model("of_objects", EVERYTHING, ["id"]), {"id": "string"}, data_tests=["reconcile.ledger_balances"]
    )
    others = [EVERYTHING + " ", EVERYTHING.lower(), "canary", DROP]
    stage(spark, f"{LAKE}.of_objects", [change(name, {"id": name}) for name in [EVERYTHING, *others]])
    project.dbt("build")
    assert [row.id for row in spark.table("names_objects.odd").collect()] == [EVERYTHING]
    assert {row.object for row in spark.table("names_objects.reconcile_unrouted").collect()} == set(others)
    (ledger,) = spark.table("names_objects.reconcile_ledger").collect()
    assert (ledger.object, ledger.delivered, ledger.applied) == (EVERYTHING, 1, 1)


WORKING = ["select", "order", "1st", "x" * 100]
REFUSED = [RAISE, DROP]


def test_relations_are_named_as_the_catalog_allows_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    """What a macro refuses dbt says of that model alone, and builds the others; tests/render has all such names."""
    project = Project(tmp_path / "project", "names_relations")
    project.source(LAKE, "of_relations")
    for number, alias in enumerate([*WORKING, *REFUSED]):
        project.model(f"m{number}", model("of_relations", "shop.odd", ["id"], alias=alias), {"id": "string"})
    stage(spark, f"{LAKE}.of_relations", [change("shop.odd", {"id": "1"})])
    said = failures(project.dbt("run", succeed=False))
    assert set(said) == set(REFUSED)
    for number, alias in enumerate(REFUSED, start=len(WORKING)):
        sentence = (
            f"Spark's catalog does not accept the name '{alias}': a name has at most 240 ASCII letters, digits and _"
        )
        lines = said[alias].splitlines()
        assert lines[1:3] == [f"  Model m{number}:", f"    - {sentence}; give the model an alias"]
    for alias in WORKING:
        assert [row.id for row in spark.table(f"names_relations.`{alias}`").collect()] == ["1"]
    parts = {f"{alias}{part}" for alias in WORKING for part in ("", "__base", "__changes", "__quarantine")}
    assert tables_in(spark, "names_relations") == parts | {
        "reconcile_columns_seen", "reconcile_drift", "reconcile_lag", "reconcile_ledger", "reconcile_models",
        "reconcile_quarantine", "reconcile_status", "reconcile_unrouted",
    }  # fmt: skip
