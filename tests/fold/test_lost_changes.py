"""A tenth of the capture's changes is lost for good; one snapshot repairs every row, whatever its source."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from datastream import Staged
from lost_changes import kept, position
from memory import Memory
from pyspark.sql import SparkSession
from shop import different
from truth import (
    COLUMNS,
    KEYS,
    SOURCES,
    counted,
    declared,
    object_of,
    rows_of_snapshot,
    table_of,
    true_rows,
)


def snapshot_of(source: str, table: str, number: int, last: Any, taken: datetime) -> list[Staged]:
    """Return a snapshot of the rows that the source has in the end, as the job stages it."""
    rows = rows_of_snapshot(table)
    kind, at = position(source, last)
    name = object_of(source, table)
    cut = {
        "number": number, "object": name, "place": number, "snapshot": f"s{number}", "position_kind": kind,
        "position": at, "uncertainty": "1 hour", "taken_at": taken.isoformat() + "Z", "key": KEYS[table],
        "columns": COLUMNS[table], "rows": len(rows),
    }  # fmt: skip
    staged = [Staged(json.dumps(cut), "#snapshot", 0, source="snapshot")]
    return staged + [Staged(json.dumps({"row": row}), f"#snapshot of {name}", 0, source="snapshot") for row in rows]


@pytest.mark.parametrize(
    "source",
    [pytest.param(source, marks=pytest.mark.soak if source == "oracle" else pytest.mark.matrix) for source in SOURCES],
)
def test_every_row_is_right_again_after_one_snapshot_although_a_tenth_of_the_changes_is_lost(
    spark: SparkSession, source: str
) -> None:
    chance = random.Random(7)
    with Memory(spark) as memory:
        schema, staging = f"lost_{source}", f"lost_{source}_lake.changes"
        project = memory.project(schema)
        project.source(f"{schema}_lake", "changes")
        options = ", meta={'row_ids': false}" if source == "oracle" else ""
        for table, key in KEYS.items():
            for name, materialized in ((table, "current_state"), (f"{table}_history", "history")):
                project.model(
                    name,
                    f"{{{{ config(materialized='{materialized}', unique_key={key}{options}) }}}}\n"
                    f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), "
                    f"table='{table_of(source, table)}') }}}}",
                    declared(source, table),
                    data_tests=["ledger_balances"],
                )
        models = [*KEYS, *(f"{table}_history" for table in KEYS)]

        def append(batch: int, rows: list[Staged]) -> None:
            memory.stage(staging, [row._replace(batch=batch) for row in rows])
            memory.keep(staging, memory.table(staging), {"reconcile.snapshot_append": "beside-0/0/0"})

        def wrong() -> dict[str, Any]:
            found = {}
            for table in KEYS:
                now = memory.table(f"{schema}.{table}_history").where("is_current").select(*COLUMNS[table])
                rows = {"rows": counted(memory.table(f"{schema}.{table}")), "history": counted(now)}
                if differences := different(rows, true_rows(table)):
                    found[table] = differences
            return found

        staged, newest, latest = list[Staged](), dict[str, Any](), datetime.min
        for table in KEYS:
            of_table = kept(source, table, chance)
            assert len(of_table.lost) > 100
            staged += [Staged(line, object_of(source, table), 0) for line in of_table.lines]
            newest[table] = of_table.newest
            latest = max(latest, of_table.latest)
        chance.shuffle(staged)
        half = len(staged) // 2
        append(1, staged[:half])
        project.run(*models)
        append(2, staged[half:])
        project.run(*models)
        assert wrong().keys() == KEYS.keys(), "nothing of it was missing"

        taken = latest + timedelta(days=1, hours=1)
        append(3, [row for table in KEYS for row in snapshot_of(source, table, 1, newest[table], taken)])
        said = project.run(*models)
        assert wrong() == {}
        assert all("repaired at " in sentence and "in doubt" not in sentence for sentence in said.values()), said
        for model in models:
            assert not project.failing_tests(model)

        # What was staged before the snapshot comes again, and another equal snapshot.
        append(4, staged[::7])
        later = taken + timedelta(hours=1)
        append(5, [row for table in KEYS for row in snapshot_of(source, table, 2, newest[table], later)])
        said = project.run(*models)
        assert all(": 0 inserted, 0 updated, 0 deleted" in sentence for sentence in said.values()), said
        assert wrong() == {}
        project.run(*models, full_refresh=True)
        assert wrong() == {}
