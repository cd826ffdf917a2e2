"""Spark writes the canonical form of every vector, and sums the hashes that plain Python does."""

from __future__ import annotations

from typing import Any

import pytest
from canonical_form import VECTORS, VectorTable
from pyspark.sql import SparkSession
from reconcile_jobs.proofs.canonical_form import parts_of_type
from reconcile_jobs.proofs.dialects import Spark

TYPES = {vector["type"]: vector["type"] for vector in VECTORS} | {
    "varchar": "string",
    "binary": "binary",
    "varbinary": "binary",
}
OF_SPARK = VectorTable(Spark(), "bigint", TYPES, "spark", {})


def literal(value: Any, type_: str) -> str:
    if value is None:
        return f"CAST(NULL AS {type_})"
    _, types = parts_of_type(type_)
    if len(types) == 1:
        return f"CAST(array({', '.join(literal(each, types[0]) for each in value)}) AS {type_})"
    if types:
        lists = (literal([pair[place] for pair in value], f"array<{types[place]}>") for place in (0, 1))
        return f"map_from_arrays({', '.join(lists)})"
    if type_ == "string":
        return f"decode(unhex('{value.encode().hex()}'), 'UTF-8')"
    if type_ == "binary":
        return f"unhex('{value}')"
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return f"CAST('{names.get(value, value)}' AS {type_})"


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.soak)])
def test_spark_writes_every_vector(spark: SparkSession, ansi: str) -> None:
    names = [OF_SPARK.dialect.quoted(field.name) for field in OF_SPARK.fields]
    rows = [
        ", ".join(
            f"{literal(value, field.source_type)} AS {name}"
            for name, value, field in zip(names, row, OF_SPARK.fields, strict=True)
        )
        for row in OF_SPARK.rows
    ]
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        values = spark.sql(" UNION ALL ".join(f"SELECT {row}" for row in rows))
        # Rows, not constants that the optimizer computes.
        values.localCheckpoint().createOrReplaceTempView("canonical_vectors")

        def found(query: str) -> list[list[str]]:
            return [list(row) for row in spark.sql(query).collect()]

        OF_SPARK.check(found, "canonical_vectors")
        outside = ["0000-12-31", "-0044-03-15", "+10000-01-01"]
        kinds = {kind: [f"{kind} '{date}'" for date in outside] for kind in ("date", "timestamp", "timestamp_ntz")}
        OF_SPARK.check_without_form(found, kinds)
        OF_SPARK.check_array(found, "date", "array(DATE '0000-12-31', NULL)", "=6:!sparkn")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
        spark.catalog.dropTempView("canonical_vectors")
