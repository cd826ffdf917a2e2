"""Rows of a source, and what may become of one in a table that should equal it: corruptions of every kind and type."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, NamedTuple

from canonical_form import spark_column
from datastream import event, in_base64
from reconcile_jobs.proofs.canonical_form import Field, agreed, field_texts
from reconcile_jobs.proofs.comparison import Comparison, Table, compared
from reconcile_jobs.proofs.dialects import Spark

COLUMNS = {
    "id": "bigint",
    "word": "string",
    "blank": "string",
    "amount": "decimal(38,10)",
    "number": "bigint",
    "small": "int",
    "ratio": "double",
    "zero": "double",
    "nothing": "float",
    "known": "boolean",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "bytes": "binary",
    "words": "array<string>",
    "counts": "map<string, int>",
}
DECLARED = in_base64(COLUMNS)
DDL = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
# What a snapshot of the rows says of itself.
SNAPSHOT = {
    "reconcile.snapshot": "jdbc",
    "reconcile.snapshot.position_kind": "pg_snapshot",
    "reconcile.snapshot.position": "20:20:",
    "reconcile.snapshot.taken_at": "2026-11-22 00:00:00+00",
}
Row = dict[str, Any]
DIGITS = Context(prec=38)
FAR = 10**6  # from a row's id to that of an extra row


def true_rows(chance: random.Random, number: int) -> dict[int, Row]:
    """Return the rows of the source, by id."""
    rows = {}
    for id in range(1, number + 1):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(10**13))
        rows[id] = {
            "id": id,
            "word": f"café {chance.randrange(10**6)}",
            "blank": "" if id % 2 else None,
            "amount": Decimal(chance.randrange(-(10**37), 10**37)).scaleb(-10, DIGITS),
            "number": chance.randrange(-(2**62), 2**62),
            "small": chance.randrange(-(2**31), 2**31),
            "ratio": math.nan if id % 7 == 0 else chance.uniform(-1e9, 1e9),
            "zero": 0.0,
            "nothing": 0.0,
            "known": bool(id % 3),
            "day": date(2026, 1, 1) + timedelta(days=id % 300),
            "at": moment,
            "local": moment.replace(tzinfo=None),
            "bytes": chance.randbytes(5),
            "words": ["a", None, f"b{id}"],
            "counts": {"x": id, "y": 1},
        }
    return rows


def record(row: Row) -> str:
    """Return the record by which Datastream would deliver a row."""
    said = {
        **row,
        "amount": None,
        "ratio": None if math.isnan(row["ratio"]) else row["ratio"],
        "day": row["day"].isoformat(),
        "at": row["at"].isoformat(),
        "local": row["local"].isoformat(),
        "bytes": None,
    }
    payload = json.dumps(said, ensure_ascii=False)
    payload = payload.replace('"amount": null', f'"amount": {row["amount"]:f}')
    if math.isnan(row["ratio"]):
        payload = payload.replace('"ratio": null', '"ratio": "NaN"')
    payload = payload.replace('"bytes": null', f'"bytes": "{b64encode(row["bytes"]).decode()}"')
    return event("postgresql", payload, metadata={"lsn": f"0/{row['id']:X}", "tx_id": "10"})


class Kind(NamedTuple):
    """What has to be found, of which column, and what becomes of a row: it is gone, another, or two."""

    difference: str
    column: str | None
    corrupted: Callable[[Row], list[Row]]


def another(column: str, value: Callable[[Row], Any]) -> Kind:
    """Return the kind by which one column has another value."""
    return Kind("different", column, lambda row: [{**row, column: value(row)}])


KINDS = {
    "the last digit of a decimal": another("amount", lambda row: DIGITS.add(row["amount"], Decimal("1e-10"))),
    "the last digit of a bigint": another("number", lambda row: row["number"] + 1),
    "the last digit of an int": another("small", lambda row: row["small"] ^ 1),
    "the last bit of a double": another(
        "ratio", lambda row: 0.0 if math.isnan(row["ratio"]) else math.nextafter(row["ratio"], math.inf)
    ),
    "a NULL for a number": another("ratio", lambda row: None),
    "the sign of a zero": another("zero", lambda row: -0.0),
    "the sign of a zero of four bytes": another("nothing", lambda row: -0.0),
    "a trailing space": another("word", lambda row: row["word"] + " "),
    "the other case": another("word", lambda row: row["word"].upper()),
    "another Unicode normal form": another("word", lambda row: unicodedata.normalize("NFD", row["word"])),
    "NULL against empty": another("blank", lambda row: None if row["blank"] == "" else ""),
    "a truth": another("known", lambda row: not row["known"]),
    "one day": another("day", lambda row: row["day"] + timedelta(days=1)),
    "one microsecond": another("at", lambda row: row["at"] + timedelta(microseconds=1)),
    "one microsecond without a zone": another("local", lambda row: row["local"] - timedelta(microseconds=1)),
    "a byte more": another("bytes", lambda row: row["bytes"] + b"\0"),
    "no bytes": another("bytes", lambda row: b""),
    "an element": another("words", lambda row: ["a", "", row["words"][2]]),
    "the order of elements": another("words", lambda row: row["words"][::-1]),
    "a value of a map": another("counts", lambda row: {**row["counts"], "y": None}),
    "a key of a map": another("counts", lambda row: {"x": row["counts"]["x"], "Y": 1}),
    "a missing row": Kind("missing", None, lambda row: []),
    "an extra row": Kind("unexpected", None, lambda row: [row, {**row, "id": row["id"] + FAR}]),
    "a duplicated row": Kind("unexpected", None, lambda row: [row, row]),
}


class Corruptions:
    """One corruption of each of so many rows, of all kinds in turn."""

    def __init__(self, rows: dict[int, Row], number: int) -> None:
        chance = random.Random(7)
        self.kinds = dict(zip(chance.sample(sorted(rows), number), self._in_turn(chance), strict=False))
        # The rows that the table has instead of those of `kinds`.
        self.instead = [row for id, kind in self.kinds.items() for row in KINDS[kind].corrupted(rows[id])]

    @property
    def expected(self) -> dict[str, tuple[str, str | None]]:
        """What has to be found, by the id as the comparison writes it down."""
        return {
            str(id + FAR if kind == "an extra row" else id): (KINDS[kind].difference, KINDS[kind].column)
            for id, kind in self.kinds.items()
        }

    @staticmethod
    def _in_turn(chance: random.Random) -> Iterator[str]:
        while True:
            yield from chance.sample(list(KINDS), len(KINDS))


def found(differences: list[Any]) -> list[tuple[str, tuple[str, str | None]]]:
    """Return what a comparison wrote down: id, difference, and the columns that differ."""
    assert {row.verdict for row in differences} <= {"confirmed"}
    return [
        (json.loads(row.key)["id"], (row.difference, ", ".join(c.column for c in row.columns) if row.columns else None))
        for row in differences
    ]


def fields() -> list[Field]:
    """Return the columns as a proof has them, of which all have a canonical form."""
    return [agreed(spark_column(name, kind), kind)[1] for name, kind in COLUMNS.items()]


def by_checksums(spark: Any, source: Any, model: Any) -> tuple[Comparison, set[str]]:
    """Compare two frames by the sums of their buckets, and return the ids of the rows that differ."""
    views = {"checksums_of_source": source, "checksums_of_model": model}
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)
    of_row = fields()
    sides = [Table(Spark(), name, of_row[:1], of_row, lambda query: spark.sql(query).collect()) for name in views]
    result = compared(*sides)
    for name in views:
        spark.catalog.dropTempView(name)
    return result, {str(field_texts(key, ["number"])[0]) for key in result.keys}
