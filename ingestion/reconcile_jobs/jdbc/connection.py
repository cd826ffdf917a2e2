"""A JDBC connection of the driver's JVM, and the secrets that open it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile_jobs.jdbc.database import Database
from reconcile_jobs.process.errors import Fault, JobError, UsageError, causes
from reconcile_jobs.process.secret_files import read_secret_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Connection", "Source", "connected", "read_properties", "secret_properties"]

_USER, _PASSWORD = "RECONCILE_JDBC_USER", "RECONCILE_JDBC_PASSWORD"

# Properties of a connection that are Spark's options, or this job's to set.
_TAKEN = {
    *("url", "dbtable", "query", "driver", "fetchsize", "querytimeout", "customschema", "preparequery"),
    *("partitioncolumn", "lowerbound", "upperbound", "numpartitions", "sessioninitstatement", "allowmultiqueries"),
}


@dataclass(frozen=True)
class Source:
    """A database and how to connect to it. What is secret does not show where this is printed."""

    database: Database
    url: str = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)

    def refusal(self, problem: Exception) -> JobError | None:
        """Return a failure of the database in a sentence without secrets, or None where it was another."""
        known = self.database.refusal(_story(problem))
        return type(known)(self.without_secrets(str(known))) if known else None

    def without_secrets(self, text: str) -> str:
        """Return a text in which the values of the properties are blotted out.

        The user's name stays, and so does a value of up to three characters, which would blot out parts of other words.
        """
        values = {value for name, value in self.properties.items() if name.lower() != "user" and len(value) > 3}
        # The longest first: a value may be a part of another, whose rest would show.
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "***")
        return text


def secret_properties(file: str | None) -> dict[str, str]:
    """Return user, password and whatever else the driver takes, from the environment and a file."""
    properties = read_properties(Path(file)) if file else {}
    for name, variable in (("user", _USER), ("password", _PASSWORD)):
        if os.environ.get(variable):
            properties[name] = os.environ[variable]
    return properties


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of lines name=value, which only its owner may read. Raises UsageError."""
    # A line ends at a line feed alone: a password may have what Python takes for the end of a line too.
    lines = read_secret_file(path, "--properties").removeprefix("\ufeff").split("\n")
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, sign, value = text.partition("=")
        name = name.strip()
        # The line itself may be the password.
        if not sign or not name:
            raise UsageError(f"{path}, line {number}: the line is not name=value.")
        if name.lower() in _TAKEN:
            raise UsageError(f"{path}, line {number}: {name} is not a property of the connection that can be set here.")
        if name.lower() in {known.lower() for known in properties}:
            raise UsageError(f"{path}, line {number}: {name} stands there a second time; remove one of them.")
        properties[name] = value.strip()
    return properties


class Connection:
    """An open connection. Its methods raise JobErrors."""

    def __init__(self, source: Source, connection: Any, seconds: int = 0) -> None:
        self._source = source
        self._connection = connection
        self._seconds = seconds

    def execute(self, sql: str) -> None:
        """Run a statement."""
        with _explained(self._source):
            statement = self._connection.createStatement()
            try:
                statement.execute(sql)
            finally:
                statement.close()

    def rows(self, sql: str, *parameters: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query, each value as the driver's text of it."""
        return self.values(sql, (), parameters)

    def values(self, sql: str, of_bytes: Collection[int] = (), parameters: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query: values as the driver's text of them, and as bytes in these places from 0 on."""
        with _explained(self._source):
            statement = self._connection.prepareStatement(sql)
            try:
                if self._seconds:
                    statement.setQueryTimeout(self._seconds)
                for place, value in enumerate(parameters, 1):
                    statement.setString(place, value)
                found = statement.executeQuery()
                width = found.getMetaData().getColumnCount()
                rows = []
                while found.next():
                    rows.append(
                        tuple(
                            found.getBytes(place + 1) if place in of_bytes else found.getString(place + 1)
                            for place in range(width)
                        )
                    )
                return rows
            finally:
                statement.close()


@contextmanager
def connected(spark: SparkSession, source: Source, seconds: int = 0) -> Iterator[Connection]:
    """Connect for a while, without autocommit: what is read stays in one transaction. Raises JobErrors.

    `seconds`: the longest that a query may take; 0 for no limit.
    """
    from py4j.protocol import Py4JJavaError

    database = source.database
    jvm: Any = spark._jvm
    try:
        # Not through DriverManager, which knows only what the JVM's own class path has.
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        driver = loader.loadClass(database.driver).newInstance()
    except Py4JJavaError:
        raise UsageError(
            f"The JDBC driver of {database.name}, {database.driver}, is not on the class path: run "
            f"`spark-submit --packages {database.coordinates} ...`, or let RECONCILE_PACKAGES={database.coordinates} "
            "have the package's conf fetch it."
        ) from None
    properties = jvm.java.util.Properties()
    for name, value in {**database.options, **source.properties}.items():
        properties.setProperty(name, value)
    with _explained(source):
        connection = driver.connect(source.url, properties)
    if connection is None:
        raise UsageError(f"The JDBC driver of {database.name} does not accept --url; see its documentation.")
    try:
        with _explained(source):
            connection.setAutoCommit(False)
        yield Connection(source, connection, seconds)
    finally:
        # The connection may be lost, and whoever used it has reported that. One that cannot be undone is still closed.
        for undo in (connection.rollback, connection.close):
            with suppress(Py4JJavaError):
                undo()


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as problem:
        raise source.refusal(problem) or _other(source, problem) from None


def _other(source: Source, problem: Exception) -> Fault:
    kind, message = next(causes(problem))
    line = message.strip().partition("\n")[0].rstrip(".")
    return Fault(source.without_secrets(f"{source.database.name} failed with {kind.rpartition('.')[2]}: {line}."))


def _story(problem: Exception) -> str:
    """Return what failed: class, state and message of each exception."""
    from py4j.protocol import Py4JError

    lines = [f"{kind}: {message}" for kind, message in causes(problem)]
    java = getattr(problem, "java_exception", None)
    if java is not None:
        with suppress(Py4JError):  # it may be no SQLException
            lines.insert(0, f"SQLState {java.getSQLState()}: {java.getMessage()}")
    return "\n".join(lines)
