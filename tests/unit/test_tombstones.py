"""Which tombstones `maintain.py` deletes, by what it asks. That no row comes back is in tests/fold/test_horizons.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import maintain
import pytest
from reconcile_jobs.process.errors import Fault
from reconcile_jobs.retention import tombstones
from reconcile_jobs.retention.plan import NOT_ENDED, Account, Reader
from reconcile_jobs.retention.tables import _TOO_LATE
from reconcile_jobs.retention.tombstones import Horizon, TombstoneResult, Tombstones, horizon_to_delete, why_kept
from refusals import thing
from shapes import Life

ORDERS = Reader("lake.changes", "shop.reconcile_ledger", "shop.orders", "current_state", ("shop.orders",))
VIEW = Reader("lake.changes", "shop.reconcile_ledger", "shop.now", "current_view", ("shop.orders",))
NOW, DAY = 1_800_000_000_000_000, 86_400_000_000  # microseconds


def test_the_job_knows_a_late_record_by_the_reason_that_runs_give():
    assert Life(thing()).project.macros.reason_of_horizon() == _TOO_LATE


@pytest.mark.parametrize(
    ("said", "account", "why"),
    [
        ({"materialized": "history"}, Account(9, 9, 9), "a history, in which each delete is the end of a version"),
        ({"objects": ()}, Account(9, 9, 9), "without a source macro, so its objects are not known"),
        ({}, None, "never run"),
        ({}, Account(9, 9, 9, problem="it is odd"), "it is odd"),
        ({}, Account(3, 3, 5), NOT_ENDED),
        ({}, Account(7, 6, 2), "its base table was restored; run the model"),
        ({}, Account(9, 9, 9, waits_for=10), None),
    ],
)
def test_what_keeps_all_tombstones_is_named(said: dict[str, Any], account: Account | None, why: str | None):
    assert why_kept(Reader(**{**ORDERS.__dict__, **said}), account) == why


@pytest.mark.parametrize(
    ("applied", "oldest_batch", "first_batch"),
    [
        (20, 11, 11), (20, 10, 4), (20, None, 21), (20, 30, 21), (19, None, 11), (3, 4, 4), (20, 3, None),
        (2, None, None),
    ],
)  # fmt: skip
def test_tombstones_go_once_nothing_of_before_the_horizon_can_be_applied_again(
    applied: int, oldest_batch: int | None, first_batch: int | None
):
    taken = [Horizon(11, "0/0B"), Horizon(4, "0/0A"), Horizon(21, "0/0C")]
    found = horizon_to_delete(taken, applied, oldest_batch)
    assert (found and found.first_batch) == first_batch


class Session:
    """A Spark session that notes what it is told, and answers by a part of what is asked."""

    def __init__(self, columns: tuple[str, ...], answers: dict[str, Any]) -> None:
        self.columns, self.answers, self.told = columns, answers, []  # type: ignore[var-annotated]
        self.meanwhile: Callable[[str], None] = lambda sql: None

    def table(self, name: str) -> Any:
        return SimpleNamespace(columns=self.columns)

    def sql(self, sql: str) -> Any:
        self.told.append(sql)
        self.meanwhile(sql)
        for part, row in self.answers.items():
            if part in sql and sql.startswith("SELECT"):
                rows = row if isinstance(row, list) else [row]
                return SimpleNamespace(collect=lambda rows=rows: rows)
        assert not sql.startswith("SELECT"), sql
        return None

    def wrote(self) -> list[str]:
        return [re.sub("`", "", sql) for sql in self.told if not sql.startswith("SELECT")]


DECLARED = {"staging": "a", "sources": "b", "sequence": "c", "columns": "d"}
SAID = {"reconcile.declaration": json.dumps(DECLARED)}


def known(kind: str, first_batch: int, sequence: str) -> Any:
    return SimpleNamespace(kind=kind, first_batch=first_batch, sequence=sequence)


class Night:
    """A call of the job for one model. `answers`: those of the session; the others are of tables."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **said: Any) -> None:
        answers = {
            "FROM `shop`.`reconcile_horizons`": said.get("horizons", []),
            "_change_batch >= ": SimpleNamespace(number=said.get("late", 0)),
            "SELECT count(*)": SimpleNamespace(number=said.get("number", 3)),
            "SELECT max(regexp_replace(": SimpleNamespace(sequence=said.get("place"), number=said.get("waiting", 0)),
        }
        self.session = Session(said.get("columns", ("id", "_deleted")), answers)
        self.asked_before, self.said = [], []  # type: ignore[var-annotated]
        self.tables: Any = SimpleNamespace(
            readers=lambda: [VIEW, ORDERS], properties=lambda: {"purged.a": "3", "purged.b": "8"},
            accounts=lambda readers, purged: [(reader, self.account) for reader in readers if purged == 8],
            has=lambda table: said.get("has_horizons", True), first_batch=lambda reader: said.get("oldest_batch"),
            appended_at=lambda objects, batch: said.get("appended_at") if batch else None,
            applied_before=self.applied_before,
            said_of_base=lambda base: said.get("said", SAID), rebuilt=lambda reader: 4,
            has_later_range=lambda reader, batch: said.get("is_later", True),
        )  # fmt: skip
        self.account = said.get("account", Account(20, 20, 20, entry=5))
        monkeypatch.setattr(tombstones, "create_table", lambda *given: None)
        monkeypatch.setattr("reconcile_jobs.retention.tables.time.sleep", lambda seconds: None)

    def applied_before(self, reader: Reader, micros: int) -> int:
        self.asked_before.append(micros)
        return 7

    def run(self, dry_run: bool = False) -> TombstoneResult:
        clock: Any = SimpleNamespace(now=lambda: NOW * 1000)
        session: Any = self.session
        of = Tombstones(session, self.tables, timedelta(days=90), self.said.append, clock)
        return of.run(dry_run)


TAKEN = [known("taken", 11, "0/0B"), known("proposed", 9, "0/0B")]


def test_the_ledger_hears_of_deleted_tombstones_before_they_are_gone(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN)
    result = night.run()
    assert (result.deleted, result.kept) == ({"shop.orders__base": 3}, {}), "a view has no tombstones"
    note, said, delete = night.session.wrote()
    assert "'deleted' AS kind, '0/0B' AS sequence, 11L AS first_batch, 'a b c' AS declaration, 7L AS entry" in note
    assert said == "ALTER TABLE shop.orders__base SET TBLPROPERTIES ('reconcile.horizon' = '11 0/0B')"
    assert delete == (
        "DELETE FROM shop.orders__base WHERE _deleted AND _change_sequence <= '0/0B' AND _change_batch < 11 "
        "AND _change_batch < 20"
    )
    assert night.said == ["shop.orders__base: 3 tombstones deleted"]


def test_a_base_table_says_a_horizon_once(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN, said={**SAID, "reconcile.horizon": "11 0/0B"})
    night.run()
    assert [sql.split(" ")[0] for sql in night.session.wrote()] == ["INSERT", "DELETE"]


@pytest.mark.parametrize(
    ("columns", "deleted"),
    [
        (("id", "_change_deleted"), "_change_deleted"),
        (("id", "_deleted", "_change_row_sequence"), "_deleted AND _change_row_sequence = _change_sequence"),
    ],
)
def test_a_tombstone_is_a_row_of_which_only_its_delete_is_left(
    monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...], deleted: str
):
    night = Night(monkeypatch, horizons=TAKEN, columns=columns)
    night.run()
    assert night.session.wrote()[-1].startswith(f"DELETE FROM shop.orders__base WHERE {deleted} AND _change_seq")


def test_a_late_record_that_was_applied_is_named(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN, late=2)
    assert night.run().deleted == {"shop.orders__base": 3}
    assert night.said[0] == (
        "shop.orders__base: 2 rows of changes that came too late: a run wrote them that had begun before another one "
        "took the horizon, and a rebuild would quarantine them"
    )


def test_horizons_of_the_same_order_count_and_proposals_since_the_last_rebuild(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN)
    night.run()
    (asked,) = [sql for sql in night.session.told if "reconcile_horizons" in sql and sql.startswith("SELECT")]
    assert asked.endswith(
        "WHERE relation = 'shop.orders' AND declaration = 'a b c' "
        "AND (kind = 'taken' OR kind = 'proposed' AND entry >= 4)"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "built by an earlier version of this package; rebuild it"),
        (
            {**SAID, "reconcile.snapshot_applied": "2 0"},
            "a snapshot beside the log gives records another place in the order",
        ),
    ],
)
def test_a_base_table_may_say_why_its_tombstones_stay(monkeypatch: pytest.MonkeyPatch, said: dict[str, str], why: str):
    assert Night(monkeypatch, horizons=TAKEN, said=said).run().kept == {"shop.orders": why}


@pytest.mark.parametrize("said", [{"oldest_batch": 10}, {"number": 0}, {"horizons": TAKEN[1:]}, {"is_later": False}])
def test_nothing_is_deleted_before_its_time(monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]):
    night = Night(monkeypatch, **{"horizons": TAKEN, **said})
    assert (night.run().deleted, night.session.wrote()) == ({}, [])


def test_cells_keep_their_tombstones(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN, columns=("row_key", "cell_time", "_deleted"))
    assert night.run().kept == {"shop.orders": "cells, of which deletes name ranges"}


@pytest.mark.parametrize(
    ("account", "appended_at", "before"),
    [
        (Account(20, 20, 20), None, NOW - 90 * DAY),
        (Account(20, 20, 20, waits_for=21), NOW - 9 * DAY, NOW - 99 * DAY),
        (Account(20, 20, 20, waits_for=21), NOW + 9 * DAY, NOW - 90 * DAY),
    ],
    ids=["up to date", "slow", "a clock that is ahead"],
)
def test_no_record_is_late_because_its_model_is(
    monkeypatch: pytest.MonkeyPatch, account: Account, appended_at: int | None, before: int
):
    night = Night(monkeypatch, place="0/0C", waiting=4, account=account, appended_at=appended_at)
    assert night.run().waiting == {"shop.orders": 4}
    assert night.asked_before == [before]
    (asked,) = [sql for sql in night.session.told if "max(regexp_replace(" in sql]
    assert asked.count(f"_change_time < timestamp_micros({before})") == 2 and "_change_batch <= 7" in asked
    (note,) = night.session.wrote()
    assert "'proposed' AS kind, '0/0C' AS sequence, 21L AS first_batch, 'a b c' AS declaration, 0L AS entry" in note


@pytest.mark.parametrize("place", [None, "0/0A", "0/0B"])
def test_a_horizon_is_proposed_only_if_it_is_farther_than_all_others(
    monkeypatch: pytest.MonkeyPatch, place: str | None
):
    night = Night(monkeypatch, horizons=TAKEN, number=0, place=place)
    assert (night.run().waiting, night.session.wrote()) == ({}, [])


def test_a_horizon_that_a_run_once_took_is_known_though_a_nearer_one_was_noted_since(monkeypatch: pytest.MonkeyPatch):
    horizons = [known("taken", 11, "0/0A"), known("proposed", 9, "0/0D"), known("proposed", 9, "0/0B")]
    night = Night(monkeypatch, horizons=horizons, number=0, place="0/0C")
    assert (night.run().waiting, night.session.wrote()) == ({}, [])


def test_before_there_is_a_table_of_horizons_none_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN, has_horizons=False, place="0/0A", waiting=4)
    result = night.run()
    assert (result.deleted, result.waiting) == ({}, {"shop.orders": 4})
    assert not [sql for sql in night.session.told if "reconcile_horizons" in sql and sql.startswith("SELECT")]


def test_a_dry_run_says_the_same_and_writes_nothing(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN, place="0/0C", waiting=4)
    result = night.run(dry_run=True)
    assert (result.deleted, result.waiting, night.session.wrote()) == ({"shop.orders__base": 3}, {"shop.orders": 4}, [])
    assert night.said == ["shop.orders__base: 3 tombstones would be deleted"]


def test_where_others_write_each_time_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    night = Night(monkeypatch, horizons=TAKEN)

    def conflict(sql: str) -> None:
        if sql.startswith("DELETE"):
            raise RuntimeError("ConcurrentAppendException")

    night.session.meanwhile = conflict
    with pytest.raises(Fault, match=r"Other processes wrote to shop.orders__base each time that tombstones were to be"):
        night.run()


def test_the_command_says_what_waits_and_what_stays():
    said = maintain.sentences_of_tombstones(
        TombstoneResult({"shop.orders__base": 3}, {"shop.lines": 1}, {"shop.past": "a history"})
    )
    assert said == [
        "shop.lines: 1 tombstone can be deleted once its next run with records has taken a new horizon, and staging is "
        "purged up to there.",
        "1 model keeps all tombstones: shop.past (a history).",
    ]
