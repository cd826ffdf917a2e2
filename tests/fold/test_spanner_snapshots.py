"""Snapshots beside the log of Spanner: records that carry some columns, a part of them lost, in any order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from datastream import Staged
from memory import Memory
from mortal_memory import MortalMemory
from pyspark.sql import SparkSession
from spanner import backfill_record, data_change_record, mod

COLUMNS = {"Id": "bigint", "A": "string", "B": "double", "C": "array<bigint>"}
VALUES = ("A", "B", "C")
MODELS = {
    "things": "materialized='current_state'",
    "things_fresh": "materialized='current_state', meta={'fresh': true}",
    "things_view": "materialized='current_view'",
}
WHOLE_ROWS = {
    "things": "materialized='current_state', meta={'partial_records': false}",
    "things_fresh": "materialized='current_state', meta={'partial_records': false, 'fresh': true}",
}
Row = dict[str, Any]


def at(moment: int) -> str:
    """Return a moment as Spanner writes it: whole numbers of nanoseconds, at the end of a second."""
    return f"2026-11-21T11:33:{12 + (999_999_900 + moment) // 10**9:02}.{(999_999_900 + moment) % 10**9:09}Z"


def json_of(row: Row) -> Row:
    """Return values as a change stream has them: whole numbers as text."""
    return {name: [str(n) for n in value] if isinstance(value, list) else value for name, value in row.items()}


@dataclass(frozen=True)
class Change:
    """A change of one row, or a row as a backfill read it. `values`: of an update those that were changed."""

    key: int
    moment: int
    kind: str  # INSERT, UPDATE, DELETE or BACKFILL
    values: tuple[tuple[str, Any], ...] = ()

    def record(self, whole: Row | None) -> str:
        """Return the record. `whole`: the row after the change, where the stream captures whole rows."""
        key, values = {"Id": str(self.key)}, json_of(dict(self.values) if whole is None else whole)
        if self.kind == "BACKFILL":
            return backfill_record([(key, values)], at(self.moment))
        captured = "NEW_VALUES" if whole is None else "NEW_ROW"
        return data_change_record(
            [mod(key, {} if self.kind == "DELETE" else values)], self.kind, commit_timestamp=at(self.moment),
            server_transaction_id=f"t{self.moment}", value_capture_type=captured,
        )  # fmt: skip


@dataclass
class Source:
    """A table of Spanner, what its stream brings, and what it was at each moment."""

    rows: dict[int, Row] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    after: dict[Change, Row] = field(default_factory=dict)
    moment: int = 0

    def do(self, chance: random.Random, key: int) -> None:
        """Change a row, or read it as a backfill does."""
        self.moment += chance.choice((0, 1, 1, 7)) if key not in {c.key for c in self.changes[-3:]} else 1
        row = self.rows.get(key)
        new = {"A": chance.choice(("x", "y", None, f"a{self.moment}")), "B": chance.choice((0.0, 1.5, None)),
               "C": chance.choice(([], [1, self.moment], None))}  # fmt: skip
        kind, values = "INSERT", new
        if row is not None:
            kind = chance.choice(("UPDATE", "UPDATE", "DELETE", "DELETE", "BACKFILL"))
            changed = {name: new[name] for name in chance.sample(VALUES, chance.randint(1, 3))}
            values = {"UPDATE": changed, "DELETE": {}, "BACKFILL": dict(row)}[kind]
        if kind == "DELETE":
            del self.rows[key]
        else:
            self.rows[key] = {**(row or {}), **values}
        made = Change(key, self.moment, kind, _frozen(values))
        self.changes.append(made)
        self.after[made] = dict(self.rows.get(key, {}))


class _List(list):  # type: ignore[type-arg]
    """A list that a frozen change may hold."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def _frozen(values: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _List(value) if isinstance(value, list) else value) for name, value in values.items())


@dataclass(frozen=True)
class Snapshot:
    """All rows of a moment."""

    moment: int
    rows: Mapping[int, Row]


def fold(changes: set[Change], newest: Snapshot | None, whole: Mapping[Change, Row] | None) -> dict[int, Row]:
    """Return the live rows: the newest snapshot, and what was committed after it, in the order of the commits."""
    live: dict[int, Row] = {key: dict(row) for key, row in newest.rows.items()} if newest else {}
    # A backfill row is the row after all commits of its moment.
    for change in sorted(changes, key=lambda c: (c.moment, c.kind == "BACKFILL")):
        if newest and change.moment <= newest.moment:
            continue
        if change.kind == "DELETE":
            live.pop(change.key, None)
        elif change.kind != "UPDATE":
            live[change.key] = dict.fromkeys(VALUES) | dict(change.values)
        elif whole is not None:
            live[change.key] = dict.fromkeys(VALUES) | whole[change]
        elif change.key in live or len(change.values) == len(VALUES):  # else it waits for a record of the whole row
            live[change.key] = live.get(change.key, {}) | dict(change.values)
    return live


class Things:
    """Models of a table of Spanner, its log, and snapshots beside the log."""

    def __init__(
        self, memory: Memory, name: str, models: Mapping[str, str] = MODELS,
        replaced: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.memory, self.schema, self.staging = memory, f"of_{name}", f"of_{name}_lake.changes"
        self.project = memory.project(self.schema, replaced)
        self.project.source(f"of_{name}_lake", "changes")
        self.models, self.batches, self.snapshots = list(models), 0, 0
        for model, config in models.items():
            self.project.model(
                model,
                f"{{{{ config({config}, unique_key='Id') }}}}\n"
                "{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='Things') }}",
                COLUMNS,
                data_tests=[] if "current_view" in config else ["ledger_balances"],
            )

    def append(self, *rows: Staged | str) -> None:
        self.batches += 1
        staged = [Staged(row, "Things", 0, source="spanner") if isinstance(row, str) else row for row in rows]
        self.memory.stage(self.staging, [row._replace(batch=self.batches) for row in staged])
        if self.snapshots:
            self.memory.keep(
                self.staging, self.memory.table(self.staging), {"reconcile.snapshot_append": "beside-0/0/0"}
            )

    def snapshot(self, snapshot: Snapshot) -> list[Staged]:
        """Return what a snapshot is in staging, as the job writes it: every value as text."""
        self.snapshots += 1
        cut = {
            "number": self.snapshots, "object": "Things", "place": self.snapshots, "snapshot": f"s{self.snapshots}",
            "position_kind": "read_timestamp", "position": at(snapshot.moment), "uncertainty": "1 hour", "key": ["Id"],
            "taken_at": at(snapshot.moment), "columns": COLUMNS, "rows": len(snapshot.rows),
        }  # fmt: skip
        rows = []
        for key, row in snapshot.rows.items():
            said = {"Id": str(key), "A": row.get("A"), "C": row.get("C"), "B": None}
            if row.get("B") is not None:
                said["B"] = str(row["B"])
            rows.append(Staged(json.dumps({"row": said}), "#snapshot of Things", 0, source="snapshot"))
        return [Staged(json.dumps(cut), "#snapshot", 0, source="snapshot"), *rows]

    def run(self, **flags: Any) -> str:
        return self.project.run(*self.models, **flags)[self.models[0]]

    def rows(self, model: str = "things") -> dict[int, Row]:
        found = self.memory.table(f"{self.schema}.{model}").collect()
        rows = {row.Id: {name: row[name] for name in VALUES} for row in found}
        assert len(found) == len(rows), "a key is there twice"
        return rows

    def check(self, expected: Mapping[int, Row]) -> None:
        """Raise Wrong where a model has other rows, or the ledger does not balance. 0.0 and -0.0 are two values."""
        for model in self.models:
            found = self.rows(model)
            if {k: repr(v) for k, v in found.items()} != {k: repr(plain(v)) for k, v in expected.items()}:
                wrong = [key for key in {*found, *expected} if repr(found.get(key)) != repr(plain(expected.get(key)))]
                raise Wrong(f"{model}: {[(key, found.get(key), expected.get(key)) for key in wrong[:3]]}")
        for model in (model for model in self.models if not model.endswith("_view")):
            if failing := self.project.failing_tests(model):
                raise Wrong(f"{model}: {failing}")


class Wrong(AssertionError):
    """The rows are not those of the plain fold."""


def plain(row: Row | None) -> Row | None:
    return row and {name: [*value] if isinstance(value, list) else value for name, value in sorted(row.items())}


@pytest.fixture(scope="module")
def memory(spark: SparkSession) -> Iterator[Memory]:
    with Memory(spark) as memory:
        yield memory


def repair(memory: Memory, name: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Repair rows of each kind, and demand of each what it has to be."""
    things = Things(memory, name, MODELS if replaced is None else {"things": MODELS["things"]}, replaced)
    whole = {"A": "a", "B": 1.0, "C": [1]}

    def told(key: int, moment: int, kind: str, **values: Any) -> str:
        return Change(key, moment, kind, tuple(values.items())).record(None)

    things.append(
        *(told(key, key, "INSERT", **whole) for key in (1, 2, 3, 4, 5, 6, 12)), told(3, 50, "UPDATE", A="later")
    )
    things.append(told(5, 60, "UPDATE", B=9.0), told(9, 61, "UPDATE", C=[9]), told(11, 62, "INSERT", **whole))
    things.run()
    # Of 2 an update was lost, of 4, 5 and 12 a delete, of 7 and 8 the insert; 5 and 12 were inserted again, which comes
    # late, and 9, which was lost.
    taken = {1: whole, 2: {**whole, "B": 2.0}, 3: whole, 6: whole, 7: {**whole, "C": None}, 8: whole}
    with_it = [(8, 41, {"A": "of this batch"}), (6, 42, {"B": 6.0}), (12, 46, {"C": [12]})]
    updates = [told(key, moment, "UPDATE", **values) for key, moment, values in with_it]
    things.append(*things.snapshot(Snapshot(40, taken)), *updates)
    assert things.run().endswith(f"; repaired at read_timestamp {at(40)}: 2 inserted, 1 updated, 3 deleted")
    repaired = {
        **taken,
        3: {**whole, "A": "later"},
        8: {**whole, "A": "of this batch"},
        6: {**whole, "B": 6.0},
        11: whole,
    }
    things.check(repaired)
    # What the snapshot contains comes late, also of keys that nobody knows; and what it does not contain.
    things.append(told(4, 39, "UPDATE", A="late"), told(10, 20, "INSERT", **whole), told(1, 40, "DELETE"))
    things.append(told(1, 43, "UPDATE", B=7.0), told(2, 42, "UPDATE", C=[2]), told(5, 55, "INSERT", **whole))
    things.append(told(12, 44, "INSERT", **whole))
    things.run()
    repaired |= {
        12: {**whole, "C": [12]},
        1: {**whole, "B": 7.0},
        2: {"A": "a", "B": 2.0, "C": [2]},
        5: {**whole, "B": 9.0},
    }
    things.check(repaired)
    # The change of 9, which waits for its row, is contained in the first of two more snapshots; the second has no news.
    things.append(*things.snapshot(Snapshot(70, repaired)))
    assert things.run().endswith(f"at read_timestamp {at(70)}: 0 inserted, 0 updated, 0 deleted")
    base = memory.table(f"{things.schema}.things__base").collect()
    things.append(*things.snapshot(Snapshot(71, repaired)))
    assert things.run().endswith(f"at read_timestamp {at(71)}: 0 inserted, 0 updated, 0 deleted")
    assert memory.table(f"{things.schema}.things__base").collect() == base, "rows that are equal were written"
    things.run(full_refresh=True)
    things.check(repaired)


def test_a_snapshot_repairs_rows_and_leaves_what_was_committed_later(memory: Memory) -> None:
    repair(memory, "repair")


@pytest.mark.soak
def test_a_repair_dies_before_each_statement_and_the_next_one_makes_it_good(spark: SparkSession) -> None:
    with MortalMemory(spark) as memory:
        things = Things(memory, "dies", {"things": MODELS["things"]})
        whole = {"A": "a", "B": 1.0, "C": [1]}
        told = [Change(key, key, "INSERT", tuple(whole.items())).record(None) for key in (1, 2, 3)]
        things.append(*told, Change(3, 50, "UPDATE", (("A", "later"),)).record(None))
        things.run()
        things.append(*things.snapshot(Snapshot(40, {1: whole, 3: {**whole, "B": 3.0}, 4: whole})))

        def check() -> None:
            things.check({1: whole, 3: {"A": "later", "B": 3.0, "C": [1]}, 4: whole})

        assert memory.die_before_each("snapshot beside Spanner", things.run, check) >= 4, memory.written


@dataclass
class Life:
    """What is delivered, in batches: changes that were not lost, some twice, and snapshots between them."""

    seed: int
    keys: int = 60
    parts: int = 5

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.source, taken = Source(), []
        for number in range(self.keys * 8):
            key = chance.randrange(self.keys)
            # Rows stay away for a while, so that a snapshot lacks some whose delete was lost.
            if key in self.source.rows or chance.random() < 0.4:
                self.source.do(chance, key)
            if number in (self.keys * 3, self.keys * 5):
                rows = {key: dict(row) for key, row in self.source.rows.items()}
                taken.append(Snapshot(self.source.moment, rows))
                self.source.moment += 1
        kept = [change for change in self.source.changes if chance.random() < 0.6]
        told = [*kept, *(change for change in kept if chance.random() < 0.2)]
        chance.shuffle(told)
        self.batches: list[list[Change | Snapshot]] = [[*told[number :: self.parts]] for number in range(self.parts)]
        for snapshot, place in zip(taken, sorted(chance.sample(range(self.parts), 2)), strict=True):
            self.batches[place].insert(chance.randrange(5), snapshot)


def live(
    memory: Memory, life: Life, name: str, models: Mapping[str, str], captures_rows: bool = False, **replaced: Any
) -> None:
    """Deliver a life batch by batch, and compare after each run, after a rebuild, and after a second one."""
    things = Things(memory, name, models, **replaced)
    whole = life.source.after if captures_rows else None
    known, newest = set[Change](), None
    for batch in life.batches:
        staged: list[Staged | str] = []
        for record in batch:
            if isinstance(record, Snapshot):
                newest = record
                staged += things.snapshot(record)
            else:
                known.add(record)
                staged.append(record.record(life.source.after[record] if captures_rows else None))
        things.append(*staged)
        things.run()
        things.check(fold(known, newest, whole))
    things.run(full_refresh=True)
    things.check(fold(known, newest, whole))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3, 4))])
def test_two_hundred_histories_of_some_columns_are_those_of_a_plain_fold(memory: Memory, seed: int) -> None:
    live(memory, Life(seed), f"life_{seed}", {name: MODELS[name] for name in ("things_fresh", "things_view")})


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.soak)])
def test_histories_of_whole_rows_are_those_of_a_plain_fold(memory: Memory, seed: int) -> None:
    live(memory, Life(seed), f"rows_{seed}", WHOLE_ROWS, captures_rows=True)


COLUMNS_BESIDE = "macros/materializations/current_state/columns_beside_snapshot.sql"
RECORDS = "macros/change_records/records_beside_snapshot.sql"
NO_COLUMNS = "if(_change_is_absent, cast(map() as map<string, string>), _change_column_sequences)"
BUGS = {
    "what a snapshot contains is part of rows": {COLUMNS_BESIDE: {"where _change_sequence >= '0'": "where true"}},
    "a row is absent that the snapshot has": {COLUMNS_BESIDE: {"_change_row_sequence is null and ": ""}},
    "a row that the snapshot lacks stays": {
        COLUMNS_BESIDE: {"set finds_absent = range.repair and table": "set finds_absent = false"}
    },
    "a row of which only some values are equal is not written": {
        COLUMNS_BESIDE: {"{{ kept | join(' and ') or": "{{ kept | join(' or ') or"}
    },
    "a change that the snapshot contains keeps its place": {
        RECORDS: {
            "if(_change_snapshot = 'before', concat('-', substring(_change_sequence, 2)), ": "if(false, '', ",
            "if(_change_snapshot = 'before', 'delete', _change_type)": "_change_type",
        }
    },
    "the moment of a snapshot has no nanoseconds": {
        "macros/change_records/sequence_sections.sql": {"~ '000000000')[:9] | int)": "~ '000000000')[:6] | int * 1000)"}
    },
}


BUGS_OF_REPAIRS = {
    "columns that were changed since are deleted with an absent row": {
        COLUMNS_BESIDE: {"\n    _change_column_sequences,\n": f"\n    {NO_COLUMNS} as _change_column_sequences,\n"}
    },
    "a row that was inserted after the snapshot is counted as deleted": {
        COLUMNS_BESIDE: {"and coalesce(_change_base_row_sequence, '') < {{ floor }}": "and true"}
    },
    "a change that comes with the snapshot is a repair": {
        COLUMNS_BESIDE: {
            " or newest._change_column_sequences[' ~ reconcile.literal(column.name) ~ '] is not null)": ")"
        }
    },
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS_OF_REPAIRS)
def test_a_planted_bug_of_a_repair_is_found(memory: Memory, bug: str) -> None:
    with pytest.raises(AssertionError):
        repair(memory, f"bug_of_repair_{list(BUGS_OF_REPAIRS).index(bug)}", BUGS_OF_REPAIRS[bug])


# Life 33 has what the bugs need: rows whose delete was lost, and changes that come after the snapshot that has them.
@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(memory: Memory, bug: str) -> None:
    name = f"bug_{list(BUGS).index(bug)}"
    with pytest.raises(Wrong):
        live(memory, Life(33, keys=30, parts=4), name, {"things": MODELS["things"]}, replaced=BUGS[bug])
