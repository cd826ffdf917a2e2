"""What a record says about itself is heard in every spelling: is_deleted, change types, read methods."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from datastream import Staged, event
from memory import Memory
from pyspark.sql import SparkSession

# All sources share what is proven here.
BACKFILLS = {"oracle": "oracle-backfill", "sqlserver": "sqlserver-backfill"}
OF_THE_LOG = ("scn", "rs_id", "ssn", "log_file", "log_position", "lsn", "tx_id")
OF_2020 = (*OF_THE_LOG, "is_deleted", "change_type", "primary_keys")
ABSENT: Any = object()


class Told(NamedTuple):
    """A record of one key: its change type and its `is_deleted`, as they stand there."""

    name: str | None
    change_type: Any = "INSERT"
    is_deleted: Any = ABSENT
    read_method: str | None = None
    without: tuple[str, ...] = ()


class Case(NamedTuple):
    """The records of a key in the order of the log, and the name that its row then has; None if there is no row."""

    said: str
    source: str
    records: list[Told]
    name: str | None


def backfill(source: str, **said: Any) -> Told:
    return Told("read", read_method=BACKFILLS[source], without=OF_THE_LOG, **said)


CASES = [
    *(
        Case(f"{change_type}, is_deleted {said}", source, [backfill(source), Told("old", change_type, flag)], name)
        for source in BACKFILLS
        for said, flag in (("true", True), ("false", False), ("NULL", None), ("absent", ABSENT))
        for change_type, name in (("UPDATE-DELETE", None), ("DELETE", None), ("UPDATE-INSERT", "old"))
        if (change_type, flag) not in (("DELETE", False), ("UPDATE-INSERT", True))  # these are refused
    ),
    *(
        Case(f"a backfill whose change type is {said}", source, [backfill(source, change_type=change_type)], "read")
        for source in BACKFILLS
        for said, change_type in (("NULL", None), ("absent", ABSENT), ("empty", ""))
    ),
    Case("oracle_dump", "oracle", [Told("dumped", read_method="oracle_dump", without=OF_2020)], "dumped"),
    Case(
        "oracle_dump is a backfill",
        "oracle",
        [Told("changed"), Told("dumped", read_method="oracle_dump", without=OF_2020)],
        "changed",
    ),
    Case(
        "sqlserver-cdc-logbased is a change",
        "sqlserver",
        [Told("changed", "UPDATE", False, "sqlserver-cdc-logbased"), backfill("sqlserver")],
        "changed",
    ),
    Case(
        "sqlserver-cdc-logbased deletes",
        "sqlserver",
        [backfill("sqlserver"), Told(None, "DELETE", True, "sqlserver-cdc-logbased")],
        None,
    ),
]


def record_of(case: Case, number: int) -> list[Staged]:
    """Return the records of a case, each read after the one before it."""
    records = []
    for second, told in enumerate(case.records):
        said = {"change_type": told.change_type, "is_deleted": told.is_deleted}
        metadata = {name: value for name, value in said.items() if value is not ABSENT}
        if case.source == "oracle":
            metadata["row_id"] = f"AAAPwRAALAAM329{number:03}"
        text = event(
            case.source,
            {"id": number, "name": told.name},
            metadata=metadata,
            without=[*told.without, *(name for name, value in said.items() if value is ABSENT)],
            object=case.source,
            read_timestamp=f"2026-11-21T11:34:{second:02}Z",
            **({"read_method": told.read_method} if told.read_method else {}),
        )
        records.append(Staged(text, case.source, 1))
    return records


class Outcome(NamedTuple):
    """The name of each row by its id, and why records are in quarantine, by theirs."""

    names: dict[int, str]
    reasons: dict[int, str]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession) -> Outcome:
    outcome = Outcome({}, {})
    with Memory(spark) as memory:
        project = memory.project("envelope")
        project.source("envelope_staging", "changes")
        staged = [record for number, case in enumerate(CASES) for record in record_of(case, number)]
        memory.stage("envelope_staging.changes", staged)
        for source in BACKFILLS:
            project.model(
                source,
                "{{ config(materialized='current_view', unique_key='id') }}\n"
                f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), object='{source}') }}}}",
                {"id": "bigint", "name": "string"},
            )
        project.run(*BACKFILLS)
        for source in BACKFILLS:
            outcome.names.update({row.id: row.name for row in memory.rows(f"envelope.{source}")})
            for row in memory.rows(f"envelope.{source}__quarantine"):
                outcome.reasons[json.loads(row.record)["payload"]["id"]] = row._change_error
    return outcome


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case.source}: {case.said}" for case in CASES])
def test_a_record_is_what_it_says_in_every_spelling(outcome: Outcome, number: int) -> None:
    assert (outcome.names.get(number), outcome.reasons.get(number)) == (CASES[number].name, None)
