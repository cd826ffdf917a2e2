"""Masked values of a real database are in no file that the product writes, from the append to the certificate."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import prove
import pyarrow.parquet as pq
import pytest
from consoles import Outputs
from datastream import event
from postgres import Postgres
from process.landings import Landing
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.masks import Masks, RowMasks
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.snapshot_job import Job, run
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.staging import TableName

SCHEMA, LAKE = "masked_shop", "masked_lake"
CANARY = "canary-28c5"
RAW = CANARY.encode()
FIELDS = {"email": "sha256", "ssn": "drop", "phone": "sha256", "note": "sha256", "raw": "sha256"}
MASKS = Masks({"shop_people": FIELDS}, b"0123456789abcdef0123456789abcdef")
# Each as a file may hold it.
NEEDLES = (CANARY, base64.b64encode(RAW).decode(), RAW.hex(), "7280517", "4915228")
TABLES = ("copies", "people_source", "people_in_clear")


class Person:
    """A row of the source, whose masked values are all canaries."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name

    @property
    def sql(self) -> str:
        return (
            f"('{CANARY}-{self.number}@x', 7280517{self.number}, 4915228{self.number}.50, '{CANARY} note', "
            f"'\\x{RAW.hex()}', true, '{self.name}', {self.number})"
        )

    def record(self, place: int, change: str = "INSERT", **more: Any) -> str:
        payload = {
            "email": f"{CANARY}-{self.number}@x", "ssn": int(f"7280517{self.number}"),
            "phone": float(f"4915228{self.number}.5"), "note": f"{CANARY} note",
            "raw": base64.b64encode(RAW).decode(), "vip": True, "name": self.name, "id": self.number, **more,
        }  # fmt: skip
        metadata = {"lsn": f"0/{place:X}", "tx_id": "10"}
        return event("postgresql", payload, change, metadata=metadata, object="shop_people")


def text_of(file: Path) -> str:
    """Return what a file holds, decoded where it is compressed."""
    content = file.read_bytes()
    found = content.decode("latin-1")
    if file.suffix == ".parquet" and content[:4] == b"PAR1":
        table = pq.ParquetFile(file).read()
        found += str(
            [[bytes(v).decode("latin-1") if isinstance(v, bytes) else v for v in c.to_pylist()] for c in table]
        )
    if content[:2] == b"\x1f\x8b":
        found += gzip.decompress(content).decode("latin-1")
    return found


def leaks(directories: Iterable[Path]) -> list[str]:
    files = [file for directory in directories for file in directory.rglob("*") if file.is_file()]
    assert files
    return [str(file) for file in files if any(needle in text_of(file) for needle in NEEDLES)]


class Estate:
    """The source, the landing area, and the models of what is staged from both."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.postgres, self.said = spark, root, Postgres(), list[str]()
        self.landing = Landing(spark, root)
        self.copy = TableName((LAKE, "people_source"))
        self.project = Project(root / "project", SCHEMA)
        self.masked = {
            "email": declared("string", "sha256"), "ssn": declared("int", "drop"),
            "phone": declared("string", "sha256"), "note": declared("string", "sha256"),
            "raw": declared("string", "sha256"), "vip": "boolean", "name": "string", "id": "bigint", "n": "tinyint",
        }  # fmt: skip
        self.postgres.query(
            "CREATE SCHEMA shop; CREATE TABLE shop.people (email text PRIMARY KEY, ssn int, phone numeric(12,2), "
            "note text, raw bytea, vip boolean, name text, id bigint)"
        )
        for schema in (SCHEMA, LAKE):
            spark.sql(f"create schema if not exists {schema}")

    def insert(self, *people: Person) -> None:
        self.postgres.query(f"INSERT INTO shop.people VALUES {', '.join(person.sql for person in people)}")

    def deliver(self, name: str, *records: str) -> None:
        self.landing.put(f"shop_people/2026/05/01/09/00/{name}.jsonl", "\n".join(records))
        self.landing.append(masks=MASKS)

    def take(self) -> None:
        """Take a snapshot of the source."""
        user = {"user": self.postgres.user, "password": self.postgres.password}
        source = Source(PostgreSQL(), self.postgres.environment["RECONCILE_METASTORE_URL"], user)
        masks = RowMasks(MASKS, "shop.people")
        snapshot_jdbc.load_jdbc(self.spark, source, "shop.people", self.copy, masks=masks)

    def stage_copy(self) -> None:
        job = Job(table=self.copy, staging=TableName((LAKE, "copies")), key=("email",), object="shop_people")
        run(self.spark, job, Caller(say=self.said.append))

    def declare(self) -> None:
        """Write the models: of the log, as rows, history and view, with parity; of the copies; and without masks."""
        schema, table = self.landing.table.split(".")
        self.project._write(
            "models/sources.yml",
            {"sources": [
                {"name": "log", "schema": schema, "tables": [{"name": table}]},
                {"name": "lake", "schema": LAKE, "tables": [{"name": name} for name in TABLES]},
            ]},
        )  # fmt: skip
        log = f"{{{{ reconcile.datastream_postgresql(source('log', '{table}'), object='shop_people') }}}}"
        arguments = {"compare_to": "source('lake', 'people_source')", "key": "email", "allowance": "1 second"}
        arguments |= {"columns": [name for name in self.masked if name != "n"], "store_values": True}
        parity = [{"reconcile.parity": {"name": "people_parity", "arguments": arguments}}]
        compared = {name: said for name, said in self.masked.items() if name != "vip"}
        self.project.model("people", config() + log, self.masked, data_tests=parity)
        arguments = {**arguments, "key": "id", "columns": ["id", "name", "vip"]}
        by_id = [{"reconcile.parity": {"name": "ids_parity", "arguments": arguments}}]
        self.project.model("ids", config(key="id") + log, self.masked, data_tests=by_id)
        self.project.model("lives", config("history") + log, compared)
        self.project.model("seen", config("current_view") + log, compared)
        of_copies = {name: said for name, said in self.masked.items() if name != "n"}
        copies = "{{ reconcile.snapshots(source('lake', 'copies'), 'shop_people') }}"
        self.project.model("copies", config("history") + copies, of_copies)
        arguments |= {"compare_to": "source('lake', 'people_in_clear')", "key": "email", "columns": ["name"]}
        parity = [{"reconcile.parity": {"name": "plain_parity", "arguments": arguments}}]
        self.project.model("plain", config() + log, {"email": "string", "name": "string"}, data_tests=parity)


def declared(type_: str, mask: str) -> dict[str, Any]:
    return {"data_type": type_, "config": {"meta": {"mask": mask}}}


def config(materialized: str = "current_state", key: str = "email") -> str:
    return f"{{{{ config(materialized='{materialized}', unique_key='{key}') }}}}\n"


@pytest.fixture
def estate(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Estate]:
    found = Estate(spark, tmp_path)
    monkeypatch.setenv("RECONCILE_JDBC_USER", found.postgres.user)
    monkeypatch.setenv("RECONCILE_JDBC_PASSWORD", found.postgres.password)
    yield found
    found.postgres.stop()
    for schema in (SCHEMA, LAKE):
        spark.sql(f"drop schema {schema} cascade")
    spark.sql(f"drop table if exists {found.landing.table}")


@pytest.mark.soak
def test_masked_values_of_a_database_are_in_no_file(estate: Estate, capfd: pytest.CaptureFixture[str]) -> None:
    spark, people = estate.spark, [Person(number, f"n{number}") for number in range(1, 6)]
    estate.insert(*people)
    # The last three: an older value, a bad one, and a delete.
    records = [person.record(10 + person.number) for person in people]
    records += [
        Person(1, "old").record(2), Person(8, "bad").record(30, n=300), Person(9, "gone").record(40),
        Person(9, "gone").record(41, "DELETE"),
    ]  # fmt: skip
    estate.deliver("a", *records, '{"object":"shop_people","payload":{"email":"' + CANARY)
    estate.take()
    estate.stage_copy()
    estate.declare()
    spark.sql(f"create table {LAKE}.people_in_clear as select 'x' as email, 'y' as name")
    estate.project.run()
    assert estate.project.failing_tests("people") == set()
    rows = spark.table(f"{SCHEMA}.people").orderBy("name").collect()
    assert [row.name for row in rows] == [person.name for person in people]
    assert [row.email for row in rows] == [MASKS.digest(f"{CANARY}-{person.number}@x") for person in people]
    assert {row.phone for row in rows} == {MASKS.digest(f"4915228{person.number}.5") for person in people}
    assert all(row.ssn is None and row.raw == MASKS.digest(base64.b64encode(RAW).decode()) for row in rows)

    # Rows that differ are named by their digests, and their values are digests.
    estate.postgres.query("UPDATE shop.people SET name = 'other', note = note || '!' WHERE name = 'n1'")
    estate.postgres.query("DELETE FROM shop.people WHERE name = 'n2'")
    estate.insert(Person(7, "n7"))
    estate.take()
    estate.stage_copy()
    estate.project.run()
    assert estate.project.failing_tests("people") == {"parity"}
    found = [row for row in spark.table(f"{SCHEMA}.reconcile_parity_differences").collect() if row.test]
    keys = {json.loads(row.key)["email"] for row in found}
    assert keys == {MASKS.digest(f"{CANARY}-{number}@x") for number in (1, 2, 7)}
    assert MASKS.digest(f"{CANARY} note!") in str(found)
    assert spark.table(f"{SCHEMA}.people__quarantine").count() == 1
    ended = spark.table(f"{SCHEMA}.copies__base").where("valid_to is not null").count()
    assert ended

    # A model that declares no mask is not compared with values in clear.
    refused = estate.project.dbt("test", "--select", "plain", succeed=False)
    assert "the model has masked values of email, and" in str([result.message for result in refused.result.results])

    # A proof compares the database with what is not masked, and refuses the rest.
    outputs, page = Outputs(), estate.root / "proof.html"
    dbt = ["--project-dir", str(estate.project.root), "--profiles-dir", str(estate.project.root)]
    asked = ["--url", estate.postgres.environment["RECONCILE_METASTORE_URL"], "--models", "people", "ids"]
    asked += ["--table", "ids=shop.people", "--certificate", str(page)]
    with pytest.raises(DataError):
        prove.main([*asked, *dbt], outputs)  # type: ignore[arg-type]
    certificate = page.with_suffix(".json").read_text()
    models = {model["name"]: model for model in json.loads(certificate)["models"]}
    assert [*models] == ["ids"] and "the model has masked values of email" in certificate
    assert {row["key"] for row in models["ids"]["differences"]} == {'{"id":"1"}', '{"id":"2"}', '{"id":"7"}'}

    warehouse = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    schemas = [warehouse / f"{schema}.db" for schema in (SCHEMA, LAKE, estate.landing.table.split(".")[0])]
    kept = [*schemas, estate.project.root, estate.landing.checkpoint]
    assert leaks(kept) == []
    printed = "".join(capfd.readouterr()) + str((estate.said, estate.landing.said, outputs.lines, outputs.said))
    assert not [needle for needle in NEEDLES if needle in printed + page.read_text() + certificate]

    # What finds them if they are there.
    spark.sql(f"create table {LAKE}.leak using parquet as select {Person(3, 'n3').number} as id, '{CANARY}' as email")
    assert leaks([estate.landing.path]) and leaks([warehouse / f"{LAKE}.db"])
