"""What the views of every project show: how far each staging table has come, and what no model takes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory
from pyspark.sql import SparkSession
from spanner import cut


def came(object_: str | None, batch: int, at: str, record: str = "", source: str = "datastream") -> Staged:
    """Return a row of staging, the record of a change of that time."""
    return Staged(record or event("postgresql", {"id": batch}, source_timestamp=at), object_, batch, source=source)  # type: ignore[arg-type]


STAGED = [
    came("shop.one", 1, "2026-11-21T10:00:00Z"),
    came("shop.one", 2, "2026-11-21T10:00:30Z"),
    came("shop.one", 2, "2026-11-21T10:00:20Z"),  # the newest of the last batch counts
    came("shop.two", 1, "2026-11-21T11:00:00Z"),  # no model reads it
    came("shop.one", 1, "2026-11-21T12:00:00Z"),  # of a batch before
    came("#odd", 1, "2026-11-21T09:00:00Z"),  # as no job names what it stages for itself
    came(None, 2, "", record="{torn"),
    came("Things", 2, "", record=json.dumps({"table_name": "Things"}), source="spanner"),
    *(
        came("#cut", batch, "", record=cut(f"2026-11-21T12:0{batch}:00.123456789Z", "2026-11-21T12:00:00Z"),
             source="spanner")
        for batch in (1, 2)
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        memory.stage("lake.changes", STAGED)
        project = memory.project("monitored")
        project.source("lake", "changes")
        for name in ("one", "three"):
            project.model(
                name,
                "{{ config(materialized='current_state', unique_key='id') }}\n"
                f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop.{name}') }}}}",
                {"id": "bigint"},
            )
        assert project.run("reconcile_lag", "reconcile_unrouted") == {
            "reconcile_lag": "MADE ANEW", "reconcile_unrouted": "MADE ANEW",
        }  # fmt: skip
        yield memory


def test_what_no_model_takes_is_shown_as_it_came_with_the_reason(memory: Memory) -> None:
    rows = memory.rows("monitored.reconcile_unrouted")
    unread, nameless = "no model reads this object", "the record names no object"
    assert sorted((row.object or "", row.reason, row.batch, row.staging) for row in rows) == [
        ("", nameless, 2, "lake.changes"), ("#odd", unread, 1, "lake.changes"),
        ("Things", unread, 2, "lake.changes"), ("shop.two", unread, 1, "lake.changes"),
    ]  # fmt: skip
    unrouted = (None, "#odd", "Things", "shop.two")
    assert {row.record for row in rows} == {row.record for row in STAGED if row.object in unrouted}


def test_a_stream_has_come_to_the_newest_change_of_the_last_batch_or_to_its_last_cut(memory: Memory) -> None:
    rows = memory.rows("monitored.reconcile_lag")
    shown: dict[Any, Any] = {(row.source, row.object): (str(row.up_to), row.batch, row.is_estimate) for row in rows}
    assert shown == {
        ("datastream", "shop.one"): ("2026-11-21 10:00:30", 2, False),
        ("datastream", "shop.two"): ("2026-11-21 11:00:00", 1, False),
        ("datastream", "#odd"): ("2026-11-21 09:00:00", 1, False),
        ("datastream", None): ("None", 2, False),
        ("spanner", None): ("2026-11-21 12:02:00.123456", 2, False),
    }
    assert len(rows) == 5
    assert all((row.lag_seconds is None) == (row.up_to is None) for row in rows)
    assert {row.is_stalled for row in rows} == {None}
