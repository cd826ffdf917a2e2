"""Keys that are erased from a staging table, as erase.py leaves them: a register, and the property that says so."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from reconcile_jobs.erased_keys import VARIABLE, ErasedKeys, KeyOf, name_of, property_of
from reconcile_jobs.erasure.tables import ErasureTables
from reconcile_jobs.keyed_records import KeyColumn
from reconcile_jobs.staging import TableName

SECRET = "0123456789abcdef0123456789abcdef"


def register_erased(
    spark: SparkSession, staging: TableName, monkeypatch: pytest.MonkeyPatch, object_: str, column: str, *keys: str
) -> None:
    """Enter keys of an object, texts of one column, into the register; records that are staged already stay."""
    monkeypatch.setenv(VARIABLE, SECRET)
    of = KeyOf((object_,), (KeyColumn(column, (column.lower(),), False),))
    secret = SECRET.encode()
    tables = ErasureTables(spark, staging)
    tables.add_to_register([ErasedKeys(secret, (of,)).digest(of, (key,)) for key in keys], "e1", "a test")
    tables.keep({"erased": property_of(name_of(secret), [of], "e1")})
