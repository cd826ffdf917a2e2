"""What the source's own dictionary says of tables: types, keys and comments, read over JDBC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.observations import Observations, Place
from reconcile_jobs.generation.witnesses import Testimony, Witness
from reconcile_jobs.jdbc.connection import Source, connected
from reconcile_jobs.jdbc.database import Column, Database, Rows, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["declaration_of_column", "dictionary_of", "read_tables"]

# As the source macros are called.
_SOURCES = {"MySQL": "mysql", "PostgreSQL": "postgresql", "Oracle": "oracle", "SQL Server": "sqlserver"}
_ENCODINGS = {"json": "json", "interval": "interval", "time": "time", "span": "microseconds"}


def dictionary_of(spark: SparkSession, source: Source, observations: Observations) -> Testimony:
    """Return what the database says of the tables that records are of, over one connection. Raises JobErrors."""
    wanted = [
        place for place, observed in observations.tables.items() if observed.sources == {_SOURCES[source.database.name]}
    ]
    with connected(spark, source) as connection:
        return read_tables(connection, source.database, wanted)


def read_tables(connection: Rows, database: Database, places: Iterable[Place]) -> Testimony:
    """Return what the catalog says of tables; those that it does not have, or not any more, are left out."""
    found: dict[Place, Witness] = {}
    for place in sorted(places, key=lambda place: (place.schema, place.table)):
        table = Table(place.schema, place.table)
        columns = database.columns(connection, table)
        if columns:
            comments = database.comments(connection, table)
            declared = {column.name: declaration_of_column(database, column) for column in columns}
            found[place] = Witness(
                {name: declaration for name, declaration in declared.items() if declaration is not None},
                {name: text for name, text in comments.items() if name is not None},
                tuple(database.key(connection, table)),
                comments.get(None, ""),
            )
    return found


def declaration_of_column(database: Database, column: Column) -> Declaration | None:
    """Return how a model declares a column, None where Datastream writes its values as the type does not tell.

    The types are those of a snapshot of the same column, so that parity compares like with like.
    """
    witness = f"{database.name}: {column.source_type}"
    kind = re.sub(r"\([^)]*\)", "", column.source_type).strip().lower()
    # Of PostgreSQL's bits Datastream makes bytes, of its hstore JSON.
    is_otherwise = database.name == "PostgreSQL" and kind in ("bit", "bit varying", "hstore")
    if column.expression is None or is_otherwise:
        return None
    if kind in ("year", "year unsigned"):
        return Declaration("int", witness=witness)
    if column.spark_type.startswith("timestamp") and _is_finer_than_micros(database, column):
        return Declaration("string", witness=witness)
    encoding = None if column.spark_type.startswith("array") else _ENCODINGS.get(column.form or "")
    return Declaration(column.spark_type, encoding, witness)


def _is_finer_than_micros(database: Database, column: Column) -> bool:
    if database.name == "SQL Server":
        # The catalog is not asked for the digits of these, which have seven unless somebody says fewer.
        return column.source_type in ("datetime2", "datetimeoffset")
    digits = re.search(r"\((\d+)\)", column.source_type)
    return digits is not None and int(digits[1]) > 6
