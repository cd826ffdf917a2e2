"""The order of an erasure, on tables in plain Python: killed before and after each write, with runs in between.

The tables answer as ErasureTables does. The balance of a ledger is that of macros/ledger/account_findings.sql.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.erased_keys import VARIABLE, ErasedKeys, name_of, read_property
from reconcile_jobs.erasure import erasure as module
from reconcile_jobs.erasure.erasure import Erasure, Result
from reconcile_jobs.erasure.keys_file import KeysFile
from reconcile_jobs.erasure.models import Base, digest_of_key
from reconcile_jobs.erasure.tables import Account, Found, Staged
from reconcile_jobs.keyed_records import RECORDS, SNAPSHOT, KeyColumn, KeyedRecords, Left
from reconcile_jobs.process.errors import Fault, UsageError
from reconcile_jobs.retention.plan import Reader
from reconcile_jobs.staging import TableName

STAGING = TableName(("lake", "changes"))
SECRET = "0123456789abcdef0123456789abcdef"
OBJECT, BESIDE_LOG = "P", "#snapshot of P"
ID = KeyColumn("id", ("id",), True)
PERSON = "7"


class Killed(BaseException):
    """The job was killed."""


@dataclass
class Record:
    """A row of staging, or of a quarantine. `place`: the part of the record that a quarantined row is of."""

    text: bytes
    object: str
    batch: int
    is_bad: bool = False
    place: int = 0

    @property
    def ids(self) -> dict[int, str]:
        """The keys of its parts, by their places."""
        said = json.loads(self.text)
        parts = said.get("mods") or [{"keys": said.get("payload") or said["row"]}]
        return {place: str(part["keys"]["id"]) for place, part in enumerate(parts) if "keys" in part}


# In a record of Spanner another row stands beside each.
BESIDE = {PERSON: "20", "8": "21"}


def record(source: str, id_: str, batch: int, is_bad: bool = False) -> Record:
    said: dict[str, Any] = {"n": random.random()}
    if source == "spanner":
        said["mods"] = [{"keys": {"id": one}} for one in (id_, BESIDE.get(id_, "22"))]
    else:
        said["payload" if source == "datastream" else "row"] = {"id": id_}
    return Record(json.dumps(said).encode(), OBJECT, batch, is_bad)


@dataclass
class Model:
    """A model: rows by key with their batch, its quarantine, a copy, and its rows in the ledger.

    `expected`: how many quarantined records the copy expects, of batches up to that of the copy.
    """

    reader: Reader
    base: dict[str, int] = field(default_factory=dict)
    copy: dict[str, int] = field(default_factory=dict)
    copied: int = 0
    expected: int = 0
    quarantine: list[Record] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)

    @property
    def quarantined(self) -> int:
        return sum(one.batch <= self.copied for one in self.quarantine)

    @property
    def batch(self) -> int:
        return max((row["last"] for row in self.ledger), default=0)

    @property
    def entry(self) -> int:
        return max((row["entry"] for row in self.ledger), default=0)


class World:
    """Staging, models, and the job that erases."""

    def __init__(self, source: str) -> None:
        self.source, self.records = source, RECORDS[source]
        self.staging: list[Record] = []
        self.properties: dict[str, str] = {}
        self.register: dict[str, str] = {}
        self.models = {
            name: Model(Reader("lake.changes", "s.reconcile_ledger", f"s.{name}", "current_state", (OBJECT,)))
            for name in ("people", "past")
        }
        self.times = itertools.count(1)
        self.batch = 0
        self.differences: set[str] = set()

    # --- what others do ---

    def append(self, *records: tuple[str, bool]) -> None:
        """Stage a batch, without records of erased keys."""
        self.batch += 1
        text = self.properties.get("erased")
        erased = ErasedKeys(b"")
        if text:
            by, of = read_property("lake.changes", text)
            assert by == name_of(SECRET.encode())
            erased = ErasedKeys(SECRET.encode(), of, frozenset(self.register), self.records)
        for id_, is_bad in records:
            new = record(self.source, id_, self.batch, is_bad)
            left = erased.without(OBJECT, new.text) if text else None
            self.staging.append(with_left(new, left) if left else new)

    def run(self, name: str, rebuild: bool = False) -> None:
        model = self.models[name]
        first = 1 if rebuild else model.batch + 1
        if rebuild:
            model.base.clear()
        if first > self.batch:
            return
        taken = [row for row in self.staging if row.object == OBJECT and row.batch >= first]
        model.quarantine = [row for row in model.quarantine if row.batch < first]
        model.quarantine += [replace(row, place=place) for row in taken if row.is_bad for place in row.ids]
        for one in taken:
            if not one.is_bad:
                model.base.update(dict.fromkeys(one.ids.values(), one.batch))
        delivered = sum(len(row.ids) for row in taken)
        row = {"kind": "rebuild" if rebuild else "apply", "first": first, "last": self.batch, "delivered": delivered}
        quarantined = sum(len(row.ids) for row in taken if row.is_bad)
        row |= {"quarantined": quarantined, "entry": model.entry + 1, "at": next(self.times)}
        model.ledger.append(row | {"base_batch": max(model.base.values(), default=0)})

    # --- what is asked of the world ---

    def has_person(self) -> list[str]:
        found = ["staging" for row in self.staging if row.object == OBJECT and PERSON in row.ids.values()]
        found += ["snapshot" for row in self.staging if row.object == BESIDE_LOG and PERSON in row.ids.values()]
        for name, model in self.models.items():
            found += [f"{name} {part}" for part in ("base", "copy") if PERSON in getattr(model, part)]
            found += [f"{name} quarantine" for row in model.quarantine if PERSON in row.ids.values()]
        return found + sorted(self.differences & {PERSON})

    def unbalanced(self) -> list[str]:
        found = []
        for name, model in self.models.items():
            rebuilt = max((row["entry"], row["at"]) if row["kind"] == "rebuild" else (0, 0) for row in model.ledger)
            rows = [row for row in model.ledger if row["kind"] != "erasure" and (row["entry"], row["at"]) >= rebuilt]
            for row in rows:
                erased = [
                    one for one in model.ledger
                    if one["kind"] == "erasure" and row["first"] <= one["first"] <= row["last"]
                    and (one["entry"], one["at"]) > (row["entry"], row["at"])
                ]  # fmt: skip
                within = range(row["first"], row["last"] + 1)
                staged = sum(len(one.ids) for one in self.staging if one.object == OBJECT and one.batch in within)
                kept = sum(one.batch in within for one in model.quarantine)
                if row["delivered"] != staged + sum(one["delivered"] for one in erased):
                    found.append(f"{name}: staging, {row}")
                if row["quarantined"] != kept + sum(one["quarantined"] for one in erased):
                    found.append(f"{name}: quarantine, {row}")
            if model.quarantined != model.expected:
                found.append(f"{name}: the copy expects another number of quarantined records")
            last = max(model.ledger, key=lambda row: (row["entry"], row["at"]))
            if last["base_batch"] != max(model.base.values(), default=0):
                found.append(f"{name}: looks restored")
        return found

    def erase(
        self, place: float = 0, meanwhile: Callable[[str], None] = lambda done: None, now: bool = False, **options: Any
    ) -> Result:
        keys = KeysFile("keys.csv", ("id",), ((2, (PERSON,)),))
        tables = Tables(self, place, meanwhile)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(VARIABLE, SECRET)
            patched.setattr(module, "ErasureTables", lambda spark, staging: tables)
            session: Any = None
            job = Erasure(session, STAGING, self.models["people"].reader, keys, "T", lambda said: None, **options)
            return job.run(now)


class Tables:
    """ErasureTables, and the death of the job before a write, or after it where `place` ends with .5."""

    def __init__(self, world: World, place: float, meanwhile: Callable[[str], None]) -> None:
        self.world, self.place, self.meanwhile, self.written = world, place, meanwhile, 0
        self.register = TableName(("lake", "changes__erased"))
        self.tables: Any = SimpleNamespace(
            properties=lambda: dict(world.properties),
            readers=lambda: [model.reader for model in world.models.values()],
            note_erased=self.note_erased,
        )

    def writes(self, what: str, act: Callable[[], object]) -> None:
        self.written += 1
        if self.written == self.place:
            raise Killed
        act()
        self.meanwhile(what)
        if self.written + 0.5 == self.place:
            raise Killed

    def model(self, table: TableName) -> tuple[Model, str]:
        name, _, part = table.parts[-1].partition("__")
        return self.world.models[name], {"base": "base", "snapshot": "copy", "quarantine": "quarantine"}[part]

    def has(self, table: TableName) -> bool:
        name, _, part = table.parts[-1].partition("__")
        if name == "reconcile_parity_differences":
            return True
        return name in self.world.models and (part == "quarantine" or bool(self.world.models[name].ledger))

    def base(self, table: TableName) -> Base | None:
        return Base({"id": "bigint"}, json.dumps({"unique_key": digest_of_key(["id"])})) if self.has(table) else None

    def sources(self, objects: Sequence[str]) -> set[str]:
        return {self.world.source}

    def take_records_of(self, records: KeyedRecords) -> None:
        assert records is self.world.records

    def accounts(self, readers: Sequence[Reader]) -> list[Account]:
        models = [model for model in self.world.models.values() if model.reader in readers and model.ledger]
        return [
            Account(
                model.reader.ledger, model.reader.relation, OBJECT, model.batch, model.entry,
                max(row["at"] for row in model.ledger),
            )
            for model in models
        ]  # fmt: skip

    def readable(self, objects: Sequence[str], columns: Any) -> tuple[int, int]:
        return 1, 1

    def last_batch(self) -> int:
        return self.world.batch

    def unread_objects(self) -> int:
        return 0

    def _found(self, rows: Sequence[Record], columns: Any, keys: Any, erasure: str | None = None) -> Staged:
        found = []
        for row in rows:
            records = SNAPSHOT if row.object == BESIDE_LOG else self.world.records
            read = records.reading(row.text, columns)
            if places := read.places(set(keys).__contains__):
                left = records.without(row.text, places, row.object, erasure)
                own = records.own_place(str(row.place), read, columns)
                one = Found(row.object, row.batch, row.text.hex(), "f", "bad", str(row.place), left, own in places)
                found.append(one)
        return Staged(found, 0, len(rows), [])

    def staged(
        self, objects: Any, columns: Any, keys: Any, with_unreadable: bool, erasure: str | None = None
    ) -> Staged:
        names = [*objects, *(f"#snapshot of {of}" for of in objects)]
        return self._found([row for row in self.world.staging if row.object in names], columns, keys, erasure)

    def quarantined(
        self, table: TableName, columns: Any, keys: Any, with_unreadable: bool, with_left: bool = False
    ) -> Staged:
        return self._found(self.model(table)[0].quarantine, columns, keys)

    def notes(self, objects: Any, erasures: Sequence[str]) -> list[Any]:
        number = Counter(
            (row.batch, erasure, object_)
            for row in self.world.staging
            for erasure, object_ in erased_in(row)
            if erasure in erasures
        )
        origins = {"datastream": "file {}", "append table": "s.t@{}", "snapshot": "s.copy/{}", "spanner": "token {}"}
        return [
            SimpleNamespace(
                erasure=of,
                object=object_,
                batch=batch,
                records=n,
                micros=batch,
                origin=origins["snapshot" if object_ == BESIDE_LOG else self.world.source].format(batch),
            )
            for (batch, of, object_), n in sorted(number.items())
        ]

    def registered(self) -> dict[str, str]:
        return dict(self.world.register)

    def rows_of_keys(self, table: TableName, base: Base, columns: Any, keys: Any) -> int:
        model, part = self.model(table)
        return sum((id_,) in keys for id_ in getattr(model, part))

    def largest_other_batch(self, table: TableName, base: Base, columns: Any, keys: Any) -> int:
        return max((batch for id_, batch in self.model(table)[0].base.items() if (id_,) not in keys), default=0)

    def differences(self, table: TableName, relations: Any, matches: Callable[[str], bool]) -> list[str]:
        texts = [json.dumps({"id": id_}) for id_ in sorted(self.world.differences)]
        return [text for text in texts if matches(text)]

    def earlier_moments(self, model: TableName) -> list[TableName]:
        return []

    def has_marks(self, account: Account, id_: str) -> bool:
        return any(row.get("id") == id_ for row in self.world.models[account.relation[2:]].ledger)

    def keep(self, texts: dict[str, str]) -> None:
        self.writes("keep", lambda: self.world.properties.update(texts))

    def add_to_register(self, digests: Sequence[str], erasure: str, reason: str) -> None:
        self.writes("register", lambda: self.world.register.update(dict.fromkeys(digests, erasure)))

    def erase_staged(self, found: Sequence[Found]) -> None:
        left = {one.digest: one.left for one in found if one.left}

        def act() -> None:
            self.world.staging = [
                with_left(row, left[row.text.hex()])
                if row.object in (OBJECT, BESIDE_LOG) and row.text.hex() in left
                else row
                for row in self.world.staging
            ]

        self.writes("staging", act)

    def note_erased(self, copy: TableName, quarantine: TableName, batches: Sequence[int | None]) -> None:
        model = self.model(quarantine)[0]
        assert self.model(copy) == (model, "copy")
        left = model.quarantined - sum(batch is not None and batch <= model.copied for batch in batches)
        if model.expected:
            self.writes("expected", lambda: setattr(model, "expected", min(model.expected, left)))

    def erase_quarantined(self, table: TableName, found: Sequence[Found]) -> None:
        model, of = self.model(table)[0], {(one.digest, one.change_id): one for one in found}

        def act() -> None:
            rows = [(row, of.get((row.text.hex(), str(row.place)))) for row in model.quarantine]
            model.quarantine = [
                with_left(row, one.left) if one and one.left else row for row, one in rows if not (one and one.is_own)
            ]

        self.writes("quarantine", act)

    def erase_rows(self, table: TableName, base: Base, columns: Any, keys: Any) -> None:
        model, part = self.model(table)

        def act() -> None:
            for id_ in [id_ for id_ in getattr(model, part) if (id_,) in keys]:
                del getattr(model, part)[id_]

        self.writes("rows", act)

    def erase_differences(self, table: TableName, relations: Any, texts: Sequence[str]) -> None:
        self.writes("differences", lambda: self.world.differences.difference_update(json.loads(t)["id"] for t in texts))

    def write_marks(self, account: Account, id_: str, marks: Sequence[Any]) -> None:
        rows = [
            {
                "kind": "erasure", "first": batch, "last": batch, "delivered": delivered, "quarantined": quarantined,
                "entry": account.entry, "at": account.micros + 0.5, "base_batch": base_batch, "id": id_,
            }
            for batch, delivered, quarantined, _, base_batch in marks
        ]  # fmt: skip
        self.writes("marks", lambda: self.world.models[account.relation[2:]].ledger.extend(rows))

    def correct_reasons(self, account: Account, quarantine: TableName, matches: Callable[[str], bool]) -> int:
        return 0


def with_left(row: Record, left: Left) -> Record:
    return replace(row, text=left.record.encode(), object="#erased" if left.is_note else row.object)


def erased_in(row: Record) -> list[tuple[str | None, str]]:
    """Return the erasures of what is no longer in a row of staging, each with the object that this was of."""
    said = json.loads(row.text)
    if row.object == "#erased":
        return [(said["erased_record"].get("erasure"), said["erased_record"]["object"])]
    return [(mod["erased"], OBJECT) for mod in said.get("mods", []) if "erased" in mod]


def filled(seed: int = 0, source: str = "datastream") -> World:
    """Return a world in which the person and others have come in several batches; the last is not applied by all."""
    random.seed(seed)
    world = World(source)
    for number in range(5):
        world.append((PERSON, False), (str(number), False), (PERSON, number % 2 == 1), ("8", number % 2 == 0))
        for name in world.models:
            if number < 3 or name == "people":
                world.run(name)
    for model in world.models.values():
        model.copy, model.copied = dict(model.base), model.batch
        model.expected = model.quarantined
    world.differences = {PERSON, "8"}
    if source in ("datastream", "spanner"):
        # The models have a row of the ledger of their own for it, so no account of theirs counts these rows.
        rows = [json.dumps({"row": {"id": id_}}).encode() for id_ in (PERSON, "8")]
        world.staging += [Record(row, BESIDE_LOG, 2) for row in rows]
    assert world.unbalanced() == []
    places = {place.split()[-1] for place in world.has_person()} - {"snapshot"}
    assert places == {"staging", "base", "copy", "quarantine", PERSON}
    return world


def finish(world: World) -> None:
    """Go on after an erasure: late records, runs, a rebuild. Nothing comes back, and the ledger balances."""
    assert (world.has_person(), world.unbalanced(), world.properties["erasure"]) == ([], [], "")
    world.append((PERSON, False), ("9", False), (PERSON, True))
    for name in world.models:
        world.run(name)
    assert (world.has_person(), world.unbalanced()) == ([], [])
    good = [row for row in world.staging if row.object == OBJECT and not row.is_bad]
    others = {id_ for row in good for id_ in row.ids.values()}
    for name, model in world.models.items():
        assert {*model.base} == others
        world.run(name, rebuild=True)
        assert {*model.base} == others
    assert (world.has_person(), world.unbalanced()) == ([], [])


@pytest.mark.parametrize("source", RECORDS)
def test_an_erasure_leaves_nothing_and_the_ledger_balances(source: str):
    world = filled(source=source)
    result = world.erase()
    has_snapshot = source in ("datastream", "spanner")
    assert (result.records, result.keys) == (10 + has_snapshot, 1)
    assert result.landing_files == ([f"file {batch}" for batch in range(1, 6)] if source == "datastream" else [])
    assert result.source_tables == (["s.t"] if source == "append table" else ["s.copy"])
    assert [row.text for row in world.staging if row.object == BESIDE_LOG] == [b'{"row": {"id": "8"}}'][:has_snapshot]
    before = json.dumps([model.ledger for model in world.models.values()])
    again = world.erase()
    assert (again.records, again.rows, again.landing_files) == (0, {}, result.landing_files)
    assert json.dumps([model.ledger for model in world.models.values()]) == before, "once more changes nothing"
    finish(world)


def what_happens_in_between(world: World, number: int) -> None:
    """Between a kill and the same command: nothing, an append, runs, or a rebuild."""
    if number % 4 == 1:
        world.append((PERSON, False), ("5", False))
    if number % 4 >= 2:
        for name in world.models:
            world.run(name, rebuild=number % 4 == 3)


@pytest.mark.parametrize("source", RECORDS)
def test_killed_before_and_after_each_write_the_same_command_ends_it(source: str):
    killed = 0
    for number in range(4):
        for place in (half / 2 for half in range(2, 80)):
            world = filled(number, source)
            try:
                world.erase(place)
                break
            except Killed:
                killed += 1
            what_happens_in_between(world, number)
            world.erase()
            if number < 2:
                finish(world)
            else:
                # A run in between has noted the batch of the person's row: the next run replays what is behind it.
                assert world.has_person() == []
                assert [finding for finding in world.unbalanced() if "looks restored" not in finding] == []
        else:
            pytest.fail("the job never ends")
    assert killed > 80


def test_an_erasure_of_other_keys_waits_for_the_one_that_has_begun():
    world = filled()
    with pytest.raises(Killed):
        world.erase(5)
    assert world.properties["erasure"]
    keys = KeysFile("keys.csv", ("id",), ((2, ("8",)),))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(VARIABLE, SECRET)
        patched.setattr(module, "ErasureTables", lambda spark, staging: Tables(world, 0, lambda done: None))
        session: Any = None
        job = Erasure(session, STAGING, world.models["people"].reader, keys, "T", lambda said: None)
        with pytest.raises(UsageError, match=r"Another erasure of lake\.changes has begun and not ended"):
            job.run()
    world.erase()
    finish(world)


def test_what_an_append_or_a_run_brings_back_meanwhile_is_noticed():
    world = filled()

    def bring_back(done: str) -> None:
        if done == "differences":
            world.models["people"].base[PERSON] = 2

    with pytest.raises(Fault, match="has written rows of these keys while it ran"):
        world.erase(meanwhile=bring_back)
    world.erase()
    finish(world)


def test_a_record_that_an_append_has_written_meanwhile_is_noticed_too():
    world = filled()

    def append(done: str) -> None:
        if done == "differences":
            world.staging.append(record("datastream", PERSON, world.batch))

    with pytest.raises(Fault, match="has written rows of these keys while it ran"):
        world.erase(meanwhile=append)
    world.erase()
    assert world.has_person() == []


@pytest.mark.parametrize("place", ["people base", "people copy", "past base", "people quarantine", PERSON])
def test_what_one_table_alone_still_has_of_a_key_is_erased(place: str):
    """Of a table that was restored after an erasure, for example: staging has nothing of the key any more."""
    world = filled()
    world.erase()
    before = filled()
    name, _, part = place.partition(" ")
    if place == PERSON:
        world.differences.add(PERSON)
    else:
        setattr(world.models[name], part, getattr(before.models[name], part))
    assert set(world.has_person()) == {place}
    world.erase()
    assert world.has_person() == []


def test_old_versions_are_deleted_of_each_table_but_of_those_that_keep_them(monkeypatch: pytest.MonkeyPatch):
    deleted: list[str] = []
    needed: list[str | None] = ["the table has tags"]

    def delete(spark: Any, table: TableName) -> None:
        if str(table) == "s.people__snapshot":
            raise OSError("No space left on device")
        deleted.append(str(table))

    monkeypatch.setattr(module, "delete_versions", delete)
    files = SimpleNamespace(needed_versions=lambda table, is_staging: needed[0])
    monkeypatch.setattr(module, "TableFiles", lambda spark, tables: files)
    world = filled()
    assert (world.erase().versions_deleted, deleted) == ([], [])
    result = world.erase(now=True)
    tables = [str(table) for table in result.tables]
    assert {"lake.changes", "lake.changes__erased", "s.people__base", "s.past__quarantine"} <= {*tables}
    assert "s.reconcile_parity_differences" in tables and len({*tables}) == len(tables)
    assert [str(table) for table in result.versions_deleted] == deleted
    assert deleted == [of for of in tables if of not in ("lake.changes", "s.people__snapshot")]
    assert [(one.what, one.why[:35]) for one in result.not_reached] == [
        ("lake.changes", "keeps its old versions, since the t"),
        ("s.people__snapshot", "keeps its old versions: The disk is"),
    ]
    needed[0] = None
    assert "lake.changes" in map(str, world.erase(now=True).versions_deleted)


def test_an_append_between_the_first_look_and_the_register_is_seen():
    world = filled()
    come: list[str] = []

    def append(done: str) -> None:
        if done == "register" and not come:
            come.append(done)
            world.append((PERSON, False))  # the property does not say yet that there is a register

    world.erase(meanwhile=append)
    assert come
    finish(world)


@pytest.mark.parametrize(
    ("source", "bug"),
    [
        *itertools.product(
            RECORDS,
            ["no register", "no marks", "marks behind later runs", "batches not applied", "a key in the history"],
        ),
        ("spanner", "the whole record"),
        ("spanner", "rows of others with it"),
    ],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, source: str, bug: str):
    if bug == "the whole record":
        monkeypatch.setattr(type(RECORDS[source]), "without", type(RECORDS["datastream"]).without)
    elif bug == "rows of others with it":
        monkeypatch.setattr(type(RECORDS[source]), "own_place", type(RECORDS["datastream"]).own_place)
    elif bug == "no register":
        monkeypatch.setattr(Erasure, "_register", lambda self, *given: None)
    elif bug == "no marks":
        monkeypatch.setattr(Erasure, "_mark", lambda self, *given: None)
    elif bug == "a key in the history":
        erase = Tables.erase_rows
        monkeypatch.setattr(
            Tables, "erase_rows",
            lambda self, table, *given: None if table.parts[-1].startswith("past") else erase(self, table, *given),
        )  # fmt: skip
    elif bug == "marks behind later runs":
        write = Tables.write_marks
        later = lambda self, account, id_, marks: write(self, moved(account, 10), id_, marks)  # noqa: E731
        monkeypatch.setattr(Tables, "write_marks", later)
    else:
        accounts = Tables.accounts
        monkeypatch.setattr(Tables, "accounts", lambda self, of: [moved(one, 0, 9) for one in accounts(self, of)])
    with pytest.raises((AssertionError, KeyError, Fault)):
        test_an_erasure_leaves_nothing_and_the_ledger_balances(source)
        test_killed_before_and_after_each_write_the_same_command_ends_it(source)


def moved(account: Account, entries: int, batches: int = 0) -> Account:
    return Account(
        account.ledger, account.relation, account.object, account.batch + batches, account.entry + entries,
        account.micros + entries,
    )  # fmt: skip
