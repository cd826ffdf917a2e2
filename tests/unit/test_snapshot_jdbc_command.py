"""What the command refuses before anything is asked, and how it cuts and reads."""

import io
import os
import random
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import snapshot
from py4j.protocol import Py4JJavaError
from pyspark.sql import types as T
from reconcile_jobs.exact_text import ExactText, reader_of
from reconcile_jobs.jdbc.connection import Connection, Source, connected, read_properties, secret_properties
from reconcile_jobs.jdbc.database import Column, Table
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.process.errors import DataError, Fault, UsageError
from reconcile_jobs.snapshots import snapshot_jdbc
from reconcile_jobs.snapshots.snapshot_jdbc import _NULLS as NULLS
from reconcile_jobs.snapshots.snapshot_jdbc import (
    Partitions,
    Target,
    named_columns,
    predicates,
    target_of,
    typed_rows,
    with_the_rest,
)
from reconcile_jobs.snapshots.snapshot_jdbc import _one_position as told_position
from reconcile_jobs.staging import TableName

CANARY = "canary-51c9"


@pytest.mark.parametrize(
    "url, name",
    [
        ("jdbc:postgresql://h/db?user=me&ssl=true", "PostgreSQL"),
        ("jdbc:oracle:thin:@//h:1521/shop", "Oracle"),
        ("jdbc:oracle:thin:/@wallet_alias", "Oracle"),
        ("jdbc:oracle:thin:scott@//h:1521/shop", "Oracle"),
        ("jdbc:mariadb://h:3306/shop", "MySQL"),
        ("jdbc:sqlserver://h;databaseName=shop;encrypt=true", "SQL Server"),
    ],
)
def test_urls(url, name):
    assert database_of(url).name == name


@pytest.mark.parametrize(
    "url",
    [
        f"jdbc:postgresql://h/db?user=me&password={CANARY}",
        f"jdbc:postgresql://h/db?sslpassword={CANARY}",
        f"jdbc:postgresql://me:{CANARY}@h/db",
        f"jdbc:oracle:thin:scott/{CANARY}@//h:1521/shop",
        f'jdbc:oracle:thin:"scott"/"{CANARY}"@shop',
        f"jdbc:mariadb://h/shop?PASSWORD={CANARY}",
        f"jdbc:sqlserver://h;user=sa;Pwd = {CANARY}",
        f"jdbc:sqlserver://h;keyStoreSecret={CANARY}",
        f"jdbc:db2://h/db:password={CANARY};",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(url):
    with pytest.raises(UsageError, match="holds a password") as refused:
        database_of(url)
    assert CANARY not in str(refused.value)


def test_other_urls_are_refused():
    with pytest.raises(UsageError, match="jdbc:oracle:"):
        database_of("jdbc:mysql://h/shop")


class Asked:
    """A JDBC connection, its statement and the result of it, of rows that are given."""

    def __init__(self, *rows):
        self._rows, self._row, self.said = list(rows), None, {}

    def getColumnCount(self):
        return len(self._rows[0])

    def setString(self, place, value):
        self.said[place] = value

    def next(self):
        self._row = self._rows.pop(0) if self._rows else None
        return self._row is not None

    def getString(self, place):
        return self._row[place - 1]

    def close(self):
        self.said["closed"] = True

    def __getattr__(self, name):
        return lambda *_: self


def test_each_row_of_the_catalog_has_all_of_its_columns():
    """JDBC counts columns and parameters from 1."""
    asked = Asked(("id", "bigint", None), ("name", "text", "the name"))
    found = Connection(Source(PostgreSQL(), "jdbc:postgresql://h/db", {}), asked).rows("select ?, ?", "shop", "orders")
    assert found == [("id", "bigint", None), ("name", "text", "the name")]
    assert asked.said == {1: "shop", 2: "orders", "closed": True}


def test_secrets_do_not_show():
    secrets = {"user": "me", "password": CANARY, "trustStorePassword": "another canary"}
    source = Source(PostgreSQL(), f"jdbc:postgresql://h/{CANARY}", secrets)
    assert CANARY not in repr(source)
    assert source.without_secrets(f"me: {CANARY} and another canary!") == "me: *** and ***!"
    # What is short would blot out half of any sentence; the name of the user helps, in whatever case it is written.
    short = Source(PostgreSQL(), "jdbc:postgresql://h/", {"ssl": "yes", "USER": "somebody", "sslmode": "full"})
    assert short.without_secrets("yes, somebody: full") == "yes, somebody: ***"
    # A secret may begin as another does, or hold it.
    nested = {"password": "lake", "sslpassword": "lake-2026-secret", "trustStorePassword": "my lake-2026-secret"}
    for properties in (nested, dict(reversed(nested.items()))):
        both = Source(PostgreSQL(), "jdbc:postgresql://h/", properties)
        assert both.without_secrets("lake, lake-2026-secret, my lake-2026-secret") == "***, ***, ***"


def properties_file(root: Path, text: str, mode: int = 0o600) -> Path:
    file = root / "connection"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_properties(tmp_path, monkeypatch):
    file = properties_file(
        tmp_path, "# a comment\n\nuser = me\npassword=a=b \\ c\noracle.net.wallet_location=/wallet\n", 0o400
    )
    expected = {"user": "me", "password": "a=b \\ c", "oracle.net.wallet_location": "/wallet"}
    assert read_properties(file) == expected
    monkeypatch.setenv("RECONCILE_JDBC_PASSWORD", CANARY)
    assert secret_properties(str(file)) == expected | {"password": CANARY}
    monkeypatch.setenv("RECONCILE_JDBC_USER", "somebody")
    assert secret_properties(None) == {"user": "somebody", "password": CANARY}


@pytest.mark.parametrize(
    "text, mode, complaint",
    [
        (f"password={CANARY}", 0o640, "mode 640: run chmod 600"),
        (f"password={CANARY}", 0o604, "mode 604: run chmod 600"),
        (CANARY, 0o600, "line 1: the line is not name=value"),
        (f"x=1\nURL={CANARY}", 0o600, "line 2: URL is not a property"),
        (f"sessionInitStatement={CANARY}", 0o600, "is not a property"),
        (f"allowMultiQueries={CANARY}", 0o600, "line 1: allowMultiQueries is not a property"),
        (f" = {CANARY}", 0o600, "line 1: the line is not name=value"),
        *(
            (f"\n{name}={CANARY}", 0o600, f"line 2: {name} is not a property of the connection that can be set here")
            for name in (
                "dbtable", "query", "driver", "fetchsize", "queryTimeout", "customSchema", "prepareQuery",
                "partitionColumn", "lowerBound", "upperBound", "numPartitions",
            )
        ),
    ],
)  # fmt: skip
def test_properties_that_are_refused(tmp_path, text, mode, complaint):
    with pytest.raises(UsageError, match=complaint) as refused:
        read_properties(properties_file(tmp_path, text, mode))
    assert CANARY not in str(refused.value)


def test_a_properties_file_of_another_user_is_refused(tmp_path, monkeypatch):
    file = properties_file(tmp_path, "user=me")
    monkeypatch.setattr("os.geteuid", lambda: file.stat().st_uid + 1)
    if file.stat().st_uid == 0:  # root's files are nobody else's to change
        assert read_properties(file) == {"user": "me"}
        os.chown(file, 4711, 4711)
    with pytest.raises(UsageError, match="belongs to another user, who may change it"):
        read_properties(file)


HARMLESS = [
    "jdbc:postgresql://h/db?user=me&ssl=true&sslmode=verify-full",
    "jdbc:mariadb://h:3306/shop?sslMode=trust&connectTimeout=5",
    "jdbc:sqlserver://h;databaseName=shop; encrypt = true;trustServerCertificate=true",
    "jdbc:oracle:thin:@tcps://h:1521/shop?wallet_location=/wallet&ssl_server_dn_match=true",
    "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=h)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=shop)))",
    "jdbc:postgresql://h/db?sslrootcert=/c&sslcert=/c&sslkey=/k&connectTimeout=5&socketTimeout=5&loginTimeout=5"
    "&tcpKeepAlive=true&ApplicationName=x&targetServerType=primary&currentSchema=shop&gssEncMode=disable",
    "jdbc:mariadb://address=(host=h)(port=3306)(type=primary)/shop?serverSslCert=/c&keyStore=/k&trustStore=/t"
    "&socketTimeout=5&tcpKeepAlive=true&useCompression=true&serverRsaPublicKeyFile=/k&allowPublicKeyRetrieval=true",
    "jdbc:sqlserver://h;instanceName=i;portNumber=1;hostNameInCertificate=h;trustStore=/t;loginTimeout=5;"
    "socketTimeout=5;queryTimeout=5;applicationName=x;applicationIntent=ReadOnly;multiSubnetFailover=true;"
    "authentication=ActiveDirectoryMSI;msiClientId=x;integratedSecurity=true;domain=d",
    "jdbc:oracle:thin:@tcps://h/shop?oracle.net.wallet_location=/w&oracle.net.ssl_server_dn_match=true"
    "&ssl_server_cert_dn=x&oracle.jdbc.ReadTimeout=5&oracle.net.CONNECT_TIMEOUT=5&transport_connect_timeout=5"
    "&retry_count=3&javax.net.ssl.trustStore=/t&javax.net.ssl.keyStore=/k&v$session.program=x",
]


@pytest.mark.parametrize("url", HARMLESS)
def test_properties_of_keys_timeouts_and_names_are_taken(url):
    check_properties(database_of(url), url, ["user", "password"], [])


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:postgresql://h/db?ssl=true&socketFactory=org.x.Y&socketFactoryArg=z", "socketFactory"),
        ("jdbc:postgresql://h/db?sslfactory=org.x.Y", "sslfactory"),
        ("jdbc:postgresql://h/db?socket%46actory=org.x.Y", "socket%46actory"),
        ("jdbc:postgresql://h/db?loggerFile=/etc/x", "loggerFile"),
        ("jdbc:postgresql://h/db?options=-c%20DateStyle=German", "options"),
        ("jdbc:mariadb://h/shop?allowLocalInfile=true", "allowLocalInfile"),
        ("jdbc:mariadb://h/shop?allowLocalInfile", "allowLocalInfile"),
        ("jdbc:mariadb://h/shop?credentialType=x", "credentialType"),
        ("jdbc:sqlserver://h;encrypt=true;socketFactoryClass=org.x.Y", "socketFactoryClass"),
        ("jdbc:sqlserver://h; trustManagerClass = org.x.Y", "trustManagerClass"),
        ("jdbc:oracle:thin:@//h/shop?oracle.jdbc.provider.x=y", "oracle.jdbc.provider.x"),
        # Whose answer, or content, may hold any property.
        ("jdbc:oracle:thin:@config-https://h/shop.json", "config-https"),
        ("jdbc:oracle:thin:@Config-file://tmp/shop.json", "Config-file"),
    ],
)
def test_a_property_that_is_not_known_to_be_harmless_is_refused_unless_it_is_allowed_by_name(url, name):
    with pytest.raises(UsageError, match=rf"--url has the property {re.escape(name)}, .*--allow-property {name}"):
        check_properties(database_of(url), url, [], [])
    check_properties(database_of(url), url, [], [name.upper(), "socketFactoryArg"])
    with pytest.raises(UsageError, match=rf"the file of --properties has the property {re.escape(name)}"):
        check_properties(database_of(url), "", [name], [])


def test_no_server_of_mysql_gets_a_file_of_this_machine_unless_it_is_allowed():
    assert MySQL.options["allowLocalInfile"] == "false"


def test_a_properties_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_properties(tmp_path / "absent")


class Spoken:
    def __init__(self):
        self.err = io.StringIO()

    def say(self, sentence):
        raise AssertionError(sentence)


GOOD = ["jdbc", "--url", "jdbc:postgresql://h/db", "--table", "a.b", "--into", "lake.t"]


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ([*GOOD, "--password", CANARY], "not given on the command line"),
        ([*GOOD, f"--user={CANARY}"], "not given on the command line"),
        ([*GOOD, f"--pass={CANARY}"], "not given on the command line"),
        ([*GOOD, "--passwd", CANARY], "unrecognized arguments: --passwd; see"),
        ([*GOOD, f"--pw={CANARY}"], "unrecognized arguments: --pw; see"),
        ([*GOOD, CANARY], "unrecognized arguments: values without a name"),
        ([*GOOD, "--partitions", "2"], "must be given together"),
        ([*GOOD, "--partition-column", "id"], "must be given together"),
        ([*GOOD, "--partition-column", "id", "--partitions", "0"], "from 1 to 1000"),
        ([*GOOD, "--partition-column", "id", "--partitions", "1001"], "from 1 to 1000"),
        # What is right is not refused, and the next mistake is.
        ([*GOOD[:-1], "t", "--partition-column", "id", "--partitions", "1"], "--into t is not the name"),
        ([*GOOD[:-1], "t", "--partition-column", "id", "--partitions", "1000"], "--into t is not the name"),
        ([*GOOD[:4], "orders", *GOOD[5:]], "--table orders is not the name"),
        ([*GOOD[:-1], "t"], "--into t is not the name"),
        (["jdbc", *GOOD[3:]], "--url"),
    ],
)
def test_usage(arguments, complaint):
    with pytest.raises(UsageError, match=complaint) as refused:
        snapshot.main(arguments, Spoken())
    assert CANARY not in str(refused.value)


def test_named_columns_of_arrays_and_of_moments_that_may_be_infinite():
    asked = (
        "a array<int>, b ARRAY < array<decimal(4, 2)> >, c timestamp infinity_is_null, infinity_is_null, "
        "d date zero_date_is_null, e string is_json"
    )
    assert named_columns(asked) == [
        ("a", "array<int>"),
        ("b", "ARRAY < array<decimal(4, 2)> >"),
        ("c", "timestamp infinity_is_null"),
        ("infinity_is_null", None),
        ("d", "date zero_date_is_null"),
        ("e", "string is_json"),
    ]


def test_named_columns():
    assert named_columns('id, total decimal(38, 10),"Odd, ""name""" string ,[x y],`z` timestamp_ntz') == [
        ("id", None),
        ("total", "decimal(38, 10)"),
        ('Odd, "name"', "string"),
        ("x y", None),
        ("z", "timestamp_ntz"),
    ]


def test_a_star_is_all_columns_some_with_types():
    known = ["id", "Born", "total"]
    assert with_the_rest(named_columns("*"), known) == [("id", None), ("Born", None), ("total", None)]
    asked = named_columns("*, born date zero_date_is_null, totl string")
    assert with_the_rest(asked, known) == [
        ("id", None), ("born", "date zero_date_is_null"), ("total", None), ("totl", "string"),
    ]  # fmt: skip
    twice = with_the_rest(named_columns("*, id string, id int"), known)
    assert twice[:2] == [("id", "string"), ("id", "int")], "which is refused, and not decided"
    assert with_the_rest(named_columns("total, *"), known) == [("total", None), ("*", None)]


@pytest.mark.parametrize("text", ["", ",", "a,", "a b c", "a decimal(38", '"a', "a,,b", "a struct<b:int>"])
def test_what_is_no_list_of_columns(text):
    with pytest.raises(UsageError, match="--columns"):
        named_columns(text)


READ_ELSEWHERE = "leave it out, by naming the others in --columns"
REFUSED_COLUMNS = {
    "the column of the ranges alone": (
        None,
        "note",
        "--partition-column note is text, and must be a number: name another column, or leave out --partition-column "
        "and --partitions",
    ),
    "no such column of the ranges": (
        "id",
        "nr",
        "shop.orders has no column nr: write --partition-column as in the database",
    ),
    "no such column": ("nr, id", "id", "shop.orders has no column nr: write --columns as in the database"),
    "one of several": ("ID", "id", "shop.orders has more than one column ID: write --columns as in the database"),
    "a column twice": (
        "id, iD bigint",
        "id",
        "--columns has the column iD more than once (upper and lower case count as the same): name it once",
    ),
    "a column and no way to read it": (
        "id, doc",
        "id",
        f"the column doc is xml, which the job cannot read exactly as text: {READ_ELSEWHERE}",
    ),
    "two complaints": (
        "doc",
        "note",
        f"the column doc is xml, which the job cannot read exactly as text: {READ_ELSEWHERE}; --partition-column note "
        "is text, and must be a number: name another column, or leave out --partition-column and --partitions",
    ),
    "bytes": ("photo string", "id", "the column photo is bytea, and can only become binary: declare binary"),
    "a list": (
        "days int",
        "id",
        "the column days is date[], and can become only an array or string: declare array<date>",
    ),
    "no list": ("id array<int>", "id", "the column id is bigint, and can become no array: declare bigint"),
    "no type": (
        "days array<int>>",
        "id",
        "array<int>>, the type of the column days, is not a type of Spark: declare array<date>",
    ),
    "no scalar type": (
        "id blob",
        "id",
        "blob, the type of the column id, is not a scalar type of Spark: declare bigint",
    ),
    "NULLs of another type": (
        "note string infinity_is_null",
        "id",
        "infinity_is_null applies only to timestamp and timestamp_ntz, and the column note is string: leave out "
        "infinity_is_null",
    ),
}


@pytest.mark.parametrize("case", REFUSED_COLUMNS)
def test_each_complaint_about_columns_has_its_own_advice(monkeypatch, case):
    # Spark's parser of types needs a session.
    types = {"bigint": T.LongType(), "string": T.StringType(), "int": T.IntegerType(), "date": T.DateType()}
    known = {name: reader_of(of) for name, of in types.items()}
    monkeypatch.setattr(snapshot_jdbc, "reader_of_type", known.get)
    columns = [
        *(PostgreSQL().column(name, of, of) for name, of in (("id", "bigint"), ("note", "text"), ("photo", "bytea"))),
        PostgreSQL().column("days", "date[]", "date[]"),
        Column("doc", "xml", None),
        *([PostgreSQL().column("Id", "bigint", "bigint")] if case == "one of several" else []),
    ]
    asked, partition_column, complaint = REFUSED_COLUMNS[case]
    if asked is None:
        columns = columns[:2]
    partitions = Partitions(partition_column, 2)
    with pytest.raises(UsageError) as told:
        snapshot_jdbc._targets(PostgreSQL(), Table("shop", "orders"), columns, asked, partitions)
    assert str(told.value) == f"{complaint}."


def test_of_names_that_differ_in_case_alone_one_is_to_be_chosen(monkeypatch):
    monkeypatch.setattr(snapshot_jdbc, "reader_of_type", lambda kind: reader_of(T.LongType()))
    columns = [PostgreSQL().column(name, "bigint", "bigint") for name in ("id", "ID")]
    with pytest.raises(UsageError) as told:
        snapshot_jdbc._targets(PostgreSQL(), Table("shop", "orders"), columns, None, None)
    assert str(told.value) == (
        "shop.orders has two columns id and ID, whose names differ in case only, and Spark ignores case: name the "
        "columns to read in --columns."
    )


def test_each_row_is_in_one_partition():
    chance = random.Random(7)
    for _ in range(300):
        least = chance.randint(-50, 50)
        greatest = least + chance.choice([0, 1, 2, 7, 10**6, 10**30])
        count = chance.randint(1, 12)
        found = predicates("p", least, greatest, count)
        assert 1 <= len(found) <= count
        values = [least, greatest, least - 1, greatest + 1, *(chance.randint(least, greatest) for _ in range(20))]
        for value in [None, *values, *(Decimal(value) + Decimal("0.5") for value in values[:9])]:
            assert sum(holds(condition, value) for condition in found) == 1, (value, found)
    assert len(predicates("p", 1, 100, 8)) == 8
    assert predicates("p", 1, 10, 3) == ["p < 4 OR p IS NULL", "p >= 4 AND p < 7", "p >= 7"]
    assert predicates("p", -9, 0, 2) == ["p < -4 OR p IS NULL", "p >= -4"]


def holds(condition: str, value) -> bool:
    """Decide a condition of SQL by hand: NULL compares to nothing."""

    def one(part: str) -> bool:
        left, operator, right = part.split(" ")
        if operator == "IS":
            return value is None
        if left == "1":
            return True
        if value is None:
            return False
        return value < int(right) if operator == "<" else value >= int(right)

    return any(all(one(part) for part in side.split(" AND ")) for side in condition.split(" OR "))


def target(name: str, text: ExactText | None, source_type: str = "numeric") -> Target:
    return Target(name, Column(name, source_type, "{}"), text)


def test_a_text_that_is_too_long_for_its_column_is_refused():
    from pyspark.sql.types import VarcharType

    targets = [target("a", reader_of(VarcharType(3)), "text")]
    (found,) = typed_rows([pa.record_batch([["äöü", "", None]], names=["c0"])], targets)
    assert found.to_pydict() == {"a": ["äöü", "", None]}
    with pytest.raises(DataError, match=r'^Column a, text: "äöüx" .* the type of the column is varchar\(3\)'):
        list(typed_rows([pa.record_batch([["abc", "äöüx"]], names=["c0"])], targets))


def test_typed_rows():
    from pyspark.sql.types import DecimalType, StringType

    targets = [target("a", reader_of(DecimalType(5, 2))), target("b", reader_of(StringType())), target("c", None)]
    batch = pa.record_batch([["1.5", None, "999.99"], ["x", "", None], [b"\x00", None, b""]], names=["c0", "c1", "c2"])
    (found,) = typed_rows([batch], targets)
    assert found.to_pydict() == {
        "a": [Decimal("1.50"), None, Decimal("999.99")],
        "b": ["x", "", None],
        "c": [b"\x00", None, b""],
    }
    with pytest.raises(DataError) as refused:
        list(typed_rows([pa.record_batch([[None, "1.5", "1.255"]], names=["c0"])], targets[:1]))
    assert str(refused.value) == (
        'Column a, numeric: "1.255" would be rounded to 2 decimal places, and the type of the column is decimal(5,2). '
        "Nothing was written; declare a type that holds the value in --columns, for example string."
    )


@pytest.mark.parametrize(
    "declared, texts",
    [
        ("infinity_is_null", ["infinity", "-infinity"]),
        ("zero_date_is_null", ["0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00.000"]),
    ],
)
def test_infinities_and_zero_dates_are_null_where_that_is_declared(declared, texts):
    from pyspark.sql.types import TimestampNTZType

    text = reader_of(TimestampNTZType())
    targets = [Target("a", Column("a", "timestamp", "{}"), text, nulls=NULLS[declared][0]), target("b", text)]
    told = [*texts, "2026-05-01 09:00:00"]
    (found,) = typed_rows([pa.record_batch([told], names=["c0"])], targets[:1])
    assert found.to_pydict() == {"a": [None] * len(texts) + [datetime(2026, 5, 1, 9)]}
    for one in texts:
        with pytest.raises(DataError, match=f'"{one}" .* write {declared} after the type'):
            list(typed_rows([pa.record_batch([[one]], names=["c0"])], targets[1:]))
    for other in ["2026-00-00", "0000-00-00 00:00:01", "infinity "]:
        with pytest.raises(DataError, match=f'"{other}" .* for example string[.]$'):
            list(typed_rows([pa.record_batch([[other]], names=["c0"])], targets[:1]))


def test_only_a_text_is_declared_as_json():
    text, number = Column("doc", "longtext", "{}"), Column("n", "bigint", "{}", spark_type="bigint")
    complaint = "is_json applies only to a text that becomes string or variant: leave out is_json"
    assert target_of("doc", text, "date is_json") == f"the column doc is longtext, and {complaint}"
    assert target_of("n", number, "string is_json") == f"the column n is bigint, and {complaint}"


def test_a_position_that_came_with_the_rows():
    class Told(set):
        def add(self, positions):
            self.update(positions)

    from pyspark.sql.types import StringType

    told = Told()
    names = ["reconcile_position", "reconcile_row", "c0"]
    empty = pa.record_batch([["bin.1:4"], pa.array([None], pa.int32()), pa.array([None], pa.string())], names=names)
    full = pa.record_batch([["bin.1:4"] * 2, pa.array([1, 1]), pa.array(["x", None])], names=names)
    found = list(typed_rows([empty, full], [target("a", reader_of(StringType()))], told))
    assert [batch.to_pydict() for batch in found] == [{"a": []}, {"a": ["x", None]}]
    assert told == {"bin.1:4"}
    of_an_empty_table = Told()
    (found,) = typed_rows([empty], [target("a", reader_of(StringType()))], of_an_empty_table)
    assert (found.num_rows, of_an_empty_table) == (0, {"bin.1:4"})


def test_rows_that_tell_more_than_one_position_are_no_snapshot():
    """An executor that died was replaced by another one, which read again."""
    into = TableName.parse("lake.orders")
    assert told_position({"bin.1:4"}, MySQL(), into) == "bin.1:4"
    with pytest.raises(
        Fault, match=r"MySQL was read at 2 positions, and lake.orders must have one: run the same command"
    ):
        told_position({"bin.1:4", "bin.1:5"}, MySQL(), into)
    with pytest.raises(
        UsageError, match=r"MySQL did not give the position in its log, so the snapshot lake.orders has no position"
    ):
        told_position({None}, MySQL(), into)


# --- a connection -----------------------------------------------------------------------------------------------------


class Java:
    """What a driver gives: connections, statements and results, which note what is done with them."""

    def __init__(self, rows=(), *, is_taken=True, fails=()):
        self.done: list[object] = []
        self.rows, self.is_taken, self.fails = list(rows), is_taken, fails
        self.at = -1

    def __getattr__(self, name):
        def call(*given):
            self.done.append((name, *given) if given else name)
            if name in self.fails:
                raise failed("lost")
            if name == "next":
                self.at += 1
                return self.at < len(self.rows)
            if name == "getColumnCount":
                return len(self.rows[0])
            if name == "getString":
                return self.rows[self.at][given[0] - 1]
            return self if name != "connect" or self.is_taken else None

        return call


def failed(message):
    problem = Py4JJavaError.__new__(Py4JJavaError)
    Exception.__init__(problem, message)
    problem.java_exception = None
    return problem


class Spark:
    """A session whose JVM has this driver, or none."""

    def __init__(self, driver):
        thread = SimpleNamespace(getContextClassLoader=lambda: SimpleNamespace(loadClass=self.load))
        properties = SimpleNamespace(setProperty=lambda name, value: self.properties.update({name: value}))
        java = SimpleNamespace(
            lang=SimpleNamespace(Thread=SimpleNamespace(currentThread=lambda: thread)),
            util=SimpleNamespace(Properties=lambda: properties),
        )
        self.driver, self.properties, self._jvm = driver, {}, SimpleNamespace(java=java)

    def load(self, name):
        assert name == PostgreSQL.driver
        if self.driver is None:
            raise failed("java.lang.ClassNotFoundException")
        return SimpleNamespace(newInstance=lambda: self.driver)


SOURCE = Source(PostgreSQL(), "jdbc:postgresql://h/shop", {"user": "me", "password": CANARY})


def test_a_connection_is_without_autocommit_and_undone_and_closed_in_the_end():
    driver = Java([("1", None), ("2", "b")])
    spark = Spark(driver)
    with connected(spark, SOURCE) as connection:
        connection.execute("SET x")
        assert connection.rows("SELECT ?, ?", "p", "q") == [("1", None), ("2", "b")]
    assert spark.properties == {**PostgreSQL.options, **SOURCE.properties}
    asked = [step for step in driver.done if step != "next" and step[0] != "getString"]
    assert asked == [
        ("connect", SOURCE.url, asked[0][2]), ("setAutoCommit", False),
        "createStatement", ("execute", "SET x"), "close",
        ("prepareStatement", "SELECT ?, ?"), ("setString", 1, "p"), ("setString", 2, "q"), "executeQuery",
        "getMetaData", "getColumnCount", "close", "rollback", "close",
    ]  # fmt: skip


def test_a_connection_that_cannot_be_undone_is_closed_all_the_same():
    driver = Java(fails=("rollback", "close"))
    with connected(Spark(driver), SOURCE):
        pass
    assert driver.done[-2:] == ["rollback", "close"]


@pytest.mark.parametrize("fails", ["execute", "executeQuery"])
def test_a_statement_that_fails_is_closed_and_explained(fails, monkeypatch):
    monkeypatch.setattr("reconcile_jobs.jdbc.connection.causes", lambda problem: iter([("a.b.Broken", "lost.\nat x")]))
    driver = Java(fails=(fails,))
    with pytest.raises(Fault) as told, connected(Spark(driver), SOURCE) as connection:
        connection.execute("x") if fails == "execute" else connection.rows("x")
    assert str(told.value) == "PostgreSQL failed with Broken: lost."
    assert driver.done[-3:] == ["close", "rollback", "close"]


def test_a_driver_that_is_missing_or_takes_no_such_url_is_a_sentence(monkeypatch):
    with (
        pytest.raises(UsageError, match=r"org\.postgresql\.Driver, is not on the class path"),
        connected(Spark(None), SOURCE),
    ):
        pass
    with (
        pytest.raises(UsageError, match="The JDBC driver of PostgreSQL does not accept --url"),
        connected(Spark(Java(is_taken=False)), SOURCE),
    ):
        pass
