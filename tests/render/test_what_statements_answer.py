"""What statements of the account, of the log, of comparisons and of cells answer, of rows that a test makes up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from by_sqlite import RaisedError, answer
from plain_dbt import PlainProject, Relation
from recorder import Recorder
from refusals import THINGS, thing
from shapes import BIGTABLE, CELL_KEY, CELLS, MYSQL, ORACLE, SHAPES, SNAPSHOTS, SPANNER, STAGING, Life, Shape

LEDGER, CHANGES = "demo.reconcile_ledger", "demo.orders__changes"


def line(kind: str, first: int | None, last: int, entry: int | None = None, **said: Any) -> dict[str, Any]:
    """Return a row of the ledger, of `demo.orders` unless something else is said."""
    row = dict.fromkeys(("base_batch", "last_appended_at", "deletes_batch", "retried", "invocation_id", "delivered"))
    row |= {"relation": "demo.orders", "kind": kind, "first_batch": first, "last_batch": last, "entry": entry}
    return row | {"recorded_at": "2026-11-21 10:00:00"} | said


@pytest.fixture
def built() -> Life:
    life = Life(thing())
    life.project.run("orders")
    return life


# --- the ledger -------------------------------------------------------------------------------------------------------

OF_ORDERS = [
    line("apply", 1, 9, base_batch=9, last_appended_at=90, deletes_batch=9, retried=9, invocation_id="no number"),
    line("rebuild", 1, 3, 1, base_batch=3, last_appended_at=30, invocation_id="1"),
    line("apply", 4, 5, 2, base_batch=5, last_appended_at=50, deletes_batch=5, retried=7, invocation_id="9"),
    line("apply", 6, 6, 3, base_batch=4, last_appended_at=60, deletes_batch=2, retried=2, invocation_id="3",
         recorded_at="2026-11-20 10:00:00"),
    line("snapshot", 5, 5, 4, base_batch=4, last_appended_at=55, invocation_id="4"),
]  # fmt: skip
OF_OTHERS = [
    line("apply", 1, 8, 7, relation="demo.others", base_batch=8, last_appended_at=80, deletes_batch=8, retried=8),
    line("rebuild", 1, 2, 8, relation="demo.others", base_batch=2, last_appended_at=20, invocation_id="8"),
]


def test_the_account_of_each_model_begins_with_its_own_last_rebuild_and_ends_with_its_last_row(built: Life) -> None:
    """By its number, whatever a clock says; a rebuild of another model is none of this one."""
    macros, tables = built.project.macros, {LEDGER: [*OF_ORDERS, *OF_OTHERS]}
    of_orders, of_others = (6, 4, 4, 60, 2, 7, "4"), (2, 2, 8, 20, 0, 0, "8")
    by_name = macros._accounts(["demo.orders", "demo.others"], by_name=True)
    assert set(answer(by_name, tables)) == {("demo.orders", *of_orders), ("demo.others", *of_others)}
    assert answer(macros._accounts(["demo.orders"]), tables) == [of_orders]
    assert answer(macros._accounts(["demo.nothing"]), tables) == [(0, 0, 0, None, 0, 0, None)]


@pytest.mark.parametrize(
    ("more", "is_written"),
    [
        ([], True),
        ([line("apply", 4, 5, 4)], False),
        ([line("replay", 2, 3, 4)], False),  # which applied no later batch
        ([line("rebuild", 1, 4, 3)], False),
        ([line("apply", 4, 5, 9, relation="demo.others")], True),
    ],
    ids=["nobody", "the same batches", "a replay", "a rebuild", "another model"],
)
def test_a_range_is_accounted_for_only_if_nobody_else_has_accounted_since_the_run_began(
    more: list[dict[str, Any]], is_written: bool
) -> None:
    """The recorder knows a ledger with batch 3 and row 3."""
    life = Life(thing())
    life.statements("first run")
    (insert,) = (sql for sql in life.statements("increment") if f"insert into `{LEDGER.replace('.', '`.`')}`" in sql)
    asked = "select account.entry + 1\nfrom (" + insert.rpartition("\nfrom (")[2]
    tables = {LEDGER: [line("rebuild", 1, 2, 2), line("apply", 3, 3, 3), *more]}
    if is_written:
        assert answer(asked, tables) == [(4,)]
    else:
        with pytest.raises(RaisedError, match=r"^demo\.orders: another run of this model wrote at the same time"):
            answer(asked, tables)


def staged(**batches: int) -> dict[str, Any]:
    return {STAGING: [
        {"object": "shop.orders", "batch": int(batch[1:])} for batch, number in batches.items() for _ in range(number)
    ]}  # fmt: skip


RANGES = [
    line("apply", 1, 9, 1, delivered=99),  # before the rebuild
    line("rebuild", 1, 2, 2, delivered=4), line("apply", 4, 5, 3, delivered=3), line("replay", 3, 3, 4, delivered=2),
    line("snapshot", 3, 3, 5, delivered=50), line("apply", 6, 6, 9, relation="demo.others", delivered=9),
]  # fmt: skip
ERASED = line("erasure", 3, 3, 5, delivered=1)


@pytest.mark.parametrize(
    ("more", "there", "first", "lost"),
    [
        ([], {"b1": 1, "b2": 3, "b3": 2, "b4": 1, "b5": 2}, 1, []),
        ([], {"b1": 1, "b2": 3, "b3": 3, "b4": 1, "b5": 2}, 1, []),
        ([], {"b1": 1, "b2": 3, "b3": 1, "b4": 1, "b5": 1}, 1, [(3, 3, 2, 1)]),
        ([], {"b1": 1, "b2": 3, "b3": 1, "b4": 1, "b5": 1}, 4, [(4, 5, 3, 2)]),
        ([], {"b1": 1, "b2": 3, "b3": 1, "b4": 1, "b5": 1}, 3, [(3, 3, 2, 1)]),
        ([], {"b3": 2, "b4": 3}, 1, [(1, 2, 4, 0)]),
        ([ERASED], {"b1": 1, "b2": 3, "b3": 1, "b4": 3}, 1, []),
        ([ERASED], {"b1": 1, "b2": 3, "b4": 3}, 1, [(3, 3, 2, 1)]),
        ([ERASED | {"delivered": 2}], {"b1": 1, "b2": 3, "b4": 3}, 1, []),
        ([ERASED | {"entry": 4}], {"b1": 1, "b2": 3, "b3": 1, "b4": 3}, 1, [(3, 3, 2, 1)]),
        ([ERASED | {"relation": "demo.others"}], {"b1": 1, "b2": 3, "b3": 1, "b4": 3}, 1, [(3, 3, 2, 1)]),
    ],
    ids=[
        "all", "more", "of two", "from a batch on", "from that batch on", "all of one", "erased",
        "one more than erased", "all erased", "erased before", "erased of another model",
    ],
)  # fmt: skip
def test_the_first_range_of_which_staging_has_fewer_records_than_were_delivered_is_lost(
    built: Life, more: list[dict[str, Any]], there: dict[str, int], first: int, lost: list[tuple[int, ...]]
) -> None:
    """What was erased since counts as if it were there; what was counted before a rebuild does not."""
    macros, node = built.project.macros, built.project.node("orders")
    relations = macros.model_relations(built.project.relation("orders"))
    sql = macros.lost_records(relations, macros.model_inputs(node), "", first)
    assert answer(sql, {LEDGER: [*RANGES, *more], **staged(**there)}) == lost


@pytest.mark.parametrize(
    ("ledger", "waiting"),
    [
        ([], [4, 5, 6, 7]),
        ([line("apply", 1, 5, 1)], [6, 7]),
        ([line("apply", 1, 5, 1), line("snapshot", 3, 3, 2)], [6, 7]),  # beside the log, in batch 3
        ([line("apply", 1, 5, 1), line("erasure", 3, 3, 2)], [6, 7]),
        ([line("apply", 1, 5, 1), line("snapshot", 9, 9, 2), line("erasure", 9, 9, 3)], [6, 7]),
        ([line("apply", 1, 5, 1), line("replay", 4, 6, 2)], [7]),
        ([line("apply", 1, 7, 1), line("rebuild", 1, 5, 2)], [6, 7]),
        ([line("apply", 1, 7), line("apply", 1, 4, 1)], [5, 6, 7]),  # an earlier version's, of whatever time
        ([line("apply", 1, 7, 1)], []),
        ([line("apply", 1, 7, 1, relation="demo.others")], [4, 5, 6, 7]),
    ],
    ids=["no account", "a run", "a snapshot", "an erasure", "both, of later batches", "a replay", "a rebuild",
         "an earlier version", "all", "another model"],
)  # fmt: skip
def test_records_wait_that_are_of_later_batches_than_those_of_the_last_run_of_the_model(
    built: Life, ledger: list[dict[str, Any]], waiting: list[int]
) -> None:
    """Neither a snapshot nor an erasure is such a run: they have rows of their own beside it."""
    macros = built.project.macros
    staging = [
        {"object": name, "batch": batch, "appended_at": batch, "record": "{}"}
        for name in ("shop.orders", "shop.others") for batch in (4, 5, 6, 7)
    ]  # fmt: skip
    (readers,) = macros._accounts_by_staging([built.project.node("orders")]).values()
    sql = macros._not_applied(Relation(*STAGING.split(".")), readers)
    others = [line("apply", 1, 1, 1, relation="demo.any")]
    found = answer(sql, {STAGING: staging, LEDGER: [*others, *ledger]}, structs=("metadata",))
    assert sorted(found) == [("demo.orders", batch, batch) for batch in waiting]


@pytest.mark.parametrize(
    ("shape", "source", "record", "counted"),
    [
        (thing(SPANNER), "spanner", {"mods": [{"keys": {}}, {"keys": {}}, {"keys": {}}]}, 3),
        (thing(SPANNER), "spanner", {"mods": [{"keys": {}}]}, 1),
        (thing(SPANNER), "spanner", {"mods": []}, 1),
        (thing(SPANNER), "spanner", {"mods": None}, 1),
        (thing(SPANNER), "spanner", {}, 1),
        (thing(SPANNER), "spanner", {"mods": [1, None, "a"]}, 3),
        (thing(SPANNER), "spanner", {"mods": [{"keys": {}}, {"erased": {}}, {"keys": {}}]}, 2),
        (thing(SPANNER), "spanner", {"mods": [{"erased": {}}, {"erased": {}}]}, 0),
        (thing(SPANNER), "spanner", {"mods": [{"erased": {}}]}, 0),
        (thing(SPANNER), "datastream", {"mods": [{}, {}]}, 1),
        (SHAPES["bigtable"], "bigtable", {"entries": [{}, {}, {}]}, 3),
        (SHAPES["bigtable"], "bigtable", {"entries": []}, 1),
        (SHAPES["bigtable"], "bigtable", {}, 1),
        (SHAPES["bigtable"], "spanner", {"mods": [{}, {}]}, 1),
        (SHAPES["bigtable"], "bigtable", {"type": "garbage_collection", "entries": [{}, {}]}, 2),
        (SHAPES["bigtable_keeps_garbage"], "bigtable", {"type": "garbage_collection", "entries": [{}, {}]}, 0),
        (SHAPES["bigtable_keeps_garbage"], "bigtable", {"type": "garbage_collection", "entries": []}, 1),
        (SHAPES["bigtable_keeps_garbage"], "bigtable", {"type": "user", "entries": [{}, {}]}, 2),
        (SHAPES["bigtable_keeps_garbage"], "bigtable", {"type": "user"}, 1),
        (thing(SNAPSHOTS), "snapshot", {"mods": [{}, {}], "entries": [{}, {}]}, 1),
    ],
)
def test_a_record_counts_as_the_mods_or_entries_that_it_carries_and_as_one_if_it_carries_none(
    shape: Shape, source: str, record: dict[str, Any], counted: int
) -> None:
    """Then it is quarantined as one. A mod that was erased is none, nor is garbage that the model does not take."""
    life = Life(shape)
    inputs = life.project.macros.model_inputs(life.project.node("orders"))
    of_model = {"object": shape.object, "batch": 2, "source": source, "record": json.dumps(record)}
    plain = of_model | {"record": '{"mods": [{}], "entries": [{}], "type": ""}'}
    rows = [of_model, plain, plain | {"batch": 3}, plain | {"batch": 1}, plain | {"object": "another"}]
    asked = f"select {life.project.macros.delivered_in(inputs, 2, 2)}"
    assert answer(asked, {STAGING: rows}) == [(counted + 1,)]
    assert answer(asked, {STAGING: rows[2:]}) == [(0,)]


def test_a_horizon_counts_that_was_proposed_after_the_last_rebuild_or_has_been_taken(built: Life) -> None:
    """The number of a proposal is that of the ledger's last row, which may be the rebuild itself."""

    def horizon(kind: str, sequence: str, entry: int | None, first: int = 4, of: str = "demo.orders") -> dict[str, Any]:
        return {
            "relation": of, "kind": kind, "first_batch": first, "declaration": "d", "sequence": sequence,
            "entry": entry,
        }  # fmt: skip

    horizons = [
        horizon("taken", "0/02", None, 2), horizon("proposed", "0/09", 1), horizon("proposed", "0/05", 2),
        horizon("proposed", "0/07", 3, 5), horizon("proposed", "0/06", 3, 5), horizon("deleted", "0/05", 9),
        horizon("taken", "0/08", None, of="demo.others"), horizon("proposed", "0/01", 1, 3, "demo.never_rebuilt"),
    ]  # fmt: skip
    ledger = [line("rebuild", 1, 1, 1), line("rebuild", 1, 2, 2), line("apply", 3, 3, 3),
              line("rebuild", 1, 2, 9, relation="demo.others")]  # fmt: skip
    asked = built.project.macros._known_horizons(["demo.orders", "demo.never_rebuilt"])
    assert answer(asked, {"demo.reconcile_horizons": horizons, LEDGER: ledger}) == [
        ("demo.never_rebuilt", "proposed", 3, "d", "0/01"), ("demo.orders", "proposed", 4, "d", "0/05"),
        ("demo.orders", "proposed", 5, "d", "0/07"), ("demo.orders", "taken", 2, "d", "0/02"),
    ]  # fmt: skip


def test_a_former_name_counts_from_the_batch_in_which_a_field_first_had_it(built: Life) -> None:
    """Records that lack a column show no field."""
    seen = [
        {"relation": relation, "kind": kind, "name": name, "batch": batch, "spelled": spelled}
        for relation, kind, name, batch, spelled in [
            ("demo.orders", "column", "amount", 4, "Amount"), ("demo.orders", "column", "amount", 3, "amount"),
            ("demo.orders", "column", "amount", 2, None), ("demo.orders", "column", "other", 1, "other"),
            ("demo.orders", "schema", "amount", 1, "amount"), ("demo.others", "column", "amount", 1, "amount"),
        ]
    ]  # fmt: skip
    relations = built.project.macros.model_relations(built.project.relation("orders"))
    built.project.macros.first_batches_of_fields(relations, ["AMOUNT", "gone"])
    assert answer(built.warehouse.statements[-1], {"demo.reconcile_columns_seen": seen}) == [("amount", 3)]


def test_a_proof_names_the_first_and_the_last_batch_that_were_applied(built: Life) -> None:
    """Neither a snapshot, nor an erasure, nor another model's account, nor a purge of staging is such a batch."""
    ledger = [
        line("rebuild", 2, 3, 1), line("apply", 4, 6, 2), line("replay", 5, 7, 3), line("snapshot", 9, 9, 4),
        line("erasure", 1, 1, 5), line("purge", 1, 8), line("apply", 1, 9, 1, relation="demo.others"),
    ]  # fmt: skip
    asked = built.project.macros._batches_of_account({"model": Relation("demo", "orders")})
    assert answer(asked, {LEDGER: ledger}) == [(2, 7)]


# --- why a data test fails --------------------------------------------------------------------------------------------


def test_the_reasons_that_most_records_have_come_first_and_five_are_named() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    reasons = [
        {"relation": relation, "reason": reason, "records": records, "first_batch": 1, "last_batch": 2,
         "example_key": None}
        for relation, reason, records in [
            ("b", "y", 3), ("b", "x", 3), ("a", "z", 3), ("a", "rare", 1), ("c", "most", 9), ("c", "few", 2),
        ]
    ]  # fmt: skip
    shown = answer(macros._commonest_reasons("select * from `demo`.`reasons`"), {"demo.reasons": reasons})
    assert [(*row[:3], row[-1]) for row in shown] == [
        ("c", "most", 9, 6), ("a", "z", 3, 6), ("b", "x", 3, 6), ("b", "y", 3, 6), ("c", "few", 2, 6),
    ]  # fmt: skip


def test_a_finding_of_several_ranges_of_a_model_is_one_reason_with_all_their_batches() -> None:
    macros = PlainProject(Recorder(), "demo").macros
    found = [
        {"relation": relation, "finding": finding, "first_batch": first, "last_batch": last}
        for relation, finding, first, last in [("a", "x", 3, 4), ("a", "x", 1, 2), ("a", "y", 5, 5), ("b", "x", 6, 6)]
    ]
    assert sorted(answer(macros._reasons_of_findings("`demo`.`found`"), {"demo.found": found})) == [
        ("a", "x", 2, 1, 4, None), ("a", "y", 1, 5, 5, None), ("b", "x", 1, 6, 6, None),
    ]  # fmt: skip


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_rows_in_flight_are_those_of_the_last_run_of_this_very_test() -> None:
    """Other tests compare the model with the same relation, in the same run of dbt."""
    macros = PlainProject(Recorder(), "demo").macros
    of_this = {"test": "t", "relation": "demo.orders", "compared_to": "lake.orders_source"}
    others = [of_this | said for said in ({"test": "u"}, {"relation": "demo.old"}, {"compared_to": "lake.old_source"})]
    runs = [
        of_this | {"run_id": "1", "verdict": "match", "rechecks": 5, "recorded_at": "2026-11-21 10:00:00"},
        of_this | {"run_id": "2", "verdict": "in_flight", "rechecks": 1, "recorded_at": "2026-11-21 12:00:00"},
        of_this | {"run_id": "1", "verdict": "confirmed", "rechecks": 7, "recorded_at": "2026-11-21 11:00:00"},
        *(other | {"run_id": "2", "verdict": "confirmed", "rechecks": 9, "recorded_at": "2026-11-21 13:00:00"}
          for other in others),
    ]  # fmt: skip
    differences = [
        of_this | {"run_id": "2", "key": "k1"}, of_this | {"run_id": "2", "key": "k2"},
        of_this | {"run_id": "1", "key": "older"}, *(other | {"run_id": "2", "key": "another"} for other in others),
    ]  # fmt: skip
    comparison = {"test": "t", "model": Relation("demo", "orders"), "compared_to": "lake.orders_source"}
    tables: dict[str, Any] = {"demo.reconcile_parity": runs, "demo.reconcile_parity_differences": differences}
    assert answer(macros._last_comparison(comparison), tables) == [("2", "in_flight", 1)]
    assert answer(macros._keys_in_flight(comparison, "2"), tables) == [("k1",), ("k2",)]


# --- the log ----------------------------------------------------------------------------------------------------------

HASH = "/" + "0" * 18


def of_log(
    id_: int, place: int, at: str, *, generation: int = 0, backfill: bool = False, **said: Any
) -> dict[str, Any]:
    """Return a change record: of which row, where in the log, and at which time of the day."""
    sequence = f"{generation:04x}/{'0' if backfill else '1'}/{place:08x}{HASH}"
    return {
        "id": id_, "_change_sequence": sequence, "_change_id": f"{id_} at {at}", "_change_error": None,
        "_change_time": f"2026-11-21 {at}", **said,
    }  # fmt: skip


def asked_of_log(test: str, *records: dict[str, Any], source: str = MYSQL, **meta: Any) -> list[tuple[Any, ...]]:
    """Return the rows by which a data test of a model fails on such change records."""
    life = Life(thing(source, meta=meta) if meta else thing(source, THINGS))
    sql = life.project.test(test, "orders", which="compile")
    return answer(sql, {CHANGES: records}, structs=("before",))


def test_a_change_disagrees_with_the_log_if_any_change_of_its_row_before_it_in_the_log_is_later_in_time() -> None:
    """Not if it is of the same moment, of another row, of a backfill, or if one of the two could not be read."""
    records = [
        of_log(1, 1, "12:00:00"), of_log(1, 2, "12:00:05"), of_log(1, 3, "12:00:03"), of_log(1, 4, "12:00:04"),
        of_log(1, 5, "12:00:05"), of_log(1, 6, "12:00:06"), of_log(2, 7, "09:00:00"), of_log(2, 8, "09:00:00"),
        of_log(3, 9, "23:00:00", backfill=True), of_log(3, 10, "13:00:00"),
        of_log(4, 11, "13:00:00"), of_log(4, 12, "12:00:00", _change_error="bad"), of_log(4, 13, "14:00:00"),
        of_log(5, 14, "13:00:00", _change_error="bad"), of_log(5, 15, "12:00:00"),
    ]  # fmt: skip
    found = asked_of_log("time_agrees_with_log", *records)
    assert [row[1] for row in sorted(found)] == ["1 at 12:00:03", "1 at 12:00:04"]
    assert {row[3] for row in found} == {"2026-11-21 12:00:05"}


def test_a_log_began_anew_if_all_changes_of_an_hour_lie_before_what_was_reached_two_hours_earlier() -> None:
    def found(*records: dict[str, Any]) -> list[tuple[Any, ...]]:
        return [row[:2] for row in asked_of_log("log_is_one", *records)]

    before = [of_log(1, 50, "08:10:00"), of_log(2, 70, "08:20:00"), of_log(3, 60, "09:05:00")]
    assert found(*before) == [], "statements of one hour may be logged in the next"
    assert found(*before, of_log(4, 65, "10:30:00")) == [("2026-11-21 10:30:00", 1)]
    # One change of the hour is farther than all before.
    assert found(*before, of_log(4, 65, "10:30:00"), of_log(5, 71, "10:20:00")) == []
    assert found(*before, of_log(4, 65, "10:30:00"), of_log(5, 70, "10:20:00")) == [], "the same place is not before it"
    # The farthest of all hours counts, and not that of the last one alone.
    assert found(*before, of_log(4, 80, "10:30:00"), of_log(5, 66, "11:10:00")) == [("2026-11-21 11:10:00", 1)]
    assert found(*before, of_log(4, 65, "10:40:00"), of_log(5, 66, "10:30:00"), of_log(6, 67, "11:30:00")) == [
        ("2026-11-21 10:30:00", 3)
    ]
    # Each generation has a log of its own; what was read by a backfill, or not at all, has no place in it.
    assert found(*before, of_log(4, 65, "10:30:00", generation=1)) == []
    assert found(*before, of_log(4, 1, "10:30:00", backfill=True)) == []
    assert found(*before, of_log(4, 65, "10:30:00", _change_error="bad")) == []


def write(key: int, place: int, told: str, transaction: str, row: str | None = None) -> dict[str, Any]:
    kinds = {"DELETE": "delete", "UPDATE-DELETE": "delete", "INSERT": "insert"}
    record = f'{{"source_metadata": {{"change_type": "{told}"}}}}'
    return of_log(
        key, place, "12:00:00", _change_type=kinds.get(told, "update"), _change_transaction=transaction, _row_id=row,
        _change_record=record,
    )  # fmt: skip


def shifted(taken: str = "UPDATE-INSERT", **rows: str | None) -> list[dict[str, Any]]:
    """Return what the log has of a key that one row has given up and another one has taken in transaction t2."""
    a, b = rows.get("a", "A"), rows.get("b", "B")
    return [write(7, 1, "INSERT", "t1", a), write(7, 2, taken, "t2", b), write(7, 3, "UPDATE-DELETE", "t2", a)]


SHIFTS: dict[str, tuple[list[dict[str, Any]], bool, bool]] = {
    "taken by an update": (shifted(), True, False),
    "taken by an insert": (shifted("INSERT"), True, True),
    "taken by a row without an address": (shifted(b=None), True, True),
    "given up by a row without an address": (shifted(a=None), True, True),
    "updated, not taken": (shifted("UPDATE"), False, False),
    "deleted later": ([*shifted()[:2], write(7, 3, "DELETE", "t3", None)], False, False),
    "taken by a transaction that writes it once more": (
        [*shifted(b=None), write(7, 4, "UPDATE-INSERT", "t2", None)], False, False,
    ),
    "written later": ([*shifted(b=None), write(7, 4, "UPDATE-INSERT", "t3", None)], True, True),
    "free when it was taken": (
        [write(7, 0, "INSERT", "t0"), write(7, 1, "DELETE", "t1"), *shifted(b=None)[1:]], False, False,
    ),
    "new": (shifted(b=None)[1:], False, False),
    "deleted twice": ([*shifted(b=None)[:1], write(7, 2, "DELETE", "t2"), shifted()[2]], False, False),
    "another key": ([*shifted(b=None)[:2], write(8, 3, "UPDATE-DELETE", "t2", None)], False, False),
    "not read": ([*shifted(b=None)[:2], shifted()[2] | {"_change_error": "bad"}], False, False),
}  # fmt: skip


@pytest.mark.parametrize("case", SHIFTS)
def test_a_key_is_lost_that_was_taken_before_it_was_given_up_in_one_transaction(case: str) -> None:
    """A model that has the addresses of rows loses it only where one is missing, or an insert has taken it."""
    records, without, by_address = SHIFTS[case]
    for source, is_lost in ((MYSQL, without), (ORACLE, by_address)):
        found = asked_of_log("no_shifted_keys", *records, source=source)
        assert bool(found) is is_lost, source
        assert {(row[0], row[2]) for row in found} <= {(7, "t2")}


def payload(key: int | None, place: int, kind: int, number: int, **said: Any) -> dict[str, Any]:
    """Return a change record; `kind`: 0 for a delete, 1 for an insert or update; `number`: of its payload."""
    told = f"{place} {kind} {number}"
    sequence = f"0000/1/{place:08x}/{kind}/{number:016x}"
    return of_log(key or 0, place, "12:00:00", _change_sequence=sequence, _change_id=told) | {"id": key} | said


PAYLOADS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "an update that deletes and inserts": ([payload(1, 7, 0, 4), payload(1, 7, 1, 5)], []),
    "two inserts": ([payload(1, 7, 1, 4), payload(1, 7, 1, 5)], ["7 1 4", "7 1 5"]),
    "two deletes": ([payload(1, 7, 0, 4), payload(1, 7, 0, 5)], ["7 0 4", "7 0 5"]),
    "two inserts of an update": (
        [payload(1, 7, 0, 4), payload(1, 7, 1, 4), payload(1, 7, 1, 5)], ["7 1 4", "7 1 5"],
    ),
    "payloads that differ at their end or at their beginning alone": (
        [payload(1, 7, 1, 0), payload(1, 7, 1, 1), payload(1, 7, 1, 15 << 60)],
        ["7 1 0", "7 1 1", f"7 1 {15 << 60}"],
    ),
    "delivered twice": ([payload(1, 7, 1, 4), payload(1, 7, 1, 4, _change_id="again")], []),
    "other places": ([payload(1, 7, 1, 4), payload(1, 8, 1, 5)], []),
    "other keys": ([payload(1, 7, 1, 4), payload(2, 7, 1, 5)], []),
    "no key": ([payload(None, 7, 1, 4), payload(None, 7, 1, 5)], []),
    "not read": ([payload(1, 7, 1, 4), payload(1, 7, 1, 5, _change_error="bad")], []),
}  # fmt: skip


@pytest.mark.parametrize("source", [MYSQL, ORACLE])
@pytest.mark.parametrize("case", PAYLOADS)
def test_two_payloads_at_one_place_are_found_and_the_delete_and_the_insert_of_an_update_are_none(
    case: str, source: str
) -> None:
    records, told = PAYLOADS[case]
    found = asked_of_log("one_payload_per_sequence", *records, source=source)
    place = f"0000/1/00000007/{told[0].split()[1]}" if told else None
    assert [(*row[:3], json.loads(row[3])) for row in found] == ([(1, place, len(told), told)] if told else [])


def part(sequence: str, *, last: bool, records: Any = 2, partitions: Any = 1, **said: Any) -> dict[str, Any]:
    """Return a data change record of Spanner's, whose fields stand beside what staging says of it."""
    return {
        "staged_object": "Orders", "staged_batch": 1, "object": "Orders", "batch": 1, "source": "spanner",
        "record": None, "commit_timestamp": "2026-11-21T12:00:00Z", "server_transaction_id": "t",
        "record_sequence": sequence, "is_last_record_in_transaction_in_partition": "true" if last else "false",
        "number_of_records_in_transaction": str(records), "number_of_partitions_in_transaction": str(partitions),
        "transaction_tag": "", "backfill": None, **said,
    }  # fmt: skip


WHOLE = [part("0", last=False), part("1", last=True)]
TRANSACTIONS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "whole": (WHOLE, False),
    "of one record": ([part("0", last=True, records=1)], False),
    "the first one is missing": (WHOLE[1:], True),
    "the last one is missing": (WHOLE[:1], True),
    "one too many": ([*WHOLE, part("2", last=False)], True),
    "delivered twice": ([*WHOLE, *WHOLE], False),
    "one delivered twice, and one missing": ([WHOLE[1]] * 2, True),
    "of two partitions": ([part(number, last=True, partitions=2) for number in "01"], False),
    "a partition is missing": ([part("0", last=True, records=1, partitions=2)], True),
    "a partition is open": ([part("0", last=True, partitions=2), part("1", last=False, partitions=2)], True),
    "its records disagree": ([WHOLE[0], part("1", last=True, records=3)], True),
    "without its id": ([part("0", last=True, records=1, server_transaction_id=None)], True),
    "without its numbers": ([part("0", last=True, records="")], True),
    "one is of another transaction": ([WHOLE[0], part("1", last=True, server_transaction_id="u")], True),
    "one is of another moment": ([WHOLE[0], part("1", last=True, commit_timestamp="2026-11-21T12:00:01Z")], True),
    "a backfill": ([part("0", last=False, backfill="true")], False),
    "no backfill": ([part("0", last=False, backfill="false")], True),
    "of another source": ([part("0", last=False, source="snapshot")], False),
    "a cut": ([part("0", last=False, object="#cut")], False),
}  # fmt: skip


@pytest.mark.parametrize("case", TRANSACTIONS)
def test_a_transaction_of_spanner_is_found_if_staging_has_not_just_the_records_and_partitions_that_it_tells(
    case: str,
) -> None:
    records, is_found = TRANSACTIONS[case]
    sql = Life(thing(SPANNER)).project.test("transactions_complete", "orders", which="compile")
    # The fields of a record stand in the table already.
    parsed = re.compile(r"lateral view explode\(array\(.*?\)\)\n    \)\) as data_change_record", re.S)
    assert len(parsed.findall(sql)) == 1
    fields = sql.replace("select object, batch, data_change_record.*", "select *")
    assert bool(answer(parsed.sub("", fields), {STAGING: records})) is is_found


# --- several sources, and deletes without a key ----------------------------------------------------------------------


@pytest.mark.parametrize("materialized", ["current_state", "history"])
def test_a_key_that_several_sources_have_is_named_with_them_and_one_of_no_value_is_none(materialized: str) -> None:
    """Of a history its current versions count: a row may have gone to another source."""
    life = Life(replace(SHAPES["mysql_shards"], materialized=materialized))
    rows = [
        {"shard": shard, "order_id": order, "line": number, "is_current": is_current}
        for shard, order, number, is_current in [
            ("a", 1, 1, True), ("b", 1, 1, True), ("a", 2, 1, True), ("b", 2, 1, False), ("a", 3, 1, True),
            ("a", 3, 1, False), ("a", 4, 1, True), ("b", 4, 2, True), ("a", None, 1, True), ("b", None, 1, True),
            ("a", 5, None, True), ("b", 5, None, True),
        ]
    ]  # fmt: skip
    sql = life.project.test("keys_are_disjoint", "orders", which="compile")
    found = answer(sql, {"demo.orders": rows}, structs=())
    shards = [[json.loads(shard) for shard in json.loads(row[3])] for row in found]
    assert [row[:3] for row in found] == [(1, 1, 2)] + ([] if materialized == "history" else [(2, 1, 2)])
    assert shards == [[{"shard": "a"}, {"shard": "b"}]] * len(found)


def test_of_copies_of_a_delete_without_a_key_the_first_batch_and_the_least_time_and_id_are_kept() -> None:
    """One row for each address and place in the log; whichever copy says it, its transaction is known."""
    life = Life(thing(ORACLE))
    macros, node = life.project.macros, life.project.node("orders")

    def change(
        row: str | None, place: str, batch: int, at: str, told: str, transaction: str | None, **said: Any
    ) -> dict[str, Any]:
        return {
            "id": None, "_row_id": row, "_change_type": "delete", "_change_sequence": place, "_change_batch": batch,
            "_change_time": at, "_change_id": told, "_change_transaction": transaction, "_change_error": None, **said,
        }  # fmt: skip

    changes = [
        change("A", "0/1", 4, "12:00", "b", "t"), change("A", "0/1", 3, "12:01", "a", None),
        change("A", "0/1", 5, "12:00", "c", None), change("A", "0/2", 5, "12:02", "d", None),
        change("B", "0/1", 6, "12:03", "e", "u"), change("A", "0/1", 1, "11:00", "0", "t", id=7),
        change("A", "0/1", 1, "11:00", "0", "t", _change_error="bad"),
    ]  # fmt: skip
    sql = macros.keyless_deletes("`demo`.`changes`", macros.keyless_deletes_of(node), ["id"])
    assert sorted(answer(sql, {"demo.changes": changes}, structs=("first",))) == [
        ("A", "0/1", "12:00", "b", 3, "t", 3), ("A", "0/2", "12:02", "d", 5, None, 1),
        ("B", "0/1", "12:03", "e", 6, "u", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "cell", "is_covered"),
    [
        ({}, {"cell_time": 9}, False), ({}, {"cell_time": 10}, True), ({}, {"cell_time": 19}, True),
        ({}, {"cell_time": 20}, False), ({}, {"cell_time": 21}, False),
        ({"end_time": None}, {"cell_time": 9}, False), ({"end_time": None}, {"cell_time": 10}, True),
        ({"end_time": None}, {"cell_time": 99}, True), ({"end_time": 10}, {"cell_time": 10}, False),
        ({}, {"qualifier": "p"}, False), ({"qualifier": None}, {"qualifier": "p"}, True),
        ({"qualifier": None}, {"family": "g"}, False), ({}, {"family": "g"}, False), ({}, {"row_key": "s"}, False),
        ({"qualifier": None}, {"row_key": "s"}, False), ({"qualifier": None}, {"cell_time": 20}, False),
    ],
)  # fmt: skip
def test_a_delete_of_a_range_takes_the_cells_from_its_start_on_and_before_its_end(
    place: dict[str, Any], cell: dict[str, Any], is_covered: bool
) -> None:
    """Its end is not in it. Without an end it takes all later cells, and without a qualifier those of the family."""
    life = Life(Shape(BIGTABLE, CELLS, CELL_KEY))
    column = {"row_key": "r", "family": "f", "qualifier": "q"}
    tables = {
        "demo.places": [column | {"start_time": 10, "end_time": 20} | place],
        "demo.cells": [column | {"cell_time": 15} | cell],
    }  # fmt: skip
    keyless = life.project.macros.keyless_deletes_of(life.project.node("orders"))
    covers = life.project.macros.delete_covers_row(keyless, "place", "cell")
    found = answer(f"select 1 from demo.places as place inner join demo.cells as cell on {covers}", tables, structs=())
    assert bool(found) is is_covered


def at_address(place: str, row: str = "A", key: int | None = 1, **said: Any) -> dict[str, Any]:
    """Return what a table of an Oracle model has of a row's address, or of a delete that names no key."""
    return {
        "id": key, "_row_id": row, "_change_sequence": place, "_change_batch": 5, "_change_time": "12:00",
        "_change_id": place, "_change_transaction": "t", "_change_error": None, "_deleted": False,
        "_change_replaces_base": True, "_change_is_undone": False, "_change_base_deleted": None, **said,
    }  # fmt: skip


OTHER = [at_address("0/1", "another", 9)]


@pytest.mark.parametrize(
    ("batch", "changes", "base", "is_pending"),
    [
        (5, [], [], True),
        (6, [], [], True),
        (4, [], [], False),  # of a batch that was purged
        (3, [], [], False),
        (5, [at_address("0/4")], [], False),
        (5, [at_address("0/6")], [], True),
        (5, [at_address("0/5")], [], True),
        (5, [at_address("0/4", key=None)], [], True),
        (5, [], [at_address("0/4")], False),
        (5, [], [at_address("0/6")], True),
        (5, [], [at_address("0/5")], True),
    ],
    ids=["nothing is known", "a later batch", "of the last purged batch", "of a purged batch", "an older record",
         "a newer record", "a record of its place", "another delete without a key", "an older row", "a newer row",
         "a row of its place"],
)  # fmt: skip
def test_a_row_delete_waits_if_no_record_before_it_has_its_address_and_none_can_have_been_purged(
    batch: int, changes: list[dict[str, Any]], base: list[dict[str, Any]], is_pending: bool
) -> None:
    """Batches up to 4 were purged."""
    life = Life(thing(ORACLE))
    life.project.run("orders")
    life.warehouse.has("demo.orders__row_deletes")
    life.warehouse.purges = {"shop.orders": 4}
    sql = life.project.macros.pending_rows_of(life.project.node("orders"))
    tables = {
        "demo.orders__row_deletes": [at_address("0/5", _change_batch=batch)],
        CHANGES: [*OTHER, *changes], "demo.orders__base": [*OTHER, *base],
    }  # fmt: skip
    assert bool(answer(sql, tables)) is is_pending


DELETE = at_address("0/5", key=None)
MOVED = at_address("0/8", "B")
# What a range brings, what its fold comes to, what the base table has, and which deletes earlier ranges brought.
ROW_DELETES: dict[str, tuple[list[Any], list[Any], list[Any], list[Any], dict[str, int]]] = {
    "nothing is known": ([DELETE], [], [], [], {"pending": 1}),
    "one older row": ([DELETE], [], [at_address("0/4")], [], {"applied": 1, "deleted": 1}),
    "one older row, which is deleted": (
        [DELETE], [], [at_address("0/4", _deleted=True)], [], {"applied": 1, "tombstoned": 1},
    ),
    "one newer row": ([DELETE], [], [at_address("0/6")], [], {"superseded": 1}),
    "several newer rows": ([DELETE], [], [at_address("0/6"), at_address("0/7", key=2)], [], {"superseded": 1}),
    "a row of its place": ([DELETE], [], [at_address("0/5")], [], {"superseded": 1}),
    "an older and a newer row": (
        [DELETE], [], [at_address("0/4"), at_address("0/6", key=2)], [], {"applied": 1, "deleted": 1},
    ),
    "one row at another address": ([DELETE], [], [at_address("0/4", "B")], [], {"pending": 1}),
    "an older row that has moved": ([DELETE, MOVED], [MOVED], [at_address("0/4")], [], {"superseded": 1}),
    "a newer row of the range": ([DELETE, at_address("0/6")], [at_address("0/6")], [], [], {"superseded": 1}),
    "an older row of the range": (
        [DELETE, at_address("0/4")], [at_address("0/4", _change_is_undone=True)], [], [],
        {"applied": 1, "tombstoned": 1},
    ),
    "an older row of the range, which was live before": (
        [DELETE, at_address("0/4")], [at_address("0/4", _change_is_undone=True, _change_base_deleted=False)], [], [],
        {"applied": 1, "deleted": 1},
    ),
    "an older record that lost": (
        [DELETE, at_address("0/4"), MOVED], [MOVED], [], [], {"superseded": 1},
    ),
    "a record that was not read": ([DELETE, at_address("0/4", _change_error="bad")], [], [], [], {"pending": 1}),
    "two deletes": (
        [DELETE, at_address("0/7", key=None)], [], [at_address("0/4")], [],
        {"applied": 1, "deleted": 1, "superseded": 1},
    ),
    "two deletes, and nothing else is known": (
        [DELETE, at_address("0/7", key=None)], [], [], [], {"superseded": 1, "pending": 1},
    ),
    "delivered twice": ([DELETE, DELETE], [], [], [], {"pending": 1, "duplicate": 1}),
    "known": ([DELETE], [], [at_address("0/4")], [DELETE], {"duplicate": 1}),
    "a newer one is known": (
        [DELETE], [], [at_address("0/4")], [at_address("0/7", key=None)], {"superseded": 1},
    ),
    "an older one is known, which hides the row": (
        [DELETE], [], [at_address("0/2")], [at_address("0/3", key=None)], {"applied": 1, "tombstoned": 1},
    ),
    "an older one is known, which is older than the row": (
        [DELETE], [], [at_address("0/4")], [at_address("0/3", key=None)], {"applied": 1, "deleted": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROW_DELETES)
def test_a_row_delete_is_applied_to_an_older_row_superseded_by_newer_ones_and_else_pending(case: str) -> None:
    """However few rows are at its address: one newer row is enough."""
    changes, rows, base, known, expected = ROW_DELETES[case]
    life = Life(thing(ORACLE))
    macros, node = life.project.macros, life.project.node("orders")
    relations = macros.model_relations(life.project.relation("orders"))
    range_ = {"kind": "apply", "delivered": 7, "known_keyless_deletes": "`demo`.`known`" if known else None}
    sql = macros._keyless_delete_counts(relations, macros.form_of_node(node), range_)
    tables = {
        relations["changes_cache"]: changes, relations["rows_cache"]: [*OTHER, *rows],
        "demo.orders__base": [*OTHER, *base], "demo.known": known,
    }  # fmt: skip
    counts = dict.fromkeys(("duplicate", "superseded", "pending", "applied", "deleted", "tombstoned"), 0) | expected
    assert answer(sql, tables, structs=("first",)) == [tuple(counts.values())]


# --- rows of cells ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data_type", "cell", "value"),
    [
        ("tinyint", "00", 0), ("tinyint", "7f", 127), ("tinyint", "80", -128), ("tinyint", "ff", -1),
        ("smallint", "7fff", 2**15 - 1), ("smallint", "8000", -(2**15)), ("smallint", "ffff", -1),
        ("int", "00000001", 1), ("int", "7fffffff", 2**31 - 1), ("int", "80000000", -(2**31)), ("int", "ffffffff", -1),
        ("int", "8fffffff", -(2**31) + 2**28 - 1), ("int", "90000000", -(2**31) + 2**28),
        ("bigint", "0000000000000100", 256), ("bigint", "7fffffffffffffff", 2**63 - 1),
        ("bigint", "8000000000000000", -(2**63)), ("bigint", "fffffffffffffffe", -2),
        ("int", "000001", None), ("int", "0000000001", None), ("int", "", None), ("bigint", "00000001", None),
    ],
)  # fmt: skip
def test_big_endian_bytes_are_the_number_of_just_so_many_bytes_with_its_sign(
    data_type: str, cell: str, value: int | None
) -> None:
    """Else the column is NULL and named; and so it is though an older cell could be read."""
    columns = [{"name": "number", "cell": "f:n", "data_type": data_type, "encoding": "big_endian"}]
    sql = PlainProject(Recorder(), "demo").macros.bigtable_rows(Relation("demo", "cells"), columns)
    cells = [
        {"row_key": "r", "family": family, "qualifier": qualifier, "cell_time": time, "value": of}
        for family, qualifier, time, of in [
            ("f", b"n", 2, bytes.fromhex(cell)), ("f", b"n", 1, b"\0" * 4), ("g", b"n", 3, b"\1"),
            ("f", b"o", 3, b"\1"),
        ]
    ]  # fmt: skip
    undecoded = None if value is not None else '["number"]'
    assert answer(sql, {"demo.cells": cells}) == [("r", value, undecoded)]
