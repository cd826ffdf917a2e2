"""H2 in Oracle mode stands in for Oracle: it renders what Oracle would, where it can; it has no SCN."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest
from reconcile_jobs.jdbc.connection import Source, connected
from reconcile_jobs.jdbc.oracle import Oracle
from reconcile_jobs.process.errors import DataError
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions
from reconcile_jobs.staging import TableName


class OracleOnH2(Oracle):
    """Oracle without what only Oracle has: flashback queries, and a session's NLS settings."""

    driver = "org.h2.Driver"

    def prepare(self, connection, table):
        pass

    def fix(self, connection, table, at):
        cut = super().fix(connection, table, at)
        assert cut.clause == f" AS OF SCN {cut.position}" and cut.session.startswith("ALTER SESSION SET NLS_")
        return replace(cut, clause="", session=None)


# Oracle's type, of all_tab_columns: name, precision, scale; what it becomes, and values as SQL and as they arrive.
TYPES = [
    ("NUMBER(19)", ("NUMBER", 19, 0), "decimal(19,0)", [("1234567890123456789", Decimal(1234567890123456789))]),
    ("NUMBER", ("NUMBER", None, None), "string", [("1.10", "1.1"), ("0.00000000000000000001", f".{'0' * 19}1")]),
    ("NUMBER(38,10)", ("NUMBER", 38, 10), "decimal(38,10)",
     [("-1234567890123456789012345678.0123456789", Decimal("-1234567890123456789012345678.0123456789"))]),
    ("BINARY_DOUBLE", ("BINARY_DOUBLE", None, None), "double", [("0.30000000000000004", 0.30000000000000004)]),
    ("BINARY_FLOAT", ("BINARY_FLOAT", None, None), "float", [("0.1", 0.10000000149011612)]),
    ("CHAR(4)", ("CHAR", None, None), "string", [("'ab'", "ab  ")]),
    ("VARCHAR2(20)", ("VARCHAR2", None, None), "string", [("'é '", "é ")]),
    ("CLOB", ("CLOB", None, None), "string", [("'long'", "long")]),
    ("RAW(4)", ("RAW", None, None), "binary", [("X'00ff'", b"\x00\xff")]),
    ("BLOB", ("BLOB", None, None), "binary", [("X'00ff'", b"\x00\xff")]),
    ("DATE", ("DATE", None, None), "timestamp_ntz",
     [("TIMESTAMP '2026-03-29 02:30:00'", datetime(2026, 3, 29, 2, 30))]),
    ("TIMESTAMP(6)", ("TIMESTAMP(6)", None, 6), "timestamp_ntz",
     [("TIMESTAMP '1969-12-31 23:59:59.999999'", datetime(1969, 12, 31, 23, 59, 59, 999999))]),
    ("TIMESTAMP(6) WITH TIME ZONE", ("TIMESTAMP(6) WITH TIME ZONE", None, 6), "timestamp",
     [("TIMESTAMP WITH TIME ZONE '2026-03-29 02:30:00.000001+05:30'", 1774731600000001)]),
]  # fmt: skip


@pytest.fixture
def source(spark):
    source = Source(OracleOnH2(), "jdbc:h2:mem:shop;MODE=Oracle;DB_CLOSE_DELAY=-1", {})
    with connected(spark, source) as connection:
        for statement in (
            "DROP ALL OBJECTS",
            "CREATE TABLE v$database (current_scn bigint)",
            "INSERT INTO v$database VALUES (15869128507100)",
            "CREATE ALIAS scn_to_timestamp FOR 'java.time.Instant.ofEpochSecond'",
            "CREATE TABLE all_tab_columns (owner varchar(99), table_name varchar(99), column_name varchar(99), "
            "data_type varchar(99), data_precision int, data_scale int, column_id int)",
            "CREATE SCHEMA shop",
            "COMMIT",
        ):
            connection.execute(statement)
    return source


def create(spark, source: Source, table: str, columns: list[tuple], rows: list[str]) -> None:
    """Make a table of (name, type, what the catalog says of it)."""
    with connected(spark, source) as connection:
        connection.execute(f"CREATE TABLE shop.{table} ({', '.join(f'{name} {kind}' for name, kind, _ in columns)})")
        for place, (name, _, (kind, precision, scale)) in enumerate(columns):
            numbers = ", ".join("NULL" if number is None else str(number) for number in (precision, scale, place))
            connection.execute(
                f"INSERT INTO all_tab_columns VALUES ('SHOP', '{table.upper()}', '{name.upper()}', '{kind}', {numbers})"
            )
        for row in rows:
            connection.execute(f"INSERT INTO shop.{table} VALUES ({row})")
        connection.execute("COMMIT")


def load(spark, source: Source, table: str, **how):
    spark.sparkContext.setLogLevel("OFF")  # as in the job
    return snapshot_jdbc.load_jdbc(spark, source, table, TableName.parse("lake.of_oracle"), **how)


def test_every_type(spark, source):
    columns = [("id", "NUMBER(9)", ("NUMBER", 9, 0))]
    columns += [(f"c{place}", kind, catalog) for place, (kind, catalog, _, _) in enumerate(TYPES)]
    rows = [
        ", ".join([str(row), *(values[row][0] if row < len(values) else "NULL" for *_, values in TYPES)])
        for row in range(3)
    ]
    create(spark, source, "types", columns, rows)
    snapshot = load(spark, source, "shop.types")
    assert (snapshot.rows, snapshot.position) == (3, "15869128507100")
    frame = spark.table("lake.of_oracle").orderBy("ID")
    assert [kind for _, kind in frame.dtypes[1:]] == [kind for _, _, kind, _ in TYPES]
    kinds = dict(frame.dtypes)
    found = frame.selectExpr(
        *(f"unix_micros({name})" if kinds[name] == "timestamp" else name for name in frame.columns)
    ).collect()
    for place, (kind, _, _, values) in enumerate(TYPES, 1):
        there = [bytes(row[place]) if isinstance(row[place], bytearray) else row[place] for row in found]
        assert there == [value for _, value in values] + [None] * (3 - len(values)), kind


def test_partitions_and_an_earlier_position(spark, source):
    columns = [("id", "NUMBER(9)", ("NUMBER", 9, 0)), ("n", "NUMBER", ("NUMBER", None, None))]
    create(spark, source, "numbers", columns, [f"{row}, {row}.125" for row in range(50)] + ["NULL, 1"])
    snapshot = load(
        spark, source, 'SHOP."NUMBERS"', at="42", columns="id int, n decimal(9,3)", partitions=Partitions("id", 7)
    )
    assert (snapshot.rows, snapshot.position) == (51, "42")
    properties = {row.key: row.value for row in spark.sql("show tblproperties lake.of_oracle").collect()}
    assert properties["reconcile.snapshot.taken_at"] == "1970-01-01 00:00:42.000000+00"
    found = spark.table("lake.of_oracle").where("id is not null").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(row, Decimal(f"{row}.125")) for row in range(50)]
    with pytest.raises(DataError, match=r"Column N, NUMBER: .* would be rounded to 2 decimal places"):
        load(spark, source, "shop.numbers", columns="id, n decimal(9,2)")


def test_what_a_timestamp_cannot_hold(spark, source):
    create(
        *(spark, source, "moments", [("t", "TIMESTAMP(9)", ("TIMESTAMP(9)", None, 9))]),
        ["TIMESTAMP '2026-01-01 00:00:00.000000001'"],
    )
    with pytest.raises(DataError, match="is more precise than a microsecond"):
        load(spark, source, "shop.moments")
    load(spark, source, "shop.moments", columns="t string")
    assert spark.table("lake.of_oracle").collect()[0][0] == "2026-01-01T00:00:00.000000001Z"
