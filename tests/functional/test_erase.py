"""An erasure by the job on real tables: forty values of a person are in no file afterwards, and do not come back.

No dbt: models are run by tests/plain_dbt.py. The landing area is not touched, so it lies beside what is searched.
"""

from __future__ import annotations

import itertools
import operator
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import erase
import pyarrow as pa
import pytest
from canaries import files_with, files_with_numbers
from datastream import Staged, event
from erased import SECRET
from file_formats import file_format
from functional.maintained_shop import Killed
from plain_dbt import PlainProject
from process.landings import Landing
from process.spark_warehouse import SparkWarehouse
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs import append_table, log_snapshots, snapshot_differences
from reconcile_jobs.erased_keys import VARIABLE, Register
from reconcile_jobs.erasure.erasure import Erasure, Result
from reconcile_jobs.erasure.keys_file import read_keys_file
from reconcile_jobs.erasure.tables import ErasureTables
from reconcile_jobs.keyed_records import SPANNER
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.retention.purge import Purge
from reconcile_jobs.retention.tables import Tables
from reconcile_jobs.staging import Staging, TableName
from spanner import data_change_record, mod
from tables import load_snapshot

CALL = "reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.people')"
FIELDS = ["name", "email", "phone", "street", "city", "note"]
COLUMNS = {"id": "bigint", "age": "int", **dict.fromkeys(FIELDS, "string")}

PERSON, OTHER = 7280517001, 7280517002
# No longer than the bounds that Iceberg keeps of a text.
CANARIES = [f"kanar{number:02}x8f3b" for number in range(40)]


class Later:
    """A clock of a time at which all that a test stages is old."""

    def now(self) -> int:
        return 4_000_000_000_000_000_000

    def wait(self, *_: Any) -> bool:
        return False


class Estate:
    """A landing area, a staging table, and projects that read it."""

    call = CALL

    def __init__(self, spark: SparkSession, root: Path, name: str, projects: str = "a") -> None:
        self.spark, self.root, self.place, self.files, self.said = spark, root, 0, 0, list[str]()
        self.staging = TableName((f"{name}_lake", "changes"))
        self.landing = Landing(spark, root)
        self.landing.table = str(self.staging)
        self.left = list(CANARIES)
        warehouse = SparkWarehouse(spark)
        self.warehouse = warehouse
        self.projects = {
            part: PlainProject(warehouse, f"{name}_{part}", file_format=file_format()) for part in projects
        }
        for project in self.projects.values():
            project.source(self.staging.schema, "changes")
            self._model(project, "people", "current_state")
        self._model(self.projects["a"], "past", "history")
        self.models = [("a", "past"), *((part, "people") for part in projects)]
        self.elsewhere = f"{name}_elsewhere"  # tables that are no concern of the job
        self.schemas = [self.staging.schema, *(project.schema for project in self.projects.values())]

    def _model(self, project: PlainProject, name: str, materialized: str) -> None:
        config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
        project.model(name, f"{config}\n{{{{ {self.call} }}}}", COLUMNS)

    @property
    def directories(self) -> list[Path]:
        warehouse = Path(self.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
        return [warehouse / f"{schema}.db" for schema in self.schemas]

    def payload(self, id_: int, **values: Any) -> dict[str, Any]:
        """Return the values of a row; of the person its texts are canaries, which no other record has."""
        self.place += 1
        texts = {name: self.left.pop() if id_ == PERSON and self.left else f"{name} of {id_}" for name in FIELDS}
        return {"id": id_, "age": 40, **texts, **values}

    def record(self, id_: int, change: str = "UPDATE", **values: Any) -> Any:
        payload = self.payload(id_, **values)
        return event(
            "postgresql", payload, change, metadata={"lsn": f"0/{self.place:X}"}, object="shop.people",
        )  # fmt: skip

    def deliver(self, *records: Any) -> Any:
        self.files += 1
        self.landing.put(f"shop_people/file{self.files}.jsonl", "\n".join(records))
        return self.landing.append()

    def run(self, full_refresh: bool = False) -> None:
        for project in self.projects.values():
            project.context["invocation_id"] = str(uuid.uuid4())
            names = [name for part, name in self.models if self.projects[part] is project]
            project.run(*names, full_refresh=full_refresh)

    def rows(self, part: str, name: str) -> list[tuple[Any, ...]]:
        base = self.spark.table(f"{self.projects[part].schema}.{name}__base")
        return sorted(map(tuple, base.select(*sorted(base.columns)).collect()), key=str)

    def all_rows(self) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
        return {model: self.rows(*model) for model in self.models}

    def unbalanced(self) -> list[Any]:
        found = []
        for part, name in self.models:
            found += self.warehouse.sql(self.projects[part].test("ledger_balances", name)).collect()
        return found

    def purge(self) -> None:
        clock: Any = Later()
        purge = Purge(Tables(self.spark, self.staging), self.staging, timedelta(days=30), self.said.append, clock, True)
        assert purge.run().batch

    def erase(
        self, *keys: int, now: bool = False, tables: Callable[[ErasureTables], ErasureTables] = lambda given: given,
        **options: Any,
    ) -> Result:  # fmt: skip
        file = self.root / "keys.csv"
        file.write_text("id\n" + "".join(f"{key}\n" for key in keys or (PERSON,)))
        file.chmod(0o600)
        staging, chosen = erase.reader_of(self.spark, f"{self.projects['a'].schema}.people", None)
        assert staging == self.staging
        erasure = Erasure(
            self.spark, staging, chosen, read_keys_file(str(file)), "TICKET-17", self.said.append, **options
        )
        erasure._tables = tables(erasure._tables)
        return erasure.run(now)

    def leaks(self) -> dict[Any, set[str]]:
        found: dict[Any, set[str]] = dict(files_with(CANARIES, *self.directories))
        found |= files_with_numbers([PERSON], *self.directories)
        return {canary: files for canary, files in found.items() if files}

    def live(self) -> list[int]:
        return [row.id for row in self.spark.table(f"{self.projects['a'].schema}.people").orderBy("id").collect()]

    def fill(self, with_purge: bool = True) -> None:
        """Deliver, merge and purge records of the person and of another one, good and bad ones."""
        self.deliver(self.record(PERSON, "INSERT"), self.record(OTHER, "INSERT"))
        Tables(self.spark, self.staging).make_readers()
        self.run()
        self.deliver(
            self.record(PERSON), self.record(PERSON, age=f"l'{self.left.pop()}"), self.record(OTHER, age="old")
        )
        self.run()
        if with_purge:
            self.purge()
        self.deliver(self.record(PERSON), self.record(OTHER), self.record(3, "INSERT"))
        self.deliver(self.record(PERSON, age=self.left.pop()), self.record(OTHER, age="older"), self.record(PERSON))
        self.run()
        for part in self.projects:
            self._difference(part)

    def _difference(self, part: str) -> None:
        project = self.projects[part]
        project.macros.create_parity_tables(file_format())
        for id_ in (PERSON, OTHER):
            values = [self.left.pop() if id_ == PERSON and self.left else "x" for _ in range(2)]
            self.spark.sql(
                f"insert into {project.schema}.reconcile_parity_differences by name select 'r' as run_id, 't' as test, "
                f"'{project.schema}.people' as relation, '{{\"id\":\"{id_}\"}}' as key, 'confirmed' as verdict, "
                f"array(named_struct('column', 'name', 'model', '{values[0]}', 'source', '{values[1]}')) as columns"
            )


class EstateOfSpanner(Estate):
    """The same with the records of a change stream, of which each has the mods of several people."""

    call = "reconcile.spanner_change_stream(source('lake', 'changes'), object='people')"

    def record(self, id_: int, change: str = "UPDATE", **values: Any) -> Any:
        payload = self.payload(id_, **values)
        return change, mod({"id": str(payload.pop("id"))}, {**payload, "age": str(payload["age"])})

    def deliver(self, *records: Any) -> Any:
        """Append a batch as the job does, with one record for each run of mods of one type."""
        self.files += 1
        rows = []
        for number, (change, mods) in enumerate(itertools.groupby(records, key=operator.itemgetter(0))):
            at = f"2026-05-01T09:{self.files:02}:{number:02}Z"
            record = data_change_record(
                [of for _, of in mods], change, commit_timestamp=at, server_transaction_id=f"t{self.files}"
            )
            rows.append({"record": record, "object": "people", "origin": "stream/token"})
        staging = Staging(self.spark, self.staging, "spanner database/stream", register=Register(None, SPANNER))
        frame = self.spark.createDataFrame(pa.Table.from_pylist(rows))
        appended = staging.append(frame, "spanner", "a query", "file:/here", self.files, [str(self.files)])
        return SimpleNamespace(
            records=len(records) - appended.erased, erased_records=appended.erased, unreadable=appended.without_object
        )


class EstateOfAppendTable(Estate):
    """The same with a table to which Datastream appends each change."""

    call = "reconcile.datastream_append(source('lake', 'changes'), object='people')"

    @property
    def table(self) -> TableName:
        return TableName((self.elsewhere, "people"))

    def record(self, id_: int, change: str = "UPDATE", **values: Any) -> Any:
        payload = self.payload(id_, **values)
        metadata = {"change_sequence_number": f"{self.place:X}", "change_type": change}
        return {**payload, "age": str(payload["age"]), "datastream_metadata": metadata}

    def deliver(self, *records: Any) -> Any:
        self.files += 1
        rows = self.spark.createDataFrame(pa.Table.from_pylist(list(records)))
        if self.spark.catalog.tableExists(self.table.sql):
            rows.writeTo(self.table.sql).append()
        else:
            self.spark.sql(f"create schema if not exists {self.elsewhere}")
            rows.writeTo(self.table.sql).using(file_format()).create()
        return self.append()

    def append(self, **options: Any) -> Any:
        job = append_table.Job((self.table,), self.staging, **options)
        totals = append_table.run(self.spark, job, Caller(say=self.said.append))
        return SimpleNamespace(records=totals.records, erased_records=totals.erased_records, unreadable=0)


class EstateOfTransactions(Estate):
    """The same with records that name their transactions, so that snapshots can stand beside them."""

    def record(self, id_: int, change: str = "UPDATE", **values: Any) -> Any:
        payload = self.payload(id_, **values)
        metadata = {"lsn": f"0/{self.place:X}", "tx_id": str(self.place)}
        return event("postgresql", payload, change, metadata=metadata, object="shop.people")


@pytest.fixture
def estate(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Estate]:
    monkeypatch.setenv(VARIABLE, SECRET)
    of = getattr(request, "param", Estate)
    yield of(spark, tmp_path, f"erased{abs(hash(request.node.name)) % 10**8}")


def of_others(rows: dict[tuple[str, str], list[tuple[Any, ...]]]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    return {model: [row for row in each if PERSON not in row] for model, each in rows.items()}


@pytest.mark.soak
@pytest.mark.parametrize(
    "estate", [Estate, EstateOfSpanner, EstateOfAppendTable], indirect=True,
    ids=["datastream", "spanner", "append table"],
)  # fmt: skip
def test_forty_values_of_a_person_are_in_no_file_and_do_not_come_back(estate: Estate) -> None:
    estate.fill()
    assert estate.unbalanced() == []
    before = estate.all_rows()
    found = estate.leaks()
    assert {*found} == {*CANARIES, PERSON}, "the search does not find what is there"
    kinds = {Path(file).suffix for files in found.values() for file in files}
    assert kinds >= ({".parquet", ".avro"} if file_format() == "iceberg" else {".parquet", ".json"}), kinds

    result = estate.erase(now=True)
    assert estate.leaks() == {}
    assert (result.records, result.keys, result.not_reached) == (3, 1, [])
    assert len(result.landing_files) == (2 if type(estate) is Estate else 0)
    assert result.source_tables == ([str(estate.table)] if isinstance(estate, EstateOfAppendTable) else [])
    assert set(result.versions_deleted) == set(result.tables)
    assert estate.all_rows() == of_others(before)
    assert estate.live() == [3, OTHER]
    assert estate.unbalanced() == []

    # The same again finds nothing and changes nothing.
    again = estate.erase()
    assert (again.records, again.rows, again.landing_files) == (0, {}, result.landing_files)

    # Late records are dropped and counted, the run goes on, and so does a rebuild.
    totals = estate.deliver(estate.record(PERSON), estate.record(OTHER, name="new"), estate.record(PERSON, "INSERT"))
    assert (totals.records, totals.erased_records, totals.unreadable) == (1, 2, 0)
    estate.run()
    assert estate.live() == [3, OTHER]
    assert estate.unbalanced() == []
    rows = estate.all_rows()
    estate.run(full_refresh=True)
    assert estate.all_rows() == rows
    assert estate.unbalanced() == []
    assert estate.leaks() == {}


def killed_after(writes: int) -> Callable[[ErasureTables], ErasureTables]:
    """Return what lets the job die when it has written so often."""

    def dying(tables: ErasureTables) -> ErasureTables:
        written, write = itertools.count(1), tables._patiently

        def once(table: TableName, act: Callable[[], object]) -> None:
            write(table, act)
            if next(written) == writes:
                raise Killed

        tables._patiently = once  # type: ignore[method-assign]
        return tables

    return dying


@pytest.mark.soak
def test_an_erasure_that_dies_again_and_again_ends_all_the_same(estate: Estate) -> None:
    """Each attempt dies after two writes, until one has no more to do; a late record comes between two."""
    estate.fill()
    rows = of_others(estate.all_rows())
    for attempt in range(1, 40):
        try:
            result = estate.erase(tables=killed_after(2))
            break
        except Killed:
            if attempt == 4:
                estate.deliver(estate.record(PERSON))
    assert 5 < attempt < 39, "it did not die, or goes on for ever"
    assert (result.ledgers, result.not_reached) == ({}, []), "the last attempt has found no more"
    notes = estate.spark.table(estate.staging.sql).where("object = '#erased'").count()
    assert notes == 4, "three records and the late one"
    assert estate.all_rows() == rows and estate.live() == [3, OTHER]
    assert estate.unbalanced() == []
    assert (estate.erase(now=True).records, estate.leaks()) == (0, {})
    for full_refresh in (False, True):
        estate.run(full_refresh)
        assert estate.all_rows() == rows and estate.unbalanced() == []


@pytest.mark.soak
@pytest.mark.parametrize("estate", [EstateOfAppendTable], indirect=True)
def test_an_append_table_that_is_read_again_brings_no_erased_row_back(estate: EstateOfAppendTable) -> None:
    estate.fill()
    estate.erase()
    staged = estate.spark.table(estate.staging.sql).count()
    for number in (2, 0):
        totals = estate.append(reread=True)
        assert (totals.records, totals.erased_records) == (number, 6), "what was purged comes again, of others"
        estate.run()
        assert estate.live() == [3, OTHER]
        assert estate.unbalanced() == []
    assert estate.spark.table(estate.staging.sql).count() == staged + 2 + 2, "the rows, and one cut for each append"


@pytest.mark.soak
@pytest.mark.parametrize("estate", [EstateOfTransactions], indirect=True)
def test_rows_of_a_snapshot_beside_a_log_are_erased_and_a_later_snapshot_leaves_them_out(estate: Estate) -> None:
    copy = TableName((estate.elsewhere, "people_copy"))

    def stage_snapshot(day: int, ids: list[int], **values: Any) -> Any:
        rows = estate.spark.table(f"{estate.projects['a'].schema}.people").select(*COLUMNS).collect()
        there = {row.id: row.asDict() for row in rows}
        person = {**dict.fromkeys(COLUMNS, None), "id": PERSON}
        copied = pa.Table.from_pylist([{**there.get(id_, person), **values} for id_ in ids], schema=_schema_of_rows())
        end = estate.place + 1
        said = {"": "jdbc", "position_kind": "pg_snapshot", "position": f"{end}:{end}:", "table": "shop.people"}
        said["taken_at"] = f"2026-12-{day:02}T00:00:00.000000000Z"
        load_snapshot(estate.spark.createDataFrame(copied), copy, said)
        job = log_snapshots.Job(copy, estate.staging)
        return log_snapshots.run(estate.spark, job, Caller(say=estate.said.append))

    estate.fill(with_purge=False)
    assert stage_snapshot(1, [PERSON, OTHER, 3]).rows == 3
    estate.run()
    assert estate.unbalanced() == []
    rows = estate.all_rows()
    assert {*estate.leaks()} == {*CANARIES, PERSON}

    result = estate.erase(now=True)
    assert estate.leaks() == {}
    assert (result.records, result.source_tables, len(result.landing_files)) == (7, [str(copy)], 4)
    assert estate.all_rows() == of_others(rows)
    assert estate.unbalanced() == []
    live = estate.spark.table(f"{estate.projects['a'].schema}.people").select(*COLUMNS).orderBy("id").collect()
    assert [row.id for row in live] == [3, OTHER]
    estate.run(full_refresh=True)
    # A rebuild takes rows from the snapshot that a run before it left, since they were equal.
    people = estate.spark.table(f"{estate.projects['a'].schema}.people").select(*COLUMNS).orderBy("id").collect()
    assert people == live
    assert estate.rows("a", "past") == of_others(rows)["a", "past"]
    assert estate.unbalanced() == []
    assert (estate.erase().records, estate.erase().rows) == (0, {})

    totals = stage_snapshot(2, [PERSON, OTHER, 3], name="repaired")
    assert (totals.rows, totals.erased_rows) == (2, 1)
    for full_refresh in (False, True):
        estate.run(full_refresh)
        names = estate.spark.table(f"{estate.projects['a'].schema}.people").select("id", "name").orderBy("id")
        assert [tuple(row) for row in names.collect()] == [(3, "repaired"), (OTHER, "repaired")]
        assert estate.unbalanced() == []
    assert estate.leaks() == {}


@pytest.mark.soak
def test_snapshots_of_a_table_without_a_log_are_erased_and_the_next_one_follows(estate: Estate) -> None:
    staging, copy = TableName((estate.staging.schema, "codes")), TableName((estate.elsewhere, "codes"))
    project = estate.projects["a"]
    project.source(staging.schema, "codes")
    call = "reconcile.snapshots(source('lake', 'codes'), object='codes')"
    config = "{{ config(materialized='current_state', unique_key='id') }}"
    project.model("codes", f"{config}\n{{{{ {call} }}}}", COLUMNS)
    estate.models = [("a", "codes")]

    def stage_snapshot(day: int, *people: dict[str, Any]) -> Any:
        rows = estate.spark.createDataFrame(pa.Table.from_pylist(list(people), schema=_schema_of_rows()))
        load_snapshot(rows, copy, {"": "csv", "taken_at": f"2026-12-{day:02}T00:00:00.000000000Z"})
        job = snapshot_differences.Job(copy, staging, key=("id",))
        totals = snapshot_differences.run(estate.spark, job, Caller(say=estate.said.append))
        return totals.inserted, totals.updated, totals.deleted, totals.erased_rows

    def erase_codes() -> Result:
        file = estate.root / "codes.csv"
        file.write_text(f"id\n{PERSON}\n{PERSON + 10}\n")
        file.chmod(0o600)
        _, chosen = erase.reader_of(estate.spark, f"{project.schema}.codes", staging)
        keys = read_keys_file(str(file))
        return Erasure(estate.spark, staging, chosen, keys, "T", estate.said.append).run(now=True)

    person, other = estate.payload(PERSON), estate.payload(OTHER)
    gone = {**estate.payload(5), "id": PERSON + 10}
    assert stage_snapshot(1, person, other, gone) == (3, 0, 0, 0)
    Tables(estate.spark, staging).make_readers()
    estate.run()
    assert stage_snapshot(2, {**person, "age": 41}, other) == (0, 1, 1, 0)
    estate.run()
    assert estate.unbalanced() == [] and PERSON in estate.leaks()

    result = erase_codes()
    assert (result.records, result.source_tables, result.landing_files) == (4, [str(copy)], [])
    assert estate.leaks() == {}
    assert estate.unbalanced() == []
    assert (erase_codes().records, erase_codes().rows) == (0, {})
    assert stage_snapshot(3, person, {**other, "age": 41}) == (0, 1, 0, 1)
    assert stage_snapshot(4, person, other, {**other, "id": 3}) == (1, 1, 0, 1)
    assert stage_snapshot(5, {**other, "id": 3}) == (0, 0, 1, 0)
    for full_refresh in (False, True):
        estate.run(full_refresh)
        assert [row.id for row in estate.spark.table(f"{project.schema}.codes").collect()] == [3]
        assert estate.unbalanced() == []
    assert estate.leaks() == {}


def _schema_of_rows() -> Any:
    kinds = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


@pytest.mark.soak
def test_after_an_erasure_nothing_that_dbt_does_brings_the_person_back_and_parity_matches(estate: Estate) -> None:
    """A rebuild, earlier moments, a model that is put back and goes on; no file, log or artifact has a value."""
    estate.fill(with_purge=False)
    last = estate.files
    estate.erase(now=True)
    found = estate.spark.table(f"{estate.projects['a'].schema}.people").select(*COLUMNS)
    found.where(f"id <> {PERSON}").writeTo(f"{estate.staging.schema}.people_source").using(file_format()).create()

    project = Project(estate.root / "dbt", estate.projects["a"].schema)
    project.source(estate.staging.schema, "changes", "people_source")
    parity = {"compare_to": "source('lake', 'people_source')", "key": "id", "store_values": True}
    tests = ["reconcile.ledger_balances", {"reconcile.parity": {"arguments": parity}}]
    for name, materialized in (("people", "current_state"), ("past", "history")):
        config = f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}"
        project.model(name, f"{config}\n{{{{ {CALL} }}}}", COLUMNS, data_tests=tests[: 2 if name == "people" else 1])
    rows = estate.all_rows()
    then = f"{project.schema}_then"
    for batch in (1, last):
        project.run(variables={"as_of": {"batch": batch}, "as_of_schema": then})
    assert {row.id for row in estate.spark.table(f"{then}.people").collect()} == {3, OTHER}
    project.run(full_refresh=True)
    assert estate.all_rows() == rows
    project.run(variables={"restore": {"batch": 2}})
    assert PERSON not in estate.live()
    estate.deliver(estate.record(PERSON), estate.record(3, name="new"))
    project.run()
    assert estate.live() == [3, OTHER]
    assert project.failing_tests("past") == set()
    assert project.failing_tests("people") == {"parity"}, "the source does not have the new record yet"
    found.where(f"id <> {PERSON}").writeTo(f"{estate.staging.schema}.people_source").using(file_format()).replace()
    assert project.failing_tests("people") == set()

    assert estate.leaks() == {}
    written = {*(estate.root / "dbt").rglob("*.log"), *(estate.root / "dbt" / "target").rglob("*.json")}
    assert len(written) > 3
    said = "\n".join([*estate.said, *(file.read_text() for file in written)])
    assert not [value for value in (*CANARIES, str(PERSON)) if value in said]


@pytest.mark.soak
def test_a_key_of_several_columns_is_erased_in_all_projects_and_at_earlier_moments(estate: Estate) -> None:
    """Records whose key cannot be read stay, until somebody says that they go too."""
    call = "reconcile.datastream_postgresql(source('lake', 'codes'), object='shop.codes')"
    config = "{{ config(materialized='current_state', unique_key=['region', 'id']) }}"
    staging = TableName((estate.staging.schema, "codes"))
    name = staging.schema.removesuffix("_lake")
    projects = [PlainProject(estate.warehouse, f"{name}_{part}", file_format=file_format()) for part in "cd"]
    for project in projects:
        project.source(staging.schema, "codes")
        project.model("codes", f"{config}\n{{{{ {call} }}}}", {"region": "string", "id": "int", "name": "string"})
    keys = [("e'u", 7), ("us", 7), ("e'u", 8)]

    def stage(batch: int, *payloads: dict[str, Any]) -> None:
        records = [
            event("postgresql", payload, "UPDATE", metadata={"lsn": f"0/{batch}{place:X}"}, object="shop.codes")
            for place, payload in enumerate(payloads)
        ]
        estate.warehouse.stage(f"{staging.schema}.codes", [Staged(one, "shop.codes", batch) for one in records])

    def run() -> None:
        for project in projects:
            project.context["invocation_id"] = str(uuid.uuid4())
            project.run("codes")

    def rows(table: str) -> list[tuple[str, int]]:
        found = estate.spark.table(table).select("region", "id").orderBy("region", "id").collect()
        return [tuple(row) for row in found]

    def erase_codes(**options: Any) -> Result:
        file = estate.root / "codes.csv"
        file.write_text("id,region\n7,e'u\n")
        file.chmod(0o600)
        _, chosen = erase.reader_of(estate.spark, f"{name}_c.codes", staging)
        return Erasure(
            estate.spark, staging, chosen, read_keys_file(str(file)), "T", estate.said.append, **options
        ).run()

    stage(1, *({"region": region, "id": id_, "name": "one"} for region, id_ in keys))
    Tables(estate.spark, staging).make_readers()
    run()
    projects[0].variables |= {"as_of": {"batch": 1}, "as_of_schema": f"{name}_then"}
    projects[0].run("codes")
    for variable in ("as_of", "as_of_schema"):
        projects[0].variables.pop(variable)
    stage(2, {"region": "e'u", "id": "seven", "name": "two"}, {"region": "e'u", "name": "no id"})
    run()
    (then,) = [
        row.namespace for row in estate.spark.sql("show schemas").collect() if row.namespace.startswith(f"{name}_then")
    ]

    result = erase_codes()
    assert (result.records, result.unreadable) == (1, 3), "in staging and in two quarantines, the one without an id"
    assert len(result.rows) == 3
    others = [("e'u", 8), ("us", 7)]
    for schema in (f"{name}_c", f"{name}_d", then):
        assert rows(f"{schema}.codes__base") == others, schema
    result = erase_codes(with_unreadable=True)
    assert (result.records, result.unreadable) == (1, 0)
    for project in projects:
        assert estate.spark.table(f"{project.schema}.codes__quarantine").count() == 1, "its key is another one"
        assert estate.warehouse.sql(project.test("ledger_balances", "codes")).collect() == []
        project.run("codes", full_refresh=True)
        assert rows(f"{project.schema}.codes__base") == others
        assert estate.warehouse.sql(project.test("ledger_balances", "codes")).collect() == []
