"""The laws of cells, whose visibility follows their own timestamps and deletions of ranges: against a plain fold."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from cells import (
    COLUMNS,
    KEY,
    Cells,
    CellVersions,
    Entry,
    data_change,
    delete_from_column,
    entries_of,
    invented,
    set_cell,
    visible,
)
from file_formats import file_format
from laws import LawBroken, check_same
from projects import package_with_planted_bug, with_planted_bug
from pyspark.sql import SparkSession
from tables import restore, versions

HISTORIES = 250


class TwoDeliveries:
    """The same data changes in three batches, and all once more; and backwards in two other ones."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        once = invented(HISTORIES, seed=1, split=3)
        again = [replace(entry, batch=4) for entry in once]
        self.one = Cells(spark, root / "one", "cells_one", [*once, *again])
        self.other = Cells(spark, root / "other", "cells_other", invented(HISTORIES, seed=1, split=2, backwards=True))


@pytest.fixture(scope="module")
def deliveries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TwoDeliveries:
    deliveries = TwoDeliveries(spark, tmp_path_factory.mktemp("deliveries"))
    deliveries.one.run(1)
    deliveries.one.check()
    deliveries.one.run(3)
    deliveries.one.check()
    return deliveries


def test_the_histories_have_what_matters(deliveries: TwoDeliveries) -> None:
    """Cells that are hidden, visible again after a deletion, and deleted before they came."""
    told = deliveries.one.upto(3)
    shown = visible(told)
    cells = {entry.cell for entry in told if entry.cell and not entry.bad}
    assert len(cells - shown.keys()) > HISTORIES // 4
    assert len(shown) > HISTORIES
    assert sum(entry.bad for entry in told) > HISTORIES // 10


@pytest.mark.matrix
def test_another_order_and_another_split_give_the_same_cells(deliveries: TwoDeliveries) -> None:
    one, other = deliveries.one, deliveries.other
    other.run(1)
    other.check()
    other.run(2)
    other.check()
    check_same(one.base(), other.base(), "two deliveries", apart_from=["_change_batch"])
    assert one.live() == other.live()
    assert {found[:6] for found in one.known_ranges()} == {found[:6] for found in other.known_ranges()}


@pytest.mark.matrix
def test_a_base_table_that_was_restored_is_mended(spark: SparkSession, deliveries: TwoDeliveries) -> None:
    other = deliveries.other
    rows = other.base()
    base = f"{other.schema}.cells__base"
    restore(spark, base, versions(spark, base)[0])
    other.run(2)
    other.check_state()
    check_same(rows, other.base(), "restored")
    assert other.failing_tests() == set()


@pytest.mark.matrix
def test_again_and_rebuilt_the_cells_are_the_same(spark: SparkSession, deliveries: TwoDeliveries) -> None:
    """Batches again, which the ledger did not learn of; all records again, delivered anew; and all from nothing."""
    one = deliveries.one
    before = one.base(), one.live(), one.known_ranges()
    spark.sql(f"delete from {one.schema}.reconcile_ledger where kind <> 'rebuild'")
    one.run(4)
    one.check()
    last = one.accounts[-1]
    assert (last.kind, last.first_batch, last.last_batch, last.applied, last.pending) == ("replay", 2, 4, 0, 0)
    assert (one.base(), one.live(), one.known_ranges()) == before
    one.run(4, "--full-refresh")
    one.check()
    assert (one.base(), one.live(), one.known_ranges()) == before
    assert one.failing_tests() == set()


@pytest.mark.matrix
def test_views_of_live_staging_hide_what_was_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """Deletions that are merged hide staged cells, and staged ones hide merged cells."""
    cells = Cells(
        spark, tmp_path / "project", "cells_fresh", invented(100, seed=4, split=3), config=", meta={'fresh': true}"
    )
    cells.model("cells_view", "current_view")
    cells.run(1)
    cells.project.dbt("run", "--select", "cells_view")
    for batch in (1, 2, 3):
        cells.deliver(batch)
        cells.check_live("cells")
        cells.check_live("cells_view")
        if batch == 2:
            cells.run(2)
            cells.check()


@pytest.mark.matrix
@pytest.mark.parametrize("garbage_collection", ["", "apply"])
def test_in_a_history_a_deletion_ends_the_versions_that_it_covers(
    spark: SparkSession, tmp_path: Path, garbage_collection: str
) -> None:
    """The same laws: another order, another split, all records again, from nothing. Unless told otherwise it keeps."""
    schema = f"cell_versions_{garbage_collection or 'keep'}"
    once = invented(HISTORIES, seed=3, split=3)
    told = [*once, *(replace(entry, batch=4) for entry in once)]
    one = CellVersions(spark, tmp_path / "one", schema, told, garbage_collection=garbage_collection)
    for batch in (1, 2, 3):
        one.run(batch)
        one.check()
    assert one.failing_tests() == set()
    other = CellVersions(
        spark, tmp_path / "other", f"{schema}_other", invented(HISTORIES, seed=3, split=1, backwards=True),
        garbage_collection=garbage_collection,
    )  # fmt: skip
    other.run(1)
    other.check()
    assert _as_versions(one) == _as_versions(other)
    before = one.rows("cells__base")
    one.run(4)
    one.check()
    one.run(4, "--full-refresh")
    one.check()
    assert sorted(map(str, before)) == sorted(map(str, one.rows("cells__base")))


def _as_versions(cells: CellVersions) -> list[str]:
    return sorted(str({**row, "_change_batch": None}) for row in cells.rows("cells__base"))


# --- a cell that was deleted, and written again -----------------------------------------------------------------------


def hidden_and_back() -> list[Entry]:
    """Cells that are set, deleted and set again, their three records in every split into three batches."""
    entries = []
    for number, batches in enumerate(itertools.product((1, 2, 3), repeat=3)):
        said = [set_cell("f", b"q", 1000, b"a")], [delete_from_column("f", b"q")], [set_cell("f", b"q", 1000, b"b")]
        for place, (one, batch) in enumerate(zip(said, batches, strict=True)):
            (entry,) = entries_of(data_change(bytes([number]), one, place))
            entries.append(replace(entry, batch=batch))
    return entries


def test_a_cell_is_hidden_and_comes_back_in_whatever_order_and_split(spark: SparkSession, tmp_path: Path) -> None:
    cells = Cells(spark, tmp_path / "project", "cells_come_back", hidden_and_back())
    for batch in (1, 2, 3):
        cells.run(batch)
        cells.check()
    assert cells.live() == {(bytes([number]), "f", b"q", 1000): b"b" for number in range(27)}


@pytest.mark.matrix
def test_times_that_are_no_dates(spark: SparkSession, tmp_path: Path) -> None:
    """A cell's time is what its writer says: often what is left of 64 bits, so that the newest comes first."""
    times = [0, 253402300800000000, 2**62, 2**63 - 1_800_000_000_000_000, 2**63 - 1]
    said = [
        ([set_cell("f", b"q", time, b"a") for time in times], 1),
        ([set_cell("f", b"q", time, b"b") for time in times[1:]], 2),
        ([delete_from_column("f", b"q", times[3], 2**63 - 1), delete_from_column("f", b"q", 1, times[2])], 3),
    ]
    entries = [
        replace(entry, batch=batch) for one, batch in said for entry in entries_of(data_change(b"far", one, batch))
    ]
    cells = Cells(spark, tmp_path / "project", "cells_far", entries)
    for batch in (1, 2, 3):
        cells.run(batch)
        cells.check()
    assert cells.live() == {(b"far", "f", b"q", time): v for time, v in [(0, b"a"), (2**62, b"b"), (2**63 - 1, b"b")]}


# --- what else follows from the change records ------------------------------------------------------------------------


@pytest.mark.matrix
def test_earlier_moments_parity_and_a_select_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    schema = "cells_moments"
    cells = Cells(spark, tmp_path / "project", schema, invented(60, seed=5, split=2))
    cells.run(2)
    cells.check()
    then, now = visible(cells.upto(1)), visible(cells.upto(2))
    assert then != now

    cells.project.dbt("run", "--select", "cells", "--vars", "{as_of: {batch: 1}}")
    earlier = Cells.live(_of_schema(cells, f"{schema}_as_of"))
    assert earlier == then

    own = f"{{{{ config(materialized='current_state', unique_key={KEY}, meta={{'range_deletes': true}}) }}}}\n"
    cells.project.model("own", f"{own}select * from {schema}.cells__changes", COLUMNS)
    cells.project.dbt("run", "--select", "own")
    cells.check_live("own")

    def parity(as_of: dict[str, int] | str) -> str:
        arguments = {"compare_to": "source('lake', 'truth')", "key": KEY, "as_of": as_of}
        tests = [{"reconcile.parity": {"name": "parity_of_cells", "arguments": arguments}}]
        cells.model("cells", "current_state", data_tests=tests)
        results = cells.project.dbt("test", "--select", "parity_of_cells", succeed=False).result.results
        (result,) = (found for found in results if found.node.resource_type == "test")
        return f"{result.status}: {result.message}"

    cells.project.source(f"{schema}_staging", "changes", "truth")
    rows = [(*cell, value) for cell, value in now.items()]
    told = spark.createDataFrame(rows, "row_key binary, family string, qualifier binary, us bigint, value binary")
    truth = told.selectExpr("row_key", "family", "qualifier", "timestamp_micros(us) as cell_time", "value")
    truth.write.format(file_format()).saveAsTable(f"{schema}_staging.truth")
    assert parity("now").startswith("pass")
    assert "does not fold up to a position; build the model there by the variable as_of" in parity({"batch": 1})
    spark.sql(f"delete from {schema}_staging.truth where cell_time = timestamp_micros(1000)")
    assert parity("now").startswith("fail")


def _of_schema(cells: Cells, schema: str) -> Cells:
    """Return the same project's relations in another schema, to be read."""
    other = copy.copy(cells)
    other.schema = schema
    return other


# --- bugs that these checks must find ---------------------------------------------------------------------------------

STATE = "macros/materializations/current_state"
RECORDS = "macros/change_records"
SOURCE = "macros/sources/bigtable_change_stream.sql"


class Bug(NamedTuple):
    name: str
    file: str
    found: str
    planted: str
    shows: str
    models: type[Cells] = Cells
    delivered: Callable[[], list[Entry]] = lambda: invented(80, seed=2, split=2)


BUGS = [
    Bug("deletions hide what came later", f"{STATE}/live_rows.sql",
        " and keyless._change_sequence > base._change_sequence", "", "not the visible ones"),
    Bug("the end is inclusive", f"{RECORDS}/keyless_deletes.sql",
        "{{ row }}.cell_time < {{ place }}.end_time)", "{{ row }}.cell_time <= {{ place }}.end_time)",
        "not the visible ones|counts"),
    Bug("the start is exclusive", f"{RECORDS}/keyless_deletes.sql",
        "{{ place }}.start_time <= {{ row }}.cell_time", "{{ place }}.start_time < {{ row }}.cell_time",
        "not the visible ones|counts"),
    Bug("an end of 0 is an end", SOURCE, "nullif(entry.ends, 0)", "entry.ends", "not those delivered"),
    Bug("a family is the column of no name", f"{RECORDS}/keyless_deletes.sql",
        "({{ place }}.qualifier is null or {{ place }}.qualifier = {{ row }}.qualifier)",
        "coalesce({{ place }}.qualifier, binary('')) = {{ row }}.qualifier", "not the visible ones|counts"),
    Bug("microseconds of the commit", SOURCE,
        "{{ reconcile.hex_of_nanoseconds('committed_at', 'commit_timestamp') }}",
        "lpad(hex(unix_micros(committed_at)), 16, '0')", "not as folded|not the visible ones|deletions of ranges"),
    Bug("no tiebreaker", SOURCE, "{{ reconcile.hex_of_signed('tiebreaker') }}",
        "if(tiebreaker is null, null, '0')", "not as folded|not the visible ones|deletions of ranges"),
    Bug("a negative tiebreaker is large", f"{RECORDS}/sequence_sections.sql",
        " ^ bigint('-9223372036854775808')", "", "not as folded|not the visible ones|deletions of ranges"),
    Bug("entries in no order", SOURCE, "{{ reconcile.hex_of_place('place') }}", "'0'",
        "not as folded|not the visible ones|deletions of ranges"),
    Bug("garbage collection kept", SOURCE, "== 'keep' -%}", "!= 'none' -%}", "deletions of ranges|counts"),
    Bug("the rest of a change goes on", SOURCE, "    error as _change_error,",
        "    if(change_type is null, error, null) as _change_error,", "not as folded"),
    Bug("the first deletions are the last", "macros/materializations/get_keyless_delete_statements.sql",
        "when not matched then insert *", "", "deletions of ranges"),
    Bug("what is hidden counts as applied", f"{STATE}/rows_beside_keyless_deletes.sql",
        "_change_is_undone or _deleted and not _change_is_delete and coalesce(_change_base_deleted, true)", "false",
        "counts"),
    Bug("a deletion never takes a live cell", f"{STATE}/counts_with_keyless_deletes.sql",
        "replaced.{{ key }} is null, not base._deleted{{", "replaced.{{ key }} is null, false{{", "counts"),
    Bug("what one batch sets and deletes was there before", f"{STATE}/counts_with_keyless_deletes.sql",
        "_change_is_undone and not coalesce(_change_base_deleted, true) as was_live", "_change_is_undone as was_live",
        "counts", delivered=hidden_and_back),
    Bug("entries not delivered", "macros/ledger/delivered_records.sql",
        "greatest({{ entries }}, 1)\n{%- endif -%}", "1\n{%- endif -%}", "counts"),
    Bug("only the column's versions end", "macros/materializations/history/mended_versions.sql",
        "and {{ reconcile.names_row(settings.keyless, 'found.place', 'record') }}",
        "and found.place.qualifier = record.qualifier", "versions are not", CellVersions),
    Bug("the last deletion ends a version", "macros/materializations/history/mended_versions.sql",
        "null, array_min(filter(", "null, array_max(filter(", "versions are not", CellVersions),
    Bug("garbage collection applied to a history", SOURCE, "'keep' if materialized == 'history'", "'apply' if true",
        "counts|versions are not", CellVersions),
]  # fmt: skip


def test_every_bug_can_be_planted() -> None:
    for bug in BUGS:
        with_planted_bug(bug.file, {bug.found: bug.planted})


@pytest.mark.matrix
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_checks_find(spark: SparkSession, tmp_path: Path, bug: Bug) -> None:
    package = package_with_planted_bug(tmp_path / "package", bug.file, {bug.found: bug.planted})
    schema = "cells_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    cells = bug.models(spark, tmp_path / "project", schema, bug.delivered(), package)
    with pytest.raises(LawBroken, match=bug.shows):
        for batch in sorted({entry.batch for entry in cells.records}):
            cells.run(batch)
            cells.check()
