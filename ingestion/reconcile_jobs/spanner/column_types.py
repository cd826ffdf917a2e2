"""Spark's types of Spanner's: as a snapshot has them, and as a model is to declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["SPARK_TYPES", "described", "spark_type_of"]

# A PostgreSQL numeric, which has up to 147,455 digits, is a string; see `spark_type_of`.
SPARK_TYPES = {
    "BOOL": "boolean",
    "INT64": "bigint",
    "FLOAT64": "double",
    "FLOAT32": "float",
    "NUMERIC": "decimal(38,9)",
    "STRING": "string",
    "BYTES": "binary",
    "PROTO": "binary",
    "ENUM": "bigint",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "JSON": "string",
    "UUID": "string",
    "INTERVAL": "string",
}


def described(type_: Any) -> str:
    """Return the name of a type as change records give it: INT64, PG_NUMERIC, ARRAY<DATE>; '' if it has none."""
    if not isinstance(type_, Mapping):
        return ""
    if type_.get("code") == "ARRAY":
        element = described(type_.get("array_element_type"))
        return f"ARRAY<{element}>" if element else ""
    annotation = str(type_.get("type_annotation") or "")
    return annotation if annotation.startswith("PG_") else str(type_.get("code") or "")


def spark_type_of(name: str) -> str:
    """Return Spark's type of a type that `described` names; of one that nobody knows yet a string."""
    if name.startswith("ARRAY<"):
        return f"array<{spark_type_of(name[6:-1])}>"
    return SPARK_TYPES.get({"PG_OID": "INT64"}.get(name, name), "string")
