"""Which snapshot of a table without a log may follow the one before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.process.errors import DataError, UsageError
from reconcile_jobs.snapshot_differences import (
    Job,
    has_no_key,
    key_of,
    moment_of,
    refuse_empty,
    refuse_keys,
    refuse_long,
    refuse_other,
)
from reconcile_jobs.staging import TableName

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


RATES = TableName(("lake", "rates"))


def job(**said: Any) -> Job:
    return Job(RATES, TableName(("lake", "changes")), **said)


def test_a_key_that_identifies_no_row_is_refused():
    refuse_keys(job(), ["id"], 0, 1, "{}")
    refuse_keys(job(), ["id"], 0, 0, None)  # a snapshot without rows
    with pytest.raises(DataError, match=r"^1 rows of lake\.rates have NULL in the key id, no: name other columns"):
        refuse_keys(job(), ["id", "no"], 1, 1, None)
    with pytest.raises(DataError, match=r"^id does not identify a row of lake\.rates: 2 rows have {\"id\":7}\. Give"):
        refuse_keys(job(), ["id"], 0, 2, '{"id":7}')


def test_a_row_may_have_as_many_bytes_as_the_longest_and_no_more():
    refuse_long(job(longest_record=100), 100, "{}")
    with pytest.raises(DataError, match=r"^The row {} of lake\.rates has 101 bytes: raise --longest-record, up to 1g"):
        refuse_long(job(longest_record=100), 101, "{}")
    refuse_long(job(), 32 * 2**20, "{}")
    with pytest.raises(DataError):
        refuse_long(job(), 32 * 2**20 + 1, "{}")


def test_an_empty_snapshot_is_refused_unless_somebody_has_said_that_it_is_right():
    refuse_empty(job(), "rates", 1)
    refuse_empty(job(allow_empty=True), "rates", 0)
    with pytest.raises(DataError, match=r"has no rows, which would delete every row of rates; if the source's table"):
        refuse_empty(job(), "rates", 0)


def test_a_row_without_any_part_of_its_key_has_none():
    assert has_no_key(["id", "a`b"]) == "`id` is null or `a``b` is null"


def test_the_key_is_spelt_as_the_table_spells_it():
    rows: Any = SimpleNamespace(columns=["Id", "NO", "name"])
    assert key_of(rows, ("no", "ID"), RATES) == ["NO", "Id"]
    with pytest.raises(UsageError, match=r"^--key: lake\.rates has no column a, b; it has Id, NO, name\.$"):
        key_of(rows, ("a", "id", "b"), RATES)


@pytest.mark.parametrize(
    ("properties", "moment"),
    [
        ({"taken_at": "2026-05-01T09:00:00.5Z"}, "2026-05-01T09:00:00.500000000Z"),
        ({"taken_at": "2026-05-01T09:00:00Z", "position": "7", "position_kind": "scn"},
         "2026-05-01T09:00:00.000000000Z"),
        ({"taken_at": "2026-05-01T09:00:00Z", "position": "2026-05-01T08:00:00Z", "position_kind": "read_timestamp"},
         "2026-05-01T08:00:00.000000000Z"),
        ({"taken_at": "1970-01-01T00:00:00Z"}, "1970-01-01T00:00:00.000000000Z"),
        ({"taken_at": "2262-04-11T23:47:16.854775807Z"}, "2262-04-11T23:47:16.854775807Z"),
        ({"taken_at": "2262-04-11T23:47:16.854775808Z"}, None),
        ({"taken_at": "1969-12-31T23:59:59.999999999Z"}, None),
    ],
)  # fmt: skip
def test_a_snapshot_is_of_the_moment_that_its_table_says_between_1970_and_2262(
    properties: dict[str, str], moment: str | None
):
    said = {f"reconcile.snapshot.{name}": value for name, value in properties.items()}
    if moment is None:
        with pytest.raises(UsageError, match="the time of a snapshot must be between 1970 and 2262"):
            moment_of(job(), said)
    else:
        assert moment_of(job(), said) == moment
    assert moment_of(job(at="2026-05-02T00:00:00Z"), said) == "2026-05-02T00:00:00.000000000Z", "--at goes before it"


def test_a_snapshot_without_a_moment_is_refused():
    for said in ({}, {"reconcile.snapshot.taken_at": "yesterday"}):
        with pytest.raises(UsageError, match=r"^lake\.rates does not have the time when it was taken: give the time w"):
            moment_of(job(), said)
