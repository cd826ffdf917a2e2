"""A column that is marked `added: true` is filled by the next run, or the run says why it cannot; see decision 0048."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from plain_dbt import CompilerError, Rows
from recorder import Recorder, normalized
from refusals import THINGS, Refusal, run, thing
from shapes import BIGTABLE, CELL_KEY, CELLS, MYSQL, ORACLE, OWN_SELECT, POSTGRESQL, SPANNER, STAGING, Life, Shape

SIZE = {"data_type": "int", "config": {"meta": {"added": True}}}
NOW = {**THINGS, "size": SIZE}
UNMARKED = {**THINGS, "size": "int"}
_WRITES = re.compile(r"(create|insert|merge|delete|alter|drop (table|view) if exists `)")


def sized(source: str = MYSQL, columns: Mapping[str, Any] = NOW, **said: Any) -> Shape:
    return thing(source, columns, **said)


def grown(
    shape: Shape, before: Mapping[str, Any] = THINGS, was: Mapping[str, Any] | None = None, **warehouse: Any
) -> Callable[[], Life]:
    """Return a model that was built with other columns up to batch 3; staging has come to batch 5.

    `was`: what else was otherwise of its shape.
    """

    def living() -> Life:
        life = Life(shape)
        life.was_built_with(before, **(was or {}))
        life._increment()
        for name, value in warehouse.items():
            assert hasattr(life.warehouse, name)
            setattr(life.warehouse, name, value)
        return life

    return living


def written(life: Life) -> list[str]:
    return [sql for sql in normalized(life.warehouse.statements) if _WRITES.match(sql)]


def ran(life: Life, **flags: bool) -> str:
    """Run the model, and return what it says; the statements of this run are then in the warehouse."""
    life.project.begin("run", ["orders"], **flags)
    life.warehouse.statements.clear()
    return life.project.materialize(life.project.node("orders"))


def declaration(life: Life) -> str:
    return life.warehouse.properties["demo.orders__base"]["reconcile.declaration"]


# --- what the next run does -------------------------------------------------------------------------------------------


def test_the_next_run_replaces_the_base_table_by_all_records_and_then_writes_the_ledger() -> None:
    life = grown(sized())()
    before = declaration(life)
    assert ran(life) == "REBUILD batches 1-5: 7 of 200 applied, 1 quarantined; columns added: size"
    beginnings = [
        "alter table `demo`.`orders__base`", "create or replace table `demo`.`orders__quarantine`",
        "create or replace table `demo`.`orders__base`", "insert into `demo`.`reconcile_ledger`",
        "create or replace view `demo`.`orders__changes`", "create or replace view `demo`.`orders`",
    ]  # fmt: skip
    statements = [sql for sql in written(life) if "`reconcile_columns_seen`" not in sql]
    assert [sql[: len(start)] for sql, start in zip(statements, beginnings, strict=True)] == beginnings
    _, _, base, ledger, _, live = statements
    assert "`size`" in base and "`size`" in live and declaration(life) in base and declaration(life) != before
    assert "'rebuild' as kind,\n    1 as first_batch,\n    5 as last_batch," in ledger
    (parsed,) = (sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_changes_"))
    assert "where _change_batch between 1 and 5" in parsed
    (asked,) = (
        sql for sql in life.warehouse.statements if sql.startswith("select first_batch, last_batch, delivered,")
    )
    assert f"from `{STAGING.replace('.', '`.`')}`" in asked


# One for each way in which rows are kept.
SHAPES = {
    "mysql": sized(), "oracle": sized(ORACLE, row_ids=True), "spanner": sized(SPANNER), "own select": sized(OWN_SELECT),
    "a history": sized(materialized="history"), "a history of oracle": sized(ORACLE, materialized="history"),
    "fresh": sized(meta={"fresh": True}), "iceberg": sized(file_format="iceberg"),
    "postgresql beside a snapshot": sized(
        POSTGRESQL, snapshot={
            "number": 2, "object": "shop.orders", "place": 2, "snapshot": "0000", "position_kind": "pg_snapshot",
            "position": "18642:18650:", "taken_at": "2026-11-21T11:33:13.215524000Z", "uncertainty": "1 hour",
            "key": ["id"], "columns": UNMARKED, "rows": 1875, "batch": 5,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_written_is_what_a_full_refresh_writes(name: str) -> None:
    """So what is right of a rebuild is right here: partial records, deletes without a key, snapshots beside the log."""
    one, other = grown(SHAPES[name])(), grown(SHAPES[name])()
    assert "; columns added: size" in ran(one)
    ran(other, full_refresh=True)
    assert written(one) == written(other)
    assert any("create or replace table `demo`.`orders__base`" in sql for sql in written(one))


def test_a_model_to_which_nothing_has_come_is_filled_too() -> None:
    life = grown(sized())()
    life._nothing_new()
    life.warehouse.staged = 3
    life.project.begin("run", ["orders"])
    life.warehouse.delivered = 100  # in all of staging
    assert life.project.materialize(life.project.node("orders")).startswith("REBUILD batches 1-3: ")


@pytest.mark.parametrize("columns", [NOW, UNMARKED], ids=["it stays", "it goes"])
def test_once_the_column_stands_the_mark_means_nothing(columns: Mapping[str, Any]) -> None:
    life = grown(sized())()
    ran(life)
    later = Life(sized(columns=columns))
    later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
    later.warehouse.ledger_retried = life.warehouse.ledger_retried
    later._nothing_new()
    assert (ran(later), written(later)) == ("nothing new", [])
    later._increment()
    assert ran(later).startswith("APPLY batches 4-5: ")


def test_a_first_run_and_a_full_refresh_do_not_ask_for_the_mark() -> None:
    built = set()
    for columns in (NOW, UNMARKED):
        life = Life(sized(columns=columns))
        assert ran(life).startswith("REBUILD") and "added" not in ran(life, full_refresh=True)
        built.add(declaration(life))
    assert len(built) == 1


def test_a_current_view_is_made_anew_with_or_without_the_mark() -> None:
    said = []
    for columns in (NOW, UNMARKED):
        life = grown(sized(columns=columns, materialized="current_view"))()
        said.append((ran(life), [re.sub("'[0-9a-f]{32}'", "", sql) for sql in written(life)]))
    assert said[0] == said[1] and said[0][0] == "MADE ANEW"


def test_an_empty_run_leaves_the_table_as_it_is_and_the_next_one_fills_the_column() -> None:
    """It reads no record, so that a table made anew would be empty."""
    life = grown(sized())()
    before = declaration(life)
    assert (ran(life, empty=True), written(life), declaration(life)) == ("nothing new", [], before)
    assert ran(life).endswith("; columns added: size")


def test_a_name_that_the_format_reserves_or_another_case_is_found_in_the_base_table() -> None:
    """Iceberg holds `_pos` as `_change_pos`; a catalog may give names in lower case."""
    before = {"Id": "bigint", "_pos": "string"}
    life = Life(thing(columns={**before, "size": SIZE}, key="Id", file_format="iceberg"))
    life.was_built_with(before)
    life._increment()
    life.warehouse.column_types["__base` where false"] = {"id": "bigint", "_change_pos": "string"}
    assert ran(life).endswith("; columns added: size")


# --- a run that dies --------------------------------------------------------------------------------------------------


class KilledError(Exception):
    """The run ends here."""


def mortal(life: Life, lives: int | None) -> None:
    """Let a run end before it writes for the n-th time."""
    count = 0

    def query(sql: str) -> Rows:
        nonlocal count
        if _WRITES.match(sql.strip()):
            count += 1
            if lives is not None and count > lives:
                raise KilledError(sql)
        return Recorder.query(life.warehouse, sql)

    life.project.context["run_query"] = query


def test_a_run_that_dies_leaves_the_old_declaration_or_the_whole_table() -> None:
    """The property and the rows are one statement; whatever comes after it, the next run does without the mark."""
    whole = grown(sized())()
    ran(whole)
    statements = written(whole)
    made_anew = "create or replace table `demo`.`orders__base`"
    place = next(n for n, sql in enumerate(statements) if sql.startswith(made_anew))
    begun = next(n for n, sql in enumerate(statements) if sql.startswith("alter table `demo`.`orders__base`"))
    assert 0 < begun < place < len(statements) - 1
    for lives in range(len(statements)):
        life = grown(sized())()
        before = declaration(life)
        life.project.begin("run", ["orders"])
        life.warehouse.statements.clear()
        mortal(life, lives)
        with pytest.raises(KilledError):
            life.project.materialize(life.project.node("orders"))
        assert (declaration(life) == before) == (lives <= place), lives
        mortal(life, None)
        number = "2" if begun < lives <= place else "1"  # the base table that is there says that a rebuild has died
        if lives <= place:
            assert ran(life).endswith("; columns added: size"), lives
            again = [
                sql.replace("retried' = '1", f"retried' = '{number}")
                for sql in statements
                if "table `demo`.`orders__base`" in sql
            ]
            assert [sql for sql in written(life) if "table `demo`.`orders__base`" in sql] == again
        else:
            w = life.warehouse
            w.base_batch = 5
            w.counts["merged"] = 0  # the rebuild has the rows of all batches
            w.column_types["__base` where false"] = {}  # not asked any more
            w.ledger = (3, 3) if lives == place + 1 else (5, 5)
            assert "columns added" not in ran(life), lives
        expected = made(whole)
        for relation in ("base", "quarantine"):
            expected[f"demo.orders__{relation}"]["reconcile.retried"] = f"{number} 1"
        assert made(life) == expected, lives


def made(life: Life) -> dict[str, dict[str, str]]:
    """Return the properties of the model's relations: of views, digests of what they show."""
    return {name: {**said} for name, said in life.warehouse.properties.items() if name.startswith("demo.orders")}


# --- refusals ---------------------------------------------------------------------------------------------------------

GETS = "column size is new, and demo.orders__base gets it from all records in staging"
REBUILD = "`dbt run --full-refresh --select orders`"
BUILT = f"demo.orders__base was built with other columns; rebuild it with {REBUILD}"
AT_ONCE = (
    " (column {} is new, and other columns have changed too: make one change, run the model, and then make the other)"
)
PURGED = (
    f"{GETS}, but the records of shop.orders up to batch 2 were purged from {STAGING}; declare a copy of the base "
    "table as it was at batch 2, with the column, as `meta: {base_snapshot: schema.table}`, and rebuild with "
    f"{REBUILD}, or leave the column out"
)
LOST = (
    f"{GETS}, but {{}} has 90 of the 100 records that were delivered in batches 1 to 3, and rows would be lost; "
    f"restore the records, or leave the column out ({REBUILD} builds the table from what is left)"
)
FORBIDDEN = (
    f"{GETS}, as a full refresh does, which `full_refresh: false` in its config forbids; remove that for one run, or "
    "leave the column out"
)
GONE = {"lost": ((1, 3, 100, 90),)}
PURGES = {"purges": {"shop.orders": 2}}


def in_properties() -> Life:
    """Return a model whose ledger was lost after a purge."""
    life = grown(sized())()
    purge = life.project.macros._purge_property("shop.orders")
    life.warehouse.properties[STAGING][purge] = "2"
    return life


REFUSED = [
    Refusal(run(grown(sized(), **PURGES)), [PURGED]),
    Refusal(run(in_properties), [PURGED]),
    # A base snapshot does not help by itself: its copy has not the column, and nobody has asked for a rebuild.
    Refusal(run(grown(sized(meta={"base_snapshot": "lake.orders_kept"}), **PURGES)), [PURGED]),
    Refusal(run(grown(sized(), **GONE)), [LOST.format(STAGING)]),
    Refusal(run(grown(sized(OWN_SELECT), **GONE)), [LOST.format("its SELECT")]),
    # A ledger that was dropped counts no records, of which some may be missing.
    Refusal(
        run(grown(sized(), ledger=(0, 0), base_batch=3)),
        [f"{GETS}, but the ledger has nothing of this table, so nothing shows whether staging still has them; leave "
         f"the column out ({REBUILD} builds the table from what staging has)"],
    ),
    Refusal(run(grown(sized(config={"full_refresh": False}))), [FORBIDDEN]),
    Refusal(run(grown(sized(config={"full_refresh": False}), **PURGES)), [FORBIDDEN, PURGED]),
    # Without the mark, and with it on one of two.
    Refusal(
        run(grown(sized(columns=UNMARKED))),
        [f"{BUILT}, or write `meta: {{added: true}}` for the new column size"],
    ),
    Refusal(
        run(grown(sized(columns={**NOW, "weight": "int"}))),
        [f"{BUILT}, or write `meta: {{added: true}}` for the new column weight"],
    ),
    # With something else.
    Refusal(run(grown(sized(columns={"id": "bigint", "size": SIZE}))), [BUILT + AT_ONCE.format("size")]),
    Refusal(
        run(grown(sized(columns={**NOW, "name": "varchar(3)"}))),
        [f"{BUILT} (column name was string and is varchar(3), which is shorter)"],
    ),
    Refusal(run(grown(sized(columns={"id": "bigint", "title": SIZE}))), [BUILT + AT_ONCE.format("title")]),
    Refusal(
        run(grown(sized(columns={**THINGS, "name": SIZE}))),
        [f"{BUILT} (column name was string and is int, which is not the same type with more room)"],
    ),
    Refusal(
        run(grown(thing(columns=NOW, key=["id", "size"]), was={"key": "id"})),
        [f"demo.orders__base was built with other unique_key; rebuild it with {REBUILD}"],
    ),
    # An empty run refuses what is not marked, as before.
    Refusal(
        run(grown(sized(columns=UNMARKED)), empty=True),
        [f"{BUILT}, or write `meta: {{added: true}}` for the new column size"],
    ),
    Refusal(
        run(lambda: Life(thing(columns={**THINGS, "size": {"data_type": "int", "meta": {"added": "2026-11-27"}}}))),
        ["column size: added is '2026-11-27'; write true or false"],
    ),
    Refusal(
        run(lambda: Life(thing(columns={**THINGS, "size": {"data_type": "int", "meta": {"aded": True}}}))),
        ["column size: its meta has aded, which is not an option of this package; write added, or rename the entry if "
         "it is your own"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_column_that_cannot_be_added_is_refused_and_nothing_is_written(number: int) -> None:
    REFUSED[number].check()


def test_staging_that_was_restored_or_made_anew_is_refused_before_the_column_is_filled() -> None:
    """A rebuild would take away what staging no longer has."""
    life = grown(sized(), staged=1)()
    with pytest.raises(CompilerError, match="the staging table was restored or created again"):
        ran(life)
    assert written(life) == []


def test_a_purge_of_another_table_stops_nothing() -> None:
    life = grown(sized(), purges={"shop.others": 2})()
    assert ran(life).endswith("; columns added: size")


def test_cells_have_no_columns_to_add() -> None:
    """Their columns are those of a cell, all of which a model declares; a rebuild would do it all the same."""
    some = {name: said for name, said in CELLS.items() if name != "value"}
    marked = {**some, "value": {"data_type": "binary", "config": {"meta": {"added": True}}}}
    life = grown(Shape(BIGTABLE, marked, CELL_KEY, object="events"), some)()
    assert ran(life).endswith("; columns added: value")


def test_a_changed_option_of_an_added_column_is_a_changed_declaration() -> None:
    life = grown(sized())()
    ran(life)
    rounded = {"data_type": "int", "config": {"meta": {"added": True, "round": True}}}
    later = Life(replace(life.shape, columns={**THINGS, "size": rounded}))
    later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
    later.warehouse.column_types["__base` where false"] = dict.fromkeys(NOW, "string")
    with pytest.raises(CompilerError, match="built with other columns"):
        ran(later)


def test_a_purge_that_begins_while_a_column_is_filled_is_said_as_that() -> None:
    """The same command could not begin with a base snapshot, which lacks the column."""
    life = grown(sized())()
    query = life.warehouse.query

    def meanwhile(sql: str) -> Any:
        if sql.startswith("cache table reconcile_changes"):
            life.warehouse.properties[STAGING][life.project.macros._purge_property("shop.orders")] = "3"
        return query(sql)

    life.project.context["run_query"] = meanwhile
    with pytest.raises(
        CompilerError, match="while this run read them; the new columns cannot be filled any more: leave"
    ):
        ran(life)
    assert written(life) == []
