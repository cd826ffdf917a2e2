"""Create the metastore that conf/shared names, once: `SPARK_CONF_DIR=conf/shared spark-submit metastore.py`."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

from reconcile_jobs.process.command_line import Parser
from reconcile_jobs.process.console import Console, jvm
from reconcile_jobs.process.errors import Fault, UsageError

_EPILOG = """
The environment names the metastore of conf/shared and conf/shared-iceberg: RECONCILE_METASTORE_URL
(jdbc:postgresql://host:5432/database), RECONCILE_METASTORE_USER and RECONCILE_METASTORE_PASSWORD. RECONCILE_WAREHOUSE
is the directory of the tables. The database must exist, and the user must be allowed to create tables in it. You can
run the command again: it leaves an existing metastore unchanged.

Standard output is one line of JSON: created, version, seconds. Exit codes: 0 done; 2 the command or the
configuration is wrong; 4 a fault that a retry may cure.
"""

# The version of the metastore's tables that Spark's own Hive client knows.
_VERSION = "2.3.0"

# Any number: whoever makes a metastore holds PostgreSQL's lock of it.
_LOCK = 7_031_877


def main(words: list[str], console: Console) -> None:
    """Make the metastore unless it is there; the outcome is one line of JSON on standard output. Raises JobError."""
    started = time.monotonic()
    Parser(prog="metastore.py", description=__doc__, epilog=_EPILOG).parse_args(words)
    names = ["URL", "USER", "PASSWORD"]
    url, user, password = (_environment(f"RECONCILE_METASTORE_{name}") for name in names)
    _environment("RECONCILE_WAREHOUSE")
    if not url.startswith("jdbc:postgresql:"):
        raise UsageError(
            "RECONCILE_METASTORE_URL is not a URL of PostgreSQL: write it as jdbc:postgresql://host:5432/database."
        )

    connection = _connect(url, user, password)
    try:
        # Held until the connection is closed, whatever happens to this process.
        _execute(connection, f"select pg_advisory_lock({_LOCK})")
        version = _version(connection)
        if version is None:
            console.say("creating the metastore's tables")
            _create_tables(connection, url, user, password)
            # Said last: a metastore that is half made has no version.
            _execute(
                connection,
                'insert into "VERSION" ("VER_ID", "SCHEMA_VERSION", "VERSION_COMMENT") '
                f"values (1, '{_VERSION}', 'made by dbt-reconcile')",
            )
        elif version != _VERSION:
            raise UsageError(
                f"The metastore has version {version}, and Spark's Hive client needs {_VERSION}: name another "
                "database, or change this one to that version with Hive's own schematool."
            )
        # Hive makes its roles and the schema `default` when it first comes, and two that come at once would collide.
        _first_session()
    finally:
        connection.close()
    console.result({"created": version is None, "version": _VERSION, "seconds": round(time.monotonic() - started, 1)})


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UsageError(
            f"{name} is not set: conf/shared and conf/shared-iceberg take it from the environment; see "
            "`metastore.py --help`."
        )
    return value


def _connect(url: str, user: str, password: str) -> Any:
    from py4j.protocol import Py4JJavaError

    java = jvm()
    try:
        java.java.lang.Class.forName("org.postgresql.Driver")
        return java.java.sql.DriverManager.getConnection(url, user, password)
    except Py4JJavaError as problem:
        cause = problem.java_exception
        if cause.getClass().getName() == "java.lang.ClassNotFoundException":
            raise UsageError(
                "Spark does not find PostgreSQL's driver: set SPARK_CONF_DIR to the package's conf/shared, or at "
                "conf/shared-iceberg."
            ) from None
        kind = Fault if _may_pass(cause.getSQLState()) else UsageError
        message = cause.getMessage().splitlines()[0].rstrip(".")
        raise kind(f"The metastore's database refused the login: {message}.") from None


def _may_pass(state: str | None) -> bool:
    # The classes of SQLSTATE: 08 no connection, 53 no resources, 57 shut down; no retry cures the others.
    return (state or "08").startswith(("08", "53", "57"))


def _version(connection: Any) -> str | None:
    """Return the version that the database has, None if it has none; a metastore half made has none."""
    if _one(connection, "select to_regclass('\"VERSION\"') is null") == "t":
        return None
    return _one(connection, 'select max("SCHEMA_VERSION") from "VERSION"')


def _create_tables(connection: Any, url: str, user: str, password: str) -> None:
    """Let DataNucleus make the tables of Hive's own model, those that are missing."""
    java = jvm()
    settings = {
        f"datanucleus.{name}": value
        for name, value in dict(java.org.apache.hadoop.hive.conf.HiveConf().getPropsWithPrefix("datanucleus.")).items()
    } | {
        "javax.jdo.PersistenceManagerFactoryClass": "org.datanucleus.api.jdo.JDOPersistenceManagerFactory",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionURL": url,
        "javax.jdo.option.ConnectionUserName": user,
        "javax.jdo.option.ConnectionPassword": password,
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "none",
    }
    properties, classes = java.java.util.HashMap(), java.java.util.HashSet()
    for name, value in settings.items():
        properties.put(name, value)
    for name in _classes_of_model():
        classes.add(name)
    factory = java.javax.jdo.JDOHelper.getPersistenceManagerFactory(properties)
    try:
        factory.getNucleusContext().getStoreManager().createSchemaForClasses(classes, java.java.util.Properties())
    finally:
        factory.close()
    # Hive numbers its rows from a table of its own, with a row for each class; two that begin one would collide.
    _execute(
        connection,
        'create table if not exists "SEQUENCE_TABLE" '
        '("SEQUENCE_NAME" varchar(255) primary key, "NEXT_VAL" bigint not null)',
    )
    for name in _classes_of_model():
        _execute(connection, f"""insert into "SEQUENCE_TABLE" values ('{name}', 1) on conflict do nothing""")


def _classes_of_model() -> list[str]:
    """Return the names of the classes whose objects Hive's metastore keeps."""
    java = jvm()
    model = java.java.lang.ClassLoader.getSystemResourceAsStream("package.jdo")
    text = bytes(java.org.apache.commons.io.IOUtils.toByteArray(model)).decode()
    package = re.findall(r'<package name="([\w.]+)"', text)[0]
    return [f"{package}.{name}" for name in re.findall(r'<class name="(\w+)"', text)]


def _first_session() -> None:
    from reconcile_jobs.process import session

    spark = session.start("metastore")
    spark.sql("show schemas").collect()
    spark.stop()


def _execute(connection: Any, sql: str) -> None:
    statement = connection.createStatement()
    try:
        statement.execute(sql)
    finally:
        statement.close()


def _one(connection: Any, sql: str) -> str | None:
    statement = connection.createStatement()
    try:
        rows = statement.executeQuery(sql)
        return rows.getString(1) if rows.next() else None
    finally:
        statement.close()


if __name__ == "__main__":
    console = Console("metastore")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
