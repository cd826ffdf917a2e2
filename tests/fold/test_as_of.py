"""Any earlier moment: what `as_of` builds equals what was there then, and nothing else is touched."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged
from memory import Memory
from pyspark.sql import SparkSession
from truth import CAPTURE, COLUMNS, KEYS, counted, declared, lines, object_of, true_rows

SCHEMA, LAKE = "timeline", "timeline_lake"
BATCHES = 24
MODELS = ("customers", "customers_history")
BEGINNING = 1795305600  # 2026-11-22 in Unix seconds: a batch comes each second
Rows = dict[str, Counter[Any]]


class Timeline:
    """The PostgreSQL capture in many batches, and what was made of its customers at some, as rows and as a history."""

    def __init__(self, memory: Memory, runs_after: list[int]) -> None:
        self.memory, self.project = memory, memory.project(SCHEMA)
        self.project.source(LAKE, "changes")
        self.hooks: list[Any] = []
        self.project.context["run_hooks"] = lambda hooks: self.hooks.extend(hooks) or ""
        self.project.context["pre_hooks"] = ["select 1"]
        for model in [*COLUMNS, *MODELS]:
            table = model.removesuffix("_history")
            config = f"unique_key={KEYS[table]}, materialized='{'current_state' if model == table else 'history'}'"
            config += ", location_root='/external'"  # which reaches beyond the schema
            call = f"reconcile.datastream_postgresql(source('lake', 'changes'), table='shop.{table}')"
            self.project.model(model, f"{{{{ config({config}) }}}}{{{{ {call} }}}}", declared("postgresql", table))
        memory.stage(f"{LAKE}.all_changes", _staged())
        self.seen: dict[int, Rows] = {}
        for batch in [*runs_after, BATCHES]:
            memory.view(
                f"{LAKE}.changes",
                f"select * except (appended_at), timestamp_seconds({BEGINNING} + batch) as appended_at "
                f"from `{LAKE}`.`all_changes` where batch <= {batch}",
            )
            self.project.run(*MODELS)
            self.seen[batch] = self.rows(SCHEMA)

    def rows(self, schema: str) -> Rows:
        """Return the rows that people read and those of the base tables, by relation."""
        relations = [f"{model}{part}" for model in MODELS for part in ("", "__base")]
        return {relation: counted(self.memory.table(f"{schema}.{relation}")) for relation in relations}

    def as_of(self, position: str, value: Any, *models: str, schema: str = "") -> str:
        """Build models as they were then, and return the schema."""
        self.project.variables = {"as_of": {position: value}, **({"as_of_schema": schema} if schema else {})}
        self.project.run(*models)
        self.project.variables = {}
        return schema or f"{SCHEMA}_as_of"

    def table(self, schema: str, table: str) -> Counter[Any]:
        return counted(self.memory.table(f"{schema}.{table}"))


def _staged() -> list[Staged]:
    rows = [Staged(line, object_of("postgresql", table), 0) for table in COLUMNS for line in lines("postgresql", table)]
    random.Random(5).shuffle(rows)
    return [row._replace(batch=1 + number % BATCHES) for number, row in enumerate(rows)]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param([9], id="2 runs"),
        pytest.param([4, 20], id="3 runs", marks=pytest.mark.matrix),
        pytest.param(sorted(random.Random(10).sample(range(1, BATCHES), 10)), id="11 runs", marks=pytest.mark.matrix),
    ],
)
def timeline(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Timeline]:
    with Memory(spark) as memory:
        yield Timeline(memory, request.param)


def test_as_of_a_batch_is_what_the_increments_had_then(timeline: Timeline) -> None:
    for batch in [batch for batch in timeline.seen if batch < BATCHES]:
        schema = timeline.as_of("batch", batch, *MODELS)
        there = timeline.rows(schema)
        assert {name: rows for name, rows in there.items() if rows != timeline.seen[batch][name]} == {}
    assert len({json.dumps(sorted(map(repr, rows["customers"]))) for rows in timeline.seen.values()}) == len(
        timeline.seen
    )


def test_as_of_a_snapshot_of_postgresql_is_what_it_saw(timeline: Timeline) -> None:
    """And nothing is written but in a schema of its own: no table of the present, no ledger, no hook, no location."""
    snapshot = json.loads((CAPTURE / "snapshot" / "at.json").read_text())["pg_current_snapshot"]
    timeline.hooks.clear()
    timeline.memory.noted = []
    schema = timeline.as_of("pg_snapshot", snapshot, *COLUMNS, schema="timeline_snapshot")
    written = [sql.strip() for _, sql in timeline.memory.noted if re.match(r"\s*(create|insert|merge|drop)\b", sql)]
    timeline.memory.noted = None
    for table in COLUMNS:
        assert timeline.table(schema, table) == true_rows(table, "snapshot")
    assert timeline.hooks == []
    made = [sql for sql in written if f"`{schema}`.`" in sql.splitlines()[0]]
    assert len(made) == 4 * len(COLUMNS)
    assert not [sql for sql in made if "location" in sql]
    others = [sql.splitlines()[0] for sql in written if sql not in made]
    assert [
        line for line in others if not re.match(r"create \w+ if not exists|drop view if exists reconcile_", line)
    ] == []


def test_as_of_a_commit_time_is_near_what_the_snapshot_of_that_time_saw(timeline: Timeline) -> None:
    """Within the resolution of clocks: what the capture's README counts."""
    at = json.loads((CAPTURE / "snapshot" / "at.json").read_text())["at"]
    schema = timeline.as_of("commit_time", at, *COLUMNS)
    wrong = set()
    for table in COLUMNS:
        there, true = timeline.table(schema, table), true_rows(table, "snapshot")
        wrong |= {(table, row[: len(KEYS[table])]) for row in (there - true) + (true - there)}
    assert len(wrong) == 5


def test_as_of_a_time_of_appending_is_the_last_batch_then(timeline: Timeline) -> None:
    batch = next(iter(timeline.seen))
    # The very time that the rows of the batch have.
    schema = timeline.as_of("appended_at", f"2026-11-22 00:00:{batch:02}+00", "customers")
    assert timeline.table(schema, "customers") == timeline.seen[batch]["customers"]


def test_as_of_a_sequence_is_the_fold_of_what_lies_before(timeline: Timeline) -> None:
    changes = timeline.memory.table(f"{SCHEMA}.customers__changes")
    changes = changes.select("id", "_change_sequence", "_change_type").orderBy("_change_sequence").collect()
    sequence = changes[len(changes) // 2]._change_sequence
    sections = "/".join(sequence.split("/")[:5])
    schema = timeline.as_of("sequence", sections, "customers")
    newest = {row.id: row for row in changes if row._change_sequence[: len(sections)] <= sections}
    expected = {key for key, row in newest.items() if row._change_type != "delete"}
    assert {row[0] for row in timeline.table(schema, "customers")} == expected
    assert 0 < len(expected) < true_rows("customers").total()


def test_a_transaction_id_is_told_by_its_32_bits(spark: SparkSession) -> None:
    wrap = 2**32
    with Memory(spark) as memory:
        is_seen = memory.project("transactions").macros.is_seen
        seen = {}
        for snapshot in (f"{wrap + 100}:{wrap + 110}:{wrap + 105}", "100:110:105,107"):
            told = memory.sql(
                f"select _change_transaction as id, {is_seen(snapshot)} as seen from "
                "values ('99'), ('100'), ('105'), ('107'), ('109'), ('110'), ('4294967295'), "
                f"('{wrap + 104}'), ('{wrap + 110}'), (null) as told (_change_transaction)"
            )
            seen[snapshot] = {row.id: row.seen for row in told.collect()}
    wrapped, first = seen.values()
    assert wrapped == {
        "99": True, "100": True, "105": False, "107": True, "109": True, "110": False,
        "4294967295": True, str(wrap + 104): True, str(wrap + 110): False, None: None,
    }  # fmt: skip
    assert first == {
        "99": True, "100": True, "105": False, "107": False, "109": True, "110": False,
        "4294967295": False, str(wrap + 104): False, str(wrap + 110): False, None: None,
    }  # fmt: skip
