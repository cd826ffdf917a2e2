"""generate.py on real tables: what it writes is built and tested by dbt without a hand's touch, whatever names hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generate
import pytest
from datastream import Staged, stage
from generated import change, observed
from mariadb import MariaDB
from postgres import Postgres
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.generation.avro_files import headers_below
from reconcile_jobs.generation.avro_types import header_of
from reconcile_jobs.generation.dictionary import dictionary_of
from reconcile_jobs.generation.observations import Place
from reconcile_jobs.generation.tables import tables_of
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.process.console import Console
from shop import records
from truth import CAPTURE, COLUMNS, DELIVERIES, object_of, true_rows

LAKE = "lake_generate"
RAISE = "{{ exceptions.raise_compiler_error('evaluated') }}"
HOSTILE = [
    "id", "a`b\"c'd e.f;g", "{% raw %}", "{# #}", RAISE, "# a", "a: b", "null", "Yes", "ÄÖ 李雷",
    "a\u200bb", "'; drop", "- x",
]  # fmt: skip
# What no model can declare, and the YAML says so.
LEFT_OUT = ["${HOME}", "c\nd", "e\rf", "g\u2028h", "i\x0bj", "k\x85l"]


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project", "generated")
    yield project
    spark.sql("drop schema if exists generated cascade")
    spark.sql(f"drop schema if exists {LAKE} cascade")


def test_dbt_builds_what_is_generated_and_a_second_run_changes_nothing(
    spark: SparkSession, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The capture's MySQL as Avro, with the headers of its files; a table of hostile names; one without a key."""
    spark.sql(f"create schema {LAKE}")
    rows = [
        Staged(record, object_of("mysql", table), number)
        for table in COLUMNS
        for number in DELIVERIES
        for record in records("mysql", table, "avro", number)
    ]
    odd = f"or.ders {RAISE}"
    payload = {name: f"value of {name}" for name in [*HOSTILE, *LEFT_OUT]}
    rows += [Staged(json.dumps(change(odd, payload, ["id", RAISE])), f"shop_{odd}", 1)]
    rows += [Staged(json.dumps(change("log", {"line": "x"}, [])), "shop_log", 1)]
    stage(spark, f"{LAKE}.changes", rows)
    monkeypatch.chdir(project.root)
    words = [
        "datastream",
        "--staging",
        f"{LAKE}.changes",
        "--path",
        str(CAPTURE / "mysql_avro"),
        "--into",
        "models/shop",
    ]

    def run(*more: str) -> tuple[int, dict[str, Any]]:
        console = Console("generate")
        code = console.exit_code(lambda: generate.main([*words, *more], console))
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    code, result = run()
    assert code == 0 and result["written"] == 4 and result["not_written"] == {"no key": 1}
    outcome = project.dbt("build")
    assert {row.status for row in outcome.result} <= {"success", "pass"}
    for table in COLUMNS:
        assert spark.table(f"generated.{table}").count() == true_rows(table).total()
    (name,) = {path.stem for path in Path("models/shop").glob("*.sql")} - {*COLUMNS}
    quarantined = spark.table(f"generated.{name}__quarantine").collect()
    assert [row["_change_error"] for row in quarantined] == []
    (row,) = spark.table(f"generated.{name}").collect()
    assert row.asDict() == {name: payload[name] for name in HOSTILE}
    tests = [row.node.test_metadata.name for row in outcome.result if row.node.resource_type == "test"]
    assert sorted(tests) == sorted(
        ["no_quarantine", "ledger_balances", *["key_is_the_sources", "one_payload_per_sequence"] * 4]
    )
    assert run("--check") == (0, result | {"written": 0, "unchanged": 4, "status": "unchanged"})


def test_headers_of_a_landing_area_are_those_of_its_newest_files(spark: SparkSession) -> None:
    found = headers_below(spark, str(CAPTURE / "postgresql_avro"))
    assert {header.place for header in found} == {Place(None, "shop", table) for table in COLUMNS}
    files = (CAPTURE / "postgresql_avro").rglob("*.avro")
    told = [header for file in files if (header := header_of(file.read_bytes()))]
    assert all(header in told for header in found) and len(found) == 3
    assert headers_below(spark, str(CAPTURE / "postgresql_json")) == []


DDL = """
create schema shop;
create table shop.orders (
    line_no int not null, "Order" bigint not null, total numeric(18,4), free numeric, at timestamptz, clock time,
    long interval, doc jsonb, photo bytea, tags text[], flag bit(3), primary key ("Order", line_no)
);
comment on table shop.orders is 'Orders of {{ everybody }}';
comment on column shop.orders.total is 'with tax: "19 %", # of ''all''';
create table shop.events (what text)
"""


def test_the_dictionary_of_postgresql_tells_types_keys_and_comments(spark: SparkSession) -> None:
    server = Postgres()
    try:
        server.query(DDL)
        url = server.environment["RECONCILE_METASTORE_URL"]
        source = Source(PostgreSQL(), url, {"user": server.user, "password": server.password})
        payload = {
            "Order": 1, "line_no": 2, "total": 1.5, "free": 1, "at": "x", "clock": "08:00", "long": "P1D", "doc": {},
            "tags": {}, "flag": "eA==", "photo": "eA==",
        }  # fmt: skip
        of_source = {"schema": "shop", "lsn": "0/1", "log_position": None, "database": None}
        rows = [change("orders", payload), change("events", {"what": "x"}), change("gone", {"id": 1}), change("mysql")]
        for row in rows[:3]:
            row["source_metadata"] |= of_source
            row["read_method"] = "postgresql-cdc"
            row["avro_types"] = {"photo": "bytes", "flag": "bytes"}
        seen = observed(rows)
        found = dictionary_of(spark, source, seen)
    finally:
        server.stop()
    assert {place.table for place in found} == {"orders", "events"}, "of its own kind, and those that are there"
    orders = found[Place(None, "shop", "orders")]
    assert orders.key == ("Order", "line_no") and found[Place(None, "shop", "events")].key == ()
    assert orders.description == "Orders of {{ everybody }}"
    assert orders.descriptions == {"total": "with tax: \"19 %\", # of 'all'"}
    tables, refusals = tables_of(seen, [found])
    assert [(refusal.label, refusal.reason) for refusal in refusals] == [("shop.events", "key not in the records")]
    (table,) = (table for table in tables if table.name == "orders")
    declared = {column.name: (column.declaration.data_type, column.declaration.encoding) for column in table.columns}
    assert declared == {
        "Order": ("bigint", None), "line_no": ("int", None), "total": ("decimal(18,4)", None), "free": ("string", None),
        "at": ("timestamp", None), "clock": ("string", "time"), "long": ("string", "interval"),
        "doc": ("string", "json"),
        "tags": ("array<string>", None), "flag": ("binary", None), "photo": ("binary", None),
    }  # fmt: skip


def test_the_dictionary_of_mysql_tells_types_keys_and_comments(spark: SparkSession) -> None:
    server = MariaDB()
    try:
        server.query(
            "create table shop.orders (a int unsigned comment 'of {{ all }}', id bigint unsigned, b varchar(3), "
            "y year, t time, d datetime(6), j json, x varbinary(5), p point, primary key (id, b)) comment 'All orders'"
        )
        url = f"jdbc:mariadb://127.0.0.1:{server.port}/"
        source = Source(MySQL(), url, {"user": server.user, "password": server.password})
        found = dictionary_of(spark, source, observed([change(), change("gone")]))
    finally:
        server.stop()
    (orders,) = found.values()
    assert (orders.key, orders.description, orders.descriptions) == (("id", "b"), "All orders", {"a": "of {{ all }}"})
    declared = {name: (of.data_type, of.encoding) for name, of in orders.columns.items()}
    assert declared.pop("j")[0] == "string"  # to MariaDB a longtext
    assert declared == {
        "a": ("bigint", None), "id": ("decimal(20,0)", None), "b": ("string", None), "y": ("int", None),
        "t": ("string", "microseconds"), "d": ("timestamp_ntz", None), "x": ("binary", None),
    }  # fmt: skip
