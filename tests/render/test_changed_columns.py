"""Columns that go, become wider or are renamed: the base table goes on, or the run says why it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from plain_dbt import CompilerError
from recorder import normalized
from refusals import Refusal, run, thing
from shapes import MYSQL, ORACLE, OWN_SELECT, POSTGRESQL, SPANNER, Life, Shape

BEFORE = {"id": "bigint", "name": "varchar(10)", "size": "int"}
GONE = {"id": "bigint", "name": "varchar(10)"}
_WRITES = re.compile(r"(create|insert|merge|delete|alter|drop (table|view) if exists `)")
REBUILD = "`dbt run --full-refresh --select orders`"
RETRY = "dbt run --select orders --vars '{retry_quarantine: true}'"
APPLIES_LATER = f"`{RETRY}` applies records that are in quarantine because of these columns and fit now"
BUILT = f"demo.orders__base was built with other columns; rebuild it with {REBUILD}"


def changed(
    now: Mapping[str, Any], source: str = MYSQL, before: Mapping[str, Any] = BEFORE, **said: Any
) -> Callable[[], Life]:
    """Return a model that was built with other columns up to batch 3; staging has come to batch 5."""

    def living() -> Life:
        life = Life(thing(source, now, **said))
        life.was_built_with(before)
        life._increment()
        return life

    return living


def again(life: Life, now: Mapping[str, Any]) -> Life:
    """Return the same model, its tables as they are, with other columns in its YAML."""
    later = Life(replace(life.shape, columns=now))
    later.warehouse.relations, later.warehouse.properties = life.warehouse.relations, life.warehouse.properties
    later.warehouse.ledger_retried = life.warehouse.ledger_retried
    later._increment()
    return later


def ran(life: Life, **flags: bool) -> str:
    """Run the model, and return what it says; the statements of this run are then in the warehouse."""
    life.project.begin("run", ["orders"], **flags)
    life.warehouse.statements.clear()
    life.project.logged.clear()
    return life.project.materialize(life.project.node("orders"))


def written(life: Life) -> list[str]:
    return [sql for sql in normalized(life.warehouse.statements) if _WRITES.match(sql)]


def columns_of(life: Life) -> list[dict[str, Any]]:
    said = life.warehouse.properties["demo.orders__base"]["reconcile.columns"]
    columns: list[dict[str, Any]] = json.loads(bytes.fromhex(said))
    return columns


def parsed(life: Life) -> str:
    (sql,) = (sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_changes_"))
    return sql


def hashed(life: Life) -> str:
    """Return what settles the ties of the records that a run parses."""
    (found,) = re.findall(r"xxhash64\((change_type, .*?)\)\), 16", parsed(life))
    return str(found)


# --- what a base table says -------------------------------------------------------------------------------------------


def test_a_base_table_says_with_which_columns_it_was_built() -> None:
    """In hex: Spark hides what speaks of a token, and here a column's name does."""
    life = Life(thing(columns={"id": "bigint", "token": {"data_type": "int", "config": {"meta": {"round": True}}}}))
    ran(life)
    assert columns_of(life) == [{"name": "id", "type": "bigint"}, {"name": "token", "round": True, "type": "int"}]


def older(now: Mapping[str, Any] = BEFORE) -> Life:
    """Return a model whose base table was made before base tables said so."""
    life = changed(now)()
    del life.warehouse.properties["demo.orders__base"]["reconcile.columns"]
    return life


def test_a_table_that_was_made_before_says_it_from_the_next_run_on() -> None:
    life = older()
    assert ran(life).startswith("APPLY batches 4-5: ")
    assert written(life)[0].startswith("alter table `demo`.`orders__base` set tblproperties (")
    assert [column["name"] for column in columns_of(life)] == list(BEFORE)
    ran(life)
    assert not written(life)[0].startswith("alter")


def test_what_an_earlier_version_of_the_package_left_there_is_not_believed() -> None:
    """A table of Iceberg that is replaced keeps the properties that nobody sets."""
    life = changed(BEFORE)()
    before = columns_of(life)
    properties = life.warehouse.properties["demo.orders__base"]
    properties["reconcile.columns"] = json.dumps(before[:2]).encode().hex()
    ran(life)
    assert columns_of(life) == before


@pytest.mark.parametrize("died", [False, True])
@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
def test_a_table_of_before_gets_the_columns_by_which_keys_are_followed_once(file_format: str, died: bool) -> None:
    """Iceberg reads a snapshot with the columns of its time. A run that died has perhaps added them already."""
    life = Life(Shape(ORACLE, BEFORE, row_ids=True, file_format=file_format))
    life.statements("first run")
    properties = life.warehouse.properties["demo.orders__base"]
    declaration = properties["reconcile.declaration"]
    properties["reconcile.declaration"] = json.dumps({**json.loads(declaration), "transactions": "of before"})
    added = ["_change_transaction", "_change_is_insert", "_change_contenders", "_change_displaced"]
    there = dict.fromkeys([*BEFORE, "_change_sequence", "_deleted", "_row_id", *(added if died else [])], "string")
    life.warehouse.column_types["select * from `demo`.`orders__base`"] = there
    sent = life.statements("increment")
    adds = [sql for sql in sent if sql.startswith("alter table `demo`.`orders__base` add columns (")]
    empty = [
        sql for sql in sent if re.fullmatch("insert into (`demo`.`orders__base`) select .* from \\1 where false", sql)
    ]
    assert (len(adds), len(empty)) == ((0, 0) if died else (1, int(file_format == "iceberg")))
    assert re.findall(r"(_change_\w+) ", "".join(adds)) == ([] if died else added)
    (said,) = (number for number, sql in enumerate(sent) if "'reconcile.declaration'" in sql)
    assert [sent.index(sql) for sql in adds + empty] == list(range(said - len(adds + empty), said))
    assert json.loads(properties["reconcile.declaration"]) == json.loads(declaration)


# --- removed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [MYSQL, ORACLE, "snapshots"])
def test_a_removed_column_leaves_the_view_and_nothing_is_rebuilt(source: str) -> None:
    meta = {"meta": {"row_ids": False}} if source == ORACLE else {}
    life = changed(GONE, source, **meta)()
    assert ran(life) == "APPLY batches 4-5: 7 of 200 applied, 1 quarantined"
    assert life.project.logged[0].startswith("demo.orders: columns removed: size; they leave the view, and stay in ")
    assert life.project.logged[1] == f"demo.orders: {APPLIES_LATER}"
    properties, *_, merge, _ledger, changes, live = (
        sql for sql in written(life) if "`reconcile_columns_seen`" not in sql and "__quarantine`" not in sql
    )
    assert properties.startswith("alter table `demo`.`orders__base` set tblproperties (")
    assert "`size`" not in live and "as `size`" not in changes
    assert "base.`size`" not in merge and "newest.`size`" not in merge
    assert re.search(r", `size`\)\nvalues \(.*, null\)$", merge, re.S)
    assert [column["name"] for column in columns_of(life) if column.get("removed")] == ["size"]


def test_a_select_of_ones_own_may_go_on_giving_the_column() -> None:
    life = changed({"id": "bigint"}, OWN_SELECT, before={"id": "bigint", "name": "string"})()
    assert ran(life) == "nothing new"
    properties, _, live = written(life)
    assert properties.startswith("alter table") and "`name`" not in live


def test_a_record_keeps_its_place_in_the_order_when_a_column_goes() -> None:
    """Copies of what was merged before are known again; a value that the column cannot hold stops nothing."""
    first, life = Life(thing(columns=BEFORE)), changed(GONE)()
    ran(first), ran(life)
    assert hashed(first) == hashed(life)
    assert "`value size`" in hashed(life)
    (lost,) = re.findall(r"select\n\s*\*,\n\s*array\((.*?)\n\s*\) as lost", parsed(life), re.S)
    assert [text.strip().startswith("false") for text in lost.strip().split(",\n")] == [False, False, True]
    assert "when i = 2 then null" in parsed(life)


BESIDE = {
    "number": 2, "object": "shop.orders", "place": 2, "snapshot": "0000", "position_kind": "pg_snapshot",
    "position": "18642:18650:", "taken_at": "2026-11-21T11:33:13.215524000Z", "uncertainty": "1 hour",
    "key": ["id"], "columns": BEFORE, "rows": 1875, "batch": 5,
}  # fmt: skip


def test_a_snapshot_beside_the_log_may_come_once_a_column_is_gone() -> None:
    """Its rows have no removed column; while it is there, nothing more can be changed."""
    life = changed(GONE, POSTGRESQL)()
    ran(life)
    later = Life(replace(life.shape, snapshot=BESIDE))
    later.warehouse.relations, properties = life.warehouse.relations, later.warehouse.properties
    later.warehouse.properties = {**life.warehouse.properties, **properties}
    later._increment()
    assert ran(later).startswith("APPLY batches 4-5: ")
    of_log, of_snapshot = re.split(r"\n *union all\n", parsed(later), maxsplit=1)
    assert "`value size`" in of_log and "as `size`" not in of_log and "`value size`" not in of_snapshot


def test_the_next_run_says_and_alters_nothing_more() -> None:
    life = changed(GONE)()
    ran(life)
    columns = columns_of(life)
    ran(life)
    assert life.project.logged == [] and not any(sql.startswith("alter") for sql in written(life))
    assert columns_of(life) == columns
    life._nothing_new()
    assert (ran(life), written(life)) == ("nothing new", [])


def test_a_model_to_which_nothing_has_come_changes_its_view() -> None:
    life = changed(GONE)()
    life._nothing_new()
    assert ran(life) == "nothing new"
    properties, changes, live = written(life)
    assert properties.startswith("alter table") and changes.startswith("create or replace view")
    assert "`size`" not in live


def test_an_empty_run_changes_nothing() -> None:
    life = changed(GONE)()
    before = columns_of(life)
    assert (ran(life, empty=True), written(life), columns_of(life)) == ("nothing new", [], before)


def test_a_full_refresh_forgets_the_column() -> None:
    life = changed(GONE)()
    ran(life)
    ran(life, full_refresh=True)
    fresh = Life(thing(columns=GONE))
    ran(fresh)
    assert columns_of(life) == columns_of(fresh) and hashed(life) == hashed(fresh)


@pytest.mark.parametrize("type", ["int", "string"])
def test_a_column_that_is_declared_again_is_added(type: str) -> None:
    """What the table still holds of it is old: records that came in between have not been read for it."""
    life = changed(GONE)()
    ran(life)
    unmarked = again(life, {**GONE, "size": type})
    with pytest.raises(CompilerError, match="for the new column size"):
        ran(unmarked)
    marked = again(life, {**GONE, "size": {"data_type": type, "config": {"meta": {"added": True}}}})
    assert ran(marked) == "REBUILD batches 1-5: 7 of 200 applied, 1 quarantined; columns added: size"
    assert columns_of(marked) == [
        {"name": "id", "type": "bigint"}, {"name": "name", "type": "varchar(10)"}, {"name": "size", "type": type},
    ]  # fmt: skip


def test_a_history_is_compared_anew_before_it_goes_on() -> None:
    """Versions that differed in the removed column alone are none; the table's property comes after them."""
    life = changed(GONE, materialized="history")()
    ran(life)
    refolded, properties, *_ = written(life)
    assert refolded.startswith("merge into `demo`.`orders__base` as base") and "`size`" not in refolded
    assert "where _change_is_revised" in refolded and "not matched" not in refolded
    assert properties.startswith("alter table") and "compared anew" in life.project.logged[0]


def test_a_run_that_dies_before_the_property_begins_again() -> None:
    life = changed(GONE, materialized="history")()
    ran(life)
    whole, done = written(life)[:2], columns_of(life)
    life = changed(GONE, materialized="history")()
    query = life.warehouse.query

    def mortal(sql: str) -> Any:
        if sql.startswith("alter table"):
            raise KeyboardInterrupt
        return query(sql)

    life.project.context["run_query"] = mortal
    with pytest.raises(KeyboardInterrupt):
        ran(life)
    life.project.context["run_query"] = query
    ran(life)
    assert (written(life)[:2], columns_of(life)) == (whole, done)


# --- wider ------------------------------------------------------------------------------------------------------------

NUMBERS = {
    "id": "bigint", "s": "smallint", "i": "int", "d": "decimal(10,2)", "name": "varchar(10)", "text": "varchar(3)",
}  # fmt: skip
WIDER = {"id": "bigint", "s": "int", "i": "bigint", "d": "decimal(12,4)", "name": "varchar(11)", "text": "string"}
LABELS = (
    "s (smallint to int), i (int to bigint), d (decimal(10,2) to decimal(12,4)), name (varchar(10) to varchar(11)), "
    "text (varchar(3) to string)"
)
ALTER = "alter table `demo`.`orders__base` "


def altered(life: Life) -> list[str]:
    """Return what is altered of the base table, in order."""
    return [sql.removeprefix(ALTER) for sql in written(life) if sql.startswith(ALTER)]


def test_delta_widens_in_place() -> None:
    life = changed(WIDER, before=NUMBERS)()
    assert ran(life) == "APPLY batches 4-5: 7 of 200 applied, 1 quarantined"
    first, *altering, properties = altered(life)
    assert "'delta.enableTypeWidening' = 'true'" in first and "reconcile.columns" in properties
    assert altering == [f"alter column `{name}` type {WIDER[name]}" for name in ("s", "i", "d")]
    assert life.project.logged == [
        f"demo.orders: columns widened: {LABELS}",
        f"demo.orders: {APPLIES_LATER}",
    ]
    sent = normalized(life.warehouse.statements)
    assert sent.index("uncache table `demo`.`orders__base`") == sent.index(ALTER + first) - 1
    ran(life)
    assert altered(life) == life.project.logged == []
    assert not any(sql.startswith("uncache") for sql in life.warehouse.statements)


def test_a_table_of_partial_records_widens_too() -> None:
    """Each column has the sequence of its record, which is hashed as before."""
    life = changed(WIDER, SPANNER, before=NUMBERS)()
    assert ran(life).startswith("APPLY batches 4-5: ") and "alter column `d` type decimal(12,4)" in altered(life)
    assert "try_cast(`value d` as decimal(10,2))" in parsed(life)


def test_a_column_that_iceberg_holds_under_another_name_gets_null_there() -> None:
    life = changed({"id": "bigint"}, before={"id": "bigint", "_pos": "int"}, file_format="iceberg")()
    ran(life)
    (merge,) = (sql for sql in written(life) if sql.startswith("merge into `demo`.`orders__base`"))
    assert re.search(r", `_change_pos`\)\nvalues \(.*, null\)$", merge, re.S)


def test_the_docs_of_dbt_ask_no_base_table() -> None:
    life = changed(GONE)()
    life.project.begin("generate")
    life.warehouse.statements.clear()
    with life.project._of(life.project.node("orders")):
        life.project._render(life.shape.sql)
    assert not any("orders__base" in sql for sql in life.warehouse.statements)


def test_a_longer_text_alters_no_column() -> None:
    life = changed({**BEFORE, "name": "string"})()
    ran(life)
    (properties,) = altered(life)
    assert "reconcile.columns" in properties and columns_of(life)[1] == {"name": "name", "type": "string"}


def test_iceberg_widens_in_place_what_it_can() -> None:
    wider = {**WIDER, "d": "decimal(12,2)"}
    life = changed(wider, before=NUMBERS, file_format="iceberg")()
    ran(life)
    *altering, _ = altered(life)
    # A smallint is an int there already.
    assert altering == [f"alter column `{name}` type {wider[name]}" for name in ("i", "d")]
    assert life.project.logged[0].endswith("text (varchar(3) to string)")


def test_iceberg_writes_a_table_anew_whose_decimals_get_more_digits_behind_the_point() -> None:
    life = changed(WIDER, before=NUMBERS, file_format="iceberg")()
    said = ran(life)
    assert said.startswith("APPLY") and life.project.logged[0] == (
        f"demo.orders: columns widened: {LABELS}. Iceberg cannot do so in place: demo.orders__base is written anew "
        "from its own rows"
    )
    rewritten = written(life)[0]
    # Iceberg sets back rows without properties, so the table notes in which snapshot it took its declaration.
    assert [text.split()[1] for text in altered(life)] == ["tblproperties"]
    assert life.warehouse.properties["demo.orders__base"]["reconcile.declared_in"] == "41 3"
    assert rewritten.startswith("create or replace table `demo`.`orders__base`\nusing iceberg")
    assert "'reconcile.columns'" in rewritten and "cast(`d` as decimal(12,4)) as `d`" in rewritten
    assert "`_change_deleted`" in rewritten
    ran(life)
    assert not any("table `demo`.`orders__base`" in sql.split("\n")[0] for sql in written(life))
    gone = again(life, {name: type for name, type in {**WIDER, "d": "decimal(14,6)"}.items() if name != "i"})
    ran(gone)
    assert gone.project.logged[0] == "demo.orders: columns removed: i; they leave the view, and demo.orders__base"
    rewritten, _, merge = (sql for sql in written(gone) if "`orders__base`" in sql.split("\n")[0])
    assert "`i`" not in rewritten and "`i`" not in merge and "`value i`" in hashed(gone)


def test_a_run_that_died_before_the_property_alters_what_is_left() -> None:
    life = changed(WIDER, before=NUMBERS)()
    life.warehouse.column_types["__base` where false"] = {**NUMBERS, "s": "int", "i": "bigint"}
    ran(life)
    assert [sql for sql in altered(life) if sql.startswith("alter column")] == ["alter column `d` type decimal(12,4)"]


def test_a_record_keeps_its_place_in_the_order_when_a_column_gets_wider() -> None:
    """What the narrow type held is hashed as that type; a longer text has the hash that it had."""
    first, life = Life(thing(columns=NUMBERS)), changed(WIDER, before=NUMBERS)()
    ran(first), ran(life)
    assert "try_cast(`value d` as decimal(10,2))" in hashed(life) and "try_cast(`value i` as int)" in hashed(life)
    for name in ("id", "name", "text"):
        assert f"`value {name}` is null, `value {name}`" in hashed(first) and f"`value {name}`, " in hashed(life) + ", "
        assert f"`value {name}` is null, `value {name}`" in hashed(life)
    assert {column["name"]: column.get("hashed", {}).get("type") for column in columns_of(life)} == {
        "id": None, "s": "smallint", "i": "int", "d": "decimal(10,2)", "name": None, "text": None,
    }  # fmt: skip


def test_a_column_that_gets_wider_twice_is_hashed_as_it_was_first() -> None:
    life = changed({"id": "bigint", "n": "int"}, before={"id": "bigint", "n": "smallint"})()
    ran(life)
    wider = again(life, {"id": "bigint", "n": "bigint"})
    ran(wider)
    gone = again(wider, {"id": "bigint"})
    ran(gone)
    assert columns_of(gone)[1] == {
        "name": "n", "type": "bigint", "removed": True, "hashed": {"name": "n", "type": "smallint"},
    }  # fmt: skip
    assert "try_cast(`value n` as smallint)" in hashed(gone)


def why(before: str, now: Any, reason: str) -> Refusal:
    label = now if isinstance(now, str) else now["data_type"]
    meta = {} if isinstance(now, str) else {"config": now["config"]}
    return Refusal(
        run(changed({"id": "bigint", "n": now}, before={"id": "bigint", "n": {"data_type": before, **meta}})),
        [f"{BUILT} (column n was {before} and is {label}, {reason})"],
    )


# --- renamed ----------------------------------------------------------------------------------------------------------


def was(*names: str, type: str = "varchar(10)", **more: Any) -> dict[str, Any]:
    """Return a column that had other names; one name alone is no list."""
    return {"data_type": type, "config": {"meta": {"was": names[0] if len(names) == 1 else list(names), **more}}}


RENAMED = {"id": "bigint", "title": was("name"), "size": "int"}


def renamed(now: Mapping[str, Any] = RENAMED, seen: tuple[tuple[str, int], ...] = (), **said: Any) -> Life:
    life = changed(now, **said)()
    life.warehouse.seen = seen
    life.warehouse.relations["demo.reconcile_columns_seen"] = "table"
    return life


@pytest.mark.parametrize("materialized", ["current_state", "history"])
def test_a_renamed_column_keeps_its_name_in_the_table_and_nothing_is_rebuilt(materialized: str) -> None:
    life = renamed(materialized=materialized)
    assert ran(life).startswith("APPLY batches 4-5: ")
    assert life.project.logged == [
        "demo.orders: columns renamed: name to title; demo.orders__base keeps the former names until a full refresh"
    ]
    (properties,) = altered(life)
    assert "reconcile.columns" in properties and columns_of(life)[1] == {
        "name": "title", "type": "varchar(10)", "was": ["name"], "stored": "name",
        "hashed": {"name": "name", "type": "varchar(10)"},
    }  # fmt: skip
    (merge,) = (sql for sql in written(life) if sql.startswith("merge into `demo`.`orders__base`"))
    new = "newest" if materialized == "current_state" else "version"
    assert "insert (`id`, `name`, `size`, " in merge and f"values ({new}.`id`, {new}.`title`, {new}.`size`, " in merge
    if materialized == "current_state":
        assert "`name` = newest.`title`" in merge
    live = written(life)[-1]
    assert "`name` as `title`" in live.split("from", 1)[1] and "`title`,\n" in live.split("from", 1)[0]
    ran(life)
    assert altered(life) == life.project.logged == []


def test_a_record_keeps_its_place_in_the_order_when_a_column_is_renamed() -> None:
    """Its place is among the names that the columns had: `title` comes after `size`, and `name` before it."""
    first, life = Life(thing(columns=BEFORE)), renamed()
    ran(first), ran(life)
    assert hashed(first).replace("value name", "value title") == hashed(life)


def test_a_field_is_found_by_its_former_name_where_it_has_no_other() -> None:
    life = renamed()
    ran(life)
    assert (
        "coalesce(get(filter(array('title', 'name'), name -> array_contains(transform(map_keys(payload), field -> "
        "lower(field)), lower(name))), 0), 'title'), 'size') as names"
    ) in re.sub(r",\s+'", ", '", parsed(life))
    (notes,) = (sql for sql in life.warehouse.statements if sql.startswith("cache lazy table reconcile_notes_"))
    assert notes.count("case lower(name) when 'name' then 'title' else lower(name) end") == 3


def test_a_column_may_be_renamed_again_become_wider_and_go() -> None:
    life = renamed()
    ran(life)
    twice = again(life, {"id": "bigint", "label": was("title", "name"), "size": "int"})
    ran(twice)
    assert columns_of(twice)[1] == {
        "name": "label", "type": "varchar(10)", "was": ["title", "name"], "stored": "name",
        "hashed": {"name": "name", "type": "varchar(10)"},
    }  # fmt: skip
    length = was("size", type="bigint")
    wider = again(twice, {"id": "bigint", "label": was("title", "name", type="string"), "length": length})
    ran(wider)
    assert "alter column `size` type bigint" in altered(wider)
    assert columns_of(wider)[2]["hashed"] == {"name": "size", "type": "int"}
    gone = again(wider, {"id": "bigint", "length": length})
    ran(gone)
    (merge,) = (sql for sql in written(gone) if sql.startswith("merge into"))
    assert "insert (`id`, `size`, " in merge and re.search(r", `name`\)\nvalues \(.*, null\)$", merge, re.S)
    assert "'label'" in parsed(gone) and "array('label', 'title', 'name')" in parsed(gone)


@pytest.mark.parametrize("seen", [(), (("title", 3),)])
def test_a_renamed_column_that_is_marked_is_filled_from_all_records(seen: tuple[tuple[str, int], ...]) -> None:
    life = renamed({**RENAMED, "title": was("name", added=True)}, seen)
    assert ran(life) == "REBUILD batches 1-5: 7 of 200 applied, 1 quarantined; columns added: title"
    assert columns_of(life)[1] == {"name": "title", "type": "varchar(10)", "was": ["name"]}
    later = again(life, RENAMED)
    assert ran(later).startswith("APPLY") and altered(later) == []


def test_a_new_model_may_read_former_names_from_the_start() -> None:
    life = Life(thing(columns=RENAMED))
    assert ran(life).startswith("REBUILD") and columns_of(life)[1]["was"] == ["name"]


# --- refusals ---------------------------------------------------------------------------------------------------------

DECLARED: list[tuple[dict[str, Any], str]] = [
    ({"title": was("name", "name")}, "column title: was names name, which is the name of a column of this model, or a "
     "former name that stands twice; remove it"),
    ({"title": was("ID")}, "column title: was names ID, which is the name of a column of this model, or a former name "
     "that stands twice; remove it"),
    ({"title": {"data_type": "int", "config": {"meta": {"was": 7}}}},
     "column title: was is '7'; write the name that the column had at its source, or a list of names, the newest "
     "first"),
]  # fmt: skip
APPLIES = (
    "column title: was applies only to models of Datastream's records and of snapshots, whose source macros find a "
    "field by its name; "
)
REFUSED = [
    *(Refusal(run(changed({"id": "bigint", **columns})), [says]) for columns, says in DECLARED),
    Refusal(
        run(changed({"id": "bigint", "title": was("name"), "size": "int"}, SPANNER)),
        [f"{APPLIES}an update of Spanner that has only the former name would set no column; remove was from its meta"],
    ),
    Refusal(
        run(changed({"id": "bigint", "title": was("name")}, OWN_SELECT, before={"id": "bigint", "name": "string"})),
        [f"{APPLIES}give the column its name in the SELECT; remove was from its meta"],
    ),
    Refusal(
        run(lambda: renamed(seen=(("title", 3),))),
        [f"{BUILT} (records from batch 3 on have title, and were merged as if they had no name; with `added: true` "
         "beside `was`, all staged records are read once more)"],
    ),
    Refusal(
        run(lambda: renamed({**RENAMED, "title": was("name", "label")})),
        [f'{BUILT} (column title was read as name before, for which `was` is ["name"] and not ["name", "label"]; with '
         "`added: true` beside it, all staged records are read once more)"],
    ),
    Refusal(
        run(lambda: renamed({**BEFORE, "name": was("label")})),
        [f'{BUILT} (column name was read as name before, for which `was` is [] and not ["label"]; with `added: true` '
         "beside it, all staged records are read once more)"],
    ),
    *(
        Refusal(
            run(changed({"id": "bigint", "name": "varchar(10)", "Size": says})),
            [f"{BUILT} (column size is Size now, and of fields that differ in upper and lower case alone the one with "
             "the exact name is read; size may stay, whatever the case in the records)"],
        )
        for says in ("int", {"data_type": "int", "config": {"meta": {"added": True}}})
    ),
    why("bigint", "int", "which holds less"),
    why("decimal(10,2)", "decimal(11,4)", "which holds fewer digits on one side of the point"),
    why("decimal(10,2)", "decimal(9,2)", "which holds fewer digits on one side of the point"),
    why(
        "decimal(10,2)", {"data_type": "decimal(12,4)", "config": {"meta": {"round": True}}},
        "whose values were rounded to fewer digits",
    ),
    why("varchar(10)", "varchar(9)", "which is shorter"),
    why("string", "varchar(9)", "which is shorter"),
    why(
        "float", "double",
        "and the double that is nearest to a number is not the float that is: 0.1 would be 0.10000000149011612",
    ),
    why("date", "timestamp", "which is not the same type with more room"),
    why("int", "decimal(10,0)", "which is not the same type with more room"),
    why("array<int>", "array<bigint>", "which is not the same type with more room"),
    Refusal(
        run(changed(WIDER, ORACLE, before=NUMBERS, row_ids=True)),
        [f"{BUILT} (it keeps records that an insert displaced, with all their columns (row_ids))"],
    ),
    Refusal(
        run(changed({**BEFORE, "size": {"data_type": "int", "config": {"meta": {"round": True}}}})),
        [f"{BUILT} (column size has another round, with which `{RETRY}` goes on)"],
    ),
    Refusal(
        run(changed(GONE, SPANNER)),
        [f"{BUILT} (column size: its records carry only some columns, and which updates set a whole row depends on all "
         "of them)"],
    ),
    Refusal(
        run(changed(GONE, ORACLE, row_ids=True, materialized="history")),
        [f"{BUILT} (column size: its versions depend on deletes without a key, and cannot be compared anew from the "
         "base table alone)"],
    ),
    Refusal(
        run(changed(GONE, ORACLE, row_ids=True)),
        [f"{BUILT} (it keeps records that an insert displaced, with all their columns (row_ids))"],
    ),
    Refusal(
        run(changed(GONE, POSTGRESQL, snapshot=BESIDE)),
        [f"{BUILT} (staging has a snapshot beside the log, which has the columns of its time)"],
    ),
    Refusal(
        run(changed(GONE, config={"partition_by": ["size"]})),
        [f"{BUILT} (column size: the base table is partitioned by it)"],
    ),
    Refusal(
        run(lambda: older(GONE)),
        [f"{BUILT} (or run it once with the columns that it was built with: from then on columns may go, be renamed "
         "and become wider)"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_change_that_cannot_be_followed_is_refused_and_nothing_is_written(number: int) -> None:
    REFUSED[number].check()
