"""Columns of Spanner, as the canonical form takes those of the other databases."""

from __future__ import annotations

from reconcile_jobs.jdbc.database import Column
from reconcile_jobs.spanner.column_types import SPARK_TYPES

__all__ = ["spanner_column"]

# Texts and bytes that no model has in one form, and numbers that a model has by names.
_FORMS = {"JSON": "json", "PG_JSONB": "json", "INTERVAL": "interval", "UUID": "uuid"}
_UNREAD = ("PROTO", "ENUM")


def spanner_column(name: str, kind: str) -> Column:
    """Return a column, given its type as change records name it: INT64, PG_NUMERIC, ARRAY<DATE>."""
    if kind.startswith("ARRAY<"):
        element = spanner_column(name, kind[6:-1])
        return Column(name, kind, "{}", f"array<{element.spark_type}>", elements=(element,))
    if kind == "PG_NUMERIC":
        return Column(name, kind, "{}", "string", is_number=True)
    spark_type = SPARK_TYPES.get(kind.removeprefix("PG_").replace("JSONB", "JSON"))
    if spark_type is None or kind in _UNREAD:
        return Column(name, kind, None)
    return Column(name, kind, "{}", spark_type, spark_type == "bigint", _FORMS.get(kind))
