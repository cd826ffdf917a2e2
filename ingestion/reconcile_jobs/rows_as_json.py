"""Rows of a table as the JSON that staging holds: every value is there, and no digit of it is lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconcile_jobs.staging import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["rows_as_json"]

# JSON as text, whatever the session: every field is there, and a moment has its microseconds.
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)


def rows_as_json(rows: DataFrame, names: Iterable[str]) -> str:
    """Return SQL for the text of these columns as a JSON object, which no two different rows share.

    Numbers are texts, binary is base64, moments are in UTC.
    """
    kinds = dict(rows.dtypes)
    fields = (f"{_in_json(quoted(name), kinds[name])} as {quoted(name)}" for name in names)
    return f"to_json(struct({', '.join(fields)}), {_OPTIONS})"


def _in_json(column: str, kind: str) -> str:
    if kind.startswith("decimal") or kind in ("tinyint", "smallint", "int", "bigint", "float", "double"):
        return f"cast({column} as string)"
    return column
