"""Deletes that name no key, only the address of their row: what a model says of addresses, and what they cost without.

LogMiner writes them for inserts that were rolled back. That they undo what they should is proven in test_keyless_laws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from datastream import Staged
from lakes import stored
from memory import Memory
from pyspark.sql import SparkSession
from row_deletes import COLUMNS, OBJECT, Rows, RowVersions, change


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def test_the_table_of_row_deletes_is_made_when_the_first_one_comes(memory: Memory) -> None:
    """A model without row deletes pays nothing."""
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 2, "INSERT", 10, "b", "y"),
        replace(change(1, None, "DELETE", 11, "a"), batch=2),
        replace(change(1, None, "DELETE", 12, "c"), batch=3),
        replace(change(1, 3, "INSERT", 8, "c", "z"), batch=4),
    ]
    rows = Rows(memory, "row_deletes_lazy", records)
    rows.run(1)
    rows.check()
    assert not rows.has_row_deletes()
    for batch in (2, 3):  # of row deletes alone: they leave no trace in the base table, and are not read again
        rows.run(batch)
        rows.check()
        line = rows.accounts[-1]
        assert (line.kind, line.first_batch, line.base_batch) == ("apply", batch, 1)
    assert rows.failing_tests() == {"no_pending_rows"}
    rows.run(4)  # of a record that comes later than the delete of its row, which waits for it no more
    rows.check()
    line = rows.accounts[-1]
    assert (line.applied, line.inserted, line.superseded) == (0, 0, 1)
    assert rows.live() == {(1, 2, "y")}
    assert rows.failing_tests() == set()


@pytest.mark.parametrize("news", [True, False])
@pytest.mark.parametrize("model", [Rows, RowVersions])
def test_row_deletes_that_were_restored_to_an_earlier_version_come_again(
    memory: Memory, model: type[Rows], news: bool
) -> None:
    """The base table has no row of these batches, and the view would show the rows again."""
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 2, "INSERT", 10, "b", "y"),
        change(1, 3, "INSERT", 11, "c", "z"),
        replace(change(1, None, "DELETE", 12, "a"), batch=2),
        replace(change(1, None, "DELETE", 13, "b"), batch=3),
        replace(change(1, 4, "INSERT", 14, "d", "w"), batch=4),
    ]
    schema = f"restored_deletes_{model.materialized}_{news}".lower()
    rows, deletes = model(memory, schema, records), f"{schema}.tbl__row_deletes"
    for batch in (1, 2):
        rows.run(batch)
    older = memory.version(deletes)
    rows.run(3)
    memory.restore(deletes, older)
    if news:
        rows.run(4)
    else:
        rows.project.run("tbl")
    rows.check_state()
    assert memory.table(deletes).count() == 2


def test_of_a_table_without_a_primary_key_the_address_can_be_the_key(memory: Memory) -> None:
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 1, "UPDATE", 10, "a", "y"),
        change(1, 1, "INSERT", 11, "b", "the same row twice"),
        change(1, 1, "INSERT", 12, "c", "the same row twice"),
        change(1, 1, "INSERT", 13, "d", "undone"),
        change(1, None, "DELETE", 14, "d"),
        change(1, 2, "INSERT", 15, "d", "at its address"),
        change(1, None, "DELETE", 17, "e", payload="null"),
        replace(change(1, 3, "INSERT", 16, "e", "late"), batch=2),
        replace(change(1, None, "DELETE", 20, "b"), batch=2),
        replace(change(1, 4, "INSERT", 21, None, "nowhere"), batch=2),
    ]
    rows = Rows(memory, "row_ids_as_key", records, key="_row_id")
    rows.run(1)
    twice = (1, 1, "the same row twice")
    assert sorted(memory.rows("row_ids_as_key.tbl")) == [twice, twice, (1, 1, "y"), (1, 2, "at its address")]
    rows.run(2)
    assert sorted(memory.rows("row_ids_as_key.tbl")) == [twice, (1, 1, "y"), (1, 2, "at its address")]
    base = stored(memory, "row_ids_as_key.tbl__base").collect()
    assert {row._row_id[-1]: row._deleted for row in base} == {"a": False, "b": True, "c": False, "d": False, "e": True}
    (bad,) = memory.rows("row_ids_as_key.tbl__quarantine")
    assert bad._change_error == "the record has no _row_id, which is the key: backfill rows may have none"
    assert not rows.has_row_deletes()
    assert rows.failing_tests() == set()
    rows.run(2, full_refresh=True)
    assert set(base) == set(stored(memory, "row_ids_as_key.tbl__base").collect())


def test_a_delete_with_half_a_key_deletes_nothing_by_its_address(memory: Memory) -> None:
    halves: list[dict[str, int | None]] = [{"HISTORY": 1, "ID": None}, {"HISTORY": None, "ID": 1}]
    rows = Rows(
        memory, "row_deletes_half",
        [
            change(1, 1, "INSERT", 9, "a", "x"),
            *(change(1, None, "DELETE", 10, "a", payload=half, uuid=str(half)) for half in halves),
        ],
    )  # fmt: skip
    rows.run(1)
    assert rows.live() == {(1, 1, "x")}
    assert not rows.has_row_deletes()
    quarantined = {row._change_error for row in memory.rows("row_deletes_half.tbl__quarantine")}
    assert quarantined == {"key id is missing or NULL", "key history is missing or NULL"}


def test_a_rebuild_that_brings_no_row_deletes_forgets_those_of_before(memory: Memory) -> None:
    records = [change(1, 1, "INSERT", 9, "a", "x"), replace(change(1, None, "DELETE", 10, "a"), batch=2)]
    rows = Rows(memory, "row_deletes_forgotten", records)
    rows.run(1)
    rows.run(2)
    assert rows.live() == set() and len(rows.deletes()) == 1
    rows.run(1, full_refresh=True)
    assert rows.live() == {(1, 1, "x")} and rows.deletes() == set()


def test_a_model_says_whether_its_records_have_row_ids(memory: Memory) -> None:
    """Without them a delete that has no key is quarantined; and a SELECT of one's own may have them."""
    insert, delete = change(1, 1, "INSERT", 9, "a", "x"), change(1, None, "DELETE", 10, "a")
    memory.stage("row_ids_said_staging.changes", [Staged(record.text, OBJECT, 1) for record in (insert, delete)])
    project = memory.project("row_ids_said")
    project.source("row_ids_said_staging", "changes")
    of_oracle = f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='{OBJECT}') }}}}"
    for name, sql, row_ids in [
        ("without", of_oracle, False), ("own", "select * from `row_ids_said`.`without__changes`", True),
    ]:  # fmt: skip
        config = f"config(materialized='current_state', unique_key='id', meta={{'row_ids': {row_ids}}})"
        project.model(name, f"{{{{ {config} }}}}\n{sql}", COLUMNS)
    project.run("without")
    project.run("own")
    assert [row.id for row in memory.rows("row_ids_said.without")] == [1]
    (bad,) = memory.rows("row_ids_said.without__quarantine")
    assert bad._change_error == "key id is missing or NULL"
    assert memory.rows("row_ids_said.own") == []
    assert [row._row_id for row in stored(memory, "row_ids_said.own__base").collect()] == [insert.address]


@pytest.mark.parametrize("models", [Rows, RowVersions])
def test_tables_of_an_earlier_version_get_the_columns_by_which_keys_are_followed(
    memory: Memory, models: type[Rows]
) -> None:
    """Of their rows no transaction is known; what comes later is followed. A run that died in between goes on."""
    shift = [(1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a"), (2, "UPDATE-DELETE", "b"), (3, "UPDATE-INSERT", "b")]
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 2, "INSERT", 10, "b", "y"),
        *(
            replace(change(1, key, kind, 11, row, row, ssn=place, transaction="t"), batch=2)
            for place, (key, kind, row) in enumerate(shift)
        ),
    ]
    schema = f"row_deletes_before_{models.materialized}"
    without = {"macros/model/keys_may_shift.sql": {"keyless.kind == 'row_deletes'": "false"}}
    earlier = models(memory, schema, records, without)
    earlier.run(1)
    made = memory.table(f"{schema}.tbl__base").columns
    memory.query(f"alter table `{schema}`.`tbl__base` add columns (_change_transaction string)")
    now = models(memory, schema, earlier)  # type: ignore[arg-type]
    for _ in range(2):
        now.run(1)
        now.check_state()
        added = set(memory.table(f"{schema}.tbl__base").columns) - set(made)
        of_state = {"_change_is_insert", "_change_contenders", "_change_displaced"}
        assert added == {"_change_transaction"} | (of_state if models is Rows else {"_change_is_undone"})
    now.run(2)
    assert now.now() == {(1, 2, "a"), (1, 3, "b")}
    assert now.failing_tests() == set()


@pytest.mark.parametrize("models", [Rows, RowVersions])
def test_tables_of_an_earlier_version_get_the_columns_by_which_undone_inserts_are_told(
    memory: Memory, models: type[Rows]
) -> None:
    """Of row deletes that were there before no transaction is known; inserts that come later are undone."""
    failed = [
        change(1, 1, "INSERT", 12, "c", "failed", transaction="u"),
        change(1, None, "DELETE", 13, "c", transaction="u"),
    ]
    records = [
        change(1, 1, "INSERT", 9, "a", "x", transaction="s"),
        change(1, 7, "INSERT", 10, "c", "z"),
        change(1, None, "DELETE", 11, "c"),
        *(replace(record, batch=batch) for batch, record in enumerate(failed, 2)),
    ]
    schema = f"row_deletes_with_transactions_{models.materialized}"
    digest = {"macros/model/model_settings.sql": {"{'transactions': 2}": "{'transactions': true}"}}
    earlier = models(memory, schema, records, digest)
    earlier.run(1)
    added = {"tbl__base": "_change_displaced" if models is Rows else "_change_is_undone"}
    added["tbl__row_deletes"] = "_change_transaction"
    for table, column in added.items():
        memory.keep(f"{schema}.{table}", memory.table(f"{schema}.{table}").drop(column))
    now = models(memory, schema, earlier)  # type: ignore[arg-type]
    for batch, shown in [(1, "x"), (2, "failed"), (3, "x")]:
        now.run(batch)
        assert all(column in memory.table(f"{schema}.{table}").columns for table, column in added.items())
        assert now.now() == {(1, 1, shown)}
    assert now.failing_tests() == set()
