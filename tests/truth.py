"""The capture's tables as the source had them, and the lakehouse's in the same form; nothing of the package is used."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from datastream import in_base64
from pyspark.sql import DataFrame, SparkSession

CAPTURE = Path(__file__).parent / "data" / "capture"
DELIVERIES = (1, 2, 3, 4)
SOURCES = ("oracle", "mysql", "postgresql", "sqlserver")
KEYS = {"customers": ["id"], "orders": ["id"], "order_lines": ["order_id", "line_no"]}
COLUMNS = {
    "customers": {
        "id": "bigint",
        "name": "string",
        "email": "string",
        "balance": "decimal(18,4)",
        "tier": "string",
        "vip": "boolean",
        "created_at": "timestamp",
        "note": "string",
    },
    "orders": {
        "id": "bigint",
        "customer_id": "bigint",
        "status": "string",
        "total": "decimal(38,10)",
        "placed_at": "timestamp",
        "due_on": "date",
        "updated_at": "timestamp",
        "ratio": "double",
    },
    "order_lines": {
        "order_id": "bigint",
        "line_no": "int",
        "sku": "string",
        "quantity": "int",
        "price": "decimal(12,2)",
        "payload": "binary",
    },
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUES = {
    "bigint": int,
    "int": int,
    "string": str,
    "boolean": {"t": True, "f": False}.__getitem__,
    # As text: NaN equals itself. The source has -0, its capture 0.0; they are equal numbers.
    "double": lambda text: repr(float(text) + 0.0),
    "date": date.fromisoformat,
    # In microseconds: PySpark's own timestamps are in the zone of the machine, and do not say so.
    "timestamp": lambda text: (
        (datetime.fromisoformat(text.removesuffix("+00") + "+00:00") - EPOCH) // timedelta(microseconds=1)
    ),
    "binary": lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def true_rows(table: str, then: str = "truth") -> Counter[tuple[Any, ...]]:
    """Return the rows of a table of the source in the end, or in the middle (`snapshot`), counted."""
    header, *rows = _parsed((CAPTURE / then / f"{table}.csv").read_bytes().decode())
    columns = COLUMNS[table]
    assert header == list(columns)
    types = [VALUES.get(data_type, Decimal) for data_type in columns.values()]
    return Counter(
        tuple(None if text is None else read(text) for read, text in zip(types, row, strict=True)) for row in rows
    )


def rows_of_snapshot(table: str, then: str = "truth") -> list[dict[str, str | None]]:
    """Return the same rows as the job stages those of a snapshot: texts, bytes in base64."""
    header, *rows = _parsed((CAPTURE / then / f"{table}.csv").read_bytes().decode())
    kinds = [COLUMNS[table][str(name)] for name in header]
    return [
        {
            str(name): base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()
            if kind == "binary" and text is not None
            else text
            for name, kind, text in zip(header, kinds, row, strict=True)
        }
        for row in rows
    ]


def rows_of(spark: SparkSession, relation: str) -> Counter[tuple[Any, ...]]:
    """Return the rows of a table or view, counted."""
    return counted(spark.table(relation))


def counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """Return rows in the form of `true_rows`, counted."""
    kinds = dict(frame.dtypes)
    frame = frame.selectExpr(*(f"unix_micros(`{c}`)" if kinds[c] == "timestamp" else f"`{c}`" for c in frame.columns))
    return Counter(tuple(map(_plain, row)) for row in frame.collect())


def differences(spark: SparkSession, relation: str, table: str) -> list[tuple[Any, ...]]:
    """Return the rows that only the relation has, or only the source. The columns must be the source's."""
    assert dict(spark.table(relation).dtypes) == COLUMNS[table]
    there, true = rows_of(spark, relation), true_rows(table)
    return [("unexpected", *row) for row in (there - true).elements()] + [
        ("missing", *row) for row in (true - there).elements()
    ]


def declared(source: str, table: str) -> dict[str, Any]:
    """Return the columns as models declare them. MySQL's bytes are hex, which is what its macro takes them for."""
    return dict(COLUMNS[table]) if source == "mysql" else in_base64(COLUMNS[table])


def object_of(source: str, table: str) -> str:
    """Return the object of a table: schema and table in one name, in the source's case."""
    return f"SHOP_{table.upper()}" if source == "oracle" else f"shop_{table}"


def table_of(source: str, table: str) -> str:
    """Return the name of a table as a model's `table` has it."""
    return object_of(source, table).replace("_", ".", 1)


def delivered(source: str, delivery: int) -> Counter[str]:
    """Return the number of records of each object in one delivery, counted in its JSON files."""
    return Counter(json.loads(line)["object"] for line in _lines(source, delivery))


def lines(source: str, table: str) -> Iterator[str]:
    """Yield the delivered records of a table, as often as they were."""
    for delivery in DELIVERIES:
        for line in _lines(source, delivery):
            if json.loads(line)["object"] == object_of(source, table):
                yield line


def _lines(source: str, delivery: int) -> Iterator[str]:
    for file in sorted((CAPTURE / f"{source}_json" / str(delivery)).rglob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            yield from lines


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else repr(value + 0.0) if isinstance(value, float) else value


def _parsed(text: str) -> list[list[str | None]]:
    """Parse CSV one character at a time: None is what stands outside of quotes as \\N."""
    rows: list[list[str | None]] = []
    row: list[str | None] = []
    value, quoted, inside, at = "", False, False, 0
    while at < len(text):
        character = text[at]
        at += 1
        if inside and character != '"':
            value += character
        elif inside and text[at : at + 1] == '"':
            value += '"'
            at += 1
        elif inside:
            inside = False
        elif character == '"':
            quoted = inside = True
        elif character in ",\n":
            row.append(None if value == "\\N" and not quoted else value)
            value, quoted = "", False
            if character == "\n":
                rows.append(row)
                row = []
        else:
            value += character
    assert not (row or value or inside)
    return rows
