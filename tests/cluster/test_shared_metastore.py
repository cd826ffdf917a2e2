"""conf/shared, conf/shared-iceberg: a metastore in PostgreSQL, made once, in which many processes work at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_formats import SHARED, file_format
from postgres import Postgres
from projects import PACKAGE

SECONDS = 300

# What was made of a metastore, of which the last table to be made is the first to be filled.
SEQUENCES = '"SEQUENCE_TABLE" ("SEQUENCE_NAME" varchar(255) primary key, "NEXT_VAL" bigint not null)'
A_CLASS = "org.apache.hadoop.hive.metastore.model.MDatabase"

# What a process does in a session of its own; it is given a table format, its own schema, that of another process, a
# secret, and where to log.
WORK = """
import sys, time
from pyspark.sql import SparkSession

form, mine, others, secret, events = sys.argv[1:]
spark = (SparkSession.builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
         .config("spark.eventLog.dir", events).getOrCreate())
spark.sql(f"create schema {mine}")
spark.sql(f"create table {mine}.rows using {form} as select 1 as id")
# The embedded metastore would cut it at 32,700 characters.
spark.sql(f"create view {mine}.shown as select id, length('{'x' * 100000}') as long from {mine}.rows")
until = time.monotonic() + 120
while not spark.catalog.tableExists(f"{others}.shown"):
    assert time.monotonic() < until
    time.sleep(0.2)
assert spark.table(f"{others}.shown").collect() == [(1, 100000)]
# A Thrift server needs it when a session ends while another one asks the metastore: else it and all after it would wait
# for ever.
spark._jvm.java.lang.Class.forName("org.apache.hadoop.hive.ql.exec.FunctionRegistry")
properties = [str(row) for statement in ("set", "set -v") for row in spark.sql(statement).collect()]
spark.sql(f"explain extended select * from {others}.shown").collect()
assert len(properties) > 100 and not [row for row in properties if secret in row]
"""


class Lakehouse:
    """A metastore, a warehouse, and what a user has in the environment."""

    def __init__(self, postgres: Postgres, root: Path) -> None:
        self.postgres, self.root = postgres, root
        self.environment = os.environ | postgres.environment | {
            "SPARK_CONF_DIR": str(SHARED[file_format()]),
            "RECONCILE_WAREHOUSE": str(root / "warehouse"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        self.environment.pop("PYSPARK_GATEWAY_PORT", None)

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def make(self, **more: str) -> subprocess.Popen[str]:
        return self.start("spark-submit", str(PACKAGE / "ingestion" / "metastore.py"), **more)


def said_by(process: subprocess.Popen[str], code: int = 0) -> str:
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == code, said[-3000:]
    return said


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakehouse]:
    """Made by two processes at once, where one was killed in the middle before: one makes it, the other finds it."""
    postgres = Postgres()
    try:
        postgres.query(f"create table {SEQUENCES}; insert into {SEQUENCES.split()[0]} values ('{A_CLASS}', 1)")
        made = Lakehouse(postgres, tmp_path_factory.mktemp("shared"))
        said = [said_by(process) for process in [made.make(), made.make()]]
        assert sorted(json.loads(lines.splitlines()[-1])["created"] for lines in said) == [False, True]
        yield made
    finally:
        postgres.stop()


def test_two_processes_work_in_it_at_once_and_nothing_shows_the_password(lakehouse: Lakehouse) -> None:
    events = lakehouse.root / "events"
    events.mkdir()
    secret = lakehouse.postgres.password
    at_once = [
        lakehouse.start(sys.executable, "-c", WORK, file_format(), mine, others, secret, str(events))
        for mine, others in (("one", "two"), ("two", "one"))
    ]
    for process in at_once:
        assert secret not in said_by(process)
    logs = [file.read_text() for file in events.rglob("*") if file.is_file() and file.suffix != ".crc"]
    assert len([log for log in logs if "SparkListenerEnvironmentUpdate" in log]) == 2
    assert not [log for log in logs if secret in log]


@pytest.mark.parametrize(
    ("environment", "code", "says"),
    [
        ({"RECONCILE_METASTORE_PASSWORD": "wrong-one"}, 2, "password authentication failed"),
        ({"RECONCILE_METASTORE_URL": "jdbc:postgresql://127.0.0.1:1/postgres"}, 4, "refused"),
        ({"RECONCILE_METASTORE_URL": "jdbc:derby:metastore"}, 2, "is not a URL of PostgreSQL"),
        ({"RECONCILE_WAREHOUSE": ""}, 2, "RECONCILE_WAREHOUSE is not set"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(
    lakehouse: Lakehouse, environment: dict[str, str], code: int, says: str
) -> None:
    said = said_by(lakehouse.make(**environment), code)
    assert says in said
    assert len(said.splitlines()) == 1
    assert lakehouse.postgres.password not in said
    assert "wrong-one" not in said


def test_a_metastore_that_was_never_made_is_named_by_the_jobs(lakehouse: Lakehouse) -> None:
    lakehouse.postgres.query("create database empty")
    url = lakehouse.environment["RECONCILE_METASTORE_URL"].replace("/postgres", "/empty")
    job = ["spark-submit", str(PACKAGE / "ingestion" / "append.py"), "datastream"]
    job += ["--path", str(lakehouse.root), "--staging", "lake.changes"]
    said = said_by(lakehouse.start(*job, RECONCILE_METASTORE_URL=url), 2)
    assert len(said.splitlines()) == 1
    assert "metastore.py" in said
