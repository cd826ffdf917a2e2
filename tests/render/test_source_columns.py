"""Source columns: a model of several sources is refused whatever would compare records of two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from refusals import PARITY, SENTENCE, Refusal, run, thing
from shapes import MYSQL, ORACLE, POSTGRESQL, SNAPSHOT_BESIDE, Life, Shape
from snapshots import SNAPSHOT, answer_columns, beside_a_snapshot, taken

COLUMNS: dict[str, Any] = {"shard": "string", "id": "bigint", "name": "string"}
TABLES = ["shop_1.orders", "shop_2.orders"]
SHARD = {"shard": "database"}


def shards(
    source: str = MYSQL, said: Any = SHARD, columns: Any = COLUMNS, key: Any = ("shard", "id"), table: Any = TABLES,
    more: str = "", **shape: Any,
) -> Shape:  # fmt: skip
    key = list(key) if isinstance(key, tuple) else key
    return thing(source, columns, key, table=table, arguments=f", source_columns={said!r}{more}", **shape)


def declared(said: Any) -> dict[str, Any]:
    """Return the columns of the model with the shard as somebody declares it."""
    return {**COLUMNS, "shard": said}


def not_in_key(name: str, key: list[str]) -> str:
    return (
        f"source column {name}: it is not in unique_key, and nothing orders records of two sources that have one key; "
        f"write unique_key={key}, and let the test reconcile.keys_are_disjoint show whether the sources share keys"
    )


def not_told_apart(one: str, other: str) -> str:
    return (
        f"source_columns does not tell {one} from {other}, so that rows of both may have one key; add another field of "
        "the metadata, for example {'table_name': 'table'}, or, if one table has had both names, write them as a list "
        "within the list of tables"
    )


def told_apart(one: str, other: str) -> str:
    return (
        f"source_columns tells {one} from {other}, which are names of one table by the list within the list of tables: "
        "its rows would have two keys; take out the field of the metadata that changed, or read the table by a model "
        "of its own"
    )


def of_one_log(position: str) -> str:
    return (
        f"the variable as_of: {position} is a position in the log of one source, and source_columns takes records of "
        "several; name a batch, or a time (appended_at, commit_time)"
    )


NO_MAPPINGS: list[Any] = ["database", ["shard"], {}]
NO_MAPPING = (
    "source_columns is '{}'; write the columns with the fields of the metadata that fill them, for example "
    "{{'shard': 'database'}}"
)
ADDRESSES = "an address is of a row of one database, and source_columns takes rows of several; say `meta: {row_ids: "
ADDRESSES += "false}`"
SCHEMA = {"shard": "schema"}
DECLARED: dict[str, tuple[Shape, list[str]]] = {
    **{
        f"source columns that are {said!r}": (shards(said=said), [NO_MAPPING.format(said)])
        for said in NO_MAPPINGS
    },
    "a field of the metadata that names no source": (
        shards(said={"shard": "change_type"}),
        ["source column shard: 'change_type' is no field of the metadata that names a source; write database, schema "
         "or table", not_told_apart("shop_2.orders", "shop_1.orders")],
    ),
    "a column that is not declared": (
        shards(columns={"id": "bigint", "name": "string"}, key="id"),
        ["source column shard: the model declares no column of this name; add `{name: shard, data_type: string}` to "
         "the model's YAML", not_in_key("shard", ["shard", "id"])],
    ),
    **{
        f"a column of type {said}": (
            shards(columns=declared(said)),
            [f"source column shard: its values are names, and this column is a {said}; declare `data_type: string`"],
        )
        for said in ("bigint", "varchar(9)")
    },
    "a column that is read as a field": (
        shards(columns=declared({"data_type": "string", "meta": {"encoding": "json", "was": "part"}})),
        [f"source column shard: {option} says how a field of the payload is read, and this column is none; remove "
         f"{option}" for option in ("encoding", "was")],
    ),
    "a column that is masked": (
        shards(columns=declared({"data_type": "string", "meta": {"mask": "sha256"}})),
        ["source column shard: mask says how a field of the payload is read, and this column is none; remove mask"],
    ),
    "no column of the records": (
        shards(columns={"shard": "string"}, key="shard"),
        ["all columns of the model are source columns; declare the columns of the records too"],
    ),
    "a key without the shard": (shards(key="id"), [not_in_key("shard", ["shard", "id"])]),
    "the id of an event for a key": (shards(key="_change_id"), [not_in_key("shard", ["shard"])]),
    "an object": (
        shards(table=None),
        ["source_columns needs the names of the tables, and its source macro has object; write "
         "table=['shop_1.orders', 'shop_2.orders']"],
    ),
    "two tables of one shard": (
        shards(table=["shop_1.orders", "shop_1.returns", "shop_2.orders"]),
        [not_told_apart("shop_1.returns", "shop_1.orders")],
    ),
    "databases that are not named": (
        shards(POSTGRESQL, table=["a.orders", "db.b.orders"]), [not_told_apart("db.b.orders", "a.orders")],
    ),
    "a database of several schemas": (
        shards(POSTGRESQL, table=["db.a.orders", "db.b.orders"]), [not_told_apart("db.b.orders", "db.a.orders")],
    ),
    "a table that moved to another schema": (
        shards(POSTGRESQL, SCHEMA, table=[["a.orders", "b.orders"], "c.orders"]), [told_apart("b.orders", "a.orders")],
    ),
    "names of one table among others, without source columns": (
        thing(table=["shop_1.orders", ["shop_2.orders", "shop_2.old_orders"]]),
        ["table ['shop_2.orders', 'shop_2.old_orders'] is a list within a list, which is for the names of one source "
         "among several; add source_columns, or write all names that one table has had as one list"],
    ),
    "generations": (
        shards(more=", generations=['2026-11-21 00:00:00+00']"),
        ["generations are of one log, and source_columns takes records of several; remove them, and give the source "
         "whose log began anew a model of its own"],
    ),
    "addresses of rows": (shards(ORACLE, SCHEMA), [ADDRESSES]),
    "addresses of rows for a key": (shards(ORACLE, SCHEMA, key="_row_id"), [not_in_key("shard", ["shard"]), ADDRESSES]),
}  # fmt: skip


def as_of(position: dict[str, str]) -> Callable[[], None]:
    def living() -> Life:
        life = Life(shards(POSTGRESQL, SCHEMA))
        life.project.variables |= {"as_of": position}
        return life

    return run(living)


def compared(**said: Any) -> Callable[[], object]:
    """Return what compares a model of shards with a snapshot."""

    def act() -> None:
        life = beside_a_snapshot(shards(), said.pop("taken", {}))
        answer_columns(life, "`demo`.`orders`")
        life.project.test("parity", "orders", compare_to=SNAPSHOT, key=["shard", "id"], **said)

    return act


def disjoint() -> None:
    life = Life(shards(key="shard"))
    life.warehouse.has("demo.orders")
    life.project.test("keys_are_disjoint", "orders")


BESIDE = "its staging table has a snapshot of public_orders beside the log (batch 5), and "
OF_POSITIONS = {
    "as of a sequence": Refusal(as_of({"sequence": "0000/1"}), [of_one_log("sequence 0000/1")]),
    "as of a snapshot": Refusal(as_of({"pg_snapshot": "1:1:"}), [of_one_log("pg_snapshot 1:1:")]),
    "parity at a place in one log": Refusal(
        compared(taken=taken("binlog", "mysql-bin.000017:4")),
        ["binlog mysql-bin.000017:4, the position of lake.orders_source, is of the log of one source, and the model "
         "reads several (source_columns); compare with the rows of all sources, which have the columns shard, and say "
         "`as_of: now`"],
        PARITY,
    ),
    "a snapshot beside the log": Refusal(
        run(lambda: Life(shards(
            POSTGRESQL, SHARD, table="public.orders",
            snapshot={**SNAPSHOT_BESIDE, "object": "public_orders", "columns": COLUMNS, "key": ["shard", "id"]},
        ))),
        [BESIDE + "the model reads several sources (source_columns), of which a snapshot shows one; take the snapshot "
         "out of the staging table, or give the source a model of its own"],
    ),
    "a key of nothing else": Refusal(
        disjoint,
        ["Test keys_are_disjoint: demo.orders has no columns in its unique_key but the source columns shard, so there "
         "is no key that its sources could share; remove the test from it."],
        SENTENCE,
    ),
}  # fmt: skip
CASES = {
    **{name: Refusal(run(lambda shape=shape: Life(shape)), says) for name, (shape, says) in DECLARED.items()},  # type: ignore[misc]
    **OF_POSITIONS,
}
REFUSED = list(CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_what_would_compare_records_of_two_sources_is_refused(name: str) -> None:
    CASES[name].check()


@pytest.mark.parametrize(
    "shape",
    [
        shards(),
        shards(table=["shop_1.orders", ["shop_2.old_orders", "shop_2.orders"]]),
        shards(said={"shard": "table"}, table=["shop.orders_1", "shop.orders_2"]),
        shards(POSTGRESQL, SCHEMA),
        # Of any database, each of which is a source.
        shards(POSTGRESQL, table="public.orders"),
        shards(POSTGRESQL, table=["one.public.orders", "two.public.orders"]),
        shards(ORACLE, SCHEMA, meta={"row_ids": False}),
        shards(materialized="history"),
        shards(materialized="current_view"),
        shards(meta={"fresh": True}),
    ],
)
def test_sources_that_are_told_apart_are_taken(shape: Shape) -> None:
    life = Life(shape)
    life.project.run("orders")
    assert "`shard`" in life.change_records and "`value shard`" not in life.change_records


def test_a_source_column_is_no_field_of_the_payload() -> None:
    """It is not missing in a record that lacks it, and no part of the key that the records name."""
    life = Life(shards())
    life.warehouse.notes = (("key", '["id"]', True, False, True),)
    asked = life.statements("first run")
    assert not any("the key of the source" in said for said in asked)
    (noted,) = (sql for sql in asked if sql.startswith("cache") and "as is_declared" in sql)
    assert "'name'" in noted and "'shard'" not in noted
    other = Life(shards())
    other.warehouse.notes = (("key", '["name"]', True, False, True),)
    assert any("the key of the source is name, not id" in said for said in other.statements("first run"))


@pytest.mark.parametrize("table", [["shop_1.orders", "shop_2.orders", "shop_3.orders"], ["shop_2.orders"]])
def test_another_set_of_sources_is_another_declaration(table: list[str]) -> None:
    def living() -> Life:
        life = Life(shards())
        life.project.run("orders")
        later = Life(shards(table=table))
        later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
        return later

    says = "demo.orders__base was built with other source macros, objects or generations; rebuild it with "
    Refusal(run(living), [f"{says}`dbt run --full-refresh --select orders`"]).check()


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        (shards(), "give its source a model of its own, with generations"),
        (thing(), "add the time when it did to generations"),
    ],
)
def test_a_run_gives_no_advice_that_a_model_of_several_sources_cannot_take(shape: Shape, advice: str) -> None:
    life = Life(shape)
    life.warehouse.answers["select count(*) as changes"] = {"changes": 2, "first_time": "2026-11-21 11:05:00Z"}
    macros = life.project.macros
    (said,) = macros.log_messages("fold", macros.form_of_node(life.project.node("orders")), {"superseded": 2})
    assert said.endswith(f"if the log began anew at this time or earlier, {advice}; see the test log_is_one")
