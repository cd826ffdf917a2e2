"""What maintain.py purges of staging: never what a model still needs, and never what is young; and how a purge ends.

All of it in plain Python: models that are run, killed and restored, ledgers of several projects, and tables in memory.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import maintain
import pytest
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.retention.plan import (
    Account,
    KeptBack,
    Reader,
    StagedObject,
    batch_to_purge,
    kept_objects,
    purged_objects,
)
from reconcile_jobs.retention.purge import Purge, Result
from reconcile_jobs.retention.tables import Tables, accounts_sql, named
from reconcile_jobs.staging import TableName
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


@dataclass
class Model:
    """A model as a run sees it: its base table, and the account that its ledger has."""

    reader: Reader
    versions: list[frozenset[int]] = field(default_factory=list)  # of the base table: the batches of its rows
    ledger: tuple[int, int] | None = None  # the last batch, and the largest batch of the base table then

    @property
    def base(self) -> frozenset[int]:
        return self.versions[-1]

    def needs(self, rows: list[Record], cut: int) -> list[Record]:
        """Return the records that the next run reads, as macros/materializations/range_to_apply.sql says."""
        if not self.versions or self.ledger is None:
            first = 1
        else:
            known, (last, base_then) = max(self.base, default=0), self.ledger
            first = (last if known == base_then else min(known, last)) + 1
        return [row for row in rows if row.object in self.reader.objects and first <= row.batch <= cut]

    def run(self, rows: list[Record], cut: int, killed: bool = False) -> None:
        """Run the model; killed, it dies between its MERGE and its ledger row."""
        records, is_first = self.needs(rows, cut), not self.versions
        if not records and not is_first:
            return
        kept = frozenset() if is_first else self.base
        merged = kept | {row.batch for row in records if row.leaves_trace}
        if merged != kept or is_first:
            self.versions.append(merged)
        if not killed:
            self.ledger = cut, max(self.base, default=0)

    def restore(self, version: int) -> None:
        self.versions.append(self.versions[version])

    def account(self, rows: list[Record]) -> Account | None:
        if self.ledger is None or not self.versions:
            return None
        account = Account(*self.ledger, max(self.base, default=0))
        waiting = [r.batch for r in rows if r.object in self.reader.objects and r.batch > account.applied]
        return replace(account, waits_for=min(waiting, default=None))


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
    for batch in range(1, last + 1):
        for object_ in OBJECTS:
            if draw.random() < 0.6:
                rows.append(Record(object_, batch, draw.random() < 0.7))
        for model in models:
            deed = draw.random()
            if deed < 0.5:
                # A run that is killed after its first MERGE leaves a base table without an account: it is built anew.
                model.run(rows, batch, killed=deed < 0.1 and model.ledger is not None)
            elif deed < 0.6 and model.versions:
                model.restore(draw.randrange(len(model.versions)))
    return rows, models, last, draw.randint(0, last)


def test_of_many_lives_a_purge_goes_as_far_as_it_may_and_no_further():
    purged = held = 0
    for seed in range(3000):
        rows, models, last, aged = lived(seed)
        batch, kept_back = batch_to_purge(aged, [(model.reader, model.account(rows)) for model in models])
        needed = [row.batch for model in models for row in model.needs(rows, last)]
        unknown = [model for model in models if model.account(rows) is None]
        assert batch <= aged, seed
        assert all(needs > batch for needs in needed), f"{seed}: a model needs what is purged"
        if batch < aged:
            assert (batch == 0 and unknown) or batch + 1 in needed, f"{seed}: more could be purged"
            assert min(one.batch for one in kept_back) == batch
        else:
            assert not kept_back, f"{seed}: nothing keeps the purge back"
        # And what is left is enough: each model comes to have all that was ever delivered to it.
        read = {name for model in models for name in model.reader.objects}
        left = [row for row in rows if row.batch > batch or row.object not in read]
        for model in models:
            if model in unknown:
                continue
            model.run(left, last)
            whole = {row.batch for row in rows if row.object in model.reader.objects and row.leaves_trace}
            assert model.base == whole, f"{seed}: {model.reader.relation} lacks records"
        purged, held = purged + bool(batch), held + bool(kept_back)
    assert purged > 500 and held > 500, "lives that show nothing"


CASES: dict[str, tuple[Reader, Account | None, int, str]] = {
    "never run": (reader("m"), None, 0, "never run"),
    "behind": (reader("m"), Account(1204, 1204, 1204, waits_for=1207), 1206, "behind at 1,206"),
    "killed after its merge": (reader("m"), Account(3, 3, 5, waits_for=4), 3, "behind at 3"),
    "set back": (reader("m"), Account(7, 6, 2, waits_for=3), 2, "set back to 2"),
    "a view": (
        reader("m", materialized="current_view"), None, 0, "a current_view, which reads all of staging",
    ),
    "a SELECT of its own": (
        Reader("lake.changes", LEDGERS[0], "shop.m", "history", ()), Account(9, 9, 9), 0,
        "without a source macro, so its objects are not known",
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
        self.asked = self.written = 0
        self.meets: Callable[[int], None] = lambda asked: None
        self.dies_at: float = 0  # n: before the n-th write; n and a half: after it
        self.refuses = 0  # so many deletes

    def _asks(self) -> None:
        self.asked += 1
        self.meets(self.asked)

    def _writes(self, act: Callable[[], Any]) -> Any:
        self._asks()
        self.written += 1
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
        return 3

    def staged(self, batch: int) -> list[StagedObject]:
        self._asks()
        names = {row.object for row in self.rows}
        return [StagedObject(name, self.count([name], batch)) for name in sorted(names)]

    def records(self, objects: Any, batch: int) -> int:
        self._asks()
        return self.count(objects, batch)

    def count(self, objects: Any, batch: int) -> int:
        return sum(row.object in objects and row.batch <= batch for row in self.rows)

    def accounts(self, readers: Any, purged: int) -> list[tuple[Reader, Account | None]]:
        self._asks()
        return [(model.reader, model.account(self.rows)) for model in self.models if model.reader in readers]

    def copied_batch(self, copy: TableName) -> int | None:
        self._asks()
        return self.copies[str(copy)][1] if str(copy) in self.copies else None

    def has_keyless_deletes(self, base: TableName) -> bool:
        return str(base).startswith("sales")

    def keep(self, texts: dict[str, str]) -> None:
        self._writes(lambda: self.texts.update(texts))

    def copy(self, base: TableName, copy: TableName) -> int:
        (model,) = (m for m in self.models if f"{m.reader.relation}__base" == str(base))
        self._writes(lambda: self.copies.update({str(copy): (model.base, 0)}))
        return max(self.copies[str(copy)][0], default=0)

    def finish_copy(self, copy: TableName, batch: int) -> None:
        self._writes(lambda: self.copies.update({str(copy): (self.copies[str(copy)][0], batch)}))

    def write_purge(self, ledger: TableName, staging: str, objects: Any, batch: int, id_: str) -> None:
        self._writes(lambda: self.purges.extend((str(ledger), staging, name, batch, id_) for name in objects))

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
        assert re.search("has changed since this command began|was restored while it was copied", str(refused))
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
    assert maintain.age("0s") == timedelta(0)
    console: Any = None
    for wrong in ("30", "d", "1w", "-3d", "1.5h"):
        with pytest.raises(UsageError, match=f"{re.escape(wrong)} is not an age; write 30d, 12h, 30m or 90s"):
            maintain.main(["--staging", "lake.changes", f"--keep={wrong}"], console)


def test_nothing_is_purged_where_no_model_is_registered():
    world = World()
    world.models = []
    with pytest.raises(UsageError, match=r"No model is registered with lake\.changes: run `dbt run`"):
        purge(world)


def test_a_property_that_somebody_has_changed_is_refused():
    for text in ("{}", "later", '{"id": "x", "batch": "one", "before": {}, "ledgers": []}'):
        world = World()
        world.texts["purge"] = text
        with pytest.raises(UsageError, match=r"The property reconcile\.purge of the staging table lake\.changes is"):
            purge(world)


def test_a_base_table_that_is_restored_while_it_is_copied_is_noticed():
    world = World()
    world.meets = lambda asked: world.models[0].restore(0) if asked == 7 else None
    with pytest.raises(Fault, match=r"shop\.orders__base was restored while it was copied, and nothing was purged"):
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


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_command_ends_with_one_line_of_json(monkeypatch: pytest.MonkeyPatch, dry_run: bool):
    world, console = World(), Heard()
    slow = Model(reader("slow", "orders"))
    slow.run(world.rows, 1)
    world.models.append(slow)
    monkeypatch.setattr(maintain.session, "start", lambda name: None)
    monkeypatch.setattr(maintain, "Tables", lambda spark, staging: world)
    heard: Any = console
    maintain.main(["--staging", "lake.changes", "--keep", "30d", *(["--dry-run"] if dry_run else [])], heard)
    assert console.values == {
        "staging": "lake.changes", "purged_up_to": 1, "records": 2, "models": 3,
        "kept_back_by": [
            {"relation": "shop.slow", "ledger": "shop.reconcile_ledger", "batch": 1, "why": "behind at 1"}
        ],
        "snapshots": ["shop.orders__snapshot", "sales.lines__snapshot", "shop.slow__snapshot"], "dry_run": dry_run,
    }  # fmt: skip
    assert "1 model kept the purge back: shop.slow (behind at 1)." in console.said
    assert (world.written > 0) is not dry_run


def test_a_table_of_a_ledger_is_named_part_by_part():
    assert named("ice.shop.orders") == TableName(("ice", "shop", "orders"))
