"""Which snapshot of a table without a log may follow the one before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshot_differences import refuse_other

KNOWN: dict[str, Any] = {
    "moment": "2026-11-21T11:33:13.215524Z", "key": ["id"], "columns": {"id": "bigint", "name": "string"},
}  # fmt: skip
LATER = "2026-11-21T11:33:13.215525Z"


def follow(allow_new_columns: bool = False, **said: Any) -> None:
    """Let a snapshot follow the known one, a microsecond later; `said`: what is otherwise of it."""
    job: Any = SimpleNamespace(staging="lake.rates", allow_new_columns=allow_new_columns)
    new = {**KNOWN, "moment": LATER, **said}
    refuse_other(
        job, "rates", KNOWN["moment"], KNOWN["key"], KNOWN["columns"], new["moment"], new["key"], new["columns"]
    )


@pytest.mark.parametrize("moment", [KNOWN["moment"], "2026-11-21T11:33:13.215523Z"], ids=["same", "earlier"])
def test_a_snapshot_of_the_same_moment_or_an_earlier_one_is_refused(moment: str):
    with pytest.raises(UsageError, match=r"already has one of .*: stage snapshots in the order in which they were"):
        follow(moment=moment)


@pytest.mark.parametrize("key", [["name"], ["id", "name"], []])
def test_a_snapshot_with_another_key_is_refused(key: list[str]):
    with pytest.raises(UsageError, match=r"The key of rates in lake.rates is id, and not"):
        follow(key=key)


def test_a_snapshot_that_lacks_a_column_is_refused_whatever_is_allowed():
    with pytest.raises(UsageError, match=r"lacks the column name, which lake.rates has"):
        follow(allow_new_columns=True, columns={"id": "bigint"})


def test_new_columns_and_other_types_are_refused_unless_they_are_allowed():
    other = {"id": "int", "name": "string", "rate": "double"}
    with pytest.raises(UsageError, match=r"has new columns: rate and other types than before: id bigint. Give --allow"):
        follow(columns=other)
    follow(allow_new_columns=True, columns=other)


def test_a_later_snapshot_of_the_same_columns_follows():
    follow()
