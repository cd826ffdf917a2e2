"""MySQL's zero dates are quarantined with what helps, or become NULL where their column says so, and are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from pyspark.sql import SparkSession

NULL = {"config": {"meta": {"zero_date": "null"}}}
COLUMNS: dict[str, Any] = {
    "id": "bigint",
    "born": {"data_type": "date", **NULL},
    "seen": {"data_type": "timestamp", **NULL},
    "closed": {"data_type": "timestamp_ntz", **NULL},
    "met": "date",
    "name": "string",
    "n": "tinyint",
}
# How JSON files have one is not known: these are all the forms that they have other dates and moments in.
ZEROS = [
    "0000-00-00", "0000-00-00T00:00:00Z", "0000-00-00 00:00:00", "0000-00-00T00:00:00.000000Z",
    "0000-00-00 00:00:00.000", "0000-00-00T00:00", "0000-00-00 00:00:00+00:00",
]  # fmt: skip
PARTIAL = ["2024-00-00", "2024-05-00", "0000-00-05", "0000-00-00T00:00:01Z", "0000-00-00 00:00:00+01:00"]
TEMPORAL = ("born", "seen", "closed")


def change(id_: int, kind: str = "INSERT", **fields: Any) -> str:
    return event("mysql", {**dict.fromkeys(COLUMNS), "id": id_, **fields}, kind, metadata={"log_position": 1000 + id_})


class Shop:
    """A `current_state` and a `history` of one table, run after each batch that is staged."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.batch = memory, 0
        self.project: MemoryProject = memory.project("zeros")
        self.project.source("zeros_lake", "changes")
        for name, materialized in (("people", "current_state"), ("lives", "history")):
            self.project.model(
                name,
                f"{{{{ config(materialized='{materialized}', unique_key='id') }}}}\n"
                "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='people') }}",
                COLUMNS,
            )

    def run(self, *records: str, full_refresh: bool = False) -> list[str]:
        """Return what the runs of both models say."""
        if records:
            self.batch += 1
            self.memory.stage("zeros_lake.changes", [Staged(record, "people", self.batch) for record in records])
        said = self.project.run("people", "lives", full_refresh=full_refresh)
        return [str(said["people"]), str(said["lives"])]

    def ledger(self, kind: str, last_batch: int) -> set[int]:
        rows = self.memory.table("zeros.reconcile_ledger").where(f"kind = '{kind}' and last_batch = {last_batch}")
        return {row.zero_dates for row in rows.collect()}


@pytest.fixture
def shop(spark: SparkSession) -> Iterator[Shop]:
    with Memory(spark) as memory:
        yield Shop(memory)


def test_they_are_null_where_the_column_says_so_and_each_run_says_how_many(shop: Shop) -> None:
    first = [change(n, born=zero, seen=zero, closed=zero, name=zero) for n, zero in enumerate(ZEROS)]
    of_all = f"zero dates that became NULL: {len(ZEROS)} of born, {len(ZEROS)} of closed, {len(ZEROS)} of seen"
    assert [said.split("; ", 1)[1] for said in shop.run(*first)] == [of_all] * 2
    rows = {row.id: row for row in shop.memory.rows("zeros.people")}
    assert {tuple(row[name] for name in TEMPORAL) for row in rows.values()} == {(None, None, None)}
    assert [rows[n].name for n in range(len(ZEROS))] == ZEROS
    assert shop.ledger("rebuild", 1) == {3 * len(ZEROS)}

    # A record in quarantine is not counted, an update and a copy are; nor is what came as NULL.
    update = change(1, "UPDATE-INSERT", born=ZEROS[0], seen="2026-11-21T11:33:12Z", closed=None)
    said = shop.run(update, update, change(50, born=ZEROS[0], n=300), change(51, born="2026-11-21"))
    assert [text.split("; ", 1)[1] for text in said] == ["zero dates that became NULL: 2 of born"] * 2
    assert shop.ledger("apply", 2) == {2}
    assert [text for text in shop.run(change(52, born=None)) if "zero dates" in text] == []
    assert shop.ledger("apply", 3) == {0}

    again = shop.run(full_refresh=True)
    assert [text.split("; ", 1)[1] for text in again] == [of_all.replace("7 of born", "9 of born")] * 2
    assert shop.project.failing("ledger_balances", "people") == []


def test_what_is_no_zero_date_or_not_declared_is_quarantined_with_what_helps(shop: Shop) -> None:
    partial = [change(n, **{name: text}) for n, (text, name) in enumerate((t, c) for t in PARTIAL for c in TEMPORAL)]
    said = shop.run(change(99, met="0000-00-00"), *partial)
    assert not [text for text in said if "zero dates" in text]
    reasons = [row._change_error for row in shop.memory.rows("zeros.people__quarantine")]
    assert "met: '0000-00-00' is not exactly a date; it is a zero date: declare string to keep it, or " \
        "`meta: {zero_date: 'null'}` to make it NULL" in reasons  # fmt: skip
    assert len(reasons) == 1 + len(partial)
    assert [text for text in reasons if not text.startswith("met: ") and "; declare " not in text] == []


def test_reasons_are_counted_without_the_values_that_their_cures_quote(shop: Shop) -> None:
    shop.run(
        *(change(n, n=value) for n, value in enumerate((1.5, 100.25, 12.345))),
        *(change(10 + n, met=zero) for n, zero in enumerate(ZEROS)),
    )
    shop.project.run("reconcile_quarantine")
    counted = {
        row.reason.split(":")[0]: row.records
        for row in shop.memory.table("zeros.reconcile_quarantine").where("relation = 'zeros.people'").collect()
    }
    assert counted == {"n": 3, "met": len(ZEROS)}


def test_a_ledger_of_before_they_were_counted_is_gone_on_with(shop: Shop) -> None:
    shop.run(change(1, born="0000-00-00"))
    shop.memory.keep("zeros.reconcile_ledger", shop.memory.table("zeros.reconcile_ledger").drop("zero_dates"))
    shop.run(change(2, born="0000-00-00"))
    assert (shop.ledger("rebuild", 1), shop.ledger("apply", 2)) == ({None}, {1})
