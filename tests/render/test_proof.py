"""What `ingestion/prove.py` asks of a project is answered with the very SQL of the test `parity`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from recorder import normalized
from shapes import Life
from snapshots import SNAPSHOT, TAKEN_AT, beside_a_snapshot
from test_golden_sql import (
    BINLOG,
    COUNTED,
    GOLDEN,
    MYSQL,
    ORACLE,
    PG_SNAPSHOT,
    POSTGRESQL,
    SCN,
    SNAPSHOTS,
    TOLERANCES,
    compare,
    of,
)

AT = {"kind": "pg_snapshot", "value": "20:30:25", "taken_at": TAKEN_AT}
ANSWERS: dict[str, dict[str, Any]] = {
    "coalesce(max(batch), 0) as last": {"last": 3, "first": 3, "as_of_batch": 2, "recent": 3},
    "select distinct _change_batch from": {"_change_batch": 1},
    " as touched,": {"touched": 2, "unreadable": 1},
    " as has_passed,": {"has_passed": True, "late": 0},
    " as compared,": dict.fromkeys(COUNTED, 1) | {"compared": 9, "matched": 6, "tolerated": "{}"},
    "describe history": {"version": 7},
    "select run_id, verdict, rechecks": {},
    "select finding, count(*)": {},
    "select min(first_batch) as first_batch": {"first_batch": 1, "last_batch": 3},
    "select count(*) from `demo`.`orders__quarantine`": {"count": 4},
}


def asked(life: Life, question: str, **request: Any) -> dict[str, Any]:
    life.project.logged.clear()
    life.project.macros.answer_proof(question, [{"unique_id": "model.shop.orders", **request}])
    (line,) = life.project.logged
    answers = json.loads(line.removeprefix("reconcile_proof "))
    return answers[0] if answers else {}


def proven(life: Life, **more: Any) -> dict[str, Any]:
    return {
        "key": ["id"], "columns": ["id", "name", "amount", "ratio", "at"], "tolerances": {},
        "allowance": "10 minutes", "uncertainty": "1 hour", "position": AT, "compared_to": str(SNAPSHOT),
        "source_rows": "rows_of_the_source", "store_values": False, **more,
    }  # fmt: skip


def comparing(shape: Any, said: dict[str, str]) -> Life:
    life = beside_a_snapshot(shape, said)
    life.warehouse.answers = dict(ANSWERS)
    life.warehouse.statements.clear()
    return life


# Of each kind of position, and of a model that is no table.
CASES = {
    "postgresql": (of(POSTGRESQL), PG_SNAPSHOT, AT),
    "a view": (of(POSTGRESQL, materialized="current_view"), PG_SNAPSHOT, AT),
    "mysql": (of(MYSQL), BINLOG, {"kind": "binlog", "value": "mysql-bin.000017:4", "taken_at": TAKEN_AT}),
    "oracle": (of(ORACLE, row_ids=True), SCN, {"kind": "scn", "value": "15869128507100", "taken_at": TAKEN_AT}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tolerances", [{}, TOLERANCES], ids=["exactly", "with tolerances"])
def test_verdicts_are_those_of_the_test_of_parity(case: str, tolerances: dict[str, Any]) -> None:
    """The SELECT of verdicts is the test's own, restricted to the keys of rows that differ."""
    shape, said, position = CASES[case]
    life = comparing(shape, said)
    life.project.test("parity", "orders", compare_to=SNAPSHOT, key="id", tolerances=tolerances)
    (of_test,) = [sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_verdicts_")]
    life = comparing(shape, said)
    request = proven(life, position=position, tolerances=tolerances)
    rows = asked(life, "rows", **request)
    again = {name: rows[name] for name in ("versions", "staged", "delivered")}
    answer = asked(life, "verdicts", **request, **again, differing_keys="keys_that_differ")
    (of_proof,) = [sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_verdicts_")]
    assert answer["counts"]["confirmed"] == 1 and answer["verdicts"] in of_proof
    assert of_proof.count("in (select key from `global_temp`.`keys_that_differ`)") == 2
    unscoped = re.sub(r"\n\s*where [^\n]* in \(select key from `global_temp`.`keys_that_differ`\)", "", of_proof)
    assert unscoped != of_proof

    def plain(sql: str) -> str:
        sql = sql.replace("`global_temp`.`rows_of_the_source`", "`lake`.`orders_source`")
        return re.sub(r"reconcile_(\w+)_[0-9a-f]{12}", r"reconcile_\1", sql.replace(" version as of 7", ""))

    assert plain(unscoped) == plain(of_test)
    # What the checksums are of is what the verdicts are of.
    assert " ".join(rows["sql"].split()) in " ".join(of_proof.split())


def test_a_model_says_what_its_test_of_parity_declares() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    found = asked(life, "models")
    assert (found["complaints"], found["key"], found["left_out"], found["objects"]) == ([], ["id"], [], ["shop.orders"])
    assert [column["name"] for column in found["columns"]] == ["id", "name", "amount", "ratio", "at"]
    assert (found["allowance"], found["uncertainty"], found["allow_empty"]) == ("10 minutes", "1 hour", False)
    life.project.graph["nodes"]["test.shop.parity_orders"] = {
        "unique_id": "test.shop.parity_orders", "name": "parity_orders", "resource_type": "test",
        "attached_node": "model.shop.orders",
        "test_metadata": {"name": "parity", "kwargs": {
            "key": "id", "columns": ["name", "amount"], "tolerances": {"name": "trim"}, "allowance": "1 hour",
        }},
    }  # fmt: skip
    found = asked(life, "models")
    assert [(column["name"], column["tolerances"]) for column in found["columns"]] == [
        ("id", []), ("name", [{"kind": "trim", "argument": None}]), ("amount", []),
    ]  # fmt: skip
    assert (found["left_out"], found["allowance"]) == (["ratio", "at"], "1 hour")


def test_of_several_tests_of_parity_the_first_by_name_declares_and_none_of_another_model() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    for name, test, model in (
        ("m", "parity", "orders"), ("z", "parity", "orders"), ("b", "parity", "orders"), ("a", "parity", "others"),
        ("a_drift", "no_drift", "orders"),
    ):  # fmt: skip
        life.project.graph["nodes"][f"test.shop.{name}"] = {
            "unique_id": f"test.shop.{name}", "name": name, "resource_type": "test",
            "attached_node": f"model.shop.{model}",
            "test_metadata": {"name": test, "kwargs": {"key": "id", "allowance": f"{ord(name[0])} minutes"}},
        }  # fmt: skip
    assert asked(life, "models")["allowance"] == f"{ord('b')} minutes"


@pytest.mark.parametrize(
    ("materialized", "touched", "folds"),
    [("current_state", 0, False), ("current_state", 1, True), ("current_view", 0, True), ("current_view", 1, True)],
)
def test_rows_are_folded_where_some_have_changed_or_no_table_has_them(
    materialized: str, touched: int, folds: bool
) -> None:
    life = comparing(of(POSTGRESQL, materialized=materialized), PG_SNAPSHOT)
    life.warehouse.answers[" as touched,"] = {"touched": touched, "unreadable": 0}
    assert asked(life, "rows", **proven(life))["staged"]["folds"] is folds
    made = [sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_touched_")]
    assert bool(made) is folds


@pytest.mark.parametrize(
    ("kind", "value", "of_staging", "base", "first"),
    [
        # The batch after the position, or the first one that the base table has not seen.
        ("batch", 3, {"first": 1}, 9, 4), ("batch", 3, {"first": 1}, 3, 4), ("batch", 3, {"first": 1}, 2, 3),
        ("batch", 3, {"first": 1}, None, 1),
        ("appended_at", "2026-11-22 10:00:00Z", {"first": 1, "as_of_batch": 5}, 9, 6),
        ("appended_at", "2026-11-22 10:00:00Z", {"first": 1, "as_of_batch": None}, 9, 1),
        # What came since an hour before the position; nothing came since then.
        ("pg_snapshot", "1:2:", {"first": 4}, 9, 4), ("pg_snapshot", "1:2:", {"first": 4}, 2, 3),
        ("pg_snapshot", "1:2:", {"first": None}, 9, 10), ("pg_snapshot", "1:2:", {"first": None}, 7, 8),
    ],
)  # fmt: skip
def test_records_count_from_the_first_batch_that_may_be_behind_the_position_or_not_in_the_base_table(
    kind: str, value: Any, of_staging: dict[str, Any], base: int | None, first: int
) -> None:
    """Of the batches before it, those count of which records are in quarantine."""
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    life.warehouse.answers["coalesce(max(batch), 0) as last"] = {"last": 9, "recent": None, **of_staging}
    life.warehouse.base_batch, life.warehouse.purges = base, {"shop.orders": 2}
    macros, node = life.project.macros, life.project.node("orders")
    relation = life.project.relation("orders")
    taken_at = "t" if kind == "pg_snapshot" else None
    position = {"kind": kind, "value": value, "from": None, "to": None, "taken_at": taken_at}
    comparison = {
        "position": position, "inputs": macros.model_inputs(node), "relations": macros.model_relations(relation),
        "form": macros.form_of_node(node), "allowance": "10 minutes",
    }  # fmt: skip
    staged = macros.staged_at(comparison, None if base is None else 7)
    assert (staged["first"], staged["last"], staged["purged"]) == (first, 9, 2)
    assert (staged["base_batch"], staged["has_base"]) == (base or 0, base is not None)
    assert staged["quarantined"] == ([1] if first > 1 else [])
    before = [sql.rpartition(" ")[2] for sql in life.warehouse.statements if "__quarantine` where" in sql]
    assert before == ([str(first)] if first > 1 else [])
    if kind == "appended_at":
        assert (position["kind"], position["value"]) == ("batch", of_staging["as_of_batch"] or 0)


def test_what_is_pending_is_counted_of_models_that_can_have_such_and_a_view_has_no_account() -> None:
    pending = {}
    for case, (shape, said, position) in CASES.items():
        life = comparing(shape, said)
        pending[case] = asked(life, "rows", **proven(life, position=position))["pending"]
    assert pending == {"postgresql": 0, "a view": 0, "mysql": 0, "oracle": 100}
    shape, said, _ = CASES["a view"]
    life = comparing(shape, said)
    found = asked(life, "rows", **proven(life))
    assert (found["gaps"], found["batches"], found["quarantined"]) == ([], [None, None], 4)


def test_a_model_that_is_not_compared_says_why() -> None:
    life = comparing(of(MYSQL, materialized="history"), {})
    assert asked(life, "models")["complaints"] == [
        "a proof compares a current_state or a current_view, and the model is a history"
    ]
    life = comparing(of(MYSQL), {})
    del life.warehouse.relations["demo.orders"]
    assert asked(life, "models")["complaints"] == ["demo.orders does not exist; build it first"]
    life = comparing(of(SNAPSHOTS), SCN)
    assert asked(life, "models")["complaints"] == [
        "the model has no log, so its rows have no position; compare it by the test reconcile.parity"
    ]


def test_a_position_of_another_kind_of_database_is_a_reason() -> None:
    life = comparing(of(MYSQL), {})
    (why,) = asked(life, "rows", **proven(life))["complaints"]
    assert why.startswith("pg_snapshot 20:30:25, the position of lake.orders_source, is of another kind of database")


def test_ledger_and_quarantine_are_asked_for() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    found = asked(life, "rows", **proven(life))
    assert (found["quarantined"], found["pending"], found["gaps"], found["batches"]) == (4, 0, [], [1, 3])
    life.warehouse.answers["select finding, count(*)"] = {"finding": "the ledger has a gap", "ranges": 1}
    assert asked(life, "rows", **proven(life))["gaps"] == ["the ledger has a gap"]


def test_a_replay_reads_the_recorded_version_and_asks_for_no_other() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    first = asked(life, "rows", **proven(life))
    life.warehouse.answers["describe history"] = {"version": 9}
    life.warehouse.statements.clear()
    again = {name: first[name] for name in ("versions", "staged", "form_columns")}
    second = asked(life, "rows", **proven(life, **again))
    assert second["sql"] == first["sql"] and "version as of 7" in second["sql"]
    assert not [sql for sql in life.warehouse.statements if sql.startswith(("describe", "select coalesce(max(batch)"))]


def test_a_replay_of_folded_rows_says_that_their_records_were_purged() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    first = asked(life, "rows", **proven(life))
    again = {name: first[name] for name in ("versions", "staged", "form_columns")}
    assert first["staged"]["folds"] and first["staged"]["purged"] == 0
    life.warehouse.purges = {"shop.orders": 2}
    assert asked(life, "rows", **proven(life, **again))["complaints"] == [
        "rows were folded from change records, of which those up to batch 2 have been purged from lake.shop_changes"
    ]
    # What was purged before was not read, and what is not folded needs no record.
    for staged in ({"purged": 2}, {"folds": False}):
        again["staged"] = first["staged"] | staged
        assert asked(life, "rows", **proven(life, **again))["complaints"] == []


def test_a_column_that_was_added_since_is_not_of_the_replay() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    first = asked(life, "rows", **proven(life))
    life.project.node("orders")["columns"]["more"] = {"name": "more", "data_type": "string", "description": ""}
    again = {name: first[name] for name in ("versions", "staged", "form_columns")}
    assert asked(life, "rows", **proven(life, **again))["sql"] == first["sql"]
    assert "`more`" in asked(life, "rows", **proven(life))["sql"]


def test_a_proof_writes_what_a_comparison_writes_and_why_nothing_is_proven() -> None:
    life = comparing(of(POSTGRESQL), PG_SNAPSHOT)
    rows = asked(life, "rows", **proven(life))
    counts = dict.fromkeys(COUNTED, 1) | {"tolerated": "{}", "model_digest": "1:2", "source_digest": "3:4"}
    said = {"versions": rows["versions"], "delivered": rows["delivered"], "counts": counts, "seconds": 1.5}
    life.warehouse.statements.clear()
    asked(life, "records", **proven(life), **said, verdict="confirmed", reasons=["it's a \u20ac"], has_differences=True)
    inserted = [sql for sql in life.warehouse.statements if sql.startswith("insert into")]
    tables = [sql.split()[2] for sql in inserted]
    assert tables == ["`demo`.`reconcile_parity_differences`"] * 2 + ["`demo`.`reconcile_parity`"]
    assert "'it\\'s a \u20ac' as reason" in inserted[1] and "'prove' as test" in inserted[2]
    assert "'1:2' as model_digest" in inserted[2] and "'confirmed' as verdict" in inserted[2]
    assert [sql for sql in life.warehouse.statements if sql.startswith("create or replace table")]


def test_a_model_with_masks_is_not_proven() -> None:
    """Its source has the values themselves, and a certificate of them would be one of nothing."""
    masked = of(POSTGRESQL)
    masked = replace(masked, columns={**masked.columns, "name": {"data_type": "string", "meta": {"mask": "sha256"}}})
    life = comparing(masked, PG_SNAPSHOT)
    (reason,) = asked(life, "models")["complaints"]
    assert reason.startswith("the model has masked values of name, and its source has the values themselves; compare")
    assert not asked(comparing(of(POSTGRESQL), PG_SNAPSHOT), "models")["complaints"]


def test_a_proof_asks_and_writes_the_sql_that_was_reviewed(accept_goldens: bool) -> None:
    files = {}
    for case in ("postgresql", "oracle"):
        shape, said, position = CASES[case]
        life = comparing(shape, said)
        request = proven(life, position=position)
        rows = asked(life, "rows", **request)
        files[f"{case}_rows.sql"] = ";\n\n".join([*normalized(life.warehouse.statements), rows["sql"].strip()]) + "\n"
        life.warehouse.statements.clear()
        again = {name: rows[name] for name in ("versions", "staged", "delivered")}
        counted = asked(life, "verdicts", **request, **again, differing_keys="keys_that_differ")["counts"]
        files[f"{case}_verdicts.sql"] = ";\n\n".join(normalized(life.warehouse.statements)) + "\n"
        life.warehouse.statements.clear()
        result = {"counts": counted, "verdict": "confirmed", "reasons": ["a reason"], "seconds": 1.5}
        asked(life, "records", **request, **again, **result, has_differences=True)
        files[f"{case}_records.sql"] = ";\n\n".join(normalized(life.warehouse.statements)) + "\n"
    compare(GOLDEN / "proof", files, accept_goldens)
