"""Tombstones go, and nothing comes back: what is before a horizon is quarantined, in increments as in a rebuild.

The job's own statements run on tables in memory, between runs of models of invented histories. What they must leave is
the fold, in plain Python, of the records that came in time.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from histories import COLUMNS, KEY, Record, fold, generate
from laws import Lakehouse, LawBroken, StagedHistories, demand, some
from memory import Memory
from pyspark.sql import DataFrame, SparkSession
from reconcile_jobs.retention import tombstones
from reconcile_jobs.retention.plan import Account, Reader
from reconcile_jobs.retention.tombstones import TombstoneResult, Tombstones, horizon_to_delete
from reconcile_jobs.staging import TableName

SOURCES = ["mysql", "postgresql", "sqlserver", "oracle", "spanner"]
LAST = 6  # batches


class Session:
    """What the job needs of a Spark session, on tables in memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def table(self, name: str) -> DataFrame:
        return self.memory.table(name.replace("`", ""))

    def sql(self, sql: str) -> DataFrame | None:
        word, rest = sql.split(" ", 1)
        if word == "SELECT":
            return self.memory.sql(sql)
        if word == "DELETE":
            name, where = re.fullmatch(r"FROM (\S+) WHERE (.*)", rest, re.S).groups()  # type: ignore[union-attr]
            self.memory.delete(name.replace("`", ""), where)
        elif word == "INSERT":
            name, rows = re.fullmatch(r"INTO (\S+) BY NAME (.*)", rest, re.S).groups()  # type: ignore[union-attr]
            self.memory.query(f"insert into {name} by name\n{rows}")
        elif word == "ALTER":
            self.memory.query(
                sql.replace("ALTER TABLE", "alter table").replace(" SET TBLPROPERTIES", " set tblproperties")
            )
        else:
            raise AssertionError(sql)
        return None


class Shop(Lakehouse):
    """Models of several sources, their nights, and what must be true of them."""

    def __init__(self, memory: Memory, schema: str, staged: StagedHistories, seed: int, **options: Any) -> None:
        super().__init__(schema, staged, **options)
        self.memory, self.chance, self.seed = memory, random.Random(seed), seed
        self.deleted: dict[str, set[Any]] = {source: set() for source in self.sources}
        self.applied_before = 0  # the last batch that was appended long enough ago
        self.purged = False  # whether staging is purged up to what all models have applied
        told = [record for source in self.sources for _, record in staged.records[source]]
        # In microseconds. Of times that disagree with the log, most deletes are not old until all are.
        self.moments = [*sorted({round(record.time.timestamp() * 1e6) for record in told})[-2:], 1 << 60]
        self.before = 1 << 60

    # --- as the tables of the job ---

    def readers(self) -> list[Reader]:
        return [
            Reader(f"{self.schema}_staging.changes", f"{self.schema}.reconcile_ledger", f"{self.schema}.{source}",
                   "current_state", (source,))
            for source in self.sources
        ]  # fmt: skip

    def night(self, age: timedelta = timedelta(0)) -> TombstoneResult:
        """Delete tombstones, and propose horizons, as `maintain.py --tombstones` does."""
        before = {source: self.tombstones(source) for source in self.sources}
        tables: Any = SimpleNamespace(
            readers=self.readers, properties=dict, has=lambda table: self.memory.has(".".join(table.parts)),
            accounts=lambda readers, purged: [(reader, self.account(reader)) for reader in readers],
            first_batch=lambda reader: self.batch + 1 if self.purged else 1,
            appended_at=lambda objects, batch: None, applied_before=lambda reader, micros: self.applied_before,
            said_of_base=lambda base: self.memory.relation_properties(*base.parts), rebuilt=self.rebuilt,
            has_later_range=self.has_later_range,
        )  # fmt: skip
        clock: Any = SimpleNamespace(now=lambda: self.before * 1000)
        session: Any = Session(self.memory)
        job = Tombstones(session, tables, age, lambda text: None, clock)
        result = job.run()
        for source in self.sources:
            self.deleted[source] |= before[source] - self.tombstones(source)
        return result

    def account(self, reader: Reader) -> Account:
        said = self.accounts[reader.objects[0]][-1]
        largest = max((row["_change_batch"] for row in self.base(reader.objects[0]).values()), default=0)
        return Account(said.last_batch, said.base_batch, largest, entry=said.entry)

    def ranges(self, reader: Reader) -> list[Any]:
        """Return what the ledger has of a model."""
        rows = self.memory.rows(f"{self.schema}.reconcile_ledger")
        return [row for row in rows if row.relation == reader.relation and row.kind in ("apply", "replay", "rebuild")]

    def rebuilt(self, reader: Reader) -> int:
        return max((row.entry for row in self.ranges(reader) if row.kind == "rebuild"), default=0)

    def has_later_range(self, reader: Reader, batch: int) -> bool:
        entries = sorted(row.entry for row in self.ranges(reader) if row.last_batch >= batch)
        return bool(entries) and max(row.entry for row in self.ranges(reader)) > entries[0]

    def tombstones(self, source: str) -> set[Any]:
        return {key for key, row in self.base(source).items() if row["_deleted"]}

    # --- what must be true ---

    def check_proposals(self) -> None:
        """No horizon is proposed after a change of the last days, and the newest batch still shows in the base."""
        if not self.memory.has(f"{self.schema}.reconcile_horizons"):
            return
        for source in self.sources:
            base = self.base(source)
            rows = self.memory.rows(f"{self.schema}.reconcile_horizons")[-1:]
            newest = [row for row in rows if row.relation == f"{self.schema}.{source}" and row.kind == "proposed"]
            for key, row in base.items():
                young = row["_change_time"] is None or row["_change_time"].timestamp() * 1e6 >= self.before
                for one in newest:
                    demand(not young or row["_change_sequence"] > one.sequence, f"{source}: {key} is not old")
            account = self.accounts[source][-1]
            largest = max((row["_change_batch"] for row in base.values()), default=0)
            demand(largest == account.base_batch, f"{source}: the base table looks restored")

    def horizons(self, source: str) -> list[Any]:
        if not self.memory.has(f"{self.schema}.reconcile_horizons"):
            return []
        rows = self.memory.rows(f"{self.schema}.reconcile_horizons")
        return [row for row in rows if row.relation == f"{self.schema}.{source}" and row.kind == "taken"]

    def late(self, source: str) -> Callable[[int, Record], bool]:
        """Return whether a record of a batch came too late, in plain Python."""
        sequences, taken = self.sequences(source), self.horizons(source)

        def came_late(batch: int, record: Record) -> bool:
            if record.bad:
                return False
            place = sequences[record.uuid]
            return any(batch >= one.first_batch and place <= one.sequence for one in taken)

        return came_late

    def check_horizons(self) -> Counter[str]:
        """Rows, quarantines and accounts are those of the records that came in time; return how many did not."""
        late_records: Counter[str] = Counter()
        for source in self.sources:
            came_late, delivered = self.late(source), self.staged.upto(source, self.batch)
            rows = [tuple(row) for row in self.memory.table(f"{self.schema}.{source}").select(*COLUMNS).collect()]
            in_time = [record for batch, record in delivered if not came_late(batch, record)]
            expected = fold(in_time)
            there = {key for key, rivals in expected.items() if rivals[0].live}
            keys = [row[: len(KEY)] for row in rows]
            demand(len(set(keys)) == len(keys), f"{source}: a key comes twice")
            demand(set(keys) == there, f"{source}: the live keys are others: {some(set(keys) ^ there)}")
            allowed = {(*key, *folded.values) for key in there for folded in expected[key]}
            demand(set(rows) <= allowed, f"{source}: rows are not as folded: {some(set(rows) - allowed)}")
            held = self.memory.rows(f"{self.schema}.{source}__quarantine")
            seen = Counter((row._change_batch, row.record) for row in held)
            # A record that holds several changes is in quarantine once for each that came late.
            out = Counter((b, record.text) for b, record in delivered if record.bad or came_late(b, record))
            demand(seen == out, f"{source}: quarantined {some((seen - out) | (out - seen))}")
            last = self.accounts[source][-1]
            classes = ("applied", "superseded", "duplicate", "quarantined", "pending")
            demand(last.delivered == sum(last[name] for name in classes), f"{source}: {last} does not add up")
            late_records[source] = sum(came_late(batch, record) for batch, record in delivered)
        return late_records


@contextmanager
def in_memory(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    with Memory(spark) as memory:

        def create(session: Any, table: TableName, columns: Any, execute: Any) -> None:
            if not memory.has(".".join(table.parts)):
                types = ", ".join(" ".join(column.split()[:2]) for column in columns)
                memory.keep(".".join(table.parts), memory.spark.createDataFrame([], types))

        monkeypatch.setattr(tombstones, "create_table", create)
        yield memory


def staged(memory: Memory, schema: str, sources: list[str], count: int, seed: int) -> StagedHistories:
    chance = random.Random(seed)
    records: dict[str, list[Record]] = {}
    for source in sources:
        told = generate(source, count, seed=seed)
        ranks = sorted({record.rank for record in told})
        place = {rank: number / len(ranks) for number, rank in enumerate(ranks)}
        batches: dict[str, int] = {}
        records[source] = []
        for record in told:
            late = chance.random() < 0.4
            batch = chance.randint(1, LAST) if late else 1 + int(LAST * place[record.rank])
            # What one staged record holds comes together.
            batch = batches.setdefault(record.text, batch)
            records[source].append(replace(record, batches=(batch, batch)))
    return StagedHistories(memory, f"{schema}_records", records, delivery=0, again=True)


def live(shop: Shop, keeps_staging: bool = False) -> Counter[str]:
    """Let the batches come, with a night after each; then rebuild. Return how many records came late.

    `keeps_staging`: staging is never purged, and batches are replayed.
    """
    late: Counter[str] = Counter()
    for batch in range(1, shop.staged.last + 2):
        shop.run(batch)
        late = shop.check_horizons()
        shop.applied_before = batch - shop.chance.randint(0, 1)
        shop.purged = not keeps_staging and shop.chance.random() < 0.7
        shop.before = shop.moments[min(2, 3 * batch // (shop.staged.last + 1))]
        result = shop.night()
        demand(not result.kept, f"kept: {result.kept}")
        shop.check_horizons()
        shop.check_proposals()
        if keeps_staging and batch > 4:
            # As after a restore of the ledger: the next run replays the last batches.
            shop.memory.delete(f"{shop.schema}.reconcile_ledger", f"kind <> 'rebuild' and last_batch > {batch - 3}")
            shop.run(batch)
            shop.check_horizons()
    shop.run(shop.staged.last + 1, full_refresh=True)
    again = shop.check_horizons()
    demand(again == late, f"a rebuild quarantines {again}, and increments {late}")
    return late


@pytest.mark.parametrize(
    ("sources", "count", "seed"),
    [
        pytest.param(["mysql", "spanner"], 25, 1, id="mysql-spanner"),
        pytest.param(["postgresql", "sqlserver", "oracle"], 40, 2, id="others", marks=pytest.mark.soak),
        *(pytest.param(SOURCES, 70, seed, id=f"two-hundred-{seed}", marks=pytest.mark.soak) for seed in (3, 4, 5)),
    ],
)
def test_what_comes_after_its_tombstone_is_gone_brings_no_row_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sources: list[str], count: int, seed: int
) -> None:
    """Laws 1, 2 and 5, within the horizon."""
    with in_memory(spark, monkeypatch) as memory:
        shop = Shop(memory, "horizons", staged(memory, "horizons", sources, count, seed), seed)
        late = live(shop)
        came_after = set()
        for source in sources:
            came_late = shop.late(source)
            keys = {r.key for b, r in shop.staged.upto(source, shop.batch) if came_late(b, r) and r.kind != "delete"}
            assert late[source] > 10
            came_after |= {source} if keys & shop.deleted[source] else set()
        assert came_after, "no record came after its tombstone was gone"


def test_batches_that_are_applied_again_bring_no_row_back(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Staging has the records of before the horizon, so the tombstones stay."""
    with in_memory(spark, monkeypatch) as memory:
        shop = Shop(memory, "replayed", staged(memory, "replayed", ["sqlserver"], 40, 6), 6)
        assert live(shop, keeps_staging=True)["sqlserver"] > 10
        assert not shop.deleted["sqlserver"]


LATE, TAKEN = "macros/change_records/before_horizon.sql", "macros/materializations/take_horizon.sql"
HORIZONS = "macros/ledger/horizons.sql"
BUGS = {
    "a late record is applied": {"macros/change_records/checked_records.sql": {"form.horizons %}": "false %}"}},
    "a late delete is applied": {"macros/change_records/checked_records.sql": {
        "_change_error is null and {{ reconcile.is_before": "_change_type <> 'delete' and {{ reconcile.is_before"}},
    "the batch of the horizon is before it": {LATE: {"_change_batch >= ' ~": "_change_batch > ' ~"}},
    "the nearest horizon counts": {LATE: {"if of_earlier else 'null'": "if false else 'null'"}},
    "a rebuild has no horizon": {TAKEN: {"if taken -%}": "if taken and range.kind != 'rebuild' -%}"}},
    "a run does not keep to what it takes": {TAKEN: {"set taken = taken + [{": "set kept = taken + [{"}},
    "the horizon begins after the range": {TAKEN: {"proposed, range.first, settings":
                                                   "proposed, range.last + 1, settings"}},
    "what is proposed is taken": {HORIZONS: {"if row.kind == 'taken' else": "if true else"}},
    "what was taken is forgotten": {HORIZONS: {"(kind = 'taken' or ": "(false or "}},
}  # fmt: skip


# What shows where batches are replayed.
REPLAY_BUGS = {
    "a horizon is taken for batches that were applied": {
        TAKEN: {"range.kind == 'apply' and ": "", " | selectattr('first', 'le', range.first)": ""}
    },
    "a replay has no horizon": {TAKEN: {"if taken -%}": "if taken and range.kind != 'replay' -%}"}},
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    name = f"bug_{list(BUGS).index(bug)}"
    with in_memory(spark, monkeypatch) as memory, pytest.raises(LawBroken):
        live(Shop(memory, name, staged(memory, name, ["mysql"], 30, 1), 1, replaced=BUGS[bug]))


@pytest.mark.planted
@pytest.mark.parametrize("bug", REPLAY_BUGS)
def test_a_planted_bug_of_replays_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    name = f"replay_bug_{list(REPLAY_BUGS).index(bug)}"
    with in_memory(spark, monkeypatch) as memory, pytest.raises(LawBroken):
        live(Shop(memory, name, staged(memory, name, ["mysql"], 30, 1), 1, replaced=REPLAY_BUGS[bug]), True)


def before_their_time(taken: Any, applied: int, oldest_batch: int | None) -> Any:
    return horizon_to_delete(taken, applied, None)


PLANTED_IN_JOB: dict[str, tuple[Any, str, Any, bool]] = {
    "tombstones before their time": (tombstones, "horizon_to_delete", before_their_time, True),
    "live rows too": (Tombstones, "_is_tombstone", lambda self, base: "true", False),
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", PLANTED_IN_JOB)
def test_a_bug_that_is_planted_into_the_job_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    of, name, planted, keeps_staging = PLANTED_IN_JOB[bug]
    monkeypatch.setattr(of, name, planted)
    with in_memory(spark, monkeypatch) as memory, pytest.raises(LawBroken):
        schema = f"planted_{list(PLANTED_IN_JOB).index(bug)}"
        live(Shop(memory, schema, staged(memory, schema, ["sqlserver"], 40, 6), 6), keeps_staging)
