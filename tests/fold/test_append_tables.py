"""Rows of append tables: what orders them, in whatever form the number comes, and what cannot be ordered."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession

MODEL = (
    "{{{{ config(materialized='current_state', unique_key='id') }}}}\n"
    "{{{{ reconcile.datastream_append(source('lake', 'changes'), object='{}'{}) }}}}"
)


def row(
    id_: Any, value: str | None, number: str | None, change_type: str | None = "UPDATE-INSERT", **metadata: Any
) -> str:
    said = {
        "uuid": "u",
        "source_timestamp": "1732186800000",
        "change_sequence_number": number,
        "change_type": change_type,
    }
    return json.dumps({"datastream_metadata": said | metadata, "row": {"id": str(id_), "value": value}})


# Each is greater than the one before it, as BigQuery compares them; those of one line are equal.
NUMBERS = [
    ["0", "0/0/0/0", "0000000000000000"],
    ["0/0/0/1"],
    ["9", "09/0"],
    ["77", "0077/0/0"],
    ["7B", "7b", "000000000000007b/0"],
    ["ABC", "abc/0"],
    ["FFF/B", "fff/000b"],
    ["FFF/ABC"],
    ["BA/FFFFFFFF".replace("BA", "BA000")],
    ["FFFFFFFFFFFFFFFF/FFFFFFFFFFFFFFFF/FFFFFFFFFFFFFFFF/FFFFFFFFFFFFFFFF"],
]
NO_NUMBERS = ["", "/", "G", "1//2", "0" * 17, "1/2/3/4/5", " 1", "1/", "-1", "0x1"]


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def project_of(memory: Memory, name: str, rows: list[str], more: str = "") -> MemoryProject:
    project = memory.project(name)
    project.source("lake", "changes")
    memory.stage("lake.changes", [Staged(text, name, 1, source="append table") for text in rows])
    columns = {"id": "bigint", "value": "string"}
    project.model("rows", MODEL.format(name, more), columns, data_tests=["reconcile.ledger_balances"])
    return project


def test_numbers_are_compared_section_by_section_whatever_their_spelling(memory: Memory):
    pairs = list(itertools.combinations(range(len(NUMBERS)), 2))
    rows = []
    for id_, (low, high) in enumerate(pairs):
        for spelled in NUMBERS[low]:
            rows.append(row(id_, "older", spelled))
        rows.append(row(id_, "newer", random.Random(id_).choice(NUMBERS[high])))
    random.Random(1).shuffle(rows)
    project = project_of(memory, "numbers", rows)
    project.run()
    assert {(r.id, r.value) for r in memory.rows("numbers.rows")} == {(id_, "newer") for id_ in range(len(pairs))}
    assert not project.failing_tests("rows")


def test_what_cannot_be_ordered_is_quarantined_and_a_copy_without_a_number_is_the_oldest(memory: Memory):
    rows = [row(n, "bad", number) for n, number in enumerate(NO_NUMBERS)]
    rows += [
        row(100, "copied", None, "INSERT"),
        row(100, "changed", "0", "UPDATE"),
        row(101, "copied", None, None, source_timestamp=None, uuid=None),
        row(102, "no number", None, "DELETE"),
        row(103, "unknown", "1", "TRUNCATE"),
        row(104, "contradicts", "1", "INSERT", is_deleted="true"),
        row(105, "here", "1", "INSERT"),
        row(105, None, "2", "DELETE"),
        row(106, "moved", "5", "UPDATE-DELETE"),
        row(107, "in lower case", "5", "update-insert"),
        "no JSON",
    ]
    project = project_of(memory, "odd", rows)
    project.run()
    live = {r.id: r.value for r in memory.rows("odd.rows")}
    assert live == {100: "changed", 101: "copied", 107: "in lower case"}
    reasons = sorted(r._change_error for r in memory.rows("odd.rows__quarantine"))
    assert len(reasons) == len(NO_NUMBERS) + 4
    assert sum("does not consist of one to four sections of hex digits" in reason for reason in reasons) == len(
        NO_NUMBERS
    )
    assert any("change_sequence_number, which orders changes, is missing" in reason for reason in reasons)
    assert any("change type 'TRUNCATE' is unknown" in reason for reason in reasons)
    assert any("is_deleted is true, and the change type is 'INSERT'" in reason for reason in reasons)


def test_a_stream_that_was_made_anew_is_a_generation(memory: Memory):
    later = "1732273200000"
    rows = [row(1, "before", "FF"), row(1, "anew", "1", source_timestamp=later)]
    # Of these the time would tell the generation: the number alone does not.
    rows += [row(2, "of no time", "FF", source_timestamp=said) for said in (None, "soon")]
    project = project_of(memory, "anew", rows, ", generations=['2024-11-22 00:00:00+00']")
    project.run()
    assert [r.value for r in memory.rows("anew.rows")] == ["anew"]
    reasons = [r._change_error for r in memory.rows("anew.rows__quarantine")]
    assert reasons == ["source_timestamp, which determines the generation, is missing or unreadable"] * 2


BUGS = {
    "the number is compared as text": (
        "macros/change_records/sequence_sections.sql",
        {"'lpad(upper(split_part('": "'rpad(upper(split_part('"},
    ),
    "the case of the digits counts": (
        "macros/change_records/sequence_sections.sql",
        {"'lpad(upper(split_part('": "'lpad((split_part('"},
    ),
    "a copy is newer than changes": (
        "macros/sources/datastream_append.sql",
        {"if(is_backfill, concat('/0/'": "if(is_backfill, concat('/2/'"},
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(spark: SparkSession, bug: str):
    file, changes = BUGS[bug]
    with Memory(spark) as memory:
        project = memory.project("bug", {file: changes})
        project.source("lake", "changes")
        rows = [row(1, "newer", "10"), row(1, "older", "9"), row(2, "newer", "B"), row(2, "older", "a"),
                row(3, "newer", "1"), row(3, "older", None, "INSERT")]  # fmt: skip
        memory.stage("lake.changes", [Staged(text, "bug", 1, source="append table") for text in rows])
        project.model("rows", MODEL.format("bug", ""), {"id": "bigint", "value": "string"})
        project.run()
        assert {r.value for r in memory.rows("bug.rows")} != {"newer"}
