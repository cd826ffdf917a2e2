"""A project that installs the package: what its users type works, and what cannot work says so in a sentence."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from datastream import Staged, event, stage
from file_formats import file_format
from projects import PACKAGE, Project
from pyspark.sql import SparkSession
from tables import tables_in
from truth import CAPTURE, COLUMNS, rows_of, true_rows

CONSUMER = PACKAGE / "tests" / "consumer"
APPEND = ["spark-submit", "dbt_packages/reconcile/ingestion/append.py", "datastream"]
SNAPSHOT = ["spark-submit", "dbt_packages/reconcile/ingestion/snapshot.py", "csv"]


class Consumer:
    """A copy of tests/consumer, and what its user types there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(
            CONSUMER,
            root,
            ignore=shutil.ignore_patterns("target", "logs", "dbt_packages", "lakehouse", "package-lock.yml"),
        )
        packages = yaml.safe_load((root / "packages.yml").read_text())
        assert packages == {"packages": [{"local": "../.."}]}
        (root / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))

    def types(self, *words: str, code: int = 0, configured: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SPARK_CONF_DIR": "dbt_packages/reconcile/conf"}
        if not configured:
            del environment["SPARK_CONF_DIR"]
        ended = subprocess.run(words, cwd=self.root, env=environment, capture_output=True, text=True)
        assert ended.returncode == code, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
        return ended


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Consumer:
    consumer = Consumer(tmp_path_factory.mktemp("consumer") / "shop")
    consumer.types("dbt", "deps")
    return consumer


def test_no_node_of_the_demo_is_seen(consumer: Consumer) -> None:
    listed = consumer.types("dbt", "--quiet", "ls", "--output", "json", "--output-keys", "unique_id", "package_name")
    nodes = [json.loads(line) for line in listed.stdout.splitlines()]
    package = {node["unique_id"] for node in nodes if node["package_name"] == "reconcile"}
    assert package == {"model.reconcile.reconcile_lag", "model.reconcile.reconcile_unrouted"}
    own = Counter(node["unique_id"].split(".")[0] for node in nodes if node["package_name"] == "shop")
    assert own == {"model": 4, "source": 2, "test": 12}


@pytest.mark.matrix
def test_without_its_spark_configuration_a_run_says_what_is_missing(tmp_path: Path) -> None:
    consumer = Consumer(tmp_path / "shop")
    consumer.types("dbt", "deps")
    ended = consumer.types("dbt", "--no-use-colors", "run", code=2, configured=False)
    said = [line for line in ended.stdout.splitlines() if "SPARK_CONF_DIR" in line]
    assert said
    assert {line.strip() for line in said} == {
        "This Spark session does not know Delta: set SPARK_CONF_DIR to the package's conf/ directory "
        "(dbt_packages/reconcile/conf), of a Thrift server where that is started, and run again."
    }


def test_append_run_and_test_as_the_readme_has_it(consumer: Consumer, spark: SparkSession) -> None:
    said = consumer.types(*APPEND, "--path", str(CAPTURE / "mysql_json"), "--staging", "lake.shop_changes")
    assert json.loads(said.stdout)["records"] == 15261
    types = "id bigint, customer_id bigint, status string, total decimal(38,10), placed_at timestamp, due_on date, "
    export = [
        "--path",
        str(CAPTURE / "truth" / "orders.csv"),
        "--schema",
        f"{types} updated_at timestamp, ratio double",
    ]
    consumer.types(*SNAPSHOT, *export, "--into", "lake.orders_source", "--null", "\\N")
    ran = consumer.types("dbt", "--no-use-colors", "run")
    assert "PASS=7 WARN=0 ERROR=0 SKIP=0" in ran.stdout
    assert (ran.stderr, re.findall("WARN |deprecat", ran.stdout)) == ("", [])
    tested = consumer.types("dbt", "--no-use-colors", "test")
    assert "PASS=13 WARN=0 ERROR=0 SKIP=0" in tested.stdout  # twelve tests and the hook
    for table in COLUMNS:
        base = f"delta.`{consumer.root}/lakehouse/warehouse/shop.db/{table}__base`"
        columns = ", ".join(COLUMNS[table])
        spark.sql(f"create or replace temporary view consumed as select {columns} from {base} where not _deleted")
        assert rows_of(spark, "consumed") == true_rows(table)
        spark.catalog.dropTempView("consumed")


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


def failures(outcome: Any) -> dict[str, str]:
    assert not outcome.success
    return {r.node.name: r.message for r in outcome.result.results if r.status not in ("success", "pass")}


def test_before_the_first_append_a_run_says_that_there_is_no_staging_table(project: Project) -> None:
    said = failures(project.dbt("run", succeed=False))
    assert set(said) == {"things", "parts"}
    for model, message in said.items():
        sentence = f"the staging table {LAKE}.{project.staging} does not exist; fill it with ingestion/append.py first"
        assert message.splitlines()[1:3] == [f"  Model {model}:", f"    - {sentence}"]


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


def test_the_catalog_of_docs_has_the_models_columns(shop: Project) -> None:
    shop.dbt("docs", "generate")
    catalog = json.loads((shop.root / "target" / "catalog.json").read_text())
    assert catalog["errors"] is None
    assert list(catalog["nodes"]["model.shop.things"]["columns"]) == ["id", "name"]


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
CHANGED = {  # the columns, the configuration, and what the macro is told now
    "added": ({**AMOUNT, "size": "int"}, {}, ""),
    "renamed": ({"id": "bigint", "title": "string", "amount": "decimal(9,2)"}, {}, ""),
    "retyped": ({**AMOUNT, "amount": "decimal(9,3)"}, {}, ""),
    "rounded": ({**AMOUNT, "amount": {"data_type": "decimal(9,2)", "config": {"meta": {"round": True}}}}, {}, ""),
    "rekeyed": (AMOUNT, {"unique_key": ["id", "name"]}, ""),
    "regenerated": (AMOUNT, {}, GENERATIONS),
}


@pytest.mark.matrix
def test_a_changed_declaration_is_refused_until_a_full_refresh(project: Project, spark: SparkSession) -> None:
    append(spark, project, thing(1, "one", 1, amount="1.25"), thing(2, "two", 1, amount="2.125"))
    for model in CHANGED:
        project.model(model, things(project.staging), AMOUNT)
    project.dbt("run", "--select", *CHANGED)
    for model, (columns, config, told) in CHANGED.items():
        project.model(model, things(project.staging, told=told, **config), columns)
    append(spark, project, thing(3, "three", 2))
    said = failures(project.dbt("run", "--select", *CHANGED, succeed=False))
    assert set(said) == set(CHANGED)
    for model, message in said.items():
        what = {"rekeyed": "unique_key", "regenerated": "source macros, objects or generations"}.get(model, "columns")
        assert f"was built with other {what}; rebuild it with" in message
        assert f"rebuild it with `dbt run --full-refresh --select {model}`" in message
        assert [row[0] for row in rows(spark, project, model)] == [1]
    project.dbt("run", "--full-refresh", "--select", *CHANGED)
    for model, (columns, _, _) in CHANGED.items():
        types = {name: said if isinstance(said, str) else said["data_type"] for name, said in columns.items()}
        assert dict(spark.table(f"{project.schema}.{model}").dtypes) == types
    amounts = {
        model: {row[0]: row.amount for row in spark.table(f"{project.schema}.{model}").collect()} for model in CHANGED
    }
    assert amounts["retyped"] == {1: Decimal("1.25"), 2: Decimal("2.125"), 3: None}
    assert amounts["rounded"] == {1: Decimal("1.25"), 2: Decimal("2.13"), 3: None}
    assert set(amounts["added"]) == {1, 3}


@pytest.mark.matrix
def test_a_staging_table_made_anew_is_not_taken_for_applied(shop: Project, spark: SparkSession) -> None:
    append(spark, shop, thing(3, "three", 2))
    shop.dbt("run", "--select", "things")
    spark.sql(f"drop table {LAKE}.{shop.staging}")
    append(spark, shop, thing(4, "four", 1))
    said = failures(shop.dbt("run", "--select", "things", succeed=False))
    assert f"and the last one of {LAKE}.{shop.staging} is 1: that table was restored or made anew" in said["things"]
    assert "rebuild with `dbt run --full-refresh --select things`" in said["things"]
    shop.dbt("run", "--full-refresh", "--select", "things")
    assert rows(spark, shop) == [(4, "four")]


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
    assert row._change_error == "source_timestamp, which tells the generation, is missing or unreadable"
    for wrong in ("generations='2026-11-01 00:00:00+00'", "generations=['2026-13-01 00:00:00+00']"):
        project.model("parts", things(project.staging, told=wrong), THING)
        assert "write it as" in failures(project.dbt("run", "--select", "parts", succeed=False))["parts"]


def test_another_order_of_columns_or_spelling_of_types_is_no_change(shop: Project, spark: SparkSession) -> None:
    shop.model("things", things(shop.staging), {"name": "STRING", "id": "long"})
    shop.dbt("run", "--select", "things")
    assert spark.table(f"{shop.schema}.things").columns == ["name", "id"]
    assert rows(spark, shop) == [("one", 1), ("two", 2)]


@pytest.mark.matrix
def test_what_is_somebody_elses_is_never_replaced(project: Project, spark: SparkSession) -> None:
    append(spark, project, thing(1, "one", 1))
    spark.sql(f"create schema if not exists {project.schema}")
    theirs = {"a": "a", "b": "b__base", "c": "c__changes", "d": "d__quarantine"}
    for model, relation in theirs.items():
        project.model(model, things(project.staging), THING)
        spark.sql(f"create table {project.schema}.{relation} using {file_format()} as select 'precious' as content")
    for arguments in ([], ["--full-refresh"]):
        said = failures(project.dbt("run", *arguments, "--exclude", "things", succeed=False))
        assert set(said) == set(theirs)
        for model, relation in theirs.items():
            assert f"{project.schema}.{relation} exists" in said[model]
            assert "drop or rename it" in said[model]
            assert rows(spark, project, relation) == [("precious",)]
    parts = {f"parts{part}" for part in ("", "__base", "__changes", "__quarantine")}
    ours = {"reconcile_lag", "reconcile_ledger", "reconcile_unrouted"}
    assert tables_in(spark, project.schema) == parts | set(theirs.values()) | ours


@pytest.mark.matrix
def test_a_model_that_fails_leaves_the_others_alone(shop: Project, spark: SparkSession) -> None:
    shop.model("broken", things(shop.staging), {"id": "interval", "_deleted": "int"})
    shop.model("keyless", "{{ config(materialized='current_state') }} select 1 as id", {"id": "int"})
    rounded = {"id": {"data_type": "bigint", "config": {"meta": {"round": True}}}}
    shop.model("rounded", "{{ config(materialized='current_state', unique_key='id') }} select 1 as id", rounded)
    append(spark, shop, thing(3, "three", 2))
    said = failures(shop.dbt("run", succeed=False))
    assert set(said) == {"broken", "keyless", "rounded"}
    assert "unique_key" in said["keyless"]
    assert "rounded keys of different rows would be one" in said["rounded"]
    assert rows(spark, shop) == [(1, "one"), (2, "two"), (3, "three")]
