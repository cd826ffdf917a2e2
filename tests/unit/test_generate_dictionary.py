"""How a column of the source's own dictionary is declared, where its type says more than Spark's type holds."""

from __future__ import annotations

import pytest
from reconcile_jobs.generation.dictionary import declaration_of_column
from reconcile_jobs.jdbc.database import Column, Database
from reconcile_jobs.jdbc.mysql import MySQL
from reconcile_jobs.jdbc.oracle import Oracle
from reconcile_jobs.jdbc.postgresql import PostgreSQL
from reconcile_jobs.jdbc.sqlserver import SQLServer


@pytest.mark.parametrize(
    ("database", "source_type", "is_held"),
    [
        (MySQL(), "datetime(6)", True), (MySQL(), "datetime", True),
        (PostgreSQL(), "timestamp(6) with time zone", True),
        (Oracle(), "TIMESTAMP(6)", True), (Oracle(), "TIMESTAMP(7)", False), (Oracle(), "TIMESTAMP(9)", False),
        (SQLServer(), "datetime", True), (SQLServer(), "datetime2", False), (SQLServer(), "datetimeoffset", False),
    ],
)  # fmt: skip
def test_a_moment_is_one_as_far_as_microseconds_hold_its_digits(
    database: Database, source_type: str, is_held: bool
) -> None:
    """Spark's timestamps have six digits after the second: finer ones are declared as text."""
    declared = declaration_of_column(database, Column("at", source_type, "{}", "timestamp"))
    assert declared and declared.data_type == ("timestamp" if is_held else "string")
