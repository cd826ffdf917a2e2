"""What maintain.py purges of staging: never what a model still needs, and never what is young; and how a purge ends.

All of it in plain Python: models that are run, killed and restored, ledgers of several projects, and tables in memory.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import maintain
import pytest
from reconcile_jobs import log_snapshots
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.retention import plan
from reconcile_jobs.retention.files import Files
from reconcile_jobs.retention.plan import (
    NOT_ENDED,
    Account,
    KeptBack,
    Reader,
    StagedObject,
    batch_to_purge,
    kept_objects,
    purged_objects,
    quarantined,
)
from reconcile_jobs.retention.purge import Purge, Result
from reconcile_jobs.retention.tables import Tables, _columns_of_copy, accounts_sql, declared_staging, named
from reconcile_jobs.staging import TableName, is_purged
from refusals import thing
from shapes import Life

STAGING = TableName(("lake", "changes"))
LEDGERS = ("shop.reconcile_ledger", "sales.reconcile_ledger")
OBJECTS = ("orders", "lines", "stock")


@dataclass(frozen=True)
class Record:
    """A staged record; some leave no trace in a base table, as those that lose or are quarantined."""

    object: str
    batch: int
    leaves_trace: bool = True
    is_bad: bool = False  # and so is quarantined


@dataclass
class Model:
    """A model as a run sees it: its base table, and the account that its ledger has."""

    reader: Reader
    versions: list[frozenset[int]] = field(default_factory=list)  # of the base table: the batches of its rows
    ledger: tuple[int, int] | None = None  # the last batch, and the largest batch of the base table then
    built_as: Reader | None = None  # as the model was declared when it was built
    quarantine: frozenset[Record] = frozenset()
    retried: int = 0  # the mark of the base table

    @property
    def base(self) -> frozenset[int]:
        return self.versions[-1]

    def needs(self, rows: list[Record], cut: int) -> list[Record]:
        """Return the records that the next run reads, as macros/materializations/range_to_apply.sql says."""
        if not self.versions or self.ledger is None or self.is_changed:
            first = 1
        else:
            known, (last, base_then) = max(self.base, default=0), self.ledger
            first = (last if known == base_then else min(known, last)) + 1
        return [row for row in rows if row.object in self.reader.objects and first <= row.batch <= cut]

    @property
    def is_changed(self) -> bool:
        """Whether the model was declared otherwise when it was built; only a rebuild is not refused then."""
        return self.built_as not in (None, self.reader)

    @property
    def first(self) -> int:
        """The first batch that the next increment reads."""
        assert self.ledger
        return Account(*self.ledger, max(self.base, default=0)).applied + 1

    def run(self, rows: list[Record], cut: int, killed: bool = False) -> None:
        """Run the model; killed, it dies between its MERGE and its ledger row."""
        records, is_first = self.needs(rows, cut), not self.versions or self.is_changed
        self.built_as = self.reader
        if not records and not is_first:
            return
        if is_first:
            self.versions = []  # earlier ones have other declarations, and are refused
        kept = frozenset() if is_first else self.base
        merged = kept | {row.batch for row in records if row.leaves_trace}
        if merged != kept or is_first:
            self.versions.append(merged)
        self.quarantine = (frozenset() if is_first else self.quarantine) | {row for row in records if row.is_bad}
        if not killed:
            self.ledger = cut, max(self.base, default=0)

    def restore(self, version: int) -> None:
        self.versions.append(self.versions[version])

    def account(self, rows: list[Record]) -> Account | None:
        if self.ledger is None or not self.versions:
            return None
        if self.is_changed:
            return Account(0, 0, 0, problem="its base table was built from others")
        bad = Counter(row.batch for row in rows if row in self.quarantine)
        account = Account(*self.ledger, max(self.base, default=0), quarantined=tuple(sorted(bad.items())))
        waiting = [r.batch for r in rows if r.object in self.reader.objects and r.batch > account.applied]
        return replace(account, waits_for=min(waiting, default=None), retried=self.retried)


def reader(name: str, *objects: str, ledger: str = LEDGERS[0], materialized: str = "current_state") -> Reader:
    schema = ledger.split(".")[0]
    return Reader("lake.changes", ledger, f"{schema}.{name}", materialized, objects or OBJECTS[:1])


def lived(seed: int) -> tuple[list[Record], list[Model], int, int]:
    """Return staging, models, the last batch, and the last one that is old, after a life drawn at random."""
    draw = random.Random(seed)
    rows: list[Record] = []
    models = [
        Model(reader(f"m{n}", *draw.sample(OBJECTS, draw.randint(1, 2)), ledger=draw.choice(LEDGERS)))
        for n in range(draw.randint(1, 4))
    ]
    last = draw.randint(1, 12)
    quiet_after = {name: draw.randint(1, 20) for name in OBJECTS}
    for batch in range(1, last + 1):
        for object_ in OBJECTS:
            if draw.random() < 0.6 and batch <= quiet_after[object_]:
                is_bad = draw.random() < 0.04
                rows.append(Record(object_, batch, draw.random() < 0.7 and not is_bad, is_bad))
        cut = max((row.batch for row in rows), default=0)
        for model in models:
            deed = draw.random()
            if deed < 0.5:
                # A run that is killed after its first MERGE leaves a base table without an account: it is built anew.
                model.run(rows, cut, killed=deed < 0.1 and model.ledger is not None and not model.is_changed)
            elif deed < 0.6 and model.versions and not model.is_changed:
                model.restore(draw.randrange(len(model.versions)))
            elif deed > 0.98 and model.versions:
                # It reads another staging table, or other objects, until it is rebuilt only in its declaration.
                moved = {"staging": "lake.others"} if deed > 0.99 else {"objects": (draw.choice(OBJECTS),)}
                model.reader = replace(model.reader, **moved)  # type: ignore[arg-type]
    return rows, models, last, draw.randint(0, last)


def test_of_many_lives_a_purge_goes_as_far_as_it_may_and_no_further():
    seen: Counter[str] = Counter()
    for seed in range(3000):
        rows, everybody, last, aged = lived(seed)
        draw = random.Random(-seed - 1)
        # What reads another table needs nothing of this one; but its row may still be there.
        gone = [model for model in everybody if draw.random() < 0.1]
        models = [model for model in everybody if model not in gone]
        with_quarantined = draw.random() < 0.3
        accounts = [model.account(rows) for model in models]
        batch, kept_back = batch_to_purge(
            aged, list(zip([model.reader for model in models], accounts, strict=True)), with_quarantined
        )
        unknown = [
            m
            for m, account in zip(models, accounts, strict=True)
            if account is None or account.problem or account.is_under_way
        ]
        needed = {row.batch for model in models for row in model.needs(rows, last)}
        bad = {row.batch for m in models if m not in unknown for row in m.quarantine}
        held = needed | (set() if with_quarantined else bad)
        assert batch <= aged, seed
        assert all(needs > batch for needs in held), f"{seed}: a model needs what is purged"
        if batch < aged:
            assert (batch == 0 and unknown) or batch + 1 in held, f"{seed}: more could be purged"
            assert min(one.batch for one in kept_back) == batch
        else:
            assert not kept_back, f"{seed}: nothing keeps the purge back"
        read = {name for model in models for name in model.reader.objects}
        left = [row for row in rows if row.batch > batch or row.object not in read]
        marks: dict[str, int] = {}
        for row in set(rows) - set(left):
            marks[row.object] = max(row.batch, marks.get(row.object, 0))
        known = max([*marks.values(), *(row.batch for row in left)], default=0)
        for model in everybody:
            if model in unknown or (model in gone and model.is_changed):
                continue
            # See `refuse_purged_range` and `_refuse_reset_staging`; a model that was not built is built anew.
            built = model.ledger is not None and bool(model.versions)
            mark = max((marks.get(name, 0) for name in model.reader.objects), default=0)
            if mark >= (model.first if built else 1):
                assert model in gone, f"{seed}: {model.reader.relation} is refused, and lacks nothing"
                seen["refused"] += 1
                continue
            assert not built or known >= model.first - 1, f"{seed}: taken for a table that was made anew"
            # And what is left is enough: each model comes to have all that was ever delivered to it.
            model.run(left, last)
            whole = {row.batch for row in rows if row.object in model.reader.objects and row.leaves_trace}
            assert model.base == whole, f"{seed}: {model.reader.relation} lacks records"
            seen["gone, and whole"] += model in gone and batch > 0
        seen.update(
            {
                "purged": bool(batch),
                "held": bool(kept_back),
                "held by a quarantine": any("quarantined" in one.why for one in kept_back),
                "held by a change": any("built from" in one.why for one in kept_back),
                "quiet": any(mark < batch for mark in marks.values()),
            }
        )
    assert min(seen[what] for what in ("purged", "held", "quiet")) > 300, f"lives that show nothing: {seen}"
    others = ("refused", "gone, and whole", "held by a quarantine", "held by a change")
    assert min(seen[what] for what in others) > 30, f"lives that show nothing: {seen}"


CASES: dict[str, tuple[Reader, Account | None, int, str]] = {
    "never run": (reader("m"), None, 0, "never run"),
    "behind": (reader("m"), Account(1204, 1204, 1204, waits_for=1207), 1206, "behind at 1,206"),
    "killed after its merge": (reader("m"), Account(3, 3, 5, waits_for=4), 0, NOT_ENDED),
    "set back": (reader("m"), Account(7, 6, 2, waits_for=3), 2, "set back to 2"),
    "a view": (
        reader("m", materialized="current_view"), None, 0, "a current_view, which reads all of staging",
    ),
    "a SELECT of its own": (
        Reader("lake.changes", LEDGERS[0], "shop.m", "history", ()), Account(9, 9, 9), 0,
        "without a source macro, so its objects are not known",
    ),
    "a quarantine": (
        reader("m"), Account(9, 9, 9, waits_for=8, quarantined=((4, 1), (6, 1999))), 3,
        "2,000 quarantined records from batch 4 on",
    ),
    "of another staging": (reader("m"), Account(9, 9, 9, problem="it is odd"), 0, "it is odd"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_keeps_a_purge_back_is_named_with_its_reason(name: str):
    model, account, batch, why = CASES[name]
    other = reader("other", ledger=LEDGERS[1])
    given = [(other, Account(9, 9, 9)), (model, account)]
    assert batch_to_purge(5000, given) == (batch, [KeptBack(model, batch, why)])
    assert batch_to_purge(batch, given) == (batch, []), "what is young keeps nothing back"


def behind_a_slow_model(aged: int, readers: Any, with_quarantined: bool = False) -> Any:
    fast = [(of, account and replace(account, waits_for=None)) for of, account in readers]
    return plan.batch_to_purge(aged, fast, with_quarantined)


def of_a_model_that_never_ran(aged: int, readers: Any, with_quarantined: bool = False) -> Any:
    return plan.batch_to_purge(aged, [one for one in readers if one[1]], with_quarantined)


def of_what_is_quarantined(aged: int, readers: Any, with_quarantined: bool = False) -> Any:
    return plan.batch_to_purge(aged, readers, with_quarantined=True)


@pytest.mark.parametrize("planted", [behind_a_slow_model, of_a_model_that_never_ran, of_what_is_quarantined])
def test_a_purge_that_goes_too_far_is_noticed(monkeypatch: pytest.MonkeyPatch, planted: Callable[..., Any]):
    monkeypatch.setitem(globals(), "batch_to_purge", planted)
    with pytest.raises(AssertionError, match="a model needs what is purged"):
        test_of_many_lives_a_purge_goes_as_far_as_it_may_and_no_further()


def test_quarantined_records_go_where_somebody_has_said_so():
    given = [(reader("m"), Account(9, 9, 9, quarantined=((4, 1),)))]
    assert batch_to_purge(9, given) == (3, [KeptBack(reader("m"), 3, "1 quarantined record from batch 4 on")])
    assert batch_to_purge(9, given, with_quarantined=True) == (9, [])
    assert batch_to_purge(3, given) == (3, []), "what is young keeps nothing back"
    assert [quarantined([given[0][1], None], batch) for batch in (3, 4)] == [0, 1]


def test_a_model_that_waits_for_nothing_keeps_nothing_back():
    """Of a table that rarely changes the account ends long before the last batch."""
    assert batch_to_purge(900, [(reader("m"), Account(4, 4, 4)), (reader("n"), Account(0, 0, 0))]) == (900, [])


def test_only_records_go_that_a_model_reads_and_no_append_compares_with():
    models = [reader("m", "orders", "copies", "begun")]
    staged = [
        StagedObject("orders", 5), StagedObject("stock", 3), StagedObject(None, 2), StagedObject("#cut", 9),
        StagedObject("#snapshot of begun", 4, is_snapshot=True), StagedObject("begun", 6, has_snapshot=True),
        StagedObject("copies", 7, is_snapshot=True), StagedObject("lines", 0),
    ]  # fmt: skip
    assert [of.name for of in purged_objects(models, staged)] == ["orders"]
    kept = {why: [of.name for of in those] for why, those in kept_objects(models, staged).items()}
    assert kept == {
        "no model reads them": ["stock", None],
        "a snapshot beside the log begins among them": ["begun"],
        "the next snapshot is compared with them": ["copies"],
    }


def test_the_job_asks_a_ledger_as_a_run_does():
    macros = Life(thing()).project.macros
    asked = accounts_sql(TableName(("demo", "reconcile_ledger")), ["demo.a", "it's"])
    assert asked.split() == macros._accounts(["demo.a", "it's"], by_name=True).split()


def test_a_ledger_that_an_earlier_version_wrote_has_no_batch_of_deletes(tables: Any):
    opened, asked = tables(**{"shop__of__reconcile_ledger": {}})
    for asked.is_of_now in (True, False):
        opened.accounts([reader("orders", "orders")], 0)
    now, before = (sql for sql in asked.said if "as ledger_batch" in sql)
    of_before = "cast(null as bigint) as deletes_batch, cast(null as bigint) as retried,"
    assert before == now.replace("deletes_batch, retried,", of_before)
    assert before != now


# --- how a purge ends -------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The job was killed."""


class World(Tables):
    """The tables of a purge, in memory. `meets`: what happens before each thing that the job asks or does."""

    def __init__(self) -> None:
        self.rows = [Record(name, batch) for batch in (1, 2, 3, 4) for name in ("orders", "lines", "stock", "#cut")]
        self.models = [Model(reader("orders", "orders")), Model(reader("lines", "lines", ledger=LEDGERS[1]))]
        for model in self.models:
            for cut in (1, 2, 3):
                model.run(self.rows, cut)
        self.texts: dict[str, str] = {}
        self.purges: list[tuple[str, str, str, int, str]] = []
        self.copies: dict[str, tuple[frozenset[int], int]] = {}
        self.declared: dict[str, Reader] = {}  # as the model was when it was copied
        self.marks: dict[str, int] = defaultdict(int)  # that of the base table when it was copied
        self.fails: str | None = None  # what raises
        self.asked = self.written = 0
        self.before = 0  # of what is old, as the job asks
        self.finished: dict[str, tuple[int, str, int, int]] = {}  # what copies say: see `finish_copy`
        self.meets: Callable[[int], None] = lambda asked: None
        self.dies_at: float = 0  # n: before the n-th write; n and a half: after it
        self.refuses = 0  # so many deletes

    def _asks(self) -> None:
        self.asked += 1
        self.meets(self.asked)

    def _writes(self, act: Callable[[], Any]) -> Any:
        self._asks()
        self.written += 1
        if self.fails and self.fails in str(act.__qualname__):
            raise PermissionError("no right")
        if self.written == self.dies_at:
            raise Killed
        done = act()
        if self.written + 0.5 == self.dies_at:
            raise Killed
        return done

    def properties(self) -> dict[str, str]:
        self._asks()
        return dict(self.texts)

    def readers(self) -> list[Reader]:
        self._asks()
        return [model.reader for model in self.models]

    def aged(self, before_micros: int) -> int:
        self._asks()
        self.before = before_micros
        return 3

    def staged(self, batch: int) -> list[StagedObject]:
        self._asks()
        names = {row.object for row in self.rows}
        return [
            StagedObject(name, self.count([name], batch), max((r.batch for r in self.of([name], batch)), default=0))
            for name in sorted(names)
        ]

    def records(self, objects: Any, batch: int) -> int:
        self._asks()
        return self.count(objects, batch)

    def count(self, objects: Any, batch: int) -> int:
        return len(self.of(objects, batch))

    def of(self, objects: Any, batch: int) -> list[Record]:
        return [row for row in self.rows if row.object in objects and row.batch <= batch]

    def make_readers(self) -> None:
        pass

    def accounts(self, readers: Any, purged: int) -> list[tuple[Reader, Account | None]]:
        self._asks()
        return [(model.reader, model.account(self.rows)) for model in self.models if model.reader in readers]

    def copied_batch(self, base: TableName, copy: TableName) -> int | None:
        self._asks()
        if str(copy) not in self.copies:
            return None
        model, copied = self.built(base), self.declared[str(copy)]
        return self.copies[str(copy)][1] if copied == model.built_as and self.marks[str(copy)] == model.retried else 0

    def built(self, base: TableName) -> Model:
        (model,) = (m for m in self.models if f"{m.reader.relation}__base" == str(base))
        return model

    def has_keyless_deletes(self, base: TableName) -> bool:
        return str(base).startswith("sales")

    def keep(self, texts: dict[str, str]) -> None:
        self._writes(lambda: self.texts.update(texts))

    def copy(self, base: TableName, copy: TableName) -> int:
        model = self.built(base)
        assert model.built_as
        self.declared[str(copy)], self.marks[str(copy)] = model.built_as, model.retried
        self._writes(lambda: self.copies.update({str(copy): (model.base, 0)}))
        return max(self.copies[str(copy)][0], default=0)

    def finish_copy(
        self, copy: TableName, batch: int, last_batch: str, deletes_batch: int, quarantine: TableName, purged: int
    ) -> None:
        assert str(quarantine) == str(copy).replace("__snapshot", "__quarantine")
        assert 0 < purged <= batch
        self.finished[str(copy)] = batch, last_batch, deletes_batch, purged
        self._writes(lambda: self.copies.update({str(copy): (self.copies[str(copy)][0], batch)}))

    def write_purge(self, ledger: TableName, staging: str, marks: Any, id_: str) -> None:
        self._writes(
            lambda: self.purges.extend((str(ledger), staging, name, batch, id_) for name, batch in marks.items())
        )

    def take_back_purge(self, ledger: TableName, staging: str, id_: str) -> None:
        others = [p for p in self.purges if (p[0], p[1], p[4]) != (str(ledger), staging, id_)]
        self._writes(lambda: setattr(self, "purges", others))

    def delete(self, objects: Any, batch: int) -> bool:
        if self.refuses:
            self.refuses -= 1
            return False
        left = [row for row in self.rows if row.object not in objects or row.batch > batch]
        self._writes(lambda: setattr(self, "rows", left))
        return True

    # --- what a run asks ---

    def marked(self, name: str) -> int:
        return max(
            [int(self.texts.get(f"purged.{md5(name)}", 0)), *(batch for *_, of, batch, _ in self.purges if of == name)]
        )

    def check_purged_up_to(self, batch: int) -> None:
        """All of the purge is there: records, marks, ledgers, copies; and no purge that has begun."""
        assert sorted((row.object, row.batch) for row in self.rows) == sorted(
            (name, n)
            for n in (1, 2, 3, 4)
            for name in ("orders", "lines", "stock", "#cut")
            if n > batch or name in ("stock", "#cut")
        )
        assert not self.texts.get("purge")
        for name in ("orders", "lines"):
            assert int(self.texts.get(f"purged.{md5(name)}", 0)) == batch
            assert {of for of, _, what, n, _ in self.purges if (what, n) == (name, batch)} == (
                {model.reader.ledger for model in self.models} if batch else set()
            )
        for model in self.models if batch else []:
            rows, of = self.copies[f"{model.reader.relation}__snapshot"]
            assert of >= batch and rows >= {n for n in model.base if n <= batch}


def md5(name: str) -> str:
    return hashlib.md5(name.encode()).hexdigest()


class Still:
    """A clock that waits for nothing."""

    def now(self) -> int:
        return 1_800_000_000_000_000_000

    def wait(self, *_: Any) -> bool:
        return False


def purge(world: World, dry_run: bool = False) -> tuple[Result, list[str]]:
    said: list[str] = []
    clock: Any = Still()
    return Purge(world, STAGING, timedelta(days=30), said.append, clock).run(dry_run), said


def test_a_purge_leaves_marks_in_staging_and_in_every_ledger_and_copies_first():
    world = World()
    result, said = purge(world)
    world.check_purged_up_to(3)
    assert (result.batch, result.records, result.models, result.kept_back) == (3, 6, 2, [])
    assert result.snapshots == ["shop.orders__snapshot", "sales.lines__snapshot"]
    assert {why: [of.name for of in those] for why, those in result.kept_objects.items()} == {
        "no model reads them": ["stock"]
    }
    assert re.search(r"shop.orders__base was copied .* \(as_of\) can be built from batch 3 on", said[0])
    assert "can be rebuilt only as long as its base table exists" in said[1]
    assert world.before == 1_800_000_000_000_000 - 30 * 86_400 * 1_000_000, "microseconds, thirty days ago"
    # Again there is nothing to do, and nothing is written.
    written = world.written
    assert purge(world)[0].batch == 0 and world.written == written


def test_a_dry_run_writes_nothing_and_says_the_same():
    world, other = World(), World()
    planned, said = purge(world, dry_run=True)
    assert (planned, said, world.written) == (purge(other)[0], [], 0)


def test_a_model_that_is_behind_keeps_it_back_until_it_has_caught_up():
    world = World()
    slow = Model(reader("slow", "orders", "lines"))
    slow.run(world.rows, 1)
    world.models.append(slow)
    result, _ = purge(world)
    world.check_purged_up_to(1)
    assert [(one.reader, one.batch, one.why) for one in result.kept_back] == [(slow.reader, 1, "behind at 1")]
    slow.run(world.rows, 3)
    assert purge(world)[0].kept_back == []
    world.check_purged_up_to(3)


def writes_of_a_purge() -> int:
    world = World()
    purge(world)
    return world.written


@pytest.mark.parametrize("again", ["finishes", "finds a model behind", "dies again"])
def test_killed_before_or_after_each_write_the_same_command_ends_it(again: str):
    places = [n + half for n in range(1, writes_of_a_purge() + 1) for half in (0, 0.5)]
    assert len(places) > 12
    for place in places:
        world = World()
        world.dies_at = place
        with pytest.raises(Killed):
            purge(world)
        deleted = not world.count(["orders"], 3)
        world.written, world.dies_at = 0, 0
        if again == "dies again":
            world.dies_at = 1.5
            try:
                purge(world)
            except Killed:
                world.dies_at = 0
        if again == "finds a model behind" and not deleted:
            slow = Model(reader("slow", "orders"))
            slow.run(world.rows, 1)
            world.models.append(slow)
            purge(world)
            world.check_purged_up_to(1)
            slow.run(world.rows, 3)
        world.dies_at = 0
        purge(world)
        world.check_purged_up_to(3)


def test_a_purge_that_other_commits_always_overtake_leaves_all_and_the_same_command_ends_it():
    world = World()
    world.refuses = 2
    purge(world)
    world.check_purged_up_to(3)
    world = World()
    world.refuses = 99
    with pytest.raises(Fault, match=r"Other processes wrote to lake\.changes each time"):
        purge(world)
    world.refuses = 0
    purge(world)
    world.check_purged_up_to(3)


def test_a_purge_is_tried_five_times_and_waits_longer_each_time():
    waits: list[float] = []
    clock: Any = Still()
    clock.wait = lambda event, seconds: waits.append(seconds)
    world = World()
    world.refuses = 4
    Purge(world, STAGING, timedelta(days=30), lambda text: None, clock).run()
    world.check_purged_up_to(3)
    assert waits == [1, 2, 3, 4]


def test_what_a_copy_says_is_of_its_own_model_and_of_all_its_objects():
    world = World()
    both = Model(reader("both", "orders", "lines"))
    both.run(world.rows, 3)
    world.models.append(both)
    world.rows = [row for row in world.rows if row.object != "lines" or row.batch < 3]
    accounts = world.accounts
    world.accounts = lambda readers, purged: [  # type: ignore[method-assign]
        (of, account and replace(account, appended_at=41, deletes_batch=2)) for of, account in accounts(readers, purged)
    ]
    purge(world)
    assert world.finished == {
        "shop.orders__snapshot": (3, "3 41", 2, 3), "sales.lines__snapshot": (3, "3 41", 2, 2),
        "shop.both__snapshot": (3, "3 41", 2, 3),
    }  # fmt: skip


def test_a_copy_that_is_further_than_the_purge_is_one_of_later_moments():
    world = World()
    world.models[0].run(world.rows, 4)
    _, said = purge(world)
    assert said[0].endswith("Earlier moments (as_of) can be built from batch 4 on.")


def test_a_copy_that_has_the_purged_batches_is_not_made_again():
    world = World()
    world.fails = "write_purge"
    with pytest.raises(PermissionError):
        purge(world)
    assert len(world.finished) == 2
    world.fails, world.finished = None, {}
    _, said = purge(world)
    world.check_purged_up_to(3)
    assert (world.finished, said) == ({}, [])


def test_a_dry_run_ends_no_purge_that_has_begun_and_says_so():
    world = World()
    world.dies_at = writes_of_a_purge()  # before it notes that all is deleted
    with pytest.raises(Killed):
        purge(world)
    written = world.written
    _, said = purge(world, dry_run=True)
    assert world.written == written
    assert said == ["A purge up to batch 3 has begun and not ended; without --dry-run it is ended."]
    _, said = purge(world)
    world.check_purged_up_to(3)
    assert said == ["All records of a purge up to batch 3 that had begun earlier are deleted."]


def test_two_purges_at_once_never_delete_without_a_mark():
    """One whole purge comes in between any two steps of another; one of them may be refused."""
    world = World()
    purge(world)
    refused = 0
    for place in range(1, world.asked + 2):
        world = World()

        def meets(asked: int, world: World = world, place: int = place) -> None:
            if asked == place:
                world.meets = lambda asked: None
                purge(world)

        world.meets = meets
        try:
            purge(world)
        except Fault as problem:
            assert re.search("Another purge of|has changed since this command began", str(problem))
            refused += 1
        for name in ("orders", "lines"):
            assert world.count([name], 3) or int(world.texts.get(f"purged.{md5(name)}", 0)) == 3, place
        purge(world)
        world.check_purged_up_to(3)
    assert refused


def test_each_object_is_marked_with_the_last_of_its_own_records():
    """The model of an object that went quiet has no later batch in its ledger."""
    world = World()
    world.rows = [row for row in world.rows if row.object != "lines" or row.batch < 2]
    world.models[1] = Model(reader("lines", "lines", ledger=LEDGERS[1]))
    world.models[1].run(world.rows, 1)
    assert purge(world)[0].batch == 3
    assert {name: world.marked(name) for name in ("orders", "lines", "stock")} == {"orders": 3, "lines": 1, "stock": 0}
    assert sorted({(of, name, batch) for of, _, name, batch, _ in world.purges}) == sorted(
        (of, name, batch) for of in LEDGERS for name, batch in (("orders", 3), ("lines", 1))
    )
    assert {name: batch for name, (_, batch) in world.copies.items()} == {
        "shop.orders__snapshot": 3, "sales.lines__snapshot": 3,
    }  # fmt: skip


def test_a_copy_of_other_declarations_is_made_again():
    world, model = World(), World().models[0]
    copy = f"{model.reader.relation}__snapshot"
    world.copies[copy], world.declared[copy] = (frozenset({7}), 3980), replace(model.reader, staging="lake.others")
    purge(world)
    assert world.copies[copy] == (frozenset({1, 2, 3}), 3)


def test_a_model_that_registers_and_is_built_while_the_copies_are_made_has_a_copy_or_nothing_goes():
    faults = 0
    for place in range(1, 40):
        world, new = World(), Model(reader("new", "orders", ledger="other.reconcile_ledger"))

        def meets(asked: int, world: World = world, new: Model = new, place: int = place) -> None:
            if asked == place and new not in world.models:
                new.run(world.rows, 3)
                world.models.append(new)

        world.meets = meets
        try:
            purge(world)
        except Fault as problem:
            assert "has changed since this command began" in str(problem)
            assert world.count(["orders"], 3) == 3 and not world.marked("orders")
            faults += 1
        has_copy = "other.new__snapshot" in world.copies
        # Whoever registers after the second question finds the marks in staging when it asks what was purged.
        came_in_time = new in world.models and new.base == {1, 2, 3}
        assert has_copy or world.count(["orders"], 3) or int(world.texts[f"purged.{md5('orders')}"]) or not came_in_time
        world.meets = lambda asked: None
        purge(world)
    assert faults > 3


def test_what_a_retry_applies_while_the_copies_are_made_is_in_the_copy_or_nothing_goes():
    faults, retried = 0, -2  # what the retry applies of batch 2
    for place in range(1, 40):
        world = World()
        model = world.models[0]

        def meets(asked: int, world: World = world, model: Model = model, place: int = place) -> None:
            # Marks of a purge refuse a retry: `refuse_purge_meanwhile`.
            if asked == place and not world.marked("orders"):
                model.versions.append(model.base | {retried})
                model.retried += 1

        world.meets = meets
        try:
            purge(world)
        except Fault as problem:
            assert "has changed since this command began" in str(problem)
            faults += 1
        world.meets = lambda asked: None
        purge(world)
        assert world.count(["orders"], 3) == 0
        assert (retried in world.copies[f"{model.reader.relation}__snapshot"][0]) == (retried in model.base)
    assert faults > 1


def test_a_copy_of_a_purge_that_failed_is_made_again_after_a_retry():
    world = World()
    world.fails = "delete"
    with pytest.raises(PermissionError):
        purge(world)
    world.fails, model = None, world.models[0]
    model.versions.append(model.base | {-2})
    model.retried = 1
    purge(world)
    assert -2 in world.copies[f"{model.reader.relation}__snapshot"][0]


@pytest.mark.parametrize("what", ["delete", "write_purge"])
def test_what_fails_leaves_no_mark_and_raises_what_it_was(what: str):
    world = World()
    world.fails = what
    with pytest.raises(PermissionError, match="no right"):
        purge(world)
    world.check_purged_up_to(0)
    world.fails = None
    purge(world)
    world.check_purged_up_to(3)


def test_a_purge_by_hand_that_went_further_meanwhile_stays_marked():
    world, mark = World(), f"purged.{md5('orders')}"
    world.fails = "delete"
    world.meets = lambda asked: world.texts.update({mark: "4"}) if world.texts.get(mark) == "3" else None
    with pytest.raises(PermissionError):
        purge(world)
    assert (world.texts[mark], world.texts[f"purged.{md5('lines')}"]) == ("4", "0")


def test_what_a_model_has_quarantined_stays_until_somebody_says_otherwise():
    world = World()
    bad = Record("orders", 2, leaves_trace=False, is_bad=True)
    world.rows.append(bad)
    world.models[0].quarantine = frozenset({bad})
    result, _ = purge(world)
    assert [one.why for one in result.kept_back] == ["1 quarantined record from batch 2 on"]
    assert (result.batch, result.quarantined, world.count(["orders"], 3)) == (1, 0, 3)
    clock: Any = Still()
    whole = Purge(world, STAGING, timedelta(days=30), lambda text: None, clock, with_quarantined=True).run()
    assert (whole.batch, whole.quarantined, world.count(["orders"], 3)) == (3, 1, 0)


# --- what is asked of Spark -------------------------------------------------------------------------------------------


class Asked:
    """A session that notes what it is asked. `there`: its tables, with their properties; None for a view."""

    def __init__(self, **there: dict[str, str] | None) -> None:
        self.there = {name.replace("__of__", "."): said for name, said in there.items()}
        self.said: list[str] = []
        self.catalog = self
        self.conf: dict[str, str] = {}
        self.snapshot = ""  # that a table of Iceberg has now
        self.is_of_now = True

    def tableExists(self, name: str) -> bool:
        assert name.count(".") < 2, "Spark refuses a catalog that it does not know"
        return name.replace("`", "") in self.there

    def refreshTable(self, name: str) -> None:
        self.said.append(f"refresh {name}")

    def table(self, name: str) -> Any:
        return SimpleNamespace(columns=["deletes_batch", "retried"] if self.is_of_now else [])

    def getTable(self, name: str) -> Any:
        return SimpleNamespace(tableType="VIEW" if self.there[name.replace("`", "")] is None else "MANAGED")

    def sql(self, text: str) -> Any:
        self.said.append(text)
        return self

    def collect(self) -> list[Any]:
        return [SimpleNamespace(records=5)] if "count(*)" in self.said[-1] else []


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Tables, Asked]]:
    def made(**there: dict[str, str] | None) -> tuple[Tables, Asked]:
        asked: Any = Asked(**there)
        known: Any = SimpleNamespace(
            name="delta", staging_properties={}, properties=lambda spark, name: asked.there[name.replace("`", "")],
            was_set_back_before=lambda spark, name, noted: noted == "41 3",
            present_snapshot=lambda spark, name: asked.snapshot,
        )  # fmt: skip
        monkeypatch.setattr("reconcile_jobs.retention.tables.format_of", lambda spark, catalog: known)
        opened = Tables.__new__(Tables)
        opened._spark, opened._staging = asked, STAGING
        return opened, asked

    return made


def test_a_copy_has_the_columns_that_the_model_declares_under_their_names():
    built = [
        {"name": "id", "type": "bigint"}, {"name": "title", "type": "string", "stored": "name"},
        {"name": "name", "type": "string", "stored": "other"}, {"name": "gone", "type": "string", "removed": True},
        {"name": "title", "type": "string", "removed": True, "stored": "former"},
    ]  # fmt: skip
    stored = ["id", "name", "other", "gone", "former", "_change_batch"]
    found = _columns_of_copy(stored, json.dumps(built).encode().hex())
    assert found == {"id": "id", "name": "title", "other": "name", "_change_batch": "_change_batch"}
    assert _columns_of_copy(stored, "") == dict(zip(stored, stored, strict=True))


RETRIED = "a retry of its quarantine has not ended, or its base table was restored; run the model"
BASE, COPY, QUARANTINE = (TableName(("shop", f"orders__{part}")) for part in ("base", "snapshot", "quarantine"))


def test_a_copy_counts_only_with_the_declarations_of_the_base_table(tables: Any):
    def copied(**copy: str) -> int | None:
        said = {f"reconcile.{name}": value for name, value in copy.items()}
        opened, _ = tables(shop__of__orders__base={"reconcile.declaration": "now"}, shop__of__orders__snapshot=said)
        found: int | None = opened.copied_batch(BASE, COPY)
        return found

    assert copied(base_snapshot="7", declaration="now") == 7
    assert copied(base_snapshot="7", declaration="before") == copied(base_snapshot="7") == 0
    assert copied(base_snapshot="", declaration="now") == 0
    assert copied(base_snapshot="7", declaration="now", retried="") == 7
    assert copied(base_snapshot="7", declaration="now", retried="3") == 0
    assert copied(base_snapshot="7", declaration="now", declared_in="42 3") == 7
    assert copied(base_snapshot="7", declaration="now", declared_in="41 3") == 0, "set back"
    with pytest.raises(UsageError, match=r"shop\.orders__snapshot exists, and this job has not made it: rename it"):
        copied(declaration="now")


def test_a_copy_on_iceberg_notes_its_snapshot_since_a_rollback_leaves_the_properties(tables: Any):
    opened, asked = tables(shop__of__orders__snapshot={})
    for asked.snapshot in ("", "42 3"):
        opened.finish_copy(COPY, 7, "9 41", 0, QUARANTINE, 6)
    counted, plain, _, noted = asked.said
    assert counted == "SELECT count(*) AS records FROM `shop`.`orders__quarantine` WHERE _change_batch <= 6"
    assert plain == (
        "ALTER TABLE `shop`.`orders__snapshot` SET TBLPROPERTIES "
        "('reconcile.base_snapshot' = '7', 'reconcile.copied_from' = '9 41', 'reconcile.deletes_batch' = '0', "
        "'reconcile.quarantined' = '6 5')"
    )
    assert noted == plain[:-1] + ", 'reconcile.declared_in' = '42 3')"


@pytest.mark.parametrize(
    ("said", "left"),
    [("7 5", "7 3"), ("7 4", "7 3"), ("7 3", None), ("7 6", None), ("7 0", None), (None, None)],
    ids=["all there", "noted and not yet gone", "noted before", "restored", "none", "an earlier version"],
)
def test_a_copy_expects_no_quarantined_record_that_is_erased(tables: Any, said: str | None, left: str | None):
    """Of three that go, two are of purged batches; five are there up to that batch."""
    copy = {"reconcile.quarantined": said} if said else {}
    opened, asked = tables(shop__of__orders__snapshot=copy)
    opened.note_erased(COPY, QUARANTINE, [3, 7, 8, None])
    changed = f"ALTER TABLE `shop`.`orders__snapshot` SET TBLPROPERTIES ('reconcile.quarantined' = '{left}')"
    assert [sql for sql in asked.said if "ALTER" in sql] == ([changed] if left else [])


def test_a_model_without_a_copy_expects_nothing_of_its_quarantine(tables: Any):
    opened, asked = tables()
    opened.note_erased(COPY, QUARANTINE, [3])
    assert not [sql for sql in asked.said if "ALTER" in sql]


def test_a_view_of_the_name_of_a_copy_is_named(tables: Any):
    opened, _ = tables(shop__of__orders__base={}, shop__of__orders__snapshot=None)
    with pytest.raises(UsageError, match=r"shop\.orders__snapshot exists, and this job has not made it: rename it"):
        opened.copied_batch(BASE, COPY)


def test_the_table_of_readers_is_made_once_and_tables_are_read_as_they_are_now(tables: Any):
    opened, asked = tables()
    opened.make_readers()
    (made,) = asked.said
    names = re.findall(r"(\w+) (?:string|timestamp)\b", made.split("USING")[0])
    life = Life(thing())
    life.warehouse.has("lake.shop_changes__readers")
    life.project.begin("run")
    (insert,) = (sql for sql in life.warehouse.statements if sql.startswith("insert into") and "__readers" in sql)
    assert re.findall(r" as (\w+)", insert) == names
    assert made.startswith("CREATE TABLE IF NOT EXISTS `lake`.`changes__readers` (") and "USING delta" in made
    opened, asked = tables(lake__of__changes__readers={})
    opened.make_readers()
    assert opened.readers() == []
    assert [text for text in asked.said if text.startswith("refresh")] == [
        "refresh `lake`.`changes__readers`", "refresh `lake`.`changes`", "refresh `lake`.`changes__readers`",
    ]  # fmt: skip


def test_a_catalog_that_the_session_lacks_is_no_error(tables: Any):
    opened, asked = tables()
    far = Reader("lake.changes", "ice.shop.reconcile_ledger", "ice.shop.orders", "current_state", ("orders",))
    ((_, account),) = opened.accounts([far], 0)
    assert account.problem == "its ledger ice.shop.reconcile_ledger is not in this session"
    asked.conf["spark.sql.catalog.ice"] = "x"
    with pytest.raises(AssertionError, match="Spark refuses"):
        opened.accounts([far], 0)


@pytest.mark.parametrize(
    ("there", "objects", "problem"),
    [
        ([], "orders", "its base table shop.orders__base is not in this session"),
        (["base"], "orders", "its quarantine table shop.orders__quarantine is not in this session"),
        (["base", "quarantine"], "orders, lines", "its base table was built from the records of orders, lines"),
        (["moved", "quarantine"], "orders", "its base table was built from another staging table"),
        (["retried", "quarantine"], "orders", RETRIED),
        (["restored", "quarantine"], "orders", RETRIED),
        (
            ["set back", "quarantine"],
            "orders",
            "its base table was set back to before it took its declaration; rebuild it",
        ),
        (["base", "quarantine", "row deletes"], "orders", None),
    ],
)
def test_what_a_ledger_has_of_a_model_counts_only_with_its_tables(
    tables: Any, there: list[str], objects: str, problem: str | None
):
    built = {name: {"reconcile.declaration": json.dumps({"staging": declared_staging(of)})}
             for name, of in (("base", "lake.changes"), ("moved", "lake.others"))}  # fmt: skip
    built["base"]["reconcile.retried"] = built["moved"]["reconcile.retried"] = "2 5"
    built["retried"] = built["base"] | {"reconcile.retried": "3 17"}
    built["restored"] = built["base"] | {"reconcile.retried": "1"}
    built["quarantine"] = {"reconcile.retried": "2 5"}
    built["set back"] = built["base"] | {"reconcile.declared_in": "41 3"}
    built["base"]["reconcile.declared_in"] = "42 3"
    names = {"quarantine": "quarantine", "row deletes": "row_deletes"}
    found = {f"shop__of__orders__{names.get(name, 'base')}": built.get(name, {}) for name in there}
    opened, asked = tables(**{"shop__of__reconcile_ledger": {}}, **found)

    def rows(sql: str) -> list[Any]:
        if "as ledger_batch" in sql:
            known = {
                "ledger_batch": 3, "ledger_base_batch": 3, "ledger_deletes_batch": deletes, "ledger_retried": marked,
                "entry": 8,
            }  # fmt: skip
            return [SimpleNamespace(relation="shop.orders", last_appended_at=None, **known)]
        if "max_by(object" in sql:
            return [SimpleNamespace(relation="shop.orders", object=objects)]
        if "`orders__quarantine`" in sql:
            return [SimpleNamespace(batch=2, records=5)]
        return [SimpleNamespace(batch=3 if "_change_batch" in sql else None, place=0)]

    opened._rows, deletes, marked = rows, 3 if "row deletes" in there else 0, 2
    ((_, account),) = opened.accounts([reader("orders", "orders")], 0)
    assert account.problem == problem
    assert problem or (account.applied, account.quarantined, account.entry) == (3, ((2, 5),), 8)
    if problem is None:
        marked = 3
        ((_, account),) = opened.accounts([reader("orders", "orders")], 0)
        assert account.problem == RETRIED, "both tables were restored"
        deletes, marked = 2, 2
        ((_, account),) = opened.accounts([reader("orders", "orders")], 0)
        assert account.problem == NOT_ENDED, "deletes of a run that the ledger does not know"
        deletes, marked = 4, 2
        ((_, account),) = opened.accounts([reader("orders", "orders")], 0)
        assert account.problem == "its table shop.orders__row_deletes was restored; run the model"
        del asked.there["shop.orders__row_deletes"]
        ((_, account),) = opened.accounts([reader("orders", "orders")], 0)
        assert account.problem == "its table of deletes without a key is not in this session"


def test_the_job_knows_the_staging_table_that_a_rendered_declaration_names():
    rendered = (Path(__file__).parents[1] / "sql" / "mysql_composite_key" / "first_run.sql").read_text()
    assert f'"staging": "{declared_staging("lake.shop_changes")}"' in rendered


def test_records_in_no_batch_are_neither_counted_nor_deleted(tables: Any):
    opened, asked = tables()
    opened.delete(["orders"], 3)
    opened.staged(3)
    delete, staged = asked.said
    assert delete == "DELETE FROM `lake`.`changes` WHERE `object` IN ('orders') AND batch BETWEEN 1 AND 3"
    assert staged.count("batch BETWEEN 1 AND 3") == 3 and "<=" not in staged


def test_a_snapshot_of_an_object_of_which_all_records_are_purged_is_staged(monkeypatch: pytest.MonkeyPatch):
    properties = {f"purged.{md5('orders')}": "3", f"purged.{md5('lines')}": "0"}
    assert [is_purged(properties, name) for name in ("orders", "lines", "stock")] == [True, False, False]
    monkeypatch.setattr(log_snapshots, "kept", lambda spark, table: properties)
    rows: Any = SimpleNamespace(collect=lambda: [SimpleNamespace(object="other")])
    rows.where = rows.select = lambda *_: rows
    rows.distinct = lambda: rows
    spark: Any = SimpleNamespace(table=lambda name: rows)

    def meant(name: str) -> str:
        job: Any = SimpleNamespace(staging=STAGING, object=name)
        caller: Any = SimpleNamespace(say=None, progress=None)
        return log_snapshots._Run(spark, job, caller)._object_of({})

    assert [meant(name) for name in ("orders", "other")] == ["orders", "other"]
    for name in ("lines", "stock"):
        with pytest.raises(UsageError, match=rf"lake\.changes has no records of {name}: --object names a table as"):
            meant(name)


# --- beside runs ------------------------------------------------------------------------------------------------------


class Run:
    """A run of a model that reads staging, step by step: each step may come between any two of the job's."""

    def __init__(self, world: World, model: Model) -> None:
        self.world, self.model, self.first = world, model, 1
        self.rows: list[Record] = []
        self.refused = False

    def marked(self) -> int:
        return max(self.world.marked(name) for name in self.model.reader.objects)

    def whole(self) -> bool:
        """Whether the run was refused, or has every record that was ever delivered."""
        return self.refused or {row.batch for row in self.rows} >= {1, 2, 3, 4}


class Rebuild(Run):
    """A full refresh, or the first build of a model that registers first: see `register_models`."""

    def steps(self) -> list[Callable[[], None]]:
        others = [self.ask, self.read, self.ask_again]
        return others if self.model in self.world.models else [self.register, *others]

    def register(self) -> None:
        self.world.models.append(self.model)

    def ask(self) -> None:
        self.first = self.marked() + 1
        kept, batch = self.world.copies.get(f"{self.model.reader.relation}__snapshot", (frozenset(), 0))
        self.refused = self.first > 1 and batch < self.first - 1
        self.rows = [Record("orders", n) for n in kept] if self.first > 1 else []

    def read(self) -> None:
        self.rows += [row for row in self.world.rows if row.object == "orders" and row.batch >= self.first]

    def ask_again(self) -> None:
        # Of staging alone: its mark is written before anything is deleted.
        self.refused |= int(self.world.texts.get(f"purged.{md5('orders')}", 0)) >= self.first


class Replay(Run):
    """A run whose base table is restored just before it."""

    def steps(self) -> list[Callable[[], None]]:
        return [self.restore, self.ask, self.read]

    def restore(self) -> None:
        self.model.restore(0)

    def ask(self) -> None:
        needs = self.model.needs(self.world.rows, 4)
        self.first = max(self.model.base, default=0) + 1
        self.refused = self.marked() >= self.first
        assert needs or self.refused

    def read(self) -> None:
        self.rows = [Record("orders", n) for n in self.model.base]
        self.rows += [row for row in self.world.rows if row.object == "orders" and row.batch >= self.first]


def begun(kind: type[Run], world: World, is_new: bool) -> Run:
    return kind(world, Model(reader("new", "orders")) if is_new else world.models[0])


def placements(kind: type[Run], is_new: bool) -> list[tuple[int, ...]]:
    """Return where the steps of a run may come between those of a purge; of very many, some."""
    world = World()
    steps = len(begun(kind, world, is_new).steps())  # type: ignore[attr-defined]
    purge(world)
    places = list(itertools.combinations_with_replacement(range(1, world.asked + 2), steps))
    return random.Random(1).sample(places, min(len(places), 2500))


def beside(kind: type[Run], is_new: bool, places: tuple[int, ...]) -> tuple[Run, World]:
    """Let each step of a run come before what the job asks or writes first, second and so on."""
    world = World()
    run = begun(kind, world, is_new)
    waiting = list(zip(places, run.steps(), strict=True))  # type: ignore[attr-defined]

    def meets(asked: int) -> None:
        while waiting and waiting[0][0] <= asked:
            waiting.pop(0)[1]()

    world.meets = meets
    try:
        purge(world)
    except Fault as refused:
        assert re.search("has changed since this command began|restored while it was copied", str(refused))
        assert world.count(["orders"], 3) == 3
        assert not any(world.marked(name) for name in OBJECTS), "its marks are taken back"
    world.meets = lambda asked: None
    for _, step in waiting:
        step()
    return run, world


@pytest.mark.parametrize(
    ("kind", "is_new"), [(Rebuild, True), (Rebuild, False), (Replay, False)], ids=["new", "refreshed", "restored"]
)
def test_a_run_beside_a_purge_has_every_record_or_is_refused(kind: type[Run], is_new: bool):
    ends = {True: 0, False: 0}
    for places in placements(kind, is_new):
        run, _ = beside(kind, is_new, places)
        assert run.whole(), f"{kind.__name__} at {places} lacks records, and was not refused"
        ends[run.refused] += 1
    assert all(ends.values()), f"of refused and whole runs: {ends}"


def test_a_refresh_that_does_not_ask_again_would_lack_records_in_silence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Rebuild, "ask_again", lambda self: None)
    assert not all(beside(Rebuild, False, at)[0].whole() for at in placements(Rebuild, False))


# --- the command ------------------------------------------------------------------------------------------------------


def test_ages_are_read_and_others_refused():
    assert maintain.age("30d") == timedelta(days=30)
    assert maintain.age("12h") == timedelta(hours=12)
    assert maintain.age("30m") == timedelta(minutes=30)
    assert maintain.age("90s") == timedelta(seconds=90)
    assert maintain.age("0s") == timedelta(0)
    console: Any = None
    for wrong in ("30", "d", "1w", "-3d", "1.5h"):
        with pytest.raises(UsageError, match=f"{re.escape(wrong)} is not an age; write 30d, 12h, 30m or 90s"):
            maintain.main(["--staging", "lake.changes", f"--keep={wrong}"], console)


@pytest.mark.parametrize("option", ["--staging", "--keep"])
def test_nothing_is_purged_without_a_table_and_an_age(option: str):
    words = ["--staging", "lake.changes"] if option == "--keep" else ["--keep", "30d"]
    console: Any = None
    with pytest.raises(UsageError, match=f"arguments are required: {option}; see"):
        maintain.main(words, console)


def test_nothing_is_purged_where_no_model_is_registered():
    world = World()
    world.models = []
    with pytest.raises(UsageError, match=r"No model is registered with lake\.changes: run `dbt run`"):
        purge(world)


def test_a_property_that_somebody_has_changed_is_refused():
    for text in ("{}", "later", '{"id": "x", "batch": "one", "marks": {}, "before": {}, "ledgers": []}'):
        world = World()
        world.texts["purge"] = text
        with pytest.raises(UsageError, match=r"The property reconcile\.purge of the staging table lake\.changes is"):
            purge(world)


def test_a_base_table_that_is_restored_while_it_is_copied_is_noticed():
    world = World()
    world.meets = lambda asked: world.models[0].restore(0) if asked == 7 else None
    with pytest.raises(Fault, match=r"orders__base was written to or restored while it was copied, and nothing was"):
        purge(world)
    assert world.copies == {"shop.orders__snapshot": (frozenset({1}), 0)}, "a copy that is not finished"


def test_what_was_purged_is_said_and_what_was_not():
    kept = [KeptBack(reader("returns"), 0, "never run"), KeptBack(reader("orders_v2"), 3980, "behind at 3,980")]
    many = [StagedObject(name, 2) for name in "abcdef"]
    result = Result(3980, 12_400_110, 41, kept, kept_objects={"no model reads them": [*many, StagedObject(None, 1)]})
    assert maintain.sentences("lake.changes", result, dry_run=False) == [
        "lake.changes: purged up to batch 3,980 (12,400,110 records, applied by all 41 models that need them).",
        "2 models kept the purge back: shop.returns (never run), shop.orders_v2 (behind at 3,980).",
        "13 old records stay, since no model reads them: a, b, c, d, e and 2 more.",
    ]
    assert maintain.sentences("lake.changes", result, dry_run=True)[0].startswith(
        "lake.changes: would be purged up to batch 3,980 ("
    )
    result.quarantined = 1200
    assert maintain.sentences("lake.changes", result, dry_run=False)[1] == (
        "Among them were quarantined records, 1,200 if each model is counted; only the quarantines of the models keep "
        "them."
    )
    assert maintain.sentences("lake.changes", Result(0, 0, 1, []), dry_run=False) == ["lake.changes: nothing to purge."]


class Heard:
    """A console that keeps what is said to it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.values: dict[str, Any] = {}

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def result(self, values: dict[str, Any]) -> None:
        self.values = values


class ThreeTables:
    """The files of three tables, one of which has many."""

    def __init__(self) -> None:
        self.number = 40

    def exists(self, table: TableName) -> bool:
        return str(table) in ("lake.changes", "shop.orders__base", "shop.reconcile_ledger")

    def of(self, table: TableName) -> Files:
        number = self.number if str(table) == "shop.orders__base" else 2
        return Files(number, ((number, number),))

    def compact(self, table: TableName) -> None:
        self.number = 1

    def needed_versions(self, table: TableName, is_staging: bool) -> str | None:
        return "it is needed" if is_staging else None

    def remove_versions(self, table: TableName) -> None:
        pass


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_command_ends_with_one_line_of_json(monkeypatch: pytest.MonkeyPatch, dry_run: bool):
    world, console = World(), Heard()
    slow = Model(reader("slow", "orders"))
    slow.run(world.rows, 1)
    world.models.append(slow)
    monkeypatch.setattr(maintain.session, "start", lambda name: None)
    monkeypatch.setattr(maintain, "Tables", lambda spark, staging: world)
    monkeypatch.setattr(maintain, "TableFiles", lambda spark, tables: ThreeTables())
    heard: Any = console
    maintain.main(["--staging", "lake.changes", "--keep", "30d", *(["--dry-run"] if dry_run else [])], heard)
    assert console.values == {
        "staging": "lake.changes", "purged_up_to": 1, "records": 2, "quarantined": 0, "models": 3,
        "kept_back_by": [
            {"relation": "shop.slow", "ledger": "shop.reconcile_ledger", "batch": 1, "why": "behind at 1"}
        ],
        "snapshots": ["shop.orders__snapshot", "sales.lines__snapshot", "shop.slow__snapshot"],
        "tombstones_deleted": {}, "tombstones_waiting": {}, "tombstones_kept_by": {},
        "tables": 3, "compacted": [{"table": "shop.orders__base", "files_before": 40, "files_after": 1}],
        "old_versions_deleted": 0, "left": [], "dry_run": dry_run,
    }  # fmt: skip
    assert "1 model kept the purge back: shop.slow (behind at 1)." in console.said
    assert console.said[-1] == f"1 of 3 tables {'would be ' if dry_run else ''}compacted."
    heard.values = {}
    words = ["--staging", "lake.changes", "--keep", "30d", "--no-compact", *(["--dry-run"] if dry_run else [])]
    maintain.main(words, heard)
    assert (console.values["tables"], console.values["compacted"]) == (3, [])
    assert (world.written > 0) is not dry_run


def maintained(monkeypatch: pytest.MonkeyPatch, world: World, files: Any, *words: str) -> Heard:
    console = Heard()
    monkeypatch.setattr(maintain.session, "start", lambda name: None)
    monkeypatch.setattr(maintain, "Tables", lambda spark, staging: world)
    monkeypatch.setattr(maintain, "TableFiles", lambda spark, tables: files)
    heard: Any = console
    maintain.main(["--staging", "lake.changes", "--keep", "30d", *words], heard)
    return console


def test_old_versions_go_only_where_somebody_has_said_so(monkeypatch: pytest.MonkeyPatch):
    found = maintained(monkeypatch, World(), ThreeTables(), "--delete-old-versions").values
    assert found["old_versions_deleted"] == 2
    assert found["left"] == [{"table": "lake.changes", "why": "old versions stay, since it is needed"}]
    assert maintained(monkeypatch, World(), ThreeTables()).values["old_versions_deleted"] == 0


def test_the_command_fails_where_a_table_could_not_be_compacted_and_the_purge_is_done(monkeypatch: pytest.MonkeyPatch):
    class Full(ThreeTables):
        def compact(self, table: TableName) -> None:
            raise OSError("No space left on device")

    world = World()
    with pytest.raises(Fault, match=r"^1 of 3 tables could not be compacted"):
        maintained(monkeypatch, world, Full())
    assert world.written > 0


def test_what_became_of_tombstones_is_in_the_result_and_in_sentences(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[timedelta, bool]] = []

    class Tombstones:
        def __init__(self, spark: Any, tables: Any, age: timedelta, say: Any) -> None:
            self.age = age

        def run(self, dry_run: bool) -> Any:
            asked.append((self.age, dry_run))
            return maintain.TombstoneResult({"shop.a__base": 3}, {"shop.b": 2}, {"shop.c": "a history"})

    monkeypatch.setattr(maintain, "Tombstones", Tombstones)
    console = maintained(monkeypatch, World(), ThreeTables(), "--tombstones", "90d")
    assert asked == [(timedelta(days=90), False)]
    found = {name: value for name, value in console.values.items() if name.startswith("tombstones")}
    assert found == {
        "tombstones_deleted": {"shop.a__base": 3}, "tombstones_waiting": {"shop.b": 2},
        "tombstones_kept_by": {"shop.c": "a history"},
    }  # fmt: skip
    assert any(sentence.startswith("shop.b: 2 tombstones can be deleted once") for sentence in console.said)


def test_a_table_of_a_ledger_is_named_part_by_part():
    assert named("ice.shop.orders") == TableName(("ice", "shop", "orders"))
