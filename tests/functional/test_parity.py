"""`reconcile.parity` at a position, by dbt on tables of a format: versions of both sides are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event
from file_formats import file_format
from projects import Project
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, to_timestamp

NOW = datetime.now(UTC)
TAKEN = NOW - timedelta(hours=3)
SCHEMA, LAKE = "parity", "parity_lake"
COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)"}
SNAPSHOT = {
    "reconcile.snapshot": "jdbc",
    "reconcile.snapshot.position_kind": "pg_snapshot",
    "reconcile.snapshot.position": "12:14:12",
}


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Things:
    """A model of one table, its staging table, and snapshots of the source as the job would have taken them."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.batches = spark, 0
        self.project = Project(root / "project", SCHEMA)
        self.project.source(LAKE, "changes", "things_source")
        arguments = {"compare_to": "source('lake', 'things_source')", "key": "id", "store_values": True}
        self.project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_postgresql(source('lake', 'changes'), 'shop.things') }}",
            COLUMNS,
            data_tests=[{"reconcile.parity": {"name": "parity_of_things", "arguments": arguments}}],
        )
        spark.sql(f"create schema if not exists {LAKE}")

    def change(self, row: Mapping[str, Any], kind: str, at: datetime, **metadata: Any) -> str:
        """Return a record of a row."""
        return event("postgresql", row, kind, metadata=metadata, source_timestamp=text(at))

    def append(self, *records: str, at: datetime) -> None:
        """Append a batch, which came at that time."""
        self.batches += 1
        staged = self.spark.createDataFrame(
            [Staged(record, "shop.things", self.batches) for record in records],
            "record string, object string, batch bigint, origin string, source string",
        ).select("record", "source", "object", "origin", "batch", to_timestamp(lit(text(at))).alias("appended_at"))
        writer = staged.coalesce(1).write.format(file_format()).mode("append").partitionBy("object")
        writer.saveAsTable(f"{LAKE}.changes")

    def snapshot(self, *rows: tuple[Any, ...]) -> None:
        """Let the source have these rows at the position."""
        frame = self.spark.createDataFrame(list(rows), ", ".join(f"`{name}` string" for name in COLUMNS))
        typed = frame.selectExpr(*(f"cast(`{name}` as {kind}) as `{name}`" for name, kind in COLUMNS.items()))
        writer = typed.writeTo(f"{LAKE}.things_source").using(file_format())
        for name, value in {**SNAPSHOT, "reconcile.snapshot.taken_at": text(TAKEN)}.items():
            writer = writer.tableProperty(name, value)
        writer.createOrReplace()

    def run(self) -> None:
        self.project.dbt("run", "--select", "things")

    def test(self) -> dict[str, Any]:
        """Run the test, and return what was written down of the run."""
        outcome = self.project.dbt("test", "--select", "things", succeed=False)
        (result,) = (result for result in outcome.result if result.node.name == "parity_of_things")
        assert result.status in ("pass", "fail"), result.message
        run = self.spark.table(f"{SCHEMA}.reconcile_parity").orderBy("recorded_at").collect()[-1].asDict()
        assert outcome.success == (run["verdict"] == "match")
        return run

    def rows(self, run: Mapping[str, Any]) -> dict[str, tuple[str, str | None, Any]]:
        """Return {id: (verdict, difference, {column: (model, source)})} of a run."""
        differences = self.spark.table(f"{SCHEMA}.reconcile_parity_differences")
        return {
            json.loads(row.key)["id"]: (
                row.verdict,
                row.difference,
                {c.column: (c.model, c.source) for c in row.columns} if row.columns else None,
            )
            for row in differences.where(f"run_id = '{run['run_id']}'").collect()
        }


@pytest.mark.matrix
def test_what_a_snapshot_of_postgresql_does_not_see_is_left_out_and_what_is_merged_later_does_no_harm(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Transaction 12 was open; 14 came later. What rows come to is proven by `tests/fold/test_parity.py`."""
    things = Things(spark, tmp_path)
    early, late = TAKEN - timedelta(minutes=9), TAKEN + timedelta(minutes=9)
    old = {"name": "a", "amount": "1"}
    things.append(
        *(things.change({"id": i, **old}, "INSERT", early, tx_id="10", lsn=f"0/{i}") for i in range(1, 7)),
        things.change({"id": 1, **old, "name": "open"}, "UPDATE", late, tx_id="12", lsn="0/20"),
        at=TAKEN - timedelta(minutes=1),
    )
    things.run()
    things.append(
        things.change({"id": 2, **old, "name": "seen"}, "UPDATE", early, tx_id="13", lsn="0/30"),
        things.change({"id": 3, **old, "name": "later"}, "UPDATE", late, tx_id="14", lsn="0/40"),
        things.change({"id": 4, **old}, "DELETE", late, tx_id="14", lsn="0/41"),
        things.change({"id": 9, **old, "name": "new"}, "INSERT", late, tx_id="14", lsn="0/42"),
        at=late,
    )
    things.snapshot(*((i, "seen" if i == 2 else "a", "1") for i in range(1, 7)))
    for merged in (False, True):
        if merged:
            things.run()
        run = things.test()
        assert things.rows(run) == {}, merged
        assert (run["compared"], run["matched"], run["is_delivered"]) == (6, 6, True)
        assert run["model_version"] is not None and run["source_version"] is not None
    # And a row that differs is found, a quiet one in the base table as well as one that was folded.
    things.snapshot((1, "b", "1"), (2, "seen", "1"), (3, "later", "1"), (4, "a", "1"), (5, "b", "1"), (7, "a", "1"))
    assert things.rows(things.test()) == {
        "1": ("confirmed", "different", {"name": ("a", "b")}),
        "3": ("confirmed", "different", {"name": ("a", "later")}),
        "5": ("confirmed", "different", {"name": ("a", "b")}),
        "6": ("confirmed", "unexpected", None),
        "7": ("confirmed", "missing", None),
    }
