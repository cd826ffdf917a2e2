"""Real databases write the canonical form of every vector, and sum the hashes that plain Python does."""

from __future__ import annotations

import random
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from canonical_form import PAGE, VECTORS, VectorTable, canonical
from google.cloud.spanner_v1 import types
from google.protobuf.struct_pb2 import ListValue, Value
from h2 import rows_in_h2
from mariadb import MariaDB
from postgres import Postgres
from reconcile_jobs.jdbc.mysql import MySQL as MySQLDatabase
from reconcile_jobs.jdbc.oracle import Oracle as OracleDatabase
from reconcile_jobs.jdbc.postgresql import PostgreSQL as PostgreSQLDatabase
from reconcile_jobs.proofs.canonical_form import KINDS, Field, agreed, field_texts
from reconcile_jobs.proofs.comparison import Table, compared
from reconcile_jobs.proofs.dialects import MySQL, Oracle, PostgreSQL, Spanner, SpannerPostgreSQL
from spanner_emulator import Database, Emulator, json_value, plain

OF_POSTGRESQL = VectorTable(
    PostgreSQL(),
    "bigint",
    {
        "tinyint": "smallint",
        "smallint": "smallint",
        "int": "integer",
        "bigint": "bigint",
        "decimal(20,0)": "numeric",
        "decimal(38,0)": "numeric(38,0)",
        "decimal(38,9)": "numeric(38,9)",
        "decimal(38,38)": "numeric(38,38)",
        "boolean": "boolean",
        "double": "double precision",
        "float": "real",
        "date": "date",
        "timestamp": "timestamp(6) with time zone",
        "timestamp_ntz": "timestamp without time zone",
        "string": "text",
        "varchar": "character varying(300)",
        "binary": "bytea",
        "varbinary": "bytea",
        "array<string>": "text[]",
        "array<int>": "integer[]",
        "array<decimal(38,9)>": "numeric(38,9)[]",
        "array<boolean>": "boolean[]",
        "array<double>": "double precision[]",
        "array<date>": "date[]",
        "array<timestamp>": "timestamp(6) with time zone[]",
        "array<timestamp_ntz>": "timestamp without time zone[]",
        "array<binary>": "bytea[]",
    },
    "postgresql",
    dict.fromkeys(("numeric", "numeric(38,0)", "numeric(38,9)", "numeric(38,38)", "text"), "{}::text")
    | {"character varying(300)": "{}::text"},
)

OF_MYSQL = VectorTable(
    MySQL(),
    "bigint",
    {
        "tinyint": "tinyint(4)",
        "smallint": "smallint",
        "int": "int(11)",
        "bigint": "bigint(20)",
        "decimal(20,0)": "bigint(20) unsigned zerofill",
        "decimal(38,0)": "decimal(38,0)",
        "decimal(38,9)": "decimal(38,9)",
        "decimal(38,38)": "decimal(38,38)",
        "boolean": "bit(1)",
        "double": "double",
        "float": "float",
        "date": "date",
        "timestamp": "timestamp(6) NULL",
        "timestamp_ntz": "datetime(6)",
        "string": "longtext",
        "varchar": "varchar(300)",
        "binary": "longblob",
        "varbinary": "varbinary(300)",
    },
    "mysql",
    dict.fromkeys(
        (
            "tinyint(4)",
            "smallint",
            "int(11)",
            "bigint",
            "bigint(20)",
            "decimal(38,0)",
            "decimal(38,9)",
            "decimal(38,38)",
        ),
        "CAST({} AS CHAR)",
    )
    | dict.fromkeys(("bigint(20) unsigned zerofill", "bit(1)"), "CAST({} + 0 AS CHAR)"),
)

_OF_SPANNER = {
    "smallint": "INT64",
    "int": "INT64",
    "bigint": "INT64",
    "decimal(20,0)": "NUMERIC",
    "decimal(38,0)": "NUMERIC",
    "decimal(38,9)": "NUMERIC",
    "decimal(38,38)": "NUMERIC",
    "boolean": "BOOL",
    "double": "FLOAT64",
    "float": "FLOAT32",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "string": "STRING",
    "varchar": "STRING",
    "binary": "BYTES",
    "varbinary": "BYTES",
}
# Spanner takes a query of 1,000 functions at most: arrays have a table of their own.
_ARRAYS_OF_SPANNER = {
    f"array<{type_}>": f"ARRAY<{_OF_SPANNER[type_]}>"
    for type_ in ("string", "int", "decimal(38,9)", "boolean", "double", "date", "timestamp", "binary")
}
OF_SPANNER = VectorTable(Spanner(), "INT64", _OF_SPANNER, "spanner", {}, odd="_")
OF_SPANNER_POSTGRESQL = VectorTable(
    SpannerPostgreSQL(),
    "INT64",
    {type_: kind for type_, kind in _OF_SPANNER.items() if not kind.startswith("FLOAT")},
    "spanner_postgresql",
    {},
    odd="_",
)


class ArraysOfSpanner(VectorTable):
    """The key and the arrays; the other types are those of their elements."""

    @property
    def columns(self) -> list[str]:
        return [type_ for type_ in super().columns if type_ in _ARRAYS_OF_SPANNER]


ARRAYS_OF_SPANNER = ArraysOfSpanner(
    Spanner(), "INT64", _OF_SPANNER | _ARRAYS_OF_SPANNER, "spanner", {}, odd="_", is_wide=False
)
ARRAYS_OF_SPANNER_POSTGRESQL = ArraysOfSpanner(
    SpannerPostgreSQL(),
    "INT64",
    {type_: kind for type_, kind in (_OF_SPANNER | _ARRAYS_OF_SPANNER).items() if "FLOAT" not in kind},
    "spanner_postgresql",
    {},
    odd="_",
    is_wide=False,
)


def literal_of_postgresql(value: Any, type_: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        elements = (literal_of_postgresql(element, type_.removesuffix("[]")) for element in value)
        return f"ARRAY[{', '.join(elements)}]::{type_}"
    if type_ in ("text", "character varying(300)"):
        return rf"convert_from('\x{value.encode().hex()}', 'UTF8')"
    if type_ == "bytea":
        return rf"'\x{value}'"
    return f"'{value}+00'" if "with time zone" in type_ else f"'{value}'::{type_}"


def literal_of_mysql(value: str | None, type_: str) -> str:
    if value is None:
        return "NULL"
    if type_ in ("longtext", "varchar(300)"):
        return f"_utf8mb4 x'{value.encode().hex()}'"
    if type_ in ("longblob", "varbinary(300)"):
        return f"x'{value}'"
    if type_ == "bit(1)":
        return "b'1'" if value == "true" else "b'0'"
    if value == "-0.0" and type_ == "float":
        return "-1e-300"  # what it stores as minus zero
    if type_ in ("double", "float"):
        return value if "e" in value else f"{value}e0"
    return f"'{value}'"


def inserts(table: VectorTable, relation: str, literal: Callable[[str | None, str], str]) -> str:
    rows = (
        ", ".join(literal(value, field.source_type) for field, value in zip(table.fields, row, strict=True))
        for row in table.rows
    )
    return f"INSERT INTO {relation} VALUES {', '.join(f'({row})' for row in rows)}"


def declared(table: VectorTable) -> str:
    return ", ".join(f"{table.dialect.quoted(field.name)} {field.source_type}" for field in table.fields)


# A user's settings change no text.
SETTINGS = (
    "SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Kolkata'; SET bytea_output = 'escape'; "
    "SET extra_float_digits = 0; SET intervalstyle = 'sql_standard'"
)


def check_postgresql(run: Callable[[str], str]) -> None:
    run(f"CREATE TABLE vectors ({declared(OF_POSTGRESQL)})")
    run(inserts(OF_POSTGRESQL, "vectors", literal_of_postgresql))

    def rows(query: str) -> list[list[str]]:
        # psql separates columns by what no canonical form holds.
        lines = run(f"{SETTINGS}; {query}").splitlines()
        return [line.split("|") for line in lines if line != "SET"]

    OF_POSTGRESQL.check(rows, "vectors")
    outside = ["infinity", "-infinity", "0001-12-30 BC", "10000-01-02"]
    of_kind = {"date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
    without = {kind: [f"'{value}'::{type_}" for value in outside] for kind, type_ in of_kind.items()}
    OF_POSTGRESQL.check_without_form(rows, without)
    OF_POSTGRESQL.check_array(rows, "date", "ARRAY['infinity'::date, NULL]", "=11:!postgresqln")
    OF_POSTGRESQL.check_array(rows, "text", "ARRAY[['a'], ['b']]", "=!postgresql")
    # Where an array begins to count is no value.
    OF_POSTGRESQL.check_array(rows, "text", "'[5:6]={a,b}'::text[]", "=2:612:62")


def check_mysql(run: Callable[[str], list[list[str]]]) -> None:
    before = "SET sql_mode = 'NO_ZERO_DATE'; SET time_zone = '+00:00'"
    run(f"CREATE TABLE shop.vectors ({declared(OF_MYSQL)}) CHARACTER SET utf8mb4")
    run(f"{before}; {inserts(OF_MYSQL, 'shop.vectors', literal_of_mysql)}")
    (session,) = OF_MYSQL.dialect.session
    for mode in ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH"):

        def rows(query: str, mode: str = mode) -> list[list[str]]:
            return run(f"SET sql_mode = '{mode}'; {session}; {query}")

        OF_MYSQL.check(rows, "shop.vectors")
        dates = ["0000-00-00", "2024-00-10", "2024-02-00"]
        moments = [f"CAST('{date} 00:00:00' AS DATETIME(6))" for date in dates]
        without = {"date": [f"CAST('{date}' AS DATE)" for date in dates], "timestamp_ntz": moments}
        OF_MYSQL.check_without_form(rows, without)


def inserted(table: str, columns: list[str], rows: list[list[Value]]) -> types.Mutation:
    values = [ListValue(values=row) for row in rows]
    return types.Mutation(insert=types.Mutation.Write(table=table, columns=columns, values=values))


def sent(kind: str, value: Any) -> Any:
    """Return a value of a vector as Spanner takes it."""
    if value is None:
        return None
    if isinstance(value, list):
        return [sent(kind.removeprefix("ARRAY<").removesuffix(">"), element) for element in value]
    if kind == "BOOL":
        return value == "true"
    if kind == "BYTES":
        return b64encode(bytes.fromhex(value)).decode()
    if kind.startswith("FLOAT"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(value) or float(value)
    return f"{value}Z" if kind == "TIMESTAMP" else value


def check_spanner(database: Database, table: VectorTable) -> None:
    kinds = {field.name: field.source_type for field in table.fields}

    values = [
        [json_value(sent(kinds[name], value)) for name, value in zip(kinds, row, strict=True)] for row in table.rows
    ]
    database.commit(inserted("vectors", [*kinds], values))

    def rows(query: str) -> list[list[str]]:
        return [[plain(value) for value in row] for row in database.client.rows(query)]

    table.check(rows, "vectors")
    database.commit(inserted("fine", ["id", "c"], [[json_value("1"), json_value("2026-01-01T00:00:00.123456789Z")]]))
    assert rows(f"SELECT {table.dialect.field(Field('c', 'timestamp'))} FROM fine") == [["=!spanner"]]


def ddl_of_spanner(table: VectorTable, names: dict[str, str]) -> list[str]:
    columns = ", ".join(f"{table.dialect.quoted(field.name)} {names[field.source_type]}" for field in table.fields)
    key = table.dialect.quoted("id")
    if isinstance(table.dialect, SpannerPostgreSQL):
        fine = "CREATE TABLE fine (id bigint PRIMARY KEY, c timestamptz)"
        return [f"CREATE TABLE vectors ({columns}, PRIMARY KEY ({key}))", fine]
    fine = "CREATE TABLE fine (id INT64, c TIMESTAMP) PRIMARY KEY (id)"
    return [f"CREATE TABLE vectors ({columns}) PRIMARY KEY ({key})", fine]


IN_GOOGLESQL = {kind: kind for kind in _OF_SPANNER.values()} | {"STRING": "STRING(MAX)", "BYTES": "BYTES(MAX)"}
IN_GOOGLESQL |= {f"ARRAY<{kind}>": f"ARRAY<{declared}>" for kind, declared in IN_GOOGLESQL.items()}
IN_POSTGRESQL = {
    "INT64": "bigint",
    "NUMERIC": "numeric",
    "BOOL": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "STRING": "varchar",
    "BYTES": "bytea",
}
IN_POSTGRESQL |= {f"ARRAY<{kind}>": f"{declared}[]" for kind, declared in IN_POSTGRESQL.items()}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDB]:
    server = MariaDB()
    yield server
    server.stop()


def test_postgresql(postgres: Postgres):
    check_postgresql(postgres.query)


def test_mariadb(mariadb: MariaDB):
    check_mysql(mariadb.query)


def check_both(of_postgresql: Callable[[str], str], of_mariadb: Callable[[str], list[list[str]]]) -> None:
    """The same rows in two databases, and then some that are not."""
    postgresql, mysql = PostgreSQLDatabase(), MySQLDatabase()
    types = {
        "id": (("integer",) * 2, ("int", "int", "10", "0")),
        "no": (("text",) * 2, ("varchar", "varchar(40)", None, None)),
        "total": (("numeric(12,3)",) * 2, ("decimal", "decimal(14,5)", "14", "5")),
        "ratio": (("double precision",) * 2, ("double", "double", None, None)),
        "at": (("timestamp without time zone",) * 2, ("datetime", "datetime(6)", None, None)),
    }
    models = ["int", "string", "decimal(14,5)", "double", "timestamp_ntz"]
    columns = [postgresql.column(name, *catalog) for name, (catalog, _) in types.items()]
    theirs = [mysql.column(name, *catalog) for name, (_, catalog) in types.items()]
    ours = [agreed(column, model)[0] for column, model in zip(columns, models, strict=True)]
    others = [agreed(column, model)[0] for column, model in zip(theirs, models, strict=True)]
    chance = random.Random(30)
    rows = [
        f"({number}, 'é {number}', {number / 8}, {chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300)!r}, "
        f"'2026-01-01 00:00:00.{chance.randrange(10**6):06}')"
        for number in range(1000)
    ]
    for run, dialect, fields, relation in (
        (of_postgresql, PostgreSQL(), ours, "orders"),
        (of_mariadb, MySQL(), others, "shop.orders"),
    ):
        shown = ", ".join(f"{dialect.quoted(field.name)} {field.source_type}" for field in fields)
        run(f"CREATE TABLE {relation} ({shown})")
        run(f"INSERT INTO {relation} VALUES {', '.join(rows)}")

    def lines(query: str) -> list[list[str]]:
        return [line.split("|") for line in of_postgresql(query).splitlines()]

    source = Table(PostgreSQL(), "orders", ours[:2], ours, lines, ["id::text", "at::text"])
    model = Table(MySQL(), "shop.orders", others[:2], others, of_mariadb)
    found = compared(source, model)
    assert found.is_equal and found.rows == (1000, 1000) and found.read == 0
    of_mariadb("UPDATE shop.orders SET ratio = ratio * (1 + 3e-16) WHERE id = 5")
    of_mariadb("UPDATE shop.orders SET at = at + INTERVAL 1 MICROSECOND WHERE id = 6")
    of_mariadb("UPDATE shop.orders SET total = total + 0.00001 WHERE id = 7")
    of_mariadb("DELETE FROM shop.orders WHERE id = 8")
    of_mariadb("UPDATE shop.orders SET no = 'é 9 ' WHERE id = 9")
    found = compared(source, model)
    keys = [
        sorted(field_texts(key, ["number", "text"]) for key in some)
        for some in (found.different, found.missing, found.unexpected)
    ]
    assert keys == [[[str(n), f"é {n}"] for n in (5, 6, 7)], [["8", "é 8"], ["9", "é 9"]], [["9", "é 9 "]]]
    assert found.rows == (1000, 999) and 5 <= found.read < 100
    by_key = {row.key: row.values for row in found.source_rows}
    assert [by_key[key][0] for key in found.different] == ["5", "6", "7"]
    assert all(len(values) == 2 and values[1].startswith("2026-01-01 00:00:00") for values in by_key.values())
    few = compared(source, model, most=3)
    assert few.unread and not few.is_equal and not few.source_rows and few.sums == found.sums


def test_two_databases_are_compared(postgres: Postgres, mariadb: MariaDB):
    check_both(postgres.query, mariadb.query)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    server = Emulator()
    yield server
    server.stop()


TABLES_OF_SPANNER = {
    "googlesql": OF_SPANNER,
    "postgresql": OF_SPANNER_POSTGRESQL,
    "arrays-googlesql": ARRAYS_OF_SPANNER,
    "arrays-postgresql": ARRAYS_OF_SPANNER_POSTGRESQL,
}


@pytest.mark.parametrize("name", TABLES_OF_SPANNER)
def test_spanner(emulator: Emulator, name: str):
    table = TABLES_OF_SPANNER[name]
    is_postgresql = isinstance(table.dialect, SpannerPostgreSQL)
    ddl = ddl_of_spanner(table, IN_POSTGRESQL if is_postgresql else IN_GOOGLESQL)
    check_spanner(emulator.database(f"vectors-{name}", is_postgresql, *ddl), table)


# The vectors' types, what Oracle's SQL calls them, and what its catalog has of them: type, precision, scale.
IN_ORACLE = [
    ("tinyint", "NUMBER(3,0)", ("NUMBER", "3", "0")),
    ("smallint", "NUMBER(5,0)", ("NUMBER", "5", "0")),
    ("int", "NUMBER(10,0)", ("NUMBER", "10", "0")),
    ("bigint", "NUMBER(19,0)", ("NUMBER", "19", "0")),
    ("decimal(20,0)", "NUMBER(20,0)", ("NUMBER", "20", "0")),
    ("decimal(38,0)", "NUMBER(38,0)", ("NUMBER", "38", "0")),
    # H2's numbers keep the zeros of their scale, and Oracle's have none.
    ("decimal(38,9)", "NUMBER", ("NUMBER", "38", "9")),
    ("decimal(38,38)", "NUMBER", ("NUMBER", "38", "38")),
    ("boolean", "BOOLEAN", ("BOOLEAN", None, None)),
    ("boolean", "NUMBER(1,0)", ("NUMBER", "1", "0")),
    ("double", "BINARY_DOUBLE", ("BINARY_DOUBLE", None, None)),
    ("float", "BINARY_FLOAT", ("BINARY_FLOAT", None, None)),
    ("timestamp", "TIMESTAMP(6) WITH TIME ZONE", ("TIMESTAMP(6) WITH TIME ZONE", None, "6")),
    ("timestamp_ntz", "TIMESTAMP(6)", ("TIMESTAMP(6)", None, "6")),
    ("timestamp_ntz", "DATE", ("DATE", None, None)),
    ("string", "VARCHAR2(300)", ("VARCHAR2", None, None)),
    ("string", "NVARCHAR2(300)", ("NVARCHAR2", None, None)),
    ("varchar", "VARCHAR2(300)", ("VARCHAR2", None, None)),
    ("varchar", "CLOB", ("CLOB", None, None)),
    ("binary", "RAW(300)", ("RAW", None, None)),
    ("varbinary", "BLOB", ("BLOB", None, None)),
]
# What H2 has under another name.
OF_H2 = {
    r"UTL_I18N\.STRING_TO_RAW\((.*?), 'AL32UTF8'\)": r"STRINGTOUTF8(\1)",
    r"SYS_EXTRACT_UTC\((.*?)\)": r"(\1 AT TIME ZONE 'UTC')",
}
# What does not run in H2, by kind, and why: the specification says so.
NOT_IN_H2 = {
    "date": "Oracle has no date without a time of day",
    "float": "H2 has no `IS NAN`, and no function for the bits of a double",
    "text_digest": "H2 has no hash of Oracle's",
    "bytes_digest": "H2 has no hash of Oracle's",
}
# What H2 writes otherwise than Oracle: TO_CHAR(-0.5, 'TM9') is -.5 there.
OTHERWISE_IN_H2 = {
    ("decimal(38,9)", "minus a half"): "=-00.5",
    ("decimal(38,9)", "smallest below zero"): "=-00.000000001",
    ("decimal(38,38)", "smallest"): f"=-00.{'0' * 37}1",
    ("decimal(38,38)", "least"): f"=-00.{'9' * 38}",
}


def literal_of_h2(value: str | None, type_: str, oracle: str) -> str:
    if value is None:
        return "NULL"
    if type_ in ("string", "varchar"):
        return f"UTF8TOSTRING(X'{value.encode().hex()}')"
    if type_ in ("binary", "varbinary"):
        return f"X'{value}'"
    if type_ == "boolean" and oracle != "BOOLEAN":
        return "1" if value == "true" else "0"
    if type_ in ("double", "float"):
        named = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return f"CAST('{named.get(value, value)}' AS {oracle})"
    if type_ == "timestamp":
        zone = "-08:00" if value.startswith("9999") else "+05:30"
        return f"(TIMESTAMP WITH TIME ZONE '{value.replace('T', ' ')}+00:00' AT TIME ZONE '{zone}')"
    if type_ == "timestamp_ntz":
        return f"TIMESTAMP '{value.replace('T', ' ')}'"
    return f"CAST('{value}' AS {oracle})"


def in_h2(sql: str) -> str:
    for theirs, h2s in OF_H2.items():
        sql = re.sub(theirs, h2s, sql)
    return sql


def test_oracle_in_h2():
    """As rendered for Oracle, but for OF_H2: the texts, not their hashes."""
    # Oracle has no arrays and no maps.
    kinds = {vector["type"]: vector["kind"] for vector in VECTORS if "<" not in vector["kind"]}
    assert {kinds[type_] for type_, *_ in IN_ORACLE} | {"date", "array", "map"} == {*KINDS}
    assert {*kinds} == {type_ for type_, *_ in IN_ORACLE} | {"date"}
    dialect, script, queries, columns = Oracle(), [], [], []
    for place, (type_, oracle, catalog) in enumerate(IN_ORACLE):
        column = OracleDatabase().column("c ]`", *catalog)
        assert column.expression is not None
        field = Field(column.name, kinds[type_], column.source_type, column.expression)
        vectors = [each for each in VECTORS if each["type"] == type_ and "oracle" not in each.get("without", {})]
        if oracle == "DATE":
            vectors = [each for each in vectors if (each["value"] or ".000000").endswith(".000000")]
        script.append(f"CREATE TABLE t{place} (id INT, {dialect.quoted(field.name)} {oracle})")
        script += [
            f"INSERT INTO t{place} VALUES ({number}, {literal_of_h2(vector['value'], type_, oracle)})"
            for number, vector in enumerate(vectors)
        ]
        queries.append(f"SELECT {in_h2(dialect.field(field))} FROM t{place} ORDER BY id")
        columns.append((type_, vectors))
    for at in ("-0044-03-15 00:00:00", "2026-01-01 00:00:00.000000001"):
        with_zone = f"TIMESTAMP WITH TIME ZONE '{at}Z'"
        for field, literal in (
            (Field("C", "timestamp_ntz", "TIMESTAMP(9)"), f"TIMESTAMP '{at}'"),
            (Field("C", "timestamp", "TIMESTAMP(9) WITH TIME ZONE"), with_zone),
        ):
            queries.append(f"SELECT {in_h2(dialect.field(field))} FROM (SELECT {literal} AS C FROM dual) t")
    found, said = rows_in_h2(script, queries)
    refused = {kinds[type_] for (type_, _), rows in zip(columns, found, strict=False) if rows is None}
    assert refused == {*NOT_IN_H2} - {"date"}, said
    otherwise = {}
    for (type_, vectors), rows in zip(columns, found, strict=False):
        if rows is None:
            continue
        assert len(rows) == len(vectors) > 1
        for vector, (text,) in zip(vectors, rows, strict=True):
            ours = canonical(vector["kind"], vector["value"])
            if text != ("~" if ours is None else f"={ours}"):
                otherwise[type_, vector["what"]] = text
    assert otherwise == OTHERWISE_IN_H2
    assert found[len(columns) :] == [[["=!oracle"]]] * 4
    page = PAGE.read_text()
    for kind, why in NOT_IN_H2.items():
        assert f"| `{kind}` | {why} |" in page
