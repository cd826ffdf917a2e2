"""What maintain.py and erase.py ask of tables, by the SQL itself: SQLite has the rows, and answers as Spark does."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.erasure.tables import Account as AccountOfErasure
from reconcile_jobs.erasure.tables import ErasureTables, Found
from reconcile_jobs.keyed_records import DATASTREAM, Left
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.retention import tombstones
from reconcile_jobs.retention.plan import Account, Reader, StagedObject
from reconcile_jobs.retention.tables import _TOO_LATE, Tables, is_conflict, patiently
from reconcile_jobs.retention.tombstones import TombstoneResult, Tombstones, _Model
from reconcile_jobs.staging import TableName
from sqlite_functions import teach

STAGING, LEDGER = TableName(("lake", "changes")), TableName(("shop", "reconcile_ledger"))
BASE, QUARANTINE = TableName(("shop", "orders__base")), TableName(("shop", "orders__quarantine"))
ORDERS = Reader("lake.changes", "shop.reconcile_ledger", "shop.orders", "current_state", ("orders",))
LINES = Reader("lake.changes", "shop.reconcile_ledger", "shop.lines", "current_state", ("lines", "stock"))


class Lake:
    """A session whose tables are SQLite's; times are microseconds. What is written is only noted."""

    def __init__(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.columns: dict[str, list[str]] = {}
        self.told: list[str] = []
        self.catalog = SimpleNamespace(
            tableExists=lambda name: name in self.columns, refreshTable=lambda name: None,
            getTable=lambda name: SimpleNamespace(tableType="MANAGED"),
        )  # fmt: skip
        self.conf: dict[str, str] = {}
        for name, places, function in (
            ("if", 3, lambda condition, then, other: then if condition else other),
            ("timestamp_micros", 1, lambda at: at),
            ("unix_micros", 1, lambda at: at),
            ("endswith", 2, lambda text, end: text.endswith(end)),
            ("regexp_replace", 3, lambda text, pattern, by: re.sub(pattern, by, text)),
        ):
            self.base.create_function(name, places, function)  # type: ignore[arg-type]
        teach(self.base)
        for schema in ("lake", "shop"):
            self.base.execute(f"ATTACH ':memory:' AS {schema}")

    def has(self, table: TableName, columns: str, *rows: tuple[Any, ...]) -> None:
        """Make a table anew."""
        self.base.execute(f"DROP TABLE IF EXISTS {table.sql}")
        self.base.execute(f"CREATE TABLE {table.sql} ({columns})")
        self.columns[table.sql] = columns.split(", ")
        for row in rows:
            self.base.execute(f"INSERT INTO {table.sql} VALUES ({', '.join('?' * len(row))})", row)

    def table(self, name: str) -> Any:
        return SimpleNamespace(columns=self.columns[name])

    def sql(self, text: str) -> Any:
        self.told.append(text)
        if not text.startswith("SELECT"):
            return SimpleNamespace(collect=lambda: [])
        found = self.base.execute(text)
        names = [column[0] for column in found.description]
        rows = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in found]
        return SimpleNamespace(collect=lambda: rows)


@pytest.fixture
def lake() -> Iterator[Lake]:
    made = Lake()
    yield made
    made.base.close()


def staged(lake: Lake, *rows: tuple[Any, ...]) -> Tables:
    """Return the tables of a purge; each row of staging is its object, its batch and when it was appended."""
    of_log = [(None, "datastream", name, None, batch, at) for name, batch, at in rows]
    lake.has(STAGING, "record, source, object, origin, batch, appended_at", *of_log)
    return Tables(lake, STAGING)  # type: ignore[arg-type]


# --- staging ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_old_when_all_of_it_and_of_those_before_it_is(lake: Lake):
    tables = staged(lake, *((name, batch, 10 * batch) for name in ("orders", "lines") for batch in (1, 2, 3, 4)))
    assert [tables.aged(before) for before in (10, 11, 30, 31, 40, 41)] == [0, 1, 2, 3, 3, 4]
    tables = staged(lake, ("orders", 1, 10), ("orders", 2, 20), ("lines", 2, 90), ("orders", 3, 30))
    assert tables.aged(50) == 1, "a part of the second batch is young"
    tables = staged(lake, ("orders", 0, 90), ("orders", None, 90), ("orders", 1, 10))
    assert tables.aged(50) == 1, "rows of no batch are no batch"
    assert staged(lake).aged(50) == 0


def test_of_each_object_it_is_known_what_staging_has_and_up_to_which_batch(lake: Lake):
    tables = staged(
        lake, ("orders", 0, 1), ("orders", 1, 1), ("orders", 2, 1), ("orders", 2, 1), ("orders", 3, 1), (None, 1, 1),
        ("lines", 1, 1), ("late", 3, 1), ("both", 1, 1), ("#snapshot of orders", 2, 1),
    )  # fmt: skip
    for name, batch in (("both", 2), ("#snapshot of lines", 9)):
        lake.base.execute(f"INSERT INTO {STAGING.sql} VALUES (NULL, 'snapshot', ?, NULL, ?, 1)", (name, batch))
    found = {of.name: of for of in tables.staged(2)}
    assert found == {
        "orders": StagedObject("orders", 3, 2),
        None: StagedObject(None, 1, 1),
        "lines": StagedObject("lines", 1, 1, has_snapshot=True),
        "both": StagedObject("both", 2, 2, is_snapshot=True),
        "#snapshot of orders": StagedObject("#snapshot of orders", 1, 2),
        "#snapshot of lines": StagedObject("#snapshot of lines", 0, 0, is_snapshot=True),
    }
    assert [tables.records(["orders", "lines"], batch) for batch in (0, 1, 2, 3)] == [0, 2, 4, 5]


def test_the_first_records_of_a_model_are_those_of_its_objects_after_what_is_applied(lake: Lake):
    tables = staged(lake, ("orders", 2, 20), ("orders", 5, 50), ("stock", 4, 40), ("lines", 6, 60), ("other", 1, 10))
    assert (tables.first_batch(ORDERS), tables.first_batch(LINES)) == (2, 4)
    assert tables._first_records({ORDERS: 2, LINES: 3}) == {ORDERS: 5, LINES: 4}
    assert tables._first_records({ORDERS: 5, LINES: 4}) == {ORDERS: None, LINES: 6}
    assert tables._first_records({}) == {}
    assert tables.appended_at(LINES.objects, 4) == 40 and tables.appended_at(LINES.objects, 5) == 60
    assert tables.appended_at(LINES.objects, None) is tables.appended_at(LINES.objects, 7) is None


def test_a_table_that_is_missing_or_is_no_staging_table_is_a_sentence(lake: Lake):
    for columns in (None, "record, object, batch", "record, object, appended_at", "object, batch, appended_at"):
        if columns:
            lake.has(STAGING, columns)
        with pytest.raises(UsageError, match="is not a staging table" if columns else "does not exist: correct --stag"):
            Tables(lake, STAGING)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "purged", "is_gone"),
    [(50, 0, False), (51, 9, True), (None, 0, False), (49, 4, True)],
    ids=["the same", "later", "not said", "earlier"],
)
def test_an_account_says_nothing_of_a_staging_table_that_was_made_anew(
    lake: Lake, at: int | None, purged: int, is_gone: bool
):
    tables = staged(lake, ("orders", 4, 40), ("orders", 5, 50), ("orders", 6, 60))
    ((_, account),) = tables._with_staging([(ORDERS, Account(5, 5, 5, appended_at=at))], purged)
    assert account is not None
    assert account.problem == ("its last batch, 5, is not in staging any more" if is_gone else None)
    assert account.waits_for == 6


@pytest.mark.parametrize(("purged", "is_gone"), [(2, True), (3, False), (4, False)])
def test_a_last_batch_may_be_missing_that_was_purged(lake: Lake, purged: int, is_gone: bool):
    tables = staged(lake, ("orders", 5, 50))
    unknown = (LINES, None)
    (_, account), other = tables._with_staging([(ORDERS, Account(3, 3, 3, appended_at=30)), unknown], purged)
    assert account is not None and bool(account.problem) == is_gone
    assert other == unknown


# --- ledgers, base tables, quarantines --------------------------------------------------------------------------------


def ledger(lake: Lake, *rows: tuple[str, int, int, int | None]) -> Tables:
    """Return the tables of a purge; each row of the ledger is its kind, its number, its last batch and its moment."""
    columns = "relation, kind, entry, last_batch, last_appended_at"
    lake.has(LEDGER, columns, *(("shop.orders", *row) for row in rows), ("shop.other", "rebuild", 99, 99, 1))
    return staged(lake)


def test_what_was_applied_before_a_moment_is_of_ranges_since_the_last_rebuild(lake: Lake):
    rows = [
        ("apply", 1, 40, 10), ("rebuild", 2, 5, 20), ("apply", 3, 7, 30), ("replay", 4, 8, 40), ("purge", 5, 30, 10),
    ]  # fmt: skip
    tables = ledger(lake, *rows)
    assert [tables.applied_before(ORDERS, at) for at in (20, 21, 30, 31, 40, 41)] == [0, 5, 5, 7, 7, 8]
    assert (tables.rebuilt(ORDERS), tables.rebuilt(LINES)) == (2, 0)
    tables = ledger(lake, rows[0], ("apply", 2, 50, None))
    assert tables.applied_before(ORDERS, 50) == 40, "without a rebuild all ranges count"


def test_a_later_range_is_one_after_the_one_that_applied_the_batch(lake: Lake):
    tables = ledger(lake, ("apply", 1, 10, 1), ("apply", 2, 20, 1), ("replay", 3, 20, 1), ("purge", 4, 20, 1))
    assert [tables.has_later_range(ORDERS, batch) for batch in (10, 11, 20, 21)] == [True, True, True, False]
    tables = ledger(lake, ("apply", 1, 10, 1), ("apply", 2, 20, 1), ("erasure", 3, 20, 1))
    assert [tables.has_later_range(ORDERS, batch) for batch in (10, 11, 20)] == [True, False, False]


def test_the_largest_batch_of_a_base_table_is_found_though_it_was_restored(lake: Lake):
    tables = staged(lake)
    lake.has(BASE, "_change_batch", (3,), (7,), (5,))
    assert [tables._largest_batch(BASE, known) for known in (0, 5, 7, 8)] == [7, 7, 7, 7]
    assert sum("WHERE" not in sql for sql in lake.told) == 1, "the whole table is read only if it was restored"
    lake.has(BASE, "_change_batch")
    assert tables._largest_batch(BASE, 4) == 0


def test_quarantined_records_count_that_staging_has_and_that_were_not_too_late(lake: Lake):
    tables = staged(lake, ("orders", 0, 1), ("orders", 2, 1), ("orders", 3, 1), ("lines", 4, 1), ("orders", 5, 1))
    lake.has(
        QUARANTINE, "_change_batch, _change_error", (0, "odd"), (1, "odd"), (3, "odd"), (2, "odd"), (3, "bad"),
        (4, "odd"), (5, _TOO_LATE), (5, f"odd; {_TOO_LATE}"),
    )  # fmt: skip
    assert tables._quarantined(QUARANTINE, ("orders",)) == ((2, 1), (3, 2))
    assert [tables._quarantined_up_to(QUARANTINE, batch) for batch in (0, 3, 4)] == [1, 5, 6]


# --- other commits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "ConcurrentAppendException", "MetadataChangedException", "ProtocolChangedException", "CommitFailedException",
        "ValidationException",
    ],
)  # fmt: skip
def test_another_commit_that_came_in_between_is_no_failure(lake: Lake, kind: str):
    tables, conflict = staged(lake), RuntimeError(f"{kind}: x")
    assert is_conflict(conflict)

    def refused(sql: str) -> Any:
        raise conflict

    lake.sql = refused  # type: ignore[method-assign]
    assert tables.delete(["orders"], 3) is False


def test_a_delete_that_fails_for_another_reason_fails(lake: Lake):
    tables = staged(lake)
    assert tables.delete(["orders"], 3) is True
    lake.sql = lambda sql: (_ for _ in ()).throw(PermissionError("no right"))  # type: ignore[method-assign]
    with pytest.raises(PermissionError):
        tables.delete(["orders"], 3)


@pytest.mark.parametrize("conflicts", [0, 4, 5])
def test_a_statement_is_tried_five_times_with_pauses_that_grow(monkeypatch: pytest.MonkeyPatch, conflicts: int):
    paused: list[float] = []
    left = [RuntimeError("ConcurrentAppendException") for _ in range(conflicts)]
    monkeypatch.setattr("reconcile_jobs.retention.tables.time.sleep", paused.append)

    def act() -> None:
        if left:
            raise left.pop()

    if conflicts < 5:
        patiently(act, "give way")
    else:
        with pytest.raises(Fault, match="give way"):
            patiently(act, "give way")
    assert paused == [1, 2, 3, 4][:conflicts]


# --- tombstones -------------------------------------------------------------------------------------------------------


OLD, YOUNG = 50, 150  # before and after the age


@pytest.mark.parametrize(
    ("young", "aged", "found"),
    [
        ("3/c", 7, ("2/~", 2)), ("3/c", 6, ("1/~", 1)), ("2/c", 7, ("1/~", 1)), (None, 7, ("4/~", 3)),
        ("1/a", 7, None), ("3/c", 2, None),
    ],
)  # fmt: skip
def test_the_horizon_is_the_last_old_tombstone_before_all_that_is_young(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, young: str | None, aged: int, found: tuple[str, int] | None
):
    lake.has(
        BASE, "_change_sequence, _deleted, _change_time, _change_batch",
        ("1/a", 1, OLD, 3), ("2/b", 1, OLD, 7), ("4/d", 1, OLD, 7), ("3/b", 0, OLD, 1), ("5/e", 1, OLD, 9),
        *([(young, 0, YOUNG, 2)] if young else []),
    )  # fmt: skip
    tables: Any = SimpleNamespace(appended_at=lambda *_: None, applied_before=lambda *_: aged)
    clock: Any = SimpleNamespace(now=lambda: 200_000)  # nanoseconds
    job = Tombstones(lake, tables, timedelta(microseconds=100), print, clock)  # type: ignore[arg-type]
    noted: list[Any] = []
    monkeypatch.setattr(tombstones, "create_table", lambda *_: None)
    monkeypatch.setattr(job, "_note", lambda of, *values: noted.append(values))
    of = _Model(ORDERS, Account(20, 20, 20, entry=5), BASE, LEDGER, {})
    result = TombstoneResult()
    job._propose(of, "", result, dry_run=False)
    assert result.waiting == ({"shop.orders": found[1]} if found else {})
    assert noted == ([("proposed", found[0], 21, 5)] if found else [])


def test_a_tombstone_without_a_time_is_young(lake: Lake):
    lake.has(BASE, "_change_sequence, _deleted, _change_time, _change_batch", ("2/b", 1, OLD, 3), ("1/a", 1, None, 3))
    tables: Any = SimpleNamespace(appended_at=lambda *_: None, applied_before=lambda *_: 7)
    clock: Any = SimpleNamespace(now=lambda: 200_000)
    result = TombstoneResult()
    of = _Model(ORDERS, Account(20, 20, 20), BASE, LEDGER, {})
    Tombstones(lake, tables, timedelta(microseconds=100), print, clock)._propose(of, "", result, dry_run=True)  # type: ignore[arg-type]
    assert result.waiting == {}


# --- an erasure -------------------------------------------------------------------------------------------------------


def erasure(lake: Lake, *rows: tuple[Any, ...]) -> ErasureTables:
    tables = ErasureTables.__new__(ErasureTables)
    tables.tables = staged(lake, *rows)
    tables.spark, tables.staging, tables._records = lake, STAGING, DATASTREAM  # type: ignore[assignment]
    tables.has = lambda table: table.sql in lake.columns  # type: ignore[method-assign]
    return tables


def test_an_erasure_knows_the_sources_of_its_objects_and_what_names_no_object(lake: Lake):
    tables = erasure(lake, ("orders", 1, 1), (None, 2, 1), (None, 7, 1), ("lines", 3, 1))
    assert (tables.sources(["orders"]), tables.sources(["stock"])) == ({"datastream"}, set())
    assert (tables.last_batch(), tables.unread_objects()) == (7, 2)
    lake.base.execute(f"INSERT INTO {STAGING.sql} VALUES (NULL, 'snapshot', '#snapshot of lines', NULL, 8, 1)")
    assert tables.sources(["lines"]) == {"datastream"}, "a snapshot beside a log is no other source of its object"
    assert erasure(lake).last_batch() == 0


def test_what_staging_says_of_a_snapshot_beside_a_log_counts_the_rows_that_are_left(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    tables = erasure(lake)
    monkeypatch.setattr("reconcile_jobs.erasure.tables._digest_of", lambda table: f"'digest of ' || {table}.record")
    cuts = [(object_, batch, f'{{"number":{batch},"object":"{object_}","rows":5,"key":["ü"]}}')
            for object_, batch in (("orders", 4), ("lines", 7), ("orders", 9))]  # fmt: skip
    rows = [(text, "snapshot", "#snapshot", batch) for _, batch, text in cuts]
    for row in (*rows, (cuts[0][2], "datastream", "#snapshot", 4), (cuts[0][2], "snapshot", "#cut", 4)):
        lake.base.execute(f"INSERT INTO {STAGING.sql} VALUES (?, ?, ?, NULL, ?, 1)", row)
    of_rows = [("#snapshot of orders", 4), ("#snapshot of orders", 4), ("#snapshot of lines", 7), ("orders", 9)]
    found = [Found(object_, batch, "d", left=Left("{}", True)) for object_, batch in of_rows]
    assert tables._cuts_beside_log(found) == {
        ("#snapshot", batch, f"digest of {text}", text.replace('"rows":5', f'"rows":{left}'), None, None)
        for (_, batch, text), left in zip(cuts[:2], (3, 4), strict=True)
    }
    assert tables._cuts_beside_log(found[3:]) == set()


def test_an_erasure_looks_at_records_and_at_rows_of_snapshots_and_counts_what_is_gone_of_both(lake: Lake):
    tables = erasure(lake)
    for object_, batch in (("orders", 3), ("#snapshot of orders", 4), ("#snapshot of lines", 4)):
        note = json.dumps({"erased_record": {"erasure": "e1", "object": object_}})
        row = (note, "erasure", "#erased", "o", batch, 1)
        lake.base.execute(f"INSERT INTO {STAGING.sql} VALUES (?, ?, ?, ?, ?, ?)", row)
    found = [(row.object, row.batch, row.records) for row in tables.notes(["orders"], ["e1"])]
    assert found == [("orders", 3, 1), ("#snapshot of orders", 4, 1)]


def test_what_erasures_left_is_counted_by_erasure_object_batch_and_origin(lake: Lake):
    tables = erasure(lake)
    note = json.dumps({"erased_record": {"erasure": "e1", "object": "orders"}})
    other = json.dumps({"erased_record": {"erasure": "e2", "object": "orders"}})
    of_lines = json.dumps({"erased_record": {"erasure": "e1", "object": "lines"}})
    for record, source, batch, at in (
        (note, "erasure", 4, 40), (note, "erasure", 4, 45), (other, "erasure", 3, 30), (of_lines, "erasure", 3, 30),
        (note, "datastream", 3, 30),
    ):  # fmt: skip
        row = (record, source, "#erased", "o", batch, at)
        lake.base.execute(f"INSERT INTO {STAGING.sql} VALUES (?, ?, ?, ?, ?, ?)", row)
    (found,) = tables.notes(["orders"], ["e1"])
    assert vars(found) == {
        "erasure": "e1", "object": "orders", "batch": 4, "origin": "o", "records": 2, "micros": 45,
    }  # fmt: skip
    assert [row.batch for row in tables.notes(["orders"], ["e2", "e1"])] == [3, 4]
    assert tables.notes(["orders"], []) == []


def test_differences_of_parity_are_found_by_their_models_and_keys(lake: Lake):
    tables, table = erasure(lake), TableName(("shop", "reconcile_parity_differences"))
    lake.has(
        table, "relation, key", ("shop.a", "7"), ("shop.a", "7"), ("shop.a", None), ("shop.a", "8"), ("shop.b", "7")
    )
    assert tables.differences(table, ["shop.a"], lambda key: key.startswith("7")) == ["7"]
    assert tables.differences(table, ["shop.c"], lambda key: True) == []


def test_marks_of_an_erasure_stand_behind_the_last_row_that_the_ledger_had(lake: Lake):
    tables = erasure(lake)

    @contextmanager
    def view(rows: Any, columns: Any) -> Iterator[str]:
        assert [column.split(" ")[0] for column in columns] == [
            "batch", "delivered", "quarantined", "micros", "base_batch",
        ]  # fmt: skip
        assert rows == [(4, 2, 1, 40, 9)]
        yield "marks"

    tables._view = view  # type: ignore[method-assign,assignment]
    tables.write_marks(AccountOfErasure("shop.reconcile_ledger", "shop.o", "it's", 9, 12, 70), "e1", [(4, 2, 1, 40, 9)])
    (insert,) = (sql for sql in lake.told if sql.startswith("INSERT"))
    assert insert == (
        "INSERT INTO `shop`.`reconcile_ledger` BY NAME SELECT 'shop.o' AS relation, 'it\\'s' AS object, "
        "'erasure' AS kind, batch AS first_batch, batch AS last_batch, delivered, quarantined, base_batch, "
        "'e1' AS invocation_id, greatest(current_timestamp(), timestamp_micros(71)) AS recorded_at, "
        "12L AS entry, timestamp_micros(micros) AS last_appended_at FROM marks"
    )


def test_base_tables_of_earlier_moments_are_those_of_other_schemas_that_say_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    tables = erasure(lake)
    properties = {f"`{name}`.`orders__base`": {"reconcile.as_of": "3"} for name in ("shop", "past")}
    properties["`lake`.`orders__base`"] = {}
    lake.columns |= {name: ["_change_batch"] for name in properties}
    known: Any = SimpleNamespace(properties=lambda spark, name: properties[name])
    monkeypatch.setattr("reconcile_jobs.erasure.tables.format_of", lambda spark, catalog: known)
    asked: list[str] = []
    tables._rows = lambda sql: asked.append(sql) or [("lake",), ("other",), ("past",), ("shop",)]  # type: ignore[method-assign,func-returns-value]
    assert tables.earlier_moments(TableName(("shop", "orders"))) == [TableName(("past", "orders__base"))]
    assert tables.earlier_moments(TableName(("ice", "shop", "orders"))) == []
    assert asked == ["SHOW SCHEMAS", "SHOW SCHEMAS IN `ice`"]
