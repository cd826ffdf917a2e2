"""Generations: what comes of a log that began anew, and of a backfill that repairs a gap in the log.

What they cannot do is here too: a backfill says nothing of a row that was deleted in the gap.
"""

from __future__ import annotations

import itertools
import random
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from datastream import READ_METHODS, Staged, event, stage
from projects import Project
from pyspark.sql import SparkSession

pytestmark = pytest.mark.soak

SOURCES = list(READ_METHODS)
BY_COMMIT_TIME = {
    "postgresql",
    "sqlserver",
}  # the time of the commit orders their changes, whatever the log's positions


def failures(outcome: Any) -> dict[str, str]:
    assert not outcome.success
    return {r.node.name: r.message for r in outcome.result.results if r.status not in ("success", "pass")}


def compiled_models(project: Project, *models: str) -> dict[str, str]:
    return {r.node.name: r.node.compiled_code for r in project.dbt("compile", "--select", *models).result.results}


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


GENERATIONS = {
    **{source: repair(**PLACES[source][AT]) for source in SOURCES if source not in BY_COMMIT_TIME},
    **{source: repair(source_timestamp="2026-11-22 10:59:00+01") for source in BY_COMMIT_TIME},
}
# the scn of the reading; the time of the reading, before which a statement may lie; a commit's time behind the reading
TOO_LATE = {
    "oracle": repair(**PLACES["oracle"][BEHIND]),
    "mysql": [BEGAN, "2026-11-22 10:00:00+00", BEGAN_AGAIN],
    **{source: repair(source_timestamp="2026-11-22 10:10:00+00") for source in BY_COMMIT_TIME},
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
    without_by_commit_time: str | None = "as the others"


BEFORE_THE_GAP = Told("before the gap", "2026-11-22T08:00:00Z", BEFORE)
AS_READ = Told("as read", READ)
AFTER = Told("after the repair", "2026-11-22T11:00:00Z", BEHIND)
OLD, NEW = Told("old log", "2026-11-20T12:00:00Z", LARGE), Told("new log", "2026-11-21T06:00:00Z", SMALL)
THIRD = Told("third log", "2026-11-23T06:00:00Z", SMALL)
# Of Oracle and MySQL the time of the statement, of the others that of the commit.
OPEN = Told("open when it was read", "2026-11-22T09:30:00Z", AT)
STORIES = {
    # Where commit times order, a new log's changes are behind the old one's by themselves.
    "changed in a new log": Story([OLD, NEW], "new log", "old log", "new log"),
    "deleted in a new log": Story([OLD, NEW._replace(value=None)], None, "old log", None),
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
    "changed in a third log": Story([AS_READ, AFTER, THIRD], "third log", "after the repair", "third log"),
    "read from a third log": Story([AFTER, AS_READ._replace(time=THIRD.time)], "as read", "after the repair"),
}  # fmt: skip


def record(source: str, told: Told, story: str, delivery: int) -> str:
    payload = {"story": story, "delivery": delivery, "value": told.value}
    if told.place is None:
        method = READ_METHODS[source][1]
        return event(source, payload, read_method=method, read_timestamp=told.time, source_timestamp=told.time)
    committed = "2026-11-22T10:05:00Z" if told == OPEN and source in BY_COMMIT_TIME else told.time
    change_type = "DELETE" if told.value is None else "UPDATE"
    said = {"source_timestamp": committed, "read_timestamp": "2026-11-24T00:00:00Z"}
    return event(source, payload, change_type, metadata=PLACES[source][told.place], **said)


def deliveries(story: Story) -> list[list[tuple[int, Told]]]:
    """Return each order of the records, its first in batch 1 and the others in batch 2, and all of them at once."""
    spread = [[(min(at, 2), told) for at, told in enumerate(order, 1)] for order in itertools.permutations(story.told)]
    return [*spread, [(1, told) for told in story.told]]


class Outcome(NamedTuple):
    """For each source the values that a story's row has, over all deliveries; and what dbt said of other positions."""

    declared: dict[str, dict[str, set[str | None]]]
    without: dict[str, dict[str, set[str | None]]]
    too_late: dict[str, dict[str, set[str | None]]]
    quarantined: int
    refused: dict[str, str]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    project = Project(tmp_path_factory.mktemp("generations") / "project", "generations", threads=2)
    project.source("generations_staging", "changes")
    spark.sql("create schema if not exists generations_staging")
    stage(
        spark,
        "generations_staging.delivered",
        [
            Staged(record(source, told, name, number), source, batch)
            for source in SOURCES
            for name, story in STORIES.items()
            for number, delivery in enumerate(deliveries(story))
            for batch, told in delivery
        ],
    )

    def declare(model: str, source: str, generations: list[Any]) -> None:
        project.model(
            model,
            "{{ config(materialized='current_state', unique_key=['story', 'delivery']) }}\n"
            + things(source, generations),
            {"story": "string", "delivery": "int", "value": "string"},
        )

    def values() -> dict[str, dict[str, set[str | None]]]:
        found: dict[str, dict[str, set[str | None]]] = {}
        for model in models:
            rows = {(row.story, row.delivery): row.value for row in spark.table(f"generations.{model}").collect()}
            found[model.removesuffix("_plain")] = {
                name: {rows.get((name, number)) for number in range(len(deliveries(story)))}
                for name, story in STORIES.items()
            }
        return found

    models = SOURCES
    for source in SOURCES:
        declare(source, source, GENERATIONS[source])
    for batch in (1, 2):
        spark.sql(
            "create or replace view generations_staging.changes as "
            f"select * from generations_staging.delivered where batch <= {batch}"
        )
        project.dbt("run", "--select", *SOURCES)
    declared = values()
    quarantined = sum(spark.table(f"generations.{source}__quarantine").count() for source in SOURCES)

    models = [f"{source}_plain" for source in SOURCES]
    for source in SOURCES:
        declare(f"{source}_plain", source, [])
        declare(source, source, TOO_LATE[source])
    refused = failures(project.dbt("run", "--select", *SOURCES, *models, succeed=False))
    without = values()

    models = SOURCES
    project.dbt("run", "--full-refresh", "--select", *SOURCES)
    return Outcome(declared, without, values(), quarantined, refused)


@pytest.mark.parametrize("source", SOURCES)
def test_every_delivery_gives_the_row_that_the_source_has(outcome: Outcome, source: str) -> None:
    assert outcome.declared[source] == {name: {story.truth} for name, story in STORIES.items()}
    assert outcome.quarantined == 0


@pytest.mark.parametrize("source", SOURCES)
def test_without_generations_logs_are_mixed_up_and_a_repair_is_lost(outcome: Outcome, source: str) -> None:
    by_commit_time = {
        name: {story.without if story.without_by_commit_time == "as the others" else story.without_by_commit_time}
        for name, story in STORIES.items()
    }
    others = {name: {story.without} for name, story in STORIES.items()}
    assert outcome.without[source] == (by_commit_time if source in BY_COMMIT_TIME else others)


@pytest.mark.parametrize("source", SOURCES)
def test_a_position_behind_an_open_transaction_loses_its_changes(outcome: Outcome, source: str) -> None:
    truth = {name: {story.truth} for name, story in STORIES.items()}
    assert outcome.too_late[source] == {**truth, "open when it was read": {"as read"}}


@pytest.mark.parametrize("source", SOURCES)
def test_another_position_is_refused_until_a_full_refresh(outcome: Outcome, source: str) -> None:
    assert set(outcome.refused) == set(SOURCES)
    assert (
        f"generations.{source}__base was built with other source macros, objects or generations; "
        f"rebuild it with `dbt run --full-refresh --select {source}`"
    ) in outcome.refused[source]


# --- any records, any declaration ------------------------------------------------------------------------------------

EPOCH = datetime(2026, 11, 21, tzinfo=UTC)
# Coordinates are in milliseconds, times of logs to the microsecond.
MOMENTS = [EPOCH + timedelta(microseconds=1000 * after + more) for after in (0, 1, 9, 10) for more in (0, 1, 600)]
NUMBERS = [8, 9, 10, 99, 100, 101]


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


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _coordinates(source: str, time: datetime | None, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]]:
    one, other = draw.choice(NUMBERS), draw.choice(NUMBERS)
    if source in BY_COMMIT_TIME:
        assert time is not None
        return (_milliseconds(time), one), {"lsn": {"postgresql": f"0/{one:X}", "sqlserver": f"0:0:{one:x}"}[source]}
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
            unreadable = source not in BY_COMMIT_TIME and draw.random() < 0.1
            record = Record(None if unreadable else time, (place := _coordinates(source, time, draw))[0])
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
        committed = draw.choice(MOMENTS)
        place, said = _coordinates(source, committed, draw)
        position = place if source == "mysql" and draw.random() < 0.8 else place[:1]
        exactly = (committed,) if source in BY_COMMIT_TIME else position
        if positions and exactly < positions[-1]:
            continue
        positions.append(exactly)
        beginnings.append(Beginning(time, position))
        names = {"oracle": ["scn"], "mysql": ["log_file", "log_position"]}.get(source, ["source_timestamp"])
        said["source_timestamp"] = _iso(committed, -zone)
        part = {name: said[name] for name in names[: len(position)]}
        written.append({**part, "read_timestamp": _iso(time, zone)})
    return beginnings, written


def test_a_records_generation_is_the_number_of_those_it_has_reached(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(20261121)
    project = Project(tmp_path / "project", "generations_any")
    project.source("generations_any_staging", "changes")
    spark.sql("create schema if not exists generations_any_staging")
    records = {source: _records(source, draw) for source in SOURCES}
    rows = [Staged(text, source, 1) for source in SOURCES for _, text in records[source].values()]
    stage(spark, "generations_any_staging.changes", rows)
    declared = {}
    for source in SOURCES:
        for number in range(5):
            declared[f"{source}_{number}"] = source, (beginnings := _beginnings(source, draw))[0]
            project.model(f"{source}_{number}", things(source, beginnings[1]), {"id": "int"})
    compiled = compiled_models(project, *declared)
    seen = set()
    for model, (source, beginnings) in declared.items():
        times = any(beginning.position is None for beginning in beginnings)
        expected = {
            number: None if record.time is None and times else f"{reached(record, beginnings):04X}"
            for number, (record, _) in records[source].items()
        }
        found = spark.sql(f"select id, left(_change_sequence, 4) as first, _change_error from ({compiled[model]})")
        assert {row.id: None if row._change_error else row.first for row in found.collect()} == expected, (
            f"{model}: {beginnings}"
        )
        seen |= {(source, generation) for generation in expected.values()}
    assert len(seen) >= 4 * 4


# --- what is declared, and what dbt says of it -----------------------------------------------------------------------


def test_what_is_declared_is_all_that_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", "generations_form")
    project.source("generations_form", "changes")
    project.model("none", things("mysql", []), {"id": "int"})
    project.model("times", things("mysql", [BEGAN, BEGAN_AGAIN]), {"id": "int"})
    project.model("position", things("mysql", GENERATIONS["mysql"]), {"id": "int"})
    for name, (source, generations) in RIGHT.items():
        project.model(name, things(source, generations), {"id": "int"})
    compiled = compiled_models(project, "none", "times", "position", *RIGHT)
    first = {name: re.search(r"\n {8}concat\(\n +(.*),\n", sql)[1] for name, sql in compiled.items()}  # type: ignore[index]
    began = f"if(if(is_backfill, read_at, changed_at) >= to_timestamp('{BEGAN}'), 1, 0)"
    again = began.replace(BEGAN, BEGAN_AGAIN)
    assert first["none"] == "'0000'"
    assert first["times"] == f"lpad(hex({began} + {again}), 4, '0')"
    assert first["position"].startswith(
        f"lpad(hex({began} + if(if(is_backfill, read_at >= to_timestamp('2026-11-22 12:00"
    )
    assert len({compiled[name].replace(first[name], "") for name in ("times", "position")}) == 1
    # what is taken for a time with a zone is one in Spark too
    moments = set(re.findall(r"to_timestamp\('[^']+'\)", " ".join(first.values())))
    assert len(moments) == 8
    assert None not in spark.sql(f"select {', '.join(moments)}").first()


SCN = {"scn": 15869128507100, "read_timestamp": "2026-11-22 10:00:00+00"}
FILE = {"log_file": "mysql-bin.000017", "log_position": 4, "read_timestamp": "2026-11-22 10:00:00+00"}
COMMIT = {"source_timestamp": "2026-11-22 09:59:00+00", "read_timestamp": "2026-11-22 10:00:00+00"}
TIME = "write it as '2026-11-21 00:00:00+00'"


def less(position: dict[str, Any], *names: str, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in {**position, **more}.items() if name not in names}


WRONG: dict[str, tuple[str, Any, list[str]]] = {
    "a_time": ("oracle", BEGAN, [f"generations is no list; write it as ['{BEGAN}'], or as [{SCN}]"]),
    "a_position": ("oracle", SCN, [f"generations is no list; write it as ['{BEGAN}'], or as [{SCN}]"]),
    "none_at_all": ("oracle", None, [f"generations is no list; write it as ['{BEGAN}'], or as [{SCN}]"]),
    "everything": (
        "oracle",
        ["2026-11-21 00:00:00", "2026-02-30 00:00:00Z", 7, less(SCN, "scn"), less(SCN, "read_timestamp", scn="abc")],
        [
            f"generation '2026-11-21 00:00:00' is no time with a zone; {TIME}",
            f"generation '2026-02-30 00:00:00Z' is no time with a zone; {TIME}",
            f"generation 7 is neither a time nor a position; {TIME}, or as {SCN}",
            f"generation {less(SCN, 'scn')} has no scn, so no position; write it as {SCN}",
            f"generation {{'scn': 'abc'}} has scn 'abc', which is no whole number; write it as {SCN}",
            f"generation {{'scn': 'abc'}} has no read_timestamp, from which on backfill rows belong to it; "
            f"write it as {SCN}",
        ],
    ),
    "a_part": (
        "oracle",
        [{**SCN, "rs_id": "0x0073cb.0000194d.0020"}],
        [f"has rs_id, which tells no position: changes are ordered by scn first; write it as {SCN}"],
    ),
    "falling_times": ("oracle", [BEGAN_AGAIN, BEGAN], [f"'{BEGAN}' begins before the one that it stands behind"]),
    "falling_reading": (
        "oracle",
        [BEGAN_AGAIN, SCN],
        [f"generation {SCN} begins before the one that it stands behind; write generations in the order"],
    ),
    "falling_scn": ("oracle", [SCN, {**SCN, "scn": 9}], ["lies before the position that it stands behind"]),
    "no_file": (
        "mysql",
        [less(FILE, "log_file")],
        [f"has log_position, which says nothing without log_file; write it as {FILE}"],
    ),
    "no_number": (
        "mysql",
        [{**FILE, "log_file": "mysql-bin", "log_position": -1}],
        ["log_file 'mysql-bin', which is no file whose name ends with its number", "log_position '-1', which is no"],
    ),
    "falling_file": (
        "mysql",
        [{**FILE, "log_file": "bin.1000000"}, {**FILE, "log_file": "bin.999999"}],
        ["lies before the position"],
    ),
    "lsn": (
        "postgresql",
        [{"lsn": "0/9", "read_timestamp": "2026-11-22 10:00"}],
        [
            "has lsn, which tells no position: changes are ordered by source_timestamp, the time of their commit, "
            f"first; write it as {COMMIT}",
            "has read_timestamp '2026-11-22 10:00', which is no time with a zone",
        ],
    ),
    "commit": (
        "sqlserver",
        [{**COMMIT, "source_timestamp": "2026-11-22"}],
        [f"has source_timestamp '2026-11-22', which is no time with a zone; write it as {COMMIT}"],
    ),
}  # fmt: skip
RIGHT = {
    "two_repairs": ("oracle", [SCN, {**SCN, "scn": "15869128507200"}]),
    "a_new_log": ("oracle", [SCN, BEGAN_AGAIN, {**SCN, "scn": 9, "read_timestamp": "2026-11-23T00:00:00.5+0000"}]),
    "a_file": ("mysql", [less(FILE, "log_position"), FILE]),
    "zones": ("postgresql", ["2026-11-22T00:00:00+02", "2026-11-21 22:00:00Z", "2026-11-21 17:30:00-04:30"]),
}


def test_all_that_is_wrong_with_generations_is_said_at_once(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", "generations_wrong")
    project.source("generations_wrong", "changes")
    for name, (source, generations, _) in WRONG.items():
        project.model(name, things(source, generations), {"id": "int"})
    said = failures(project.dbt("run", "--select", *WRONG, succeed=False))
    assert set(said) == set(WRONG)
    for name, (_, _, sentences) in WRONG.items():
        complaints = [line for line in said[name].splitlines() if line.startswith("    - ")]
        assert len(complaints) == len(sentences), said[name]
        for complaint, sentence in zip(complaints, sentences, strict=True):
            assert sentence in complaint
