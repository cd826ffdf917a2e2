"""A model with masks takes masked records, and no value of a record that was not masked gets beyond staging."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError
from pyspark.sql import SparkSession
from reconcile_jobs.long_records import LongRecord
from reconcile_jobs.masks import Masks

CANARY = "canary-7f31"
KEY = b"0123456789abcdef0123456789abcdef"
MASKS = Masks({"people": {"email": "sha256", "phone": "sha256", "ssn": "drop"}}, KEY)


def masked(type_: str, mask: str) -> dict[str, Any]:
    return {"data_type": type_, "config": {"meta": {"mask": mask}}}


COLUMNS: dict[str, Any] = {
    "email": masked("string", "sha256"), "name": "string", "n": "tinyint", "Phone": masked("string", "sha256"),
    "ssn": masked("int", "drop"),
}  # fmt: skip
MODELS = {"people": "current_state", "lives": "history", "seen": "current_view"}


def digest(text: str) -> str:
    return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


def change(place: int, payload: Any, kind: str = "INSERT") -> str:
    return event("postgresql", payload, kind, metadata={"lsn": f"0/{place:X}"}, object="people")


def person(place: int, email: str, kind: str = "INSERT", **fields: Any) -> str:
    return change(place, {"email": email, "name": "x", "n": 1, "PHONE": None, "ssn": CANARY, **fields}, kind)


def long(text: str) -> str:
    record = LongRecord("byte 0")
    record.add(text.encode())
    return MASKS.note_of_long(record)


# The last three cannot be applied.
DELIVERED = [
    MASKS.record(text.encode())
    for text in (
        person(1, f"{CANARY}a", PHONE=12.50),
        person(2, f"{CANARY}a", "UPDATE", name="newer", PHONE=12.5),
        person(3, f"{CANARY}b"),
        person(4, f"{CANARY}b", "DELETE"),
        person(5, f"{CANARY}c", PHONE=f"{CANARY} 7"),
        person(6, f"{CANARY}d", n=300),
        change(7, f'["{CANARY}"]'),
    )
] + [long(person(8, f"{CANARY}e"))]


class People:
    """Models of every kind, of a table whose staged records are masked."""

    def __init__(self, memory: Memory, schema: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.memory, self.schema = memory, schema
        self.project: MemoryProject = memory.project(schema, replaced)
        self.project.source(f"{schema}_lake", "changes")
        for name, materialized in MODELS.items():
            self.project.model(
                name,
                f"{{{{ config(materialized='{materialized}', unique_key='email') }}}}\n"
                "{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='people') }}",
                COLUMNS,
            )

    def stage(self, batch: int, records: list[str]) -> None:
        self.memory.stage(f"{self.schema}_lake.changes", [Staged(record, "people", batch) for record in records])

    def rows(self, name: str) -> list[Any]:
        return self.memory.rows(f"{self.schema}.{name}")

    def leaks(self) -> set[str]:
        """Return the tables and views of the models that have a canary."""
        names = {name for part in (self.memory._tables, self.memory._views) for name in part}
        found = {name for name in names if name.startswith(f"{self.schema}.") and CANARY in str(self.memory.rows(name))}
        return found | ({"the log"} if CANARY in str(self.project.logged) else set())


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> Iterator[People]:
    with Memory(spark) as memory:
        found = People(memory, "masked")
        found.stage(1, DELIVERED)
        found.project.run(*MODELS)
        yield found


def test_rows_versions_and_views_have_digests_and_no_value(people: People):
    rows = {row.email: (row.name, row.Phone, row.ssn) for row in people.rows("people")}
    assert rows == {
        digest(f"{CANARY}a"): ("newer", digest("12.5"), None),
        digest(f"{CANARY}c"): ("x", digest(f"{CANARY} 7"), None),
    }
    assert {row.email: (row.name, row.Phone, row.ssn) for row in people.rows("seen")} == rows
    assert {row.email for row in people.rows("lives")} == {digest(f"{CANARY}{end}") for end in "abc"}
    assert not people.leaks()


def test_what_cannot_be_applied_is_quarantined_without_a_value(people: People):
    for name in ("people__quarantine", "lives__quarantine", "seen__quarantine"):
        errors = sorted(row._change_error for row in people.rows(name))
        assert [error.split(" (")[0][:30] for error in errors] == [
            "n: '300' is not exactly a tiny", "the record could not be masked", "the record was too long for st",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def in_clear(people: People) -> People:
    """Batch 2 is of a job without masks, and of one that masked another field."""
    other = Masks({"people": {"email": "sha256"}}, KEY)
    records = [person(20, f"{CANARY}f"), other.record(person(21, f"{CANARY}g", PHONE=f"{CANARY}h").encode())]
    people.before = {name: people.rows(name) for name in ("people", "lives")}  # type: ignore[attr-defined]
    people.stage(2, records)
    return people


@pytest.mark.parametrize("name", ["people", "lives"])
def test_records_that_were_not_masked_are_refused_and_nothing_is_built(in_clear: People, name: str):
    with pytest.raises(CompilerError) as raised:
        in_clear.project.run(name)
    assert (
        "and 2 records of people in masked_lake.changes, the first in batch 2, were staged without these masks"
        in str(raised.value)
    )
    assert in_clear.rows(name) == in_clear.before[name]  # type: ignore[attr-defined]
    assert not in_clear.leaks() and CANARY not in str(raised.value)


def test_a_view_shows_nothing_of_records_that_come_later_without_masks(in_clear: People):
    assert {row.email for row in in_clear.rows("seen")} == {digest(f"{CANARY}a"), digest(f"{CANARY}c")}
    errors = [row._change_error for row in in_clear.rows("seen__quarantine")]
    assert errors.count("the record was not masked for email, Phone, ssn, and is not shown") == 2
    assert not in_clear.leaks()


MASKED_RECORD = "macros/change_records/masked_record.sql"
BUGS = {
    "an unmasked record is accepted": {
        MASKED_RECORD: {"if({{ reconcile._is_masked(columns) }}, record,": "if(true, record,"}
    },
    "one mask is enough": {MASKED_RECORD: {"conditions | join(' and ')": "conditions | join(' or ')"}},
    "a mark is enough": {MASKED_RECORD: {"masks -> {{ conditions | join(' and ') }}": "masks -> masks is not null"}},
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(spark: SparkSession, bug: str):
    with Memory(spark) as memory:
        found = People(memory, "bug", BUGS[bug])
        other = Masks({"people": {"email": "sha256"}}, KEY)
        found.stage(1, [other.record(person(21, "g", PHONE=CANARY, ssn=None).encode())])
        found.project.run("people")
        assert found.leaks() >= {"bug.people"}
