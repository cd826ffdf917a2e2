"""The log orders the changes of a row; a clock that was set back and a log that began anew are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory
from pyspark.sql import SparkSession

DAY = "2026-11-21T"


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


Change = tuple[int, str, str, dict[str, Any]]  # id, value, time of day, metadata


def updated(source: str, change: Change, **envelope: Any) -> str:
    id_, value, at, metadata = change
    payload = {"id": id_, "value": value}
    return event(source, payload, "UPDATE", source_timestamp=f"{DAY}{at}Z", metadata=metadata, **envelope)


class Stream:
    """A model of one source over records, run after each batch of them."""

    def __init__(
        self, memory: Memory, schema: str, source: str, records: Iterable[str] = (),
        generations: list[Any] | None = None, materialized: str = "current_view",
        meta: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.project = memory.project(schema)
        self.memory, self.schema, self._batch = memory, schema, 0
        self.project.source(schema, "changes")
        call = f"datastream_{source}(source('lake', 'changes'), object='things', generations={generations or []!r})"
        self.project.model(
            "things",
            f"{{{{ config(materialized='{materialized}', unique_key='id', meta={meta or {}!r}) }}}}\n"
            f"{{{{ reconcile.{call} }}}}",
            {"id": "bigint", "value": "string"},
        )
        self.said = self.run(records)

    def run(self, records: Iterable[str]) -> str:
        """Stage one more batch, run the model, and return what it says."""
        self._batch += 1
        self.memory.stage(f"{self.schema}.changes", [Staged(record, "things", self._batch) for record in records])
        return str(self.project.run("things")["things"])

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
    changes = [(1, "old", "12:00:05.000", old), (1, "new", "12:00:04.500", new), (2, "other", "12:00:05.000", new)]
    stream = Stream(memory, f"clock_{source}", source, [updated(source, change) for change in changes])
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
    records = [updated(source, change) for change in changes]
    wrong = Stream(memory, f"anew_{source}", source, records)
    assert wrong.rows == {1: "old", 2: "old", 3: "new"}
    (found,) = wrong.failing("log_is_one")
    assert found.finding == (
        "changes from 2026-11-21 11:05:00Z on are later in time, but earlier in the log: the log seems to have begun "
        "anew at this time or earlier; if it did, find the time and add it to generations"
    )
    assert (found.changes, found.position_since < found.position_before) == (2, True)
    right = Stream(memory, f"again_{source}", source, records, ["2026-11-21 10:00:00Z"])
    assert right.rows == {1: "new", 2: "old", 3: "new"}
    assert right.failing("log_is_one") == right.failing("time_agrees_with_log") == []


@pytest.mark.parametrize("materialized", ["current_state", "history"])
def test_a_run_says_how_many_changes_lost_to_older_ones_as_after_a_log_that_began_anew(
    memory: Memory, materialized: str
) -> None:
    old, new = ANEW["mysql"]

    def at(time: str, id_: int, place: dict[str, Any], **envelope: Any) -> str:
        return updated("mysql", (id_, time, time, place), **envelope)

    first = [at("08:30:00", id_, {**old, "log_position": id_}) for id_ in (1, 2, 3, 4)]
    stream = Stream(memory, f"anew_{materialized}", "mysql", first, materialized=materialized)
    assert "lost to changes" not in stream.said
    # Late, but not by an hour; a row that was not there; a backfill; and one that the log has further on.
    late, backfill = {**old, "log_position": 0}, READ_METHODS["mysql"][1]
    said = stream.run([
        at("09:29:59", 1, late), at("11:00:00", 5, new), at("11:00:00", 2, late, read_method=backfill),
        at("11:00:00", 3, {**old, "log_position": 99}),
    ])  # fmt: skip
    assert "lost to changes" not in said
    said = stream.run([at("09:30:00", 4, new), at("11:00:00", 2, new), at("11:00:01", 3, new)])
    assert (
        "2 lost to changes that are later in the log, but an hour or more earlier in time (the first that lost is of "
        "2026-11-21 09:30:00Z): if the log began anew at this time or earlier, add the time when it did to "
        "generations; see the test log_is_one"
    ) in said


def test_a_log_that_goes_on_has_no_finding(memory: Memory) -> None:
    hours = [(hour, f"v{hour}", f"{hour:02}:00:00", {"lsn": f"0/{hour:X}0"}) for hour in range(1, 24)]
    changes = [*hours, (5, "later", "09:59:59", {"lsn": "0/85"})]
    stream = Stream(memory, "log_goes_on", "postgresql", [updated("postgresql", change) for change in changes])
    assert stream.failing("log_is_one") == stream.failing("time_agrees_with_log") == []


SHIFT = [(1, "UPDATE-DELETE", "R1"), (2, "UPDATE-INSERT", "R1"), (2, "UPDATE-DELETE", "R2"), (3, "UPDATE-INSERT", "R2")]
Place = Callable[[int, str], dict[str, Any]]
PLACES: dict[str, Place] = {
    "oracle": lambda place, row: {"scn": 9, "rs_id": f"0x1.2.{place:04x}", "ssn": 0, "tx_id": "t2", "row_id": row},
    "postgresql": lambda place, row: {"lsn": f"0/{place:X}0", "tx_id": "t2"},
}
BEFORE: dict[str, Place] = {
    "oracle": lambda place, row: {"scn": 1, "rs_id": f"0x1.1.{place:04x}", "ssn": 0, "tx_id": "t1", "row_id": row},
    "postgresql": lambda place, row: {"lsn": f"0/{place}", "tx_id": "t1"},
}
# The rows before, what one transaction does, the keys that a model without addresses loses, and the rows in the end.
AS_TOLD = {
    "two rows shift": (["R1", "R2"], SHIFT, {2}, {2: "R1", 3: "R2"}),
    "one row moves on":
        (["R1"], [*SHIFT[:2], (2, "UPDATE-DELETE", "R1"), (5, "UPDATE-INSERT", "R1")], set(), {5: "R1"}),
    "one row moves to and fro":
        (["R1"], [*SHIFT[:2], (2, "UPDATE-DELETE", "R1"), (1, "UPDATE-INSERT", "R1")], set(), {1: "R1"}),
    "a row is updated and deleted": (["R1", "R2"], [(2, "UPDATE", "R2"), (2, "DELETE", "R2")], set(), {1: "R1"}),
    "a row comes and goes": ([], [(7, "INSERT", "R7"), (7, "DELETE", "R7")], set(), {}),
    "a key is taken when it is free": (["R1", "R2"], [(2, "DELETE", "R2"), *SHIFT[:2]], set(), {2: "R1"}),
}  # fmt: skip


@pytest.mark.parametrize(("source", "row_ids"), [("postgresql", True), ("oracle", True), ("oracle", False)])
def test_a_key_that_a_transaction_passes_on_is_followed_by_addresses_and_named_without_them(
    memory: Memory, source: str, row_ids: bool
) -> None:
    """Each case has keys of its own, a thousand apart."""
    records, lost, rows = [], set(), {}
    for case, (before, changes, shifted, end) in enumerate(AS_TOLD.values()):
        there = [(number, "INSERT", row) for number, row in enumerate(before, 1)]
        for places, told in ((BEFORE, there), (PLACES, changes)):
            for place, (key, change_type, row) in enumerate(told, 1):
                metadata = places[source](16 * case + place, row)
                payload = {"id": 1000 * case + key, "value": row}
                records.append(event(source, payload, change_type, metadata=metadata))
        lost |= {1000 * case + key for key in shifted}
        rows |= {1000 * case + key: row for key, row in end.items()}
    stream = Stream(memory, f"shifted_{source}_{row_ids}", source, records, meta={} if row_ids else {"row_ids": False})
    if source == "oracle" and row_ids:
        assert stream.rows == rows
    else:
        assert {row.id for row in stream.failing("no_shifted_keys")} == lost
        assert stream.rows == {key: row for key, row in rows.items() if key not in lost}
