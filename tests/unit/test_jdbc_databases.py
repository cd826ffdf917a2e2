"""What each database is asked, to the letter; the SQL of those that no test can run is parsed as theirs."""

import re
from dataclasses import replace

import pytest
import sqlglot
from reconcile_jobs.jdbc.database import Column, Cut, decimal_type
from reconcile_jobs.jdbc.forms import TEXT_FORMS, microseconds_of_span
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.oracle import Oracle
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.jdbc.sqlserver import SQLServer
from reconcile_jobs.process.errors import Fault, Undecided, UsageError

DIALECTS = {Oracle: "oracle", MySQL: "mysql", SQLServer: "tsql", PostgreSQL: "postgres"}


class Answers:
    """A connection that answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[str] = []

    def execute(self, sql):
        self.asked.append(sql)

    def rows(self, sql, *parameters):
        self.asked.append(sql)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def columns_of(database, catalog) -> list[Column]:
    return database.columns(Answers(catalog), database.table("SHOP.ORDERS"))


ORACLE = [
    # name, data_type, precision, scale -> expression, type
    ("ID", "NUMBER", "19", "0", """TO_CHAR("ID", 'TM9')""", "decimal(19,0)"),
    ("N", "NUMBER", None, None, """TO_CHAR("N", 'TM9')""", "string"),
    ("I", "NUMBER", None, "0", """TO_CHAR("I", 'TM9')""", "decimal(38,0)"),
    ("H", "NUMBER", "5", "-2", """TO_CHAR("H", 'TM9')""", "decimal(7,0)"),
    ("W", "NUMBER", "38", "-10", """TO_CHAR("W", 'TM9')""", "string"),
    ("S", "NUMBER", "2", "4", """TO_CHAR("S", 'TM9')""", "decimal(4,4)"),
    ("F", "FLOAT", "126", None, """TO_CHAR("F", 'TM9')""", "string"),
    ("BF", "BINARY_FLOAT", None, None, 'TO_CHAR("BF")', "float"),
    ("BD", "BINARY_DOUBLE", None, None, 'TO_CHAR("BD")', "double"),
    ("C", "CHAR", None, None, '"C"', "string"),
    ("NV", "NVARCHAR2", None, None, '"NV"', "string"),
    ("CL", "CLOB", None, None, '"CL"', "string"),
    ("R", "RAW", None, None, '"R"', "binary"),
    ("B", "BLOB", None, None, '"B"', "binary"),
    ("D", "DATE", None, None, """LTRIM(TO_CHAR("D", 'SYYYY-MM-DD HH24:MI:SS'))""", "timestamp_ntz"),
    ("T", "TIMESTAMP(6)", None, "6", """LTRIM(TO_CHAR("T", 'SYYYY-MM-DD HH24:MI:SS.FF9'))""", "timestamp_ntz"),
    (
        *("TZ", "TIMESTAMP(6) WITH TIME ZONE", None, "6"),
        """LTRIM(TO_CHAR("TZ" AT TIME ZONE 'UTC', 'SYYYY-MM-DD HH24:MI:SS.FF9"Z"'))""",
        "timestamp",
    ),
    (
        *("TL", "TIMESTAMP(6) WITH LOCAL TIME ZONE", None, "6"),
        """LTRIM(TO_CHAR("TL" AT TIME ZONE 'UTC', 'SYYYY-MM-DD HH24:MI:SS.FF9"Z"'))""",
        "timestamp",
    ),
    ("YM", "INTERVAL YEAR(2) TO MONTH", None, "0", 'TO_CHAR("YM")', "string"),
    ("DS", "INTERVAL DAY(2) TO SECOND(6)", None, "6", 'TO_CHAR("DS")', "string"),
    ("X", "XMLTYPE", None, None, 'XMLSERIALIZE(CONTENT "X" AS CLOB)', "string"),
    ("J", "JSON", None, None, 'JSON_SERIALIZE("J" RETURNING CLOB)', "string"),
    ("BO", "BOOLEAN", None, None, """CASE WHEN "BO" THEN 'true' WHEN NOT "BO" THEN 'false' END""", "boolean"),
    ("G", "SDO_GEOMETRY", None, None, None, "string"),
    ("L", "LONG", None, None, None, "string"),
]
MYSQL = [
    # name, data_type, column_type, precision, scale -> expression, type
    ("a", "tinyint", "tinyint(1)", "3", "0", "CAST(`a` AS CHAR)", "tinyint"),
    ("b", "tinyint", "tinyint(3) unsigned", "3", "0", "CAST(`b` AS CHAR)", "smallint"),
    ("c", "smallint", "smallint(5) unsigned", "5", "0", "CAST(`c` AS CHAR)", "int"),
    ("d", "mediumint", "mediumint(8) unsigned", "7", "0", "CAST(`d` AS CHAR)", "int"),
    ("e", "int", "int(10) unsigned", "10", "0", "CAST(`e` AS CHAR)", "bigint"),
    ("f", "bigint", "bigint(20)", "19", "0", "CAST(`f` AS CHAR)", "bigint"),
    ("g", "bigint", "bigint(20) unsigned", "20", "0", "CAST(`g` AS CHAR)", "decimal(20,0)"),
    ("h", "decimal", "decimal(38,10)", "38", "10", "CAST(`h` AS CHAR)", "decimal(38,10)"),
    ("i", "decimal", "decimal(65,30)", "65", "30", "CAST(`i` AS CHAR)", "string"),
    ("j", "float", "float", "12", None, "CAST(`j` + 0e0 AS CHAR)", "float"),
    ("k", "double", "double", "22", None, "CAST(`k` AS CHAR)", "double"),
    ("z", "int", "int(5) unsigned zerofill", "10", "0", "CAST(`z` + 0 AS CHAR)", "bigint"),
    ("l", "bit", "bit(1)", "1", None, "CAST(`l` + 0 AS CHAR)", "boolean"),
    ("m", "bit", "bit(64)", "64", None, "CAST(`m` + 0 AS CHAR)", "decimal(20,0)"),
    ("m", "bit", "bit(63)", "63", None, "CAST(`m` + 0 AS CHAR)", "bigint"),
    ("j", "json", "json", None, None, "CAST(`j` AS CHAR)", "string"),
    ("n", "datetime", "datetime(6)", None, None, "CAST(`n` AS CHAR)", "timestamp_ntz"),
    ("o", "timestamp", "timestamp(6)", None, None, "CAST(`o` AS CHAR)", "timestamp"),
    ("p", "blob", "blob", None, None, "`p`", "binary"),
    ("q", "enum", "enum('x','y')", None, None, "CAST(`q` AS CHAR)", "string"),
    ("r", "geometry", "geometry", None, None, None, "string"),
    ("t`e {}", "varchar", "varchar(20)", None, None, "`t``e {}`", "string"),
]
SQLSERVER = [
    # name, type, precision, scale -> expression, type
    ("a", "tinyint", "3", "0", "CONVERT(varchar(45), [a])", "smallint"),
    ("b", "numeric", "38", "10", "CONVERT(varchar(45), [b])", "decimal(38,10)"),
    ("c", "money", "19", "4", "CONVERT(varchar(45), [c], 2)", "decimal(19,4)"),
    ("d", "float", "53", "0", "CONVERT(varchar(45), [d], 3)", "double"),
    ("e", "datetime2", "27", "7", "CONVERT(varchar(27), [e], 121)", "timestamp_ntz"),
    ("f", "datetimeoffset", "34", "7", "CONVERT(varchar(34), SWITCHOFFSET([f], '+00:00'), 121)", "timestamp"),
    ("g", "uniqueidentifier", "0", "0", "CONVERT(char(36), [g])", "string"),
    ("h", "timestamp", "0", "0", "[h]", "binary"),
    ("i", "sql_variant", "0", "0", None, "string"),
    ("odd ]", "nvarchar", "0", "0", "[odd ]]]", "string"),
]


@pytest.mark.parametrize("kind, catalog", [(Oracle, ORACLE), (MySQL, MYSQL), (SQLServer, SQLSERVER)])
def test_how_columns_are_read(kind, catalog):
    database = kind()
    found = columns_of(database, [row[:-2] for row in catalog])
    for column, (*_, expression, spark_type) in zip(found, catalog, strict=True):
        read = column.expression and column.expression.replace("{}", database.quoted(column.name))
        assert (read, column.spark_type) == (expression, spark_type), column
        if read:
            # Two words that the parser does not know.
            known = read.replace("(CONTENT ", "(").replace(" RETURNING CLOB", "")
            sqlglot.parse_one(f"SELECT {known}", dialect=DIALECTS[kind])


def test_a_snapshot_of_oracle():
    database = Oracle()
    connection = Answers([("15869128507100", "2026-11-21 11:33:14.000001+00")])
    table = database.table('shop."Order Lines"')
    cut = database.fix(connection, table, "now")
    columns = columns_of(database, [ORACLE[0][:4], ORACLE[16][:4]])
    sql = database.select(table, columns, cut, columns[0])
    assert sql == (
        """SELECT TO_CHAR("ID", 'TM9') AS "c0", """
        """LTRIM(TO_CHAR("TZ" AT TIME ZONE 'UTC', 'SYYYY-MM-DD HH24:MI:SS.FF9"Z"')) AS "c1", "ID" AS "p" """
        """FROM "SHOP"."Order Lines" AS OF SCN 15869128507100"""
    )
    parsed(sql, "oracle")
    assert cut == Cut(
        "15869128507100",
        "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN' TIME_ZONE = 'UTC'",
        clause=" AS OF SCN 15869128507100",
        properties={"taken_at": "2026-11-21 11:33:14.000001+00"},
    )
    now = "TO_CHAR(SYSTIMESTAMP AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF6') || '+00'"
    assert connection.asked == [f"SELECT TO_CHAR(current_scn), {now} FROM v$database"]


def parsed(sql: str, dialect: str):
    # The parser does not know flashback queries of an SCN, but those of a time, in the same place.
    return sqlglot.parse_one(re.sub(r"AS OF SCN (\d+)", r"AS OF TIMESTAMP \1", sql), dialect=dialect)


def test_positions_of_oracle():
    database = Oracle()
    table = database.table("shop.orders")
    without = Answers(UsageError("ORA-00942"), [("7", "then")])
    assert database.fix(without, table, "now").position == "7"
    now = "TO_CHAR(SYSTIMESTAMP AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF6') || '+00'"
    assert without.asked[1] == f"SELECT TO_CHAR(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER), {now} FROM dual"
    earlier = Answers([("then",)])
    cut = database.fix(earlier, table, "15869128507100")
    assert (cut.clause, cut.properties) == (" AS OF SCN 15869128507100", {"taken_at": "then"})
    assert earlier.asked == [
        "SELECT TO_CHAR((SYSTIMESTAMP AT TIME ZONE 'UTC') - (CAST(SYSTIMESTAMP AS TIMESTAMP) - "
        "SCN_TO_TIMESTAMP(15869128507100)), 'YYYY-MM-DD HH24:MI:SS.FF6') || '+00' FROM dual"
    ]
    for sql in [*without.asked, *earlier.asked]:
        parsed(sql, "oracle")
    for wrong in ("", "yesterday", "1 OR 1=1", "-1", "1.5"):
        with pytest.raises(UsageError, match="is not a position of Oracle"):
            database.fix(Answers(), table, wrong)


def test_snapshots_of_mysql_and_mariadb():
    database = MySQL()
    table = database.table("shop.orders")
    columns = columns_of(database, [MYSQL[5][:5]])
    mariadb = database.fix(Answers([("10.11.19-MariaDB-log", "1", "then")]), table, "now")
    mysql = database.fix(Answers([("8.4.3", "1", "then")]), table, "now")
    assert mariadb.properties == mysql.properties == {"taken_at": "then"}
    assert mysql.session.split("; ") == [
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION time_zone = '+00:00', sql_mode = 'ANSI_QUOTES'",
        "FLUSH TABLES WITH READ LOCK",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        "SELECT CONCAT(JSON_UNQUOTE(JSON_EXTRACT(`LOCAL`, '$.binary_log_file')), ':', JSON_EXTRACT(`LOCAL`, "
        "'$.binary_log_position')) INTO @reconcile_position FROM performance_schema.log_status",
        "UNLOCK TABLES",
    ]
    assert mariadb.session.split("; ") == [*mysql.session.split("; ")[:2], mysql.session.split("; ")[3]]
    sql = database.select(table, columns, mysql)
    assert sql == (
        "SELECT * FROM (SELECT @reconcile_position AS `reconcile_position`) one LEFT JOIN "
        "(SELECT 1 AS `reconcile_row`, CAST(`f` AS CHAR) AS `c0` FROM `shop`.`orders`) many ON 1 = 1"
    )
    for cut in (mysql, mariadb):
        parsed(database.select(table, columns, cut), "mysql")
    with pytest.raises(UsageError, match="no binary log"):
        database.fix(Answers([("8.4.3", "0", "then")]), table, "now")
    with pytest.raises(UsageError, match="MyISAM"):
        database.prepare(Answers([("MyISAM",)]), table)


def test_a_snapshot_of_sql_server():
    database = SQLServer()
    table = database.table("[odd ]] schema].Orders")
    connection = Answers([("1", "1", "shop", "then")])
    cut = database.fix(connection, table, "now")
    parsed(connection.asked[0], "tsql")
    assert cut.properties == {"taken_at": "then"}
    assert cut.prefix == "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; "
    sql = database.select(table, columns_of(database, [SQLSERVER[3][:4]]), cut)
    assert sql == (
        "SELECT * FROM (SELECT CONVERT(varchar(22), "
        "sys.fn_cdc_get_max_lsn(), 1) AS [reconcile_position]) one LEFT JOIN (SELECT 1 AS [reconcile_row], "
        "CONVERT(varchar(45), [d], 3) AS [c0] FROM [odd ]] schema].[Orders]) many ON 1 = 1"
    )
    parsed(sql, "tsql")
    with pytest.raises(UsageError, match=re.escape("ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON")):
        database.fix(Answers([("0", "1", "shop", "then")]), table, "now")
    with pytest.raises(UsageError, match="sp_cdc_enable_db"):
        database.fix(Answers([("1", "0", "shop", "then")]), table, "now")


def test_the_catalogs_queries_parse():
    for kind, dialect in DIALECTS.items():
        database = kind()
        connection = Answers([], [("id",)], [("id", "the key"), (None, "all"), ("a", "")])
        table = database.table("a.b")
        database.columns(connection, table)
        assert database.key(connection, table) == ["id"]
        assert database.comments(connection, table) == {"id": "the key", None: "all"}
        for sql in connection.asked:
            sqlglot.parse_one(sql, dialect=dialect)


@pytest.mark.parametrize("kind", [MySQL, SQLServer, PostgreSQL])
def test_only_oracle_goes_back(kind):
    with pytest.raises(UsageError, match="use --at now"):
        kind().fix(Answers(), kind().table("a.b"), "15869128507100")


@pytest.mark.parametrize(
    "kind, text, schema, name",
    [
        (PostgreSQL, "Shop.Orders", "shop", "orders"),
        (PostgreSQL, '"Shop"."a.b ""c"""', "Shop", 'a.b "c"'),
        (Oracle, "shop.Orders", "SHOP", "ORDERS"),
        (Oracle, 'shop."Orders"', "SHOP", "Orders"),
        (MySQL, "Shop.`a``b`", "Shop", "a`b"),
        (SQLServer, "dbo.[a ]] b]", "dbo", "a ] b"),
    ],
)
def test_names_of_tables(kind, text, schema, name):
    table = kind().table(text)
    assert (table.schema, table.name) == (schema, name)
    assert kind().table(kind().relation(table)) == table


@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("text", ["orders", "a.b.c", "a b.c", "a.", ".b", "a.b; DROP TABLE c", ""])
def test_what_is_no_name_of_a_table(kind, text):
    with pytest.raises(UsageError, match=r"SCHEMA\.TABLE"):
        kind().table(text)


def test_decimals():
    assert [decimal_type(*digits) for digits in [(38, 38), (39, 0), (1, 0), (3, 5), (3, -5), (30, -9)]] == [
        "decimal(38,38)", "string", "decimal(1,0)", "decimal(5,5)", "decimal(8,0)", "string",
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["01555", "30052", "08180", "08181", "08186", "08187", "01466", "08161"])
def test_what_oracle_says_of_a_moment_that_it_does_not_know_no_retry_cures(code):
    assert type(Oracle().refusal(f"SQLState 72000: ORA-{code}: said of the table")) is Undecided


@pytest.mark.parametrize(
    "kind, told, meaning, says",
    [
        (
            Oracle,
            ("ORA-01555: snapshot too old: rollback segment number 9"),
            Undecided,
            ("does not have the table at this SCN"),
        ),
        (Oracle, "ORA-08180: no snapshot found based on specified time", Undecided, "UNDO_RETENTION"),
        (Oracle, "SQLState 72000: ORA-01017: invalid username/password", UsageError, "refused the login"),
        (Oracle, "SQLState 42000: ORA-00942: table or view does not exist", UsageError, "FLASHBACK"),
        (Oracle, "SQLState 08006: ORA-17002: I/O error", Fault, "connection to Oracle failed: ORA-17002"),
        (SQLServer, "SQLState S0001: Login failed for user 'x'. ClientConnectionId:1", UsageError, "RECONCILE_JDBC"),
        (SQLServer, "Snapshot isolation transaction failed in database 'x'", Fault, "run the same command again"),
        (MySQL, "(conn=3) Access denied for user 'a'@'b' (using password: YES)", UsageError, "refused the login"),
        (MySQL, "Access denied; you need (at least one of) the RELOAD privilege(s)", UsageError, "RELOAD"),
        (PostgreSQL, "SQLState 08001: Connection to h:1 refused", Fault, "connection to PostgreSQL failed"),
        (PostgreSQL, "org.postgresql.util.PSQLException: An I/O error occurred while sending", Fault, "was lost"),
        (PostgreSQL, "ERROR: canceling statement due to conflict with recovery", Fault, "run the same command"),
        (PostgreSQL, "ERROR: terminating connection due to administrator command", Fault, "stopped the read"),
        (PostgreSQL, "ERROR: canceling statement due to user request", Fault, "took too long"),
        (PostgreSQL, "ERROR: canceling statement due to statement timeout", Fault, "took too long"),
        (PostgreSQL, "ERROR: invalid snapshot identifier: \"1-2\"", Fault, "before all partitions had begun"),
        (PostgreSQL, "ERROR: could not import the requested snapshot", Fault, "before all partitions had begun"),
        (PostgreSQL, "ERROR: query would be affected by row-level security", UsageError, "BYPASSRLS"),
        (PostgreSQL, "ERROR: function pg_current_snapshot() does not exist", UsageError, "PostgreSQL 13 or later"),
        (PostgreSQL, "ERROR: permission denied for table t", UsageError, "SELECT on the table and USAGE on its schema"),
        (PostgreSQL, 'FATAL: database "d" does not exist', UsageError, "Check --url"),
        (PostgreSQL, "FATAL: no pg_hba.conf entry for host", UsageError, "Check --url"),
        (PostgreSQL, "FATAL: password authentication failed for user", UsageError, "refused the login"),
        (PostgreSQL, "SQLState 28000: no such role", UsageError, "refused the login"),
        (PostgreSQL, "SQLState 42501: permission was denied", UsageError, "right to select from the table"),
        *(
            (PostgreSQL, f"java.sql.SQLException: The connection {said}", Fault, "nothing was written: run the same")
            for said in ("Connection is closed", "connection has been reset", "connection refused", "timed out")
        ),
        *(
            (MySQL, said, Fault, "took too long")
            for said in (
                "Query execution was interrupted", "Query timed out", "maximum statement execution time exceeded",
            )
        ),
        *(
            (MySQL, said, Fault, "MySQL stopped the read")
            for said in (
                "Lock wait timeout exceeded", "Server shutdown in progress", "Socket error", "unexpected end of stream",
            )
        ),
        (MySQL, "SELECT command denied to user 'a'@'b'", UsageError, "Grant the job's user SELECT"),
        (MySQL, "Access denied for user 'a'@'b' to database 'c'", UsageError, "Grant the job's user SELECT"),
        (SQLServer, "The SELECT permission was denied on the object", UsageError, "schema cdc"),
        (SQLServer, "The TCP/IP connection to the host h, port 1433 has failed", Fault, "Check --url"),
        *(
            (Oracle, f"ORA-{code}: said of a login", UsageError, "refused the login")
            for code in ("28000", "28001", "01005", "01045")
        ),
        *((Oracle, f"ORA-{code}: said of a right", UsageError, "FLASHBACK") for code in ("01031", "41900")),
        *(
            (Oracle, f"ORA-{code}: said of a connection", Fault, "The connection to Oracle failed")
            for code in (
                "12514", "17008", "17410", "17800", "03113", "03114", "03135", "00028", "01033", "01034", "01089",
            )
        ),
    ],
)  # fmt: skip
def test_failures_are_sentences(kind, told, meaning, says):
    found = kind().refusal(f"x: y\n{told}\nat z")
    assert type(found) is meaning and says in str(found)
    assert "at z" not in str(found)
    assert kind().refusal("java.lang.OutOfMemoryError: Java heap space") is None


def test_names_are_quoted_where_they_stand():
    odd = Column('a"{}', "text", "{}::text")
    database = PostgreSQL()
    assert (
        database.select(database.table('x."{}"'), [odd], Cut("1", None)) == 'SELECT "a""{}"::text AS "c0" FROM "x"."{}"'
    )
    assert replace(odd, name="b").name == "b"


@pytest.mark.parametrize(("kind", "is_locked"), [("r", True), ("p", True), ("v", True), ("m", False), ("f", False)])
def test_postgresql_keeps_others_from_altering_what_can_be_locked(kind, is_locked):
    """Tables, partitioned ones and views; not materialized views and foreign tables."""
    database, connection = PostgreSQL(), Answers([(1, kind)])
    database.prepare(connection, database.table("shop.orders"))
    locked = [sql for sql in connection.asked if sql.startswith("LOCK TABLE")]
    assert locked == ['LOCK TABLE "shop"."orders" IN ACCESS SHARE MODE'] * is_locked


class Asked(Answers):
    """One that knows nothing, and of what the catalog is asked remembers the values."""

    def rows(self, sql, *parameters):
        self.asked.append(("catalog", *parameters))
        return []


@pytest.mark.parametrize(
    "kind, asked",
    [
        (Oracle, ["ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN' TIME_ZONE = 'UTC'"]),
        (MySQL, ["SET SESSION time_zone = '+00:00'", ("catalog", "shop", "orders")]),
        (
            PostgreSQL,
            [("catalog", "shop", "orders"), "COMMIT", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"],
        ),
        (SQLServer, []),
    ],
)
def test_what_each_database_is_asked_before_a_snapshot(kind, asked):
    connection, database = Asked(), kind()
    database.prepare(connection, database.table("shop.orders"))
    assert connection.asked[: len(asked)] == asked
    for said in connection.asked[len(asked) :]:
        assert kind is PostgreSQL
        for setting in ("time zone", "datestyle", "extra_float_digits", "row_security"):
            assert setting in said.lower()


def test_tables_of_innodb_and_views_have_snapshots_in_mysql():
    for engine in ("InnoDB", None):
        MySQL().prepare(Answers([(engine,)]), MySQL().table("shop.orders"))


def test_where_the_place_in_the_log_stands():
    database = MySQL()
    table, columns = database.table("shop.orders"), columns_of(database, [MYSQL[5][:5]])
    mariadb = database.fix(Answers([("10.11.19-MariaDB", "1", "then")]), table, "now")
    assert "SELECT @reconcile_position AS" not in database.select(table, columns, mariadb)
    assert "information_schema" in database.select(table, columns, mariadb).lower()


def test_columns_of_which_the_catalog_does_not_know_the_digits():
    mysql = [MySQL().column("a", "decimal", "decimal", *digits) for digits in [(None, None), ("5", None)]]
    assert [column.spark_type for column in mysql] == ["decimal(10,0)", "decimal(5,0)"]
    (found,) = columns_of(SQLServer(), [("b", "numeric", None, None)])
    assert found.spark_type == "decimal(18,0)"


POSTGRESQL = [
    # name, declared, what it is made of -> expression, type, whether partitions can be made of it
    ("a", "numeric(38,10)", "numeric(38,10)", '"a"::text', "decimal(38,10)", True),
    ("b", "numeric", "numeric", '"b"::text', "string", True),
    ("c", "bytea", "bytea", '"c"', "binary", False),
    ("d", "character(3)", "character(3)", 'textin(bpcharout("d"))', "string", False),
    ("e", "money", "money", '"e"::numeric::text', "string", False),
    ("f", "oid", "oid", '"f"::text', "bigint", True),
    ("g", "color", "text", '"g"::text', "string", False),
    ("h", "timestamp(3) with time zone", "timestamp(3) with time zone", '"h"::text', "timestamp", False),
    ("i", "inet", "inet", 'textin(inet_out("i"))', "string", False),
    ("j", "integer[]", "integer[]", 'array_to_json("j"::text[])::text', "array<int>", False),
    ("k", "numeric(4,2)[]", "numeric(4,2)[]", 'array_to_json("k"::text[])::text', "array<decimal(4,2)>", False),
    ("l", "money[]", "money[]", 'array_to_json("l"::numeric[]::text[])::text', "array<string>", False),
    ("m", "character(3)[]", "character(3)[]", 'array_to_json("m")::text', "array<string>", False),
    ("n", "bytea[]", "bytea[]", 'array_to_json("n"::text[])::text', "array<binary>", False),
]


@pytest.mark.parametrize("name, declared, made_of, expression, spark_type, is_number", POSTGRESQL)
def test_how_columns_of_postgresql_are_read(name, declared, made_of, expression, spark_type, is_number):
    database = PostgreSQL()
    (column,) = database.columns(Answers([(name, declared, made_of)]), database.table("shop.orders"))
    read = (column.expression or "").replace("{}", database.quoted(column.name))
    assert (column.name, column.source_type, read, column.spark_type, column.is_number) == (
        name, declared, expression, spark_type, is_number,
    )  # fmt: skip


# A database's type, its text, and that of a model: macros/values/datastream_texts.sql.
FORMS = [
    (Oracle, ("INTERVAL YEAR(2) TO MONTH", None, "0"), "+01-02", "P14MT0H0.000000S"),
    (Oracle, ("INTERVAL YEAR(2) TO MONTH", None, "0"), "-01-02", "P-14MT0H0.000000S"),
    (Oracle, ("INTERVAL DAY(2) TO SECOND(6)", None, "6"), "+03 04:05:06.789000", "P0MT76H306.789000S"),
    (Oracle, ("INTERVAL DAY(2) TO SECOND(6)", None, "6"), "-00 00:00:00.500000000", "P0MT0H-0.500000S"),
    (Oracle, ("INTERVAL DAY(2) TO SECOND(6)", None, "6"), "-01 00:00:00.000000", "P0MT-24H0.000000S"),
    (Oracle, ("INTERVAL DAY(2) TO SECOND(6)", None, "6"), "+03 04:05:06.0000001", "+03 04:05:06.0000001"),
    (
        Oracle,
        ("TIMESTAMP(6) WITH TIME ZONE", None, "6"),
        "2026-11-21 12:00:00.000001000Z",
        "2026-11-21T12:00:00.000001Z",
    ),
    (Oracle, ("TIMESTAMP(9)", None, "9"), "2026-11-21 12:00:00.000000001", "2026-11-21T12:00:00.000000001Z"),
    (Oracle, ("DATE", None, None), "-0044-03-15 00:00:00", "-0043-03-15T00:00:00.000000Z"),
    (SQLServer, ("datetimeoffset", "34", "7"), "2026-11-21 12:00:00.1000000 +00:00", "2026-11-21T12:00:00.100000Z"),
    (SQLServer, ("time", "16", "7"), "08:15:30.0000000", "08:15:30.000000"),
    (SQLServer, ("time", "16", "7"), "08:15:30.0000001", "08:15:30.0000001"),
    (MySQL, ("datetime", "datetime", None, None), "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    (MySQL, ("date", "date", None, None), "2024-00-10", "2024-00-10"),
    (MySQL, ("time", "time", None, None), "838:59:59", "838:59:59.000000"),
    (PostgreSQL, ("date", "date"), "10000-01-01", "+10000-01-01"),
    (PostgreSQL, ("date", "date"), "0001-01-01 BC", "0000-01-01"),
    (PostgreSQL, ("timestamp with time zone",) * 2, "-infinity", "-infinity"),
    (PostgreSQL, ("timestamp with time zone",) * 2, "10000-01-01 00:00:00+00", "+10000-01-01T00:00:00.000000Z"),
    (PostgreSQL, ("time with time zone",) * 2, "24:00:00+05:30:15", "24:00:00.000000+05:30:15"),
    (PostgreSQL, ("interval", "interval"), "P1Y2M-3DT-4H-5M-6.5S", "P14MT-76H-306.500000S"),
    (PostgreSQL, ("interval year to month", "interval year to month"), "P1Y2M", "P14MT0H0.000000S"),
    (PostgreSQL, ("interval day to second(3)[]",) * 2, "P1W", "P0MT168H0.000000S"),
    (PostgreSQL, ("interval", "interval"), "PT-0.000001S", "P0MT0H-0.000001S"),
    (PostgreSQL, ("interval", "interval"), "infinity", "infinity"),
]


@pytest.mark.parametrize("kind, catalog, text, expected", FORMS)
def test_the_text_of_a_value_is_the_one_that_a_model_has(kind, catalog, text, expected):
    column = kind().column("c", *catalog)
    assert TEXT_FORMS[column.form](text) == expected


def test_a_time_of_mysql_is_also_a_number_of_microseconds():
    told = ["-838:59:59", "00:00:00.000001", "-00:00:00.5", "none"]
    assert [microseconds_of_span(text) for text in told] == ["-3020399000000", "1", "-500000", "none"]


def test_which_columns_of_oracle_are_numbers():
    found = columns_of(Oracle(), [row[:4] for row in ORACLE])
    assert {column.name for column in found if column.is_number} == {"ID", "N", "I", "H", "W", "S", "F"}
