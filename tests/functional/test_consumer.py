"""A project that installs the package: what its users type works."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from datastream import Staged, event, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import tables_in

LAKE = "lake_consumer"
THING = {"id": "bigint", "name": "string"}


def things(source: str, *, unique_key: Any = "id", object_: str = "shop.things", told: str = "", **config: Any) -> str:
    options = "".join(f", {name}={value!r}" for name, value in config.items())
    return (
        f"{{{{ config(materialized='current_state', unique_key={unique_key!r}{options}) }}}}\n"
        f"{{{{ reconcile.datastream_mysql(source('lake', '{source}'), object='{object_}', {told}) }}}}\n"
    )


def thing(
    number: int, name: str, batch: int, change_type: str = "INSERT", object_: str = "shop.things",
    amount: str | None = None, **envelope: Any,
) -> Staged:  # fmt: skip
    place = {"log_position": 1000 * batch + number}
    payload = {"id": number, "name": name, "amount": amount}
    return Staged(event("mysql", payload, change_type, metadata=place, object=object_, **envelope), object_, batch)


@pytest.fixture
def project(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Project:
    """A project with the models things and parts, before anything was appended."""
    name = re.sub(r"\W+", "_", request.node.name.removeprefix("test_"))[:60]
    project = Project(tmp_path / "project", f"c_{name}", threads=2)
    spark.sql(f"create schema if not exists {LAKE}")
    project.source(LAKE, name)
    project.staging = name
    project.model("things", things(name), THING)
    project.model("parts", things(name, object_="shop.parts"), THING)
    return project


def append(spark: SparkSession, project: Project, *rows: Staged) -> None:
    stage(spark, f"{LAKE}.{project.staging}", rows)


@pytest.fixture
def shop(project: Project, spark: SparkSession) -> Project:
    """A project with the models things and parts, built from two rows and one."""
    append(spark, project, thing(1, "one", 1), thing(2, "two", 1), thing(1, "a part", 1, object_="shop.parts"))
    project.dbt("run")
    return project


def rows(spark: SparkSession, project: Project, table: str = "things") -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.table(f"{project.schema}.{table}").collect()))


@pytest.mark.matrix
def test_every_command_of_dbt_works_and_leaves_the_rows_alone(shop: Project, spark: SparkSession) -> None:
    built = [(1, "one"), (2, "two")]
    for command in (
        ["run"],
        ["run", "--empty"],
        ["run", "--select", "things"],
        ["run", "--full-refresh"],
        ["build"],
        ["build", "--empty"],
        ["compile"],
        ["show", "--select", "things", "--limit", "1"],
        ["docs", "generate"],
        ["test"],
        ["parse"],
        ["run", "--full-refresh", "--select", "things"],
        ["run", "--select", "reconcile_unrouted"],
    ):
        shop.dbt(*command)
        assert rows(spark, shop) == built, command
        assert rows(spark, shop, "parts") == [(1, "a part")], command
    append(spark, shop, thing(1, "uno", 2, "UPDATE"), thing(2, "", 2, "DELETE"), thing(3, "three", 2))
    shop.dbt("run", "--empty")
    assert rows(spark, shop) == built
    shop.dbt("run")
    assert rows(spark, shop) == [(1, "uno"), (3, "three")]


def test_docs_have_the_columns_of_models_and_describe_those_of_tables(
    shop: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    shop.dbt("run-operation", "reconcile.tables_as_sources")
    (shop.root / "models" / "reconcile_tables.yml").write_text(capsys.readouterr().out)
    shop.dbt("docs", "generate")
    catalog, manifest = (
        json.loads((shop.root / "target" / f"{of}.json").read_text()) for of in ("catalog", "manifest")
    )
    assert catalog["errors"] is None
    assert list(catalog["nodes"]["model.shop.things"]["columns"]) == ["id", "name"]
    described = {
        name.split(".")[-1]: [column for column in table["columns"] if column in manifest["sources"][name]["columns"]]
        for name, table in catalog["sources"].items()
        if ".lake." not in name
    }
    assert {"reconcile_ledger", "reconcile_columns_seen", "things__base", "parts__quarantine"} <= described.keys()
    assert described["things__base"] == ["id", "name", "_change_sequence", "_change_time", "_change_batch", "_deleted"]
    assert manifest["docs"].keys() == {"doc.dbt.__overview__", "doc.reconcile.__reconcile__"}


@pytest.mark.matrix
def test_the_first_run_may_be_empty(project: Project, spark: SparkSession) -> None:
    append(spark, project, thing(1, "one", 1))
    project.dbt("build", "--empty")
    assert rows(spark, project) == []
    project.dbt("run")
    assert rows(spark, project) == [(1, "one")]


def test_a_models_options_are_honoured(project: Project, spark: SparkSession) -> None:
    append(spark, project, thing(1, "one", 1))
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {project.schema}.hooked (moment string) using {file_format()}")
    hook = "insert into " + project.schema + ".hooked values ('{} {{{{ this }}}}')"
    project.model(
        "things",
        things(
            project.staging,
            alias="stuff",
            schema="more",
            tags=["nightly"],
            pre_hook=hook.format("before"),
            post_hook=hook.format("after"),
            grants={},
            persist_docs={"relation": True, "columns": True},
            file_format=file_format(),
            meta={"owner": "shop"},
        ),
        THING,
        description="What's in \\ the {shop}; `all` of it",
    )
    declared = yaml.safe_load((project.root / "models" / "things.yml").read_text())
    declared["models"][0]["columns"][1]["description"] = "the thing's \\name"
    (project.root / "models" / "things.yml").write_text(yaml.safe_dump(declared))
    project.dbt("run", "--select", "tag:nightly")
    relation = f"{project.schema}_more.stuff"
    assert sorted(row.moment for row in spark.table(f"{project.schema}.hooked").collect()) == [
        f"after {relation}",
        f"before {relation}",
    ]
    assert [tuple(row) for row in spark.table(relation).collect()] == [(1, "one")]
    assert tables_in(spark, f"{project.schema}_more") == {"stuff", "stuff__base", "stuff__changes", "stuff__quarantine"}
    assert not spark.catalog.tableExists(f"{project.schema}.parts")
    description = spark.sql(f"describe extended {relation}").collect()
    assert [row.data_type for row in description if row.col_name == "Comment"] == [declared["models"][0]["description"]]
    assert [row.comment for row in description if row.col_name == "name"] == ["the thing's \\name"]
    project.dbt("test")


AMOUNT = {"id": "bigint", "name": "string", "amount": "decimal(9,2)"}
GENERATIONS = "generations=['2026-11-01 00:00:00+00']"


@pytest.mark.matrix
def test_a_full_refresh_builds_the_table_with_the_columns_that_are_declared_now(
    project: Project, spark: SparkSession
) -> None:
    append(spark, project, thing(1, "one", 1, amount="1.25"), thing(2, "two", 1, amount="2.125"))
    project.model("things", things(project.staging), AMOUNT)
    project.dbt("run", "--select", "things")
    assert rows(spark, project) == [(1, "one", Decimal("1.25"))]
    columns = {"id": "bigint", "title": "string", "size": "int", "amount": "decimal(9,3)"}
    to_come = things(project.staging, meta={"ignored_columns": ["title", "size"]})
    project.model("things", to_come, columns)
    append(spark, project, thing(3, "three", 2))
    project.dbt("run", "--full-refresh", "--select", "things")
    assert dict(spark.table(f"{project.schema}.things").dtypes) == columns
    amounts = {1: Decimal("1.250"), 2: Decimal("2.125"), 3: None}
    assert rows(spark, project) == [(number, None, None, amount) for number, amount in amounts.items()]


@pytest.mark.matrix
def test_what_comes_after_a_generations_beginning_is_newer_whatever_its_place_in_the_log(
    project: Project, spark: SparkSession
) -> None:
    late = {"source_timestamp": "2026-11-02T00:00:00Z"}
    nowhere = {"without": ["source_timestamp"]}
    append(
        spark,
        project,
        thing(1, "of the old log", 9, **{"source_timestamp": "2026-10-31T23:59:59.999Z"}),
        thing(1, "of the new log", 1, **late),
        thing(2, "at no time", 1, **nowhere),
    )
    project.model("things", things(project.staging, told=GENERATIONS), THING, data_tests=["reconcile.no_quarantine"])
    project.dbt("run", "--select", "things")
    assert rows(spark, project) == [(1, "of the new log")]
    (row,) = spark.table(f"{project.schema}.things__quarantine").collect()
    assert row._change_error == "source_timestamp, which determines the generation, is missing or unreadable"


@pytest.mark.parametrize(
    ("order", "taken"), [(None, "shop.spark__cached"), (["reconcile", "shop"], "reconcile.default__cached")]
)
def test_a_projects_own_form_of_a_macro_is_taken_unless_it_says_otherwise(
    tmp_path: Path, order: list[str] | None, taken: str
) -> None:
    """`dbt parse` renders the model and opens no session."""
    project = Project(tmp_path / "project", "own_forms")
    (project.root / "macros").mkdir()
    (project.root / "macros" / "own.sql").write_text(
        "{% macro spark__cached(name, query, lazy=false) %}{{ return('own ' ~ name) }}{% endmacro %}"
    )
    if order:
        file = project.root / "dbt_project.yml"
        dispatch = [{"macro_namespace": "reconcile", "search_order": order}]
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "dispatch": dispatch}))
    project.model("one", "{{ config(meta={'kept': reconcile.cached('rows', 'select 1')}) }}\nselect 1 as id", {})
    manifest = project.dbt("parse").result
    assert manifest.macros["macro.reconcile.cached"].depends_on.macros == [f"macro.{taken}"]
    kept = manifest.nodes["model.shop.one"].config.meta["kept"]
    assert kept == "own rows" if taken.startswith("shop") else kept.startswith("cache table rows as\nselect *")
