"""What is Iceberg's own: the form of the tables, names that it keeps for itself, and buckets."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import projects
import pytest
from datastream import Staged, event
from dbt.cli.main import dbtRunner
from file_formats import file_format
from plain_dbt import PlainProject, Relation, Rows
from process.spark_warehouse import SparkWarehouse
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshot_differences import snapshot_properties
from reconcile_jobs.snapshots import snapshot_table
from reconcile_jobs.staging import TableName
from reconcile_jobs.table_formats import format_of

if file_format() != "iceberg":
    pytest.skip("tables of Iceberg: pytest --file-format iceberg", allow_module_level=True)

CHANGE = """
    change_type as _change_type, lpad(sequence, 4, '0') as _change_sequence, sequence as _change_id,
    timestamp'2026-01-01' as _change_time, batch as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_transaction, if(name = 'bad', 'it is bad', null) as _change_error"""


class Things:
    """A project with models of one staging table, written by the tests."""

    def __init__(self, spark: SparkSession, root: Path, schema: str) -> None:
        self.spark, self.schema, self.batch = spark, schema, 0
        self.project = Project(root / "project", schema)
        self.project.source(f"{schema}_staging", "changes")
        spark.sql(f"create schema {schema}_staging")
        spark.sql(
            f"create table {schema}_staging.changes (id bigint, name string, row_id string, change_type string, "
            "sequence string, batch bigint) using iceberg partitioned by (batch)"
        )

    def model(self, name: str, columns: dict[str, str], unique_key: str | list[str] = "id", **config: Any) -> None:
        """A model whose columns are SQL of the staged id, name and row_id, by their names and types."""
        options = "".join(f", {key}={value!r}" for key, value in {"materialized": "current_state", **config}.items())
        selected = ", ".join(f"{sql} as `{column.split(' ')[0]}`" for column, sql in columns.items())
        self.project.model(
            name,
            f"{{{{ config(unique_key={unique_key!r}{options}) }}}}\n"
            f"select {selected}, row_id as _row_id, {CHANGE} from {{{{ source('lake', 'changes') }}}}",
            dict(column.split(" ", 1) for column in columns),
        )

    def append(self, *rows: tuple[int | None, str | None, str, str]) -> None:
        """Stage a batch of (id, name, change type, sequence); every row's address is its sequence's first digit."""
        self.batch += 1
        values = [(id_, name, sequence[0], change, sequence[1:], self.batch) for id_, name, change, sequence in rows]
        self.spark.createDataFrame(
            values, "id bigint, name string, row_id string, change_type string, sequence string, batch bigint"
        ).writeTo(f"{self.schema}_staging.changes").append()

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.table(f"{self.schema}.{relation}").collect()))


PLAIN = {"id bigint": "id", "name string": "name"}


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Things:
    """A batch that makes the tables and one that is merged into them; of both some was refused."""
    things = Things(spark, tmp_path_factory.mktemp("things"), "iceberg_things")
    things.model("things", PLAIN, meta={"row_ids": True})
    things.model("versions", PLAIN, materialized="history", meta={"row_ids": True})
    things.append(*((id_, "one", "insert", f"{id_}1") for id_ in range(1, 8)), (8, "bad", "insert", "81"))
    things.project.dbt("run")
    things.append(
        (1, "uno", "update", "12"), (2, None, "delete", "22"), (None, None, "delete", "32"),
        (9, "nine", "insert", "92"), (8, "bad", "insert", "82"),
    )  # fmt: skip
    things.project.dbt("run")
    return things


TABLES = [
    f"{model}{part}" for model in ("things", "versions") for part in ("__base", "__quarantine", "__row_deletes")
] + ["reconcile_ledger"]


def test_it_shows_what_was_delivered(things: Things) -> None:
    kept = [(4, "one"), (5, "one"), (6, "one"), (7, "one")]
    assert things.rows("things") == [(1, "uno"), *kept, (9, "nine")]
    current = things.spark.sql(f"select id, name from {things.schema}.versions where is_current")
    assert sorted(map(tuple, current.collect())) == [(1, "uno"), *kept, (9, "nine")]
    assert things.spark.table(f"{things.schema}.things__quarantine").count() == 2


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_of_version_3_and_merged_on_read(things: Things, table: str) -> None:
    rows = things.spark.sql(f"show tblproperties {things.schema}.{table}").collect()
    properties = {row.key: row.value for row in rows}
    assert properties["format-version"] == "3"
    assert {properties[f"write.{way}.mode"] for way in ("merge", "update", "delete")} == {"merge-on-read"}


@pytest.mark.parametrize("table", ["things__base", "versions__base"])
def test_a_merge_writes_deletion_vectors(things: Things, table: str) -> None:
    vectors = things.spark.sql(f"select file_format from {things.schema}.{table}.delete_files").collect()
    assert {row.file_format for row in vectors} == {"PUFFIN"}


def test_a_range_of_the_quarantine_is_replaced_by_dropping_its_files(things: Things) -> None:
    table = f"{things.schema}.things__quarantine"
    before = [row.file_path for row in things.spark.sql(f"select file_path from {table}.files").collect()]
    things.spark.sql(f"delete from {things.schema}.reconcile_ledger where kind <> 'rebuild'")
    things.project.dbt("run", "--select", "things")
    after = [row.file_path for row in things.spark.sql(f"select file_path from {table}.files").collect()]
    assert len(before) == len(after) == 2
    assert len(set(before) & set(after)) == 1
    assert things.spark.sql(f"select * from {table}.delete_files").collect() == []


# --- names and types that Iceberg does not take ----------------------------------------------------------------------

RESERVED = {
    "_pos bigint": "id",
    "_FILE string": "name",
    "_spec_id tinyint": "cast(id as tinyint)",
    "_partition array<smallint>": "array(cast(id as smallint))",
    "_last_updated_sequence_number map<tinyint,string>": "map(cast(id as tinyint), name)",
}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, marks=pytest.mark.matrix),
        pytest.param({"meta": {"partial_records": True}}, marks=pytest.mark.matrix),
        {"materialized": "history"},
    ],
)
def test_names_and_types_that_it_keeps_for_itself_are_the_models_too(
    spark: SparkSession, tmp_path: Path, config: dict[str, Any]
) -> None:
    things = Things(spark, tmp_path, f"iceberg_names_{len(str(config))}")
    things.model("model", RESERVED, unique_key="_pos", **config)
    things.append((1, "one", "insert", "11"), (2, "two", "insert", "21"))
    things.project.dbt("run")
    things.append((1, "uno", "update", "12"), (2, None, "delete", "22"), (3, "three", "insert", "31"))
    things.project.dbt("run")
    said = {f"{field.name} {field.dataType.simpleString()}" for field in spark.table(f"{things.schema}.model").schema}
    assert said >= set(RESERVED)
    current = " where is_current" if config.get("materialized") == "history" else ""
    live = spark.sql(f"select {', '.join(c.split(' ')[0] for c in RESERVED)} from {things.schema}.model{current}")
    increments = sorted(map(tuple, live.collect()))
    assert increments == [(1, "uno", 1, [1], {1: "uno"}), (3, "three", 3, [3], {3: "three"})]
    things.project.dbt("run", "--full-refresh")
    assert sorted(map(tuple, live.collect())) == increments


def test_the_version_of_a_table_is_the_one_that_is_read_also_after_a_rollback(spark: SparkSession) -> None:
    spark.sql("create schema if not exists iceberg_things")
    spark.sql("create table iceberg_things.rolled_back (id bigint) using iceberg")
    macros = PlainProject(SparkWarehouse(spark), "iceberg_things", file_format="iceberg").macros
    relation, versions = Relation("iceberg_things", "rolled_back"), []
    for number in (1, 2):
        spark.sql(f"insert into iceberg_things.rolled_back values ({number})")
        versions.append(macros.table_version(relation, "iceberg"))
    spark.sql(f"call spark_catalog.system.rollback_to_snapshot('iceberg_things.rolled_back', {versions[0]})")
    assert macros.table_version(relation, "iceberg") == versions[0] != versions[1]
    there = spark.sql(f"select id from {macros.at_version(relation, versions[0])}").collect()
    assert there == spark.table("iceberg_things.rolled_back").collect() == [(1,)]


class Twice(SparkWarehouse):
    """Runs each MERGE into a base table twice at once, as two runs of dbt may; one of them may be refused."""

    outcomes: list[int]

    def query(self, sql: str) -> Rows:
        if not sql.strip().startswith("merge into `iceberg_twice`.`things__base`"):
            return super().query(sql)

        def merge(_: int) -> int:
            try:
                super(Twice, self).query(sql)
                return 1
            except Exception as problem:
                assert "conflict" in str(problem).lower() or "raise_error" in str(problem), problem
                return 0

        with ThreadPoolExecutor(2) as threads:
            self.outcomes.append(sum(threads.map(merge, range(2))))
        assert self.outcomes[-1] >= 1
        return Rows()


def test_two_merges_at_once_of_a_batch_with_new_keys_alone_insert_them_once(spark: SparkSession) -> None:
    """A MERGE that only inserts is an append, which conflicts with nothing."""
    warehouse = Twice(spark)
    warehouse.outcomes = []
    project = PlainProject(warehouse, "iceberg_twice", file_format="iceberg")
    project.source("iceberg_twice_lake", "changes")
    config = "{{ config(materialized='history', unique_key='id') }}"
    call = "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}"
    project.model("things", f"{config}\n{call}", {"id": "bigint"})
    for batch in range(1, 7):
        records = [event("mysql", {"id": 2 * batch + n}, object="things") for n in (0, 1)]
        warehouse.stage("iceberg_twice_lake.changes", [Staged(record, "things", batch) for record in records])
        project.run("things")
        ids = sorted(row.id for row in spark.table("iceberg_twice.things__base").collect())
        assert ids == list(range(2, 2 * batch + 2)), warehouse.outcomes
    assert len(warehouse.outcomes) == 5, "the first run makes the table"


def test_a_rollback_is_noticed_also_when_the_newer_snapshots_have_expired(spark: SparkSession) -> None:
    spark.sql("create schema if not exists iceberg_things")
    spark.sql("create table iceberg_things.set_back (id bigint) using iceberg")
    macros = PlainProject(SparkWarehouse(spark), "iceberg_things", file_format="iceberg").macros
    relation = Relation("iceberg_things", "set_back")

    def insert() -> str:
        spark.sql("insert into iceberg_things.set_back values (1)")
        noted = str(macros.snapshot_in_sequence(relation))
        assert noted == format_of(spark).present_snapshot(spark, "iceberg_things.set_back")
        return noted

    def expire() -> None:
        spark.sql(
            "call spark_catalog.system.expire_snapshots(table => 'iceberg_things.set_back', retain_last => 1, "
            "older_than => timestamp '2100-01-01 00:00:00')"
        )

    def is_before(noted: str) -> bool:
        told = format_of(spark).was_set_back_before(spark, "iceberg_things.set_back", noted)
        assert told == macros.was_set_back(relation, noted)
        return told

    first, second = insert(), insert()
    assert (is_before(first), is_before(second)) == (False, False)
    expire()
    assert not is_before(first), "it has expired, and the table follows from it"
    third = insert()
    spark.sql(f"call spark_catalog.system.rollback_to_snapshot('iceberg_things.set_back', {second.split(' ')[0]})")
    assert (is_before(first), is_before(second), is_before(third)) == (False, False, True)
    expire()
    assert (is_before(second), is_before(third)) == (False, True)
    assert not is_before(third.split(" ")[0]), "a note of an earlier version has no number"
    insert()
    assert not is_before(third), "the limit: a later commit of somebody else has a greater number"


def test_a_snapshot_table_that_is_loaded_anew_has_nothing_of_the_load_before(spark: SparkSession) -> None:
    spark.sql("create schema if not exists iceberg_things")
    table = TableName(("iceberg_things", "loaded_twice"))
    for said in ({"position": "9:9:", "taken_at": "2026-05-01T00:00:00Z"}, {"taken_at": "2026-05-02T00:00:00Z"}):
        named = {"reconcile.snapshot": "jdbc"} | {f"reconcile.snapshot.{name}": value for name, value in said.items()}
        snapshot_table.writer(spark.range(1), table, "a copy", named).createOrReplace()
    properties = format_of(spark).properties(spark, table.sql)
    assert properties["reconcile.snapshot.taken_at"] == "2026-05-02T00:00:00Z"
    # Iceberg keeps the properties of a table that is replaced; one of nothing is none.
    assert properties["reconcile.snapshot.position"] == ""
    with pytest.raises(UsageError, match="has no position, because the job that took it did not finish"):
        snapshot_properties(spark, table)


def test_a_row_id_is_a_key(spark: SparkSession, tmp_path: Path) -> None:
    things = Things(spark, tmp_path, "iceberg_row_ids")
    things.model("model", PLAIN, unique_key="_row_id", meta={"row_ids": True, "buckets": 2})
    things.append((1, "one", "insert", "11"), (2, "two", "insert", "21"))
    things.project.dbt("run")
    things.append((1, "uno", "update", "12"), (2, None, "delete", "22"), (3, "three", "insert", "31"))
    things.project.dbt("run")
    assert things.rows("model") == [(1, "uno"), (3, "three")]


# --- buckets ----------------------------------------------------------------------------------------------------------


def plans_of_merges(things: Things, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run dbt, and return the plan of each model's MERGE as Spark has it just before it is executed."""
    plans: dict[str, str] = {}

    def explain(event: Any) -> None:
        merged = re.search(r"^\s*merge into `\w+`\.`(\w+)__base`", getattr(event.data, "sql", ""), re.MULTILINE)
        if event.info.name == "SQLQuery" and merged:
            plans[merged[1]] = things.spark.sql(f"explain {event.data.sql}").collect()[0][0]

    monkeypatch.setattr(projects, "dbtRunner", lambda: dbtRunner(callbacks=[explain]))
    things.project.dbt("run")
    return plans


def nodes_above_the_base(plan: str, table: str) -> list[str]:
    """Return the nodes from the scan of a base table, by the MERGE, which asks for places, up to the join."""
    lines = [(re.match(r"[^A-Za-z*]*", line).end(), line) for line in plan.splitlines()]  # type: ignore[union-attr]
    (at,) = [place for place, (_, line) in enumerate(lines) if f"{table}__base" in line and "_pos#" in line]
    depth, above = lines[at][0], []
    for its_depth, line in reversed(lines[:at]):
        if its_depth < depth:
            depth = its_depth
            above.append(line[its_depth:])
            if "Join" in line:
                break
    return above


def test_a_merge_into_buckets_does_not_shuffle_the_base_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = Things(spark, tmp_path, "iceberg_buckets")
    things.model("plain", PLAIN)
    things.model("bucketed", PLAIN, meta={"buckets": 4})
    things.model("of_two_keys", PLAIN, unique_key=["id", "name"], meta={"buckets": 4})
    things.model("versions", PLAIN, meta={"buckets": 4}, materialized="history")
    things.append(*((id_, "one", "insert", "11") for id_ in range(5000)))
    things.project.dbt("run")
    things.append((1, "one", "update", "12"), (2, "one", "delete", "22"), (5000, "one", "insert", "92"))
    plans = plans_of_merges(things, monkeypatch)
    above = {model: nodes_above_the_base(plan, model) for model, plan in plans.items()}
    shuffled = {model: any("Exchange" in node for node in nodes) for model, nodes in above.items()}
    # Without buckets it is: the test can tell.
    assert shuffled == {"plain": True, "bucketed": False, "of_two_keys": False, "versions": False}
    for nodes in above.values():
        assert "ShuffledHashJoin" in nodes[-1] and not any("Sort" in node for node in nodes), nodes
    for model in ("plain", "bucketed", "of_two_keys"):
        assert things.rows(model) == [(id_, "one") for id_ in range(5001) if id_ != 2], model

    # Where no row is new, it is in place without buckets too.
    things.append((3, "one", "update", "12"))
    above = {model: nodes_above_the_base(p, model) for model, p in plans_of_merges(things, monkeypatch).items()}
    for model in ("plain", "bucketed", "of_two_keys"):
        assert "BroadcastHashJoin" in above[model][-1] and not any("Exchange" in node for node in above[model])
