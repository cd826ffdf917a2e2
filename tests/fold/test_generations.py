"""Generations: what comes of a log that began anew, and of a backfill that repairs a gap in the log.

What they cannot do is here too: a backfill says nothing of a row that was deleted in the gap.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory
from plain_dbt import PlainProject
from pyspark.sql import SparkSession
from recorder import Recorder

SOURCES = list(READ_METHODS)


def things(source: str, generations: Any) -> str:
    return (
        f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), '{source}', generations={generations!r}) }}}}"
    )


# --- stories: a log that began anew on the 21st, one that began on the 23rd, and a repair on the 22nd in between ------

# places in a log, in their order, which as text is another; AT is declared
SMALL, BEFORE, AT, BEHIND, LARGE = "small", "before", "at", "behind", "large"
PLACES: dict[str, dict[str, dict[str, Any]]] = {
    "oracle": {
        SMALL: {"scn": 7},
        BEFORE: {"scn": 9_999_999_999_999},
        AT: {"scn": 10_000_000_000_000},
        BEHIND: {"scn": 10_000_000_000_500},
        LARGE: {"scn": 100_000_000_000_000},
    },
    "mysql": {
        SMALL: {"log_file": "mysql-bin.999999", "log_position": 156500},
        BEFORE: {"log_file": "mysql-bin.1000000", "log_position": 99},
        AT: {"log_file": "mysql-bin.1000000", "log_position": 100},
        BEHIND: {"log_file": "mysql-bin.1000001", "log_position": 4},
        LARGE: {"log_file": "mysql-bin.1000002", "log_position": 4},
    },
    "postgresql": {
        SMALL: {"lsn": "0/9"},
        BEFORE: {"lsn": "0/A0"},
        AT: {"lsn": "9/0"},
        BEHIND: {"lsn": "10/0"},
        LARGE: {"lsn": "A0/0"},
    },
    "sqlserver": {
        SMALL: {"lsn": "9:1:1"},
        BEFORE: {"lsn": "a0:1:1"},
        AT: {"lsn": "a0:9:1"},
        BEHIND: {"lsn": "a0:10:1"},
        LARGE: {"lsn": "100:1:1"},
    },
}
READ = "2026-11-22T10:00:00Z"
BEGAN, BEGAN_AGAIN = "2026-11-21 00:00:00+00", "2026-11-23 00:00:00+00"


def repair(**position: Any) -> list[Any]:
    return [BEGAN, {**position, "read_timestamp": "2026-11-22 12:00:00+02"}, BEGAN_AGAIN]


GENERATIONS = {source: repair(**PLACES[source][AT]) for source in SOURCES}
# the position of the reading; of MySQL the time of the reading, before which a statement may lie
TOO_LATE = {
    **{source: repair(**PLACES[source][BEHIND]) for source in SOURCES},
    "mysql": [BEGAN, "2026-11-22 10:00:00+00", BEGAN_AGAIN],
}


class Told(NamedTuple):
    """A record: a change's value (None: a delete), time and place; a backfill row's value and time of reading."""

    value: str | None
    time: str
    place: str | None = None


class Story(NamedTuple):
    """What was delivered of one row, the value that it has, and the one that it has of a model without generations."""

    told: list[Told]
    truth: str | None
    without: str | None


BEFORE_THE_GAP = Told("before the gap", "2026-11-22T08:00:00Z", BEFORE)
AS_READ = Told("as read", READ)
AFTER = Told("after the repair", "2026-11-22T11:00:00Z", BEHIND)
OLD, NEW = Told("old log", "2026-11-20T12:00:00Z", LARGE), Told("new log", "2026-11-21T06:00:00Z", SMALL)
THIRD = Told("third log", "2026-11-23T06:00:00Z", SMALL)
# Its time is that of the statement.
OPEN = Told("open when it was read", "2026-11-22T09:30:00Z", AT)
STORIES = {
    "changed in a new log": Story([OLD, NEW], "new log", "old log"),
    "deleted in a new log": Story([OLD, NEW._replace(value=None)], None, "old log"),
    "changed in the gap": Story([BEFORE_THE_GAP, AS_READ], "as read", "before the gap"),
    "deleted before the gap": Story(
        [NEW, BEFORE_THE_GAP._replace(value=None), AS_READ], "as read", None
    ),
    # The limit: of a row that is no more nothing is read.
    "deleted in the gap": Story([BEFORE_THE_GAP], "before the gap", "before the gap"),
    "open when it was read": Story(
        [BEFORE_THE_GAP, OPEN, AS_READ], "open when it was read", "open when it was read"
    ),
    "changed after the repair": Story([BEFORE_THE_GAP, AS_READ, AFTER], "after the repair", "after the repair"),
    "deleted after the repair": Story([BEFORE_THE_GAP, AS_READ, AFTER._replace(value=None)], None, None),
    "read before the repair": Story(
        [BEFORE_THE_GAP, AS_READ._replace(time="2026-11-22T09:59:59.999Z")], "before the gap", "before the gap"
    ),
    "changed in a third log": Story([AS_READ, AFTER, THIRD], "third log", "after the repair"),
    "read from a third log": Story([AFTER, AS_READ._replace(time=THIRD.time)], "as read", "after the repair"),
}  # fmt: skip


def record(source: str, told: Told, story: str, delivery: int) -> str:
    payload = {"story": story, "delivery": delivery, "value": told.value}
    if told.place is None:
        method = READ_METHODS[source][1]
        return event(source, payload, read_method=method, read_timestamp=told.time, source_timestamp=told.time)
    change_type = "DELETE" if told.value is None else "UPDATE"
    said = {"source_timestamp": told.time, "read_timestamp": "2026-11-24T00:00:00Z"}
    return event(source, payload, change_type, metadata=PLACES[source][told.place], **said)


def deliveries(story: Story) -> list[list[tuple[int, Told]]]:
    """Return each order of the records, its first in batch 1 and the others in batch 2, and all of them at once."""
    spread = [[(min(at, 2), told) for at, told in enumerate(order, 1)] for order in itertools.permutations(story.told)]
    return [*spread, [(1, told) for told in story.told]]


Values = dict[str, set[str | None]]


class Deliveries:
    """All stories of all sources, in all deliveries, side by side."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.project = memory, memory.project("generations")
        self.project.source("generations_staging", "changes")
        staged = [
            Staged(record(source, told, name, number), source, batch)
            for source in SOURCES
            for name, story in STORIES.items()
            for number, delivery in enumerate(deliveries(story))
            for batch, told in delivery
        ]
        memory.stage("generations_staging.delivered", staged)

    def arrive(self, upto: int) -> None:
        self.memory.view(
            "generations_staging.changes",
            f"select * from `generations_staging`.`delivered` where batch <= {upto}",
        )

    def declare(self, model: str, source: str, generations: list[Any], materialized: str = "current_state") -> None:
        self.project.model(
            model,
            f"{{{{ config(materialized='{materialized}', unique_key=['story', 'delivery']) }}}}\n"
            + things(source, generations),
            {"story": "string", "delivery": "int", "value": "string"},
        )

    def values(self, model: str) -> Values:
        """Return the values that each story's row has, over all deliveries."""
        rows = {(row.story, row.delivery): row.value for row in self.memory.rows(f"generations.{model}")}
        return {
            name: {rows.get((name, number)) for number in range(len(deliveries(story)))}
            for name, story in STORIES.items()
        }

    def folded(self, source: str, generations: list[Any]) -> Values:
        """Return the values of a view that folds all records."""
        self.arrive(2)
        self.declare(f"{source}_view", source, generations, "current_view")
        self.project.run(f"{source}_view")
        return self.values(f"{source}_view")


@pytest.fixture(scope="module")
def delivered(spark: SparkSession) -> Iterator[Deliveries]:
    with Memory(spark) as memory:
        yield Deliveries(memory)


@pytest.mark.parametrize("source", SOURCES)
def test_every_delivery_gives_the_row_that_the_source_has(delivered: Deliveries, source: str) -> None:
    delivered.declare(source, source, GENERATIONS[source])
    for batch in (1, 2):
        delivered.arrive(batch)
        delivered.project.run(source)
    assert delivered.values(source) == {name: {story.truth} for name, story in STORIES.items()}
    assert delivered.memory.rows(f"generations.{source}__quarantine") == []


@pytest.mark.parametrize("source", SOURCES)
def test_without_generations_logs_are_mixed_up_and_a_repair_is_lost(delivered: Deliveries, source: str) -> None:
    assert delivered.folded(source, []) == {name: {story.without} for name, story in STORIES.items()}


@pytest.mark.parametrize("source", SOURCES)
def test_a_position_behind_an_open_transaction_loses_its_changes(delivered: Deliveries, source: str) -> None:
    truth = {name: {story.truth} for name, story in STORIES.items()}
    assert delivered.folded(source, TOO_LATE[source]) == {**truth, "open when it was read": {"as read"}}


# --- any records, any declaration ------------------------------------------------------------------------------------

EPOCH = datetime(2026, 11, 21, tzinfo=UTC)
# Coordinates are in milliseconds, times of logs to the microsecond.
MOMENTS = [EPOCH + timedelta(microseconds=1000 * after + more) for after in (0, 1, 9, 10) for more in (0, 1, 600)]
NUMBERS = [8, 9, 10, 99, 100, 101]
DECLARATIONS = 5  # of generations, for each source


class Record(NamedTuple):
    """A change (its time, if it can be read, and its coordinates) or a backfill row (when it was read)."""

    time: datetime | None
    coordinates: tuple[Any, ...] | None


class Beginning(NamedTuple):
    """A time at which a log began, or a position and the time of reading."""

    time: datetime
    position: tuple[Any, ...] | None


def reached(record: Record, beginnings: list[Beginning]) -> int:
    """Return how many generations a record has reached: what the SQL is compared with."""
    count = 0
    for number, beginning in enumerate(beginnings):
        if record.coordinates is None or beginning.position is None:
            count += record.time >= beginning.time
        else:
            began = [other.time for other in beginnings[:number] if other.position is None]
            later = [other.time for other in beginnings[number:] if other.position is None]
            behind = record.coordinates[: len(beginning.position)] >= beginning.position
            count += any(record.time >= t for t in later) or (all(record.time >= t for t in began) and behind)
    return count


def _iso(moment: datetime, zone: int = 0) -> str:
    return moment.astimezone(timezone(timedelta(hours=zone))).isoformat(" ", "microseconds")


def _coordinates(source: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one, other = draw.choice(NUMBERS), draw.choice(NUMBERS)
    if source == "postgresql":
        return (one, other), {"lsn": f"{one:X}/{other:x}"}
    if source == "sqlserver":
        return (0, one, other), {"lsn": f"0:{one:X}:{other:x}"}
    if source == "mysql":
        return (one, other), {"log_file": f"bin.{one}", "log_position": other}
    return (one, 0), {"scn": one, "ssn": other}


def _records(source: str, draw: random.Random) -> dict[int, tuple[Record, str]]:
    records = {}
    for number in range(300):
        time = draw.choice(MOMENTS)
        if draw.random() < 0.3:
            record = Record(time, None)
            said = {"read_method": READ_METHODS[source][1], "read_timestamp": _iso(time), "source_timestamp": None}
        else:
            unreadable = draw.random() < 0.1
            record = Record(None if unreadable else time, (place := _coordinates(source, draw))[0])
            said = {"metadata": place[1], "source_timestamp": "soon" if unreadable else _iso(time)}
        records[number] = record, event(source, {"id": number}, **said)
    return records


def _beginnings(source: str, draw: random.Random) -> tuple[list[Beginning], list[Any]]:
    """Return a declaration that is in order, and as it is written."""
    beginnings, written, positions = [], [], []
    for time in sorted(draw.choices(MOMENTS, k=draw.randint(1, 5))):
        zone = draw.choice([0, 1, -11])
        if draw.random() < 0.4:
            beginnings.append(Beginning(time, None))
            written.append(_iso(time, zone))
            positions = []
            continue
        place, said = _coordinates(source, draw)
        names = {"oracle": ["scn"], "mysql": ["log_file", "log_position"]}.get(source, ["lsn"])
        if source == "oracle" or (source == "mysql" and draw.random() < 0.2):
            place, names = place[:1], names[:1]
        if positions and place < positions[-1]:
            continue
        positions.append(place)
        beginnings.append(Beginning(time, place))
        part = {name: said[name] for name in names}
        written.append({**part, "read_timestamp": _iso(time, zone)})
    return beginnings, written


@pytest.fixture(scope="module")
def any_records(spark: SparkSession) -> Iterator[tuple[Memory, dict[str, dict[int, tuple[Record, str]]]]]:
    draw = random.Random(20261121)
    records = {source: _records(source, draw) for source in SOURCES}
    with Memory(spark) as memory:
        rows = [Staged(text, source, 1) for source in SOURCES for _, text in records[source].values()]
        memory.stage("generations_any_staging.changes", rows)
        yield memory, records


@pytest.mark.parametrize("source", SOURCES)
def test_a_records_generation_is_the_number_of_those_it_has_reached(any_records: Any, source: str) -> None:
    memory, records = any_records
    draw = random.Random(source)
    project = memory.project(f"generations_any_{source}")
    project.source("generations_any_staging", "changes")
    seen = set()
    for number in range(DECLARATIONS):
        beginnings, written = _beginnings(source, draw)
        project.model(f"any_{number}", things(source, written), {"id": "int"})
        times = any(beginning.position is None for beginning in beginnings)
        expected = {
            id_: None if record.time is None and times else f"{reached(record, beginnings):04X}"
            for id_, (record, _) in records[source].items()
        }
        first = "select id, left(_change_sequence, 4) as first, _change_error"
        found = memory.sql(f"{first} from (\n{project.compile(f'any_{number}')}\n)").collect()
        assert {row.id: None if row._change_error else row.first for row in found} == expected, beginnings
        seen |= set(expected.values())
    assert len(seen) >= 4


# --- times as they are declared ---------------------------------------------------------------------------------------

TIMES = [
    "2026-11-21 00:00:00+00", "2026-11-22T00:00:00+02", "2026-11-21 22:00:00Z", "2026-11-21 17:30:00-04:30",
    "2026-11-23T00:00:00.5+0000", "2024-02-29 23:59:59.999999+14:00", "1970-01-01 00:00:00Z", "2999-12-31T23:59:59-14",
]  # fmt: skip


def test_what_is_taken_for_a_time_with_a_zone_is_the_same_moment_in_spark(spark: SparkSession) -> None:
    moment = PlainProject(Recorder(), "times").macros.moment
    shown = ", ".join(f"date_format(to_timestamp('{time}'), 'yyyy-MM-dd HH:mm:ss.SSSSSS')" for time in TIMES)
    assert list(spark.sql(f"select {shown}").first()) == [f"{moment(time):%Y-%m-%d %H:%M:%S.%f}" for time in TIMES]  # type: ignore[arg-type]
