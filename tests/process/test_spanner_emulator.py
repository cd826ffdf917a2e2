"""The reader against Google's emulator, whose partitions split, merge and move all the time; without Spark."""

import itertools
import json
import time
from collections.abc import Iterator

import pytest
from reconcile_jobs.generation.observations import Observations
from reconcile_jobs.generation.spanner_records import add_data_change, of_column_types
from reconcile_jobs.generation.tables import tables_of
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.spanner.backfill import read_rows, shares_of, watched_tables
from reconcile_jobs.spanner.queries import Client
from reconcile_jobs.spanner.windows import Leaf, find_change_stream, list_partitions, read_partitions
from reconcile_jobs.timestamps import as_text
from spanner_emulator import (
    EVERY_TYPE,
    TABLES,
    Database,
    Emulator,
    Workload,
    ddl,
    delete,
    events_of,
    folded,
    in_database,
    write,
)

numbers = itertools.count()
both_dialects = pytest.mark.parametrize("postgresql", [False, True], ids=["googlesql", "postgresql"])


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    running = Emulator(partition_seconds=1)
    yield running
    running.stop()


@pytest.fixture
def database(emulator: Emulator, postgresql: bool) -> Iterator[Database]:
    made = emulator.database(f"shop-{next(numbers)}", postgresql, *ddl(postgresql))
    yield made
    made.client.close()


def read_window(database: Database, start: int, end: int) -> tuple[list[str], int, int]:
    """Return the records of a window, and how many of its partitions were roots and how many were read in all."""
    with Client(database.name) as client:
        stream = find_change_stream(client, "everything")
        listing = list_partitions(client, stream, start, end)
        alive = set(list_partitions(client, stream, end, end).tokens)
        records, leaves = [], set()
        for found in read_partitions(client, stream, list(listing.tokens.items()), end, alive):
            if isinstance(found, Leaf):
                leaves.add(found.token)
            else:
                records.append(found[1].json)
        assert leaves == alive
        return records, len(listing.tokens), len(leaves - set(listing.tokens))


@both_dialects
def test_windows_hold_each_change_once_while_partitions_come_and_go(database: Database):
    workload = Workload(database, seed=1)
    start = database.client.now()
    workload.start(pause=0.002)
    records: list[str] = []
    born = 0
    for _ in range(5):
        time.sleep(0.8)
        end = database.client.now()
        found, _, new = read_window(database, start, end)
        assert all(as_text(start)[:26] <= json.loads(text)["commit_timestamp"] <= as_text(end) for text in found)
        records += found
        born += new
        start = end + 1
    workload.stop()
    records += read_window(database, start, database.client.now())[0]
    assert workload.transactions > 200
    assert born > 3, "the partitions did not change: this shows nothing"
    assert events_of(records) == workload.events
    assert folded(records) == in_database(database) == workload.state


@both_dialects
def test_backfill_reads_the_rows_as_they_were_at_one_moment(database: Database):
    workload = Workload(database, seed=2)
    for _ in range(150):
        workload.step()
    moment = database.client.now()
    before = {table: dict(rows) for table, rows in workload.state.items()}
    for _ in range(50):
        workload.step()
    with Client(database.name) as client:
        stream = find_change_stream(client, "everything")
        tables = watched_tables(client, stream)
        assert {table.name for table in tables} == set(TABLES)
        records = [text for share in shares_of(client, tables, moment) for text in read_rows(client, share, moment)]
    assert {json.loads(text)["commit_timestamp"] for text in records} == {as_text(moment)}
    assert folded(records) == before
    # Together with the changes since, it is what is there now.
    changes, _, _ = read_window(database, moment, database.client.now())
    assert folded(records + changes) == in_database(database)


@both_dialects
def test_types_and_keys_of_generated_models_are_those_of_the_tables(database: Database):
    """By the records of changes alone, and by those of the backfill alone."""
    moment = database.client.now()
    values = {name: some[0] for name, (_, _, some) in EVERY_TYPE.items()}
    database.commit(write("insert", "AllTypes", {"Id": "1"} | values))
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "2"}))
    database.commit(write("insert", "OrderLines", {"OrderId": "1", "LineNo": "2", "Amount": None}))
    changes, _, _ = read_window(database, moment, database.client.now())
    now = database.client.now()
    with Client(database.name) as client:
        tables = watched_tables(client, find_change_stream(client, "everything"))
        backfill = [text for share in shares_of(client, tables, now) for text in read_rows(client, share, now)]
    numeric = "string" if database.postgresql else "decimal(38,9)"
    scalars = {
        "bool": "boolean", "int64": "bigint", "float64": "double", "float32": "float", "numeric": numeric,
        "string": "string", "bytes": "binary", "date": "date", "timestamp": "timestamp", "json": "string",
    }  # fmt: skip
    expected = {f"c_{name}": of for name, of in scalars.items()}
    expected |= {f"a_{name}": f"array<{of}>" for name, of in scalars.items()}
    for records in (changes, backfill):
        found = Observations()
        for text in records:
            add_data_change(found, text, json.loads(text)["table_name"], 1)
        declared, refusals = tables_of(found, [of_column_types(found)])
        assert refusals == [] and [table.label for table in declared] == ["AllTypes", "OrderLines", "Orders"]
        assert [table.key for table in declared] == [("Id",), ("OrderId", "LineNo"), ("OrderId",)]
        types = [{column.name: column.declaration.data_type for column in table.columns} for table in declared[:2]]
        assert types == [{"Id": "string"} | expected, dict.fromkeys(("OrderId", "LineNo", "Amount"), "bigint")]
        assert [*types[0]] == ["Id", *EVERY_TYPE]


@both_dialects
def test_backfill_and_change_records_have_one_form(database: Database):
    moment = database.client.now()
    for number, values in enumerate(zip(*(some * 2 for _, _, some in _every_type()), strict=False)):
        database.commit(write("insert", "AllTypes", {"Id": str(number)} | dict(zip(_names(), values, strict=True))))
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "2"}))
    database.commit(write("insert", "OrderLines", {"OrderId": "1", "LineNo": "2", "Amount": None}))
    with Client(database.name) as client:
        stream = find_change_stream(client, "everything")
        now = client.now()
        rows = [
            json.loads(text)
            for share in shares_of(client, watched_tables(client, stream), now)
            for text in read_rows(client, share, now)
        ]
    changes = [json.loads(text) for text in read_window(database, moment, now)[0]]
    assert len(changes) > 4

    def mods(records: list[dict[str, object]]) -> list[str]:
        return sorted(json.dumps([r[("table_name")], m], sort_keys=True) for r in records for m in r[("mods")])  # type: ignore[attr-defined]

    assert mods(rows) == mods(changes)
    for name in TABLES:
        of_rows, of_changes = (
            next(r["column_types"] for r in records if r["table_name"] == name) for records in (rows, changes)
        )
        assert of_rows == of_changes
    assert all(set(row) - {"backfill"} == set(changes[0]) for row in rows)


def _every_type() -> list[tuple[str, str, list[object]]]:
    from spanner_emulator import EVERY_TYPE

    return list(EVERY_TYPE.values())


def _names() -> list[str]:
    from spanner_emulator import EVERY_TYPE

    return list(EVERY_TYPE)


@both_dialects
def test_only_what_the_stream_watches_is_backfilled(emulator: Emulator, postgresql: bool):
    tables = ddl(postgresql)[:-1]
    watched = 'FOR "Orders"("Note"), "OrderLines"' if postgresql else "FOR Orders(Note), OrderLines"
    database = emulator.database(
        f"shop-{next(numbers)}",
        postgresql,
        *tables,
        f"CREATE CHANGE STREAM part {watched}",
        "CREATE CHANGE STREAM nothing",
    )
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "2", "Note": "x"}))
    database.commit(write("insert", "AllTypes", {"Id": "1"}))
    with Client(database.name) as client:
        stream = find_change_stream(client, "part")
        found = watched_tables(client, stream)
        assert {table.name: [column.name for column in table.columns] for table in found} == {
            "Orders": ["OrderId", "Note"],
            "OrderLines": ["OrderId", "LineNo", "Amount"],
        }
        moment = client.now()
        (record,) = [
            json.loads(text) for share in shares_of(client, found, moment) for text in read_rows(client, share, moment)
        ]
        assert record["mods"] == [{"keys": {"OrderId": "1"}, "new_values": {"Note": "x"}, "old_values": {}}]
        with pytest.raises(UsageError, match="watches no table"):
            watched_tables(client, find_change_stream(client, "nothing"))


@both_dialects
def test_what_cannot_be_read_is_one_sentence(database: Database):
    with Client(database.name) as client:
        stream = find_change_stream(client, "everything")
        for moment in (0, database.client.now() + 3600 * 10**9):
            with pytest.raises(UsageError, match="retention period") as refused:
                list_partitions(client, stream, moment, moment)
            assert "\n" not in str(refused.value)
        with pytest.raises(UsageError, match="There is no change stream other"):
            find_change_stream(client, "other")
    elsewhere = type(database.name)("test-project", "test-instance", "nowhere", database.name.emulator)
    with Client(elsewhere) as client, pytest.raises(UsageError, match=r"There is no database.*nowhere"):
        find_change_stream(client, "everything")


@both_dialects
def test_a_deleted_and_inserted_row_are_two_records(database: Database):
    start = database.client.now()
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "2", "Note": "x"}))
    database.commit(delete("Orders", "1"))
    database.commit(write("insert", "Orders", {"OrderId": "1", "Total": "3"}))
    records, _, _ = read_window(database, start, database.client.now())
    kinds = [json.loads(text)["mod_type"] for text in sorted(records, key=lambda t: json.loads(t)["commit_timestamp"])]
    assert kinds == ["INSERT", "DELETE", "INSERT"]
    assert folded(records)["Orders"] == {("1",): {"Total": "3", "Note": None}}
