"""A model whose macro is for another source than its records is refused, and a stray record is quarantined: both say
which macro is probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError
from pyspark.sql import SparkSession

THINGS = {"id": "bigint", "name": "string"}
CELLS = {"row_key": "binary", "family": "string", "qualifier": "binary", "cell_time": "timestamp", "value": "binary"}
MACROS = {
    **{source: f"datastream_{source}" for source in READ_METHODS},
    "spanner": "spanner_change_stream", "bigtable": "bigtable_change_stream",
}  # fmt: skip
OBJECT = "shop_things"


def staged(source: str, id_: int, batch: int = 1, *, backfill: bool = False) -> Staged:
    """Return a record of one row as its source delivers it: an insert, or a row of a backfill."""
    if source == "spanner":
        said: dict[str, Any] = {
            "commit_timestamp": "2026-11-21T11:33:12.000000001Z", "server_transaction_id": f"t{id_}",
            "record_sequence": "00000000", "mod_type": "INSERT", "value_capture_type": "NEW_ROW",
            "mods": [{"keys": {"id": str(id_)}, "new_values": {"name": "one"}}],
            **({"backfill": True} if backfill else {}),
        }  # fmt: skip
        return Staged(json.dumps(said), OBJECT, batch, source=source)
    if source == "bigtable":
        cell = {"family": "f", "qualifier": "cQ==", "timestamp_micros": "1000", "value": "dg=="}
        said = {
            "row_key": "a2V5", "type": "backfill" if backfill else "user", "source_cluster_id": "c",
            "commit_timestamp": "2026-11-21T11:33:12.000000001Z", "tiebreaker": id_,
            "entries": [{"set_cell": cell}, {"set_cell": {**cell, "qualifier": "cg=="}}],
        }  # fmt: skip
        return Staged(json.dumps(said), OBJECT, batch, source=source)
    without = []
    if backfill:  # as MySQL's and Oracle's really are: nothing of the log
        without = ["scn", "rs_id", "ssn", "log_file", "log_position", "lsn", "row_id", "tx_id"]
    said = {"read_method": READ_METHODS[source][backfill], "object": OBJECT}
    record = event(source, {"id": id_, "name": "one"}, without=without, metadata={"schema": "shop"}, **said)
    return Staged(record, OBJECT, batch)


@pytest.fixture
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def project_of(memory: Memory, macro: str, rows: list[Staged], materialized: str = "current_state") -> MemoryProject:
    """Return a project of one model, which reads the rows by the macro for a source."""
    memory.stage("of_others.changes", rows)
    project = memory.project("others")
    project.source("of_others", "changes")
    columns, key = (CELLS, list(CELLS)[:4]) if macro == "bigtable" else (THINGS, "id")
    project.model(
        "things",
        f"{{{{ config(materialized={materialized!r}, unique_key={key!r}) }}}}\n"
        f"{{{{ reconcile.{MACROS[macro]}(source('lake', 'changes'), object={OBJECT!r}) }}}}",
        columns,
    )
    return project


def reads_none(meant: str) -> str:
    return re.escape(
        f"the source macro of the model can read no record of {OBJECT} in of_others.changes; the macro that fits is "
        f"{meant}"
    )


# Each macro once and each source once; what the quarantine says of every pair, below.
OTHERS = [(macro, [*MACROS][(at + 1) % len(MACROS)]) for at, macro in enumerate(MACROS)]


@pytest.mark.parametrize(("macro", "source"), OTHERS)
def test_a_macro_of_another_source_is_refused_with_the_one_that_fits(memory: Memory, macro: str, source: str) -> None:
    rows = [staged(source, 1, backfill=True), staged(source, 2)]
    project = project_of(memory, macro, rows)
    with pytest.raises(CompilerError, match=reads_none(MACROS[source])):
        project.run("things")
    assert not memory.has("others.things__base")


@pytest.mark.parametrize("materialized", ["history", "current_view"])
def test_whatever_the_model_is_made_of(memory: Memory, materialized: str) -> None:
    project = project_of(memory, "oracle", [staged("mysql", 1, backfill=True), staged("mysql", 2)], materialized)
    with pytest.raises(CompilerError, match=reads_none("datastream_mysql")):
        project.run("things")
    assert not memory.has("others.things")


@pytest.mark.parametrize("source", ["postgresql", "spanner"])
def test_a_model_that_was_built_before_any_record_came_is_refused_too(memory: Memory, source: str) -> None:
    project = project_of(memory, "mysql", [staged("mysql", 1)._replace(object="others")])
    project.run("things")
    memory.stage("of_others.changes", [staged(source, 2, batch=2)])
    with pytest.raises(CompilerError, match=reads_none(MACROS[source])):
        project.run("things")
    with pytest.raises(CompilerError, match=reads_none(MACROS[source])):
        project.run("things", full_refresh=True)


@pytest.mark.parametrize("macro", MACROS)
def test_the_right_macro_takes_every_record(memory: Memory, macro: str) -> None:
    project = project_of(memory, macro, [staged(macro, 1, backfill=True), staged(macro, 2)])
    project.run("things")
    assert memory.rows("others.things__quarantine") == []
    assert memory.table("others.things").count() == 2


@pytest.mark.parametrize(
    "macro", [macro if macro in ("oracle", "spanner", "bigtable") else pytest.param(macro, marks=pytest.mark.soak)
              for macro in MACROS],
)  # fmt: skip
def test_stray_records_are_quarantined_with_the_macro_that_fits_and_counted(memory: Memory, macro: str) -> None:
    """Whether they come with the first records, among later ones, or alone: what fits goes on."""
    others = [source for source in MACROS if source != macro]
    own = [staged(macro, 1), staged(macro, 2, batch=2)]
    strays = [
        staged(source, 9, batch, backfill=backfill)
        for source in others
        for batch, backfill in ((1, False), (2, True), (3, False), (3, True))
    ]
    unknown = [own[0]._replace(source=("kafka"), batch=3), own[0]._replace(source=None, batch=3)]  # type: ignore[arg-type]
    project = project_of(memory, macro, [row for row in [*own, *strays] if row.batch == 1])
    project.run("things")
    for batch in (2, 3):
        memory.stage("of_others.changes", [row for row in [*own, *strays, *unknown] if row.batch == batch])
        assert " of another source; the macro that fits is " in project.run("things")["things"]
    assert memory.table("others.things").count() == 2
    quarantined = memory.rows("others.things__quarantine")
    found = sorted((row._change_batch, "; ".join(row._change_error.split("; ")[:2])) for row in quarantined)
    of = "the record is of another source; the macro that fits is "
    expected = [(batch, of + MACROS[source]) for source in others for batch in (1, 2, 3, 3)]
    assert [row for row in found if row[1].startswith(of)] == sorted(expected)
    assert [row[1].split("; ")[0] for row in found if not row[1].startswith(of)] == [
        "source 'kafka' of the staging table is unknown", "source of the staging table is NULL",
    ]  # fmt: skip
    assert project.failing("ledger_balances", "things") == []


def test_a_record_without_a_word_of_its_source_is_of_the_macros(memory: Memory) -> None:
    """`cdc` and `backfill` name none, and a record that says two things is of the macro's source if it says that."""
    rows = [
        Staged(event("mysql", {"id": 1, "name": "x"}, read_method="cdc"), OBJECT, 1),
        Staged(event("mysql", {"id": 2}, read_method="backfill", without=["log_file", "log_position"]), OBJECT, 1),
        Staged(event("mysql", {"id": 3}, read_method="oracle-cdc-logminer"), OBJECT, 1),
        Staged(event("mysql", {"id": 4}, metadata={"scn": 1, "lsn": "0/9"}), OBJECT, 1),
    ]
    project = project_of(memory, "mysql", rows)
    project.run("things")
    assert {row.id for row in memory.rows("others.things")} == {1, 2, 3, 4}


def test_a_staging_table_of_another_source_that_lacks_the_object_is_refused(memory: Memory) -> None:
    rows = [staged("spanner", 1)._replace(object="shop.things")]
    project = project_of(memory, "mysql", rows)
    project.model(
        "named",
        "{{ config(materialized='current_state', unique_key='id') }}\n"
        "{{ reconcile.datastream_mysql(source('lake', 'changes'), table='shop.things') }}",
        THINGS,
    )
    of_spanner = (
        "the records of of_others.changes are of the source spanner, and the source macro of the model cannot "
        "read them; the macro that fits is spanner_change_stream"
    )
    for model in ("things", "named"):
        with pytest.raises(CompilerError, match=re.escape(of_spanner)):
            project.run(model)
