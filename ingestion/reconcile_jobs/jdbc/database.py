"""What the databases have in common: names, columns, and what a snapshot of each has to say."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from reconcile_jobs.process.errors import Fault, JobError, UsageError

__all__ = ["Column", "Cut", "Database", "Failures", "Rows", "Table", "bad_position", "decimal_type"]

Failures = Sequence[tuple[str, type[JobError], str]]


class Rows(Protocol):
    """An open connection: statements, and rows of texts."""

    def execute(self, sql: str) -> None:
        """Run a statement."""

    def rows(self, sql: str, *parameters: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query, each value as the driver's text of it."""


@dataclass(frozen=True)
class Table:
    """A table's name as the database has it."""

    schema: str
    name: str


@dataclass(frozen=True)
class Column:
    """A column of a table, how it is selected and what it becomes.

    `expression` has {} in place of the column's quoted name. It gives the value's exact text, or its bytes if
    `spark_type` is binary; None if there is no such text. `is_number`: the values are exact numbers, so the column can
    be cut into ranges and compared as a number. `form`: how a model has the value as a string, one of TEXT_FORMS or
    json. `otherwise`: the expressions for other declared types than `spark_type` (binary, string or array); an array is
    a JSON list whose elements are texts or lists. `elements`: of an array its elements, of a map its keys and its
    values, as columns of this name; their expressions have {} in place of an element.
    """

    name: str
    source_type: str
    expression: str | None
    spark_type: str = "string"
    is_number: bool = False
    form: str | None = None
    otherwise: Mapping[str, str] = field(default_factory=dict)
    elements: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Cut:
    """Where a snapshot was taken.

    `position` None: the query itself returns the position, as the expression `position_sql`. Every connection runs
    `session` before it reads. `prefix` comes before its query, and `clause` after the table's name. `properties` are
    kept beside the position.
    """

    position: str | None
    session: str | None = None
    prefix: str = ""
    clause: str = ""
    position_sql: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


class Database(ABC):
    """One kind of database."""

    name: str
    prefix: str  # of its URLs
    driver: str
    coordinates: str
    kind_of_position: str
    # What the catalog is asked: the primary key's columns in their order; the comments of a table, those of its columns
    # by name and its own by NULL. Parameters are schema and table, as often as there are question marks.
    key_sql: str
    comments_sql: str
    quotes = ('"', '"')
    # What a URL of this kind may hold a password in, beside what any may.
    password_in_url: str | None = None
    # Why there can be but one connection; None where several read one snapshot.
    one_connection: str | None = None
    # The options that its driver needs.
    options: dict[str, str] = {}  # noqa: RUF012
    failures: Failures = ()

    def table(self, text: str) -> Table:
        """Read SCHEMA.TABLE as the database would: parts without quotes are folded as it folds them."""
        opening, closing = self.quotes
        o, c = re.escape(opening), re.escape(closing)
        part = rf"{o}(?:[^{c}]|{c}{c})+{c}|[^{o}{c}.\s]+"
        if not re.fullmatch(rf"(?:{part})\.(?:{part})", text):
            raise UsageError(
                f"--table {text} is not the name of a table: write it as SCHEMA.TABLE, with quotes as in {self.name} "
                f"around names with dots, spaces or letters of the other case, {opening}like this{closing}."
            )
        schema, name = (
            p[1:-1].replace(closing * 2, closing) if p[0] == opening else self.folded(p) for p in re.findall(part, text)
        )
        return Table(schema, name)

    def folded(self, part: str) -> str:
        """Return a name without quotes as the database reads it."""
        return part

    def quoted(self, name: str) -> str:
        """Return an identifier as SQL, whatever it holds."""
        opening, closing = self.quotes
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def relation(self, table: Table) -> str:
        """Return a table's name as SQL."""
        return f"{self.quoted(table.schema)}.{self.quoted(table.name)}"

    def select(self, table: Table, columns: Sequence[Column], cut: Cut, partition_column: Column | None = None) -> str:
        """Return the SELECT of a snapshot: the columns as c0, c1 and so on.

        With `partition_column`, the column's bare values come too, as p. If the query itself returns the position of
        the cut, each row has the position as reconcile_position, and 1 as reconcile_row. An empty table then gives one
        row too, whose reconcile_row is NULL: a snapshot without rows also needs a position.
        """
        values = [
            f"{(column.expression or '{}').replace('{}', self.quoted(column.name))} AS {self.quoted(f'c{place}')}"
            for place, column in enumerate(columns)
        ]
        if partition_column is not None:
            values.append(f"{self.quoted(partition_column.name)} AS {self.quoted('p')}")
        rows = f"SELECT {', '.join(values)} FROM {self.relation(table)}{cut.clause}"
        if cut.position_sql is None:
            return rows
        position, row = self.quoted("reconcile_position"), self.quoted("reconcile_row")
        return (
            f"SELECT * FROM (SELECT {cut.position_sql} AS {position}) one LEFT JOIN (SELECT 1 AS {row}, "
            f"{rows.removeprefix('SELECT ')}) many ON 1 = 1"
        )

    @abstractmethod
    def columns(self, connection: Rows, table: Table) -> list[Column]:
        """Return the table's columns in their order, none where there is no such table, or none to be read."""

    def key(self, connection: Rows, table: Table) -> list[str]:
        """Return the columns of the primary key in their order, [] where there is none."""
        return [name for (name,) in connection.rows(self.key_sql, table.schema, table.name) if name is not None]

    def comments(self, connection: Rows, table: Table) -> dict[str | None, str]:
        """Return the comments of the columns by their names, and of the table itself by None."""
        parameters = (table.schema, table.name) * (self.comments_sql.count("?") // 2)
        return {name: text for name, text in connection.rows(self.comments_sql, *parameters) if text}

    @abstractmethod
    def fix(self, connection: Rows, table: Table, at: str) -> Cut:
        """Fix the position that all partitions are read at; the connection stays open until they have been."""

    def prepare(self, connection: Rows, *tables: Table) -> None:  # noqa: B027
        """Do what has to be done, if anything, before the columns are read and the position is fixed."""

    def hold(self, connection: Rows, cut: Cut) -> Cut:
        """Let this very connection see the rows of the cut until it ends, and return the cut with its position.

        Raises UsageError where the database does not tell the position.
        """
        for statement in self._beginning(cut):
            connection.execute(statement)
        if cut.position_sql is None:
            return cut
        ((position,),) = connection.rows(f"SELECT {cut.position_sql}")
        if not position:
            raise UsageError(
                f"{self.name} did not give the position in its log: grant the user the rights that `snapshot.py jdbc "
                "--help` lists."
            )
        return replace(cut, position=position)

    def _beginning(self, cut: Cut) -> Sequence[str]:
        """Return the statements that begin the reading transaction, where `fix` has not begun it."""
        return ()

    def refusal(self, story: str) -> JobError | None:
        """Return a failure of this database as a sentence. `story`: classes, messages and states of the exceptions."""
        for pattern, kind, sentence in (*self.failures, *_FAILURES):
            if found := re.search(pattern, story):
                return kind(
                    sentence.format(*((group or "").strip().rstrip(".") for group in found.groups()), name=self.name)
                )
        return None


_FAILURES: Failures = (
    (
        r"SQLState 28\w{3}: ([^\n]*)|password authentication failed",
        UsageError,
        "{name} refused the login: check the user and the password in RECONCILE_JDBC_USER and "
        "RECONCILE_JDBC_PASSWORD, or in the file of --properties.",
    ),
    (
        r"SQLState 08\w{3}: ([^\n]*)",
        Fault,
        "The connection to {name} failed: {0}. Check --url, or run the same command again later.",
    ),
    (
        r"SQL\w*Exception: ([^\n]*(?:I/O error|onnection (?:is |has been )?(?:closed|reset|refused)|timed out)[^\n]*)",
        Fault,
        "The connection to {name} was lost ({0}); nothing was written: run the same command again.",
    ),
    (
        r"SQLState 42501: ([^\n]*)",
        UsageError,
        "{name} does not allow this user to read the table: {0}. Grant the user the right to select from the table.",
    ),
)


def decimal_type(precision: int, scale: int) -> str:
    """Return the Spark type that holds every number of these digits, or string where none does.

    A scale may be negative, or larger than the precision.
    """
    whole, places = max(precision - scale, 0), max(scale, 0)
    return f"decimal({max(whole + places, 1)},{places})" if whole + places <= 38 else "string"


def bad_position(database: Database, at: str) -> UsageError:
    """Return the refusal of a position in the past, by a database that cannot go back."""
    return UsageError(f"--at {at}: {database.name} cannot read an earlier position; use --at now.")
