"""Snapshots beside a log that a model cannot take are refused in sentences that say what to do; nothing is written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from plain_dbt import Relation
from refusals import PARITY, THINGS, Refusal, run, thing
from shapes import (
    APPEND_TABLE,
    BESIDE_BIGTABLE,
    BESIDE_MYSQL,
    BESIDE_SPANNER,
    BIGTABLE,
    CELL_KEY,
    CELLS,
    MYSQL,
    ORACLE,
    POSTGRESQL,
    SNAPSHOT_BESIDE,
    SPANNER,
    SQLSERVER,
    STAGING,
    Life,
    Shape,
)
from snapshots import SNAPSHOT as OF_THE_SOURCE
from snapshots import beside_a_snapshot, taken

OF_THINGS = {**SNAPSHOT_BESIDE, "columns": THINGS}
OF_MYSQL = {**BESIDE_MYSQL, "columns": THINGS}
BESIDE = "its staging table has a snapshot of shop.orders beside the log (batch 5), and "
OF_EARLIER = BESIDE.replace("batch 5", "batch 3")
TAKE_BACK = (
    "a history counts all snapshots, also those before the newest: take this one back, as docs/repair.md says, and "
    "rebuild the model"
)
SNAPSHOT = "the snapshot of shop.orders in batch 5"
REBUILD = "rebuild with `dbt run --full-refresh --select orders`"


def beside(source: str = POSTGRESQL, snapshot: dict[str, Any] = OF_THINGS, **said: Any) -> Shape:
    """Return a model of few columns, with a snapshot beside its log."""
    return thing(source, snapshot=snapshot, **said)


def living(shape: Shape, change: Callable[[Life], object] = lambda life: None) -> Callable[[], Life]:
    """Return what makes a model that was not built yet."""

    def act() -> Life:
        life = Life(shape)
        change(life)
        return life

    return act


def built(shape: Shape, applied: str | None, **said: Any) -> Callable[[], Life]:
    """Return what makes a model that was built up to batch 3; `applied`: the snapshot that it has applied."""

    def act() -> Life:
        life = Life(shape)
        life.statements(shape.phases[0])
        properties = life.warehouse.properties["demo.orders__base"]
        properties.pop("reconcile.snapshot_applied", None)
        if applied:
            properties["reconcile.snapshot_applied"] = applied
        life.warehouse.ledger, life.warehouse.base_batch = (3, 3), 3
        for name, value in said.items():
            setattr(life.warehouse, name, value)
        return life

    return act


def forgets(life: Life) -> None:
    for types in life.warehouse.column_types.values():
        if isinstance(types, dict):
            types.pop("_change_snapshot", None)


def loses_rows(life: Life) -> None:
    life.warehouse.answers["where object = '#snapshot of "] = {"rows": 1874}


def unreadable(life: Life) -> None:
    reason = "amount: '12.5' is not exactly a bigint; declare 'decimal(3,1)'"
    life.warehouse.answers["as unreadable, min(_change_error)"] = {"unreadable": 2, "reason": reason}


def has_earlier(life: Life) -> None:
    """Let staging have an earlier snapshot too, in batch 3, which lacks a column."""
    asked = "where object = '#snapshot' and source = 'snapshot'"
    earlier = {**OF_THINGS, "place": 1, "columns": {"ID": "double"}}
    newest = life.warehouse.answers[asked]
    assert isinstance(newest, dict)
    life.warehouse.answers[asked] = [newest, {"record": json.dumps(earlier), "batch": 3}]


AMOUNTS = {"id": "bigint", "amount": "decimal(12,2)"}
ONLY = (
    "only models of datastream_oracle, datastream_mysql, datastream_postgresql, datastream_sqlserver, "
    "spanner_change_stream and bigtable_change_stream take snapshots beside a log so far; stage snapshots of this "
    "source into a staging table of their own"
)
OF_ORACLE = {**OF_THINGS, "position_kind": "scn", "position": "15869128507100"}
OF_SQLSERVER = {**OF_THINGS, "position_kind": "lsn", "position": "0x00000025000007280003"}
OF_SPANNER = {**BESIDE_SPANNER, "columns": THINGS}
BESIDE_EVENTS = "its staging table has a snapshot of events beside the log (batch 5), and "


def cells(**said: Any) -> Shape:
    """Return a model of cells, with a snapshot beside its change stream."""
    return Shape(BIGTABLE, CELLS, CELL_KEY, object="events", snapshot=BESIDE_BIGTABLE, **said)


INTEGERS = ("tinyint", "smallint", "int", "bigint")
REFUSED = [
    Refusal(
        run(living(beside(SPANNER, OF_SPANNER, materialized="history"))),
        [BESIDE + "a history of Spanner cannot take snapshots yet; make the model a current_state or a current_view, "
         "or read another staging table"],
    ),
    Refusal(
        run(living(beside(SPANNER, OF_THINGS))),
        [BESIDE + "the position of the snapshot is a pg_snapshot, but this model needs a read_timestamp; take a "
         "snapshot of the database of the log with snapshot.py, and stage it"],
    ),
    Refusal(
        run(living(cells(materialized="history", arguments=", garbage_collection='apply'"))),
        [BESIDE_EVENTS + "a history of Bigtable cannot take snapshots yet; make the model a current_state or a "
         "current_view, or read another staging table"],
    ),
    Refusal(
        run(living(cells(arguments=", garbage_collection='keep'"))),
        [BESIDE_EVENTS + "a model that keeps what garbage collection deleted cannot take snapshots, which lack it; say "
         "garbage_collection='apply' in a current_state, or read another staging table"],
    ),
    Refusal(
        run(living(cells(as_of={"batch": 2}))),
        [BESIDE_EVENTS + "a run as of an earlier moment does not take snapshots into account yet; run without as_of"],
    ),
    Refusal(run(living(beside(APPEND_TABLE))), [BESIDE + ONLY]),
    Refusal(
        run(living(beside(ORACLE, OF_ORACLE))),
        [BESIDE + "a model that knows rows by their addresses cannot take snapshots, which have none; "
         "say `meta: {row_ids: false}`"],
    ),
    Refusal(
        run(living(beside(snapshot={**OF_THINGS, "position_kind": "scn"}))),
        [BESIDE + "the position of the snapshot is a scn, but this model needs a pg_snapshot; take a snapshot of the "
         "database of the log with snapshot.py, and stage it"],
    ),
    *(
        Refusal(
            run(living(beside(source, snapshot))),
            [BESIDE + f"the position of the snapshot is a {kind}, but this model needs a {needed}; take a snapshot of "
             "the database of the log with snapshot.py, and stage it"],
        )
        for source, snapshot, kind, needed in (
            (MYSQL, OF_THINGS, "pg_snapshot", "binlog"), (POSTGRESQL, OF_MYSQL, "binlog", "pg_snapshot"),
            (SQLSERVER, OF_ORACLE, "scn", "lsn"),
        )
    ),
    Refusal(
        run(living(beside(MYSQL, OF_MYSQL, arguments=", generations=['2026-11-21 00:00:00+00']"))),
        [BESIDE + "the model declares generations, across which a position says nothing; take the generations out, "
         "and stage a new snapshot, which comes after all of them"],
    ),
    Refusal(
        run(living(beside(meta={"partial_records": True}))),
        [BESIDE + "a model with partial_records cannot take snapshots yet; say `meta: {partial_records: false}`, or "
         "read another staging table"],
    ),
    Refusal(
        run(living(beside(as_of={"batch": 2}))),
        [BESIDE + "a run as of an earlier moment does not take snapshots into account yet; run without as_of"],
    ),
    Refusal(
        run(living(beside(arguments=", generations=['2026-11-21 00:00:00+00']"))),
        [BESIDE + "the model declares generations, across which a position says nothing; take the generations out, "
         "and stage a new snapshot, which comes after all of them"],
    ),
    Refusal(
        run(living(beside(table=["shop.orders", "old.orders"]))),
        [BESIDE + "the model reads several tables or objects, but the snapshot is of only one; name one table in the "
         "source macro"],
    ),
    Refusal(
        run(living(beside(snapshot={**OF_THINGS, "key": ["id", "name"]}))),
        [BESIDE + "the key of the snapshot is id, name, while the unique_key of the model is id; name the same "
         "columns"],
    ),
    Refusal(
        run(living(beside(snapshot={**OF_THINGS, "columns": {"ID": "double"}}))),
        [BESIDE + "column id is double in the snapshot and bigint in the model, which loses digits or does not fit; "
         "take a snapshot with that type (--columns), and stage it",
         BESIDE + "the snapshot has no column name, which the model declares; take a snapshot with it, and stage that"],
    ),
    *(
        Refusal(
            run(living(beside(columns=AMOUNTS, snapshot={**OF_THINGS, "columns": {"id": "bigint", "amount": type}}))),
            [BESIDE + f"column amount is {type} in the snapshot and decimal(12,2) in the model, which loses digits or "
             "does not fit; take a snapshot with that type (--columns), and stage it"],
        )
        for type in ("string", "double", "bigint")
    ),
    Refusal(
        run(living(beside(), forgets)),
        ["its SELECT has no column _change_snapshot, by which the records that a snapshot contains are told apart; "
         "pass it on from the source macro"],
    ),
    Refusal(
        run(living(beside(), loses_rows)),
        [f"{STAGING} has 1874 of the 1875 rows of {SNAPSHOT}, and the others would count as deleted; stage a new "
         "snapshot with append.py snapshot, or restore the rows"],
    ),
    *(Refusal(
        run(living(beside(materialized=materialized), unreadable)),
        [f"2 rows of {SNAPSHOT} cannot be read as the model declares them (amount: '...' is not exactly a bigint; "
         "declare '...'), and a rebuild would have none of them; correct the types, or take the snapshot back and "
         "stage a new one"],
    ) for materialized in ("current_state", "current_view")),
    *(
        Refusal(
            run(built(beside(source, snapshot), None, purges={"shop.orders": 2})),
            [f"{SNAPSHOT} of {STAGING} perhaps lacks changes of batch 2, which was purged; take a new snapshot "
             f"{after} or more after that batch was appended, and stage that"],
        )
        for source, snapshot, after in (
            (POSTGRESQL, OF_THINGS, "an hour"), (MYSQL, OF_MYSQL, "a day and an hour"),
            (SQLSERVER, OF_SQLSERVER, "two hours"),
        )
    ),
    Refusal(
        run(living(beside(meta={"base_snapshot": "lake.orders_kept"}), lambda life: (
            life.warehouse.has("lake.orders_kept"), life.warehouse.purges.update({"shop.orders": 2})))),
        [f"{STAGING} was purged and has a snapshot beside the log, batch 5, and a rebuild cannot begin with a base "
         "snapshot and that one both; restore the purged records, or stage the source into a new staging table"],
    ),
    Refusal(
        run(built(beside(), "3")),
        [f"demo.orders__base has applied snapshot 3 beside the log, and {STAGING} has 2; restore the staging table, or "
         f"{REBUILD}"],
    ),
    Refusal(
        run(built(beside(), "2 0001")),
        ["demo.orders__base has applied another snapshot 2 beside the log than the one in batch 5 of "
         f"{STAGING}, which was staged after that one was taken back; {REBUILD}"],
    ),
    *(
        Refusal(
            run(built(beside(materialized="history"), f"{applied} 0001")),
            [f"demo.orders__base has applied other snapshots up to {applied} beside the log than those of {STAGING}, "
             f"of which one was taken back or staged since; {REBUILD}"],
        )
        for applied in (2, 1)
    ),
    Refusal(
        run(living(beside(materialized="history"), has_earlier)),
        [f"{OF_EARLIER}column id is double in the snapshot and bigint in the model, which loses digits or does not "
         f"fit; {TAKE_BACK}", f"{OF_EARLIER}the snapshot has no column name, which the model declares; {TAKE_BACK}"],
    ),
    Refusal(
        run(built(beside(), "1", ledger=(6, 6), base_batch=6, staged=7)),
        ["demo.orders__base has batch 5 without the snapshot in it, as an earlier version of this package applied it; "
         f"{REBUILD}"],
    ),
]  # fmt: skip

NOT_AFTER = (
    "is not known to lie at or after that of the snapshot beside the log, pg_snapshot 18642:18650:18644,18646, before "
    "which changes of shop.orders are not told apart; compare with a newer snapshot, or say `as_of: now`"
)
NOT_AFTER_MYSQLS = NOT_AFTER.replace("pg_snapshot 18642:18650:18644,18646", "binlog mysql-bin.999999:156500")


def compared(position: str, kind: str = "pg_snapshot", **said: Any) -> Callable[[], object]:
    """Return what compares a model beside whose log a snapshot is, with a snapshot at that position."""

    def act() -> None:
        source, of_source = (MYSQL, OF_MYSQL) if kind == "binlog" else (POSTGRESQL, OF_THINGS)
        shape = beside(source, {**of_source, "columns": PARITY_COLUMNS}, columns=PARITY_COLUMNS)
        life = beside_a_snapshot(shape, taken(kind, position))
        life.project.test("parity", "orders", compare_to=OF_THE_SOURCE, key="id", **said)

    return act


PARITY_COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(12,2)"}
EARLIER = ["18642:18649:18644,18646", "18642:18660:18644,18645", "9:9:"]
REFUSED += [
    *(
        Refusal(compared(at), [f"pg_snapshot {at}, the position of lake.orders_source, {NOT_AFTER}"], PARITY)
        for at in EARLIER
    ),
    *(
        Refusal(
            compared(at, "binlog"), [f"binlog {at}, the position of lake.orders_source, {NOT_AFTER_MYSQLS}"], PARITY
        )
        for at in ("mysql-bin.999999:156499", "mysql-bin.000017:999999")
    ),
    Refusal(
        compared("9:9:", as_of={"batch": 2}),
        [f"batch 2, the position of lake.orders_source, {NOT_AFTER}"],
        PARITY,
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_snapshot_that_a_model_cannot_take_is_refused(number: int) -> None:
    REFUSED[number].check()


@pytest.mark.parametrize(
    ("of_snapshot", "declared", "fits"),
    [
        *((one, other, True) for one in INTEGERS for other in INTEGERS),
        *((of, other, False) for number in INTEGERS for other in ("double", "decimal(10,0)")
          for of, other in ((number, other), (other, number))),
        ("decimal(38, 10)", "decimal(38,10)", True), ("decimal(10,2)", "decimal(38,10)", True),
        ("STRING", "string", True),
        ("varchar(10)", "string", True), ("CHAR(3)", "string", True), ("varchar(10)", "date", False),
        ("date", "string", False), ("float", "double", False), ("timestamp", "timestamp_ntz", False),
    ],
)  # fmt: skip
def test_a_column_of_a_snapshot_fits_if_each_of_its_values_can_be_one_of_the_declared_type(
    of_snapshot: str, declared: str, fits: bool
) -> None:
    """Of numbers those that do not fit are quarantined; a cast that rounds, or reads a text, gives other values."""
    assert bool(Life(beside()).project.macros._is_same_type(of_snapshot, declared)) is fits


@pytest.mark.parametrize(
    ("position", "contains"),
    [
        ("18642:18650:18644,18646", True), ("18644:18651:18644", True), ("18650:18650:", True),
        # The end is the first id that the snapshot does not see, whatever became of it.
        ("18650:18700:18650", True), ("18649:18700:18649", False), ("18642:18649:18644,18646", False),
    ],
)  # fmt: skip
def test_a_position_contains_a_snapshot_if_it_sees_every_transaction_that_the_snapshot_sees(
    position: str, contains: bool
) -> None:
    macros = Life(beside()).project.macros
    snapshot = {"position_kind": "pg_snapshot", "position": "18642:18650:18644,18646"}
    assert macros._contains_snapshot({"kind": "pg_snapshot", "value": position}, snapshot) is contains
    assert macros._contains_snapshot({"kind": "batch", "value": position}, snapshot) is False


@pytest.mark.parametrize(
    ("position", "contains"),
    [
        ("mysql-bin.999999:156500", True), ("mysql-bin.999999:156499", False), ("mysql-bin.999999:99999", False),
        ("mysql-bin.1000000:4", True), ("mysql-bin.000017:999999", False),
    ],
)  # fmt: skip
def test_a_place_of_a_binary_log_contains_a_snapshot_at_it_or_before_it(position: str, contains: bool) -> None:
    macros = Life(beside(MYSQL, OF_MYSQL)).project.macros
    snapshot = {"position_kind": "binlog", "position": "mysql-bin.999999:156500"}
    assert macros._contains_snapshot({"kind": "binlog", "value": position}, snapshot) is contains
    assert macros._contains_snapshot({"kind": "pg_snapshot", "value": "9:9:"}, snapshot) is False


@pytest.mark.parametrize(
    ("kind", "position", "taken_at", "contains"),
    [
        ("scn", "1000000", "2026-11-22T10:00:00Z", True),
        ("scn", "999999", "2026-11-22T10:00:00Z", True),
        ("scn", "999998", "2026-11-22T10:00:00Z", False),
        ("lsn", "0x0000002500000728000f", "2026-11-22T10:00:00Z", True),
        ("lsn", "0x00000026000000010001", "2026-11-22T10:00:01Z", True),
        ("lsn", "0x0000002500000728000e", "2026-11-22T10:00:01Z", False),
        # The rows of an LSN may have more than the changes up to it, and those of a later read have that too.
        ("lsn", "0x0000002500000728000F", "2026-11-22T09:59:59Z", False),
    ],
)
def test_a_number_of_a_log_contains_a_snapshot_of_an_earlier_number(
    kind: str, position: str, taken_at: str, contains: bool
) -> None:
    macros = Life(beside()).project.macros
    snapshot = {
        "position_kind": kind, "position": {"scn": "999999", "lsn": "0x0000002500000728000F"}[kind],
        "taken_at": "2026-11-22T10:00:00Z",
    }  # fmt: skip
    later = {"kind": kind, "value": position, "taken_at": f"to_timestamp('{taken_at}')"}
    assert macros._contains_snapshot(later, snapshot) is contains


def test_models_take_snapshots_by_what_orders_their_records() -> None:
    """The properties of a model are not those of before the snapshots: their digest is in tables that exist."""
    macros = Life(beside()).project.macros
    kinds = {
        source: [macros.kind_of_snapshots(order) for order in orders_of(source)]
        for source in (POSTGRESQL, MYSQL, ORACLE, SQLSERVER)
    }
    assert kinds == {POSTGRESQL: ["pg_snapshot"], MYSQL: ["binlog"], ORACLE: ["scn"], SQLSERVER: ["lsn"]}
    assert orders_of(MYSQL) == [{"coordinates": ["log_file", "log_position"], "generations": []}]


def orders_of(source: str) -> list[Any]:
    life = Life(thing(source))
    node = life.project.node("orders")
    return list(life.project.macros.model_inputs(node)["objects"].values())


def test_the_rows_of_a_snapshot_beside_the_log_lie_before_a_position_that_contains_it() -> None:
    macros = Life(beside(MYSQL, OF_MYSQL)).project.macros
    position = {"kind": "binlog", "value": "mysql-bin.1000000:4", "from": "f", "to": "t", "contains_snapshot": "s'1"}
    assert macros.side_of(position, {"objects": {}}).startswith(
        r"case when _change_id = 's\'1' or left(_change_place, 1) = '-' or if(split_part(_change_place, '/', 2) = '0', "
    )


def test_a_run_sees_the_snapshots_up_to_its_cut_and_that_of_its_cut() -> None:
    """The statement is run as it is, by SQLite."""
    asked = Life(beside()).project.macros._staged_snapshots(Relation("lake", "shop_changes"), 5)
    with sqlite3.connect(":memory:") as database:
        database.execute("attach ':memory:' as lake")
        database.execute("create table lake.shop_changes (object, source, record, batch)")
        rows = [("#snapshot", "snapshot", f"the snapshot of batch {batch}", batch) for batch in (4, 5, 6)]
        rows += [("#snapshot", "datastream", "a record", 5), ("#snapshot of shop.orders", "snapshot", "a row", 5)]
        database.executemany("insert into lake.shop_changes values (?, ?, ?, ?)", rows)
        assert [batch for _, batch in database.execute(asked)] == [4, 5]


def test_names_of_key_columns_have_no_case() -> None:
    shape = beside(columns={"ID": "bigint", "name": "string"}, key="ID", snapshot={**OF_THINGS, "key": ["Id"]})
    life = Life(shape)
    assert life.statements("first run")
    assert life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"] == "2 0000"


def test_of_a_current_row_earlier_snapshots_do_not_count() -> None:
    life = Life(beside())
    has_earlier(life)
    assert life.statements("first run") == Life(beside()).statements("first run")
    assert life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"] == "2 0000"


def test_a_history_names_the_earlier_snapshots_that_it_has_applied_too() -> None:
    names = []
    for places in (1, 2):
        life = Life(beside(materialized="history"))
        if places == 2:
            has_earlier(life)
            asked = "where object = '#snapshot' and source = 'snapshot'"
            rows = life.warehouse.answers[asked]
            assert isinstance(rows, list)
            rows[1] = {"record": json.dumps({**OF_THINGS, "place": 1, "snapshot": "0001"}), "batch": 3}
        assert life.statements("first run")
        names.append(life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"])
    assert names[0] == "2 0000"
    assert names[1].startswith("2 0000 ") and len(names[1]) == len("2 0000 ") + 32


def test_without_a_snapshot_a_model_asks_what_it_asked_before() -> None:
    """Also where staging has snapshots of other tables."""
    plain, beside_others = Life(thing(POSTGRESQL)), Life(beside(snapshot={**OF_THINGS, "object": "shop.others"}))
    beside_others.warehouse.staged = plain.warehouse.staged
    assert plain.statements("first run") == beside_others.statements("first run")


def test_a_rebuild_without_the_snapshot_forgets_that_it_was_applied() -> None:
    """A table of Iceberg that is replaced keeps its properties, and the next run would ask for the snapshot again."""
    life = Life(beside())
    life.statements("first run")
    assert life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"] == "2 0000"
    del life.warehouse.answers["where object = '#snapshot' and source = 'snapshot'"]
    life.warehouse.properties["lake.shop_changes"].pop("reconcile.snapshot_append")
    life.statements("rebuild")
    assert life.warehouse.properties["demo.orders__base"]["reconcile.snapshot_applied"] == ""
    life.statements("nothing new")


@pytest.mark.parametrize(
    ("position", "asks"), [("2147483640:2147483647:", False), ("2147483640:2147483648:2147483641", True)]
)
def test_where_the_ids_of_a_log_are_ambiguous_a_change_of_long_before_is_told_by_its_time(
    position: str, asks: bool
) -> None:
    """Below 2^31 no id of before can be that of a later transaction, and the times of the log are not relied on."""
    (fold,) = [sql for sql in Life(beside(snapshot={**OF_THINGS, "position": position})).statements("first run")
               if sql.startswith("cache table reconcile_changes")]  # fmt: skip
    taken_at = "to_timestamp('2026-11-21T11:33:13.215524000Z')"
    assert (f" or _change_time < {taken_at} - interval '1 day')" in fold) is asks
    assert f"'0', _change_time <= {taken_at} + interval '1 hour', (case" in fold


def test_a_staging_table_that_was_copied_by_hand_has_its_snapshots() -> None:
    """Such a copy has lost its properties, and a rebuild without the snapshot would be wrong in silence."""
    kept, copied = Life(beside()), Life(beside())
    del copied.warehouse.properties[STAGING]["reconcile.snapshot_append"]
    del copied.warehouse.properties[STAGING]["reconcile.last_batch"]
    assert copied.statements("first run") == kept.statements("first run")
