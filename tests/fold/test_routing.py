"""A model has the records of its table, and of no other that has the same name in the stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError
from pyspark.sql import SparkSession

THINGS = {"id": "bigint", "name": "string"}
# Whose schema is a database, and whose metadata have both; the others are as the second.
SOURCES = [
    "mysql", "sqlserver",
    pytest.param("oracle", marks=pytest.mark.soak), pytest.param("postgresql", marks=pytest.mark.soak),
]  # fmt: skip


def staged(source: str, schema: str, table: str, id_: int, batch: int = 1, **said: Any) -> Staged:
    """Return a record as the stream names it: schema and table in one."""
    place = {"database": schema} if source == "mysql" else {"database": "db", "schema": schema}
    metadata = {**place, "table": table, **said}
    object_ = f"{schema}_{table}"
    record = event(source, {"id": id_, "name": f"{schema}.{table}"}, object=object_, metadata=metadata)
    return Staged(record, object_, batch)


@pytest.fixture
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def project_of(memory: Memory, source: str, rows: list[Staged], **models: dict[str, Any]) -> MemoryProject:
    """Return a project with a model for each table, object or list of them."""
    memory.stage("routed_staging.changes", rows)
    project = memory.project("routed")
    project.source("routed_staging", "changes")
    for name, which in models.items():
        said = ", ".join(f"{word}={value!r}" for word, value in which.items() if word != "materialized")
        project.model(
            name,
            f"{{{{ config(materialized={which.get('materialized', 'current_state')!r}, unique_key='id') }}}}\n"
            f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), {said}) }}}}",
            THINGS,
        )
    return project


def rows_of(memory: Memory, model: str) -> dict[int, str]:
    return {row.id: row.name for row in memory.rows(f"routed.{model}")}


@pytest.mark.parametrize("source", SOURCES)
def test_tables_of_one_object_are_two_tables(memory: Memory, source: str) -> None:
    rows = [staged(source, "a_b", "c", 1), staged(source, "a", "b_c", 2), staged(source, "a_b", "c", 3, batch=2)]
    project = project_of(memory, source, rows, one={"table": "a_b.c"}, other={"table": "a.b_c"})
    project.run("one", "other")
    assert rows_of(memory, "one") == {1: "a_b.c", 3: "a_b.c"}
    assert rows_of(memory, "other") == {2: "a.b_c"}
    assert not project.failing("ledger_balances", "one") and not project.failing("ledger_balances", "other")
    delivered = {row.relation: row.delivered for row in memory.rows("routed.reconcile_ledger")}
    assert delivered == {"routed.one": 2, "routed.other": 1}


@pytest.mark.parametrize("materialized", ["current_state", "history"])
def test_a_model_that_names_neither_is_refused_when_both_have_come(memory: Memory, materialized: str) -> None:
    rows = [staged("mysql", "a_b", "c", 1), staged("mysql", "a", "b_c", 2, batch=2)]
    project = project_of(memory, "mysql", rows, both={"object": "a_b_c", "materialized": materialized})
    memory.view("upto.changes", "select * from `routed_staging`.`changes` where batch = 1")
    project.source("upto", "changes")
    project.run("both")
    before = rows_of(memory, "both")
    memory.view("upto.changes", "select * from `routed_staging`.`changes`")
    with pytest.raises(CompilerError, match=re.escape("are of several tables, a.b_c, a_b.c, which")):
        project.run("both")
    assert rows_of(memory, "both") == before == {1: "a_b.c"}
    with pytest.raises(
        CompilerError, match=re.escape("name the table that the model reads, for example table='a.b_c'")
    ):
        project.run("both", full_refresh=True)
    assert rows_of(memory, "both") == before


def test_one_table_in_two_databases_is_refused_and_can_be_named(memory: Memory) -> None:
    rows = [
        staged("sqlserver", "dbo", "orders", 1, database="one"),
        staged("sqlserver", "dbo", "orders", 2, database="two"),
        staged("sqlserver", '["dbo"]', "orders", 3, database="two")._replace(object="dbo_orders"),
    ]
    project = project_of(
        memory, "sqlserver", rows, one={"table": "one.dbo.orders"}, two={"table": "two.dbo.orders"},
        both={"object": "dbo_orders"},
    )  # fmt: skip
    project.run("one", "two")
    assert (set(rows_of(memory, "one")), set(rows_of(memory, "two"))) == ({1}, {2, 3})
    with pytest.raises(CompilerError, match=re.escape("are of several tables, one.dbo.orders, two.dbo.orders, which")):
        project.run("both")


def test_both_names_of_a_table_that_was_renamed_are_its_records(memory: Memory) -> None:
    rows = [staged("mysql", "shop", "order_lines", 1), staged("mysql", "shop", "order_items", 2)]
    project = project_of(
        memory, "mysql", rows, by_table={"table": ["shop.order_lines", "shop.order_items"]},
        by_object={"object": ["shop_order_lines", "shop_order_items"]},
    )  # fmt: skip
    project.run("by_table", "by_object")
    assert set(rows_of(memory, "by_table")) == set(rows_of(memory, "by_object")) == {1, 2}


def test_names_that_differ_in_case_alone_are_two_tables(memory: Memory) -> None:
    rows = [staged("oracle", "SHOP", "CASE_T", 1), staged("oracle", "SHOP", "case_t", 2)]
    project = project_of(
        memory, "oracle", rows, upper={"object": "SHOP_CASE_T"}, lower={"object": "SHOP_case_t"},
    )  # fmt: skip
    project.run("upper", "lower", "reconcile_unrouted")
    assert (rows_of(memory, "upper"), rows_of(memory, "lower")) == ({1: "SHOP.CASE_T"}, {2: "SHOP.case_t"})
    assert memory.rows("routed.reconcile_unrouted") == []


def test_what_no_model_takes_is_named_with_its_table(memory: Memory) -> None:
    nowhere = event("mysql", {"id": 9}, object="a_b_c", without=["table", "database"])
    rows = [
        staged("mysql", "a_b", "c", 1), staged("mysql", "a", "b_c", 2), staged("mysql", "x", "y", 3),
        Staged(nowhere, "a_b_c", 1), Staged("{", None, 1),  # type: ignore[arg-type]
    ]  # fmt: skip
    project = project_of(memory, "mysql", rows, one={"table": "a_b.c"})
    project.run("one", "reconcile_unrouted")
    found = [(row.object, row.reason) for row in memory.rows("routed.reconcile_unrouted")]
    of_object = "no model reads this table of the object"
    assert sorted(found, key=str) == sorted(
        [("a_b_c", of_object), ("a_b_c", of_object), ("x_y", "no model reads this object"),
         (None, "the record names no object")], key=str,
    )  # fmt: skip
    found = {row.object: row for row in project.failing("no_unrouted", "routed_staging.changes", ignore="x_y")}
    assert (len(found), found[None].records, found[None].proposal) == (2, 1, None)


def test_a_run_says_what_no_model_reads_and_which_models_had_nothing(memory: Memory) -> None:
    first = [staged("mysql", "a_b", "c", 1), staged("mysql", "a", "b_c", 2), staged("mysql", "x", "old", 3)]
    first += [staged("mysql", "x", "young", 7), staged("mysql", "x", "young", 8)]
    then = [staged("mysql", "a_b", "c", 4, 2), staged("mysql", "x", "y", 5, 2), staged("mysql", "x", "y", 6, 2)]
    models = {"one": {"table": "a_b.c"}, "two": {"table": "a.b_c"}, "misnamed": {"table": "a.c"}}
    project = project_of(memory, "mysql", first, **models)
    project.run("one", "two", "misnamed")
    assert project.macros.summary_of_run() == [
        "No model reads these objects of routed_staging.changes (batch 1 and later): x_young: x.young, mysql, key id, "
        "2 records; x_old: x.old, mysql, key id, 1 record. See reconcile_unrouted.",
        "No new records for misnamed (none so far); the last batch of routed_staging.changes is 1.",
    ]
    memory.stage("routed_staging.changes", then)
    project.run("one", "two", "misnamed")
    assert project.macros.summary_of_run() == [
        "No model reads these objects of routed_staging.changes (batch 2 and later): x_y: x.y, mysql, key id, 2 "
        "records. See reconcile_unrouted.",
        "No new records for misnamed (since batch 1); two (since batch 1); the last batch of routed_staging.changes "
        "is 2.",
    ]
    project.run("one", "two", "misnamed")
    assert project.macros.summary_of_run() == [], "nothing came"


@pytest.mark.parametrize(
    "planted",
    [
        # Another table's records are taken too.
        {"macros/change_records/source_tables.sql": {"coalesce({{ conditions | join(' or ') }}, false)": "true"}},
        # What a record says against itself is not heard.
        {"macros/change_records/datastream_envelope.sql": {"lower(metadata.is_deleted) = 'true' and": "false and"}},
    ],
)
def test_a_planted_bug_is_found(memory: Memory, planted: dict[str, dict[str, str]]) -> None:
    contradicted = staged("mysql", "a_b", "c", 3, is_deleted=True)
    rows = [staged("mysql", "a_b", "c", 1), staged("mysql", "a", "b_c", 2), contradicted]
    for replaced, is_right in ((None, True), (planted, False)):
        memory.stage(f"planted_{is_right}.changes", rows)
        project = memory.project("planted", replaced)
        project.source(f"planted_{is_right}", "changes")
        project.model(
            "one",
            "{{ config(materialized='current_view', unique_key='id') }}\n"
            "{{ reconcile.datastream_mysql(source('lake', 'changes'), table='a_b.c') }}",
            THINGS,
        )
        project.run("one", full_refresh=True)
        assert ({row.id for row in memory.rows("planted.one")} == {1}) is is_right


PROPOSED = {
    "mysql": ({"primary_keys": ["id", "part"]}, "shop_orders: shop.orders, mysql, key id, part, 1,200 records"),
    "oracle": ({}, "shop_orders: shop.orders, oracle, 1,200 records"),
    "postgresql": ({"primary_keys": []}, "shop_orders: shop.orders, postgresql, 1,200 records"),
    "sqlserver": ({}, "shop_orders: shop.orders, sqlserver, key id, 1,200 records"),
}


def test_for_what_no_model_takes_a_model_is_proposed(memory: Memory) -> None:
    for source, (said, proposal) in PROPOSED.items():
        rows = [staged(source, "shop", "orders", id_, batch=1 + id_ // 1000, **said) for id_ in range(1, 1201)]
        bare = [row._replace(record=row.record.replace("-cdc", "_cdc")) for row in rows]
        memory.stage(f"proposed.{source}", bare if source == "mysql" else rows)
        project = memory.project("proposing")
        project.source("proposed", source)
        (found,) = project.failing("no_unrouted", f"proposed.{source}")
        assert (found.proposal, found.records, found.first_batch) == (proposal, 1200, 1)
        assert project.failing("no_unrouted", f"proposed.{source}", ignore=["shop_orders"]) == []
