"""Columns and objects of any name hold their values: `tests/functional/test_names.py` has them in dbt and a catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import PACKAGE, Relation
from pyspark.sql import SparkSession

LAKE = "lake_names"
# A table that somebody would drop, and Jinja that somebody would evaluate.
DROP = f"'; drop table {LAKE}.canary; --"
RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
EVERYTHING = f"SHOP.{DROP} `; \" {RAISE} {{% raw %}} {{# #}} ${{env:HOME}} %s \\ \\' ÄÖ 李雷 /* */"

ODD = [
    "a`b\"c'd e.f;g,h=i(j){k}\tl\\m/n%s$o?p:q--r/*s", "``", " a", "a\\'b", "*", "\\E.*", "ÄÖ 李雷 🦆",
    "a" * 200, "0", "select", "null", "%(a)s", "{% raw %}", "{# #}", RAISE, DROP,
]  # fmt: skip
# what the SQL of the package calls things
TAKEN = [
    "record", "origin", "object", "event", "payload", "metadata", "is_backfill", "lower_names", "error", "value id",
    "newest", "base", "records", "sequence", "_records", "_base_sequence", "is_applied", "x", "k", "verdict", "columns",
    "_copy", "coordinates", "_corrupt_record", "names", "fields", "texts", "lost", "name", "field", "i", "digits",
    "field_names", "staged", "events", "image_url", "password_hash", "token",
]  # fmt: skip


def model(staging: str, object_: str, unique_key: list[str]) -> str:
    keys = ", ".join(map(json.dumps, unique_key))
    return (
        f"{{{{ config(materialized='current_state', unique_key=[{keys}]) }}}}\n"
        f"{{{{ reconcile.datastream_mysql(source('lake', '{staging}'), object={json.dumps(object_)}) }}}}\n"
    )


def change(object_: str, payload: dict[str, Any], batch: int = 1, change_type: str = "INSERT") -> Staged:
    place = {"log_position": 1000 + batch}
    return Staged(event("mysql", payload, change_type, metadata=place, object=object_), object_, batch)


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def project_of(memory: Memory, name: str) -> MemoryProject:
    project = memory.project(f"names_{name}")
    project.source(LAKE, name)
    return project


def test_columns_and_keys_of_any_name_hold_their_values(memory: Memory) -> None:
    names, keys = ["id", *ODD, *TAKEN], ["id", ODD[0], "``", DROP, RAISE, "error", "newest", "coordinates"]
    project = project_of(memory, "columns")
    project.model("odd", model("columns", "shop.odd", keys), dict.fromkeys(names, "string"))
    first = {name: f"{number} of {name}" for number, name in enumerate(names)}
    second = {**first, "id": "2"}
    memory.stage(f"{LAKE}.columns", [change("shop.odd", first), change("shop.odd", second)])
    project.run("odd")
    odd = "names_columns.odd"
    assert memory.table(odd).columns == names
    rows = {row[0]: tuple(row) for row in memory.rows(odd)}
    assert rows == {row["id"]: tuple(row.values()) for row in (first, second)}
    changed = {name: value if name in keys else f"new {value}" for name, value in first.items()}
    changes = [change("shop.odd", changed, 2, "UPDATE"), change("shop.odd", second, 2, "DELETE")]
    memory.stage(f"{LAKE}.columns", changes)
    project.run("odd")
    assert [tuple(row) for row in memory.rows(odd)] == [tuple(changed.values())]
    for test in ("no_quarantine", "one_payload_per_sequence", "ledger_balances"):
        assert project.failing(test, "odd") == []
    # Every column but the key differs, and is named.
    there = {name: value if name in keys else "another" for name, value in changed.items()}
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in names)
    source = Relation(LAKE, "columns_source")
    memory.keep(str(source), memory.spark.createDataFrame([tuple(there.values())], schema))
    (found,) = project.failing("parity", "odd", compare_to=source, key=keys)
    assert [column.column for column in found["columns"]] == [name for name in names if name not in keys]


def names_of_a_comparison() -> list[str]:
    """Return what the SQL of parity's verdicts calls its columns, beside which those of a key stand."""
    code = (PACKAGE / "macros" / "parity" / "verdicts.sql").read_text()
    return sorted(set(re.findall(r"\bas ([a-z][a-z_]*)\b", re.sub(r"\{#.*?#\}", "", code, flags=re.DOTALL))))


def test_the_columns_of_a_key_may_have_the_names_that_a_comparison_uses(memory: Memory) -> None:
    """At a position, and all columns are texts."""
    keys = names_of_a_comparison()
    assert {"key", "verdict", "difference", "rows", "quarantined"} <= set(keys)
    names = [*keys, "note"]
    project = project_of(memory, "keys")
    project.model("taken", model("keys", "shop.taken", keys), dict.fromkeys(names, "string"))
    first, second = ({name: f"{number} {name}" for name in names} for number in (1, 2))
    memory.stage(f"{LAKE}.keys", [change("shop.taken", first), change("shop.taken", second)])
    project.run("taken")
    memory.stage(f"{LAKE}.keys", [change("shop.taken", {**first, "note": "new"}, 2, "UPDATE")])
    project.run("taken")
    rows = {row.note: row.asDict() for row in memory.table("names_keys.taken").select(*names).collect()}
    assert rows == {"new": {**first, "note": "new"}, "2 note": second}
    source = Relation(LAKE, "keys_source")
    there = {**first, "note": "another"}
    schema = ", ".join(f"`{name}` string" for name in names)
    memory.keep(str(source), memory.spark.createDataFrame([tuple(there.values())], schema))
    found = project.failing("parity", "taken", compare_to=source, key=keys, as_of={"batch": 1})
    # The last columns are verdict, difference, reason and the columns that differ; some of the key have the same names.
    assert sorted((row[-4], row[-3], [one.column for one in row[-1] or []]) for row in found) == [
        ("confirmed", "different", ["note"]), ("confirmed", "unexpected", []),
    ]  # fmt: skip


def test_an_object_of_any_name_is_found(memory: Memory) -> None:
    project = project_of(memory, "objects")
    project.model("odd", model("objects", EVERYTHING, ["id"]), {"id": "string"})
    # The last one is what other jobs call the row that says where an append ended; a file may say it of a record.
    others = [EVERYTHING + " ", EVERYTHING.lower(), "canary", DROP, "#cut"]
    memory.stage(f"{LAKE}.objects", [change(name, {"id": name}) for name in [EVERYTHING, *others]])
    project.run("odd", "reconcile_unrouted")
    assert [row.id for row in memory.rows("names_objects.odd")] == [EVERYTHING]
    assert {row.object for row in memory.rows("names_objects.reconcile_unrouted")} == set(others)
    assert project.failing("ledger_balances", "odd") == []
    (ledger,) = memory.rows("names_objects.reconcile_ledger")
    assert (ledger.object, ledger.delivered, ledger.applied) == (EVERYTHING, 1, 1)


def test_a_table_may_have_a_hundred_columns(memory: Memory) -> None:
    types = ["bigint", "decimal(38,10)", "string", "timestamp", "date", "double", "boolean", "binary"]
    columns = {"id": "bigint", **{f"a_column_{n}_of_usual_length": types[n % len(types)] for n in range(99)}}
    project = project_of(memory, "wide")
    project.model("wide", model("wide", "shop.wide", ["id"]), columns)
    values = {**dict.fromkeys(columns), "id": "1", "a_column_1_of_usual_length": "1.5"}
    memory.stage(f"{LAKE}.wide", [change("shop.wide", values)])
    project.run("wide")
    (row,) = memory.rows("names_wide.wide")
    assert {name: str(value) for name, value in row.asDict().items() if value is not None} == {
        "id": "1", "a_column_1_of_usual_length": "1.5000000000",
    }  # fmt: skip
