"""Ten thousand single corruptions of a base table, of every kind and type: each is found; without any, none is."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event, stage
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from tables import DELETED

ROWS, CORRUPTIONS = 12_000, 10_000
SCHEMA, LAKE = "parity_corruptions", "parity_corruptions_lake"
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
Row = dict[str, Any]
DIGITS = Context(prec=38)


def true_rows(chance: random.Random) -> dict[int, Row]:
    """Return the rows of the source, by id."""
    rows = {}
    for id in range(1, ROWS + 1):
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
    payload = payload.replace('"bytes": null', f'"bytes": "{base64(row["bytes"])}"')
    return event("postgresql", payload, metadata={"lsn": f"0/{row['id']:X}", "tx_id": "10"})


def base64(content: bytes) -> str:
    from base64 import b64encode

    return b64encode(content).decode()


# What becomes of a row: it is gone, another one is there too, or one column has another value.
def another(column: str, value: Callable[[Row], Any]) -> tuple[str, str | None, Callable[[Row], list[Row]]]:
    return "different", column, lambda row: [{**row, column: value(row)}]


KINDS: dict[str, tuple[str, str | None, Callable[[Row], list[Row]]]] = {
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
    "a missing row": ("missing", None, lambda row: []),
    "an extra row": ("unexpected", None, lambda row: [row, {**row, "id": row["id"] + 10**6}]),
    "a duplicated row": ("unexpected", None, lambda row: [row, row]),
}


class Corrupted:
    """A model that equals its source, at a position and without one, until its base table is corrupted."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.rows = spark, true_rows(random.Random(20261122))
        self.project = Project(root / "project", SCHEMA)
        self.project.source(LAKE, "changes", "source")
        arguments = {"compare_to": "source('lake', 'source')", "key": "id", "allowance": "1 second"}
        self.project.model(
            "corrupted",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.things') }}",
            COLUMNS,
            data_tests=[
                {"reconcile.parity": {"name": "at_the_position", "arguments": arguments}},
                {"reconcile.parity": {"name": "as_they_are", "arguments": {**arguments, "as_of": "now"}}},
            ],
        )
        spark.sql(f"create schema if not exists {LAKE}")
        stage(spark, f"{LAKE}.changes", (Staged(record(row), "shop.things", 1) for row in self.rows.values()))
        self.project.dbt("run", "--select", "corrupted")
        snapshot = self.frame(list(self.rows.values())).writeTo(f"{LAKE}.source").using(file_format())
        properties = {
            "": "jdbc",
            ".position_kind": "pg_snapshot",
            ".position": "20:20:",
            ".taken_at": "2026-11-22 00:00:00+00",
        }
        for name, value in properties.items():
            snapshot = snapshot.tableProperty(f"reconcile.snapshot{name}", value)
        snapshot.createOrReplace()

    def frame(self, rows: list[Row]) -> Any:
        return self.spark.createDataFrame(
            [tuple(row.values()) for row in rows], ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
        )

    def corrupt(self) -> dict[str, tuple[str, str | None]]:
        """Corrupt one row after the other; return what has to be found of each."""
        chance = random.Random(7)
        expected, instead = {}, []
        for id, kind in zip(chance.sample(range(1, ROWS + 1), CORRUPTIONS), self._kinds(chance), strict=False):
            difference, column, corrupted = KINDS[kind]
            instead += [(id, row) for row in corrupted(self.rows[id])]
            expected[str(id + 10**6 if kind == "an extra row" else id)] = (difference, column)
            if kind == "a missing row":
                instead.append((id, None))
        gone = self.spark.createDataFrame([(id,) for id, _ in instead], "id bigint").distinct()
        base = f"{SCHEMA}.corrupted__base"
        self.frame([row for _, row in instead if row]).createOrReplaceTempView("instead")
        gone.createOrReplaceTempView("gone")
        columns = ", ".join(f"`{name}`" for name in COLUMNS)
        own = f"_change_sequence, _change_time, _change_batch, {DELETED[file_format()]}"
        of_any = "'0000/1', current_timestamp(), 1L, false"
        self.spark.sql(
            f"insert overwrite {base} ({columns}, {own}) select {columns}, {own} from {base} "
            f"left anti join gone using (id) union all select {columns}, {of_any} from instead"
        )
        for view in ("instead", "gone"):
            self.spark.catalog.dropTempView(view)
        return expected

    @staticmethod
    def _kinds(chance: random.Random) -> Iterator[str]:
        while True:
            yield from chance.sample(list(KINDS), len(KINDS))

    def test(self) -> list[str]:
        """Run both tests; return how each ended."""
        outcome = self.project.dbt("test", "--select", "corrupted", succeed=False)
        results = {result.node.name: result.status for result in outcome.result}
        return [str(results[name]) for name in ("at_the_position", "as_they_are")]

    def found(self, test: str) -> list[tuple[str, tuple[str, str | None]]]:
        rows = self.spark.sql(
            f"select key, verdict, difference, columns.column as columns from {SCHEMA}.reconcile_parity_differences "
            f"where test = '{test}'"
        ).collect()
        assert {row.verdict for row in rows} <= {"confirmed"}
        return [
            (json.loads(row.key)["id"], (row.difference, ", ".join(row.columns) if row.columns else None))
            for row in rows
        ]


@pytest.mark.matrix
def test_ten_thousand_corruptions_are_found_and_named_and_without_any_none_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    corrupted = Corrupted(spark, tmp_path)
    assert corrupted.test() == ["pass", "pass"]
    runs = spark.table(f"{SCHEMA}.reconcile_parity").collect()
    assert [(run.compared, run.matched) for run in runs] == [(ROWS, ROWS)] * 2
    expected = corrupted.corrupt()
    assert len(expected) == CORRUPTIONS
    assert corrupted.test() == ["fail", "fail"]
    for test in ("at_the_position", "as_they_are"):
        found = corrupted.found(test)
        missed = {id: what for id, what in expected.items() if id not in dict(found)}
        assert missed == {}, list(missed.items())[:5]
        wrong = {id: (what, expected.get(id)) for id, what in found if expected.get(id) != what}
        assert wrong == {}, list(wrong.items())[:5]
        assert len(found) == CORRUPTIONS
