"""Exports become tables with exactly their rows; what is not exact is named, and changes nothing."""

import bz2
import gzip
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from file_formats import file_format
from reconcile_jobs.csv_records import Dialect
from reconcile_jobs.process import session
from reconcile_jobs.process.errors import DataError, UsageError
from reconcile_jobs.snapshots import snapshot_csv
from reconcile_jobs.staging import TableName

ROOT = Path(__file__).resolve().parents[2]
TRUTH = ROOT / "tests" / "data" / "capture" / "truth"
SCHEMAS = {
    "customers": "id bigint, name string, email string, balance decimal(18,4), tier string, vip boolean, "
    "created_at timestamp, note string",
    "orders": "id bigint, customer_id bigint, status string, total decimal(38,10), placed_at timestamp, due_on date, "
    "updated_at timestamp, ratio double",
    "order_lines": "order_id bigint, line_no int, sku string, quantity int, price decimal(12,2), payload binary",
}


def plainly(text: str) -> list[list[str | None]]:
    """Parse CSV one character at a time: None is what stands outside of quotes as \\N."""
    rows, row, value, quoted, inside, at = [], [], "", False, False, 0
    while at < len(text):
        character = text[at]
        at += 1
        if inside:
            if character != '"':
                value += character
            elif text[at : at + 1] == '"':
                value += '"'
                at += 1
            else:
                inside = False
        elif character == '"':
            quoted = inside = True
        elif character in ",\n":
            row.append(None if value == "\\N" and not quoted else value)
            value, quoted = "", False
            if character == "\n":
                rows.append(row)
                row = []
        else:
            value += character
    assert not (row or value or inside)
    return rows


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text.removesuffix("+00")).replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


PLAIN_TYPES = {
    "bigint": int,
    "int": int,
    "string": str,
    "boolean": {"t": True, "f": False}.__getitem__,
    "double": float,
    "date": date.fromisoformat,
    "timestamp": micros,
    "binary": lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def expected(table: str) -> list[tuple]:
    header, *rows = plainly((TRUTH / f"{table}.csv").read_bytes().decode())
    declared = [column.split(" ") for column in SCHEMAS[table].split(", ")]
    assert header == [name for name, _ in declared]
    types = [PLAIN_TYPES.get(data_type, Decimal) for _, data_type in declared]
    return sorted(
        (tuple(None if text is None else read(text) for read, text in zip(types, row, strict=True)) for row in rows),
        key=repr,
    )


def rows_of(spark, table: str) -> list[tuple]:
    """Return the rows, timestamps as microseconds: PySpark's own are in the zone of the machine, and do not say so."""
    frame = spark.table(table)
    # Without dots and such in the names, which selectExpr would parse.
    frame = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    frame = frame.selectExpr(*(f"unix_micros({name})" if kind == "timestamp" else name for name, kind in frame.dtypes))
    return sorted(
        (tuple(bytes(value) if isinstance(value, bytearray) else value for value in row) for row in frame.collect()),
        key=repr,
    )


def load_csv(spark, path: str, into: str, *arguments) -> int:
    spark.sparkContext.setLogLevel("OFF")  # as in the job, which says itself what a failure means
    return snapshot_csv.load_csv(spark, path, TableName.parse(into), *arguments)


@pytest.fixture
def load(spark, tmp_path):
    def load(content: str | bytes, schema: str, into: str = "snapshots.t", header: bool = True, **marks: str) -> int:
        file = tmp_path / "an export.csv"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        columns = snapshot_csv.columns_of(schema)
        return load_csv(spark, str(file), into, columns, Dialect(**marks), header)

    return load


@pytest.mark.parametrize("table", SCHEMAS)
def test_the_capture(spark, table):
    columns = snapshot_csv.columns_of(SCHEMAS[table])
    path, into = str(TRUTH / f"{table}.csv"), f"snapshots.{table}"
    rows = load_csv(spark, path, into, columns, Dialect(null="\\N"))
    truth = expected(table)
    assert rows == len(truth)
    assert rows_of(spark, into) == truth
    declared = [column.split(" ")[1] for column in SCHEMAS[table].split(", ")]
    assert [kind for _, kind in spark.table(into).dtypes] == declared


def test_every_type(spark, load):
    schema = (
        "a boolean, b tinyint, c smallint, d int, e bigint, f decimal(38,10), g float, h double, i string, j char(2), "
        "k varchar(3), l binary, m date, n timestamp, o timestamp_ntz"
    )
    values = [
        "t", "-128", "32767", "-2147483648", "9223372036854775807", "-9999999999999999999999999999.9999999999",
        "0.1", "-Infinity", "\\N", "a", "αβγ", "\\x00ff", "0001-01-01", "9999-12-31 23:59:59.999999Z",
        "1969-12-31 23:59:59.999999",
    ]  # fmt: skip
    header = ",".join("abcdefghijklmno")
    null = ",".join(["\\N"] * 15)
    quoted = ",".join(f'"{value}"' for value in values)
    assert load(f"{header}\n{quoted}\n{null}\n", schema, null="\\N") == 2
    nulls, full = rows_of(spark, "snapshots.t")
    assert nulls == (None,) * 15
    assert full == (
        True, -128, 32767, -(1 << 31), (1 << 63) - 1, Decimal("-9999999999999999999999999999.9999999999"),
        0.10000000149011612, float("-inf"), "\\N", "a", "αβγ", b"\x00\xff", date(1, 1, 1),
        micros("9999-12-31 23:59:59.999999"), datetime(1969, 12, 31, 23, 59, 59, 999999),
    )  # fmt: skip
    kept = {"char(2)": "string", "varchar(3)": "string"}
    if file_format() == "iceberg":
        kept |= {"tinyint": "int", "smallint": "int"}
    declared = [column.split(" ")[1] for column in schema.split(", ")]
    assert [kind for _, kind in spark.table("snapshots.t").dtypes] == [kept.get(kind, kind) for kind in declared]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("2,1.123456789012", 'column v, decimal(38,10): "1.123456789012" would be rounded to 10 decimal places'),
        (",2", "column id is NULL, but declared not null"),
        ('3,"4"5', "value 2 goes on after its closing quote"),
    ],
)
def test_what_is_not_exact_changes_nothing(spark, load, tmp_path, capfd, row, why):
    schema = "id bigint not null, v decimal(38,10)"
    load("id,v\n7,7.1\n", schema, "snapshots.kept")
    capfd.readouterr()
    with pytest.raises(DataError) as refusal:
        load(f"id,v\n1,1.1\n{row}\n", schema, "snapshots.kept")
    assert str(refusal.value) == f"{tmp_path}/an export.csv, line 3: {why}. Nothing was written."
    assert rows_of(spark, "snapshots.kept") == [(7, Decimal("7.1"))]
    assert capfd.readouterr() == ("", "")


def test_a_failed_first_load_leaves_no_table_and_can_be_repeated(spark, load):
    with pytest.raises(DataError):
        load("id\nx\n", "id int", "snapshots.fresh")
    assert not spark.catalog.tableExists("snapshots.fresh")
    assert load("id\n1\n", "id int", "snapshots.fresh") == 1


def test_each_load_replaces_rows_and_columns(spark, load):
    load("id,a b\n1,x\n", "id int, `a b` string", "snapshots.replaced")
    assert load("v\n1.5\n2.5\n", "v decimal(2,1)", "snapshots.replaced") == 2
    assert rows_of(spark, "snapshots.replaced") == [(Decimal("1.5"),), (Decimal("2.5"),)]
    properties = {row["key"]: row["value"] for row in spark.sql("SHOW TBLPROPERTIES snapshots.replaced").collect()}
    assert properties["reconcile.snapshot"] == "csv"
    assert properties["reconcile.snapshot.path"].endswith("an export.csv")
    assert "source" in spark.catalog.getTable("snapshots.replaced").description
    # Delta takes this type into a table that is replaced only if it is told so.
    load("at\n2026-11-25 08:00:00\n", "at timestamp_ntz", "snapshots.replaced")
    assert rows_of(spark, "snapshots.replaced") == [(datetime(2026, 11, 25, 8),)]


def test_what_is_no_snapshot_is_never_replaced(spark, load):
    spark.sql("CREATE SCHEMA IF NOT EXISTS snapshots")
    # As a base table of the package's own, which has properties, too.
    declared = "TBLPROPERTIES ('reconcile.declaration' = 'x')"
    spark.sql(f"CREATE OR REPLACE TABLE snapshots.base USING {file_format()} {declared} AS SELECT 1 AS id")
    spark.sql("CREATE OR REPLACE VIEW snapshots.live AS SELECT 1 AS id")
    for name in ("snapshots.base", "snapshots.live"):
        with pytest.raises(UsageError, match=f"{name} already exists and was not created by snapshot.py"):
            load("id\n2\n", "id int", name)
        assert rows_of(spark, name) == [(1,)]


def test_unusual_names(spark, load):
    names = ["a`b", 'a"b', "a b", "a.b", "{{ a }}", "a;b", "ä", "--"]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    schema = ", ".join("`" + name.replace("`", "``") + "` int" for name in names)
    load(f"{header}\n1,2,3,4,5,6,7,8\n", schema, "snapshots.`select`")
    assert spark.table("snapshots.`select`").columns == names
    assert rows_of(spark, "snapshots.`select`") == [(1, 2, 3, 4, 5, 6, 7, 8)]


def test_without_a_header(spark, load):
    load("1,2\n3,4\n", "a int, b int", header=False)
    assert rows_of(spark, "snapshots.t") == [(1, 2), (3, 4)]
    assert load("", "a int, b int", header=False) == 0
    assert load("a,b\n", "a int, b int") == 0


def test_an_empty_file_is_no_table_without_rows(load):
    with pytest.raises(DataError, match=r"an export\.csv is empty: it has not even a header"):
        load("", "a int, b int")


def test_directories_patterns_and_compressed_files(spark, tmp_path):
    (tmp_path / "day=1" / "deep").mkdir(parents=True)
    (tmp_path / "day=1" / "a b.csv").write_bytes(b"id;v\n1;one\n2;'two\n")
    (tmp_path / "day=1" / "deep" / "c.csv.gz").write_bytes(gzip.compress(b'V;id\r\n"th\r\nree";3\r\n'))
    (tmp_path / "d.csv.bz2").write_bytes(bz2.compress(b"\xef\xbb\xbfid;v\n4;"))
    (tmp_path / "_SUCCESS").write_bytes(b"")
    columns = snapshot_csv.columns_of("id int, v string")
    assert load_csv(spark, str(tmp_path), "snapshots.many", columns, Dialect(";")) == 4
    assert rows_of(spark, "snapshots.many") == [(1, "one"), (2, "'two"), (3, "th\r\nree"), (4, None)]
    assert load_csv(spark, f"{tmp_path}/*/*.csv", "snapshots.many", columns, Dialect(";")) == 2


def test_large_files_are_not_split(spark, tmp_path):
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "10000")
    try:
        text = "id,v\n" + "".join(f'{number},"a\n""{number}""\nb"\n' for number in range(25_000))
        for name in "12":
            (tmp_path / f"{name}.csv").write_text(text)
        columns = snapshot_csv.columns_of("id int, v string")
        assert load_csv(spark, str(tmp_path), "snapshots.large", columns, Dialect()) == 50_000
        assert spark.conf.get("spark.sql.files.maxPartitionBytes") == "10000"
        wrong = spark.table("snapshots.large").where("v <> concat('a\\n\"', id, '\"\\nb')")
        assert wrong.count() == 0
        (tmp_path / "2.csv").write_text(text + "x,y\n")
        with pytest.raises(DataError, match=r"2\.csv, line 75002: column id, int"):
            load_csv(spark, str(tmp_path), "snapshots.large", columns, Dialect())
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_a_file_of_many_gigabytes_is_read_by_one_task(spark, tmp_path):
    """Asked of Spark's planner alone: the file has a size and no content."""
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(100 << 30)
    with session.settings(spark, snapshot_csv._WHOLE_FILES):
        assert spark.read.text(str(tmp_path)).rdd.getNumPartitions() == 1


def test_old_times(spark, load):
    load("a,b,c\n0001-01-01,0001-01-01 00:00:00,1582-10-10 12:00:00", "a date, b timestamp, c timestamp_ntz")
    assert rows_of(spark, "snapshots.t") == [(date(1, 1, 1), micros("0001-01-01 00:00:00"), datetime(1582, 10, 10, 12))]


def test_torn_files(spark, tmp_path):
    packed = gzip.compress(b"id\n" + b"".join(b"%d\n" % number for number in range(100_000)))
    (tmp_path / "torn.csv.gz").write_bytes(packed[: len(packed) // 2])
    columns = snapshot_csv.columns_of("id int")
    with (
        session.settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(DataError, match=r"torn\.csv\.gz cannot be read to its end"),
    ):
        load_csv(spark, str(tmp_path), "snapshots.torn", columns, Dialect())
    assert not spark.catalog.tableExists("snapshots.torn")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id bigint, v", "cannot be read: Syntax error"),
        ("id foo", 'Unsupported data type "FOO"'),
        ("id int, ID int", "column ID is declared twice"),
        ("id array<int>, v variant", "column id has type array<int>, which CSV cannot carry; column v has type"),
        ("", "it declares no column"),
    ],
)
def test_schemas_that_cannot_be(spark, schema, why):
    with pytest.raises(UsageError) as refusal:
        snapshot_csv.columns_of(schema)
    assert why in str(refusal.value)


def test_paths_and_names_that_cannot_be(spark, load, tmp_path):
    columns = snapshot_csv.columns_of("id int")
    with pytest.raises(UsageError, match="There is nothing at"):
        load_csv(spark, f"{tmp_path}/nowhere/*.csv", "snapshots.t", columns, Dialect())
    (tmp_path / "bare").mkdir()
    with pytest.raises(UsageError, match="There is no file in"):
        load_csv(spark, f"{tmp_path}/bare", "snapshots.t", columns, Dialect())
    for name in ("", "a..b", "a b", "a.b; drop table t", "`a", "a.", "a.`b`c"):
        with pytest.raises(UsageError, match="is not the name of a table"):
            load("id\n1\n", "id int", name)
    with pytest.raises(UsageError, match="This Spark session has no catalog a: set spark"):
        load("id\n1\n", "id int", "a.b.c")
    for name in ("snapshots.`a``b`", "snapshots.`a b`", "`a b`.t", "snapshots.`a;{{ b }}`"):
        with pytest.raises(UsageError, match=r"refuses|does not accept"):
            load("id\n1\n", "id int", name)


def test_the_job(tmp_path):
    """What spark-submit's caller sees: one line of JSON, sentences on standard error, and exit codes."""
    export = tmp_path / "export.csv"
    export.write_text("id,v\n1,x\n2,\n")
    submit = ["spark-submit", str(ROOT / "ingestion" / "snapshot.py"), "csv", "--path", str(export)]

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([*submit, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300)

    done = run("--into", "lake.t", "--schema", "id int, v string")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert json.loads(line) | {"seconds": 0} == {"rows": 2, "into": "lake.t", "seconds": 0}

    done = run("--into", "lake.t", "--schema", "id int, v int")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert f'{export}, line 2: column v, int: "x" is not a number' in line


def test_usage(tmp_path):
    """What is wrong on the command line is said without starting Spark."""
    job = [sys.executable, str(ROOT / "ingestion" / "snapshot.py"), "csv", "--path", "x", "--schema", "id int"]
    for wrong, why in (
        ([], "the following arguments are required: --into"),
        (["--into", "t"], "--into t is not the name of a table"),
        (["--into", "lake.t", "--delimiter", ";;"], "--delimiter ';;' is not one character"),
        (["--into", "lake.t", "--null", ","], "--null ',' would always be in quotes"),
    ):
        done = subprocess.run([*job, *wrong], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"snapshot: {why}")
        assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([*job, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "--null" in done.stdout
