"""The log orders the changes of a row; a clock that was set back and a log that began anew are named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory
from pyspark.sql import SparkSession

DAY = "2026-11-21T"


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


class Stream:
    """A model of one source over changes (id, value, time of day, metadata), in one batch."""

    def __init__(
        self, memory: Memory, schema: str, source: str, changes: list[tuple[int, str, str, dict[str, Any]]],
        generations: list[Any] | None = None,
    ) -> None:  # fmt: skip
        self.project = memory.project(schema)
        self.memory, self.schema = memory, schema
        records = [
            event(source, {"id": id_, "value": value}, "UPDATE", source_timestamp=f"{DAY}{at}Z", metadata=metadata)
            for id_, value, at, metadata in changes
        ]
        memory.stage(f"{schema}.changes", [Staged(record, "things", 1) for record in records])
        self.project.source(schema, "changes")
        call = f"datastream_{source}(source('lake', 'changes'), object='things', generations={generations or []!r})"
        self.project.model(
            "things",
            f"{{{{ config(materialized='current_view', unique_key='id') }}}}\n{{{{ reconcile.{call} }}}}",
            {"id": "bigint", "value": "string"},
        )
        self.project.run("things")

    @property
    def rows(self) -> dict[int, str]:
        return {row.id: row.value for row in self.memory.rows(f"{self.schema}.things")}

    def failing(self, test: str) -> list[Any]:
        return self.project.failing(test, "things")


BACK = {
    "postgresql": ({"lsn": "0/100"}, {"lsn": "0/200"}),
    "sqlserver": ({"lsn": "0:0:9"}, {"lsn": "0:0:a"}),
}


@pytest.mark.parametrize("source", BACK)
def test_when_a_clock_is_set_back_the_log_orders_and_the_change_is_named(memory: Memory, source: str) -> None:
    old, new = BACK[source]
    stream = Stream(
        memory, f"clock_{source}", source,
        [(1, "old", "12:00:05.000", old), (1, "new", "12:00:04.500", new), (2, "other", "12:00:05.000", new)],
    )  # fmt: skip
    assert stream.rows == {1: "new", 2: "other"}
    (found,) = stream.failing("time_agrees_with_log")
    assert (found.id, found._change_time < found.time_before) == (1, True)
    assert stream.failing("log_is_one") == []


ANEW = {
    "mysql": (
        {"log_file": "mysql-bin.000458", "log_position": 9},
        {"log_file": "mysql-bin-changelog.000002", "log_position": 4},
    ),
    "postgresql": ({"lsn": "16/CB002DB0"}, {"lsn": "0/100"}),
    "oracle": ({"scn": 15869128507100}, {"scn": 700}),
}


@pytest.mark.parametrize("source", ANEW)
def test_a_log_that_began_anew_is_named_with_the_generation_to_declare(memory: Memory, source: str) -> None:
    old, new = ANEW[source]
    changes = [
        (1, "old", "08:30:00", old),
        (2, "old", "08:40:00", old),
        (1, "new", "11:05:00", new),
        (3, "new", "11:06:00", new),
    ]
    wrong = Stream(memory, f"anew_{source}", source, changes)
    assert wrong.rows == {1: "old", 2: "old", 3: "new"}
    (found,) = wrong.failing("log_is_one")
    assert found.finding == (
        "positions fell while times rose: the log seems to have begun anew by 2026-11-21 11:05:00Z; if it did, add the "
        "time when it did to generations"
    )
    assert (found.changes, found.place_since < found.place_before) == (2, True)
    right = Stream(memory, f"again_{source}", source, changes, ["2026-11-21 10:00:00Z"])
    assert right.rows == {1: "new", 2: "old", 3: "new"}
    assert right.failing("log_is_one") == right.failing("time_agrees_with_log") == []


def test_a_log_that_goes_on_has_no_finding(memory: Memory) -> None:
    hours = [(hour, f"v{hour}", f"{hour:02}:00:00", {"lsn": f"0/{hour:X}0"}) for hour in range(1, 24)]
    stream = Stream(memory, "log_goes_on", "postgresql", [*hours, (5, "later", "09:59:59", {"lsn": "0/85"})])
    assert stream.failing("log_is_one") == stream.failing("time_agrees_with_log") == []
