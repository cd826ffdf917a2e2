"""Snapshots beside a log: which of two is the later one, and which rows have a key."""

from __future__ import annotations

import itertools
import sqlite3
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from reconcile_jobs import log_snapshots
from reconcile_jobs.log_positions import Place, Restated, position_of
from reconcile_jobs.log_snapshots import Totals, _Run, is_beside_log
from reconcile_jobs.process.caller import Caller
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.snapshot_differences import Job, has_no_key
from reconcile_jobs.staging import TableName


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
    is_later("pg_snapshot", earlier, later, contains)


def run_of_job() -> _Run:
    job: Any = type("Job", (), {"staging": "lake.shop_changes", "table": "lake.orders_source"})
    return _Run(None, job, Caller())  # type: ignore[arg-type]


def is_later(kind: str, earlier: str, later: str, contains: bool) -> None:
    position = position_of(kind, later, "lake.orders_source")
    assert position.contains(position_of(kind, earlier, "lake.orders_source")) == contains
    known, run = {"position_kind": kind, "position": earlier}, run_of_job()
    if contains:
        run._refuse_earlier(known, position, "shop_orders")
        return
    with pytest.raises(UsageError, match=f"shop_orders at {later} does not contain the one at {earlier} that lake"):
        run._refuse_earlier(known, position, "shop_orders")


@pytest.mark.parametrize(
    ("earlier", "later", "contains"),
    [
        ("mysql-bin.000017:4", "mysql-bin.000017:4", True),  # nothing was committed in between
        ("mysql-bin.000017:900", "mysql-bin.000017:1000", True),
        ("mysql-bin.000017:1000", "mysql-bin.000017:900", False),
        ("mysql-bin.000017:1000", "mysql-bin.000018:4", True),
        ("mysql-bin.999999:4", "mysql-bin.1000000:4", True),
        ("mysql-bin.1000000:4", "mysql-bin.999999:4", False),
        ("mysql-bin.000017:4", "bin.000018:4", False),  # of another server
    ],
)
def test_a_snapshot_of_mysql_is_later_if_its_place_in_the_binary_log_is(
    earlier: str, later: str, contains: bool
) -> None:
    is_later("binlog", earlier, later, contains)


@pytest.mark.parametrize(
    ("kind", "earlier", "later", "contains"),
    [
        ("scn", "999999", "1000000", True),
        ("scn", "1000000", "999999", False),
        ("scn", "7", "7", True),
        ("lsn", "0x0000002500000728000F", "0x00000025000007280010", True),
        ("lsn", "0x0000002500000728000f", "0x0000002500000728000F", True),
        ("lsn", "0x00000026000000010001", "0x00000025000007280003", False),
    ],
)
def test_a_snapshot_of_oracle_or_sqlserver_is_later_if_its_number_in_the_log_is(
    kind: str, earlier: str, later: str, contains: bool
) -> None:
    is_later(kind, earlier, later, contains)


def test_positions_of_two_databases_are_in_no_order() -> None:
    texts = {"pg_snapshot": "9:9:", "binlog": "mysql-bin.000017:4", "scn": "4", "lsn": "0x00000025000007280003"}
    positions = [position_of(kind, text, "lake.orders_source") for kind, text in texts.items()]
    for one, other in itertools.permutations(positions, 2):
        assert not one.contains(other)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("pg_snapshot", "9:9", "'9:9', is no pg_current_snapshot"),
        ("gtid", "0-1-100", "is a gtid, and only snapshots of Oracle, MySQL, PostgreSQL, SQL Server, Spanner and"),
        ("scn", "x" * 200, f"'{'x' * 200}', is no SCN"),
        ("scn", "x" * 201, rf"'{'x' * 200}\.\.\.', is no SCN"),
        ("read_timestamp", "now", "'now', is no moment, as 2026-05-01T09:00:00.123456789Z is"),
        *(("scn", text, f"'{text}', is no SCN, a whole number") for text in ("", "1e4", "-4", "0x25")),
        *(
            ("lsn", text, f"'{text}', is no LSN, 20 hex")
            for text in ("25", "0x0000002500000728", "00000025:00000728:0003")
        ),
        *(
            ("binlog", text, rf"'{text}', is no place in a binary log, as mysql-bin.000017:4 is \(a GTID")
            for text in ("3E11FA47-71CA-11E1-9E33-C80AA9429562:23", "0-1-100", ":0", "mysql-bin.000017", "bin.17:4-9")
        ),
    ],
)
def test_what_is_no_position_in_a_log_is_refused(kind: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"The position of lake.orders_source.*{said}"):
        position_of(kind, text, "lake.orders_source")


class Last(NamedTuple):
    """A place in a binary log, as a query returns it."""

    file: int
    offset: int | None
    name: str = "mysql-bin.000017"


@pytest.mark.parametrize(
    ("file", "place", "said"),
    [
        ("mysql-bin.000099", Last(17, 900), None),
        ("mysql-bin.000017", Last(17, 1000), None),
        ("mysql-bin.000001", None, None),
        ("mysql-bin.000017", Last(17, None), None),
        ("mysql-bin.000017", Last(17, 1001), "has a change of shop_orders at mysql-bin.000017:1001, appended an hour"),
        ("mysql-bin.000018", Last(18, 4, "mysql-bin.000018"), "at mysql-bin.000018:4, appended an hour or more"),
        ("binlog.000017", Last(17, 900), "The records of shop_orders in lake.shop_changes are of binlog.000017, and"),
    ],
)
def test_a_snapshot_of_another_binary_log_than_that_of_the_records_is_refused(
    file: str, place: Last | None, said: str | None
) -> None:
    position = Place.of("mysql-bin.000017:1000")
    assert position is not None
    if said is None:
        run_of_job()._refuse_other_log("shop_orders", position, file, place)
        return
    with pytest.raises(UsageError, match=f"{said}.* the snapshot is of mysql-bin.000017:1000: it is of another server"):
        run_of_job()._refuse_other_log("shop_orders", position, file, place)


@pytest.mark.parametrize(
    ("kind", "text", "place", "said"),
    [
        ("scn", "1000", 1000, None),
        ("scn", "1000", None, None),
        ("scn", "1000", 1001, "1001"),
        ("lsn", "0x00000025000007280003", "00000025000007280003", None),
        ("lsn", "0x00000025000007280003", "of no server", None),
        ("lsn", "0x00000025000007280003", "00000026000000010001", "00000026:00000001:0001"),
        ("pg_snapshot", "9:9:", None, None),
    ],
)
def test_a_snapshot_that_lies_before_a_record_that_was_appended_before_it_is_refused(
    kind: str, text: str, place: Any, said: str | None
) -> None:
    position = position_of(kind, text, "lake.orders_source")
    if said is None:
        run_of_job()._refuse_other_log("shop_orders", position, None, place)
        return
    with pytest.raises(UsageError, match=f"change of shop_orders at {said}, appended an hour or more .* the log has"):
        run_of_job()._refuse_other_log("shop_orders", position, None, place)


def test_a_row_has_no_key_if_any_part_of_it_is_null() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table kept (id, `line no`)")
        rows = [(1, 2), (1, None), (None, 2), (None, None)]
        database.executemany("insert into kept values (?, ?)", rows)
        found = database.execute(f"select * from kept where {has_no_key(['id', 'line no'])}")
        assert found.fetchall() == rows[1:]


@pytest.mark.parametrize("kind", ["read_timestamp", "commit_timestamp"])
@pytest.mark.parametrize(
    ("earlier", "later", "contains"),
    [
        ("2026-05-01T09:00:00.000000001Z", "2026-05-01T09:00:00.000000001Z", True),
        ("2026-05-01T09:00:00.000000002Z", "2026-05-01T09:00:00.000000001Z", False),
        # As texts, the later one would come first.
        ("2026-05-01T09:00:00Z", "2026-05-01T09:00:00.000000001Z", True),
        ("2026-05-01T09:00:00.9Z", "2026-05-01T09:00:00.10Z", False),
    ],
)
def test_a_snapshot_of_a_moment_is_later_to_the_nanosecond(kind: str, earlier: str, later: str, contains: bool) -> None:
    is_later(kind, earlier, later, contains)


def test_cells_are_told_again_as_of_an_hour_before_they_were_read() -> None:
    assert Restated.before("2026-05-01T09:30:00.000000007Z").text == "2026-05-01T08:30:00.000000007Z"


OF_SPANNER = {"reconcile.snapshot.database": "projects/p/instances/i/databases/d"}
OF_BIGTABLE = {"reconcile.snapshot.instance": "projects/p/instances/i", "reconcile.snapshot.table": "t"}


@pytest.mark.parametrize(
    ("job", "kind", "said", "complaint"),
    [
        ("datastream files", "pg_snapshot", {}, None),
        ("spanner projects/p/instances/i/databases/d/everything", "read_timestamp", OF_SPANNER, None),
        ("bigtable projects/p/instances/i/tables/t", "commit_timestamp", OF_BIGTABLE, None),
        (None, "read_timestamp", OF_SPANNER, None),
        (
            "spanner projects/p/instances/i/databases/d2/everything", "read_timestamp", OF_SPANNER,
            "and the snapshot is of projects/p/instances/i/databases/d: take it from the database of the log",
        ),
        ("bigtable projects/p/instances/i/tables/t2", "commit_timestamp", OF_BIGTABLE, "is of .*/tables/t: take it"),
        ("datastream files", "read_timestamp", OF_SPANNER, "and the snapshot is of projects/p/.*/databases/d: take"),
        ("spanner projects/p/instances/i/databases/d/everything", "pg_snapshot", {}, "the snapshot is of PostgreSQL"),
        ("table lake.orders", "pg_snapshot", {}, "only beside the files of Datastream and the change streams of"),
        ("snapshot", "pg_snapshot", {}, "holds snapshots of tables without a log"),
    ],
)  # fmt: skip
def test_a_snapshot_is_staged_beside_the_log_of_its_own_database(
    monkeypatch: pytest.MonkeyPatch, job: str | None, kind: str, said: dict[str, str], complaint: str | None
) -> None:
    texts = {"pg_snapshot": "9:9:"}
    position = position_of(kind, texts.get(kind, "2026-05-01T09:00:00Z"), "lake.orders_source")
    run = run_of_job()
    run.job.staging = type("Name", (), {"catalog": None, "sql": "lake.changes", "__str__": lambda self: self.sql})()
    kept = type("Format", (), {"properties": lambda self, spark, table: {"reconcile.job": job} if job else {}})()
    monkeypatch.setattr(log_snapshots, "format_of", lambda spark, catalog: kept)
    if complaint is None:
        run._refuse_other_job(position, said)
        return
    with pytest.raises(UsageError, match=complaint):
        run._refuse_other_job(position, said)


TABLE, CHANGES = TableName.parse("lake.orders_source"), TableName.parse("lake.changes")
TAKEN_AT = "2026-05-01T09:00:00.000000000Z"
NEW = {
    "reconcile.snapshot": "jdbc", "reconcile.snapshot.id": "new", "reconcile.snapshot.position_kind": "scn",
    "reconcile.snapshot.position": "9", "reconcile.snapshot.taken_at": TAKEN_AT,
}  # fmt: skip
BEFORE = {
    "snapshot": "old", "place": 7, "position_kind": "scn", "position": "8",
    "taken_at": "2026-05-01T08:00:00.000000000Z",
    "key": ["id"], "columns": {"id": "bigint"},
}  # fmt: skip


LEFT = "shop_orders without erased id"


def staged(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, Any] | None, at: str | None = None
) -> tuple[Totals, list[Any], list[str]]:
    """Stage a snapshot after the one that is known; return the totals, the cuts that were appended, what was said."""
    cuts: list[Any] = []
    said: list[str] = []
    spark: Any = SimpleNamespace(table=lambda name: SimpleNamespace(dtypes=[("id", "bigint")]))
    run = _Run(spark, Job(TABLE, CHANGES, at=at), Caller(say=said.append))
    monkeypatch.setattr(log_snapshots, "snapshot_properties", lambda spark, table: NEW)
    staging: Any = SimpleNamespace(leave_out_erased=lambda rows, object_, row: (f"{object_} without {row}", 2))
    monkeypatch.setattr(log_snapshots, "Staging", lambda *given, beside, register: staging)
    monkeypatch.setattr(log_snapshots, "rows_as_json", lambda rows, names: f"erased {', '.join(names)}")
    monkeypatch.setattr(log_snapshots, "Cuts", lambda *given, beside: SimpleNamespace(newest=lambda object_: known))
    monkeypatch.setattr(log_snapshots, "keep_masks_of_rows", lambda *given: "")
    monkeypatch.setattr(run, "_refuse_other_job", lambda position, properties: None)
    monkeypatch.setattr(run, "_object_of", lambda properties: "shop_orders")
    monkeypatch.setattr(run, "_key", lambda *given: ["id"])
    appended = lambda rows, position, cut, totals: cuts.append(cut if rows == LEFT else None)  # noqa: E731
    monkeypatch.setattr(run, "_append", appended)
    return run.run(), cuts, said


def test_snapshots_of_an_object_are_counted_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    for known, place in ((None, 1), (BEFORE, 8), (BEFORE | {"place": 65_534}, 65_535)):
        totals, (cut,), said = staged(monkeypatch, known)
        assert (cut.place, cut.snapshot, cut.position_kind, cut.position) == (place, "new", "scn", "9")
        assert (cut.taken_at, cut.columns) == (TAKEN_AT, {"id": "bigint"})
        assert (totals.object, totals.position, totals.taken_at) == ("shop_orders", "9", TAKEN_AT)
        assert totals.erased_rows == 2
        assert not said


def test_more_snapshots_of_an_object_than_the_order_of_changes_has_places_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match=r"^lake\.changes has 65,535 snapshots of shop_orders: stage into a new"):
        staged(monkeypatch, BEFORE | {"place": 65_535})


def test_a_snapshot_that_is_there_is_said_to_be_so_and_not_staged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    totals, cuts, said = staged(monkeypatch, BEFORE | {"snapshot": "new"})
    assert not cuts and totals == Totals("shop_orders", position="9", taken_at=TAKEN_AT)
    assert said == ["this snapshot of shop_orders is already in lake.changes, and nothing was appended"]


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"position": "10"}, "does not contain the one at 10 that lake.changes has"),
        ({"taken_at": TAKEN_AT}, "stage snapshots in the order in which they were"),
        ({"key": ["number"]}, "The key of shop_orders in lake.changes is number, and not id"),
        ({"columns": {"id": "bigint", "name": "string"}}, "lacks the column name"),
    ],
)
def test_a_snapshot_that_does_not_follow_the_one_before_it_is_refused(
    known: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=says):
        staged(monkeypatch, BEFORE | known)


def test_the_moment_of_a_snapshot_beside_a_log_is_that_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--at is not for a snapshot beside a log"):
        staged(monkeypatch, None, at=TAKEN_AT)


@pytest.mark.parametrize(
    ("asked", "properties", "beside"),
    [
        (True, None, True), (False, None, False), (True, {}, True), (False, {}, False),
        (False, {"reconcile.job": "snapshot"}, False), (False, {"reconcile.job": "spanner p/i/d/s"}, True),
        (False, {"reconcile.job": "snapshot", "reconcile.appends_beside": "beside-x"}, True),
        (False, {"reconcile.appends_beside": "beside-x"}, True),
    ],
)  # fmt: skip
def test_a_snapshot_is_staged_beside_a_log_where_there_is_one_or_one_is_to_come(
    asked: bool, properties: dict[str, str] | None, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`properties`: those of the staging table; None: there is no such table."""
    catalog = SimpleNamespace(tableExists=lambda name: properties is not None)
    of_table = SimpleNamespace(properties=lambda spark, table: properties)
    monkeypatch.setattr(log_snapshots, "format_of", lambda spark, catalog: of_table)
    spark: Any = SimpleNamespace(catalog=catalog)
    assert is_beside_log(spark, Job(TABLE, CHANGES, beside_log=asked)) == beside
