"""Rows of a table as the JSON that staging holds: every value is there, and no digit of it is lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconcile_jobs.process.session import SKIP_NO_FILE
from reconcile_jobs.staging import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["EXACT", "JSON_OPTIONS", "rows_as_json"]

# Under which a value has one text, and every row is read.
EXACT = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC", **SKIP_NO_FILE}

# Every field is there, and a moment has its microseconds.
JSON_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)


def rows_as_json(rows: DataFrame, names: Iterable[str]) -> str:
    """Return SQL for the text of these columns as a JSON object; to be run under the settings `EXACT`.

    Numbers are texts where JSON could lose a digit: decimals and floating point, and whole numbers of a column. Binary
    is base64, moments are in UTC. A text that is not UTF-8 fails the query, since JSON would hold another one.
    """
    kinds = {field.name: field.dataType for field in rows.schema}
    fields = (f"{_in_json(name, kinds[name])} as {quoted(name)}" for name in names)
    return f"to_json(struct({', '.join(fields)}), {JSON_OPTIONS})"


def _in_json(name: str, kind: DataType) -> str:
    from pyspark.sql import types

    column = quoted(name)
    if isinstance(kind, types.NumericType):
        return f"cast({column} as string)"
    is_valid = _is_valid(column, kind)
    if is_valid:
        no_text = literal(f"a text of the column {name} is not UTF-8")
        column = f"if(coalesce({is_valid}, true), {column}, raise_error({no_text}))"
    if isinstance(kind, types.MapType) and not isinstance(kind.keyType, types.StringType):
        key = "base64(k)" if isinstance(kind.keyType, types.BinaryType) else "cast(k as string)"
        column = f"transform_keys({column}, (k, v) -> {key})"
        kind = types.MapType(types.StringType(), kind.valueType)
    exact = _exact(kind)
    return column if exact == kind.simpleString() else f"cast({column} as {exact})"


def _is_valid(value: str, kind: DataType, depth: int = 0) -> str:
    """Return a condition, as SQL, that is false if a text within a value is not UTF-8; "" if it has no texts."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return f"is_valid_utf8({value})"
    if isinstance(kind, types.StructType):
        fields = (_is_valid(f"{value}.{quoted(field.name)}", field.dataType, depth) for field in kind)
        return " and ".join(f"coalesce({field}, true)" for field in fields if field)
    if isinstance(kind, types.MapType):
        parts = [(f"map_keys({value})", kind.keyType), (f"map_values({value})", kind.valueType)]
    elif isinstance(kind, types.ArrayType):
        parts = [(value, kind.elementType)]
    else:
        return ""
    conditions = ((part, _is_valid(f"e{depth}", element, depth + 1)) for part, element in parts)
    return " and ".join(
        f"coalesce(forall({part}, e{depth} -> coalesce({of}, true)), true)" for part, of in conditions if of
    )


def _exact(kind: DataType) -> str:
    """Return a type as DDL whose values JSON holds exactly: decimals and floating point become texts."""
    from pyspark.sql import types

    if isinstance(kind, types.FractionalType):  # decimals too
        return "string"
    if isinstance(kind, types.ArrayType):
        return f"array<{_exact(kind.elementType)}>"
    if isinstance(kind, types.MapType):
        return f"map<{kind.keyType.simpleString()},{_exact(kind.valueType)}>"
    if isinstance(kind, types.StructType):
        return f"struct<{','.join(f'{quoted(field.name)}:{_exact(field.dataType)}' for field in kind)}>"
    return kind.simpleString()
