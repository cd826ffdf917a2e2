"""Snapshots of a real PostgreSQL are its rows as of one position, to the last digit, or there is none."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from avro_files import DATE, JSON, MICROS, NUMBER, OFFSET, TIME, array, decimal, nested, record
from both_sides import Digits, Kind, Value, differences, inserts, meta
from postgres import Postgres, free_port
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.exact_text import NotExact
from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.jdbc.sqlserver import SQLServer
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.snapshots import snapshot_csv, snapshot_jdbc
from reconcile_jobs.snapshots.snapshot_jdbc import Partitions, target_of, typed_rows
from reconcile_jobs.staging import TableName

ROOT = Path(__file__).resolve().parents[2]
TRUTH = ROOT / "tests" / "data" / "capture" / "truth"


class Server(Postgres):
    def start(self, sql: str, content: bytes | None = None) -> subprocess.Popen:
        """Begin a statement, which may read from its standard input."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", self.user, "-d", self.database]
        begun = subprocess.Popen(
            [self.programs / "psql", *where, "-q", "-v", "ON_ERROR_STOP=1", "-c", sql],
            env=os.environ | {"PGPASSWORD": self.password},
            stdin=subprocess.PIPE,
        )
        if content is not None:
            begun.communicate(content)
            assert begun.returncode == 0
        return begun


@pytest.fixture(scope="module")
def postgres():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def source(postgres) -> Source:
    url = postgres.environment["RECONCILE_METASTORE_URL"]
    return Source(PostgreSQL(), url, {"user": postgres.user, "password": postgres.password})


@pytest.fixture
def load(spark, source):
    def load(table: str, into: str = "lake.loaded", database: PostgreSQL | None = None, **how):
        spark.sparkContext.setLogLevel("OFF")  # as in the job
        chosen = Source(database or source.database, source.url, source.properties)
        return snapshot_jdbc.load_jdbc(spark, chosen, table, TableName.parse(into), **how)

    return load


def rows_of(spark, table: str) -> list[tuple]:
    """Return the rows by their first column, timestamps as microseconds."""
    frame = spark.table(table)
    kinds = dict(frame.dtypes)
    columns = [f"unix_micros(`{name}`)" if kinds[name] == "timestamp" else f"`{name}`" for name in frame.columns]
    return [
        tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
        for row in sorted(frame.selectExpr(*columns).collect(), key=lambda row: (row[0] is None, row[0]))
    ]


def properties_of(spark, table: str) -> dict[str, str]:
    return dict(spark.sql(f"DESCRIBE DETAIL {table}").select("properties").collect()[0][0])


# The type, what it becomes, and values: as PostgreSQL takes them, and as they have to arrive.
TYPES = [
    ("smallint", "smallint", [("-32768", -32768)]),
    ("integer", "int", [("2147483647", 2147483647)]),
    ("bigint", "bigint", [("-9223372036854775808", -9223372036854775808)]),
    ("oid", "bigint", [("4294967295", 4294967295)]),
    ("boolean", "boolean", [("true", True), ("false", False)]),
    ("numeric(38,10)", "decimal(38,10)", [(f"-{'9' * 28}.{'9' * 10}", Decimal(f"-{'9' * 28}.{'9' * 10}"))]),
    ("numeric(5,-2)", "decimal(7,0)", [("'9999900'", Decimal(9999900))]),
    ("numeric(2,4)", "decimal(4,4)", [("0.0099", Decimal("0.0099"))]),
    ("numeric(40,2)", "string", [(f"{'9' * 38}.25", f"{'9' * 38}.25")]),
    ("numeric", "string", [(f"'{'1' * 50}.{'2' * 50}0'", f"{'1' * 50}.{'2' * 50}0"), ("'NaN'", "NaN")]),
    ("real", "float", [("0.1", 0.10000000149011612), ("'-Infinity'", float("-inf")), ("16777217", 16777216.0)]),
    ("double precision", "double", [("0.1", 0.1), ("2.2250738585072014e-308", 2.2250738585072014e-308),
                                    ("0.30000000000000004", 0.30000000000000004), ("'Infinity'", float("inf"))]),
    ("money", "string", [("'1234.56'", "1234.56")]),
    ("text", "string", [("''", ""), ("E'a\\n\\'\"é\\U0001F600'", "a\n'\"é\U0001f600")]),
    ("varchar(20)", "string", [("'trailing '", "trailing ")]),
    ("char(4)", "string", [("'ab'", "ab  ")]),
    ("name", "string", [("'pg'", "pg")]),
    ("bytea", "binary", [(r"'\x00ff5c27'", b"\x00\xff\\'"), (r"'\x'", b"")]),
    ("date", "date", [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31)),
                      ("'1582-10-10'", date(1582, 10, 10))]),
    ("timestamp", "timestamp_ntz", [("'1969-12-31 23:59:59.999999'", datetime(1969, 12, 31, 23, 59, 59, 999999))]),
    ("timestamptz", "timestamp", [("'2026-11-21 11:33:13.049844+05:30'", 1795240993049844),
                                  ("'0001-01-01 00:00:00+00'", -62135596800000000)]),
    ("time", "string", [("'24:00:00'", "24:00:00.000000"), ("'01:02:03.000004'", "01:02:03.000004")]),
    ("timetz", "string", [("'01:02:03-08'", "01:02:03.000000-08:00")]),
    ("interval", "string", [("'1 year 2 mons -3 days 04:05:06.000007'", "P14MT-68H306.000007S")]),
    ("json", "string", [("'{\"b\": 1.10,  \"a\": 2}'", '{"a":2,"b":1.1}'),
                        ("'{\"a\": 1,  \"a\": 2}'", '{"a": 1,  "a": 2}')]),
    ("jsonb", "string", [("'{\"b\": 1.10, \"a\": 2}'", '{"a":2,"b":1.1}')]),
    ("uuid", "string", [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    ("inet", "string", [("'10.0.0.1'", "10.0.0.1"), ("'10.0.0.1/8'", "10.0.0.1/8")]),
    ("integer[]", "array<int>", [("'{1,NULL,3}'", [1, None, 3]), ("'{}'", []), ("'[0:1]={1,2}'", [1, 2])]),
    ("text[]", "array<string>", [("ARRAY['a,b', NULL, '', 'NULL', '\"']", ["a,b", None, "", "NULL", '"'])]),
    ("char(2)[]", "array<string>", [("'{a}'", ["a "])]),
    ("inet[]", "array<string>", [("'{10.0.0.1}'", ["10.0.0.1"])]),
    ("money[]", "array<string>", [("'{1.5}'", ["1.50"])]),
    ("numeric(4,2)[]", "array<decimal(4,2)>", [("'{0.5}'", [Decimal("0.50")])]),
    ("mood[]", "array<string>", [("'{so so}'", ["so so"])]),
    ("bit(3)", "string", [("B'101'", "101")]),
    ("int4range", "string", [("'[1,5)'", "[1,5)")]),
    ("mood", "string", [("'so so'", "so so")]),
    ("price", "decimal(12,2)", [("12.50", Decimal("12.50"))]),
    ("pair", "string", [("ROW(1, 'x y')", '(1,"x y")')]),
]  # fmt: skip


def test_every_type(spark, postgres, load):
    most = max(len(values) for _, _, values in TYPES)
    declared = ", ".join(f"c{place} {kind}" for place, (kind, _, _) in enumerate(TYPES))
    rows = [
        ", ".join([str(row), *(values[row][0] if row < len(values) else "NULL" for _, _, values in TYPES)])
        for row in range(most)
    ]
    postgres.query(
        "CREATE TYPE mood AS ENUM ('so so'); CREATE DOMAIN price AS numeric(12,2); "
        "CREATE TYPE pair AS (a int, b text); "
        f"CREATE TABLE types (id int, {declared}, gone int); ALTER TABLE types DROP COLUMN gone; "
        f"INSERT INTO types VALUES {', '.join(f'({row})' for row in rows)}, ({most}{', NULL' * len(TYPES)})"
    )
    assert load("public.types").rows == most + 1
    found = rows_of(spark, "lake.loaded")
    for place, (kind, _, values) in enumerate(TYPES, 1):
        expected = [value for _, value in values] + [None] * (most + 1 - len(values))
        assert [row[place] for row in found] == expected, kind
    assert [kind for _, kind in spark.table("lake.loaded").dtypes[1:]] == [kind for _, kind, _ in TYPES]


TIMESTAMP_TZ = record("timestampTz", timestamp=MICROS, offset=OFFSET)
TIME_TZ = record("timeTz", time=TIME, offset=OFFSET)
INTERVAL = record("interval", months="int", hours="int", micros="long")
INFINITE = 9223372036825200000, -9223372036832400000
NOON, HOUR = 1795262400_000000, 3_600_000
AS_JSON, AS_INTERVAL = meta("string", encoding="json"), meta("string", encoding="interval")
DOCUMENT = '{"b": [1.50, null, -0.0, 1e5], "a": {"ü": "\\""}}'
LARGE = '{"c": 12345678901234567890123456789012345678}'
SHOWN = '{"a":{"ü":"\\""},"b":[1.5,null,0,100000.0]}'


def moment(sql: str, micros: int, text: str) -> Value:
    return Value(f"'{sql}'", {"timestamp": micros, "offset": HOUR}, text)


BOTH_SIDES = [
    Kind(
        "json",
        "string",
        JSON,
        [
            Value(f"'{DOCUMENT}'", DOCUMENT, Digits(DOCUMENT), SHOWN),
            Value("' [ ] '", " [ ] ", []),
            Value(f"'{LARGE}'", LARGE, Digits(LARGE)),
        ],
    ),
    Kind(
        "json",
        AS_JSON,
        JSON,
        [
            Value("'\"a\"'", '"a"', "a", '"a"'),
            Value("'null'", "null", shows="null"),
            Value("' 1.50'", " 1.50", Digits("1.50"), "1.5"),
        ],
    ),
    Kind("json", "variant", JSON, [Value(f"'{DOCUMENT}'", DOCUMENT, Digits(DOCUMENT)), Value("'\"a\"'", '"a"', "a")]),
    Kind(
        "jsonb",
        "string",
        JSON,
        [Value('\'{"bb": 1.10,"a": []}\'', '{"a": [], "bb": 1.10}', {"a": [], "bb": 1.1}, '{"a":[],"bb":1.1}')],
    ),
    Kind("jsonb", "variant", JSON, [Value('\'{"bb": 1.10,"a": []}\'', '{"a": [], "bb": 1.10}', {"a": [], "bb": 1.1})]),
    Kind(
        "interval",
        AS_INTERVAL,
        INTERVAL,
        [
            Value(
                "'1 year 2 mons 3 days 04:05:06.789'",
                {"months": 14, "hours": 76, "micros": 306_789_000},
                "P1Y2M3DT4H5M6.789S",
                "P14MT76H306.789000S",
            ),
            Value(
                "'-1 mons +1 day -00:00:00.5'",
                {"months": -1, "hours": 24, "micros": -500_000},
                "P-1M1DT-0.5S",
                "P-1MT24H-0.500000S",
            ),
            Value("'0'", {"months": 0, "hours": 0, "micros": 0}, "PT0S"),
        ],
    ),
    Kind(
        "timetz",
        "string",
        TIME_TZ,
        [
            Value("'08:35:30.000001-04:30'", {"time": 30930000001, "offset": -9 * HOUR // 2}, "08:35:30.000001-04:30"),
            Value("'00:00:00+00'", {"time": 0, "offset": 0}, "00:00:00.000000+00:00", "00:00:00.000000+00:00"),
        ],
    ),
    Kind("time", "string", TIME, [Value("'08:35:30'", 30930000000, "08:35:30.000000", "08:35:30.000000")]),
    Kind(
        "timestamptz",
        "timestamp",
        TIMESTAMP_TZ,
        [moment("2026-11-21 13:00:00.000001+01", NOON + 1, "2026-11-21T12:00:00.000001Z")],
    ),
    Kind(
        "timestamptz",
        "string",
        MICROS,
        [
            Value("'infinity'", INFINITE[0], shows="infinity"),
            Value("'-infinity'", INFINITE[1], shows="-infinity"),
            Value("'2026-11-21 12:00:00+00'", NOON, "2026-11-21T12:00:00.000000Z", "2026-11-21T12:00:00.000000Z"),
            Value("'0044-03-15 BC'", -63517824000_000000, shows="-0043-03-15T00:00:00.000000Z"),
        ],
    ),
    Kind(
        "timestamptz",
        meta("timestamp", infinity_is_null=True),
        MICROS,
        [Value("'infinity'", INFINITE[0]), Value("'-infinity'", INFINITE[1]), Value("'2026-11-21 12:00:00+00'", NOON)],
    ),
    Kind("timestamp", "timestamp_ntz", MICROS, [Value("'2026-11-21 12:00:00'", NOON, "2026-11-21T12:00:00.000000Z")]),
    Kind(
        "date",
        "date",
        DATE,
        [Value("'0001-01-01'", -719162, "0001-01-01"), Value("'9999-12-31'", 2932896, "9999-12-31")],
    ),
    Kind(
        "integer[]",
        "array<int>",
        array("c12", "int"),
        [Value("'{1,NULL,-3}'", nested([1, None, -3]), [1, None, -3]), Value("'{}'", nested([]), [])],
    ),
    Kind(
        "text[]",
        "array<array<string>>",
        array("c13", "string"),
        [
            Value(
                "ARRAY[['a', NULL], ['', '{\"x\": 1}']]",
                nested([["a", None], ["", '{"x": 1}']]),
                [["a", None], ["", '{"x": 1}']],
            )
        ],
    ),
    Kind(
        "numeric(6,2)[]",
        "array<decimal(6,2)>",
        array("c14", decimal(6, 2)),
        [Value("'{1.50,NULL}'", nested([Decimal("1.50"), None]), [1.5, None])],
    ),
    Kind(
        "bytea[]",
        "array<binary>",
        array("c15", "bytes"),
        [Value(r"ARRAY['\xdead'::bytea, '', NULL]", nested([b"\xde\xad", b"", None]))],
    ),
    Kind(
        "timestamp[]",
        "array<timestamp_ntz>",
        array("c16", MICROS),
        [Value("'{2026-11-21 12:00:00,NULL}'", nested([NOON, None]), ["2026-11-21T12:00:00Z", None])],
    ),
    Kind("time[]", "array<string>", array("c17", TIME), [Value("'{08:35:30}'", nested([30930000000]))]),
    Kind("json[]", "array<string>", array("c18", JSON), [Value("ARRAY['{\"a\":  1}'::json]", nested(['{"a":  1}']))]),
    Kind(
        "boolean[]",
        "array<boolean>",
        array("c19", "boolean"),
        [Value("'{t,f,NULL}'", nested([True, False, None]), [True, False, None])],
    ),
    Kind(
        "double precision[]",
        "array<double>",
        array("c20", "double"),
        [Value("'{0.1,NaN,1e300}'", nested([0.1, float("nan"), 1e300]), [0.1, "NaN", 1e300])],
    ),
    Kind("bytea", "binary", "bytes", [Value(r"'\x00deadbeef'", b"\0\xde\xad\xbe\xef"), Value("''", b"")]),
    Kind("bit(4)", "binary", "bytes", [Value("B'0101'", b"0101")]),
    Kind(
        "numeric",
        "string",
        NUMBER,
        [
            Value("'NaN'", "NaN", "NaN", "NaN"),
            Value("'1.100'", "1.100", "1.100", "1.100"),
            Value("'Infinity'", "Infinity", "Infinity"),
        ],
    ),
    Kind(
        "numeric(40,10)",
        "string",
        decimal(40, 10),
        [Value("0.12", Decimal("0.1200000000"), Digits("0.1200000000"), "0.1200000000")],
    ),
    Kind("real", "float", "float", [Value("45.67", 45.67, 45.67), Value("'NaN'", float("nan"), "NaN")]),
    Kind("inet", "string", "string", [Value("'10.0.0.1'", "10.0.0.1", "10.0.0.1")]),
    Kind("char(4)", "string", "string", [Value("'ab'", "ab  ", "ab  ")]),
]


def test_a_model_and_a_snapshot_hold_the_same_of_every_type(spark, postgres, load):
    declared = ", ".join(f"c{n} {kind.sql}" for n, kind in enumerate(BOTH_SIDES))
    rows = ", ".join(inserts(BOTH_SIDES))
    postgres.query(
        f"SET TIME ZONE 'UTC'; CREATE TABLE both_sides (id int, {declared}); INSERT INTO both_sides VALUES {rows}"
    )

    def loaded(columns: str) -> str:
        load("public.both_sides", columns=columns)
        return "lake.loaded"

    # Its place is one that held no variant.
    load("public.both_sides", columns="id")
    assert differences(spark, "postgresql", BOTH_SIDES, loaded) == ([], {})


def test_the_capture_arrives_as_its_export_does(spark, postgres, load):
    postgres.query(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer_id bigint, status text, "
        "total numeric, placed_at timestamptz, due_on date, updated_at timestamp, ratio double precision)"
    )
    postgres.start(
        "COPY shop.orders FROM STDIN WITH (FORMAT csv, HEADER, NULL '\\N')", (TRUTH / "orders.csv").read_bytes()
    )
    schema = (
        "id bigint, customer_id bigint, status string, total decimal(38,10), placed_at timestamp, due_on date, "
        "updated_at timestamp, ratio double"
    )
    columns = snapshot_csv.columns_of(schema)
    snapshot_csv.load_csv(
        spark, str(TRUTH / "orders.csv"), TableName.parse("lake.exported"), columns, Dialect(null="\\N")
    )
    declared = "id, customer_id, status, total decimal(38, 10), placed_at, due_on, updated_at timestamp, ratio"
    snapshot = load("SHOP.Orders", columns=declared, partitions=Partitions("ID", 3))
    assert snapshot.rows == spark.table("lake.exported").count() > 900
    assert spark.table("lake.loaded").dtypes == spark.table("lake.exported").dtypes
    assert rows_of(spark, "lake.loaded") == rows_of(spark, "lake.exported")


DECLARED = [
    # a column, the type that is declared, and the complaint, or the type of the table's column and its values
    ("integer[]", "array<int>", {"[]": [], '["1", null]': [1, None]}),
    ("integer[]", "ARRAY < array<int> >", {"[]": [], '[["1"], null]': [[1], None]}),
    ("integer[]", "array<array<int>", "array<array<int>, the type of the column c, is not a type of Spark"),
    ("integer[]", "array<int>>", "array<int>>, the type of the column c, is not a type of Spark"),
    ("integer[]", "array<blob>", "array<blob>, the type of the column c, is not a scalar type of Spark"),
    ("integer[]", "string", {"{1,NULL}": "{1,NULL}"}),
    ("integer[]", "int", "the column c is integer[], and can become only an array or string"),
    ("integer", "array<int>", "the column c is integer, and can become no array"),
    ("timestamp[]", "array<timestamp infinity_is_null>", "is not a scalar type of Spark"),
    ("timestamp without time zone[]", "array<timestamp_ntz> infinity_is_null", "applies only to timestamp"),
    ("timestamp with time zone", "timestamp infinity_is_null", {"-infinity": None}),
    ("timestamp with time zone", "string infinity_is_null", "infinity_is_null applies only to timestamp"),
    ("bytea", "string", "the column c is bytea, and can only become binary"),
    ("bytea", "binary", {}),
    ("bit(3)", "binary", {}),
    ("text", "binary", {"\\x00": b"\0"}),
    ("text", "variant", "the column c is text, and only JSON can become variant: declare string"),
    ("jsonb", "variant", {"[1]": "[1]"}),
    ("double precision", "varchar(9)", "and databases write its digits as text in different ways: declare double"),
    ("real[]", "array<string>", "and databases write its digits as text in different ways: declare array<float>"),
    ("interval", "varchar(30)", {"PT1S": "P0MT0H1.000000S"}),
    ("time without time zone[]", "array<string>", {'["08:15:30"]': ["08:15:30.000000"]}),
]


@pytest.mark.parametrize("source_type, declared, expected", DECLARED)
def test_what_a_column_can_be_declared_as(spark, source_type, declared, expected):
    target = target_of("c", PostgreSQL().column("c", source_type, source_type), declared)
    if isinstance(expected, str):
        assert isinstance(target, str) and expected in target
    else:
        assert target.stored_type.replace("string", "variant" if target.is_variant else "string") == re.sub(
            r" infinity_is_null$|\s", "", declared.lower().replace("varchar(30)", "string")
        )
        assert {text: target.read(text) for text in expected} == expected


def test_a_value_of_another_depth_or_a_variant_that_loses_digits_is_refused_in_a_sentence(spark):
    array = target_of("c", PostgreSQL().column("c", "integer[]", "integer[]"), "array<int>")
    for text in ('[["1"]]', '[["1"], "2"]'):
        with pytest.raises(NotExact, match="does not have the 1 dimension of array<int>"):
            array.read(text)
    variant = target_of("c", PostgreSQL().column("c", "json", "json"), "variant")
    (batch,) = [pa.RecordBatch.from_pydict({"c0": ["[1]", '!{"a": 1, "a": 2}']})]
    with pytest.raises(DataError) as refused:
        list(typed_rows([batch], [variant]))
    assert str(refused.value) == (
        'Column c, json: "{\\"a\\": 1, \\"a\\": 2}" is JSON that a variant cannot hold: it has a name twice, or '
        "a number that a variant would round, and the type of the column is variant. Nothing was written; declare a "
        "type that holds the value in --columns, for example string."
    )


class ChangedMeanwhile(PostgreSQL):
    """Between the position and the reading of the first row, the table changes."""

    def __init__(self, change, shared: bool = True) -> None:
        self.change, self.shared = change, shared

    def fix(self, connection, table, at):
        cut = super().fix(connection, table, at)
        self.change()
        if self.shared:
            return cut
        return dataclasses.replace(cut, session=re.sub("SET TRANSACTION SNAPSHOT '[^']*';", "", cut.session))


@pytest.mark.parametrize("partitions", [None, Partitions("id", 4)])
def test_what_is_committed_behind_the_position_is_not_seen(spark, postgres, load, partitions):
    def begin():
        postgres.query("DROP TABLE IF EXISTS held; CREATE TABLE held AS SELECT generate_series(1, 100) AS id, 0 AS v")

    def change():
        postgres.query("UPDATE held SET v = 1; DELETE FROM held WHERE id % 10 = 0; INSERT INTO held VALUES (1000, 1)")

    begin()
    load("public.held", database=ChangedMeanwhile(change), partitions=partitions)
    assert rows_of(spark, "lake.loaded") == [(number, 0) for number in range(1, 101)]
    # The change is one that the test can see: connections with snapshots of their own see it.
    begin()
    load("public.held", database=ChangedMeanwhile(change, shared=False), partitions=partitions)
    assert (1000, 1) in rows_of(spark, "lake.loaded")


def test_nobody_rewrites_a_table_that_is_being_read(spark, postgres, load):
    postgres.query("CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")

    def rewrite():
        with pytest.raises(subprocess.CalledProcessError) as refused:
            postgres.query("SET lock_timeout = '1s'; TRUNCATE kept")
        assert "lock timeout" in refused.value.stderr

    assert load("public.kept", database=ChangedMeanwhile(rewrite)).rows == 100
    postgres.query("TRUNCATE kept")
    assert load("public.kept", partitions=Partitions("id", 4)).rows == 0


WRITER = """
DO $$ DECLARE
    place int;
BEGIN
    FOR round IN 1..1000000 LOOP
        place := (random() * 199)::int;
        UPDATE accounts SET amount = amount - 1 WHERE id = 1 + place;
        UPDATE accounts SET amount = amount + 1 WHERE id = 801 + place;
        INSERT INTO moves(id) VALUES ((random() * 1000000)::int);
        COMMIT;
        -- Goes on for longer than any machine takes to read.
        PERFORM pg_sleep(0.001);
    END LOOP;
END $$
"""


@pytest.mark.matrix
def test_partitions_read_one_snapshot_while_writers_go_on(spark, postgres, load):
    postgres.query(
        "CREATE TABLE accounts AS SELECT generate_series(1, 1000) AS id, 100::bigint AS amount; "
        "ALTER TABLE accounts ADD PRIMARY KEY (id); "
        "CREATE TABLE moves (id int, number bigserial, by_transaction xid8 DEFAULT pg_current_xact_id())"
    )
    writers = [postgres.start(WRITER) for _ in range(2)]
    try:
        begun = time.monotonic()
        while int(postgres.query("SELECT count(*) FROM moves")) < 100:
            assert time.monotonic() < begun + 60
        for _ in range(2):
            load("public.accounts", partitions=Partitions("id", 8))
            assert spark.table("lake.loaded").selectExpr("sum(amount)", "count(*)").collect()[0][:] == (100_000, 1000)
            position = load("public.moves", "lake.moves", partitions=Partitions("id", 8)).position
            assert properties_of(spark, "lake.moves")["reconcile.snapshot.position"] == position
            # Read now, after many more commits: those that a transaction with this snapshot saw, and no others.
            seen = f"pg_visible_in_snapshot(by_transaction, '{position}')"
            expected = postgres.query(f"SELECT count(*), sum(number) FROM moves WHERE {seen}").split("|")
            there = spark.table("lake.moves").selectExpr("count(*)", "sum(number)").collect()[0]
            assert [str(value) for value in there] == expected
            assert int(postgres.query(f"SELECT count(*) FROM moves WHERE NOT {seen}")) > 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def test_the_position_and_what_stands_beside_it(spark, postgres, load):
    postgres.query("CREATE TABLE empty (id int)")
    snapshot = load("public.empty")
    properties = properties_of(spark, "lake.loaded")
    assert snapshot.rows == 0
    assert {
        name.removeprefix("reconcile.snapshot"): value
        for name, value in properties.items()
        if name.startswith("reconcile.snapshot")
    } == {
        "": "jdbc",
        ".id": properties["reconcile.snapshot.id"],
        ".database": "PostgreSQL",
        ".table": "public.empty",
        ".position_kind": "pg_snapshot",
        ".position": snapshot.position,
        ".wal_lsn": properties["reconcile.snapshot.wal_lsn"],
        ".taken_at": properties["reconcile.snapshot.taken_at"],
    }
    assert postgres.query(f"SELECT '{snapshot.position}'::pg_snapshot") == snapshot.position
    assert postgres.query(f"SELECT '{properties['reconcile.snapshot.wal_lsn']}'::pg_lsn <= pg_current_wal_lsn()") == "t"


def test_odd_names_and_rows_without_the_partitions_column(spark, postgres, load):
    postgres.query(
        'CREATE SCHEMA "Odd.Schema"; '
        'CREATE TABLE "Odd.Schema"."a ""b"" {}" ("select" int, "x y" text, "C" int, "c" int); '
        """INSERT INTO "Odd.Schema"."a ""b"" {}" VALUES (NULL, 'n', 1, 2), (3, 'three', 1, 2), (-5, 'minus', 1, 2)"""
    )
    load('"Odd.Schema"."a ""b"" {}"', columns='"select", "x y"', partitions=Partitions("select", 5), into="lake.`odd`")
    assert rows_of(spark, "lake.odd") == [(-5, "minus"), (3, "three"), (None, "n")]
    with pytest.raises(UsageError, match="has two columns C and c, whose names differ in case only"):
        load('"Odd.Schema"."a ""b"" {}"')
    load('"Odd.Schema"."a ""b"" {}"', columns="c, select")
    assert spark.table("lake.loaded").columns == ["c", "select"]
    with pytest.raises(UsageError, match="has no column z"):
        load('"Odd.Schema"."a ""b"" {}"', columns="z")


# The type, a value, the columns asked for, and the complaint.
NOT_EXACT = [
    ("numeric", "1.12345678901", "v decimal(38,10)", "would be rounded to 10 decimal places"),
    ("numeric", f"{'9' * 29}", "v decimal(38,10)", "has 29 digits before the decimal point"),
    ("numeric(10,2)", "'NaN'", None, "is not a number"),
    ("date", "'infinity'", None, '"infinity" is not of the form'),
    ("integer[]", "'{{1}}'", None, "does not have the 1 dimension of array<int>"),
    ("json", '\'{"a": 1, "a": 1}\'', "v variant", "a variant cannot hold: it has a name twice"),
    ("json", "'[0.1234567890123456789012345678901234567890]'", "v variant", "or a number that a variant would round"),
    ("json", "'[9007199254740993e0]'", "v variant", "or a number that a variant would round"),
    ("date", "'0044-03-15 BC'", None, "is not of the form"),
    ("timestamptz", "'-infinity'", None, "is not of the form"),
    ("timestamp", "'20000-01-01'", None, "is not of the form"),
    ("text", "'12.5'", "v int", "would be rounded to no decimal places"),
]


@pytest.mark.matrix
def test_what_is_not_exact_is_named_and_changes_nothing(spark, postgres, load):
    postgres.query("CREATE TABLE before AS SELECT 1 AS id")
    load("public.before")
    for place, (kind, value, columns, complaint) in enumerate(NOT_EXACT):
        postgres.query(f"CREATE TABLE wrong{place} (v {kind}); INSERT INTO wrong{place} VALUES (NULL), ({value})")
        with pytest.raises(DataError) as refused:
            load(f"public.wrong{place}", columns=columns)
        assert complaint in str(refused.value) and "Column v" in str(refused.value)
        assert rows_of(spark, "lake.loaded") == [(1,)]
    assert load("public.wrong3", columns="v string").rows == 2


def test_rows_that_a_policy_hides_are_not_missing_in_silence(postgres, load, source, spark):
    postgres.query(
        "CREATE TABLE guarded (id int); INSERT INTO guarded VALUES (1), (2); "
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON guarded USING (id = 1); "
        "CREATE USER reader PASSWORD 'a reader''s'; GRANT SELECT ON guarded TO reader"
    )
    reader = Source(PostgreSQL(), source.url, {"user": "reader", "password": "a reader's"})
    into = TableName.parse("lake.loaded")
    with pytest.raises(UsageError, match="BYPASSRLS"):
        snapshot_jdbc.load_jdbc(spark, reader, "public.guarded", into)
    postgres.query("CREATE TABLE shut (id int)")
    with pytest.raises(UsageError, match="permission denied for table shut"):
        snapshot_jdbc.load_jdbc(spark, reader, "public.shut", into)


def test_refusals_are_sentences(spark, postgres, load, source):
    into = TableName.parse("lake.loaded")

    def refused(kind, url=source.url, table="public.plain", database=None, **how):
        properties = how.pop("properties", source.properties)
        with pytest.raises(kind) as found:
            snapshot_jdbc.load_jdbc(spark, Source(database or PostgreSQL(), url, properties), table, into, **how)
        text = str(found.value)
        assert "\n" not in text and "Exception" not in text and postgres.password not in text, text
        return text

    postgres.query("CREATE TABLE plain (id int, note text)")
    wrong = {"user": postgres.user, "password": "not this one"}
    assert "refused the login" in refused(UsageError, properties=wrong)
    assert "refused the login" in refused(UsageError, properties={"user": "nobody", "password": "x"})
    nobody_listens = f"jdbc:postgresql://127.0.0.1:{free_port()}/postgres"
    assert "Connection to 127.0.0.1" in refused(Fault, nobody_listens)
    assert '"absent" does not exist' in refused(UsageError, source.url.replace("/postgres", "/absent"))
    assert "has no table public.Absent" in refused(UsageError, table='public."Absent"')
    assert "cannot read an earlier position" in refused(UsageError, at="1:1:")
    assert "no column x: write --columns as in the database; " in refused(UsageError, columns="x, note blob")
    assert ("blob, the type of the column note, is not a scalar type of Spark") in refused(
        UsageError, columns=("note blob")
    )
    assert "must be a number" in refused(UsageError, partitions=Partitions("note", 2))
    spark.sql("CREATE TABLE IF NOT EXISTS lake.somebodys (id int) USING delta")
    into = TableName.parse("lake.somebodys")
    assert "was not created by snapshot.py" in refused(UsageError)
    into = TableName.parse("lake.loaded")
    driver = refused(UsageError, "jdbc:sqlserver://127.0.0.1", "dbo.t", SQLServer())
    assert "com.microsoft.sqlserver:mssql-jdbc:" in driver and "not on the class path" in driver


def test_a_connection_that_is_lost_is_a_fault(spark, postgres, load):
    postgres.query("CREATE TABLE lost AS SELECT generate_series(1, 100) AS id")

    def cut_off():
        postgres.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() AND state = 'idle in transaction'"
        )

    with pytest.raises(Fault, match="run the same command again"):
        load("public.lost", database=ChangedMeanwhile(cut_off))


def submit(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).with_name("spark-submit")), str(ROOT / "ingestion" / "snapshot.py"), "jdbc"]
    events = ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={directory}"]
    events += ["--conf", "spark.eventLog.compress=false"]
    return subprocess.run(
        [command[0], *events, *command[1:], *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def test_the_password_shows_nowhere(postgres, tmp_path):
    canary = "canary-7f3a9c"
    postgres.query(f"CREATE USER tenant PASSWORD '{canary}'; CREATE TABLE told (id int); INSERT INTO told VALUES (7)")
    postgres.query(
        "GRANT SELECT ON told TO tenant; CREATE TABLE bad (d date); INSERT INTO bad VALUES ('infinity'); "
        "GRANT SELECT ON bad TO tenant"
    )
    url = postgres.environment["RECONCILE_METASTORE_URL"]
    secrets = {"RECONCILE_JDBC_USER": "tenant", "RECONCILE_JDBC_PASSWORD": canary}
    arguments = ["--url", url, "--into", "lake.t", "--table"]

    done = submit(tmp_path, *arguments, "public.told", **secrets)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert set(result) == {"rows", "into", "position", "seconds"} and result["rows"] == 1

    bad = submit(tmp_path, *arguments, "public.bad", **secrets)
    assert (bad.returncode, bad.stdout) == (1, ""), bad.stderr[-2000:]

    file = tmp_path / "connection"
    file.write_text(f"user = tenant\npassword = wrong-{canary}\n")
    file.chmod(0o640)
    opened = submit(tmp_path, *arguments, "public.told", "--properties", str(file))
    assert opened.returncode == 2 and "chmod 600" in opened.stderr
    file.chmod(0o600)
    failed = submit(tmp_path, *arguments, "public.told", "--properties", str(file))
    assert failed.returncode == 2 and "refused the login" in failed.stderr
    file.unlink()

    said = "".join(run.stdout + run.stderr for run in (done, bad, opened, failed))
    read = Path.read_bytes
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    # The plan of the reading stands in an event log that can be read.
    assert any(b"physicalPlanDescription" in content and b"JDBCRelation" in content for content in map(read, written))
    assert any(path.is_relative_to(tmp_path / "lakehouse") for path in written)
    assert canary not in said
    assert not [path for path in written if canary.encode() in read(path)]
