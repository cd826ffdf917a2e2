"""Snapshots beside a log: which of two is the later one, and which rows have a key."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from reconcile_jobs.log_snapshots import _Run, _Seen
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshot_differences import has_no_key


@pytest.mark.parametrize(
    ("earlier", "later", "contains"),
    [
        ("90:100:", "90:100:", True),
        ("90:100:", "95:99:", False),  # it ends earlier
        ("90:100:", "99:120:99", False),  # a transaction that the earlier one sees is open
        ("90:100:95,99", "99:120:99", True),  # and was open then
        # An end is the first id that is not seen: the transaction of this id may be open later.
        ("90:100:", "100:120:100", True),
        ("90:100:", "100:100:", True),
        ("90:100:", "95:101:95", False),
    ],
)
def test_a_snapshot_is_later_if_it_sees_every_transaction_that_the_earlier_one_sees(
    earlier: str, later: str, contains: bool
) -> None:
    assert _Seen.of(later).contains(_Seen.of(earlier)) == contains
    job: Any = type("Job", (), {"staging": "lake.shop_changes"})
    run = _Run(None, job, Caller())  # type: ignore[arg-type]
    if contains:
        run._refuse_earlier({"position": earlier}, later, "shop_orders")
        return
    with pytest.raises(UsageError, match=f"shop_orders at {later} does not contain the one at {earlier} that lake"):
        run._refuse_earlier({"position": earlier}, later, "shop_orders")


def test_a_row_has_no_key_if_any_part_of_it_is_null() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table kept (id, `line no`)")
        rows = [(1, 2), (1, None), (None, 2), (None, None)]
        database.executemany("insert into kept values (?, ?)", rows)
        found = database.execute(f"select * from kept where {has_no_key(['id', 'line no'])}")
        assert found.fetchall() == rows[1:]
