"""The package's macros take every declaration that is generated, whatever the names hold: no complaint, and the SQL."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cells import data_change, set_cell
from generated import STAGING, change, generated
from plain_dbt import PlainProject
from reconcile_jobs.generation.avro_types import Header
from reconcile_jobs.generation.bigtable_records import add_data_change as add_cells
from reconcile_jobs.generation.bigtable_records import cell_tables
from reconcile_jobs.generation.declarations import Declaration, of_kind
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.observations import Observations, Place
from reconcile_jobs.generation.plan import Settings
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.rows_plan import plan_of_cells
from reconcile_jobs.generation.streams import BIGTABLE, SPANNER
from reconcile_jobs.process.written_files import write
from reconcile_jobs.spanner.column_types import SPARK_TYPES
from recorder import Recorder
from spanner import data_change_record, mod

RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
ODD = [
    "a`b\"c'd e.f;g", "{% raw %}", "{# #}", RAISE, "# a", "a: b", "null", "Yes", "ÄÖ 李雷", "'; drop", "- x", "\\", "$",
]  # fmt: skip
KINDS = [
    *("bytes", "json", "time-interval-micros", "varchar", "timestampTz", "datetime", "timeTz", "interval", "geometry"),
    *("[]", "bytes[]", "json[]", "timestampTz[]"),
]
TYPES = [
    *(
        "tinyint",
        "int",
        "bigint",
        "float",
        "double",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
        "binary",
    ),
    *("decimal(38,10)", "array<int>", "array<decimal(5,2)>", "map<string,string>"),
]


def read(into: Path) -> list[tuple[Any, str]]:
    """Return what dbt would read: the SELECT of each model as rendered, with the entry of its YAML."""
    project = PlainProject(Recorder(), "demo")
    project.source("lake", "shop_changes")
    found = []
    # A view of rows refers to its cells.
    for file in sorted(into.glob("*.yml"), key=lambda path: (not path.stem.endswith("_cells"), path.name)):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8")).get("models", []):
            name = unrendered(entry["name"])
            columns = {unrendered(column.pop("name")): column for column in entry["columns"]}
            project.model(name, (into / f"{name}.sql").read_text(encoding="utf-8"), columns)
            found.append((project.node(name), project.compile(name)))
    return found


@pytest.mark.parametrize("source", ["mysql", "oracle", "postgresql", "sqlserver"])
def test_every_type_that_is_generated_is_one_that_the_macros_take(tmp_path: Path, source: str) -> None:
    of_source = {
        "mysql": {}, "oracle": {"scn": 1}, "postgresql": {"lsn": "0/1"}, "sqlserver": {"lsn": "0:1:1"},
    }[source]  # fmt: skip
    declared = {f"k{n}": of_kind(kind) or Declaration("") for n, kind in enumerate(KINDS)}
    declared |= {f"t{n}": Declaration(data_type) for n, data_type in enumerate(TYPES)}
    record = change(payload={"id": 1, **dict.fromkeys(declared)}, **of_source)
    generated(tmp_path, [record], headers=[Header(Place(None, "shop", "orders"), declared)])
    ((node, sql),) = read(tmp_path)
    assert [*node["columns"]] == ["id", *declared]
    assert node["config"]["unique_key"] == "id" and "'shop'" in sql and "'orders'" in sql


def test_the_macro_of_spanner_takes_every_type_and_name_that_is_generated(tmp_path: Path) -> None:
    codes = [*SPARK_TYPES, "PG_NUMERIC", "PG_OID", "PG_JSONB", "NOBODY_KNOWS_YET"]
    kinds: list[dict[str, Any]] = [{"code": code} for code in codes]
    kinds += [{"code": "ARRAY", "array_element_type": kind} for kind in kinds]
    types: list[dict[str, Any]] = [
        {"name": f"{ODD[number] if number < len(ODD) else 'c'}{number}", "type": kind, "ordinal_position": number}
        for number, kind in enumerate(kinds)
    ]
    types[0]["is_primary_key"] = True
    keys, values = {types[0]["name"]: "x"}, {of["name"]: None for of in types[1:]}
    records = [data_change_record([mod(keys, values)], table_name=name, column_types=types) for name in ODD]
    plan = generated(tmp_path, records, stream=SPANNER, materialized="history")
    assert len(plan.written) > 8
    found = read(tmp_path)
    for node, sql in found:
        assert [*node["columns"]] == [of["name"] for of in types]
        assert node["config"]["unique_key"] == types[0]["name"]
        for of in types:
            assert f"as `{of['name'].replace('`', '``')}`" in sql
    place = RAISE.replace("'", "\\'")
    assert len([sql for _, sql in found if f"where object = '{place}'" in sql]) == 1


def test_the_macros_of_bigtable_take_every_cell_and_name_that_is_generated(tmp_path: Path) -> None:
    entries = [set_cell("f-1._", name.encode(), 1, b"x") for name in [*ODD, "row_key", "", "a\nb"]]
    entries += [set_cell("f", b"\xff\x00", 1, b"\xff")]
    found = Observations()
    for name in ODD:
        add_cells(found, data_change(b"k", entries), name, 1)
    settings = Settings(STAGING, Pattern("{table}"), "history", stream=BIGTABLE)
    for materialized in ("current_state", "current_view"):
        into = tmp_path / materialized
        plan = plan_of_cells(Project(into), *cell_tables(found), replace(settings, materialized=materialized))
        write(plan.files)
        cells = [entry for entry in read(into) if "_cells" in entry[0]["name"]]
        assert len(cells) > 8 and {node["config"]["materialized"] for node, _ in cells} == {materialized}
        place = RAISE.replace("'", "\\'")
        assert len([sql for _, sql in cells if f"where object = '{place}'" in sql]) == 1
        views = [sql for node, sql in read(into) if "_cells" not in node["name"]]
        assert len(views) == len(cells)
        for sql in views:
            for entry in entries:
                qualifier = base64.b64decode(entry["set_cell"]["qualifier"]).hex()
                assert f"family = '{entry['set_cell']['family']}' and qualifier = X'{qualifier}'" in sql


def test_names_are_those_of_the_source_and_nothing_is_evaluated(tmp_path: Path) -> None:
    payload = dict.fromkeys(["id", *ODD], "x")
    records = [change(name, payload, ["id", RAISE], object=f"o{number}") for number, name in enumerate(ODD)]
    generated(tmp_path, records, name="{schema}_{table}")
    found = read(tmp_path)
    assert len(found) > 8
    for node, sql in found:
        assert [*node["columns"]] == ["id", *ODD] and node["config"]["unique_key"] == ["id", RAISE]
        for name in ODD:
            assert f"as `{name.replace('`', '``')}`" in sql
    place = RAISE.replace("'", "\\'")
    assert len([sql for _, sql in found if f"in (struct('shop', '{place}'))" in sql]) == 1
