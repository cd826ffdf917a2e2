"""Snapshots of a real MariaDB: every digit, and the place in the binary log that the rows are of."""

import threading
from datetime import date, datetime
from decimal import Decimal

import pytest
from avro_files import JSON, MICROS, NUMBER, TIME_INTERVAL, decimal
from both_sides import Digits, Kind, Value, differences, inserts, meta
from mariadb import MariaDB
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.process.errors import DataError, UsageError
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions
from reconcile_jobs.staging import TableName


@pytest.fixture(scope="module")
def mariadb():
    server = MariaDB()
    yield server
    server.stop()


@pytest.fixture
def load(spark, mariadb):
    def load(table: str, into: str = "lake.of_mariadb", database: MySQL | None = None, **how):
        spark.sparkContext.setLogLevel("OFF")  # as in the job
        properties = {"user": mariadb.user, "password": mariadb.password}
        source = Source(database or MySQL(), f"jdbc:mariadb://127.0.0.1:{mariadb.port}/shop", properties)
        return snapshot_jdbc.load_jdbc(spark, source, table, TableName.parse(into), **how)

    return load


def position_of(spark, table: str) -> str:
    properties = spark.sql(f"DESCRIBE DETAIL {table}").select("properties").collect()[0][0]
    assert properties["reconcile.snapshot.position_kind"] == "binlog"
    return properties["reconcile.snapshot.position"]


# The type, what it becomes, and values: as MariaDB takes them, and as they have to arrive.
TYPES = [
    ("tinyint(1)", "tinyint", [("-128", -128)]),
    ("tinyint unsigned", "smallint", [("255", 255)]),
    ("smallint unsigned zerofill", "int", [("65535", 65535), ("7", 7)]),
    ("bit(7)", "bigint", [("b'1100110'", 102)]),
    ("mediumint unsigned", "int", [("16777215", 16777215)]),
    ("int unsigned", "bigint", [("4294967295", 4294967295)]),
    ("bigint", "bigint", [("-9223372036854775808", -9223372036854775808)]),
    ("bigint unsigned", "decimal(20,0)", [("18446744073709551615", Decimal(18446744073709551615))]),
    ("decimal(38,10)", "decimal(38,10)", [(f"-{'9' * 28}.{'9' * 10}", Decimal(f"-{'9' * 28}.{'9' * 10}"))]),
    ("decimal(65,30)", "string", [(f"{'1' * 35}.{'2' * 30}", f"{'1' * 35}.{'2' * 30}")]),
    ("float", "float", [("0.1", 0.10000000149011612), ("16777215", 16777215.0),
                        ("1.17549435e-38", 1.1754943508222875e-38)]),
    ("double", "double", [("0.30000000000000004", 0.30000000000000004), ("5e-324", 5e-324),
                          ("1.7976931348623157e308", 1.7976931348623157e308)]),
    ("bit(1)", "boolean", [("b'1'", True), ("b'0'", False)]),
    ("bit(64)", "decimal(20,0)", [("b'" + "1" * 64 + "'", Decimal(2**64 - 1))]),
    ("date", "date", [("'1000-01-01'", date(1000, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    ("datetime(6)", "timestamp_ntz", [("'1582-10-10 23:59:59.999999'", datetime(1582, 10, 10, 23, 59, 59, 999999))]),
    ("timestamp(6)", "timestamp", [("'2026-03-29 02:30:00.000001'", 1774751400000001)]),
    ("time(6)", "string", [("'-838:59:59.000001'", "-838:59:59.000001")]),
    ("year", "smallint", [("2026", 2026)]),
    ("char(5)", "string", [("'ab '", "ab")]),
    ("varchar(20)", "string", [("'trailing '", "trailing "), ("''", "")]),
    ("longtext", "string", [("'é\U0001f600 \\n \"'", "é\U0001f600 \n \"")]),
    ("enum('a','b')", "string", [("'b'", "b")]),
    ("set('a','b')", "string", [("'a,b'", "a,b")]),
    ("json", "string", [("'{\"b\": 1.10,  \"a\": 2}'", '{"b": 1.10,  "a": 2}')]),
    ("blob", "binary", [("x'00ff5c27'", b"\x00\xff\\'"), ("''", b"")]),
    ("binary(3)", "binary", [("x'01'", b"\x01\x00\x00")]),
    ("uuid", "string", [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
]  # fmt: skip


def test_every_type(spark, mariadb, load):
    most = max(len(values) for _, _, values in TYPES)
    declared = ", ".join(f"c{place} {kind} NULL" for place, (kind, _, _) in enumerate(TYPES))
    rows = [
        ", ".join([str(row), *(values[row][0] if row < len(values) else "NULL" for _, _, values in TYPES)])
        for row in range(most)
    ]
    mariadb.query(f"CREATE TABLE shop.types (id int, {declared}) CHARACTER SET utf8mb4")
    mariadb.query(
        f"SET NAMES utf8mb4; SET time_zone = '+00:00'; INSERT INTO shop.types VALUES "
        f"{', '.join(f'({row})' for row in rows)}, ({most}{', NULL' * len(TYPES)})"
    )
    assert load("shop.types").rows == most + 1
    frame = spark.table("lake.of_mariadb").orderBy("id")
    kinds = dict(frame.dtypes)
    found = frame.selectExpr(
        *(f"unix_micros({name})" if kinds[name] == "timestamp" else name for name in frame.columns)
    ).collect()
    for place, (kind, _, values) in enumerate(TYPES, 1):
        expected = [value for _, value in values] + [None] * (most + 1 - len(values))
        there = [bytes(row[place]) if isinstance(row[place], bytearray) else row[place] for row in found]
        assert there == expected, kind
    assert [kind for _, kind in frame.dtypes[1:]] == [kind for _, kind, _ in TYPES]


NOON = 1795262400_000000
AS_TIME = meta("string", encoding="microseconds")
DOCUMENT = '{"b": [1.50, null],  "a": {"ü": ""}}'
LEAST = "-" + "9" * 35 + "." + "1" * 29 + "0"
TIMES = [
    ("15:30:45", 55_845_000_000, "15:30:45.000000"), ("-838:59:59", -3_020_399_000_000, "-838:59:59.000000"),
    ("838:59:59", 3_020_399_000_000, "838:59:59.000000"), ("-00:00:00.001", -1000, "-00:00:00.001000"),
]  # fmt: skip
BOTH_SIDES = [
    Kind("time(6)", AS_TIME, TIME_INTERVAL, [Value(f"'{sql}'", micros, micros, text) for sql, micros, text in TIMES]),
    Kind("time(6)", "bigint", TIME_INTERVAL, [Value(f"'{sql}'", micros, micros) for sql, micros, _ in TIMES]),
    Kind("time", AS_TIME, TIME_INTERVAL, [Value("'100:00:00'", 360_000_000_000, 360_000_000_000, "100:00:00.000000")]),
    Kind("year", "int", "int", [Value("2155", 2155, 2155), Value("1901", 1901, 1901)]),
    Kind("bit(8)", "bigint", "long", [Value("b'1100110'", 102, 102)]),
    Kind("bit(1)", "boolean", "long", [Value("b'1'", 1, 1), Value("b'0'", 0, 0)]),
    Kind("tinyint(1)", "int", "int", [Value("-128", -128, -128)]),
    Kind("int unsigned", "bigint", "long", [Value("4294967295", 4294967295, 4294967295)]),
    Kind("int(5) zerofill", "string", "long", [Value("7", 7, 7, "7")]),
    *(
        Kind("bigint unsigned", of, NUMBER, [Value(str(2**64 - 1), str(2**64 - 1), str(2**64 - 1), str(2**64 - 1))])
        for of in ("string", "decimal(20,0)")
    ),
    Kind(
        "decimal(65,30)",
        "string",
        decimal(65, 30),
        [
            Value(LEAST, Decimal(LEAST), Digits(LEAST), LEAST),
            Value("0.5", Decimal("0.5" + "0" * 29), Digits("0.5" + "0" * 29), "0.5" + "0" * 29),
        ],
    ),
    Kind("decimal(65,30)", "decimal(20,2)", decimal(65, 30), [Value("1.5", Decimal("1.5" + "0" * 29), Digits("1.5"))]),
    *(
        Kind(of, "binary", "string", [Value("x'01ff5c'", "01ff5c", "01ff5c", "01FF5C")])
        for of in ("binary(3)", "varbinary(9)", "blob", "longblob")
    ),
    Kind("binary(4)", "binary", "string", [Value("x'01'", "01000000", "01000000")]),
    Kind(
        "date",
        "date",
        MICROS,
        [
            Value("'1000-01-01'", -30610224000_000000, "1000-01-01T00:00:00.000000Z"),
            Value("'9999-12-31'", 253402214400_000000, "9999-12-31T00:00:00.000000Z"),
        ],
    ),
    *(
        Kind(
            of,
            meta(data_type, zero_date="null"),
            MICROS,
            [
                Value("'2026-11-21'", NOON - 43200_000000, "2026-11-21T00:00:00.000000Z"),
                # How an Avro file has it is not known; its type leaves only NULL.
                Value("0", None, json),
            ],
        )
        for of, data_type, json in (
            ("date", "date", "0000-00-00"),
            ("date", "timestamp", "0000-00-00T00:00:00.000000Z"),
            ("datetime(6)", "timestamp_ntz", "0000-00-00 00:00:00"),
            ("timestamp(3)", "timestamp", "0000-00-00T00:00:00Z"),
        )
    ),
    *(
        Kind(
            of,
            "string",
            MICROS,
            [Value("'2026-11-21'", NOON - 43200_000000, "2026-11-21T00:00:00.000000Z", "2026-11-21T00:00:00.000000Z")],
        )
        for of in ("date", "datetime", "timestamp(3)")
    ),
    Kind(
        "datetime(6)",
        "timestamp_ntz",
        MICROS,
        [Value("'2026-11-21 12:00:00.000001'", NOON + 1, "2026-11-21T12:00:00.000001Z")],
    ),
    Kind(
        "timestamp(6)",
        "timestamp",
        MICROS,
        [Value("'2026-11-21 12:00:00.000001'", NOON + 1, "2026-11-21T12:00:00.000001Z")],
    ),
    Kind("float", "float", "float", [Value("45.67", 45.66999816894531, 45.67)]),
    Kind("double", "double", "double", [Value("0.30000000000000004", 0.30000000000000004, 0.30000000000000004)]),
    Kind("enum('a','2')", "string", "string", [Value("'2'", "2", "2")]),
    Kind("set('a','b')", "string", "string", [Value("'a,b'", "a,b", "a,b")]),
    Kind(
        "json",
        "string",
        JSON,
        [Value(f"'{DOCUMENT}'", DOCUMENT, Digits(DOCUMENT), '{"a":{"ü":""},"b":[1.5,null]}')],
    ),
    Kind("json", "variant", JSON, [Value(f"'{DOCUMENT}'", DOCUMENT, Digits(DOCUMENT)), Value("'[]'", "[]", [])]),
]


class WithJSON(MySQL):
    """MariaDB, whose JSON is a longtext, with a catalog that says json as MySQL's does."""

    def column(self, name, kind, declared, precision, scale):
        return super().column(name, "json" if kind == "longtext" else kind, declared, precision, scale)


def test_a_model_and_a_snapshot_hold_the_same_of_every_type(spark, mariadb, load):
    declared = ", ".join(f"c{n} {kind.sql} NULL" for n, kind in enumerate(BOTH_SIDES))
    mariadb.query(f"CREATE TABLE shop.both_sides (id int, {declared}) CHARACTER SET utf8mb4")
    rows = ", ".join(inserts(BOTH_SIDES))
    mariadb.query(
        f"SET NAMES utf8mb4; SET sql_mode = ''; SET time_zone = '+00:00'; INSERT INTO shop.both_sides VALUES {rows}"
    )

    def loaded(columns: str) -> str:
        load("shop.both_sides", "lake.both_sides_of_mariadb", WithJSON(), columns=columns)
        return "lake.both_sides_of_mariadb"

    assert differences(spark, "mysql", BOTH_SIDES, loaded) == ([], {})
    # Of MariaDB itself it is a text, to Datastream too.
    with pytest.raises(UsageError, match=r"c\d+ is longtext, and only JSON can become variant: declare string"):
        load("shop.both_sides", columns=f"c{len(BOTH_SIDES) - 1} variant")


def test_floats_of_any_bits(spark, mariadb, load):
    mariadb.query(
        "USE shop; CREATE TABLE shop.floats AS SELECT seq AS id, CAST(NULL AS float) AS f, "
        "(rand(seq) - 0.5) * pow(10, rand() * 600 - 300) AS d FROM seq_1_to_3000"
    )
    mariadb.query("UPDATE shop.floats SET f = (rand() - 0.5) * pow(10, rand() * 70 - 35)")
    load("shop.floats")
    exact = {
        int(row[0]): (float(row[1]), float(row[2])) for row in mariadb.query("SELECT id, f + 0e0, d FROM shop.floats")
    }
    found = {int(row[0]): (row[1], row[2]) for row in spark.table("lake.of_mariadb").collect()}
    assert found == exact and len(found) == 3000
    assert len({f for f, _ in found.values()}) > 2900


def test_the_position_is_that_of_the_rows(spark, mariadb, load):
    mariadb.query("CREATE TABLE shop.moves (n int PRIMARY KEY)")
    [[log, begun, *_]] = mariadb.query("SHOW MASTER STATUS")
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            # One transaction for each row.
            mariadb.query("; ".join(f"INSERT INTO shop.moves VALUES ({n + more})" for more in range(50)))
            n += 50

    writer = threading.Thread(target=write)
    writer.start()
    try:
        position = None
        while position is None or not spark.table("lake.of_mariadb").count():
            position = load("shop.moves").position
    finally:
        stop.set()
        writer.join()
    assert position == position_of(spark, "lake.of_mariadb")
    file, _, place = position.rpartition(":")
    assert file == log
    commits = [
        int(end)
        for _, _, event, _, end, *_ in mariadb.query(f"SHOW BINLOG EVENTS IN '{log}' FROM {begun}")
        if event == "Xid"
    ]
    before = sum(end <= int(place) for end in commits)
    assert 0 < before < len(commits)
    assert sorted(row[0] for row in spark.table("lake.of_mariadb").collect()) == list(range(before))


def test_an_empty_table_has_a_position_too(spark, mariadb, load):
    mariadb.query("CREATE TABLE shop.empty (id int)")
    snapshot = load("shop.empty")
    [[log, place, *_]] = mariadb.query("SHOW MASTER STATUS")
    assert (snapshot.rows, snapshot.position) == (0, f"{log}:{place}") == (0, position_of(spark, "lake.of_mariadb"))


def test_a_snapshot_that_did_not_come_to_its_end_has_no_position(spark, mariadb, load, monkeypatch):
    mariadb.query("CREATE TABLE shop.ended (id int)")
    load("shop.ended")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patches, pytest.raises(KeyboardInterrupt):
        patches.setattr(snapshot_jdbc, "_one_position", killed)
        load("shop.ended")
    assert position_of(spark, "lake.of_mariadb") == "", "that of the load before is forgotten"


def test_a_text_that_is_declared_as_json_has_the_form_of_a_model(spark, mariadb, load):
    mariadb.query("CREATE TABLE shop.documents (id int, doc json, plain json)")
    documents = ['{"b": 1.50, "a": [1, 2]}', '"text"', "7", None]
    rows = ", ".join(f"({n}, {literal(one)}, {literal(one)})" for n, one in enumerate(documents))
    mariadb.query(f"INSERT INTO shop.documents VALUES {rows}")
    load("shop.documents", columns="id, doc string is_json, plain")
    found = sorted(spark.table("lake.of_mariadb").collect())
    assert [row.doc for row in found] == ['{"a":[1,2],"b":1.5}', '"text"', "7", None]
    assert [row.plain for row in found] == documents


def literal(text):
    """Return a literal of MySQL."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def test_refusals(spark, mariadb, load):
    mariadb.query("CREATE TABLE shop.old (id int) ENGINE = MyISAM; CREATE TABLE shop.zero (d date)")
    mariadb.query("SET sql_mode = ''; INSERT INTO shop.zero VALUES ('0000-00-00')")
    with pytest.raises(UsageError, match="the engine MyISAM"):
        load("shop.old")
    with pytest.raises(UsageError, match="connections cannot share a snapshot of MySQL: remove --partitions"):
        load("shop.zero", partitions=Partitions("d", 2))
    with pytest.raises(
        DataError, match=r'"0000-00-00" names a day that does not .* write zero_date_is_null after the type'
    ):
        load("shop.zero")
    with pytest.raises(UsageError, match="zero_date_is_null applies only to date and timestamp and timestamp_ntz, and"):
        load("shop.zero", columns="d string zero_date_is_null")
    assert load("shop.zero", columns="d date zero_date_is_null").rows == 1
    assert spark.table("lake.of_mariadb").collect() == [(None,)]
    with pytest.raises(UsageError, match=r"no table shop\.absent"):
        load("shop.absent")
    source = Source(MySQL(), f"jdbc:mariadb://127.0.0.1:{mariadb.port}/shop", {"user": "reader", "password": "wrong"})
    with pytest.raises(UsageError, match="refused the login"):
        snapshot_jdbc.load_jdbc(spark, source, "shop.zero", TableName.parse("lake.of_mariadb"))
