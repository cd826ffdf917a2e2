"""What the jobs of change streams keep with their tables, in the form that is there, and what a later run may ask."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from reconcile_jobs.beginning import first_start
from reconcile_jobs.bigtable.job import _Beginning as OfBigtable
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.job import _Beginning as OfSpanner
from reconcile_jobs.staging import TableName
from reconcile_jobs.timestamps import as_text, nanoseconds

START = nanoseconds("2026-05-01T09:00:00.000001Z")
TEXT = "2026-05-01T09:00:00.000001000Z"
TABLE = TableName.parse("lake.changes")
SPANNER: dict[str, Any] = {
    "start": TEXT, "backfill": True, "backfilled": TEXT, "checkpoint": "file:/c", "appended": False,
}  # fmt: skip
BIGTABLE: dict[str, Any] = {"id": "a-b-c", "start": TEXT, "backfill": False, "appended": True}

spanner = OfSpanner(start=START, backfill=True, backfilled=TEXT, checkpoint="file:/c", appended=False)
bigtable = OfBigtable(start=START, backfill=False, appended=True)


class Table:
    """What a table keeps, and how often it was written."""

    name, last_batch = TABLE, 0

    def __init__(self, **kept: Any) -> None:
        self.texts, self.writes = {name: json.dumps(value) for name, value in kept.items()}, 0

    def kept(self, name: str) -> str | None:
        return self.texts.get(name)

    def keep(self, name: str, value: str) -> None:
        self.texts[name], self.writes = value, self.writes + 1


@pytest.mark.parametrize("form", [SPANNER, SPANNER | {"backfilled": None}, SPANNER | {"lost": True}])
def test_the_form_of_spanner_is_that_of_the_tables_that_are_there(form: dict[str, Any]):
    table: Any = Table(spanner=form)
    begun = OfSpanner.of(table)
    assert begun == replace(spanner, backfilled=form["backfilled"], lost="lost" in form)
    assert begun and begun.keep(table) is begun and table.writes == 0, "the table has it"
    other: Any = Table()
    begun.keep(other)
    assert json.loads(other.texts["spanner"]) == form
    replace(begun, appended=True).keep(table)
    assert json.loads(table.texts["spanner"]) == form | {"appended": True} and table.writes == 1


def test_the_form_of_bigtable_is_that_of_the_tables_that_are_there():
    table: Any = Table(bigtable=BIGTABLE)
    begun = OfBigtable.of(table)
    assert begun == replace(bigtable, id="a-b-c")
    other: Any = Table()
    begun.keep(other)
    assert json.loads(other.texts["bigtable"]) == BIGTABLE
    assert OfBigtable.of(Table()) is None  # type: ignore[arg-type]
    assert OfBigtable(start=START, backfill=False, appended=True).id != bigtable.id


@pytest.mark.parametrize("kept", [None, [], {}, {"start": "x"}, {"start": 7}, SPANNER | {"more": 1}, BIGTABLE])
def test_what_no_job_has_kept_is_said_to_be_so(kept: Any):
    table: Any = Table(spanner=kept)
    with pytest.raises(UsageError, match=r"^The property reconcile\.spanner of the staging table lake\.changes is '"):
        OfSpanner.of(table)


def test_a_table_with_batches_that_says_nothing_of_its_beginning_is_not_begun_anew():
    table: Any = Table()
    OfSpanner.refuse_without(table)
    table.last_batch = 3
    with pytest.raises(UsageError, match=r"^lake\.changes has had 3 batches, and says neither where it began \(its p"):
        OfSpanner.refuse_without(table)


@pytest.mark.parametrize("begun", [spanner, bigtable])
def test_a_beginning_is_not_another_one_later(begun: OfSpanner | OfBigtable):
    begun.refuse_other_beginning(TABLE, None, False)
    begun.refuse_other_beginning(TABLE, START, False)
    with pytest.raises(
        UsageError,
        match=rf"^lake\.changes began at {TEXT}, and later runs continue where the run before ended: remove --st",
    ):
        begun.refuse_other_beginning(TABLE, START + 1, True)
    with pytest.raises(
        UsageError, match=r"^lake\.changes began without --backfill: remove --backfill, or name a new t"
    ):
        begun.refuse_other_beginning(TABLE, START, True)
    replace(begun, lost=True).refuse_other_beginning(TABLE, START + 1, False)


def test_without_its_checkpoint_a_table_goes_on_after_its_last_cut():
    begun = spanner.without_checkpoint(TABLE, START + 10, START + 9)
    assert begun == replace(spanner, start=START + 10, backfill=False, lost=True)
    assert spanner.without_checkpoint(TABLE, None, None) == replace(spanner, lost=True), "nothing was appended"
    with pytest.raises(
        UsageError, match=r"the records between this time and --start would be missing: remove --start\.$"
    ):
        spanner.without_checkpoint(TABLE, START + 11, START + 9)
    begun.without_checkpoint(TABLE, START + 99, START + 9)
    with pytest.raises(UsageError, match="has the time up to which it is complete: name a new table with --staging"):
        replace(spanner, appended=True).without_checkpoint(TABLE, None, None)


def test_a_start_is_not_later_than_the_end():
    spanner.refuse_late(START, False, "now")
    with pytest.raises(
        UsageError, match=rf"^--start is in the future: the time now is now, and the start is {TEXT}\.$"
    ):
        spanner.refuse_late(START - 1, False, "now")
    with pytest.raises(UsageError, match=r"^--end is before --start: the time now is now"):
        spanner.refuse_late(START - 1, True, "now")


def test_a_table_without_a_batch_begins_as_asked_or_where_it_was_first_tried_or_now():
    said: list[str] = []
    assert first_start(None, None, 7, TABLE, said.append) == 7
    assert first_start(spanner, 8, 7, TABLE, said.append) == 8 and not said
    assert first_start(spanner, None, 7, TABLE, said.append) == START
    assert said == [f"lake.changes begins at {as_text(START)}, the start of the first attempt"]
