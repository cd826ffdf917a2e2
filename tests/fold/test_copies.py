"""Copies of a change under several ids, and ties: what is kept of them does not depend on what came first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from lakes import stored
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession

MATERIALIZED = ("current_state", "history")


def told(number: int, note: str, place: int, uuid: str, change_type: str = "UPDATE-INSERT") -> str:
    metadata = {"log_position": place}
    return event("mysql", {"id": number, "note": note}, change_type, metadata=metadata, uuid=uuid, object="things")


# By batch: the copy with the least id comes last; and the ties of one position.
BATCHES = [
    [told(1, "one", 4, "c"), told(1, "two", 9, "x"), told(2, "moved", 20, "d1", "UPDATE-DELETE")],
    [told(1, "one", 4, "b"), told(2, "moved", 20, "d2"), told(3, "this", 30, "t1")],
    [told(1, "one", 4, "a"), told(3, "that", 30, "t2"), told(3, "this", 30, "t1")],
]


@pytest.fixture(scope="module")
def project(spark: SparkSession) -> Iterator[MemoryProject]:
    """The same models, by increments and at once."""
    with Memory(spark) as memory:
        project = memory.project("copies")
        project.source("copies_lake", "changes", "all_changes")
        for materialized in MATERIALIZED:
            for ending, source in (("", "changes"), ("_at_once", "all_changes")):
                project.model(
                    f"{materialized}{ending}",
                    f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n"
                    f"{{{{ reconcile.datastream_mysql(source('lake', '{source}'), object='things') }}}}",
                    {"id": "bigint", "note": "string"},
                )
        staged = [Staged(text, "things", n) for n, records in enumerate(BATCHES, 1) for text in records]
        memory.stage("copies_lake.all_changes", staged)
        for batch in range(1, len(BATCHES) + 1):
            memory.stage("copies_lake.changes", [row for row in staged if row.batch == batch])
            project.run(*MATERIALIZED)
        project.run(*(f"{materialized}_at_once" for materialized in MATERIALIZED))
        yield project


@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_of_copies_the_same_one_is_kept_whenever_it_comes(project: MemoryProject, materialized: str) -> None:
    def rows(model: str) -> set[tuple[Any, ...]]:
        return {tuple(row) for row in stored(project.memory, f"copies.{model}__base").collect()}

    assert rows(materialized) == rows(f"{materialized}_at_once")
    if materialized == "history":
        kept = project.memory.table("copies.history__base").where("note = 'one'").collect()
        assert [row._change_id for row in kept] == ["a"]


@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_payloads_that_share_a_place_are_found_and_the_halves_of_an_update_are_none(
    project: MemoryProject, materialized: str
) -> None:
    (found,) = project.failing("one_payload_per_sequence", materialized)
    assert (found.id, found.payloads, found.change_ids) == (3, 2, ["t1", "t2"])


def test_a_records_place_in_the_order_does_not_follow_the_sessions_time_zone(spark: SparkSession) -> None:
    values = {
        "array<timestamp>": "array(timestamp'2026-01-01 00:00:00.000001Z')",
        "map<string,timestamp>": "map('a', timestamp'2026-01-01 00:00:00.000001Z')",
        "timestamp": "timestamp'2026-01-01 00:00:00.000001Z'",
    }
    with Memory(spark) as memory:
        macros, here = memory.project("zones").macros, spark.conf.get("spark.sql.session.timeZone")
        hashed = [", ".join(map(str, macros.values_to_hash(value, type))) for type, value in values.items()]
        seen = set()
        for zone in ("UTC", "America/New_York", "Asia/Kathmandu"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            seen.add(tuple(spark.sql(f"select {', '.join(f'xxhash64({of})' for of in hashed)}").collect()[0]))
        spark.conf.set("spark.sql.session.timeZone", here)
    assert len(seen) == 1
