"""The source of a proof: one connection, on which all queries see the rows of one position."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from reconcile_jobs.jdbc.connection import Source, connected
from reconcile_jobs.jdbc.database import Column, Cut, Database, Rows, Table
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.proofs.dialect import Dialect
from reconcile_jobs.proofs.dialects import MySQL, Oracle, PostgreSQL, SQLServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Held", "dialect_of", "held", "table_of_object"]

_DIALECTS: tuple[type[Dialect], ...] = (PostgreSQL, MySQL, Oracle, SQLServer)


def dialect_of(database: Database) -> Dialect:
    """Return the dialect in which a database writes the canonical form."""
    return next(kind() for kind in _DIALECTS if kind.database.name == database.name)


class Answering(Rows, Protocol):
    """An open connection that also gives bytes."""

    def values(self, sql: str, of_bytes: Collection[int] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query: texts, and bytes in these places."""


@dataclass
class Held:
    """A source at one position, for as long as the connection lasts.

    `columns`: of each table, none where there is no such table. `bytes`: of all values that came, texts in UTF-8: what
    the driver and the protocol add is not counted.
    """

    connection: Answering
    database: Database
    cut: Cut
    columns: Mapping[Table, Sequence[Column]]
    bytes: int = 0
    queries: int = 0
    asked: list[str] = field(default_factory=list)

    def relation(self, table: Table) -> str:
        """Return a table at the position, as SQL."""
        return f"{self.database.relation(table)}{self.cut.clause}"

    def values(self, sql: str, of_bytes: Collection[int] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, and count what came."""
        rows = self.connection.values(sql, of_bytes)
        self.queries += 1
        self.bytes += sum(
            len(value) if isinstance(value, bytes | bytearray) else len(value.encode())
            for row in rows
            for value in row
            if value is not None
        )
        return rows


@contextmanager
def held(spark: SparkSession, source: Source, tables: Sequence[Table], seconds: int) -> Iterator[Held]:
    """Hold one position of a source. `seconds`: the longest that a query may take. Raises JobErrors."""
    with connected(spark, source, seconds) as connection:
        yield begun(connection, source.database, tables)


def begun(connection: Answering, database: Database, tables: Sequence[Table]) -> Held:
    """Begin the one transaction, or fix the one SCN, in which the tables are read."""
    database.prepare(connection, *tables)
    columns = {table: database.columns(connection, table) for table in tables}
    cut = database.hold(connection, database.fix(connection, tables[0], "now"))
    for statement in dialect_of(database).session:
        connection.execute(statement)
    return Held(connection, database, cut, columns)


def table_of_object(name: str) -> Table:
    """Return the table that change records name as schema.table. Raises UsageError."""
    schema, dot, table = name.partition(".")
    if not (schema and dot and table):
        raise UsageError(f"{name}, which the model reads, is not written as schema.table; name its table by --table.")
    return Table(schema, table)
