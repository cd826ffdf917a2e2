"""A snapshot beside the log: which batches a run reads, and which changes lie before the snapshot."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from by_sqlite import answer
from shapes import BESIDE_SPANNER, ORDERS, SHAPES, SPANNER, Life

LARGE = dict(SHAPES["postgresql_beside_a_large_snapshot"].snapshot)


@pytest.mark.parametrize(("begun", "first"), [(2, 2), (4, 4), (5, 4)], ids=["applied before", "the first", "later"])
def test_a_range_with_a_snapshot_is_read_whole_also_batches_of_long_before_the_snapshot(begun: int, first: int) -> None:
    """The range is 4 to 5; from batch `begun` on there may be changes that the snapshot does not contain."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    life.warehouse.answers["select min(batch) from"] = {"first": begun}
    life.statements("first run")
    asked = "\n".join(life.statements("increment"))
    assert re.search(rf"^ +where _change_batch between {first} and 5$", asked, re.M)


def test_records_without_notes_of_their_columns_are_read_again_too() -> None:
    """A SELECT of the user's may drop the columns that only monitoring needs; then there is nothing to except."""
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    form = life.project.macros.form_of_node(life.project.node("orders"))
    range_ = {"first": 4, "last": 5, "repair": {"first": 2, "oldest": {"place": 1}}}
    fields = ["_change_snapshot"]
    sql = life.project.macros.checked_records_beside_snapshot("select 1", fields, form, range_, [])
    assert sql.startswith("select * except (_change_is_placed_anew)\nfrom (\n")


def compares(change: Any = lambda life: None, **said: Any) -> bool:
    """Whether an increment with a large snapshot compares buckets; `said` is what the shape has otherwise."""
    life = Life(replace(SHAPES["postgresql_beside_a_large_snapshot"], **said))
    life.statements("first run")
    change(life)
    return any("reconcile_buckets" in statement for statement in life.statements("increment"))


def test_a_large_snapshot_is_compared_by_buckets_where_a_cast_reads_its_rows_exactly() -> None:
    snapshot = dict(SHAPES["postgresql_beside_a_large_snapshot"].snapshot or {})
    assert compares()
    assert not compares(snapshot={**snapshot, "rows": 99_999})
    # A cast to fewer digits rounds. A whole number is read or not.
    types = dict(snapshot["columns"])
    assert types["total"] == "decimal(38,10)"
    assert not compares(snapshot={**snapshot, "columns": {**types, "total": "decimal(38,12)"}})
    assert compares(snapshot={**snapshot, "columns": {**types, "id": "int"}})
    assert not compares(materialized="history")


def test_a_large_snapshot_of_any_type_that_can_be_hashed_is_compared_by_buckets() -> None:
    scalars = [
        "boolean", "tinyint", "smallint", "int", "bigint", "decimal(38,10)", "float", "double", "string", "binary",
        "date", "timestamp", "timestamp_ntz",
    ]  # fmt: skip
    columns = {"id": "bigint", **{f"c{number}": type_ for number, type_ in enumerate(scalars)}}
    beside = {**LARGE, "columns": columns}
    assert compares(columns=columns, snapshot=beside)
    for other in ("array<int>", "map<string,int>", "variant"):
        columns = {"id": "bigint", "x": other}
        assert not compares(columns=columns, snapshot={**beside, "columns": columns}), other


def test_a_large_snapshot_of_masked_columns_or_of_partial_records_is_compared_row_by_row() -> None:
    """Its rows are masked before they are read, and an update of some columns says nothing of the others."""
    columns = {"id": "bigint", "name": {"data_type": "string", "meta": {"mask": "sha256"}}}
    of_table = {**LARGE, "columns": {"id": "bigint", "name": "string"}}
    assert compares(columns={**columns, "name": "string"}, snapshot=of_table)
    assert not compares(columns=columns, snapshot=of_table)
    assert not compares(source=SPANNER, snapshot={**BESIDE_SPANNER, "rows": 100_000})


def test_a_snapshot_in_the_first_batch_of_a_range_is_applied() -> None:
    life = Life(SHAPES["postgresql_beside_a_snapshot"])
    life.statements("first run")
    life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"] = "1 0001"
    life._increment()
    life._knows(4)
    life.project.begin("run", ["orders"])
    assert "repaired at pg_snapshot" in life.project.materialize(life.project.node("orders"))


@pytest.mark.parametrize(
    ("kind", "before"), [("binlog", "1 day"), ("scn", "1 day"), ("lsn", "2 hours"), ("pg_snapshot", None)]
)
def test_the_time_of_a_change_may_be_that_of_its_statement_a_day_before_its_commit(
    kind: str, before: str | None
) -> None:
    """So in MySQL and Oracle. A transaction's id, and Spanner's moment, need no time beside them."""
    macros = Life(SHAPES["postgresql_beside_a_snapshot"]).project.macros
    staged = {"position_kind": kind, "position": "1", "taken_at": "2026-11-21T11:33:13Z", "uncertainty": "2 hours"}
    position, taken_at = macros.position_of_staged(staged), "to_timestamp('2026-11-21T11:33:13Z')"
    assert position["from"] == (before and f"{taken_at} - interval '{before}'")
    assert position["to"] == (before and f"{taken_at} + interval '2 hours'")
    assert position["contains_backfills_until"] == f"{taken_at} + interval '2 hours'"


def test_a_moment_has_its_nanoseconds_in_the_order_however_many_digits_it_is_written_with() -> None:
    macros = Life(SHAPES["spanner"]).project.macros
    moments = {"": 0, ".000000001": 1, ".1": 10**8, ".100000001": 10**8 + 1, ".999999999": 10**9 - 1}
    of = {text: macros.hex_of_moment(f"1970-01-02T00:00:01{text}Z") for text in moments}
    assert of == {text: f"{86_401 * 10**9 + number:016X}" for text, number in moments.items()}


def test_types_that_a_macro_was_given_are_compared_with_the_declared_ones() -> None:
    """A key that is hashed as another type would be in another bucket."""
    given = [{"name": name, "data_type": kind} for name, kind in ORDERS.items()]
    assert compares(arguments=f", columns={given}")
    given[0] = {"name": "id", "data_type": "int"}
    assert not compares(arguments=f", columns={given}")


# --- on which side of a snapshot a change lies ------------------------------------------------------------------------


def side(kind: str, position: str, place: str, hour: int = 12, *, backfill: bool = False) -> str:
    """Return the side of a change at a place in the log; the snapshot was taken at 12, give or take an hour."""
    of_position = {
        "kind": kind, "value": position, "taken_at": "12", "from": "11", "to": "13", "contains_backfills_until": "13",
    }  # fmt: skip
    sql = Life(SHAPES["postgresql"]).project.macros.side_of(of_position, {"objects": {}})
    change = {"_change_place": f"0000/{0 if backfill else 1}/{place}/1/{'f' * 16}", "_change_time": hour}
    ((found,),) = answer(f"select {sql} from demo.changes", {"demo.changes": [change]})
    return str(found)


@pytest.mark.parametrize(
    ("change", "is_contained"),
    [
        ("00000025:00000728:0003", True), ("00000025:00000728:0002", True), ("00000025:00000728:0004", False),
        ("00000025:00000728:0005", False), ("00000025:00000727:FFFF", True), ("00000025:00000729:0001", False),
        ("00000024:FFFFFFFF:0001", True), ("00000026:00000001:0001", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("position", ["0x00000025000007280003", "0X00000025000007280003", "00000025000007280003"])
def test_a_change_of_sql_server_is_contained_up_to_the_slot_of_the_snapshot_and_not_after_it(
    position: str, change: str, is_contained: bool
) -> None:
    """The log has slots of four digits, and the order has eight."""
    place = "/".join(f"{int(part, 16):08X}" for part in change.split(":"))
    assert side("lsn", position, place) == ("before" if is_contained else "uncertain")
    assert side("lsn", position, place, hour=13) == ("before" if is_contained else "uncertain")
    assert side("lsn", position, place, hour=14) == ("before" if is_contained else "after")
    assert side("lsn", position, place, hour=10) == "before"


@pytest.mark.parametrize(("change", "expected"), [(99, "before"), (100, "before"), (101, "after"), (1000, "after")])
def test_a_change_of_oracle_is_contained_up_to_the_scn_if_it_is_of_long_before(change: int, expected: str) -> None:
    """Its transaction may be committed later."""
    place = f"{change:016X}/0000AABB/00000001/00000001"
    assert side("scn", "100", place, hour=10) == expected
    assert side("scn", "100", place, hour=11) == ("uncertain" if expected == "before" else "after")


@pytest.mark.parametrize(
    ("file", "place", "expected"),
    [
        (1000000, 499, "before"), (1000000, 500, "uncertain"), (1000000, 501, "after"), (1000000, 1000, "after"),
        (999999, 99999, "before"), (1000001, 4, "after"),
    ],
)  # fmt: skip
def test_a_change_of_mysql_is_contained_before_the_place_of_the_snapshot(file: int, place: int, expected: str) -> None:
    """The very place may be the end of a change, or the beginning of the next one: of an old change it is the end."""
    at = f"{file:016X}/{place:016X}"
    assert side("binlog", "mysql8-bin.1000000:500", at) == expected
    assert side("binlog", "mysql8-bin.1000000:500", at, hour=11) == expected
    of_old = "before" if expected == "uncertain" else expected
    assert side("binlog", "mysql8-bin.1000000:500", at, hour=10) == of_old


@pytest.mark.parametrize("kind", ["lsn", "scn", "binlog"])
@pytest.mark.parametrize(("hour", "expected"), [(10, "before"), (13, "before"), (14, "uncertain")])
def test_a_backfill_row_is_contained_by_the_time_of_its_reading_alone(kind: str, hour: int, expected: str) -> None:
    positions = {"lsn": "0x00000025000007280003", "scn": "100", "binlog": "bin.1:500"}
    for place in ("0000000000000001", "FFFFFFFFFFFFFFFF"):
        assert side(kind, positions[kind], place, hour, backfill=True) == expected
