"""The canonical form: its vectors in plain Python, which columns have one, and SQL for what no test can run."""

import re
import sqlite3
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import permutations, product

import pytest
import sqlglot
from canonical_form import BEGIN, PAGE, VECTORS, canonical, digest, lines_of_vectors, row_form, spark_column, sums
from reconcile_jobs.jdbc.database import Column
from reconcile_jobs.jdbc.mysql import MySQL as MySQLDatabase
from reconcile_jobs.jdbc.oracle import Oracle as OracleDatabase
from reconcile_jobs.jdbc.postgresql import PostgreSQL as PostgreSQLDatabase
from reconcile_jobs.jdbc.sqlserver import SQLServer as SQLServerDatabase
from reconcile_jobs.proofs.canonical_form import (
    GROUP,
    KINDS,
    Field,
    Unprovable,
    agreed,
    field_of,
    field_texts,
    parts_of_type,
)
from reconcile_jobs.proofs.dialects import MySQL, Oracle, PostgreSQL, Spanner, SpannerPostgreSQL, Spark, SQLServer
from reconcile_jobs.proofs.spanner_columns import spanner_column

DIALECTS = {
    PostgreSQL: "postgres",
    MySQL: "mysql",
    Oracle: "oracle",
    SQLServer: "tsql",
    Spanner: "bigquery",
    SpannerPostgreSQL: "postgres",
    Spark: "spark",
}


def test_the_vectors_are_the_canonical_form_of_plain_python():
    kinds = {vector["kind"] for vector in VECTORS}
    assert {parts_of_type(kind)[0] for kind in kinds} == {*KINDS}
    # An array of every kind, but of hashes, which only Oracle needs.
    elements = {kind for kind in KINDS if not kind.endswith("_digest") and kind not in ("array", "map")}
    assert {f"array<{kind}>" for kind in elements} | {"array<array<text>>"} <= kinds
    for vector in VECTORS:
        assert canonical(vector["kind"], vector["value"]) == vector["text"], vector


def test_every_type_has_its_ends():
    of_type = defaultdict(dict)
    for vector in VECTORS:
        assert vector["what"] not in of_type[vector["type"]], "two of one name"
        of_type[vector["type"]][vector["what"]] = vector["value"]
    for type_, named in of_type.items():
        assert named["NULL"] is None
        if "<" in type_:
            assert named["empty"] == []
        elif type_ in ("string", "varchar", "binary", "varbinary"):
            assert named["empty"] == "" and "NUL" in named
        elif type_ not in ("boolean", "decimal(20,0)", "decimal(38,38)", "float"):
            assert {"least", "greatest"} <= {*named}
    assert {ord(value[0]) >> 16 for value in of_type["string"].values() if value} == {*range(17)}


def test_no_two_values_of_a_type_have_one_form():
    for kind in {vector["kind"] for vector in VECTORS}:
        types = {vector["type"] for vector in VECTORS if vector["kind"] == kind}
        for type_ in types:
            texts = Counter(vector["text"] for vector in VECTORS if vector["type"] == type_)
            # Two decimals are one number.
            same = {"0": 2} if type_ == "decimal(38,9)" else {}
            assert {text: count for text, count in texts.items() if count > 1} == same


def test_no_two_rows_have_one_form():
    some = [None, "", "~", "=", "a", "ab", "b", "bc", "c", "61", "=61"]
    rows = [*product(some, repeat=2), *product(some, repeat=3)]
    forms = {row_form([canonical("text", value) for value in row]) for row in rows}
    assert len(forms) == len(rows)
    assert row_form(["61", "6263"]) != row_form(["6162", "63"])
    for row in rows:
        form = row_form([canonical("text", value) for value in row])
        assert field_texts(form, ["text"] * len(row)) == [*row]


def test_no_two_arrays_and_no_two_maps_have_one_form():
    some = [None, "", "n", "a", "aa", "0:", "1:", "2:61", "~"]
    arrays = [[*row] for length in range(4) for row in product(some, repeat=length)]
    nested = [None, *arrays[:30]]
    for kind, values in (
        ("array<text>", arrays),
        ("array<array<text>>", [[*row] for length in range(3) for row in product(nested, repeat=length)]),
        (
            "map<text,array<text>>",
            [[[key, value], ["b", other]] for key in "cA" for value in nested for other in nested],
        ),
    ):
        forms = [canonical(kind, value) for value in values]
        assert len({*forms}) == len(forms) > 500
        assert not {*"".join(forms)} & {"~", "="}


def test_the_entries_of_a_map_have_no_order():
    entries = [["b", "1"], ["a", None], ["", "3"], ["ab", "3"]]
    assert len({canonical("map<text,number>", [*order]) for order in permutations(entries)}) == 1


@pytest.mark.parametrize(
    "text, parts",
    [
        ("decimal(38,9)", ("decimal(38,9)", [])),
        ("Array < decimal(38,9) >", ("array", ["decimal(38,9)"])),
        ("map<decimal(38,9),array<map<int, string>>>", ("map", ["decimal(38,9)", "array<map<int, string>>"])),
        ("array<map<int,string>>", ("array", ["map<int,string>"])),
    ],
)
def test_the_parts_of_a_type(text, parts):
    assert parts_of_type(text) == parts


def test_a_replay_has_the_field_of_the_certificate():
    type_ = "map<decimal(10,2),array<double>>"
    column = spark_column("c", type_)
    ours = agreed(column, type_)[1]
    assert ours.whole_kind == "map<number,array<float>>"
    expression = Spark().field(ours)
    assert Spark().field(field_of("c", ours.whole_kind, ours.source_type)) == expression


@pytest.mark.parametrize("form, count", [("=61", 2), ("=61=62", 1), ("61", 1), ("~61", 1), ("", 1)])
def test_what_is_no_form_of_a_row_is_not_read(form, count):
    with pytest.raises(ValueError, match="is not the canonical form of"):
        field_texts(form, ["text"] * count)


def test_two_rows_of_a_bucket_that_change_places_are_seen():
    rows = [(row_form([key]), row_form([key, value])) for key, value in [("1", "a"), ("2", "b")]]
    swapped = [(row_form([key]), row_form([key, value])) for key, value in [("1", "b"), ("2", "a")]]
    assert sums(rows, 0)[""][0] == sums(swapped, 0)[""][0] == 2
    assert sums(rows, 0) != sums(swapped, 0)


def of_postgresql(kind: str) -> Column:
    return PostgreSQLDatabase().column("c", kind, kind)


AGREED = [
    # column of the source, type of the model, kind
    (of_postgresql("integer"), "bigint", "number"),
    (of_postgresql("numeric"), "decimal(38,10)", "number"),
    (of_postgresql("numeric(20,2)"), "DECIMAL(38, 2)", "number"),
    (of_postgresql("money"), "decimal(19,2)", None),
    (of_postgresql("boolean"), "boolean", "boolean"),
    (of_postgresql("boolean"), "int", "number"),
    (of_postgresql("integer"), "boolean", "boolean"),
    (of_postgresql("double precision"), "double", "float"),
    (of_postgresql("real"), "float", "float"),
    (of_postgresql("real"), "double", None),
    *(
        (of_postgresql("integer"), alias, "number")
        for alias in ("byte", "short", "integer", "long", "dec", "numeric(10)", "decimal (10,2)", "Dec ( 10 , 2 ) ")
    ),
    (of_postgresql("real"), "real", "float"),
    (of_postgresql("timestamp(3) with time zone"), "timestamp_ltz", "timestamp"),
    (of_postgresql("timestamp without time zone"), "timestamp_ltz", None),
    *(
        (of_postgresql("text"), of_text, "text")
        for of_text in ("char(3)", "character(3)", "varchar (3)", "Character ( 3 )")
    ),
    (of_postgresql("numeric"), "char(3)", None),
    (of_postgresql("numeric"), "double", None),
    (of_postgresql("numeric"), "string", None),
    (of_postgresql("date"), "date", "date"),
    (of_postgresql("date"), "timestamp_ntz", None),
    (of_postgresql("timestamp(3) with time zone"), "timestamp", "timestamp"),
    (of_postgresql("timestamp without time zone"), "timestamp_ntz", "timestamp_ntz"),
    (of_postgresql("timestamp without time zone"), "timestamp", None),
    (of_postgresql("text"), "string", "text"),
    (of_postgresql("uuid"), "varchar(36)", "text"),
    (of_postgresql("timestamp without time zone"), "string", None),
    (of_postgresql("jsonb"), "string", None),
    (of_postgresql("jsonb"), "variant", None),
    (of_postgresql("interval"), "string", None),
    (of_postgresql("bytea"), "binary", "bytes"),
    (of_postgresql("bytea"), "string", None),
    (of_postgresql("integer[]"), "array<int>", "array<number>"),
    (of_postgresql("numeric(10,2)[]"), "ARRAY<DECIMAL(12, 2)>", "array<number>"),
    (of_postgresql("character varying(3)[]"), "array<varchar(3)>", "array<text>"),
    (of_postgresql("bytea[]"), "array<binary>", "array<bytes>"),
    (of_postgresql("timestamp(3) with time zone[]"), "array<timestamp>", "array<timestamp>"),
    (of_postgresql("integer[]"), "array<array<int>>", None),
    (of_postgresql("integer[]"), "string", None),
    (of_postgresql("integer[]"), "array<string>", None),
    (of_postgresql("real[]"), "array<double>", None),
    (of_postgresql("jsonb[]"), "array<string>", None),
    (of_postgresql("interval[]"), "array<string>", None),
    (of_postgresql("integer"), "array<int>", None),
    (of_postgresql("integer[]"), "map<int,int>", None),
    (spark_column("c", "map<int,array<string>>"), "map<int,array<string>>", "map<number,array<text>>"),
    (spark_column("c", "map<int,string>"), "map<int,binary>", None),
    (spark_column("c", "map<int,string>"), "array<int>", None),
    (MySQLDatabase().column("c", "tinyint", "tinyint(1)", "3", "0"), "boolean", "boolean"),
    (MySQLDatabase().column("c", "geometry", "geometry", None, None), "string", None),
    (OracleDatabase().column("c", "NUMBER", None, None), "decimal(38,10)", "number"),
    (OracleDatabase().column("c", "FLOAT", "126", None), "decimal(38,10)", "number"),
    (OracleDatabase().column("c", "DATE", None, None), "timestamp_ntz", "timestamp_ntz"),
    (OracleDatabase().column("c", "VARCHAR2", None, None), "string", "text"),
    (SQLServerDatabase().column("c", "money", "19", "4"), "decimal(19,4)", "number"),
    (SQLServerDatabase().column("c", "datetimeoffset", "34", "7"), "timestamp", "timestamp"),
    (spanner_column("c", "INT64"), "bigint", "number"),
    (spanner_column("c", "NUMERIC"), "decimal(38,9)", "number"),
    (spanner_column("c", "PG_NUMERIC"), "decimal(38,9)", "number"),
    (spanner_column("c", "PG_NUMERIC"), "string", None),
    (spanner_column("c", "BOOL"), "boolean", "boolean"),
    (spanner_column("c", "FLOAT32"), "float", "float"),
    (spanner_column("c", "STRING"), "string", "text"),
    (spanner_column("c", "BYTES"), "binary", "bytes"),
    (spanner_column("c", "TIMESTAMP"), "timestamp", "timestamp"),
    (spanner_column("c", "TIMESTAMP"), "string", None),
    (spanner_column("c", "JSON"), "string", None),
    (spanner_column("c", "PG_JSONB"), "string", None),
    (spanner_column("c", "UUID"), "string", None),
    (spanner_column("c", "INTERVAL"), "string", None),
    (spanner_column("c", "NOBODY_KNOWS_YET"), "string", None),
    (spanner_column("c", "DATE"), "date", "date"),
    (spanner_column("c", "FLOAT64"), "double", "float"),
    (spanner_column("c", "FLOAT64"), "float", None),
    (spanner_column("c", "INT64"), "boolean", "boolean"),
    (spanner_column("c", "INT64"), "string", None),
    (spanner_column("c", "ARRAY<UUID>"), "array<string>", None),
    (spanner_column("c", "ARRAY<INTERVAL>"), "array<string>", None),
    (spanner_column("c", "ARRAY<BYTES>"), "array<binary>", "array<bytes>"),
    (spanner_column("c", "PROTO"), "binary", None),
    (spanner_column("c", "ENUM"), "bigint", None),
    (spanner_column("c", "ARRAY<INT64>"), "array<bigint>", "array<number>"),
    (spanner_column("c", "ARRAY<PG_NUMERIC>"), "array<decimal(38,9)>", "array<number>"),
    (spanner_column("c", "ARRAY<JSON>"), "array<string>", None),
    (spanner_column("c", "ARRAY<ENUM>"), "array<bigint>", None),
]


@pytest.mark.parametrize("column, model_type, kind", AGREED)
def test_which_columns_are_compared(column, model_type, kind):
    if kind is None:
        with pytest.raises(Unprovable, match=rf"^the column c is {re.escape(column.source_type)} at the source"):
            agreed(column, model_type)
        return
    ours, theirs = agreed(column, model_type)
    assert (ours.whole_kind, theirs.whole_kind) == (kind, kind)
    assert (ours.source_type, theirs.source_type) == (column.source_type, model_type.strip().lower())
    digests = {"text": "text_digest", "bytes": "bytes_digest"}
    assert agreed(column, model_type, digests=True)[0].whole_kind == digests.get(kind, kind)


# Of the databases that no test runs, each expression to the letter.
TEXTS = {
    (Oracle, "number", "NUMBER(5,2)", "TO_CHAR({}, 'TM9')"): (
        """CASE WHEN "C" > 0 AND "C" < 1 THEN '0' || TO_CHAR("C", 'TM9') WHEN "C" < 0 AND "C" > -1 THEN '-0' || """
        """SUBSTR(TO_CHAR("C", 'TM9'), 2) ELSE TO_CHAR("C", 'TM9') END"""
    ),
    (Oracle, "boolean", "BOOLEAN", "{}"): """CASE WHEN "C" THEN '1' ELSE '0' END""",
    (Oracle, "float", "BINARY_DOUBLE", "TO_CHAR({})"): (
        """CASE WHEN "C" IS NAN THEN '7ff8000000000000' ELSE """
        """LOWER(RAWTOHEX(UTL_RAW.CAST_FROM_BINARY_DOUBLE(TO_BINARY_DOUBLE("C"), 1))) END"""
    ),
    (Oracle, "timestamp_ntz", "DATE", "{}"): (
        """CASE WHEN TO_CHAR("C", 'SYYYY') NOT LIKE '-%' THEN """
        """TO_CHAR("C", 'YYYY-MM-DD"T"HH24:MI:SS".000000"') ELSE '!oracle' END"""
    ),
    (Oracle, "timestamp_ntz", "TIMESTAMP(9)", "{}"): (
        """CASE WHEN TO_CHAR("C", 'SYYYY') NOT LIKE '-%' AND TO_CHAR("C", 'FF9') LIKE '%000' THEN """
        """TO_CHAR("C", 'YYYY-MM-DD"T"HH24:MI:SS.FF6') ELSE '!oracle' END"""
    ),
    (Oracle, "timestamp", "TIMESTAMP(6) WITH TIME ZONE", "{}"): (
        """CASE WHEN TO_CHAR(SYS_EXTRACT_UTC("C"), 'SYYYY') NOT LIKE '-%' AND """
        """TO_CHAR(SYS_EXTRACT_UTC("C"), 'FF9') LIKE '%000' THEN """
        """TO_CHAR(SYS_EXTRACT_UTC("C"), 'YYYY-MM-DD"T"HH24:MI:SS.FF6') ELSE '!oracle' END"""
    ),
    (Oracle, "text", "VARCHAR2", "{}"): """LOWER(RAWTOHEX(UTL_I18N.STRING_TO_RAW("C", 'AL32UTF8')))""",
    (Oracle, "text_digest", "VARCHAR2", "{}"): """LOWER(RAWTOHEX(DBMS_CRYPTO.HASH(TO_CLOB("C"), 4)))""",
    (Oracle, "text_digest", "NVARCHAR2", "{}"): """LOWER(RAWTOHEX(DBMS_CRYPTO.HASH(TO_NCLOB("C"), 4)))""",
    (Oracle, "text_digest", "NCLOB", "{}"): (
        f"""CASE WHEN DBMS_LOB.GETLENGTH("C") = 0 THEN '{digest("")}' """
        """ELSE LOWER(RAWTOHEX(DBMS_CRYPTO.HASH("C", 4))) END"""
    ),
    (Oracle, "bytes", "RAW", "{}"): """LOWER(RAWTOHEX("C"))""",
    (Oracle, "bytes_digest", "RAW", "{}"): """LOWER(RAWTOHEX(DBMS_CRYPTO.HASH(TO_BLOB("C"), 4)))""",
    (Oracle, "bytes_digest", "BLOB", "{}"): (
        f"""CASE WHEN DBMS_LOB.GETLENGTH("C") = 0 THEN '{digest("")}' """
        """ELSE LOWER(RAWTOHEX(DBMS_CRYPTO.HASH("C", 4))) END"""
    ),
    (SQLServer, "number", "int", "CONVERT(varchar(45), {})"): "CONVERT(varchar(45), [C])",
    (SQLServer, "number", "decimal(5,2)", "CONVERT(varchar(45), {})"): (
        "REPLACE(RTRIM(REPLACE(REPLACE(RTRIM(REPLACE(CONVERT(varchar(45), [C]), '0', ' ')), ' ', '0'), '.', ' ')), "
        "' ', '.')"
    ),
    (SQLServer, "number", "money", "CONVERT(varchar(45), {}, 2)"): (
        "REPLACE(RTRIM(REPLACE(REPLACE(RTRIM(REPLACE(CONVERT(varchar(45), [C], 2), '0', ' ')), ' ', '0'), '.', ' ')), "
        "' ', '.')"
    ),
    (SQLServer, "boolean", "bit", "CONVERT(varchar(45), {})"): "CONVERT(varchar(45), [C])",
    (SQLServer, "float", "real", "{}"): "LOWER(CONVERT(char(16), CONVERT(binary(8), CONVERT(float(53), [C])), 2))",
    (SQLServer, "date", "date", "{}"): "CONVERT(char(10), [C], 23)",
    (SQLServer, "timestamp_ntz", "datetime", "{}"): "REPLACE(CONVERT(varchar(23), [C], 121), ' ', 'T') + '000'",
    (SQLServer, "timestamp_ntz", "datetime2", "{}"): (
        "CASE WHEN CONVERT(char(27), CONVERT(datetime2(7), [C]), 121) LIKE '%0' THEN "
        "REPLACE(LEFT(CONVERT(char(27), CONVERT(datetime2(7), [C]), 121), 26), ' ', 'T') ELSE '!sqlserver' END"
    ),
    (SQLServer, "timestamp", "datetimeoffset", "{}"): (
        "CASE WHEN CONVERT(char(27), CONVERT(datetime2(7), SWITCHOFFSET([C], '+00:00')), 121) LIKE '%0' THEN "
        "REPLACE(LEFT(CONVERT(char(27), CONVERT(datetime2(7), SWITCHOFFSET([C], '+00:00')), 121), 26), ' ', 'T') "
        "ELSE '!sqlserver' END"
    ),
    (SQLServer, "text", "nvarchar", "{}"): (
        "LOWER(CONVERT(varchar(max), CONVERT(varbinary(max), CONVERT(varchar(max), CONVERT(nvarchar(max), [C]) "
        "COLLATE Latin1_General_100_BIN2_UTF8)), 2))"
    ),
    (SQLServer, "text_digest", "uniqueidentifier", "CONVERT(char(36), {})"): (
        "LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', CONVERT(varbinary(max), CONVERT(varchar(max), "
        "CONVERT(nvarchar(max), CONVERT(char(36), [C])) COLLATE Latin1_General_100_BIN2_UTF8))), 2))"
    ),
    (SQLServer, "bytes", "varbinary", "{}"): (
        "LOWER(CONVERT(varchar(max), CONVERT(varbinary(max), [C]), 2))"
    ),
    (SQLServer, "bytes_digest", "image", "{}"): (
        "LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', CONVERT(varbinary(max), [C])), 2))"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "of, text", TEXTS.items(), ids=lambda of: "-".join([of[0].name, *of[1:3]]) if len(of) == 4 else ""
)
def test_the_expressions_of_oracle_and_sql_server(of, text):
    kind, *field = of
    dialect = kind()
    field = Field("C", *field)
    assert dialect.value(field, dialect.quoted("C")) == text
    sqlglot.parse_one(f"SELECT {text}", dialect=DIALECTS[kind])


NOT_THERE = [
    (Oracle, "date", "DATE"),
    (Oracle, "text", "CLOB"),
    (Oracle, "bytes", "BLOB"),
    (Spanner, "timestamp_ntz", "TIMESTAMP"),
    (SpannerPostgreSQL, "timestamp_ntz", "TIMESTAMP"),
    (SpannerPostgreSQL, "float", "FLOAT64"),
    *((kind, of, "") for kind in (MySQL, Oracle, SQLServer) for of in ("array", "map")),
    *((kind, "map", "") for kind in (PostgreSQL, Spanner, SpannerPostgreSQL)),
]


@pytest.mark.parametrize("kind, of, source_type", NOT_THERE)
def test_what_a_dialect_cannot_write_is_unprovable(kind, of, source_type):
    with pytest.raises(Unprovable, match=r"^the column C is "):
        kind().field(Field("C", of, source_type))


def in_arrays(of: str, source_type: str) -> Field:
    return Field("c", "array", elements=(Field("c", of, source_type, "{}"),))


OF_ARRAYS = {
    (PostgreSQL, in_arrays("number", "integer")): (
        """CASE WHEN coalesce(array_ndims("c"), 1) = 1 THEN array_to_string(ARRAY(SELECT """
        """coalesce(length(t)::text || ':' || t, 'n') FROM (SELECT CASE WHEN e IS NULL THEN NULL ELSE e::text END AS """
        """t, n FROM unnest("c") WITH ORDINALITY AS a(e, n)) b ORDER BY n), '') ELSE '!postgresql' END"""
    ),
    (SpannerPostgreSQL, in_arrays("number", "INT64")): (
        """array_to_string(ARRAY(SELECT coalesce(length(t)::text || ':' || t, 'n') FROM (SELECT CASE WHEN e IS NULL """
        """THEN NULL ELSE e::text END AS t, n FROM unnest("c") WITH ORDINALITY AS a(e, n)) b ORDER BY n), '')"""
    ),
    (Spanner, in_arrays("number", "INT64")): (
        "ARRAY_TO_STRING(ARRAY(SELECT IFNULL(CONCAT(CAST(LENGTH(t) AS STRING), ':', t), 'n') FROM (SELECT "
        "IF(element IS NULL, NULL, CAST(element AS STRING)) AS t, n FROM UNNEST(`c`) AS element WITH OFFSET AS n) "
        "ORDER BY n), '')"
    ),
    (Spark, in_arrays("text", "string")): (
        "array_join(transform(transform(`c`, e -> CASE WHEN e IS NULL THEN NULL ELSE lower(hex(e)) END), "
        "t -> coalesce(concat(CAST(length(t) AS STRING), ':', t), 'n')), '')"
    ),
    (Spark, field_of("c", "map<text,number>", "map<string,int>")): (
        "array_join(array_sort(transform(map_entries(`c`), e -> array_join(transform(array("
        "CASE WHEN e.key IS NULL THEN NULL ELSE lower(hex(e.key)) END, "
        "CASE WHEN e.value IS NULL THEN NULL ELSE CAST(e.value AS STRING) END), "
        "t -> coalesce(concat(CAST(length(t) AS STRING), ':', t), 'n')), ''))), '')"
    ),
}


@pytest.mark.parametrize("of, text", OF_ARRAYS.items(), ids=lambda of: of[0].__name__ if len(of) == 2 else "")
def test_the_expressions_of_arrays_and_maps(of, text):
    kind, field = of
    dialect = kind()
    assert dialect.value(field, dialect.quoted("c")) == text
    sqlglot.parse_one(f"SELECT {text}", dialect=DIALECTS[kind])


KEY = Field("I\"]`'D", "number", "bigint", "{}")


def test_the_query_of_buckets():
    """To the letter, of a name with every quote."""
    number = Field("n", "number", "integer")
    sql = PostgreSQL().buckets('"a""b"."t"', [KEY], [KEY, number], 3, ["0a", "ff"])
    key = """(CASE WHEN "I""]`'D" IS NULL THEN '~' ELSE ('=' || "I""]`'D"::text) END)"""
    row = f"""({key[1:-1]} || CASE WHEN "n" IS NULL THEN '~' ELSE ('=' || "n"::text) END)"""
    assert sql == (
        "SELECT SUBSTR(key_hash, 1, 3) AS bucket, COUNT(*)::text AS row_count, "
        "SUM(('x' || SUBSTR(row_hash, 1, 15))::bit(60)::bigint)::text AS first_sum, "
        "SUM(('x' || SUBSTR(row_hash, 16, 15))::bit(60)::bigint)::text AS second_sum "
        f"FROM (SELECT encode(sha256(convert_to({key}, 'UTF8')), 'hex') AS key_hash, "
        f"encode(sha256(convert_to({row}, 'UTF8')), 'hex') AS row_hash "
        """FROM "a""b"."t" OFFSET 0) hashes WHERE SUBSTR(key_hash, 1, 2) IN ('0a', 'ff') """
        "GROUP BY SUBSTR(key_hash, 1, 3)"
    )


# Of a table t: what is counted, what is summed of each half, and how a hash and its parts are told.
OF_BUCKETS = {
    MySQL: (
        "CAST(COUNT(*) AS CHAR)",
        "CAST(SUM(CAST(CONV(SUBSTR(row_hash, {first}, 15), 16, 10) AS UNSIGNED)) AS CHAR)",
        "SUBSTR(key_hash, 1, 2)",
        "FROM (SELECT SHA2(CONCAT(",
        "FROM t) hashes",
    ),
    Oracle: (
        "TO_CHAR(COUNT(*), 'TM9')",
        "TO_CHAR(SUM(TO_NUMBER(SUBSTR(row_hash, {first}, 15), 'XXXXXXXXXXXXXXX')), 'TM9')",
        "SUBSTR(key_hash, 1, 2)",
        "FROM (SELECT /*+ NO_MERGE */ LOWER(RAWTOHEX(STANDARD_HASH((CASE",
        "FROM t) hashes",
    ),
    SQLServer: (
        "CONVERT(varchar(20), COUNT_BIG(*))",
        "CONVERT(varchar(40), SUM(CONVERT(decimal(38, 0), CONVERT(bigint, CONVERT(binary(8), '0' + "
        "SUBSTRING(row_hash, {first}, 15), 2)))))",
        "SUBSTRING(key_hash, 1, 2)",
        "FROM (SELECT LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', (CONVERT(varchar(max), '') + CASE",
        "FROM t) hashes",
    ),
    Spanner: (
        "CAST(COUNT(*) AS STRING)",
        "CAST(SUM(CAST(CAST(CONCAT('0x', SUBSTR(row_hash, {first}, 15)) AS INT64) AS NUMERIC)) AS STRING)",
        "SUBSTR(key_hash, 1, 2)",
        "FROM (SELECT TO_HEX(SHA256(CONCAT(",
        "FROM t) hashes",
    ),
    Spark: (
        "CAST(COUNT(*) AS STRING)",
        "CAST(SUM(CAST(conv(SUBSTR(row_hash, {first}, 15), 16, 10) AS DECIMAL(28,0))) AS STRING)",
        "SUBSTR(key_hash, 1, 2)",
        "FROM (SELECT sha2(CONCAT(",
        "FROM t) hashes",
    ),
}


@pytest.mark.parametrize("kind", OF_BUCKETS)
def test_sums_are_exact_and_hashes_are_computed_once_in_each_dialect(kind):
    count, total, bucket, begin, end = OF_BUCKETS[kind]
    sql = kind().buckets("t", [Field("id", "text")], [Field("id", "text"), Field("n", "text")], 2)
    sums = f"{total.format(first=1)} AS first_sum, {total.format(first=16)} AS second_sum"
    assert sql.startswith(f"SELECT {bucket} AS bucket, {count} AS row_count, {sums} {begin}")
    assert sql.endswith(f" AS row_hash {end} GROUP BY {bucket}")
    rows = kind().rows("t", [Field("id", "text")], [Field("id", "text")], ["0a"], ["x", "y"])
    assert rows.startswith("SELECT key_text, row_hash, c0, c1 FROM (SELECT ")
    assert rows.endswith(f", x AS c0, y AS c1 {end} WHERE {bucket} IN ('0a')")


def test_a_dialect_without_hexadecimal_numbers_reads_them_digit_by_digit():
    with sqlite3.connect(":memory:") as numbers:
        numbers.create_function("strpos", 2, lambda text, part: text.index(part) + 1)
        for digits in ("000000000000000", "000000000000001", "0123456789abcde", "fedcba987654321", "f" * 15):
            assert numbers.execute(f"SELECT {SpannerPostgreSQL().number(repr(digits))}").fetchone() == (
                int(digits, 16),
            )


def test_a_row_of_more_than_fifty_fields_is_the_hashes_of_its_groups():
    fields = [Field(f"c{place}", "number", "integer") for place in range(101)]
    dialect = PostgreSQL()
    one = [dialect.field(field) for field in fields]
    assert dialect.row(fields[:50]) == dialect.concatenated(one[:50])
    for number, groups in ((51, [one[:50], one[50:51]]), (101, [one[:50], one[50:100], one[100:]])):
        hashes = [dialect.hashed(dialect.concatenated(group)) for group in groups]
        assert dialect.row(fields[:number]) == dialect.concatenated(hashes)


def test_texts_beside_the_key_are_hashed_by_themselves_where_a_row_of_them_would_be_too_long():
    assert [kind.name for kind in DIALECTS if kind.digests] == ["oracle"]
    assert {kind.name: kind.session for kind in DIALECTS if kind.session} == {
        "mysql": ("SET SESSION time_zone = '+00:00'",),
        "oracle": ("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN'",),
        "spark": ("SET TIME ZONE 'UTC'",),
    }


OF_KINDS = {
    PostgreSQL: {"number": "numeric", "timestamp": "timestamp with time zone"},
    MySQL: {"number": "decimal(38,9)"},
    Oracle: {"number": "NUMBER", "text_digest": "CLOB", "timestamp_ntz": "DATE", "bytes_digest": "BLOB"},
    SQLServer: {"number": "decimal(38,9)", "timestamp": "datetimeoffset"},
    Spanner: {"number": "NUMERIC", "boolean": "BOOL"},
    SpannerPostgreSQL: {"number": "NUMERIC", "boolean": "BOOL"},
    Spark: {"number": "decimal(38,9)", "boolean": "boolean"},
}


@pytest.mark.parametrize("kind", DIALECTS)
def test_the_queries_parse(kind):
    dialect, absent = kind(), {of for other, of, _ in NOT_THERE if other is kind}
    kinds = [of for of in KINDS if of not in absent or (kind is Oracle and of in ("text", "bytes"))]
    fields = [
        Field(f"c{place}", of, OF_KINDS[kind].get(of, ""), elements=(Field("e", "text"),) * (2 if of == "map" else 1))
        for place, of in enumerate(kinds)
    ]
    key = [replace(KEY, name="id")] if kind is Spanner else [KEY]
    for sql in (
        dialect.buckets("t", key, fields, 3),
        dialect.buckets("t", key, fields * 8, 5, ["000", "abc"]),
        dialect.rows("t", key, fields, ["00000"]),
    ):
        parsed = sqlglot.parse_one(sql, dialect=DIALECTS[kind])
        assert {column.name for column in parsed.find_all(sqlglot.exp.Column)} >= {field.name for field in key + fields}


def test_a_row_of_oracle_fits_into_its_texts():
    """A field of Oracle has at most 65 characters beside the key, and hashes of groups are 64 each."""
    longest = max(
        len(vector["text"])
        for vector in VECTORS
        if vector["text"] and vector["kind"] not in ("text", "bytes") and "<" not in vector["kind"]
    )
    assert longest == 64
    assert GROUP * (1 + longest) <= 4000
    assert 1000 / GROUP * 64 <= 4000, "Oracle's tables have at most 1,000 columns"


@pytest.mark.parametrize("kind", DIALECTS)
def test_no_list_of_buckets_is_longer_than_oracle_takes(kind):
    numbers = [f"{number:03x}" for number in range(2500)]
    sql = kind().rows("t", [Field("id", "number")], [Field("id", "number")], numbers)
    lists = [found.split(", ") for found in re.findall(r" IN \(([^)]*)\)", sql)]
    assert [len(some) for some in lists] == [1000, 1000, 500]
    assert [number.strip("'") for some in lists for number in some] == numbers
    assert sql.count(" OR ") == 2


@pytest.mark.parametrize("kind", DIALECTS)
def test_what_is_no_number_of_a_bucket_does_not_reach_sql(kind):
    for numbers in (["ab", "x'"], ["AB"]):
        with pytest.raises(ValueError, match="hexadecimal digits in lower case"):
            kind().rows("t", [Field("id", "text")], [Field("id", "text")], numbers)
    with pytest.raises(ValueError):
        kind().rows("t", [Field("id", "text")], [Field("id", "text")], ["ab", "abc"])
    with pytest.raises(ValueError, match="A row without fields"):
        kind().row([])


def test_values_without_a_form_agree_in_no_two_databases():
    kinds = {kind().inexact() for kind in DIALECTS if kind is not SpannerPostgreSQL}
    assert len(kinds) == len(DIALECTS) - 1
    assert not any(text in (vector["text"] for vector in VECTORS) for text in kinds)


def test_the_specification_has_every_vector():
    tables = PAGE.read_text().partition(BEGIN)[2].splitlines()
    shown = [line for line in tables if line.startswith("| `")]
    assert sorted(shown) == sorted(lines_of_vectors()), (
        "run `python tests/canonical_form.py`, which writes the tables of docs/canonical_form.md"
    )
