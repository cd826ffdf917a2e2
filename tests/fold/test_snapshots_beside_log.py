"""Snapshots beside a log, through the SQL that users get: whatever was lost, and in whatever order the rest comes."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from datastream import READ_METHODS, Staged, event
from memory import Memory
from mortal_memory import MortalMemory
from plain_dbt import CompilerError, PlainProject
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from shop import different, records
from snapshot_model import (
    UNCERTAINTY,
    Backfill,
    BinaryLog,
    Change,
    ChangeNumbers,
    Database,
    LateCapture,
    Record,
    Snapshot,
    Version,
    fold,
    versions,
)
from true_versions import Told, micros, replayed, shown, told_of
from truth import CAPTURE, DELIVERIES, counted, declared, rows_of_snapshot, true_rows
from truth import COLUMNS as COLUMNS_OF_CAPTURE
from truth import KEYS as KEYS_OF_CAPTURE

TAKEN = datetime(2026, 11, 21, 12, tzinfo=UTC)
COLUMNS = {"id": "bigint", "name": "string", "ratio": "double"}
MODELS = {
    "things": "materialized='current_state'",
    "things_fresh": "materialized='current_state', meta={'fresh': true}",
    "things_view": "materialized='current_view'",
}


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


BUCKETS = "macros/materializations/current_state/differing_buckets.sql"
# What large snapshots are: compared with the base table by checksums of buckets, here of about one row each.
BY_BUCKETS = {BUCKETS: {"return(100000)": "return(0)"}}
by_buckets_too = pytest.mark.parametrize("replaced", [None, BY_BUCKETS], ids=["row by row", "by buckets"])
KINDS = {"postgresql": "pg_snapshot", "mysql": "binlog", "oracle": "scn", "sqlserver": "lsn"}


def binlog(place: int) -> tuple[str, int]:
    """Return a file of a binary log and a place in it. As texts, neither of them is in the order of the places."""
    return f"mysql-bin.{999_998 + place // 10}", 95 + place % 10


def lsn(place: int) -> tuple[int, int, int]:
    """Return the three numbers of an LSN of SQL Server."""
    return 0x25 + place // 16, 0xF8 + place % 16, 3


class Things:
    """Models of a table, its log, and snapshots beside the log."""

    def __init__(
        self, memory: Memory, name: str, models: Mapping[str, str] = MODELS,
        replaced: Mapping[str, Mapping[str, str]] | None = None, source: str = "postgresql",
    ) -> None:  # fmt: skip
        self.memory, self.schema, self.staging = memory, f"beside_{name}", f"beside_{name}_lake.changes"
        self.source = source
        self.project = memory.project(self.schema, replaced)
        self.project.source(f"beside_{name}_lake", "changes")
        self.models = list(models)
        for model, config in models.items():
            said = config
            if source == "oracle":  # addresses of rows are what no snapshot has
                said = said.replace("meta={", "meta={'row_ids': false, ")
                said += "" if "meta={" in said else ", meta={'row_ids': false}"
            self.project.model(
                model,
                f"{{{{ config({said}, unique_key='id') }}}}\n"
                f"{{{{ reconcile.datastream_{source}(source('lake', 'changes'), 'shop.things') }}}}",
                COLUMNS,
                data_tests=["ledger_balances"],
            )
        self.batches, self.snapshots = 0, 0

    def append(self, *rows: Staged | str, hours: float = 0) -> None:
        """Append a batch, so many hours after the snapshots were taken."""
        self.batches += 1
        staged = [Staged(row, "shop.things", 0) if isinstance(row, str) else row for row in rows]
        at = f"timestamp'{text(TAKEN + timedelta(hours=hours))}'"
        self.memory.stage(self.staging, [row._replace(batch=self.batches) for row in staged], at=at)
        if self.snapshots:  # which the job notes with the table
            properties = {"reconcile.snapshot_append": "beside-0/0/0"}
            self.memory.keep(self.staging, self.memory.table(self.staging), properties)

    def snapshot(self, rows: Mapping[int, Any], position: str, **said: Any) -> list[Staged]:
        """Return what a snapshot is in staging: rows by their ids, each a name or the texts of its columns."""
        self.snapshots += 1
        cut = {
            "number": self.snapshots, "object": "shop.things", "place": self.snapshots, "snapshot": f"s{position}",
            "position_kind": KINDS[self.source], "position": position, "uncertainty": "1 hour", "key": ["id"],
            "taken_at": text(TAKEN + timedelta(seconds=self.snapshots)), "columns": COLUMNS, "rows": len(rows), **said,
        }  # fmt: skip
        made = [Staged(json.dumps(cut), "#snapshot", 0, source="snapshot")]
        for id_, row in rows.items():
            values = {"id": str(id_), **(row if isinstance(row, dict) else {"name": row, "ratio": "0.5"})}
            made.append(Staged(json.dumps({"row": values}), "#snapshot of shop.things", 0, source="snapshot"))
        return made

    def run(self, **flags: Any) -> str:
        return self.project.run(*self.models, **flags)[self.models[0]]

    def rows(self, model: str = "things") -> dict[int, str]:
        rows = self.memory.table(f"{self.schema}.{model}")
        rows = (rows.where("not _deleted") if model.endswith("__base") else rows).collect()
        found = {row.id: row.name for row in rows}
        assert len(found) == len(rows), "a key is there twice"
        return found

    def versions(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for row in self.memory.table(f"{self.schema}.things").orderBy("id", "_change_sequence").collect():
            found.setdefault(row.id, []).append(row.name + ("" if row.is_current else " ended"))
        return found

    def balances(self) -> bool:
        return not self.project.failing_tests("things")

    def account(self, kind: str = "snapshot") -> dict[str, int]:
        """Return what the newest row of a kind counts in the ledger, but what is 0."""
        rows = self.memory.table(f"{self.schema}.reconcile_ledger").where(
            f"kind = '{kind}' and relation = '{self.schema}.things'"
        )
        newest = rows.orderBy("entry").collect()[-1].asDict()
        counts = ("delivered", "applied", "superseded", "duplicate", "quarantined", "inserted", "updated", "deleted")
        return {name: newest[name] for name in counts if newest[name]}


def change(
    id_: int,
    name: str | None,
    place: int,
    transaction: int | None,
    backfill: datetime | None = None,
    ratio: float = 0.5,
    committed: datetime = TAKEN - timedelta(hours=2),
    source: str = "postgresql",
) -> str:
    """Return a record of a change; without a name, a delete; `backfill`: when the row was read, if it is of one."""
    kind = "DELETE" if name is None else "UPDATE"
    said: dict[str, Any] = {"lsn": f"0/{place:X}", "tx_id": None if transaction is None else str(transaction)}
    if source == "mysql":
        said = dict(zip(("log_file", "log_position"), binlog(place), strict=True))
    elif source == "oracle":
        said = {"scn": 999_990 + place, "rs_id": f" 0x{7 - place % 7:06x}.00000001.0010 ", "ssn": 0}
    elif source == "sqlserver":
        file, block, slot = lsn(place)
        kind, said = kind.replace("UPDATE", "UPDATE-INSERT"), {"lsn": f"{file:08x}:{block:08x}:{slot:04x}"}
    more = {"read_method": READ_METHODS[source][1], "read_timestamp": text(backfill)} if backfill else {}
    at = text(backfill or committed)
    return event(
        source, {"id": id_, "name": name, "ratio": ratio}, "INSERT" if backfill else kind,
        metadata={} if backfill else said, source_timestamp=at, **more,
    )  # fmt: skip


def of_mysql(id_: int, name: str | None, place: int, **said: Any) -> str:
    """Return a record of a change at a place of a binary log."""
    return change(id_, name, place, None, source="mysql", **said)


def position_at(place: int, source: str = "mysql") -> str:
    """Return a place of a log as the position of a snapshot."""
    if source == "oracle":
        return str(999_990 + place)
    if source == "sqlserver":
        file, block, slot = lsn(place)
        return f"0x{file:08X}{block:08X}{slot:04X}"
    name, offset = binlog(place)
    return f"{name}:{offset}"


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


# --- what a snapshot does --------------------------------------------------------------------------------------------


@by_buckets_too
def test_a_gap_is_repaired_deletes_included_and_late_changes_of_before_change_nothing(
    memory: Memory, replaced: Any
) -> None:
    things = Things(memory, f"gap_{bool(replaced)}", MODELS, replaced)
    before = [change(1, "a", 1, 1), change(2, "b", 2, 1), change(3, "c", 3, 1)]
    things.append(*before, change(5, "e", 4, 9), change(6, "f", 5, 9), hours=-0.5)
    things.run()
    assert things.rows() == {1: "a", 2: "b", 3: "c", 5: "e", 6: "f"}

    # Transaction 9 was open: what it has written lies before the snapshot in the log, and is not in it.
    things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "old"}, "9:12:9"))
    assert things.run().endswith("; repaired at pg_snapshot 9:12:9: 1 inserted, 1 updated, 1 deleted")
    repaired = {1: "a", 2: "B", 4: "d", 5: "e", 6: "f"}
    assert [things.rows(model) for model in MODELS] == [repaired] * 3
    counted = {"delivered": 4, "applied": 3, "superseded": 1, "duplicate": 1, "inserted": 1, "updated": 1, "deleted": 1}
    assert things.account() == counted
    assert things.balances()

    late = [change(3, "late", 6, 2), change(1, "late", 7, 2), change(7, "late", 8, 2), change(2, None, 9, 2)]
    things.append(*late, *before, hours=1)
    things.run()
    assert [things.rows(model) for model in MODELS] == [repaired] * 3
    assert things.account("apply") == {"delivered": 7, "superseded": 7}

    things.append(change(3, "new", 20, 12), change(1, None, 21, 12), change(4, "D", 22, 13), hours=2)
    things.run()
    after = {2: "B", 3: "new", 4: "D", 5: "e", 6: "f"}
    assert [things.rows(model) for model in MODELS] == [after] * 3
    assert things.run() == "nothing new"
    assert things.balances()
    things.run(full_refresh=True)
    assert [things.rows(model) for model in MODELS] == [after] * 3
    assert things.balances()
    memory.delete(f"{things.schema}.reconcile_ledger", "kind <> 'rebuild' or true")
    things.run()
    assert things.rows() == after
    assert things.account("replay")["delivered"] == 15


def test_a_history_shows_what_a_snapshot_knows_and_the_log_lost(memory: Memory) -> None:
    things = Things(memory, "past", OF_HISTORY)
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), change(3, "c", 3, 1), change(5, "e", 4, 9), hours=-0.5)
    things.run()

    # Transaction 9 was open: its change lies before the snapshot in the log, and is not in it.
    things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "old"}, "9:12:9"))
    assert things.run().endswith("; repaired at pg_snapshot 9:12:9: 2 inserted, 1 updated, 1 deleted")
    repaired = {1: ["a"], 2: ["b ended", "B"], 3: ["c ended"], 4: ["d"], 5: ["old ended", "e"]}
    assert things.versions() == repaired
    assert things.account() == {"delivered": 4, "applied": 4, "duplicate": 1, "inserted": 2, "updated": 1, "deleted": 1}
    assert things.balances()

    # What was lost comes late: the row of the snapshot tells nothing more. And changes of which nothing was known.
    things.append(change(2, "B", 5, 2), change(1, "late", 6, 2), change(3, None, 7, 2), hours=1)
    things.run()
    repaired |= {1: ["a ended", "late ended", "a"]}
    assert things.versions() == repaired
    assert things.account("apply") == {"delivered": 3, "applied": 3, "updated": 2, "deleted": 1}
    assert things.balances()
    assert things.run() == "nothing new"

    things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "e"}, "20:20:"))
    assert things.run().endswith(": 0 inserted, 0 updated, 0 deleted")
    things.append(change(1, "later", 30, 21), change(2, "b2", 8, 3), hours=2)
    things.run()
    repaired |= {1: ["a ended", "late ended", "a ended", "later"], 2: ["b ended", "B ended", "b2 ended", "B"]}
    assert things.versions() == repaired
    before = sorted(map(str, memory.rows(f"{things.schema}.things__base")))
    things.run(full_refresh=True)
    assert things.versions() == repaired
    assert sorted(map(str, memory.rows(f"{things.schema}.things__base"))) == before
    assert things.balances()


@pytest.mark.matrix
def test_a_repair_dies_before_each_statement_and_the_next_one_makes_it_good(spark: SparkSession) -> None:
    with MortalMemory(spark) as memory:
        things = Things(memory, "dies")
        things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), change(5, "e", 4, 9), hours=-0.5)
        things.run()
        things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "old"}, "9:12:9"))

        def check() -> None:
            assert [things.rows(model) for model in MODELS] == [{1: "a", 2: "B", 4: "d", 5: "e"}] * 3
            assert things.balances()

        assert memory.die_before_each("snapshot beside a log", things.run, check) >= 4, memory.written


@pytest.mark.matrix
def test_a_repair_of_a_history_dies_before_each_statement_and_the_next_one_makes_it_good(spark: SparkSession) -> None:
    """And the range after it: of that the snapshot's rows are removed that tell nothing more."""
    with MortalMemory(spark) as memory:
        things = Things(memory, "history_dies", OF_HISTORY)
        things.append(
            change(1, "a", 1, 1), change(2, "b", 2, 1), change(3, "c", 3, 1), change(5, "e", 4, 9), hours=-0.5
        )
        things.run()
        things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "old"}, "9:12:9"))
        expected = {1: ["a"], 2: ["b ended", "B"], 3: ["c ended"], 4: ["d"], 5: ["old ended", "e"]}

        def check() -> None:
            assert things.versions() == expected
            assert things.balances()

        assert memory.die_before_each("snapshot beside the log of a history", things.run, check) >= 4, memory.written
        things.append(change(2, "B", 5, 2), change(1, "late", 6, 2), change(3, None, 7, 2), hours=1)
        expected |= {1: ["a ended", "late ended", "a"]}
        assert memory.die_before_each("late changes beside a snapshot", things.run, check) >= 4, memory.written


def test_a_snapshot_that_is_equal_writes_nothing(memory: Memory) -> None:
    things = Things(memory, "equal", {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), change(3, "c", 3, 1), change(3, None, 4, 1), hours=-9)
    things.run()
    tables = [f"{things.schema}.things__{name}" for name in ("base", "quarantine")]
    before = [memory.version(table) for table in tables]
    for number in (5, 6):
        things.append(*things.snapshot({1: "a", 2: "b"}, f"{number}:{number}:"))
        assert "repaired at pg_snapshot" in things.run()
        assert [memory.version(table) for table in tables] == before
        assert things.account() == {"delivered": 2, "duplicate": 2}
    things.append(change(1, "late", 9, 2), change(2, "B", 11, 7))
    things.run()
    assert things.rows() == {1: "a", 2: "B"}
    # -0.0 is another value than 0.0.
    things.append(*things.snapshot({1: {"name": "a", "ratio": "-0.0"}, 2: {"name": "B", "ratio": "NaN"}}, "8:8:"))
    things.run()
    things.append(*things.snapshot({1: {"name": "a", "ratio": "0.0"}, 2: {"name": "B", "ratio": "NaN"}}, "9:9:"))
    things.run()
    assert things.account() == {"delivered": 2, "applied": 1, "updated": 1, "duplicate": 1}
    assert things.balances()


def test_a_model_begins_from_a_copy_that_comes_before_any_record(memory: Memory) -> None:
    things = Things(memory, "copy")
    things.append(*things.snapshot({1: "a", 2: "b", 3: "c"}, "5:5:"))
    things.run()
    assert things.rows() == {1: "a", 2: "b", 3: "c"}
    assert things.balances()
    things.append(change(1, "late", 1, 4), change(2, "B", 9, 5), change(3, None, 10, 6), change(4, "d", 11, 6))
    things.run()
    assert [things.rows(model) for model in MODELS] == [{1: "a", 2: "B", 4: "d"}] * 3
    assert things.balances()


def test_backfill_rows_that_were_read_long_after_the_snapshot_are_newer(memory: Memory) -> None:
    things = Things(memory, "backfill")
    things.append(*things.snapshot({1: "a", 2: "b"}, "5:5:"))
    later, earlier = TAKEN + timedelta(hours=2), TAKEN - timedelta(hours=1)
    things.append(change(1, "A", 0, 0, later), change(2, "old", 0, 0, earlier), change(3, "c", 0, 0, later))
    things.run()
    expected = {1: "A", 2: "b", 3: "c"}
    assert [things.rows(model) for model in MODELS] == [expected] * 3
    things.append(change(1, "new", 9, 7))
    things.run()
    assert [things.rows(model) for model in MODELS] == [{**expected, 1: "new"}] * 3


def test_backfill_rows_that_are_older_than_their_time_do_not_win_over_the_snapshot(memory: Memory) -> None:
    """Their clock is fast, or their query began before the snapshot was taken."""
    things = Things(memory, "stale_backfill")
    stamped = TAKEN + timedelta(seconds=31)
    stale = [change(1, "old", 0, 0, stamped), change(2, "gone", 0, 0, stamped), change(3, "old", 0, 0, stamped)]
    things.append(change(1, "new", 1, 2), change(2, None, 2, 2), *stale)
    things.run()
    assert things.rows() == {1: "new", 3: "old"}
    things.append(*things.snapshot({1: "new", 3: "new"}, "5:5:"))
    things.run()
    repaired = {1: "new", 3: "new"}
    assert [things.rows(model) for model in MODELS] == [repaired] * 3
    # And when they come after the snapshot, with a change that is later than the snapshot.
    things.append(*stale, change(3, "newer", 9, 6), hours=1)
    things.run()
    repaired[3] = "newer"
    assert [things.rows(model) for model in MODELS] == [repaired] * 3
    assert things.balances()
    things.run(full_refresh=True)
    assert [things.rows(model) for model in MODELS] == [repaired] * 3


def test_a_snapshot_of_which_a_row_cannot_be_read_is_refused(memory: Memory) -> None:
    things = Things(memory, "unreadable")
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), hours=-3)
    things.run()
    before = {1: "a", 2: "b"}
    rows = {1: {"name": "A", "ratio": "one half"}, 2: {"name": "B", "ratio": "0.5"}}
    things.append(*things.snapshot(rows, "5:5:"))
    said = (
        r"1 rows of the snapshot of shop.things in batch 2 cannot be read as the model declares them "
        r"\(ratio: '...' is not exactly a double; declare string\), and a rebuild would have none of them"
    )
    for model in MODELS:
        with pytest.raises(CompilerError, match=said):
            things.project.run(model)
        assert things.rows(model) == before
    with pytest.raises(CompilerError, match=said):
        things.project.run("things", full_refresh=True)
    assert things.rows() == before
    things.append(*things.snapshot({0: {"id": "x", "name": "A", "ratio": "1"}}, "6:6:"))
    with pytest.raises(CompilerError, match=r"1 rows of the snapshot of shop.things in batch 3 cannot be read .*id: "):
        things.run()
    assert things.rows() == before
    things.append(*things.snapshot({1: "A"}, "7:7:"))
    things.run()
    assert [things.rows(model) for model in MODELS] == [{1: "A"}] * 3
    assert things.balances()


def test_a_snapshot_of_which_rows_are_missing_in_staging_deletes_nothing(memory: Memory) -> None:
    things = Things(memory, "missing", {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1))
    things.run()
    things.append(*things.snapshot({1: "a", 2: "b"}, "5:5:")[:-1])
    with pytest.raises(CompilerError, match=r"has 1 of the 2 rows of the snapshot of shop.things in batch 2"):
        things.run()
    assert things.rows() == {1: "a", 2: "b"}


def test_a_change_that_names_no_transaction_is_quarantined_beside_a_snapshot(memory: Memory) -> None:
    things = Things(memory, "no_transaction", {"things": MODELS["things"]})
    things.append(*things.snapshot({1: "a"}, "5:5:"))
    things.append(change(1, "b", 1, None))
    things.run()
    assert things.rows() == {1: "a"}
    (row,) = memory.rows(f"{things.schema}.things__quarantine")
    assert row._change_error.startswith("the record names no transaction, by which the snapshot beside the log tells")


def test_a_later_change_whose_transaction_has_an_id_of_before_is_quarantined(memory: Memory) -> None:
    """The log has 32 bits of an id, which begin anew."""
    things = Things(memory, "ids_anew", {"things": MODELS["things"]})
    things.append(*things.snapshot({1: "a", 2: "b"}, "5:5:"))
    later = TAKEN + timedelta(days=2)
    things.append(change(1, "b", 9, 4, committed=later), change(2, "B", 10, 6, committed=later), hours=48)
    things.run()
    assert things.rows() == {1: "a", 2: "B"}
    (row,) = memory.rows(f"{things.schema}.things__quarantine")
    assert row._change_error.startswith(
        "the snapshot beside the log contains the transaction by its id, and the change"
    )
    assert things.balances()


def test_a_change_of_two_billion_transactions_before_the_snapshot_is_not_taken_for_a_later_one(memory: Memory) -> None:
    """A rebuild reads it together with the snapshot, and 32 bits of its id are those of a later transaction."""
    things = Things(memory, "old_ids")
    long_ago = TAKEN - timedelta(days=900)
    things.append(
        change(1, "old", 1, 5, committed=long_ago),
        change(2, "gone", 2, 6, committed=long_ago),
        change(3, "c", 3, 2_999_999_999),
        hours=-900 * 24,
    )
    things.run()
    things.append(*things.snapshot({1: "a", 3: "c"}, "3000000000:3000000000:"))
    things.append(change(3, "C", 9, 3_000_000_001))
    things.run()
    expected = {1: "a", 3: "C"}
    assert [things.rows(model) for model in MODELS] == [expected] * 3
    things.run(full_refresh=True)
    assert [things.rows(model) for model in MODELS] == [expected] * 3
    assert things.balances()


def test_a_snapshot_that_comes_in_place_of_one_that_was_taken_back_is_not_taken_for_it(memory: Memory) -> None:
    things = Things(memory, "taken_back", {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), hours=-3)
    things.append(*things.snapshot({1: "a"}, "5:5:"))
    things.append(change(3, "c", 9, 6))
    things.run()
    assert things.rows() == {1: "a", 3: "c"}
    taken_back = memory.table(things.staging)
    memory.keep(
        things.staging,
        taken_back.withColumn("object", f.expr("if(object like '#snapshot%', '#taken back', object)")),
        {"reconcile.snapshot_append": "beside-0/0/0"},
    )
    things.snapshots = 0
    things.append(*things.snapshot({1: "a", 2: "b", 3: "C"}, "7:7:"))
    with pytest.raises(CompilerError, match="has applied another snapshot 1 beside the log than the one in batch 4"):
        things.run()
    things.run(full_refresh=True)
    assert things.rows() == {1: "a", 2: "b", 3: "C"}


def test_a_base_table_that_was_restored_is_repaired_again(memory: Memory) -> None:
    things = Things(memory, "restored", {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), hours=-3)
    things.run()
    base = f"{things.schema}.things__base"
    before = memory.version(base)
    things.append(*things.snapshot({1: "a"}, "5:5:"))
    things.append(change(3, "c", 9, 9))
    things.run()
    assert things.rows() == {1: "a", 3: "c"}
    memory.restore(base, before)
    assert things.run().startswith("REPLAY")
    assert things.rows() == {1: "a", 3: "c"}


def test_what_staging_has_lost_of_its_snapshots_is_noticed(memory: Memory) -> None:
    things = Things(memory, "lost", {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1))
    things.append(*things.snapshot({1: "A"}, "5:5:"))
    things.append(change(2, "b", 9, 9))
    things.run()
    memory.delete(things.staging, "object like '#%'")
    things.append(change(1, "new", 10, 10))
    with pytest.raises(CompilerError, match=r"has applied snapshot 1 beside the log, and .* has none"):
        things.run()
    things.run(full_refresh=True)
    assert things.rows() == {1: "new", 2: "b"}


# --- a binary log ----------------------------------------------------------------------------------------------------


@by_buckets_too
def test_a_table_of_mysql_is_repaired_at_a_place_of_its_binary_log(memory: Memory, replaced: Any) -> None:
    things = Things(memory, f"mysql_{bool(replaced)}", {"things": MODELS["things"]}, replaced, source="mysql")
    # Long ago, one transaction at the very place of the snapshot. Which of its changes is the last is not told.
    long_ago = TAKEN - timedelta(days=3)
    things.append(of_mysql(8, "h", 14, committed=long_ago), of_mysql(8, None, 14, committed=long_ago), hours=-72)
    before = [of_mysql(1, "a", 1), of_mysql(2, "b", 2), of_mysql(3, "c", 9)]
    things.append(*before, of_mysql(5, "e", 15), of_mysql(6, "f", 20), of_mysql(7, "g", 14), hours=-0.5)
    things.run()
    assert things.rows() == {1: "a", 2: "b", 3: "c", 5: "e", 6: "f", 7: "g", 8: "h"}

    # The change of 7 at the very place is left, in doubt, since the snapshot does not have it.
    things.append(*things.snapshot({1: "a", 2: "B", 4: "d", 5: "old"}, position_at(14)))
    said = "; repaired at binlog mysql-bin.999999:99: 1 inserted, 1 updated, 2 deleted, 1 in doubt"
    assert things.run().endswith(said)
    repaired = {1: "a", 2: "B", 4: "d", 5: "e", 6: "f", 7: "g"}
    assert things.rows() == repaired
    counted = {"delivered": 4, "applied": 4, "superseded": 1, "duplicate": 1, "inserted": 1, "updated": 1, "deleted": 2}
    assert things.account() == counted
    assert things.balances()

    late = [of_mysql(3, "late", 9), of_mysql(1, "late", 10), of_mysql(9, "late", 13), of_mysql(2, None, 13)]
    things.append(*late, *before, hours=1)
    things.run()
    assert things.rows() == repaired
    assert things.account("apply") == {"delivered": 7, "superseded": 7}

    things.append(of_mysql(3, "new", 15), of_mysql(1, None, 16), of_mysql(4, "D", 21), of_mysql(2, "c", 14), hours=2)
    things.run()
    after = {2: "c", 3: "new", 4: "D", 5: "e", 6: "f", 7: "g"}
    assert things.rows() == after
    assert things.run() == "nothing new"
    assert things.balances()
    things.run(full_refresh=True)
    assert things.rows() == after
    assert things.balances()
    memory.delete(f"{things.schema}.reconcile_ledger", "kind <> 'rebuild' or true")
    things.run()
    assert things.rows() == after
    assert things.account("replay")["delivered"] == 19

    # The next snapshot decides; nothing is in doubt.
    things.append(*things.snapshot({2: "c", 3: "new", 4: "D", 5: "e", 6: "f"}, position_at(22)))
    assert things.run().endswith("; repaired at binlog mysql-bin.1000000:97: 0 inserted, 0 updated, 1 deleted")
    assert things.rows() == {2: "c", 3: "new", 4: "D", 5: "e", 6: "f"}
    assert things.account() == {"delivered": 5, "applied": 1, "duplicate": 5, "deleted": 1}


def test_a_later_change_of_a_binary_log_that_begins_anew_is_quarantined(memory: Memory) -> None:
    things = Things(memory, "binlog_anew", {"things": MODELS["things"]}, source="mysql")
    things.append(*things.snapshot({1: "a", 2: "b"}, position_at(14)))
    later = TAKEN + timedelta(hours=2)
    things.append(of_mysql(1, "b", 3, committed=later), of_mysql(2, "B", 15, committed=later), hours=2)
    things.run()
    assert things.rows() == {1: "a", 2: "B"}
    (row,) = memory.rows(f"{things.schema}.things__quarantine")
    assert row._change_error.startswith(
        "the snapshot beside the log contains the change by its place in the binary log, and the change is an hour"
    )
    assert things.balances()


# --- logs that do not tell what was committed when --------------------------------------------------------------------


@by_buckets_too
def test_a_table_of_sqlserver_is_repaired_at_the_last_number_that_its_capture_had(
    memory: Memory, replaced: Any
) -> None:
    """The rows of the snapshot have all changes up to that number, and maybe more."""
    things = Things(memory, f"sqlserver_{bool(replaced)}", {"things": MODELS["things"]}, replaced, source="sqlserver")

    def told(id_: int, name: str | None, place: int, **said: Any) -> str:
        return change(id_, name, place, None, source="sqlserver", **({"committed": TAKEN} | said))

    long_ago = TAKEN - timedelta(hours=2)
    things.append(told(1, "a", 1), told(2, "b", 2), told(3, "c", 9), told(4, "d", 20, committed=long_ago), hours=-3)
    things.append(told(5, "e", 21), told(6, "f", 22), told(7, "g", 23), hours=-0.5)
    things.run()
    # Of the changes behind the number, that of 4 is too old not to be in the snapshot; 5, 6 and 7 are in doubt.
    things.append(*things.snapshot({1: "a", 2: "B", 5: "e", 6: "old", 8: "h"}, position_at(16, "sqlserver")))
    said = "; repaired at lsn 0x00000026000000F80003: 1 inserted, 1 updated, 2 deleted, 2 in doubt"
    assert things.run().endswith(said)
    repaired = {1: "a", 2: "B", 5: "e", 6: "f", 7: "g", 8: "h"}
    assert things.rows() == repaired
    things.append(told(3, "late", 15), told(4, "late", 21, committed=long_ago), told(2, None, 12), hours=1)
    things.run()
    assert things.rows() == repaired
    # A later change whose number the snapshot contains is of a log that began anew.
    things.append(told(1, "A", 30, committed=TAKEN + timedelta(hours=2)), hours=2)
    things.append(told(2, "anew", 3, committed=TAKEN + timedelta(hours=2)), hours=2)
    things.run()
    assert things.rows() == {**repaired, 1: "A"}
    (row,) = memory.rows(f"{things.schema}.things__quarantine")
    assert "contains the change by its place in the log, and the change is an hour or more later" in row._change_error
    # The next snapshot decides.
    things.append(*things.snapshot({1: "A", 2: "B", 5: "e", 6: "F", 8: "h"}, position_at(31, "sqlserver")))
    assert things.run().endswith("0 inserted, 1 updated, 1 deleted")
    assert things.rows() == {1: "A", 2: "B", 5: "e", 6: "F", 8: "h"}
    assert things.balances()
    things.run(full_refresh=True)
    assert things.rows() == {1: "A", 2: "B", 5: "e", 6: "F", 8: "h"}


def test_a_table_of_oracle_is_repaired_but_for_rows_that_were_changed_within_a_day(memory: Memory) -> None:
    """An SCN says when a row was changed, and not when that was committed."""
    things = Things(memory, "oracle", {"things": MODELS["things"]}, source="oracle")
    days_ago, hours_ago = TAKEN - timedelta(days=2), TAKEN - timedelta(hours=5)

    def told(id_: int, name: str | None, place: int, committed: datetime) -> str:
        return change(id_, name, place, None, source="oracle", committed=committed)

    things.append(told(1, "a", 1, days_ago), told(2, "b", 2, days_ago), told(3, "c", 9, days_ago), hours=-48)
    things.append(told(4, "open", 11, hours_ago), told(5, "e", 12, hours_ago), told(6, "f", 13, hours_ago), hours=-0.5)
    # The clock was set back: the place says that it is later.
    things.append(told(7, "later", 20, days_ago), hours=0.5)
    things.run()
    things.append(*things.snapshot({1: "a", 2: "B", 4: "old", 5: "e", 8: "h"}, position_at(14, "oracle")))
    assert things.run().endswith("; repaired at scn 1000004: 1 inserted, 1 updated, 1 deleted, 2 in doubt")
    repaired = {1: "a", 2: "B", 4: "open", 5: "e", 6: "f", 7: "later", 8: "h"}
    assert things.rows() == repaired
    things.append(told(3, "late", 10, days_ago), told(2, None, 3, days_ago), told(6, "F", 15, TAKEN), hours=1)
    things.run()
    assert things.rows() == {**repaired, 6: "F"}
    taken = TAKEN + timedelta(days=2)
    rows = {1: "a", 2: "B", 4: "open", 5: "e", 6: "F", 7: "later", 8: "h"}
    things.append(*things.snapshot({**rows, 5: "E"}, position_at(30, "oracle"), taken_at=text(taken)), hours=48)
    assert things.run().endswith("0 inserted, 1 updated, 0 deleted")
    assert things.rows() == {**rows, 5: "E"}
    assert things.balances()
    things.run(full_refresh=True)
    assert things.rows() == {**rows, 5: "E"}


# --- invented histories, against the model in plain Python -----------------------------------------------------------

KEYS = 6


class Lives:
    """Many histories side by side in one database, with snapshots of all of it at random moments.

    Now and then rows of some are read by a backfill, with a time that is somewhat wrong. In the log of MySQL, half of
    the histories name a change by the end of its transaction, and half by its beginning.
    """

    def __init__(self, histories: int, seed: int, parts: int = 4, source: str = "postgresql") -> None:
        chance, of_backfills = random.Random(seed), random.Random(-1 - seed)
        self.source, values_of_all = source, itertools.count()
        self.database, self.taken = Database(), []
        if source == "mysql":
            self.database = BinaryLog(named_by_end=lambda key: key // 10 % 2 == 1)
        elif source == "oracle":
            self.database = ChangeNumbers()
        elif source == "sqlserver":
            self.database = LateCapture()
        backfills: dict[tuple[int, int], Backfill] = {}
        owners: dict[int, int] = {}
        began: dict[int, int] = {}
        rounds = 40
        moments = sorted(chance.sample(range(5, rounds), 2))
        for number in range(rounds):
            self.database.tick()
            for id_ in list(self.database.open) if source == "oracle" else ():
                if self.database.clock - began[id_] >= UNCERTAINTY - 2:
                    self.database.commit(id_)
            for history in range(histories):
                running = [id_ for id_ in self.database.open if owners[id_] == history]
                what = chance.random()
                if what < 0.6:
                    started = len(owners) + 1
                    by = chance.choice([started, *running])
                    owners.setdefault(by, history)
                    began.setdefault(by, self.database.clock)
                    values = None if chance.random() < 0.3 else f"v{next(values_of_all)}"
                    self.database.change(by, history * 10 + chance.randrange(KEYS), values)
                elif what < 0.85 and running:
                    self.database.commit(chance.choice(running))
                if of_backfills.random() < 0.1:
                    keys = range(history * 10, history * 10 + KEYS)
                    rows = self.database.backfill(keys, of_backfills.randint(-UNCERTAINTY, UNCERTAINTY))
                    backfills |= {(row.key, row.read): row for row in rows}
            if number in moments:
                snapshot = self.database.snapshot()
                self.taken.append((snapshot, self._position(snapshot, len(owners))))
        for id_ in list(self.database.open):
            self.database.commit(id_)
        newest = self.taken[-1][0]
        kept = [c for c in self.database.delivered() if not newest.contains(c) or chance.random() < 0.6]
        # In any order and split, some twice; the snapshots in the order in which they were taken, anywhere among them.
        records = [*kept, *(record for record in kept if chance.random() < 0.2)]
        chance.shuffle(records)
        self.batches: list[list[Record]] = [records[number::parts] for number in range(parts)]
        places = sorted(chance.choices(range(parts), k=len(self.taken))) if parts > 3 else [0, 1]
        for number, batch in enumerate(self.batches):
            here = [snapshot for place, (snapshot, _) in zip(places, self.taken, strict=True) if place == number]
            among = sorted(chance.sample(range(1, len(batch)), len(here)))
            for snapshot, before in reversed([*zip(here, among, strict=True)]):
                batch.insert(before, snapshot)
        for row in backfills.values():
            of_backfills.choice(self.batches).append(row)

    def moment(self, clock: int) -> datetime:
        """Return a moment of the database as the records say it; an hour is as long as a time may be wrong.

        Of Oracle, where a transaction may be open for a day, a day.
        """
        longest = timedelta(days=1) if self.source == "oracle" else timedelta(hours=1)
        return TAKEN - (self.database.clock - clock) * longest / UNCERTAINTY

    def _position(self, taken: Snapshot, started: int) -> str:
        """Return what the database says of a snapshot that was taken now; ids of transactions begin at 101."""
        if self.source == "mysql":
            return position_at(self.database.place)
        if self.source != "postgresql":
            return position_at(taken.place, self.source)
        open_ = [101 + id_ for id_ in range(started) if id_ + 1 not in self.database.finished]
        end = 101 + started
        return f"{min(open_, default=end)}:{end}:{','.join(map(str, open_))}"

    def append(self, things: Things, batch: list[Record]) -> None:
        """Append a batch. Two snapshots in one batch are two appends."""
        parts: list[list[Staged | str]] = [[]]
        for row in self.staged(things, batch):
            if isinstance(row, Staged) and row.object == "#snapshot":
                parts.append([])
            parts[-1].append(row)
        for part in parts:
            things.append(*part)

    def staged(self, things: Things, batch: list[Record]) -> Iterator[Staged | str]:
        positions = dict(self.taken)
        for record in batch:
            if isinstance(record, Snapshot):
                said = {"uncertainty": "1 day"} if self.source == "oracle" else {}
                taken_at = text(self.moment(record.taken))
                yield from things.snapshot(dict(record.rows), positions[record], taken_at=taken_at, **said)
            elif isinstance(record, Backfill):
                yield change(record.key, record.values, 0, None, self.moment(record.read), source=self.source)
            else:
                place = record.place + (self.source == "postgresql")  # an LSN is not 0
                when = {"committed": self.moment(record.at)} if self.source in ("oracle", "sqlserver") else {}
                yield change(record.key, record.values, place, record.transaction + 100, source=self.source, **when)


# A fresh view, its base table, and a view of everything.
OF_LIVES = {"things": MODELS["things_fresh"], "things_view": MODELS["things_view"]}


class Wrong(AssertionError):
    """The rows are not those of the model."""


def live(
    memory: Memory, name: str, lives: Lives, models: Mapping[str, str] = OF_LIVES,
    replaced: Mapping[str, Mapping[str, str]] | None = None, is_planted: bool = True,
) -> int:  # fmt: skip
    """Deliver the histories batch by batch, and compare all models with the plain fold. Return how many changes.

    `is_planted`: what is replaced is a bug, which shows while the batches come.
    """
    staged = list[Record]()
    things = Things(memory, name, models, replaced, lives.source)

    def check(expected: Mapping[int, str], when: str) -> None:
        for model in [*models, *(["things__base"] if "things" in models else [])]:
            found = things.rows(model)
            wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
            if wrong:
                some = {key: (found.get(key), expected.get(key)) for key in wrong[:5]}
                raise Wrong(f"{when}: {model} differs in {len(wrong)} rows, (found, expected) {some}")

    for number, batch in enumerate(lives.batches):
        staged += batch
        lives.append(things, batch)
        things.run()
        check(fold(staged), f"after batch {number}")
        if "things" in models and not things.balances():
            raise Wrong(f"after batch {number}: the ledger does not balance")
    check(lives.database.rows(), "in the end")
    if replaced and is_planted:
        return 0
    memory.delete(f"{things.schema}.reconcile_ledger", "kind <> 'rebuild'")
    things.run()
    check(lives.database.rows(), "applied again")
    things.run(full_refresh=True)
    check(lives.database.rows(), "rebuilt")
    return sum(isinstance(record, Change) for record in staged)


OF_HISTORY = {"things": "materialized='history'"}


def live_in_history(
    memory: Memory, name: str, lives: Lives, replaced: Mapping[str, Mapping[str, str]] | None = None
) -> int:
    """Deliver the histories batch by batch; compare all versions with the plain fold. Return how many there are."""
    staged = list[Record]()
    things = Things(memory, name, OF_HISTORY, replaced, lives.source)

    def time(record: Record) -> float:
        if isinstance(record, Change):
            if lives.source in ("oracle", "sqlserver"):
                return lives.moment(record.at).timestamp()
            return (TAKEN - timedelta(hours=2)).timestamp()
        return lives.moment(record.read if isinstance(record, Backfill) else record.taken).timestamp()

    def shown() -> dict[int, list[Version]]:
        found: dict[int, list[Version]] = {}
        for row in memory.table(f"{things.schema}.things").orderBy("id", "_change_sequence").collect():
            found.setdefault(row.id, []).append((row.name, row.valid_from.timestamp(), row.is_current))
        return found

    def base() -> list[Any]:
        columns = ["id", "name", "_change_type", "_change_sequence", "valid_from", "valid_to", "_change_repeats"]
        return sorted(map(str, memory.table(f"{things.schema}.things__base").select(*columns).collect()))

    def check(when: str) -> None:
        found, expected = shown(), versions(staged, time)
        wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
        if wrong:
            key = min(wrong)
            raise Wrong(f"{when}: {len(wrong)} keys differ, of {key} {found.get(key)} and not {expected.get(key)}")
        if not things.balances():
            raise Wrong(f"{when}: the ledger does not balance")

    for number, batch in enumerate(lives.batches):
        staged += batch
        lives.append(things, batch)
        things.run()
        check(f"after batch {number}")
    if replaced:
        return 0
    rows = base()
    memory.delete(f"{things.schema}.reconcile_ledger", "kind <> 'rebuild'")
    things.run()
    check("applied again")
    assert base() == rows
    things.run(full_refresh=True)
    check("rebuilt")
    assert base() == rows
    return sum(map(len, shown().values()))


SOURCES = ["postgresql", "mysql", *(pytest.param(source, marks=pytest.mark.soak) for source in ("oracle", "sqlserver"))]
SEEDS = [
    4,
    pytest.param(1, marks=pytest.mark.soak),
    *(pytest.param(seed, marks=pytest.mark.matrix) for seed in (2, 3, *range(5, 13))),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_histories_with_snapshots_at_random_moments_give_the_rows_of_the_plain_fold(
    memory: Memory, seed: int, source: str
) -> None:
    assert live(memory, f"lives_of_{source}_{seed}", Lives(200, seed, source=source)) > 1000


@pytest.mark.parametrize("source", [SOURCES[0], *(pytest.param(name, marks=pytest.mark.soak) for name in SOURCES[1:])])
def test_histories_give_the_rows_of_the_plain_fold_where_snapshots_are_compared_by_buckets(
    memory: Memory, source: str
) -> None:
    # Buckets of three rows: some differ by a row, and some do not.
    replaced = {**BY_BUCKETS, "macros/change_records/buckets_of_rows.sql": {"), 1048576)": "), 400)"}}
    lives = Lives(200, 1, source=source)
    assert live(memory, f"buckets_of_{source}", lives, {"things": MODELS["things"]}, replaced, is_planted=False) > 1000


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "seed", [pytest.param(4, marks=pytest.mark.soak), *(pytest.param(n, marks=pytest.mark.matrix) for n in range(1, 4))]
)
def test_histories_with_snapshots_at_random_moments_give_the_versions_of_the_plain_fold(
    memory: Memory, seed: int, source: str
) -> None:
    assert live_in_history(memory, f"versions_of_{source}_{seed}", Lives(200, seed, source=source)) > 1000


FOLD, RECORDS = (
    "macros/materializations/current_state/newest_beside_snapshot.sql",
    "macros/change_records/records_beside_snapshot.sql",
)
MODEL, RANGE = "macros/model/snapshot_of_log.sql", "macros/materializations/repair_of_range.sql"
# Which a MERGE does not show, as it never writes what a snapshot contains.
OF_VIEWS = ["contained changes bring rows back"]
BUGS = {
    "changes of open transactions that were applied before are not read again": {
        RANGE: {"'first': [begun, first] | min}": "'first': first}"}
    },
    "a snapshot deletes what came after it": {
        FOLD: {"_of_snapshot(snapshot) }} and not _change_sets_row{{": "_of_snapshot(snapshot) }}{{"}
    },
    "absent rows stay": {FOLD: {"{{ reconcile.floor_of_snapshot(snapshot) }} and not": "'0' and not"}},
    "rows of the snapshot are never merged": {FOLD: {"'row' and _change_equals_base and": "'row' and"}},
    "an equal tombstone hides the snapshot's row": {
        FOLD: {"_change_equals_base and not _change_base_deleted then": "_change_base_deleted then"}
    },
    "what the snapshot contains wins by its place in the log": {
        RECORDS: {
            "concat('-', substring(_change_sequence, 2))": "concat('" + "0001" + "', substring(_change_sequence, 5))"
        }
    },
    "contained changes bring rows back": {
        RECORDS: {"\"if(_change_snapshot = 'before', 'delete', _change_type)\"": "'_change_type'"}
    },
    "open transactions count as seen": {
        "macros/change_records/records_as_of.sql": {"{% if in_progress %} and": "{% if false %} and"}
    },
    "the oldest snapshot counts": {
        MODEL: {"in found | sort(attribute='place') -%}": "in found | sort(attribute='place', reverse=true) -%}"}
    },
    "the snapshot's rows stand above later changes": {
        RECORDS: {"place_of_snapshot(one)": "place_of_snapshot(one) | replace('/0/', '/2/')"}
    },
    "changes after the snapshot keep their place": {
        RECORDS: {"concat('\" ~ generation ~ \"', substring(_change_sequence, 5))": "_change_sequence"}
    },
    "the time of a backfill row is believed": {
        MODEL: {"'contains_backfills_until': taken_at ~ ' + ' ~ interval": "'contains_backfills_until': taken_at"}
    },
    "a tombstone of an absent row stands above later changes": {
        FOLD: {"reconcile.place_of_snapshot(snapshot)": "reconcile.place_of_snapshot(snapshot) | replace('/0/', '/2/')"}
    },
}


SIDE = "macros/change_records/side_of.sql"
MYSQL_BUGS = {
    "a place is compared as text": {
        SIDE: {"['%016X' % (number[1] | int), '%016X' % (place | int)]": "[number[1], place]"}
    },
    "the very place counts as contained": {SIDE: {"place ~ ' = ' ~ bound ~ ' and ' ~ early": "place ~ ' = ' ~ bound"}},
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", MYSQL_BUGS)
def test_a_planted_bug_of_mysql_is_found(memory: Memory, bug: str) -> None:
    lives, models = Lives(60, 3, parts=3, source="mysql"), {"things": MODELS["things"]}
    with pytest.raises(Wrong):
        live(memory, f"bug_of_mysql_{list(MYSQL_BUGS).index(bug)}", lives, models, MYSQL_BUGS[bug])


@pytest.mark.planted
def test_a_planted_bug_of_mysql_is_found_that_compares_files_and_no_places_within_them(memory: Memory) -> None:
    planted = {SIDE: {"['%016X' % (number[1] | int), '%016X' % (place | int)]": "['%016X' % (number[1] | int)]"}}
    rows = []
    for name, replaced in (("right", None), ("wrong", planted)):
        things = Things(memory, f"of_files_{name}", {"things": MODELS["things"]}, replaced, source="mysql")
        # The change lies before the snapshot, in the same file, and the snapshot does not have its row.
        things.append(of_mysql(9, "late", 13), *things.snapshot({1: "a"}, position_at(14)))
        things.run()
        rows.append(things.rows())
    assert rows == [{1: "a"}, {1: "a", 9: "late"}]


HISTORY = "macros/materializations/history/records_beside_snapshots.sql"
HISTORY_BUGS = {
    "a row of a snapshot stays that tells nothing more": {
        HISTORY: {"where _change_is_redundant or _change_known_sequence": "where _change_known_sequence"}
    },
    "a change that is placed anew stays at its old place, too": {
        HISTORY: {
            "where _change_is_redundant or _change_known_sequence <> _change_sequence": "where _change_is_redundant"
        }
    },
    "the rows of earlier snapshots are not read again": {
        HISTORY: {"= earlier and run_query(": "= false and run_query("}
    },
    "a key that a snapshot lacks is not deleted": {
        HISTORY: {"'delete', _change_sequence": "'insert', _change_sequence"}
    },
    "only rows that a snapshot has are compared with it": {HISTORY: {"full outer join": "left outer join"}},
    "every row of a snapshot makes a version": {
        HISTORY: {"_change_preceding.is_live and {{ reconcile.has": "false and {{ reconcile.has"}
    },
    "the newest snapshot alone places changes": {
        RECORDS: {
            "{%- set snapshots = reconcile.snapshots_in_order(snapshot) -%}": "{%- set snapshots = [snapshot] -%}"
        }
    },
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", HISTORY_BUGS)
def test_a_planted_bug_of_histories_is_found(memory: Memory, bug: str) -> None:
    with pytest.raises(Wrong):
        live_in_history(
            memory, f"bug_of_history_{list(HISTORY_BUGS).index(bug)}", Lives(60, 3, parts=3), HISTORY_BUGS[bug]
        )


BUGS_OF_BUCKETS = {
    "no bucket differs": {BUCKETS: {"bit_xor(digest) <> 0 or bit_xor(second_digest) <> 0": "false"}},
    "rows of buckets that do not differ are absent": {FOLD: {"{{ ' and _change_is_compared' if compares }}": ""}},
}


def update_of_an_equal_row(memory: Memory, name: str, replaced: Any) -> dict[str, int]:
    """Return the account of a range in which a row equals that of the snapshot, and then changes."""
    things = Things(memory, name, {"things": MODELS["things"]}, replaced)
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1))
    things.run()
    things.append(change(1, "A", 5, 9), *things.snapshot({1: "a", 2: "b"}, "9:9:"), hours=0.1)
    things.run()
    assert things.rows() == {1: "A", 2: "b"} and things.balances()
    return things.account("apply")


@by_buckets_too
def test_a_change_of_a_row_that_the_snapshot_has_is_an_update(memory: Memory, replaced: Any) -> None:
    account = update_of_an_equal_row(memory, f"equal_{bool(replaced)}", replaced)
    assert account == {"delivered": 1, "applied": 1, "updated": 1}


@pytest.mark.planted
def test_a_planted_bug_of_buckets_is_found_that_takes_keys_of_changes_for_new_ones(memory: Memory) -> None:
    planted = {"where differing.bucket is not null or _change_is_named": "where differing.bucket is not null"}
    account = update_of_an_equal_row(memory, "bug_of_named", {BUCKETS: {**BY_BUCKETS[BUCKETS], **planted}})
    assert account == {"delivered": 1, "applied": 1, "inserted": 1}


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS_OF_BUCKETS)
def test_a_planted_bug_of_buckets_is_found(memory: Memory, bug: str) -> None:
    planted = BUGS_OF_BUCKETS[bug]
    replaced = {**planted, BUCKETS: {**BY_BUCKETS[BUCKETS], **planted.get(BUCKETS, {})}}
    name = f"bug_of_buckets_{list(BUGS_OF_BUCKETS).index(bug)}"
    with pytest.raises((Wrong, AssertionError)):
        live(memory, name, Lives(60, 3, parts=3), {"things": MODELS["things"]}, replaced)


# Seed 3 has what the bugs need: its two snapshots are far apart, and of what they contain some changes are lost.
@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(memory: Memory, bug: str) -> None:
    model = "things_view" if bug in OF_VIEWS else "things"
    with pytest.raises(Wrong):
        live(memory, f"bug_{list(BUGS).index(bug)}", Lives(60, 3, parts=3), {model: MODELS[model]}, BUGS[bug])


# --- a run that dies -------------------------------------------------------------------------------------------------


DEATHS = ["alter table", "merge into", "insert into `{}`.`reconcile_ledger`"]


@pytest.mark.parametrize("place", range(len(DEATHS)))
def test_a_run_that_dies_is_finished_by_the_next_and_shows_nothing_half_repaired(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    statement = DEATHS[place]
    name = f"killed_{place}"
    things = Things(memory, name, {"things": MODELS["things"]})
    things.append(change(1, "a", 1, 1), change(2, "b", 2, 1), change(3, "c", 3, 9))
    things.run()
    before = things.rows()
    things.append(change(4, "d", 4, 1), change(3, "C", 5, 9))
    things.append(*things.snapshot({1: "A", 4: "d", 5: "e"}, "9:10:9"))
    wanted = statement.format(things.schema)

    def dies(sql: str) -> Any:
        if sql.strip().startswith(wanted):
            raise RuntimeError("killed")
        return memory.query(sql)

    with monkeypatch.context() as patched:
        patched.setitem(things.project.context, "run_query", dies)
        with pytest.raises(RuntimeError, match="killed"):
            things.run()
    repaired = {1: "A", 3: "C", 4: "d", 5: "e"}
    assert things.rows() == (repaired if "ledger" in statement else before)
    things.run()
    assert things.rows() == repaired
    assert things.balances()


# --- the capture begins in the middle --------------------------------------------------------------------------------

AT = json.loads((CAPTURE / "snapshot" / "at.json").read_text())
# Which records come in which batch: those of before the copy, those of after it, and the copy.
ORDERS = {
    "copy first, only later changes": ["copy", "after"],
    "copy first": ["copy", "before after"],
    "copy last": ["after before", "copy"],
    "copy between, all twice": ["after", "copy", "before after"],
}


def middle(memory: Memory, order: str, materialized: str) -> Iterator[PlainProject]:
    """Deliver the capture's changes and the copy in an order; yield the project when all is run, and when rebuilt."""
    schema = f"middle_{materialized}_{list(ORDERS).index(order)}"
    project, staging = memory.project(schema), f"{schema}_lake.changes"
    project.source(f"{schema}_lake", "changes")
    for table, key in KEYS_OF_CAPTURE.items():
        project.model(
            table,
            f"{{{{ config(materialized='{materialized}', unique_key={key}) }}}}\n"
            f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), table='shop.{table}') }}}}",
            declared("postgresql", table),
            data_tests=["ledger_balances"],
        )
    rows: dict[str, list[Staged]] = {"before": [], "after": [], "copy": []}
    for table in KEYS_OF_CAPTURE:
        for delivery in DELIVERIES:
            for record in records("postgresql", table, "json", delivery):
                said = json.loads(record)
                if is_change(said):
                    part = "after" if is_after_copy(said) else "before"
                    rows[part].append(Staged(record, f"shop_{table}", 0))
        copied = rows_of_snapshot(table, "snapshot")
        cut = {
            "number": len(rows["copy"]) + 1, "object": f"shop_{table}", "place": 1, "snapshot": "middle",
            "position_kind": "pg_snapshot", "position": AT["pg_current_snapshot"], "uncertainty": "1 hour",
            "taken_at": AT["at"], "key": KEYS_OF_CAPTURE[table], "columns": COLUMNS_OF_CAPTURE[table],
            "rows": len(copied),
        }  # fmt: skip
        rows["copy"].append(Staged(json.dumps(cut), "#snapshot", 0, source="snapshot"))
        of = f"#snapshot of shop_{table}"
        rows["copy"] += [Staged(json.dumps({"row": row}), of, 0, source="snapshot") for row in copied]
    chance = random.Random(1)
    for number, parts in enumerate(ORDERS[order], start=1):
        told = [row._replace(batch=number) for part in parts.split() for row in rows[part]]
        chance.shuffle(told)
        memory.stage(staging, told)
        memory.keep(staging, memory.table(staging), {"reconcile.snapshot_append": "beside-0/0/0"})
        project.run(*KEYS_OF_CAPTURE)
    yield project
    project.run(*KEYS_OF_CAPTURE, full_refresh=True)
    yield project


def is_change(record: Mapping[str, Any]) -> bool:
    """Whether a record is of the log: the backfill rows were read in the middle, at the copy's own moment."""
    return "backfill" not in record["read_method"]


def is_after_copy(record: Mapping[str, Any]) -> bool:
    return int(record["source_metadata"]["tx_id"]) >= int(AT["pg_current_snapshot"].split(":")[1])


@pytest.mark.soak
@pytest.mark.parametrize("order", ORDERS)
def test_the_capture_begins_in_the_middle_with_its_copy(memory: Memory, order: str) -> None:
    for project in middle(memory, order, "current_state"):
        for table in KEYS_OF_CAPTURE:
            frame = memory.table(f"{project.schema}.{table}")
            assert dict(frame.dtypes) == COLUMNS_OF_CAPTURE[table]
            assert different({"": counted(frame)}, true_rows(table)) == {}
            assert not project.failing_tests(table)


@pytest.mark.parametrize(
    "order",
    [pytest.param(order, marks=pytest.mark.soak if "twice" in order else pytest.mark.matrix) for order in ORDERS],
)
def test_the_histories_of_the_capture_begin_in_the_middle_with_its_copy(memory: Memory, order: str) -> None:
    """The copy is a version of a row that the changes of before do not tell; else it tells nothing more."""
    has_before = "before" in " ".join(ORDERS[order])
    for project in middle(memory, order, "history"):
        for table, key in KEYS_OF_CAPTURE.items():
            before = told_of(
                "postgresql", table, lambda said: has_before and is_change(said) and not is_after_copy(said)
            )
            after = told_of("postgresql", table, lambda said: is_change(said) and is_after_copy(said))
            names = list(COLUMNS_OF_CAPTURE[table])
            copied = {tuple(row[names.index(name)] for name in key): row for row in true_rows(table, "snapshot")}
            told = {}
            for of_key in before.keys() | after.keys() | copied.keys():
                told[of_key] = before.get(of_key, [])
                shown_before = told[of_key][-1].values if told[of_key] else None
                if shown_before != copied.get(of_key):
                    at = micros(AT["at"].removesuffix("+00:00"))
                    told[of_key].append(Told(copied.get(of_key), at, "insert", "middle"))
                told[of_key] += after.get(of_key, [])
            width, found = len(names), Counter[Any]()
            for row, copies in counted(memory.table(f"{project.schema}.{table}")).items():
                *validity, kind, _, change_id = row[width:]
                found[(*row[:width], *validity, kind, change_id)] += copies
            assert different({"": found}, shown({key: replayed(of_key) for key, of_key in told.items()})) == {}
            assert not project.failing_tests(table)
