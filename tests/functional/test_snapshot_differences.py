"""Snapshots of a table without a log: staged as their differences, they give its rows and its history, exactly."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from erased import register_erased
from file_formats import failpoints_of_an_append, file_format
from memory import Memory, MemoryProject
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs.process import failpoints
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.snapshot_differences import Job, Totals, run
from reconcile_jobs.snapshots.snapshot_files import load_files, load_table
from reconcile_jobs.staging import TableName

COLUMNS = {
    "region": "string",
    "id": "bigint",
    "name": "string",
    "total": "decimal(38,10)",
    "ratio": "double",
    "weight": "float",
    "vip": "boolean",
    "small": "tinyint",
    "born": "date",
    "seen": "timestamp",
    "local": "timestamp_ntz",
    "payload": "binary",
    "tags": "array<string>",
    "prices": "map<string,decimal(12,2)>",
    "rates": "array<decimal(20,10)>",
    "days": "map<date,double>",
}
KEY = ("region", "id")
START = datetime(2026, 5, 1, 1, 30, tzinfo=UTC)
# The place at which most is there already is tried in `make test`, the others in `make soak`.
DEATHS = [
    pytest.param(name, marks=[] if name == "after_data_commit" else pytest.mark.soak)
    for name in failpoints_of_an_append()
    if "checkpoint" not in name
]
Rows = dict[tuple[Any, ...], dict[str, Any]]


class Place:
    """A staging table that all tests share, each with an object of its own, and a table whose snapshots are staged."""

    def __init__(self, spark: SparkSession, schema: str, name: str) -> None:
        self.spark, self.staging, self.object = spark, TableName((schema, "staged")), name
        self.table, self.view = TableName((schema, "countries_copy")), TableName((schema, "countries"))
        self.said: list[str] = []

    def load(self, rows: DataFrame, number: int = 0) -> None:
        """Take a snapshot of these rows."""
        rows.createOrReplaceTempView("rows_of_the_source")
        self.spark.sql(f"create schema if not exists {self.view.schema_sql}")
        made = f"create or replace table {self.view.sql} using {file_format()}"
        ntz = " tblproperties ('delta.feature.timestampNtz' = 'supported')" if file_format() == "delta" else ""
        self.spark.sql(f"{made}{ntz} as select * from rows_of_the_source")
        load_table(self.spark, self.view, self.table, moment(number))

    def append(self, **options: Any) -> Totals:
        job = Job(**{"table": self.table, "staging": self.staging, "key": KEY, "object": self.object, **options})
        return run(self.spark, job, Caller(say=self.said.append))

    def records(self) -> list[dict[str, Any]]:
        staged = self.spark.table(self.staging.sql)
        rows = staged.where(staged.object == self.object).orderBy("batch").collect()
        return [json.loads(row.record) for row in rows]


def moment(number: int) -> str:
    return (START + timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%S.000000000Z")


@pytest.fixture(scope="module")
def schema(spark: SparkSession) -> Iterator[str]:
    yield "snapshots_of_tables"
    for table in ("staged", "staged_with_erased_keys", "countries_copy", "countries"):
        spark.sql(f"drop table if exists snapshots_of_tables.{table}")


@pytest.fixture
def place(spark: SparkSession, schema: str, request: pytest.FixtureRequest) -> Place:
    return Place(spark, schema, request.node.name)


def small(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "region string, id bigint, name string")


def value_of(kind: str, chance: random.Random) -> Any:
    """Return a value of a type, often an odd one."""
    if chance.random() < 0.15:
        return None
    return {
        "string": lambda: chance.choice(["", "NULL", "null", "a\"b\\c,}'{", "ü\u0000\U0001f600", '"row":', "7", " x "]),
        "bigint": lambda: chance.choice([0, -1, 2**63 - 1, -(2**63), chance.randrange(10**12)]),
        "decimal(38,10)": lambda: chance.choice(
            [Decimal("0E-10"), Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"), Decimal("12.5000000000")]
        ),
        "double": lambda: chance.choice([0.1, -1e300, float("inf"), float("-inf"), float("nan"), 5e-324, 2.0]),
        "float": lambda: chance.choice([0.5, float("inf"), 1.0000001192092896, -3.5]),
        "boolean": lambda: chance.random() < 0.5,
        "tinyint": lambda: chance.choice([-128, 127, 0]),
        "date": lambda: chance.choice([date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]),
        "timestamp": lambda: chance.choice(
            [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999999, UTC), START]
        ),
        "timestamp_ntz": lambda: chance.choice(
            [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2026, 3, 29, 2, 30, 0, 7)]
        ),
        "binary": lambda: bytearray(chance.choice([b"", bytes(range(256)), b"\x00"])),
        "array<string>": lambda: chance.choice([[], ["a", None, '"'], [""]]),
        "map<string,decimal(12,2)>": lambda: chance.choice(
            [{}, {"a": Decimal("1.10"), "b": None}, {"": Decimal("0.01")}]
        ),
        "array<decimal(20,10)>": lambda: [Decimal("0E-10"), None, Decimal("-1234567890.0123456789")],
        "map<date,double>": lambda: {date(2026, 5, 1): 1e22, date(1, 1, 1): -0.5},
    }[kind]()


def invented(snapshots: int, chance: random.Random) -> list[Rows]:
    """Return snapshots that follow from each other: rows come, go, come back, change and stay."""
    keys = [(region, number) for region in ("", "EU", 'a"b') for number in (1, 2, -(2**63), 11)]
    found: list[Rows] = []
    rows: Rows = {}
    for _ in range(snapshots):
        rows = dict(rows)
        for key in keys:
            what = chance.random()
            if what < 0.3:
                rows.pop(key, None)
            elif what < 0.6 or (key not in rows and what < 0.8):
                values = {name: value_of(kind, chance) for name, kind in COLUMNS.items() if name not in KEY}
                rows[key] = dict(zip(KEY, key, strict=True)) | values
        found.append(rows)
    found.insert(2, dict(found[1]))  # one that equals the one before it
    return found


def comparable(row: dict[str, Any]) -> str:
    """Return a row as a text that is the same for the same row: NaN equals itself, and a map has no order."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, Decimal):
            return value.normalize()
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value
        if isinstance(value, list):
            return [plain(item) for item in value]
        return sorted((key, plain(item)) for key, item in value.items()) if isinstance(value, dict) else value

    return repr({name: plain(row[name]) for name in sorted(row)})


def frame(spark: SparkSession, rows: Rows) -> DataFrame:
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return spark.createDataFrame([tuple(row[name] for name in COLUMNS) for row in rows.values()], schema)


def asked(memory: Memory, name: str) -> list[dict[str, Any]]:
    """Return the rows of a model, its moments with their zone."""
    rows = memory.table(name)
    seen = [f"cast(unix_micros({c}) as string) as {c}" if k == "timestamp" else f"`{c}`" for c, k in rows.dtypes]
    return [row.asDict() for row in rows.selectExpr(*seen).collect()]


def micros(value: datetime | None) -> str | None:
    return None if value is None else str((value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def with_micros(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"seen": micros(row["seen"])}


MODEL = "{{{{ reconcile.snapshots(source('lake', 'staged'), object='{}') }}}}"


def models_of(memory: Memory, name_of_object: str) -> MemoryProject:
    """Return a project that keeps the table in each way, and reads what was staged."""
    project = memory.project("shop")
    project.source("lake", "staged")
    for name in ("current_state", "history"):
        tests = ["reconcile.ledger_balances", "reconcile.no_quarantine"]
        config = f"{{{{ config(materialized='{name}', unique_key={list(KEY)}) }}}}"
        project.model(name, f"{config}\n{MODEL.format(name_of_object)}", COLUMNS, data_tests=tests)
    return project


def test_rows_of_erased_keys_are_no_differences(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.staging = TableName((place.staging.schema, "staged_with_erased_keys"))
    place.load(small(spark, ("eu", 1, "a"), ("eu", 2, "b")), 0)
    place.append()
    register_erased(spark, place.staging, monkeypatch, place.object, "name", "c")
    place.load(small(spark, ("eu", 1, "a"), ("eu", 2, "d"), ("eu", 3, "c")), 1)
    totals = place.append()
    assert (totals.rows, totals.erased_rows, totals.inserted, totals.updated) == (2, 1, 0, 1)
    place.load(small(spark, ("eu", 1, "a"), ("eu", 3, "c")), 2)
    totals = place.append()
    assert (totals.rows, totals.erased_rows, totals.deleted, totals.unchanged) == (1, 1, 1, 1)


def test_the_rows_and_the_history_are_those_of_the_snapshots_whatever_changed_between_them(
    spark: SparkSession, place: Place
):
    snapshots = invented(4, random.Random(7))
    with Memory(spark) as memory:
        project = models_of(memory, place.object)
        for number, rows in enumerate(snapshots):
            place.load(frame(spark, rows), number)
            before = snapshots[number - 1] if number else {}
            totals = place.append(allow_empty=True)
            assert (totals.rows, totals.inserted, totals.deleted) == (
                len(rows),
                len(rows.keys() - before.keys()),
                len(before.keys() - rows.keys()),
            )
            changed = [key for key in rows.keys() & before.keys() if comparable(rows[key]) != comparable(before[key])]
            assert (totals.updated, totals.unchanged) == (len(changed), len(rows.keys() & before.keys()) - len(changed))
            if number in (1, len(snapshots) - 1):
                memory.keep("lake.staged", spark.table(place.staging.sql))
                project.run()
                wanted = sorted(comparable(with_micros(row)) for row in rows.values())
                seen = sorted(map(comparable, asked(memory, "shop.current_state")))
                assert seen == wanted, [(a, b) for a, b in zip(seen, wanted, strict=False) if a != b]
        assert not any(project.failing_tests(name) for name in ("current_state", "history"))

        versions = []
        for key in {key for rows in snapshots for key in rows}:
            open_since, row = None, None
            for number, rows in enumerate([*snapshots, {}]):
                now = rows.get(key)
                if number == len(snapshots) or (now and comparable(now)) != (row and comparable(row)):
                    if row is not None:
                        until = None if number == len(snapshots) else micros(START + timedelta(days=number))
                        versions.append(with_micros(row) | {"valid_from": open_since, "valid_to": until})
                    open_since, row = micros(START + timedelta(days=number)), now
        wanted = sorted(map(comparable, versions))
        seen = [
            {name: row[name] for name in (*COLUMNS, "valid_from", "valid_to")} for row in asked(memory, "shop.history")
        ]
        assert sorted(map(comparable, seen)) == wanted
        assert len(wanted) > 15


def test_a_snapshot_that_equals_the_one_before_it_appends_no_record(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a"), ("EU", 2, None)))
    assert place.append().inserted == 2
    place.load(small(spark, ("EU", 2, None), ("EU", 1, "a")), 1)
    totals = place.append()
    assert (totals.rows, totals.unchanged, totals.inserted, totals.updated, totals.deleted) == (2, 2, 0, 0, 0)
    assert len(place.records()) == 2


def test_one_snapshot_is_staged_once(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a")))
    # As the snapshot of a database has it.
    at = "'reconcile.snapshot.taken_at' = '2026-05-01 03:30:00.120000+02'"
    spark.sql(f"alter table {place.table.sql} set tblproperties ({at})")
    assert place.append().taken_at == "2026-05-01T01:30:00.120000000Z"
    totals = place.append()
    assert (totals.first_batch, len(place.records())) == (None, 1)
    assert place.said[-1].endswith(", and nothing was appended")


def test_objects_of_one_staging_table_do_not_meet(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a")))
    place.append()
    place.append(object="OTHER")
    place.load(small(spark, ("EU", 2, "b")), 1)
    totals = place.append()
    assert (totals.inserted, totals.deleted) == (1, 1)
    staged = spark.table(place.staging.sql).where("object = 'OTHER'")
    assert [json.loads(row.record)["change"] for row in staged.collect()] == ["insert"]


@pytest.mark.parametrize("place_of_death", DEATHS)
def test_killed_anywhere_the_same_command_stages_the_newest_snapshot_once(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch, place_of_death: str
):
    def reach(reached: str) -> None:
        if reached == place_of_death:
            raise RuntimeError(f"killed at {place_of_death}")

    place.load(small(spark, ("EU", 1, "a"), ("EU", 2, "b")))
    place.append()
    place.load(small(spark, ("EU", 1, "changed"), ("EU", 3, "c")), 1)
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reach", reach)
        with pytest.raises(Fault, match=place_of_death):
            place.append()
    # Meanwhile a newer snapshot was loaded into the same table.
    place.load(small(spark, ("EU", 1, "changed"), ("EU", 4, "d")), 2)
    place.append()
    rows = {"1": "a", "2": "b"}
    for record in place.records()[2:]:
        rows[record["key"]["id"]] = record["row"].get("name")
    assert {key: name for key, name in rows.items() if name} == {"1": "changed", "4": "d"}
    place.load(small(spark, ("EU", 1, "changed"), ("EU", 4, "d")), 3)
    assert place.append().unchanged == 2
    assert len(place.records()) in (5, 7), "each difference once"


def refused(
    spark: SparkSession, place: Place, kind: type[Exception], sentence: str, change: Callable[[], Any], **options: Any
) -> None:
    """What is refused leaves staging as it was."""
    change()
    before = spark.table(place.staging.sql).count() if spark.catalog.tableExists(place.staging.sql) else 0
    with pytest.raises(kind, match=sentence):
        place.append(**options)
    after = spark.table(place.staging.sql).count() if spark.catalog.tableExists(place.staging.sql) else 0
    assert after == before


def test_what_would_delete_or_mix_rows_is_refused_with_a_sentence(spark: SparkSession, place: Place):
    def load(*rows: tuple[Any, ...], number: int = 1) -> Callable[[], None]:
        return lambda: place.load(small(spark, *rows), number)

    def load_as(sql: str, number: int = 1) -> Callable[[], None]:
        return lambda: place.load(spark.sql(sql), number)

    def nothing() -> None:
        pass

    load(("EU", 1, "a"), number=0)()
    refused(spark, place, UsageError, "has no column nr; it has region, id, name", nothing, key=("region", "nr"))
    refused(spark, place, UsageError, "countries was not created by snapshot.py", nothing, table=place.view)
    refused(spark, place, UsageError, "There is no table", nothing, table=TableName(("snapshots_of_tables", "none")))
    refused(spark, place, UsageError, "--object '#cut' is not a valid name", nothing, object="#cut")
    place.append()
    refused(spark, place, DataError, "has no rows, which would delete every row of test_what", load())
    refused(
        spark,
        place,
        DataError,
        r'id does not identify a row of .*: 2 rows have {"id":"2"}',
        load(("EU", 2, "a"), ("US", 2, "b")),
        key=("id",),
        object="X",
    )
    refused(spark, place, DataError, "have NULL in the key region, id", load(("EU", 2, "a"), (None, 3, "b")))
    refused(
        spark, place, UsageError, "already has one of 2026-05-01T01:30:00.000000000Z", load(("EU", 2, "a"), number=-1)
    )
    refused(
        spark, place, UsageError, "already has one of 2026-05-01T01:30:00.000000000Z", load(("EU", 2, "a"), number=0)
    )
    refused(spark, place, UsageError, "--at: yesterday is not a timestamp", load(("EU", 2, "a")), at="yesterday")
    refused(spark, place, UsageError, "The key of test_what.* in .* is region, id, and not id", nothing, key=("id",))
    refused(spark, place, UsageError, "lacks the column name", load_as("select 'EU' as region, 1L as id"))
    more = "select 'EU' as region, 1L as id, 'a' as name, 7 as more"
    refused(spark, place, UsageError, "has new columns: more. Give --allow-new-columns", load_as(more))
    assert place.append(allow_new_columns=True).updated == 1
    other = "select 'EU' as region, 1L as id, 'a' as name, 7L as more"
    refused(spark, place, UsageError, "other types than before: more int", load_as(other, number=2))
    refused(
        spark,
        place,
        DataError,
        r"The row {.*} of .* has \d+ bytes: raise --longest-record",
        load(("EU", 1, "a" * 500)),
        longest_record=400,
        object="X",
    )


def test_where_staging_was_purged_a_snapshot_is_refused(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a"), ("EU", 2, "b")))
    place.append()
    spark.sql(f"delete from {place.staging.sql} where object = '{place.object}' and record like '%\"id\":\"2\"%'")
    place.load(small(spark, ("EU", 1, "a")), 1)
    with pytest.raises(UsageError, match="has records of 1 of the 2 rows that the snapshot of"):
        place.append()


def test_columns_in_another_order_are_the_same_rows_and_no_text_is_changed(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a")))
    place.append()
    place.load(small(spark, ("EU", 1, "a")).select("name", "id", "region"), 1)
    assert place.append().unchanged == 1
    place.load(spark.sql("select 'EU' as region, 1L as id, cast(x'ff' as string) as name"), 2)
    with pytest.raises(DataError, match="A text of the column name is not UTF-8"):
        place.append()


def test_an_empty_snapshot_deletes_every_row_if_it_is_allowed(spark: SparkSession, place: Place):
    place.load(small(spark, ("EU", 1, "a"), ("EU", 2, "b")))
    place.append()
    place.load(small(spark), 1)
    assert place.append(allow_empty=True).deleted == 2


def test_a_snapshot_of_files_has_the_columns_of_all_of_them(spark: SparkSession, place: Place, tmp_path: Any):
    for name, columns in (("0", "1L as id"), ("1", "2L as id, 'b' as note"), ("2", "3L as id")):
        spark.sql(f"select {columns}").coalesce(1).write.parquet(str(tmp_path / "export" / name))
    assert load_files(spark, str(tmp_path / "export" / "*"), "parquet", place.table, moment(0)) == 3
    rows = spark.table(place.table.sql).select("id", "note").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, "b"), (3, None)]


def test_parquet_files_become_a_snapshot_and_what_is_not_there_is_named(
    spark: SparkSession, place: Place, tmp_path: Any
):
    small(spark, ("EU", 1, "a"), ("EU", 2, "b")).write.parquet(str(tmp_path / "export"))
    assert load_files(spark, str(tmp_path / "export"), "parquet", place.table, moment(0)) == 2
    assert place.append().inserted == 2
    with pytest.raises(UsageError, match="There is no parquet file at"):
        load_files(spark, str(tmp_path / "nowhere"), "parquet", place.table, moment(0))
    with pytest.raises(UsageError, match=r"already exists and was not created by snapshot\.py"):
        load_files(spark, str(tmp_path / "export"), "parquet", place.staging, moment(0))
