"""Two jobs that make one staging table at once: the second goes on with what the first has made. Its properties."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs import staging
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.staging import Staging, TableName

RACE = "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] The associated location is not empty. SQLSTATE: 42601"


def table(
    problem: Exception, there: list[bool], monkeypatch: pytest.MonkeyPatch, made: list[str] | None = None
) -> Staging:
    """Return a staging table whose making fails; `there`: whether it is there when it is looked for again.

    `made`: gets the statement that makes it once what a killed job left is gone; None: that stays.
    """
    cleared: list[Any] = []

    def clear(spark: Any, *name: str) -> bool:
        cleared.append(name)
        return made is not None

    def refuse(statement: str) -> None:
        if statement.startswith("CREATE TABLE"):
            if not cleared:
                raise problem
            assert made is not None
            made.append(statement)

    catalog = SimpleNamespace(databaseExists=lambda name: True, tableExists=lambda name: there.pop(0))
    opened = Staging.__new__(Staging)
    spark: Any = SimpleNamespace(sql=refuse, catalog=catalog)
    form: Any = SimpleNamespace(name="delta", staging_properties={}, append_properties={}, go_on_making=clear)
    opened._spark, opened._format, opened._job, opened.name = spark, form, "a job", TableName.parse("lake.changes")
    monkeypatch.setattr(staging, "time", SimpleNamespace(sleep=lambda seconds: None))
    return opened


@pytest.mark.parametrize(
    "said",
    [
        RACE, "ProtocolChangedException: x", "MetadataChangedException: x", "ConcurrentWriteException: x",
        "[TABLE_OR_VIEW_ALREADY_EXISTS] x", "org.apache.iceberg.exceptions.AlreadyExistsException: x",
    ],
)  # fmt: skip
def test_what_another_job_makes_at_the_same_moment_is_waited_for(said: str, monkeypatch: pytest.MonkeyPatch):
    table(RuntimeError(said), [False, False, True], monkeypatch)._create()


def test_a_table_that_does_not_come_within_20_seconds_is_a_fault_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    opened, slept = table(RuntimeError(RACE), [False] * 20, monkeypatch), list[float]()
    monkeypatch.setattr(staging, "time", SimpleNamespace(sleep=slept.append))
    with pytest.raises(Fault, match=r"creating the staging table lake.changes, or was killed.*run the same"):
        opened._create()
    assert sum(slept) == 20


def test_what_a_killed_job_left_in_another_catalog_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    """It is not known there where the table lies."""
    opened = table(RuntimeError(RACE), [False] * 20, monkeypatch, [])
    opened.name = TableName.parse("other.lake.changes")
    with pytest.raises(Fault, match=r"creating the staging table other\.lake\.changes"):
        opened._create()


def test_what_a_job_left_that_was_killed_while_it_made_the_table_is_made_anew(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    table(RuntimeError(RACE), [False] * staging._PATIENCE, monkeypatch, made)._create()
    assert len(made) == 1 and made[0].startswith("CREATE TABLE IF NOT EXISTS `lake`.`changes`")


def test_what_else_spark_refuses_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RuntimeError, match="PARSE_SYNTAX_ERROR"):
        table(RuntimeError("[PARSE_SYNTAX_ERROR] x"), [], monkeypatch)._create()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reconcile.last_batch", "7x"), ("reconcile.append", "q/one/x"), ("reconcile.checkpoint", "q"),
        ("reconcile.append_batch", ""), ("reconcile.snapshot_append", "7"), ("reconcile.snapshot_append_batch", "-1"),
    ],
)  # fmt: skip
def test_a_property_that_no_job_writes_so_is_named(name: str, text: str):
    opened = Staging.__new__(Staging)
    opened.name, opened._properties = TableName.parse("lake.changes"), {name: text}
    with pytest.raises(UsageError, match=rf"^The property {name} of the staging table lake.changes is '{text}'"):
        opened._refuse_unknown_properties()


def test_properties_as_jobs_write_them_are_taken():
    opened = Staging.__new__(Staging)
    opened._properties = {
        "reconcile.last_batch": "7", "reconcile.append": "q/6/abc was empty", "reconcile.checkpoint": "q file:/a b",
        "reconcile.append_batch": "7", "reconcile.snapshot_append": "q/0/abc", "reconcile.snapshot_append_batch": "5",
        "reconcile.job": "anything", "owner": "shop",
    }  # fmt: skip
    opened._refuse_unknown_properties()


def test_a_table_that_is_no_staging_table_is_told_what_it_lacks_and_what_it_has() -> None:
    form = dict(staging._COLUMNS)
    assert staging._differences({"id": "bigint", **{f"c{n}": "string" for n in range(9)}, "batch": "bigint"}) == (
        "lacks record string, source string, object string, origin string, appended_at timestamp; it has columns that "
        "no staging table has (id, c0, c1, c2, c3, c4, c5, c6 and 2 more)"
    )
    changed = staging._differences(form | {"appended_at": "timestamp_ntz"})
    assert changed == "has appended_at as timestamp_ntz in place of timestamp"
    del form["origin"]
    assert staging._differences(form) == "lacks origin string"


def test_a_long_property_that_no_job_has_written_is_shown_in_part() -> None:
    said = staging.changed_by_hand(TableName.parse("lake.changes"), "reconcile.append", "x" * 81)
    assert f"is '{'x' * 80}', which no job has written" in said
