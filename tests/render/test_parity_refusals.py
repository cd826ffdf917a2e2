"""What the test `parity` cannot be asked, and a snapshot that it cannot compare, is refused in sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from plain_dbt import Relation
from reconcile_jobs.masks import _property_of_masks
from refusals import PARITY, SENTENCE, Refusal, thing
from shapes import BIGTABLE, CELL_KEY, CELLS, MYSQL, OWN_SELECT, POSTGRESQL, STAGING, Life, Shape
from snapshots import SNAPSHOT, TAKEN_AT, answer_columns, beside_a_snapshot, taken

COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)"}
NOW, AT = TAKEN_AT, {"batch": 1}
POSITIONS = "batch, appended_at, commit_time, sequence, pg_snapshot"


def asked(
    shape: Shape | None = None, *, taken: dict[str, str] | None = None, staged: Any = None, of: str = "orders",
    **said: Any,
) -> Any:  # fmt: skip
    """Return what asks the test of a model and a snapshot, which says of itself how it was `taken`.

    `staged`: the objects with masks of the staging table, or the text of its property.
    """

    def act() -> None:
        life = beside_a_snapshot(shape or thing(POSTGRESQL, COLUMNS), taken or {})
        life.project.model("seen", "select 1 as id", {})
        life.warehouse.has("demo.seen", "view")
        kept = staged if isinstance(staged, str) else _property_of_masks("111111", staged or {"others": {"x": "drop"}})
        life.warehouse.properties[STAGING]["reconcile.masks"] = kept
        answer_columns(life, "`demo`.`seen`")
        life.project.test("parity", of, **{"compare_to": SNAPSHOT, "key": life.shape.key, **said})

    return act


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


MASKED = thing(POSTGRESQL, {**COLUMNS, "name": {"data_type": "string", "config": {"meta": {"mask": "sha256"}}}})
CELLS_SHAPE = Shape(BIGTABLE, CELLS, CELL_KEY, object="events")
HISTORY = thing(POSTGRESQL, COLUMNS, materialized="history")
NO_LENGTH = "is not a duration; write it as '10 minutes'"
OF_LISTS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "arguments of every wrong kind": (
        asked(allowance="soon", uncertainty="1 hour'", recheck=-1, tolerances="trim"),
        [f"allowance: 'soon' {NO_LENGTH}", f"uncertainty: '1 hour'' {NO_LENGTH}",
         "recheck: '-1' is not a whole number from 0 on; write it as 3",
         "tolerances: write them by column, for example {name: trim, total: {round: 2}}"],
    ),
    **{
        f"a recheck of {recheck}": (
            asked(recheck=recheck), [f"recheck: '{recheck}' is not a whole number from 0 on; write it as 3"],
        )
        for recheck in ("3", True, 1.5)
    },
    "a test with `where`": (
        asked(compare_to="(select * from lake.orders_source where id > 1) dbt_subquery"),
        [(
            "a test with `where` does not prove the whole table; remove `where`, and name the `columns` to compare, "
            "or compare another relation"
        )],
    ),
    "nothing to compare with": (
        asked(compare_to=Relation("lake", "nothing")),
        ["lake.nothing does not exist; take the snapshot first, with `snapshot.py ... --into lake.nothing`; or build "
         "it, if it is a model"],
    ),
    "values in clear": (
        asked(MASKED),
        ["the model has masked values of name, and lake.orders_source has not; take the snapshot with --masks, or name "
         "the other columns in `columns`"],
    ),
    "values in clear, of a model that declares no mask": (
        asked(staged={"shop_orders": {"name": "sha256", "amount": "drop"}, "shop_others": {"id": "sha256"}}),
        ["the model has masked values of name, amount, and lake.orders_source has not; take the snapshot with --masks, "
         "or name the other columns in `columns`"],
    ),
    **{
        f"masks of staging that are {what}": (
            asked(staged=text),
            ["the property reconcile.masks of lake.shop_changes is not as a job has written it, so nothing shows what "
             "is masked; set it to what it was before somebody changed it"],
        )
        for what, text in {"no hex": "shop_orders", "no JSON": "7b7d7d", "of no objects": "7b7d"}.items()
    },
    "values that another mask has": (
        asked(MASKED, taken={"snapshot__masks": f"0a0b0c {md5('name drop')}"}),
        ["the model has masked values of name, and lake.orders_source has not; take the snapshot with --masks, or name "
         "the other columns in `columns`"],
    ),
    "values that are masked with another key": (
        asked(MASKED, taken={"snapshot__masks": f"0a0b0c {md5('id sha256')},{md5('name sha256')}"}),
        ["lake.orders_source is masked with the key 0a0b0c, and lake.shop_changes with the key 111111; take the "
         "snapshot with the key of staging"],
    ),
    "another key than the model's": (
        asked(as_of=AT, key=["name"]),
        ["key: name is not the unique_key of the model, id; use this key, by which the change records are folded"],
    ),
    "a history at a position": (
        asked(HISTORY, as_of=AT),
        ["a history has all versions of a row, and lake.orders_source has one; test a current_state, or set `as_of: "
         "now`"],
    ),
    "cells at a position": (
        asked(CELLS_SHAPE, as_of=AT),
        ["deletes of ranges hide cells, and this test cannot apply such deletes up to a position; build the model "
         "at the position with the variable as_of, and test it with `as_of: now`"],
    ),
    "a history of another key, at a position of another database": (
        asked(HISTORY, taken=taken("scn", "1"), key=["name", "id"]),
        ["a history has all versions of a row, and lake.orders_source has one; test a current_state, or set `as_of: "
         "now`",
         "key: name, id is not the unique_key of the model, id; use this key, by which the change records are folded",
         (
             "scn 1, the position of lake.orders_source, is of another kind of database than the one that the model "
             "reads; compare with a snapshot of that database"
         )],
    ),
    **{
        f"{kind} of a model of {source.removeprefix('datastream_')}": (
            asked(thing(source, COLUMNS), taken=taken(kind, position)),
            [f"{kind} {position}, the position of lake.orders_source, is of another kind of database than the one "
             "that the model reads; compare with a snapshot of that database"],
        )
        for source, kind, position in [
            (POSTGRESQL, "scn", "1"), (POSTGRESQL, "binlog", "mysql-bin.1:4"), (MYSQL, "pg_snapshot", "1:2:"),
            (MYSQL, "lsn", "0x0000000A000000200003"), (MYSQL, "read_timestamp", NOW),
        ]
    },
    **{
        f"{kind} of a SELECT of one's own": (
            asked(Shape(OWN_SELECT, COLUMNS), as_of={kind: value}),
            [f"as_of: {{{kind}: ...}} is a position in a staging table, and the model has no source macro that reads "
             "one; name another position"],
        )
        for kind, value in (("batch", 1), ("appended_at", NOW))
    },
    "columns that are not there": (
        asked(columns=["name", "absent"]),
        [f"{side} has no column absent; name the columns to compare in `columns`"
         for side in ("demo.orders", "lake.orders_source")],
    ),
    "tolerances of every wrong kind": (
        asked(tolerances={
            "name": ["fuzzy", "to_second", {"trim": 1}], "amount": ["trim", "round"], "id": {"round": 1}, "no": "trim",
        }),
        ["tolerances: id is part of the key, which is compared exactly; remove its tolerance",
         "tolerances: 'fuzzy' of name is unknown; use trim, case, to_second, sign_of_zero or {round: 2}",
         "tolerances: to_second does not apply to name, which is string; remove it",
         (
             "tolerances: name: write round with the number of decimal places to compare, as {round: 2}, and every "
             "other tolerance without a number"
         ),
         "tolerances: trim does not apply to amount, which is decimal(12,2); remove it",
         (
             "tolerances: amount: write round with the number of decimal places to compare, as {round: 2}, and "
             "every other tolerance without a number"
         ),
         "tolerances: no is not one of the columns that are compared; correct the name, or add it to `columns`"],
    ),
    "a tolerance of a column that is not compared": (
        asked(columns=["name"], tolerances={"amount": {"round": 1}}),
        ["tolerances: amount is not one of the columns that are compared; correct the name, or add it to `columns`"],
    ),
}  # fmt: skip
NO_POSITION = "is not a position; write for example {batch: 17}, or now to compare both sides as they are."
NO_END = "has no position, because the job that took it did not finish; take the snapshot again."
NO_TIME = (
    "does not have the time when it was taken (table property reconcile.snapshot.taken_at); take the snapshot again."
)
OF_SENTENCES: dict[str, tuple[Callable[[], object], str]] = {
    **{
        f"as of {said}": (asked(as_of=said), f"Test parity: as_of: '{said}' {NO_POSITION}")
        for said in ("yesterday", 17, ["batch", 1])
    },
    "as of a position that cannot be named": (
        asked(as_of={"scn": 5}),
        f"Test parity: as_of is '{{'scn': 5}}', which is not a position; write one of {POSITIONS} with its value, for "
        "example {batch: 17}.",
    ),
    "as of a batch that is none": (
        asked(as_of={"batch": "last"}),
        "Test parity: as_of: {batch: last} is not a batch number, for example 17.",
    ),
    **{
        f"a snapshot of {job} without a position": (
            asked(taken={"snapshot": job}), f"Test parity: lake.orders_source {NO_END}"
        )
        for job in ("jdbc", "spanner")
    },
    **{
        f"a snapshot that was taken at '{time}'": (
            asked(taken=taken("pg_snapshot", "1:2:", time)), f"Test parity: lake.orders_source {NO_TIME}"
        )
        for time in ("", "yesterday", "2026-11-22 10:00:00")
    },
    "a position of a view that is no model": (
        asked(of="seen", as_of=AT),
        "demo.seen is not a model of this package, and this test is only for such models; remove the test from it.",
    ),
}  # fmt: skip
CASES = {
    **{name: Refusal(act, says, PARITY) for name, (act, says) in OF_LISTS.items()},
    **{name: Refusal(act, [says], SENTENCE) for name, (act, says) in OF_SENTENCES.items()},
}
REFUSED = list(CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_what_parity_cannot_be_asked_is_refused_in_sentences(name: str) -> None:
    CASES[name].check()


@pytest.mark.parametrize(
    ("recheck", "verdict", "rechecks", "again"),
    [(2, "in_flight", 0, 1), (2, "in_flight", 1, 2), (2, "in_flight", 2, None), (2, "match", 1, None),
     (0, "in_flight", 0, None)],
)  # fmt: skip
def test_rows_in_flight_are_compared_again_as_often_as_is_asked(
    recheck: int, verdict: str, rechecks: int, again: int | None
) -> None:
    life = Life(thing(POSTGRESQL, COLUMNS))
    life.warehouse.answers["select run_id, verdict, rechecks"] = {
        "run_id": "a", "verdict": verdict, "rechecks": rechecks,
    }  # fmt: skip
    comparison = {
        "recheck": recheck, "position": {"kind": "batch"}, "test": "t",
        "model": Relation("demo", "orders"), "compare_to": SNAPSHOT,
    }  # fmt: skip
    found = life.project.macros.rows_in_flight(comparison)
    assert (found and found["rechecks"]) == again


@pytest.mark.parametrize(
    ("one", "other", "can_be"),
    [
        ("decimal(12,2)", "decimal(38,10)", True),
        ("decimal(28,0)", "decimal(20,10)", True),
        ("decimal(29,0)", "decimal(20,10)", False),
        ("decimal(38,0)", "decimal(38,10)", False),
        ("decimal(38,10)", "decimal(38,9)", False),
        ("decimal(12,2)", "double", False),
    ],
)
def test_decimals_are_compared_where_one_of_38_digits_holds_both(one: str, other: str, can_be: bool) -> None:
    """Else Spark would round one of them, and what differs would match."""
    macros = Life(Shape(MYSQL)).project.macros
    for types in ([one, other], [other, one]):
        assert macros._is_one_decimal(types) is can_be


@pytest.mark.parametrize(
    ("one", "other", "can_be"),
    [
        ("bigint", "bigint", True), ("bigint", "int", True), ("tinyint", "smallint", True), ("bigint", "double", False),
        ("int", "decimal(12,2)", False), ("string", "bigint", False), ("float", "double", False),
        ("timestamp", "timestamp_ntz", False), ("decimal(12,2)", "decimal(38,10)", True),
    ],
)  # fmt: skip
def test_types_that_cannot_be_compared_without_loss_prove_nothing(one: str, other: str, can_be: bool) -> None:
    for model, source in ((one, other), (other, one)):
        life = beside_a_snapshot(thing(POSTGRESQL, {**COLUMNS, "amount": model}), {})
        life.warehouse.column_types["select * from `lake`.`orders_source` where false"] = {**COLUMNS, "amount": source}
        compared = life.project.macros.compared_columns(Relation("demo", "orders"), SNAPSHOT, ["id"], [], {})
        assert compared["incomparable"] == ([] if can_be else [
            f"column amount is {model} in demo.orders and {source} in lake.orders_source, which cannot be compared "
            "without loss; give both the same type"
        ])  # fmt: skip


@pytest.mark.parametrize("type", ["float", "double", "array<float>", "map<string,double>", "bigint", "string"])
def test_minus_zero_is_no_zero_in_columns_of_both_kinds_of_floats(type: str) -> None:
    macros = Life(Shape(MYSQL)).project.macros
    same = macros.same_value("`one`", "`other`", {"name": "a", "type": type, "tolerances": []})
    assert ("as string) <=> cast(" in same) is ("float" in type or "double" in type)
