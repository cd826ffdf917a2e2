"""A column that comes in the middle of a stream and is declared later: the rows are those of a rebuild.

Records from before the column lack it, and some of them arrive when it is declared already; others had it long before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from histories import COLUMNS, VALUE_COLUMNS, Record, generate
from laws import Lakehouse, LawBroken, StagedHistories, check_same, demand
from memory import Memory, MemoryProject
from mortal_memory import MortalMemory
from plain_dbt import CompilerError
from pyspark.sql import SparkSession
from version_laws import Histories

BEFORE = {name: said for name, said in COLUMNS.items() if name != "note"}
ADDED = {**COLUMNS, "note": {"data_type": "string", "config": {"meta": {"added": True}}}}
NOTE = VALUE_COLUMNS.index("note")


def without_early_notes(records: list[Record]) -> list[Record]:
    """Return records of which those in the first half of the log have no column `note`, whenever they arrive."""
    orders = sorted({record.order for record in records})
    return [_without_note(record) if record.order < orders[len(orders) // 2] else record for record in records]


def _without_note(record: Record) -> Record:
    said = json.loads(record.text)
    if not isinstance(said.get("payload"), dict):
        return record
    said["payload"].pop("note", None)
    values: Any = (*record.values[:NOTE], None, *record.values[NOTE + 1 :])
    return replace(record, text=json.dumps(said, ensure_ascii=False), values=values)


def records_of(source: str, histories: int) -> list[Record]:
    """Return histories. Of Spanner every record may have the column: it was there, and nobody had declared it."""
    records = generate(source, histories, seed=3)
    return records if source == "spanner" else without_early_notes(records)


def declare(lakehouse: Lakehouse, columns: Mapping[str, Any]) -> None:
    """Let the YAML of the models have these columns from now on."""
    project = lakehouse.project
    assert isinstance(project, MemoryProject)
    for source in lakehouse.sources:
        project.node(source)["columns"] = {
            name: {"name": name, "description": "", **({"data_type": of} if isinstance(of, str) else of)}
            for name, of in columns.items()
        }


def grow(lakehouse: Lakehouse, memory: Memory) -> None:
    """Build the models without a column, declare the column as added, and go on without the mark, by the laws."""
    declare(lakehouse, BEFORE)
    lakehouse.run(1)
    lakehouse.check_quarantine()
    for account in lakehouse.accounts.values():
        account.clear()  # its sequences are of a record with other columns
    declare(lakehouse, ADDED)
    lakehouse.deliver(2)
    refuse_lost_records(lakehouse, memory)
    lakehouse.run(2)
    lakehouse.check_state()
    lakehouse.check_quarantine()
    declare(lakehouse, COLUMNS)
    lakehouse.run(4)
    lakehouse.check_state()
    lakehouse.check_quarantine()
    lakehouse.check_ledger()


def refuse_lost_records(lakehouse: Lakehouse, memory: Memory) -> None:
    """Of the first batch staging has lost some records, which no purge tells: their rows would go with them."""
    table = lakehouse.staged.table
    before = memory.version(table)
    memory.delete(table, "batch = 1 and md5(record) < '8'")
    for source in lakehouse.sources:
        rows = lakehouse.base(source)
        try:
            lakehouse.project.run(source)
        except CompilerError as refused:
            says = f"column note is new, and {lakehouse.schema}.{source}__base gets it from all records in staging, but"
            demand(says in str(refused) and "delivered in batches 1 to 1" in str(refused), str(refused))
        else:
            raise LawBroken(f"{source}: rows went with the records that staging lost")
        check_same(rows, lakehouse.base(source), source)
    memory.restore(table, before)


CASES = [
    pytest.param((Lakehouse, {"mysql": 40, "oracle": 40}), id="2x40"),
    pytest.param((Lakehouse, {"spanner": 80}), id="spanner-80"),
    pytest.param((Histories, {"mysql": 40}), id="history-40"),
    pytest.param((Lakehouse, {"postgresql": 60, "sqlserver": 60}), id="2x60", marks=pytest.mark.soak),
    pytest.param((Histories, {"oracle": 50, "spanner": 50}), id="history-2x50", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("case", CASES)
def test_a_column_that_is_declared_later_has_the_values_of_a_rebuild(
    spark: SparkSession, case: tuple[type[Lakehouse], dict[str, int]]
) -> None:
    models, histories = case
    with Memory(spark) as memory:
        records = {source: records_of(source, number) for source, number in histories.items()}
        lakehouse = models("added", StagedHistories(memory, "added_records", records, delivery=0, again=True))
        grow(lakehouse, memory)
        for source in lakehouse.sources:
            kinds = [(line.kind, line.first_batch, line.last_batch) for line in lakehouse.accounts[source]]
            assert kinds == [("rebuild", 1, 2), ("apply", 3, 4)], source
        before = {source: lakehouse.base(source) for source in lakehouse.sources}
        assert any(row["note"] is not None for rows in before.values() for row in rows.values())
        lakehouse.run(4, full_refresh=True)
        for source in lakehouse.sources:
            check_same(before[source], lakehouse.base(source), source)


@pytest.mark.matrix
@pytest.mark.parametrize("models", [Lakehouse, Histories])
def test_a_run_that_adds_a_column_dies_before_each_statement_and_the_next_one_makes_it_good(
    spark: SparkSession, models: type[Lakehouse]
) -> None:
    with MortalMemory(spark) as memory:
        records = {"mysql": records_of("mysql", 12)}
        lakehouse = models("added", StagedHistories(memory, "added_records", records, delivery=0))
        declare(lakehouse, BEFORE)
        lakehouse.run(1)

        def command() -> None:
            declare(lakehouse, ADDED)
            lakehouse.deliver(2)
            lakehouse.project.run(*lakehouse.sources)

        def check() -> None:
            lakehouse.check_state()
            lakehouse.check_quarantine()
            assert isinstance(lakehouse.project, MemoryProject)
            assert lakehouse.project.failing("ledger_balances", "mysql") == []

        rounds = memory.die_before_each(f"added column, {models.materialized}", command, check)
        assert rounds >= 4, memory.written


class Bug(NamedTuple):
    """A bug: which text of which file becomes which, and what is seen of it."""

    name: str
    file: str
    changes: dict[str, str]
    shows: str


BUGS = [
    Bug("only the new batches are read", "macros/materializations/range_to_apply.sql",
        {"{%- set first, kind, applied = 1, 'rebuild', {'base_batch': 0,":
         "{%- set kind, applied = 'rebuild', {'base_batch': 0,"},
        "keys"),
    Bug("the mark is a part of the declaration", "macros/model/digest_of_columns.sql",
        {"if column.zero_date else '')": "if column.zero_date else '') ~ (', added' if column.added else '')"},
        "built with other columns"),
    Bug("rows go with the records that staging lost", "macros/materializations/added_columns.sql",
        {" if not purged else none -%}": " if false else none -%}"},
        "rows went with the records"),
    Bug("records that are all there count as lost", "macros/ledger/lost_records.sql",
        {"where records < delivered": "where records <= delivered"},
        "is new, and planted_"),
]  # fmt: skip


@pytest.fixture(scope="module")
def staged(spark: SparkSession) -> Iterator[tuple[StagedHistories, Memory]]:
    with Memory(spark) as memory:
        records = {"mysql": records_of("mysql", 40)}
        yield StagedHistories(memory, "planted_records", records, delivery=0, again=True), memory


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_laws_find(staged: tuple[StagedHistories, Memory], bug: Bug) -> None:
    records, memory = staged
    schema = "planted_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    lakehouse = Lakehouse(schema, records, replaced={bug.file: bug.changes})
    version = memory.version(records.table)
    try:
        with pytest.raises((LawBroken, CompilerError), match=bug.shows):
            grow(lakehouse, memory)
    finally:
        memory.restore(records.table, version)
