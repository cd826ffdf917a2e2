"""prove.py against real databases: equal, three rows that differ, and the same checksums again later."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prove
import pytest
from consoles import Outputs
from datastream import Staged, event, stage
from file_formats import file_format
from mariadb import MariaDB
from plain_dbt import PlainProject
from postgres import Postgres
from process.spark_warehouse import SparkWarehouse
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided
from reconcile_jobs.retention.files import compaction
from reconcile_jobs.staging import TableName

DECLARED = {
    "id": "bigint",
    "name": "string",
    "total": "decimal(12,2)",
    "ratio": "double",
    "raw": {"data_type": "binary", "config": {"meta": {"encoding": "hex"}}},
}
ROWS = 3000
CANARY = "canary-5d1c"
_numbers = itertools.count()


class OfPostgreSQL:
    kind, macro, database = "postgresql", "datastream_postgresql", "PostgreSQL"
    ddl = (
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, name text, total numeric(12,2), "
        "ratio double precision, raw bytea, tags text[], note text)"
    )
    # Beside those that every database has.
    more: dict[str, str] = {"tags": "array<string>"}  # noqa: RUF012

    def __init__(self) -> None:
        self.server = Postgres()
        self.url = self.server.environment["RECONCILE_METASTORE_URL"]

    def values(self, id: int, name: str) -> str:
        return f"({id}, '{name}', {id}.50, {id} / 8.0, '\\x{id:04x}', ARRAY['t{id}', NULL, ''])"

    def payload(self, id: int) -> dict[str, Any]:
        return {"tags": [f"t{id}", None, ""]}

    def place(self, number: int) -> dict[str, Any]:
        return {"lsn": f"0/{number:X}", "tx_id": "10"}


class OfMariaDB:
    kind, macro, database = "mysql", "datastream_mysql", "MySQL"
    ddl = (
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, name text CHARACTER SET utf8mb4, total decimal(12,2), "
        "ratio double, raw blob, note text)"
    )
    more: dict[str, str] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.server = MariaDB()
        self.url = f"jdbc:mariadb://127.0.0.1:{self.server.port}/shop"

    def values(self, id: int, name: str) -> str:
        return f"({id}, '{name}', {id}.50, {id} / 8e0, x'{id:04x}')"

    def payload(self, id: int) -> dict[str, Any]:
        return {}

    def place(self, number: int) -> dict[str, Any]:
        return {"log_file": "bin.000001", "log_position": number}


@pytest.fixture(
    params=[
        pytest.param(OfPostgreSQL, id="postgresql"),
        pytest.param(OfMariaDB, id="mariadb", marks=pytest.mark.soak),
    ],
)
def source(request: pytest.FixtureRequest) -> Iterator[Any]:
    found = request.param()
    yield found
    found.server.stop()


class Shop:
    """A table of a real database, its change records, and a model of them."""

    def __init__(self, spark: SparkSession, source: Any, root: Path) -> None:
        self.spark, self.source, self.root, self.batch, self.place = spark, source, root, 0, 0
        self.schema = f"prove_{source.kind}_{next(_numbers)}"
        self.lake = f"{self.schema}_lake"
        self.project = Project(root / "project", self.schema)
        self.project.source(self.lake, "changes")
        self.columns = {**DECLARED, **source.more}
        self.sql = (
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.{source.macro}(source('lake', 'changes'), 'shop.orders') }}}}"
        )
        arguments = {"compare_to": "ref('orders')", "key": "id", "allowance": "1 second"}
        self.tests = [{"reconcile.parity": {"name": "orders_parity", "arguments": arguments}}]
        self.project.model("orders", self.sql, self.columns, data_tests=self.tests)
        spark.sql(f"create schema if not exists {self.lake}")
        source.server.query(source.ddl)

    def at_source(self, sql: str) -> None:
        self.source.server.query(sql)

    def insert(self, *rows: tuple[int, str]) -> None:
        """Insert rows, (id, name), at the source."""
        values = ", ".join(self.source.values(id, name) for id, name in rows)
        self.at_source(f"INSERT INTO shop.orders ({', '.join(self.columns)}) VALUES {values}")

    def stage(self, *changes: tuple[str, int, str], **more: Any) -> None:
        """Stage changes of rows, (type, id, name), as a batch; `more`: fields that the model need not declare."""
        self.batch += 1
        records = []
        for type_, id, name in changes:
            self.place += 1
            payload = {"id": id, "name": name, "total": f"{id}.50", "ratio": id / 8, "raw": f"{id:04x}"}
            payload |= self.source.payload(id) | more
            text = event(self.source.kind, payload, type_, metadata=self.source.place(self.place), object="shop.orders")
            records.append(Staged(text, "shop.orders", self.batch))
        stage(self.spark, f"{self.lake}.changes", records)

    def deliver(self, *changes: tuple[str, int, str]) -> None:
        """Stage changes, and merge them."""
        self.stage(*changes)
        self.project.run("orders")

    def prove(self, *words: str) -> tuple[Outputs, JobError | None]:
        outputs, refused = Outputs(), None
        dbt = ["--project-dir", str(self.project.root), "--profiles-dir", str(self.project.root)]
        try:
            prove.main([*words, *dbt], outputs)  # type: ignore[arg-type]
        except JobError as problem:
            refused = problem
        return outputs, refused

    def proven(self, *words: str) -> tuple[Outputs, JobError | None, dict[str, Any], str]:
        page = self.root / "proof.html"
        given = ["--url", self.source.url, "--models", "orders", "--certificate", str(page)]
        outputs, refused = self.prove(*given, *words)
        return outputs, refused, json.loads(page.with_suffix(".json").read_text()), page.read_text()


@pytest.fixture
def shop(spark: SparkSession, source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("RECONCILE_JDBC_USER", source.server.user)
    monkeypatch.setenv("RECONCILE_JDBC_PASSWORD", source.server.password)
    return Shop(spark, source, tmp_path)


def fill(shop: Shop) -> None:
    """Give the table and the model the same rows."""
    for first in range(1, ROWS + 1, 500):  # a command line has an end
        shop.insert(*((id, f"caf\u00e9 {id}") for id in range(first, first + 500)))
    shop.deliver(*(("INSERT", id, f"caf\u00e9 {id}") for id in range(1, ROWS + 1)))


def corrupt(shop: Shop) -> None:
    """Let one row be missing from the model, one unexpected in it, and one different."""
    shop.at_source(f"UPDATE shop.orders SET name = '{CANARY}' WHERE id = 7")
    shop.at_source("DELETE FROM shop.orders WHERE id = 8")
    shop.insert((ROWS + 1, "new"))


def test_three_rows_that_differ_are_found(shop: Shop) -> None:
    fill(shop)
    corrupt(shop)
    # Mostly it has not passed when the rows are there, and then it is waited for.
    outputs, refused, document, page = shop.proven("--allowance", "20 seconds")
    print(outputs.said, outputs.lines)
    (model,) = document["models"]
    assert isinstance(refused, DataError), (refused, outputs.lines)
    assert {row["key"]: row["difference"] for row in model["differences"]} == {
        '{"id":"7"}': "different", '{"id":"8"}': "unexpected", f'{{"id":"{ROWS + 1}"}}': "missing",
    }  # fmt: skip
    assert model["counts"]["confirmed"] == 3 and model["rows_read"] < 60
    assert CANARY not in page + json.dumps(document)


@pytest.mark.soak
def test_a_table_is_proven_and_what_differs_is_found_and_a_proof_is_replayed(shop: Shop) -> None:
    fill(shop)
    outputs, refused, document, page = shop.proven()
    assert refused is None, (refused, outputs.lines)
    (model,) = document["models"]
    assert (document["state"], model["state"], model["rows"]) == ("equal", "equal", {"source": ROWS, "model": ROWS})
    assert model["digests"]["source"] == model["digests"]["model"] and model["only_in_source"] == ["note"]
    # Some thousands of sums came, and no row.
    assert model["rows_read"] == 0 and outputs.results[0]["bytes"] < 80 * ROWS
    assert f"{ROWS:,} rows   equal" in outputs.lines[0] and outputs.lines[1].endswith("EQUAL")
    assert shop.source.server.password not in page + json.dumps(document)
    equal = shop.root / "equal.json"
    equal.write_text(json.dumps(document))

    corrupt(shop)
    outputs, refused, document, _ = shop.proven("--no-wait", "--allowance", "1 hour", "--no-record")
    assert isinstance(refused, Fault) and document["models"][0]["counts"]["in_flight"] == 3, outputs.lines
    outputs, refused, document, page = shop.proven()
    (model,) = document["models"]
    assert isinstance(refused, DataError), (refused, outputs.lines)
    assert [model["counts"][kind] for kind in ("confirmed", "missing", "unexpected", "different")] == [3, 1, 1, 1]
    assert {row["key"]: row["difference"] for row in model["differences"]} == {
        '{"id":"7"}': "different", '{"id":"8"}': "unexpected", f'{{"id":"{ROWS + 1}"}}': "missing",
    }  # fmt: skip
    assert [row["columns"] for row in model["differences"] if row["key"] == '{"id":"7"}'] == [[{"column": "name"}]]
    assert 3 <= model["rows_read"] + 1 < 60 and "3 confirmed" in outputs.lines[0]
    assert model["counts"]["compared"] == ROWS + 1 and model["counts"]["matched"] == ROWS - 2
    assert CANARY not in page + json.dumps(document)
    _, _, document, page = shop.proven("--values", "--no-record")
    assert CANARY in page and CANARY in json.dumps(document)
    written = shop.spark.table(f"{shop.schema}.reconcile_parity").orderBy("recorded_at").collect()
    assert [(row.test, row.verdict, row.confirmed) for row in written] == [
        ("prove", "match", 0), ("prove", "confirmed", 3),
    ]  # fmt: skip

    # Delivered, they are equal again; too many to read, they are not.
    shop.deliver(("UPDATE-INSERT", 7, CANARY), ("DELETE", 8, "caf\u00e9 8"), ("INSERT", ROWS + 1, "new"))
    _, refused, document, _ = shop.proven("--no-record")
    assert refused is None and document["models"][0]["rows"]["source"] == ROWS
    shop.at_source("UPDATE shop.orders SET total = total + 1")
    _, refused, document, _ = shop.proven("--no-record", "--max-rows", "100")
    assert isinstance(refused, Undecided) and "too many to be read" in document["models"][0]["reasons"][0]

    # A row in quarantine keeps equal rows from being called equal.
    shop.at_source("UPDATE shop.orders SET total = total - 1")
    bad = event(shop.source.kind, {"id": None}, metadata=shop.source.place(shop.place + 1), object="shop.orders")
    stage(shop.spark, f"{shop.lake}.changes", [Staged(bad, "shop.orders", shop.batch + 1)])
    shop.project.run("orders")
    _, refused, document, _ = shop.proven("--no-record")
    assert isinstance(refused, Undecided) and "in quarantine" in document["models"][0]["reasons"][0]

    # The first proof, after three more runs and another layout of the files.
    if file_format() == "delta":
        shop.spark.sql(f"optimize {shop.schema}.orders__base")
    outputs, refused = shop.prove("--replay", str(equal))
    assert refused is None and outputs.results[0]["models"]["same"] == 1, outputs.lines
    document = json.loads(equal.read_text())
    document["models"][0]["digests"]["model"]["first"] = "7"
    (shop.root / "forged.json").write_text(json.dumps(document))
    outputs, refused = shop.prove("--replay", str(shop.root / "forged.json"))
    assert isinstance(refused, DataError) and "recorded were" in outputs.lines[0]
    document["models"][0]["versions"]["model"] = 99_999
    (shop.root / "gone.json").write_text(json.dumps(document))
    outputs, refused = shop.prove("--replay", str(shop.root / "gone.json"))
    assert isinstance(refused, Undecided) and "the base table's version 99999 is not there" in outputs.lines[0]


RUNS = 50


class Merging:
    """The shop's model without dbt, which takes longer than the statements of a run of so few records."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.project = PlainProject(SparkWarehouse(shop.spark), shop.schema, file_format=file_format())
        self.project.source(shop.lake, "changes")

    def run(self, **more: Any) -> None:
        """Merge what is staged into the model, which has `more` columns; dbt knows of them too."""
        columns = {**self.shop.columns, **more}
        self.project.model("orders", self.shop.sql, columns)
        self.shop.project.model("orders", self.shop.sql, columns, data_tests=self.shop.tests)
        self.project.context["invocation_id"] = str(uuid.uuid4())
        self.project.run("orders")


@pytest.mark.soak
@pytest.mark.parametrize("source", [OfPostgreSQL], indirect=True, ids=["postgresql"])
def test_a_proof_is_the_same_after_fifty_runs_and_says_when_it_cannot_be(shop: Shop) -> None:
    """Of rows that the base table has, and of rows that were folded from change records."""
    fill(shop)
    shop.at_source(f"UPDATE shop.orders SET name = '{CANARY}' WHERE id <= 10")
    shop.stage(*(("UPDATE-INSERT", id, CANARY) for id in range(1, 11)))
    outputs, refused, document, _ = shop.proven()
    assert refused is None, (refused, outputs.lines)
    (model,) = document["models"]
    assert model["staged"]["folds"] and (model["staged"]["touched"], model["rows_read"]) == (10, 0)
    certificate = shop.root / "first.json"
    certificate.write_text(json.dumps(document))

    def replay() -> str:
        outputs, refused = shop.prove("--replay", str(certificate))
        print(outputs.lines)
        assert refused is None or isinstance(refused, Undecided), outputs.lines
        return outputs.lines[0]

    merging = Merging(shop)
    for number in range(RUNS):
        shop.stage(("UPDATE-INSERT", 1 + number % 20, f"later {number}"), ("DELETE", 100 + number, ""))
        merging.run()
    assert shop.spark.table(f"{shop.schema}.orders").count() == ROWS - RUNS
    assert replay() == "orders   same"
    base = TableName.parse(f"{shop.schema}.orders__base")
    for table in (base, TableName.parse(f"{shop.lake}.changes")):
        for statement in compaction(file_format(), table):
            shop.spark.sql(statement)
    # The base table is replaced as a whole.
    shop.stage(("UPDATE-INSERT", 1, "last"), note="noted")
    merging.run(note={"data_type": "string", "config": {"meta": {"added": True}}})
    assert [row.note for row in shop.spark.table(f"{shop.schema}.orders").where("id = 1").collect()] == ["noted"]
    assert replay() == "orders   same"

    # All that no version of now needs is deleted.
    if file_format() == "delta":
        shop.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        shop.spark.sql(f"VACUUM {base.sql} RETAIN 0 HOURS")
        shop.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    else:
        expired = f"table => '{base}', older_than => current_timestamp(), retain_last => 1"
        shop.spark.sql(f"CALL spark_catalog.system.expire_snapshots({expired})")
    version = model["versions"]["model"]
    assert replay() == (
        f"orders   not recomputed: the base table's version {version} is not there any more; VACUUM (Delta) or "
        "expire_snapshots (Iceberg) has deleted it, or files of it"
    )
