"""A run of dbt dies before any of its statements that write, and the same command follows: nothing is lost or doubled.

Killed is here: the statement is not sent, and nothing after it. `test_kills.py` shows that a process dies so.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged
from file_formats import file_format
from memory import Memory
from plain_dbt import PlainProject, Rows
from process.spark_warehouse import SparkWarehouse
from pyspark.sql import DataFrame, SparkSession
from rounds import note_rounds

STAGING = "killed_staging"
# What remains when the process is dead; a cache or a temporary view does not.
_WRITES = re.compile(r"(create (or replace )?(table|view|schema)|insert|merge|delete|drop (table|view) if exists `)")
PARTS = ("base", "quarantine", "row_deletes")
MATERIALIZED = ("current_state", "history")


class KilledError(Exception):
    """The run ends here."""


class _Mortal:
    """Refuses every statement that writes, once so many of a run were sent."""

    lives: int | None = None
    written: list[str]

    def query(self, sql: str) -> Rows:
        if _WRITES.match(sql.strip()):
            if self.lives is not None and len(self.written) >= self.lives:
                raise KilledError(sql)
            self.written.append(sql)
        return super().query(sql)  # type: ignore[misc,no-any-return]


class MortalMemory(_Mortal, Memory):
    """Tables in memory."""

    file_format = "delta"


class MortalSpark(_Mortal, SparkWarehouse):
    """Tables of the format of the session."""

    file_format = file_format()


COLUMNS = {"id": "bigint", "note": "string"}
# A source of the user's own, which costs Spark little: what is killed here is what comes after it.
SELECT = """
select
    said.id, said.note, said.type as _change_type, lpad(said.place, 6, '0') as _change_sequence,
    said.type || said.place as _change_id, timestampadd(second, said.place, timestamp '2026-11-21') as _change_time,
    cast(null as string) as _change_transaction, batch as _change_batch, cast(null as array<string>) as _change_columns,
    said.error as _change_error, said.address as _row_id, record as _change_record, origin as _change_origin
from (
    select *, from_json(
        record, 'id bigint, note string, type string, place int, error string, address string'
    ) as said
    from {{ reconcile.qualified(source('lake', 'STAGING')) }}
)"""


def records(batch: int) -> list[Staged]:
    """Return changes of which some are bad, come late, again or without a key."""
    place = 10 * batch
    told = [
        {"id": batch, "note": "new", "type": "insert", "place": place, "address": f"a{batch}"},
        {"id": 1, "note": f"of batch {batch}", "type": "update", "place": place + 1, "address": "a1"},
        {"id": 1, "note": "late", "type": "update", "place": place - 15, "address": "a1"},
        {"id": batch - 1, "type": "delete", "place": place + 2, "address": f"a{batch - 1}"},
        {"id": 100 + batch, "note": "undone", "type": "insert", "place": place + 3, "address": f"b{batch}"},
        {"type": "delete", "place": place + 4, "address": f"b{batch}"},
        {"id": batch, "type": "update", "place": place + 5, "error": "cannot be read"},
    ]
    return [Staged(json.dumps(record), "things", batch) for record in [*told, told[0]]]


def stage(warehouse: Any, staging: str, *batches: int) -> None:
    warehouse.stage(f"{STAGING}.{staging}", [row for batch in batches for row in records(batch)])


class Run:
    """A project of one model; `run` runs it, and it dies before the n-th statement that writes."""

    deaths = 0  # of all projects

    def __init__(self, warehouse: Any, schema: str, staging: str, materialized: str) -> None:
        self.warehouse, self.schema, self.staging, self.materialized = warehouse, schema, staging, materialized
        self.project = PlainProject(warehouse, schema, file_format=warehouse.file_format)
        self.project.source(STAGING, staging)
        config = f"materialized='{materialized}', unique_key='id', meta={{'row_ids': true}}"
        self.project.model(
            "things",
            f"{{{{ config({config}) }}}}" + SELECT.replace("STAGING", staging),
            COLUMNS,
            data_tests=["reconcile.ledger_balances"],
        )

    def run(self, dies_before: int | None = None) -> bool:
        """Return whether it died."""
        self.warehouse.lives, self.warehouse.written = dies_before, []
        self.project.context["invocation_id"] = str(uuid.uuid4())
        try:
            self.project.run("things")
        except KilledError:
            Run.deaths += 1
            return True
        finally:
            self.warehouse.lives = None
        return False

    def dies_everywhere(self) -> None:
        """Die before the first statement, then, begun anew, before the second and so on, until the run is whole."""
        dying = 0
        while self.run(dies_before=dying):
            dying += 1
        assert dying > 4, self.warehouse.written

    def rows(self) -> dict[str, list[str]]:
        """Return the rows of each of the model's tables."""
        return {part: self._rows(f"{self.schema}.things__{part}") for part in PARTS}

    def _rows(self, name: str) -> list[str]:
        rows: DataFrame = self.warehouse.table(name)
        plain = rows.withColumnsRenamed({"_change_deleted": "_deleted", "_change_row_id": "_row_id"})
        return sorted(map(str, plain.collect()))

    def check_the_account(self, last: int) -> None:
        """Compare the ledger with staging: every batch is in it, whole, and nothing is left out between two ranges."""
        ledger = self.warehouse.table(f"{self.schema}.reconcile_ledger").orderBy("recorded_at").collect()
        covered = 0
        for row in ledger:
            assert row.first_batch <= covered + 1
            assert row.delivered == sum(len(records(batch)) for batch in range(row.first_batch, row.last_batch + 1))
            covered = max(covered, row.last_batch)
        assert covered == last

    def check_the_balance(self) -> None:
        """Run the package's own test of the ledger."""
        assert self.warehouse.sql(self.project.test("ledger_balances", "things")).collect() == []


@pytest.fixture(autouse=True)
def _noted(request: pytest.FixtureRequest) -> Iterator[None]:
    before = Run.deaths
    yield
    note_rounds(request.node.name, Run.deaths - before)


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[MortalMemory]:
    with MortalMemory(spark) as memory:
        yield memory


def undisturbed(memory: MortalMemory, staging: str, materialized: str) -> dict[str, list[str]]:
    """Return what a run that does not die makes of all that is staged."""
    run = Run(memory, f"{staging}_undisturbed", staging, materialized)
    assert not run.run()
    return run.rows()


@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_runs_that_die_before_each_statement_in_turn_are_made_good_by_the_next_that_lives(
    memory: MortalMemory, materialized: str
) -> None:
    staging = f"{materialized}_in_turn"
    run = Run(memory, staging, staging, materialized)
    for batch in (1, 2):
        stage(memory, staging, batch)
        run.dies_everywhere()
        run.check_the_account(batch)
    run.check_the_balance()
    assert run.rows() == undisturbed(memory, staging, materialized)


@pytest.mark.parametrize(
    "materialized",
    [pytest.param("current_state", marks=pytest.mark.soak), pytest.param("history", marks=pytest.mark.matrix)],
)
def test_on_real_tables_runs_that_die_before_each_statement_in_turn_are_made_good_by_the_next_that_lives(
    spark: SparkSession, memory: MortalMemory, materialized: str
) -> None:
    warehouse, staging = MortalSpark(spark), f"real_{materialized}"
    run = Run(warehouse, staging, staging, materialized)
    stage(warehouse, staging, 1)
    run.run()
    stage(warehouse, staging, 2)
    run.dies_everywhere()
    run.check_the_account(2)
    run.check_the_balance()
    stage(memory, staging, 1, 2)
    assert run.rows() == undisturbed(memory, staging, materialized)


@pytest.mark.matrix
@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_a_first_run_that_dies_before_any_one_statement_is_made_good_by_the_same_command(
    memory: MortalMemory, materialized: str
) -> None:
    staging = f"first_{materialized}"
    stage(memory, staging, 1, 2)
    expected = undisturbed(memory, staging, materialized)
    for number in range(len(memory.written)):
        run = Run(memory, f"{staging}_{number}", staging, materialized)
        assert run.run(dies_before=number)
        assert not run.run()
        assert run.rows() == expected, f"killed before statement {number}"
        run.check_the_account(2)


@pytest.mark.matrix
@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_a_later_run_that_dies_before_any_one_statement_is_made_good_by_the_same_command(
    memory: MortalMemory, materialized: str
) -> None:
    staging = f"later_{materialized}"
    stage(memory, staging, 1)
    run = Run(memory, staging, staging, materialized)
    assert not run.run()
    for number in itertools.count():
        stage(memory, staging, number + 2)
        if not run.run(dies_before=number):
            break
        assert not run.run()
    assert any("merge into" in sql and "__base" in sql for sql in memory.written), "there was a MERGE to die before"
    assert run.rows() == undisturbed(memory, staging, materialized)
    run.check_the_account(number + 2)
    run.check_the_balance()


# What a killed run may have left in the directory of a table that the metastore does not have.
LEFT = ("a directory", "a commit that has not ended", "a log")


def left_behind(spark: SparkSession, name: str, left: str) -> None:
    """Drop a table, and let its directory have what a run leaves that is killed while it creates the table."""
    (place,) = spark.sql(f"describe extended {name}").where("col_name = 'Location'").collect()
    log = Path(place.data_type.removeprefix("file:")) / ("_delta_log" if file_format() == "delta" else "metadata")
    commits = {file.name: file.read_bytes() for file in log.glob("0*.json")} if left == "a log" else {}
    spark.sql(f"drop table {name}")
    log.mkdir(parents=True, exist_ok=True)
    files = {".0.json.tmp": b'{"commitInfo"'} if left == "a commit that has not ended" else commits
    for file, content in files.items():
        (log / file).write_bytes(content)


@pytest.mark.parametrize("left", LEFT)
def test_a_table_of_the_package_that_a_killed_run_has_half_created_is_created(spark: SparkSession, left: str) -> None:
    warehouse, schema = MortalSpark(spark), f"half_{left.split()[1]}_{len(left)}"
    macros = PlainProject(warehouse, schema, file_format=warehouse.file_format).macros
    warehouse.written = []
    spark.sql(f"create schema {schema}")
    tables = {
        macros.ledger: macros.get_create_ledger_statement,
        macros.columns_seen: macros.get_create_columns_seen_statement,
        macros.parity_runs: macros.get_create_parity_statement,
        macros.parity_differences: macros.get_create_parity_differences_statement,
    }
    for named, create in tables.items():
        name = f"{schema}.{named().identifier}"
        macros.create_if_missing(named(), create(file_format()))
        described = spark.sql(f"describe {name}").collect()
        left_behind(spark, name, left)
        for _ in range(2):  # the second time it is there, with a row
            macros.create_if_missing(named(), create(file_format()))
            spark.sql(f"insert into {name} (relation) values ('shop.orders')")
        assert spark.table(name).count() == 2
        assert spark.sql(f"describe {name}").collect() == described
        assert any(row.comment for row in described)


def test_a_table_of_deletes_that_a_killed_run_has_half_created_is_created(
    spark: SparkSession, memory: MortalMemory
) -> None:
    warehouse, staging = MortalSpark(spark), "half_deletes"
    warehouse.stage(f"{STAGING}.{staging}", records(1)[:1])
    run = Run(warehouse, staging, staging, "current_state")
    assert not run.run()
    assert not warehouse.has(f"{staging}.things__row_deletes")
    spark.sql(f"create table {staging}.things__row_deletes (id bigint) using {file_format()}")
    left_behind(spark, f"{staging}.things__row_deletes", "a log")
    stage(warehouse, staging, 2)
    assert not run.run()
    run.check_the_balance()
    memory.stage(f"{STAGING}.{staging}", [records(1)[0], *records(2)])
    assert run.rows() == undisturbed(memory, staging, "current_state")
