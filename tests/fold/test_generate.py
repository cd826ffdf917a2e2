"""Models generated from the playing capture build, and their rows are those that the source had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from datastream import Staged
from generated import texts
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession
from reconcile_jobs.generation.avro_types import Header, header_of
from reconcile_jobs.generation.datastream_records import source_of
from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.plan import Settings, plan_of
from reconcile_jobs.generation.project import Project
from reconcile_jobs.generation.staged_tables import observed
from reconcile_jobs.generation.streams import DATASTREAM
from reconcile_jobs.generation.tables import Answer, tables_of
from reconcile_jobs.generation.witnesses import of_headers
from reconcile_jobs.generation.written_files import write
from shop import records
from truth import CAPTURE, COLUMNS, DELIVERIES, KEYS, SOURCES, counted, object_of, table_of, true_rows


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def headers(source: str) -> list[Header]:
    """Return what the Avro files of the capture say, as `headers_below` does for the files of a landing area."""
    files = sorted((CAPTURE / f"{source}_avro").rglob("*.avro"))
    return [header for file in files if (header := header_of(file.read_bytes())) is not None]


def load(project: MemoryProject, into: Path) -> list[str]:
    """Add the generated models to a project, as dbt would read them, and return their names."""
    entries = {}
    for file in into.rglob("*.yml"):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8")).get("models", []):
            entries[unrendered(entry["name"])] = entry
    for name, entry in entries.items():
        columns = {unrendered(column.pop("name")): column for column in entry["columns"]}
        project.model(name, (into / f"{name}.sql").read_text(), columns, data_tests=entry["data_tests"])
    return sorted(entries)


# The capture's Avro files of Oracle are as of early 2021, when records did not name their keys.
NO_KEYS = [("oracle", "avro")]


@pytest.mark.parametrize("form", ["json", "avro"])
@pytest.mark.parametrize("source", SOURCES)
def test_models_generated_from_the_capture_equal_the_truth(
    memory: Memory, tmp_path: Path, source: str, form: str
) -> None:
    schema, staging = f"generated_{source}_{form}", f"{source}_{form}"
    into = tmp_path / "models"
    delivered = [
        Staged(record, object_of(source, table), number)
        for table in COLUMNS
        for number in DELIVERIES
        for record in records(source, table, form, number)
    ]
    memory.stage(f"{schema}_lake.{staging}", delivered)
    seen = observed(memory.table(f"{schema}_lake.{staging}"), DATASTREAM)
    assert sum(of_table.records for of_table in seen.tables.values()) == len(delivered) and not seen.nameless
    of_files = [of_headers(headers(source) if form == "avro" else [])]
    labels = {table_of(source, table): KEYS[table] for table in COLUMNS}
    answers: dict[str, Answer] = {}
    if (source, form) in NO_KEYS:
        refused = tables_of(seen, of_files)[1]
        assert {(refusal.label, refusal.reason) for refusal in refused} == {(label, "no key") for label in labels}
        answers = {label: Answer(tuple(name.upper() for name in key)) for label, key in labels.items()}
    settings = Settings(("lake", staging), Pattern("{table}"))
    plan = plan_of(Project(into), *tables_of(seen, of_files, answers), settings)
    write(plan.files)
    assert (sorted(plan.written), plan.refusals) == (sorted(COLUMNS), [])

    project = memory.project(schema)
    project.source(f"{schema}_lake", staging)
    names = load(project, into)
    assert names == sorted(COLUMNS)
    project.run(*names)
    for table in COLUMNS:
        assert memory.rows(f"{schema}.{table}__quarantine") == []
        rows = memory.table(f"{schema}.{table}")
        shown = rows.selectExpr(*(_cast(name, rows.schema, source) for name in COLUMNS[table]))
        assert counted(shown) == true_rows(table)
        assert project.failing_tests(table) == set()
    before = texts(into)
    again = plan_of(Project(into), *tables_of(seen, of_files, answers), settings)
    assert (again.files, again.misfits, again.news) == ({}, [], []) and texts(into) == before


def _cast(name: str, schema: Any, source: str) -> str:
    """Return a column as its type at the source, of which a record may tell less."""
    types = {field.name.lower(): (field.name, field.dataType.simpleString()) for field in schema.fields}
    spelled, here = types[name]
    true = next(of_table[name] for of_table in COLUMNS.values() if name in of_table)
    if true == "binary" and here == "string":
        return f"{'unhex' if source == 'mysql' else 'unbase64'}(`{spelled}`) as `{name}`"
    return f"cast(`{spelled}` as {true}) as `{name}`"


def test_the_source_of_a_record_is_what_the_macros_say(memory: Memory) -> None:
    """One rule, in SQL for the models and in Python for what is generated."""
    macros = memory.project("generated_rules").macros
    fields = ", ".join(f"{name} string" for name in macros.identifying_fields())
    event = f"from_json(record, 'read_method string, source_metadata struct<{fields}>')"
    word = macros.source_of_event("event.read_method", "event.source_metadata")
    rows = [
        record
        for source in SOURCES
        for form in ("json", "avro")
        for table in COLUMNS
        for record in records(source, table, form, 3)[:40]
    ]
    memory.stage("generated_rules.staged", [Staged(record, "o", 1) for record in rows])
    parsed = f"select record, {event} as event from `generated_rules`.`staged`"
    told = memory.sql(f"select record, {word} as source from ({parsed})")
    events = {row: json.loads(row) for row in rows}
    found = {row: source_of(event["read_method"], event["source_metadata"]) for row, event in events.items()}
    assert {row.record: row.source for row in told.collect()} == found
    assert {*found.values()} == {*SOURCES}
