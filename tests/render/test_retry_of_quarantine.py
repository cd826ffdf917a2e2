"""A corrected declaration is applied to what is in quarantine, or the run says why it cannot be; see decision 0053."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from plain_dbt import CompilerError, PlainProject, Relation, Rows
from recorder import Recorder, normalized
from refusals import SENTENCE, Refusal, run, thing
from shapes import MYSQL, ORACLE, OWN_SELECT, SPANNER, STAGING, Life

Columns = Mapping[str, Any]
ROUND = {"config": {"meta": {"round": True}}}
SHORT: Columns = {"id": "bigint", "name": "varchar(5)", "size": "decimal(12,2)"}
LONGER: Columns = {**SHORT, "name": "varchar(9)"}
ROUNDED: Columns = {**LONGER, "size": {"data_type": "decimal(12,2)", **ROUND}}
OTHER: Columns = {**SHORT, "size": "string"}
WIDER: Columns = {**LONGER, "size": "decimal(20,4)"}
FEWER: Columns = {"id": "bigint", "name": "varchar(5)"}
MARK = "as first_batch, count_if"
_WRITES = re.compile(r"(create|insert|merge|delete|alter|drop (table|view) if exists `)")


def corrected(
    columns: Columns = LONGER, source: str = MYSQL, *, before: Columns = SHORT, first: int | None = 2, left: int = 0,
    retry: Any = True, was: Mapping[str, Any] | None = None, warehouse: Mapping[str, Any] | None = None, **said: Any,
) -> Callable[[], Life]:  # fmt: skip
    """Return a model that was built with other columns up to batch 3; staging has come to batch 5.

    `first`: the first batch with a quarantined record that was not purged; `left`: how many were. `retry`: the
    variable. `was`: what else was otherwise of its shape.
    """

    def living() -> Life:
        life = Life(thing(source, columns, **said))
        life.was_built_with(before, **(was or {}))
        life._increment()
        life.warehouse.answers |= {
            MARK: {"first_batch": first, "purged_records": left},
            "min(no_longer._change_error)": {},
        }
        for name, value in (warehouse or {}).items():
            assert hasattr(life.warehouse, name)
            setattr(life.warehouse, name, value)
        ask(life, retry)
        return life

    return living


def ask(life: Life, retry: Any) -> None:
    """Let the next run ask for a retry, or not."""
    life.project.variables["retry_quarantine"] = retry


def beside(variable: str) -> Callable[[], Life]:
    """Return a retry of which the command gives another variable, too."""

    def living() -> Life:
        life = corrected()()
        life.project.variables[variable] = True
        return life

    return living


def ran(life: Life, **flags: bool) -> str:
    life.project.begin("run", ["orders"], **flags)
    life.warehouse.statements.clear()
    return life.project.materialize(life.project.node("orders"))


def written(life: Life) -> list[str]:
    statements = [sql for sql in normalized(life.warehouse.statements) if _WRITES.match(sql)]
    return [sql for sql in statements if "`reconcile_columns_seen`" not in sql]


def properties(life: Life, relation: str = "base") -> dict[str, str]:
    return life.warehouse.properties[f"demo.orders__{relation}"]


# --- a declaration that only reads more -------------------------------------------------------------------------------


def test_the_batches_from_the_first_quarantined_record_on_are_applied_again() -> None:
    life = corrected()()
    before = properties(life)["reconcile.declaration"]
    assert ran(life) == "REPLAY batches 2-5: 7 of 200 applied, 1 quarantined; quarantine retried from batch 2 on"
    beginnings = [
        "alter table `demo`.`orders__quarantine` set tblproperties (\n    'reconcile.retried' = '1 2'\n)",
        "alter table `demo`.`orders__base` set tblproperties (\n    'reconcile.declaration'",
        "insert into `demo`.`orders__quarantine`\nreplace where _change_batch between 2 and 5",
        "merge into `demo`.`orders__base`", "insert into `demo`.`reconcile_ledger`",
        "create or replace view `demo`.`orders__changes`", "create or replace view `demo`.`orders`",
    ]  # fmt: skip
    statements = written(life)
    assert [sql[: len(start)] for sql, start in zip(statements, beginnings, strict=True)] == beginnings
    assert "'reconcile.columns'" in statements[1] and "'reconcile.retried' = '1 2'" in statements[1]
    assert "'replay' as kind,\n    2 as first_batch,\n    5 as last_batch," in statements[4]
    assert properties(life)["reconcile.declaration"] != before
    (parsed,) = (sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_changes_"))
    assert "where _change_batch between 2 and 5" in parsed


def test_then_the_declaration_is_that_of_the_base_table() -> None:
    life = corrected()()
    ran(life)
    ask(life, False)
    life._nothing_new()
    assert (ran(life), written(life)) == ("nothing new", [])
    first = Life(thing(columns=LONGER))
    ran(first)
    for name in ("declaration", "columns"):
        assert properties(life)[f"reconcile.{name}"] == properties(first)[f"reconcile.{name}"]


def set_back(
    columns: Columns = LONGER, snapshots: int = 1, ancestors: int = 0, number: int | None = 3
) -> Callable[[], Life]:
    """Return a model on Iceberg after a retry; whether the snapshot of its declaration is there, and an ancestor.

    `number`: that of the present snapshot in the table's sequence; the one of the declaration has 3.
    """

    def living() -> Life:
        life = corrected(columns, file_format="iceberg")()
        ran(life)
        life.warehouse.answers["as ancestors,"] = {"snapshots": snapshots, "ancestors": ancestors, "number": number}
        ask(life, False)
        return life

    return living


@pytest.mark.parametrize("columns", [LONGER, OTHER], ids=["replayed", "rebuilt"])
def test_a_table_of_iceberg_notes_the_snapshot_of_its_declaration(columns: Columns) -> None:
    """Iceberg sets back rows, and leaves the properties that say what was applied to them."""
    for found in ((1, 1, 9), (0, 0, 3), (0, 0, 4), (0, 0, None)):  # where it is not found, it has expired
        life = set_back(columns, *found)()
        assert properties(life)["reconcile.declared_in"] == "41 3"
        ran(life)
    ran(life, full_refresh=True)
    assert properties(life)["reconcile.declared_in"] == "41 3", "the snapshots before are no ancestors of this one"


def test_a_model_without_news_is_not_asked_whether_it_was_set_back_unless_its_quarantine_is_retried() -> None:
    life = set_back_without_news(False)()
    assert ran(life) == "nothing new"
    assert not [sql for sql in life.warehouse.statements if "as ancestors," in sql]


def test_a_table_of_delta_notes_no_version_since_a_restore_sets_back_its_properties_too() -> None:
    life = corrected()()
    ran(life)
    assert "reconcile.declared_in" not in properties(life)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (SHORT, LONGER), (SHORT, ROUNDED), (LONGER, ROUNDED), (SHORT, {**SHORT, "name": "string"}),
        ({"id": "bigint", "at": "timestamp"},
         {"id": "bigint", "at": {"data_type": "timestamp",
                                 "config": {"meta": {"zero_date": "null", "infinity_is_null": True}}}}),
    ],
)  # fmt: skip
def test_what_only_reads_more_does_not_read_all_of_staging(before: Columns, now: Columns) -> None:
    assert ran(corrected(now, before=before)()).startswith("REPLAY batches 2-5: ")
    if "at" not in before:
        assert ran(corrected(before, before=now)()).startswith("REBUILD batches 1-5: ")


def test_without_a_quarantined_record_the_declaration_alone_changes() -> None:
    life = corrected(first=None)()
    assert ran(life) == "APPLY batches 4-5: 7 of 200 applied, 1 quarantined"
    assert "reconcile.retried" not in properties(life) and "reconcile.retried" not in " ".join(written(life))
    assert any("cast(null as bigint) as retried" in sql for sql in written(life))
    life = corrected(first=None)()
    life._nothing_new()
    assert ran(life) == "nothing new"
    assert [sql.split("\n")[0] for sql in written(life)] == [
        "alter table `demo`.`orders__base` set tblproperties (",
        "create or replace view `demo`.`orders__changes`", "create or replace view `demo`.`orders`",
    ]  # fmt: skip


def test_a_model_without_news_is_retried_too() -> None:
    life = corrected()()
    life._nothing_new()
    life.warehouse.staged = 3
    life.project.begin("run", ["orders"])
    life.warehouse.delivered = 100
    assert life.project.materialize(life.project.node("orders")).startswith("REPLAY batches 2-3: ")


def test_the_same_declaration_may_be_tried_again() -> None:
    """Another version of the package may read more."""
    life = corrected(SHORT)()
    assert ran(life).endswith("; quarantine retried from batch 2 on")
    assert "declaration" not in "".join(sql for sql in written(life) if sql.startswith("alter"))
    assert ran(life).endswith("; quarantine retried from batch 2 on")
    assert properties(life)["reconcile.retried"] == properties(life, "quarantine")["reconcile.retried"] == "2 2"


def test_an_empty_quarantine_of_the_same_declaration_is_a_run_like_any_other() -> None:
    life = corrected(SHORT, first=None)()
    assert ran(life) == "APPLY batches 4-5: 7 of 200 applied, 1 quarantined"


def test_records_of_purged_batches_stay_in_quarantine() -> None:
    life = corrected(first=3, left=4, warehouse={"purges": {"shop.orders": 2}})()
    assert ran(life).endswith("; quarantine retried from batch 3 on, but 4 of purged batches stay")
    (asked,) = (sql for sql in life.warehouse.statements if MARK in sql)
    assert "min(if(_change_batch > 2," in asked
    life = corrected(first=None, left=4, warehouse={"purges": {"shop.orders": 2}})()
    not_retried = "; quarantine not retried: all 4 records are of purged batches"
    assert ran(life).endswith(not_retried)
    life._nothing_new()
    assert ran(life) == f"nothing new{not_retried}"


def test_a_full_refresh_and_an_empty_run_retry_nothing() -> None:
    assert "retried" not in ran(corrected()(), full_refresh=True)
    assert ran(corrected(SHORT)(), empty=True) == "nothing new"
    assert "retried" not in ran(Life(thing(columns=LONGER)))


# --- runs that die, tables that are restored --------------------------------------------------------------------------


class KilledError(Exception):
    """The run ends here."""


def mortal(life: Life, lives: int | None) -> None:
    """Let a run end before it writes for the n-th time."""
    count = 0

    def query(sql: str) -> Rows:
        nonlocal count
        if _WRITES.match(sql.strip()) and "`reconcile_columns_seen`" not in sql:
            count += 1
            if lives is not None and count > lives:
                raise KilledError(sql)
        return Recorder.query(life.warehouse, sql)

    life.project.context["run_query"] = query


@pytest.mark.parametrize("news", [True, False])
@pytest.mark.parametrize("columns", [LONGER, ROUNDED], ids=["goes on", "goes on with a retry alone"])
def test_a_retry_that_dies_is_ended_by_the_next_run_whoever_runs_it(columns: Columns, news: bool) -> None:
    """Until the base table has the new declaration, nothing is written that the old one would not write.

    A longer text is taken without a retry too. So the mark of the quarantine alone is enough.
    """
    whole = corrected(columns)()
    ran(whole)
    statements = written(whole)
    ledger = next(n for n, sql in enumerate(statements) if sql.startswith("insert into `demo`.`reconcile_ledger`"))
    for lives in range(len(statements)):
        life = corrected(columns)()
        life.project.begin("run", ["orders"])
        mortal(life, lives)
        with pytest.raises(KilledError):
            life.project.materialize(life.project.node("orders"))
        mortal(life, None)
        ask(life, False)
        w = life.warehouse
        w.answers[MARK] = {"first_batch": None, "purged_records": 0}  # what fits is no longer there
        if columns is LONGER and not lives:
            assert "retried" not in ran(life)
            w.answers[MARK] = {"first_batch": 2, "purged_records": 0}
            ask(life, True)
        elif columns is ROUNDED and lives < 2:
            with pytest.raises(CompilerError, match="was built with other columns"):
                ran(life)
            ask(life, True)
            if not lives:
                w.answers[MARK] = {"first_batch": 2, "purged_records": 0}
        if lives > ledger:
            w.ledger, w.base_batch, w.staged = (5, 5), 5, 6
            w.counts["base_batch"] = 6
        if not news:
            w.staged = w.ledger[0]
            life.project.begin("run", ["orders"])  # nothing new
        said = ran(life)
        if lives <= ledger:
            assert said.startswith("REPLAY batches 2-") and "; quarantine retried from batch 2 on" in said, lives
        else:
            assert "retried" not in said, lives
        number = "2" if columns is ROUNDED and lives == 1 else "1"
        for relation in ("base", "quarantine"):
            assert properties(life, relation)["reconcile.retried"] == f"{number} 2", lives
        assert properties(life)["reconcile.declaration"] == properties(whole)["reconcile.declaration"], lives


def test_a_base_table_that_was_restored_to_before_a_retry_is_brought_back() -> None:
    """Its quarantine no longer has what the retry applied."""
    for reverted in (True, False):
        life = corrected()()
        before = dict(properties(life))
        ran(life)
        life.warehouse.properties["demo.orders__base"], life.warehouse.first_marked = before, 2
        life.warehouse.answers[MARK] = {"first_batch": 3, "purged_records": 0}
        if reverted:
            again = Life(thing(columns=SHORT))
            again.warehouse = life.warehouse
            again.project = life.project
            life.project.node("orders")["columns"]["name"]["data_type"] = "varchar(5)"
            ask(life, False)
        assert ran(life).endswith("; quarantine retried from batch 2 on")


def test_both_tables_may_have_been_restored_and_the_ledger_still_knows() -> None:
    life = corrected(SHORT, retry=False)()
    w = life.warehouse
    w.ledger_retried, w.first_marked = 2, 2
    w.properties["demo.orders__base"]["reconcile.retried"] = "1"
    w.properties["demo.orders__quarantine"]["reconcile.retried"] = "1 3"
    assert ran(life).endswith("; quarantine retried from batch 2 on")
    assert properties(life)["reconcile.retried"] == properties(life, "quarantine")["reconcile.retried"] == "2 2"
    assert any("    2 as retried,\n" in sql for sql in written(life))
    (asked,) = (sql for sql in w.statements if sql.startswith("select min(first_batch)"))
    assert asked.endswith("where relation = 'demo.orders' and retried > 1")
    assert "retried" not in ran(life)


@pytest.mark.parametrize(("by_ledger", "by_quarantine"), [(2, 3), (3, 2)])
def test_of_what_the_ledger_and_the_quarantine_know_the_earlier_batch_counts(
    by_ledger: int, by_quarantine: int
) -> None:
    """The base table was restored to before two retries, the quarantine to before one of them."""
    life = corrected(SHORT, retry=False)()
    life.warehouse.ledger_retried, life.warehouse.first_marked = 2, by_ledger
    properties(life, "quarantine")["reconcile.retried"] = f"1 {by_quarantine}"
    assert ran(life).endswith("; quarantine retried from batch 2 on")


@pytest.mark.parametrize(
    ("largest", "merged", "is_marked"), [(5, 7, False), (None, 7, True), (3, 7, True), (3, 0, False)]
)
def test_a_range_that_changes_rows_of_earlier_batches_alone_is_marked_as_a_retry_is(
    largest: int | None, merged: int, is_marked: bool
) -> None:
    """Its largest batch does not show whether the base table was restored to before it."""
    life = corrected(SHORT, materialized="history", retry=False)()
    life.warehouse.counts |= {"base_batch": largest, "merged": merged}
    assert ran(life).startswith("APPLY batches 4-5: ")
    kinds = ["quarantine", "base", "merge", "ledger"]
    place = {
        "alter table `demo`.`orders__quarantine` set tblproperties (\n    'reconcile.retried' = '1 4'": "quarantine",
        "alter table `demo`.`orders__base` set tblproperties (\n    'reconcile.retried' = '1": "base",
        "merge into `demo`.`orders__base`": "merge",
        "insert into `demo`.`reconcile_ledger`": "ledger",
    }
    seen = [kind for sql in written(life) for begins, kind in place.items() if sql.startswith(begins)]
    assert seen == (kinds if is_marked else [kind for kind in kinds[2:] if merged or kind == "ledger"])
    assert properties(life).get("reconcile.retried") == ("1 4" if is_marked else None)


def test_a_rebuild_begins_without_a_retry() -> None:
    life = corrected()()
    ran(life)
    ran(life, full_refresh=True)
    ask(life, False)
    assert "retried" not in ran(life)


# --- a base table that goes on with other columns ---------------------------------------------------------------------


def columns_of(life: Life) -> dict[str, dict[str, Any]]:
    said: list[dict[str, Any]] = json.loads(bytes.fromhex(properties(life)["reconcile.columns"]))
    return {column["name"]: column for column in said}


def hashed(life: Life) -> str:
    """Return what settles the ties of the records that a run parses."""
    (parsed,) = (sql for sql in life.warehouse.statements if sql.startswith("cache table reconcile_changes_"))
    (found,) = re.findall(r"xxhash64\((change_type, .*?)\)\), 16", parsed)
    return str(found)


@pytest.mark.parametrize("said", [{}, {"materialized": "history"}, {"source": SPANNER}, {"file_format": "iceberg"}])
@pytest.mark.parametrize("columns", [LONGER, ROUNDED], ids=["longer", "longer and rounded"])
def test_what_only_reads_more_leaves_each_record_its_place_in_the_order(columns: Columns, said: dict[str, Any]) -> None:
    first, life = Life(thing(**{"source": MYSQL, "columns": SHORT, **said})), corrected(columns, **said)()
    ran(first)
    assert ran(life).startswith("REPLAY batches 2-5: ")
    assert hashed(life) == hashed(first) and life.project.logged == []
    # The declaration that the table has now is the one with which a later run compares.
    assert ran(life).startswith("REPLAY batches 2-5: ")
    assert not [sql for sql in written(life) if sql.startswith("alter") and "reconcile.declaration" in sql]


@pytest.mark.parametrize("columns", [LONGER, WIDER, FEWER], ids=["a longer text", "wider", "removed"])
def test_a_run_that_does_not_ask_leaves_the_quarantine_and_a_later_one_may_ask(columns: Columns) -> None:
    life = corrected(columns, retry=False)()
    assert ran(life) == "APPLY batches 4-5: 7 of 200 applied, 1 quarantined"
    says = f"`{RETRY}` applies records that are in quarantine because of these columns and fit now"
    assert f"demo.orders: {says}" in life.project.logged
    assert "reconcile.retried" not in properties(life)
    before, places = properties(life)["reconcile.columns"], hashed(life)
    ask(life, True)
    assert ran(life).startswith("REPLAY batches 2-5: ")
    assert (hashed(life), properties(life)["reconcile.columns"]) == (places, before)
    assert properties(life)["reconcile.retried"] == "1 2"


@pytest.mark.parametrize("full_refresh", [True, False])
def test_a_table_that_was_restored_to_before_its_columns_were_read_anew_is_brought_back(full_refresh: bool) -> None:
    """It goes on with the wider type, and the quarantine no longer has what only that type reads."""
    life = corrected(WIDER, retry=not full_refresh)()
    before = dict(properties(life))
    assert ran(life, full_refresh=full_refresh).startswith("REBUILD batches 1-5: ")
    assert properties(life)["reconcile.retried"] == "1 1" and "hashed" not in columns_of(life)["size"]
    life.warehouse.properties["demo.orders__base"] = before
    ask(life, False)
    assert ran(life).endswith("; quarantine retried from batch 1 on")
    assert properties(life)["reconcile.retried"] == "1 1" and columns_of(life)["size"]["hashed"]
    assert "retried" not in ran(life)


def test_a_table_that_was_restored_to_before_a_rebuild_from_a_base_snapshot_is_brought_back_too() -> None:
    """The quarantine stays then, but for the records that staging still has."""
    life = corrected(WIDER, retry=False, meta={"base_snapshot": "lake.orders_kept"})()
    life._purge()
    life.warehouse.base_batch = 2
    ran(life, full_refresh=True)
    marks = [sql for sql in written(life) if "'reconcile.retried' = '1 3'" in sql]
    assert [sql.split("\n")[0] for sql in marks] == [
        "alter table `demo`.`orders__base` set tblproperties (",
        "alter table `demo`.`orders__quarantine` set tblproperties (",
        "create or replace table `demo`.`orders__base`",
    ]
    ran(life, full_refresh=True)
    assert not [sql for sql in written(life) if "'reconcile.retried' = '1 " in sql]


def test_a_base_table_that_is_written_anew_keeps_the_mark_of_a_retry_that_died() -> None:
    life = corrected(file_format="iceberg")()
    life.project.begin("run", ["orders"])
    mortal(life, 3)  # before the MERGE
    with pytest.raises(KilledError):
        life.project.materialize(life.project.node("orders"))
    assert properties(life)["reconcile.retried"] == "1 2"
    life.project.model("orders", thing(columns=WIDER, file_format="iceberg").sql, WIDER, config={})
    ask(life, False)
    mortal(life, None)
    life.project.begin("run", ["orders"])
    mortal(life, 1)  # after the base table was written anew
    with pytest.raises(KilledError):
        life.project.materialize(life.project.node("orders"))
    mortal(life, None)
    assert columns_of(life)["size"]["type"] == WIDER["size"] and properties(life)["reconcile.retried"] == "1 2"
    assert ran(life).endswith("; quarantine retried from batch 2 on")
    assert properties(life)["reconcile.retried"] == "1 2"


@pytest.mark.parametrize(
    ("now", "key"),
    [({**WIDER, "size": "string"}, "id"), ({**WIDER, "id": "string"}, "id"), (WIDER, ["id", "name"])],
    ids=["another type", "a key of another type", "another key"],
)
def test_what_reads_all_records_takes_the_hash_of_the_new_declaration(now: Columns, key: Any) -> None:
    """The columns that were removed and widened before are forgotten with the table that had them."""
    life = corrected(WIDER, before={**SHORT, "gone": "int"}, retry=False)()
    ran(life)
    assert columns_of(life)["size"]["hashed"] and columns_of(life)["gone"]["removed"]
    fresh = Life(thing(MYSQL, now, key))
    life.project.model("orders", fresh.shape.sql, now, config={})
    ask(life, True)
    ran(fresh)
    assert ran(life).startswith("REBUILD batches 1-5: ")
    assert columns_of(life) == columns_of(fresh) and hashed(life) == hashed(fresh)
    assert "gone" not in "".join(life.warehouse.statements)
    assert properties(life)["reconcile.declaration"] == properties(fresh)["reconcile.declaration"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (WIDER, {}),
        (FEWER, {}),
        (WIDER, {"materialized": "history"}),
        (WIDER, {"file_format": "iceberg"}),
        ({**FEWER, "title": "varchar(9)"}, {}),
        (WIDER, {"source": ORACLE, "row_ids": True}),
        (FEWER, {"source": SPANNER}),
        (FEWER, {"config": {"partition_by": ["size"]}}),
        ({"id": "bigint", "size": "decimal(12,2)",
          "title": {"data_type": "varchar(5)", "config": {"meta": {"was": "name"}}}}, {}),
    ],
    ids=[
        "wider", "removed", "of a history", "iceberg", "added too", "displaced rows", "partial records", "partitioned",
        "renamed",
    ],
)  # fmt: skip
def test_what_does_more_than_read_more_a_retry_reads_anew(columns: Columns, said: dict[str, Any]) -> None:
    life = corrected(columns, **said)()
    assert ran(life).endswith("; quarantine retried with all records in staging")
    fresh = Life(thing(said.get("source", MYSQL), columns, **{k: v for k, v in said.items() if k != "source"}))
    ran(fresh)
    assert columns_of(life) == columns_of(fresh) and hashed(life) == hashed(fresh)


# --- a declaration that reads otherwise -------------------------------------------------------------------------------

SHAPES: dict[str, dict[str, Any]] = {
    "mysql": {}, "oracle": {"source": ORACLE, "row_ids": True}, "spanner": {"source": SPANNER},
    "own select": {"source": OWN_SELECT}, "a history": {"materialized": "history"},
    "fresh": {"meta": {"fresh": True}}, "iceberg": {"file_format": "iceberg"},
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_written_is_what_a_full_refresh_writes(name: str) -> None:
    one, other = corrected(OTHER, **SHAPES[name])(), corrected(OTHER, **SHAPES[name])()
    said = ran(one)
    assert said.startswith("REBUILD batches 1-") and said.endswith("; quarantine retried with all records in staging")
    ran(other, full_refresh=True)
    statements = written(one)
    begun, of_quarantine, made = (sql for sql in statements if "'reconcile.retried' = '1 1'" in sql)
    # A run without news asks the base table alone whether an earlier run has died amid a retry.
    assert begun.startswith("alter table `demo`.`orders__base`")
    assert statements.index(begun) < statements.index(of_quarantine)
    assert of_quarantine.startswith("create or replace table `demo`.`orders__quarantine`")
    assert made.startswith("create or replace table `demo`.`orders__base`")
    assert statements == written(other)
    assert properties(one)["reconcile.retried"] == "1 1"


def test_a_retry_of_all_records_that_dies_before_its_ledger_row_is_ended_by_the_next_run() -> None:
    """The base table is that of a rebuild then; without a row of its own in the ledger nothing would balance."""
    life = corrected(OTHER)()
    life.project.begin("run", ["orders"])
    mortal(life, 3)
    with pytest.raises(KilledError, match="reconcile_ledger"):
        life.project.materialize(life.project.node("orders"))
    mortal(life, None)
    ask(life, False)
    assert ran(life).startswith("REPLAY batches 1-5: ")
    assert properties(life)["reconcile.retried"] == "1 1"
    assert "retried" not in ran(life)


def test_a_table_of_an_earlier_version_does_not_say_how_it_reads() -> None:
    life = corrected()()
    del properties(life)["reconcile.columns"]
    assert ran(life).startswith("REBUILD batches 1-5: ")
    assert ran(life).startswith("REPLAY batches 2-5: ")


@pytest.mark.parametrize(
    ("was", "said"),
    [
        ({}, {"meta": {"partial_records": True}}),
        ({"object": "shop.orders"}, {"object": "shop.others"}),
        ({"key": "id"}, {"key": ["id", "name"]}),
    ],
)
def test_other_declarations_are_read_anew_too(was: dict[str, Any], said: dict[str, Any]) -> None:
    life = corrected(SHORT, was={**was, **({"meta": {}} if "meta" in said else {})}, **said)()
    assert ran(life).startswith("REBUILD batches 1-5: ")


# --- refusals ---------------------------------------------------------------------------------------------------------

RETRY = "dbt run --select orders --vars '{retry_quarantine: true}'"
REBUILD = "`dbt run --full-refresh --select orders`"
READS = "a retry of the quarantine reads the records in staging from batch 2 on,"
READS_ALL = (
    "a retry of the quarantine reads all records in staging, since the declaration reads records otherwise than before,"
)
BUILT = f"demo.orders__base was built with other columns; rebuild it with {REBUILD}"
LEFT = (
    "of the 100 records that were delivered in batches 1 to 3; restore the records, or build the table from what is "
    "left with"
)
GONE = {"lost": ((1, 3, 100, 90),)}
SET_BACK_AND_GONE = {"staged": 5, "ledger": (5, 5), "base_batch": 3, "lost": ((4, 5, 100, 90),)}
OF_RESTORED = (
    f"demo.orders__base was restored, and batches 4 to 5 are to be applied again, but {STAGING} has 90 of the 100 "
    "records that were delivered in them; restore the records, or a newer version of that table, or build the table "
    f"from what is left with {REBUILD}"
)
LESS = {"records": 3, "reason": "column name: 'abcdef' is longer than varchar(4)"}

SET_BACK = (
    "demo.orders__base was set back to before it was built with its present declaration, or to before a retry of its "
    f"quarantine; restore its newest version, or rebuild it with {REBUILD}"
)
ROUNDS = f"{BUILT} (column size has another round, with which `{RETRY}` goes on)"


def restored() -> Life:
    """Return a model whose base table was restored to before its retry; the next run does not ask for another one."""
    life = corrected(ROUNDED)()
    before = dict(properties(life))
    ran(life)
    life.warehouse.properties["demo.orders__base"] = before
    ask(life, False)
    return life


def nothing_to_retry(purged: int, **said: Any) -> Callable[[], Life]:
    """Return a model whose table was restored, and of whose later batches records are gone; a retry reads nothing."""

    def living() -> Life:
        life = corrected(warehouse=SET_BACK_AND_GONE, **said)()
        life.warehouse.answers[MARK] = {"first_batch": None, "purged_records": purged}
        return life

    return living


def narrower() -> Life:
    life = corrected({**SHORT, "name": "varchar(4)"})()
    life.warehouse.answers["min(no_longer._change_error)"] = LESS
    return life


def set_back_without_news(retry: bool) -> Callable[[], Life]:
    """Return a model that was set back and has no news; its run asks for a retry, or not."""

    def living() -> Life:
        life = set_back()()
        w = life.warehouse
        w.staged, w.ledger, w.base_batch, w.delivered = 5, (5, 5), 5, 0
        ask(life, retry)
        return life

    return living


def set_back_and_wider() -> Life:
    """With its wider column all rows of such a model are written anew."""
    life = set_back_without_news(False)()
    life.project.node("orders")["columns"]["size"]["data_type"] = "decimal(20,4)"
    return life


def of_another_order() -> Life:
    """Return a model whose base table has sequences of another form: a retry cannot compare them with new ones."""
    life = corrected(SHORT)()
    built = properties(life)
    built["reconcile.declaration"] = json.dumps({**json.loads(built["reconcile.declaration"]), "sequence": "before"})
    return life


REFUSED = [
    Refusal(
        run(of_another_order),
        ["demo.orders__base was built with other form of the order; rebuild it with " + REBUILD],
    ),
    Refusal(run(corrected(ROUNDED, retry=False)), [ROUNDS]),
    Refusal(run(corrected(ROUNDED), empty=True), [ROUNDS]),
    Refusal(run(restored), [ROUNDS]),
    Refusal(run(set_back()), [SET_BACK]),
    Refusal(run(set_back(OTHER)), [SET_BACK]),
    Refusal(run(set_back(snapshots=0, number=2)), [SET_BACK]),
    Refusal(run(set_back_without_news(True)), [SET_BACK]),
    Refusal(run(set_back_and_wider), [SET_BACK]),
    Refusal(run(corrected(warehouse=GONE)), [f"{READS} but {STAGING} has 90 {LEFT} {REBUILD}"]),
    Refusal(run(nothing_to_retry(1)), [OF_RESTORED]),
    Refusal(run(nothing_to_retry(0)), [OF_RESTORED]),
    Refusal(
        run(corrected(warehouse=SET_BACK_AND_GONE | {"purges": {"shop.orders": 1}})),
        [f"{READS} but {STAGING} has 90 {LEFT.replace('1 to 3', '4 to 5')} {REBUILD}"],
    ),
    Refusal(
        run(corrected(source=OWN_SELECT, warehouse=GONE)), [f"{READS} but its SELECT has 90 {LEFT} {REBUILD}"]
    ),
    Refusal(run(corrected(OTHER, warehouse=GONE)), [f"{READS_ALL} but {STAGING} has 90 {LEFT} {REBUILD}"]),
    Refusal(
        run(corrected(OTHER, warehouse={"purges": {"shop.orders": 2}})),
        [f"{READS_ALL} but the records of shop.orders up to batch 2 were purged from {STAGING}; rebuild with "
         f"{REBUILD}, which begins with a base snapshot, or declare the model as before"],
    ),
    Refusal(
        run(corrected(OTHER, config={"full_refresh": False})),
        [f"{READS_ALL} as a full refresh does, which `full_refresh: false` in its config forbids; remove that for one "
         "run, or declare the model as before"],
    ),
    Refusal(
        run(corrected(OTHER, warehouse={"ledger": (0, 0), "base_batch": 3})),
        [f"{READS_ALL} but the ledger has nothing of demo.orders__base, so nothing shows whether staging still has "
         f"them; build the table from what staging has with {REBUILD}"],
    ),
    Refusal(
        run(narrower),
        ["a retry of the quarantine takes no record away, but with this declaration 3 records that were applied would "
         "be quarantined (column name: '...' is longer than varchar(4)); correct the declaration, or rebuild with "
         f"{REBUILD}"],
    ),
    Refusal(
        run(corrected(SHORT, was={"materialized": "history"})),
        [f"demo.orders__base was built with other materialization; rebuild it with {REBUILD}"],
    ),
    Refusal(
        run(corrected(retry="yes")),
        ["The variable retry_quarantine is 'yes', which is neither true nor false; write --vars '{retry_quarantine: "
         "true}'."], SENTENCE,
    ),
    Refusal(
        run(corrected(as_of={"batch": 2})),
        ["retry_quarantine is of the present tables, and as_of builds others; use one of the two variables."], SENTENCE,
    ),
    Refusal(
        run(beside("only_new_records")),
        ["only_new_records leaves models without new records as they are, and retry_quarantine applies records that "
         "came before; use one of the two variables."], SENTENCE,
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_retried_is_refused_and_nothing_is_written(number: int) -> None:
    REFUSED[number].check()


@pytest.mark.parametrize(("first", "of_quarantine", "least"), [
    (5, None, 5), (5, "1", 5), (5, "2 9", 5), (9, "2 5", 5), (7, "1 7", 7),
])  # fmt: skip
def test_of_several_retries_the_first_batch_of_all_is_kept(first: int, of_quarantine: str | None, least: int) -> None:
    macros = PlainProject(Recorder(), "demo").macros
    assert macros._least_batch(first, of_quarantine) == least


def test_a_record_without_an_id_is_found_in_the_quarantine() -> None:
    life = Life(thing())
    macros = life.project.macros
    sql = macros._records_that_no_longer_fit(macros.model_relations(Relation("demo", "orders")), 7)
    joined = re.search(r"left anti join .*? on\s+(.*?)\s+having", " ".join(sql.split()))
    assert joined
    conditions = {re.sub(r"\w+\.", "", one).strip() for one in joined[1].split(" and ")}
    assert conditions == {"_change_batch = _change_batch", "_change_id <=> _change_id", "_change_origin <=> origin"}
