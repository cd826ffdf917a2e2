"""Deletes that name no key, only the address of their row: LogMiner writes them for inserts that were rolled back."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from datastream import Staged, stage
from laws import LawBroken, check_same
from projects import Project, package_with_planted_bug, with_planted_bug
from pyspark.sql import SparkSession
from row_deletes import (
    COLUMNS,
    OBJECT,
    Record,
    Rows,
    RowVersions,
    again,
    change,
    invent,
    is_live,
    newest,
    row_deletes,
)  # fmt: skip
from tables import restore, stored, versions

pytestmark = pytest.mark.soak

# --- what can happen, in the order of the log, and the rows that are there in the end ---------------------------------

WAYS: dict[str, tuple[list[tuple[Any, ...]], set[tuple[int, str]]]] = {
    "rolled back": ([(1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "updated and rolled back": ([(1, "INSERT", "a", "x"), (1, "UPDATE", "a", "y"), (None, "DELETE", "a")], set()),
    "rolled back, the address then used by another row":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (2, "INSERT", "a", "y")], {(2, "y")}),
    "the address used by another row before":
        ([(2, "INSERT", "a", "y"), (2, "DELETE", "a"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "rolled back, and inserted again at that address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "a", "y")], {(1, "y")}),
    "rolled back, and inserted again at another address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "b", "y")], {(1, "y")}),
    "rolled back, inserted again, and deleted":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "b", "y"), (1, "DELETE", "b")], set()),
    "rolled back twice at one address":
        ([(1, "INSERT", "a", "x"), (None, "DELETE", "a"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], set()),
    "the key changed, the address kept, all rolled back": (
        [(1, "INSERT", "a", "x"), (1, "UPDATE-DELETE", "a"), (2, "UPDATE-INSERT", "a", "x"), (None, "DELETE", "a")],
        set(),
    ),
    "another row at another address":
        ([(2, "INSERT", "b", "y"), (1, "INSERT", "a", "x"), (None, "DELETE", "a")], {(2, "y")}),
}  # fmt: skip
BATCHES = 3


def told(number: int, way: str, batches: tuple[int, ...]) -> list[Record]:
    """Return the records of one way, as one of many histories."""
    return [
        replace(change(number, key, change_type, 9 + place, address, *note), batch=batch)
        for place, ((key, change_type, address, *note), batch) in enumerate(zip(WAYS[way][0], batches, strict=True))
    ]


class Arrivals(Rows):
    """Every way in every split into three batches, side by side; and a bulk insert that is rolled back row by row."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        records, self.end, numbers = [], set(), itertools.count(1)
        for way, (events, rows) in WAYS.items():
            for batches in itertools.product(range(1, BATCHES + 1), repeat=len(events)):
                number = next(numbers)
                records.extend(told(number, way, batches))
                self.end |= {(number, *row) for row in rows}
        self.histories = next(numbers) - 1
        for key in range(50):  # one redo record for all rows, and one for what undoes them, each told twice
            inserted = replace(change(0, key, "INSERT", 9, f"r{key}", "x"), batch=1 + key % 3)
            undone = replace(change(0, None, "DELETE", 10, f"r{key}"), batch=1 + key // 3 % 3)
            records += [inserted, undone, replace(again(undone, f"{undone.uuid}-again"), batch=1 + key // 9 % 3)]
        super().__init__(spark, root, "row_deletes_arrive", records)


@pytest.fixture(scope="module")
def arrivals(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Arrivals:
    return Arrivals(spark, tmp_path_factory.mktemp("arrivals") / "project")


def test_whenever_they_come_there_are_no_phantom_rows(arrivals: Arrivals) -> None:
    assert arrivals.histories > 400
    for batch in range(1, BATCHES + 1):
        arrivals.run(batch)
        arrivals.check()
        if batch != 2:
            assert arrivals.failing_tests() == ({"no_pending_rows"} if batch < BATCHES else set())
    assert arrivals.live() == arrivals.end
    increments = arrivals.base(), arrivals.known_row_deletes()
    arrivals.run(BATCHES, "--full-refresh")
    arrivals.check()
    assert arrivals.failing_tests() == set()
    assert (arrivals.base(), arrivals.known_row_deletes()) == increments


# --- the laws, on histories that nobody thought of --------------------------------------------------------------------


def invented(histories: int, seed: int, split: int) -> list[Record]:
    """Return many histories; `split` is the number of batches of their delivery."""
    chance, batch = random.Random(seed), random.Random(split)
    records = [record for number in range(1, histories + 1) for record in invent(number, chance)]
    return [replace(record, batch=batch.randint(1, split)) for record in records]


class TwoDeliveries:
    def __init__(self, spark: SparkSession, root: Path, histories: int) -> None:
        once = invented(histories, seed=1, split=3)
        self.one = Rows(spark, root / "one", "row_deletes_one", [*once, *(replace(r, batch=4) for r in once)])
        self.other = Rows(spark, root / "other", "row_deletes_other", reversed(invented(histories, seed=1, split=2)))


@pytest.fixture(scope="module")
def deliveries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TwoDeliveries:
    deliveries = TwoDeliveries(spark, tmp_path_factory.mktemp("deliveries"), histories=300)
    deliveries.one.run(1)
    deliveries.one.check()
    deliveries.one.run(3)
    deliveries.one.check()
    return deliveries


@pytest.mark.matrix
def test_another_order_and_another_split_give_the_same_rows(deliveries: TwoDeliveries) -> None:
    one, other = deliveries.one, deliveries.other
    other.run(1)
    other.check()
    other.run(2)
    other.check()
    check_same(one.base(), other.base(), "two deliveries", apart_from=["_change_batch"])
    assert one.live() == other.live()
    assert {row[:2] for row in one.known_row_deletes()} == {row[:2] for row in other.known_row_deletes()}


@pytest.mark.matrix
def test_a_base_table_that_was_restored_is_mended(spark: SparkSession, deliveries: TwoDeliveries) -> None:
    other = deliveries.other
    rows = other.base()
    base = f"{other.schema}.tbl__base"
    restore(spark, base, versions(spark, base)[0])
    other.run(2)
    other.check_state()
    other.check_quarantine()
    check_same(rows, other.base(), "restored")
    assert other.failing_tests() <= {"no_pending_rows", "one_payload_per_sequence"}


@pytest.mark.matrix
def test_again_and_rebuilt_the_rows_are_the_same(spark: SparkSession, deliveries: TwoDeliveries) -> None:
    """Batches again, which the ledger did not learn of; all records again, delivered anew; and all from nothing."""
    one = deliveries.one
    before = one.base(), one.live(), one.known_row_deletes()
    spark.sql(f"delete from {one.schema}.reconcile_ledger where kind <> 'rebuild'")
    one.run(4)
    one.check()
    last = one.accounts[-1]
    assert (last.kind, last.first_batch, last.last_batch, last.applied, last.pending) == ("replay", 2, 4, 0, 0)
    assert (one.base(), one.live(), one.known_row_deletes()) == before
    one.run(4, "--full-refresh")
    one.check()
    assert (one.base(), one.live(), one.known_row_deletes()) == before


@pytest.mark.matrix
def test_in_a_history_a_row_delete_ends_the_version_at_its_address(spark: SparkSession, tmp_path: Path) -> None:
    """The same laws: another order, another split, batches again, all records again, from nothing."""
    once = invented(200, seed=3, split=3)
    one = RowVersions(spark, tmp_path / "one", "row_versions_one", [*once, *(replace(r, batch=4) for r in once)])
    for batch in (1, 2, 3):
        one.run(batch)
        one.check()
    assert one.failing_tests() <= {"no_pending_rows"}
    other = RowVersions(spark, tmp_path / "other", "row_versions_other", reversed(invented(200, seed=3, split=1)))
    other.run(1)
    other.check()
    check_same(one.base(), other.base(), "two deliveries", apart_from=["_change_batch"])
    before = one.base()
    spark.sql(f"delete from {one.schema}.reconcile_ledger where kind <> 'rebuild'")
    one.run(4)
    one.check()
    check_same(before, one.base(), "again")
    one.run(4, "--full-refresh")
    one.check()
    check_same(before, one.base(), "rebuilt")


@pytest.mark.matrix
def test_views_of_live_staging_undo_what_was_rolled_back(spark: SparkSession, tmp_path: Path) -> None:
    """Row deletes that are merged undo staged rows, and staged ones undo merged rows."""
    rows = Rows(spark, tmp_path / "project", "row_deletes_fresh", invented(150, seed=4, split=3))
    model = (rows.project.root / "models" / "tbl.sql").read_text()
    rows.project.model("tbl", model.replace("['history', 'id']", "['history', 'id'], meta={'fresh': true}"), COLUMNS)
    rows.project.model("tbl_view", model.replace("current_state", "current_view"), COLUMNS)
    rows.run(1)
    rows.project.dbt("run", "--select", "tbl_view")
    for batch in (1, 2, 3):
        rows.deliver(batch)
        undone = row_deletes(rows.upto(batch))
        right = {(*key, row.note) for key, row in newest(rows.upto(batch)).items() if is_live(row, undone)}
        assert rows.live() == right
        assert {tuple(row) for row in spark.table(f"{rows.schema}.tbl_view").collect()} == right
        if batch == 2:
            rows.run(2)
            rows.check()


# --- a model without row deletes pays nothing -------------------------------------------------------------------------


@pytest.mark.matrix
def test_the_table_is_made_when_the_first_one_comes(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 2, "INSERT", 10, "b", "y"),
        replace(change(1, None, "DELETE", 11, "a"), batch=2),
        replace(change(1, None, "DELETE", 12, "c"), batch=3),
    ]
    rows = Rows(spark, tmp_path / "project", "row_deletes_lazy", records)
    rows.run(1)
    rows.check()
    assert not rows.has_row_deletes()
    for batch in (2, 3):  # of row deletes alone: they leave no trace in the base table, and are not read again
        rows.run(batch)
        rows.check()
        line = rows.accounts[-1]
        assert (line.kind, line.first_batch, line.base_batch) == ("apply", batch, 1)
    assert rows.live() == {(1, 2, "y")}
    assert rows.failing_tests() == {"no_pending_rows"}


# --- tables without a primary key -------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_the_address_can_be_the_key(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        change(1, 1, "INSERT", 9, "a", "x"),
        change(1, 1, "UPDATE", 10, "a", "y"),
        change(1, 1, "INSERT", 11, "b", "the same row twice"),
        change(1, 1, "INSERT", 12, "c", "the same row twice"),
        change(1, 1, "INSERT", 13, "d", "undone"),
        change(1, None, "DELETE", 14, "d"),
        change(1, 2, "INSERT", 15, "d", "at its address"),
        change(1, None, "DELETE", 17, "e", payload="null"),
        replace(change(1, 3, "INSERT", 16, "e", "late"), batch=2),
        replace(change(1, None, "DELETE", 20, "b"), batch=2),
        replace(change(1, 4, "INSERT", 21, None, "nowhere"), batch=2),
    ]
    rows = Rows(spark, tmp_path / "project", "row_ids_as_key", records)
    model = rows.project.root / "models" / "tbl.sql"
    model.write_text(model.read_text().replace("['history', 'id']", "'_row_id'"))
    rows.run(1)
    twice = (1, 1, "the same row twice")
    live = sorted(map(tuple, spark.table("row_ids_as_key.tbl").collect()))
    assert live == [twice, twice, (1, 1, "y"), (1, 2, "at its address")]
    rows.run(2)
    live = sorted(map(tuple, spark.table("row_ids_as_key.tbl").collect()))
    assert live == [twice, (1, 1, "y"), (1, 2, "at its address")]
    base = stored(spark, "row_ids_as_key.tbl__base").collect()
    assert {row._row_id[-1]: row._deleted for row in base} == {"a": False, "b": True, "c": False, "d": False, "e": True}
    (bad,) = spark.table("row_ids_as_key.tbl__quarantine").collect()
    assert bad._change_error == "the record has no _row_id, which is the key: backfill rows have none"
    assert not rows.has_row_deletes()
    assert rows.failing_tests() == set()
    rows.run(2, "--full-refresh")
    assert set(base) == set(stored(spark, "row_ids_as_key.tbl__base").collect())


# --- what a model says of row ids -------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_a_model_says_whether_its_records_have_row_ids(spark: SparkSession, tmp_path: Path) -> None:
    """Without them a delete that has no key is quarantined; and a SELECT of one's own may have them."""
    project = Project(tmp_path / "project", "row_ids_said")
    project.source("row_ids_said_staging", "changes")
    spark.sql("create schema if not exists row_ids_said_staging")
    insert, delete = change(1, 1, "INSERT", 9, "a", "x"), change(1, None, "DELETE", 10, "a")
    stage(spark, "row_ids_said_staging.changes", [Staged(record.text, OBJECT, 1) for record in (insert, delete)])

    def model(name: str, sql: str, row_ids: bool) -> None:
        config = f"config(materialized='current_state', unique_key='id', meta={{'row_ids': {row_ids}}})"
        project.model(name, f"{{{{ {config} }}}}\n{sql}", COLUMNS)

    of_oracle = f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='{OBJECT}') }}}}"
    model("without", of_oracle, row_ids=False)
    model("own", "select * from {{ ref('without') }}__changes", row_ids=True)
    project.dbt("run")
    assert [row.id for row in spark.table("row_ids_said.without").collect()] == [1]
    assert [row._change_error for row in spark.table("row_ids_said.without__quarantine").collect()] == [
        "key id is missing or NULL"
    ]
    assert spark.table("row_ids_said.own").collect() == []
    assert [row._row_id for row in stored(spark, "row_ids_said.own__base").collect()] == [insert.address]


# --- bugs that these checks must find ---------------------------------------------------------------------------------

STATE = "macros/materializations/current_state"


class Bug(NamedTuple):
    name: str
    file: str
    found: str
    planted: str
    shows: str


BUGS = [
    Bug("sequences not compared", f"{STATE}/live_rows.sql",
        " and keyless._change_sequence > base._change_sequence", "", "not the live ones"),
    Bug("row deletes quarantined", "macros/change_records/is_keyless_delete.sql",
        "{{ place }} is not null", "false", "row deletes are not|quarantined"),
    Bug("the row is marked as deleted", "macros/materializations/get_keyless_delete_statements.sql",
        "  {{ return(statements) }}\n{%- endmacro %}",
        "{%- set row_id = reconcile.stored_column('_row_id', settings.file_format) -%}"
        "{%- set deleted = reconcile.stored_column('_deleted', settings.file_format) -%}"
        "{%- if range.kind != 'rebuild' -%}{%- do statements.append('merge into ' ~ reconcile.qualified(relations.base)"
        " ~ ' as base using (select _row_id, max(_change_sequence) as sequence from ' ~ relations.changes_cache"
        " ~ ' where id is null and _change_error is null group by _row_id) as come on come._row_id = base.' ~ row_id"
        " ~ ' when matched and sequence > _change_sequence then update set ' ~ deleted ~ ' = true, note = null') -%}"
        "{%- endif -%}"
        "{{ return(statements) }}{%- endmacro %}",
        "not as folded"),
    Bug("the first row delete is the last", "macros/materializations/get_keyless_delete_statements.sql",
        "when not matched then insert *", "",
        "row deletes are not"),
    Bug("a row that is undone counts as applied", f"{STATE}/rows_beside_keyless_deletes.sql",
        "_change_is_undone or _deleted and", "_deleted and", "counts"),
    Bug("any row delete is a duplicate", f"{STATE}/counts_with_keyless_deletes.sql",
        "select {{ place }}, _change_sequence, _change_records as records, false as is_known",
        "select {{ place }}, _change_sequence, _change_records as records, true as is_known", "counts"),
    Bug("addresses of backfill rows", "macros/change_records/datastream_change_records.sql",
        """else "if(is_backfill, null, nullif(" ~ row_id ~ ", ''))" }}""", "else row_id }}", "not as folded"),
]  # fmt: skip


def test_every_bug_can_be_planted() -> None:
    for bug in BUGS:
        with_planted_bug(bug.file, {bug.found: bug.planted})


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=[pytest.mark.matrix] if place > 0 else []) for place, bug in enumerate(BUGS)],
    ids=[bug.name for bug in BUGS],
)
def test_the_checks_find(spark: SparkSession, tmp_path: Path, bug: Bug) -> None:
    package = package_with_planted_bug(tmp_path / "package", bug.file, {bug.found: bug.planted})
    schema = "row_deletes_" + "".join(character if character.isalnum() else "_" for character in bug.name)
    rows = Rows(spark, tmp_path / "project", schema, invented(60, seed=2, split=3), package)
    with pytest.raises(LawBroken, match=bug.shows):
        for batch in (1, 2, 3):
            rows.run(batch)
            rows.check()
