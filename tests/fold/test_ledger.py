"""The account of what was applied: `ledger_balances` finds what is wrong with it, and what was purged is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from datastream import Staged, event
from memory import Memory, MemoryProject
from plain_dbt import CompilerError, Relation, Rows
from pyspark.sql import SparkSession
from row_deletes import COLUMNS, OBJECT, change
from spanner import data_change_record, mod

LEDGER = "account.reconcile_ledger"
GAP, UNKNOWN, ROWS = (
    "the ledger has a gap of batches before this range",
    "the base table has this batch, but the ledger does not",
    "the base table has a different number of rows than after this range",
)
# What happened to the ledger, as a SELECT of it, and what is found of which range.
DAMAGE = {
    "a range in the middle is gone": ("* from {} where first_batch <> 2", {(3, 3): GAP, (2, 2): UNKNOWN}),
    "the last range is gone": ("* from {} where first_batch <> 3", {(3, 3): UNKNOWN, (2, 2): ROWS}),
    "the first range is gone": ("* from {} where first_batch <> 1", {(2, 2): GAP, (1, 1): UNKNOWN}),
    "a record was not delivered": (
        "* except (delivered), delivered - 1L as delivered from {}",
        dict.fromkeys(
            [(1, 1), (2, 2), (3, 3)], ("the classes do not add up to delivered; staging has a different number")
        ),
    ),
    "a record was applied without an effect": (
        "* except (inserted), if(first_batch = 3, inserted - 1, inserted) as inserted from {}",
        {(3, 3): "the effects do not add up to applied"},
    ),
    "a record too many is accounted for": (
        "* except (delivered, duplicate), delivered + 1L as delivered, duplicate + 1L as duplicate from {}",
        dict.fromkeys([(1, 1), (2, 2), (3, 3)], "staging has a different number of records"),
    ),
}


def stage(memory: Memory, batch: int, first: int | None = None, lake: str = "account_lake") -> None:
    """Stage a batch of two new rows, whose ids are `first`, or twice the batch, and the next one."""
    first = 2 * batch if first is None else first
    records = [event("mysql", {"id": first + n}, object="things") for n in (0, 1)]
    memory.stage(f"{lake}.changes", [Staged(record, "things", batch) for record in records])


@pytest.fixture(scope="module")
def built(spark: SparkSession) -> Iterator[MemoryProject]:
    """A model that has applied three batches of two records each, one in each run."""
    with Memory(spark) as memory:
        project = memory.project("account")
        project.source("account_lake", "changes")
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}",
            {"id": "bigint"},
        )
        for batch in (1, 2, 3):
            stage(memory, batch)
            project.run("things")
        assert project.failing("ledger_balances", "things") == []
        yield project


@pytest.fixture
def project(built: MemoryProject) -> Iterator[MemoryProject]:
    """The same for one test, which may change what it likes."""
    tables = (LEDGER, "account_lake.changes", "account.things__base", "account.things__quarantine")
    kept = {
        table: (built.memory.version(table), dict(built.memory.relation_properties(*table.split("."))))
        for table in tables
    }
    yield built
    for table, (version, properties) in kept.items():
        built.memory.restore(table, version, properties)


def ids(project: MemoryProject, schema: str = "account") -> list[int]:
    return sorted(row.id for row in project.memory.table(f"{schema}.things").collect())


@pytest.mark.parametrize("rebuilt", [False, True], ids=["applied", "rebuilt"])
def test_a_clock_that_is_set_back_orders_nothing(project: MemoryProject, rebuilt: bool) -> None:
    memory = project.memory
    if rebuilt:
        project.run("things", full_refresh=True)
    future = "* except (recorded_at), recorded_at + interval 1 day as recorded_at"
    memory.keep(LEDGER, memory.sql(f"select {future} from `account`.`reconcile_ledger`"))
    older = memory.version("account.things__base")
    for batch in (4, 5):
        stage(memory, batch)
        assert project.run("things")["things"].startswith(f"APPLY batches {batch}-{batch}")
    memory.restore("account.things__base", older)
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert ids(project) == [*range(2, 12)]
    assert project.failing("ledger_balances", "things") == []


def test_staging_that_was_restored_is_noticed_for_good(project: MemoryProject) -> None:
    memory = project.memory
    memory.restore("account_lake.changes", 0)
    for batch, first in ((2, 20), (3, 30), (4, 40), (5, 50)):
        stage(memory, batch, first)
        if batch > 2:
            with pytest.raises(
                CompilerError, match=r"batch 3 was applied to .*, but account_lake\.changes now has another batch under"
            ):
                project.run("things")
    project.run("things", full_refresh=True)
    assert ids(project) == [2, 3, 20, 21, 30, 31, 40, 41, 50, 51]
    # The accounts of the table before the rebuild counted other records.
    stage(memory, 2, 20)
    project.run("things", full_refresh=True)
    assert project.failing("ledger_balances", "things") == []


def meanwhile(project: MemoryProject, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen just before the next MERGE into the base table."""
    merge, waits = project.memory._merge, [act]

    def merging(sql: str) -> Rows:
        if sql.startswith("merge into `account`.`things__base`") and waits:
            waits.pop()()
        return merge(sql)

    monkeypatch.setattr(project.memory, "_merge", merging)


def test_the_quarantine_balances_after_an_erasure_has_taken_records_from_it_and_from_the_reasons(
    project: MemoryProject,
) -> None:
    memory = project.memory
    bad = event("mysql", {"id": "word"}, object="things")
    memory.stage("account_lake.changes", [Staged(bad, "things", 4)])
    stage(memory, 4)
    project.run("things")
    memory.delete("account.things__quarantine", "_change_batch = 4")
    (finding,) = project.failing("ledger_balances", "things")
    assert finding["finding"] == "the quarantine has a different number of records"
    ledger = memory.table(LEDGER)
    kind = ledger.schema["quarantine_reasons"].dataType
    no_reasons = "cast(array() as " + kind.simpleString() + ")"
    erasure = ledger.where("first_batch = 4").selectExpr(
        "* except (kind, delivered, quarantined, recorded_at, quarantine_reasons)", "'erasure' as kind",
        "1L as delivered", "1L as quarantined", "recorded_at + interval 1 second as recorded_at",
        f"cast(null as {kind.simpleString()}) as quarantine_reasons",
    )  # fmt: skip
    corrected = ledger.selectExpr(
        "* except (quarantine_reasons)",
        f"if(first_batch = 4, {no_reasons}, quarantine_reasons) as quarantine_reasons",
    )
    memory.keep(LEDGER, corrected.unionByName(erasure))
    memory.delete("account_lake.changes", "batch = 4 and record like '%word%'")
    assert project.failing("ledger_balances", "things") == []


def test_a_base_table_that_is_restored_during_a_run_stops_the_run(
    project: MemoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = project.memory
    older = memory.version("account.things__base")
    stage(memory, 4)
    project.run("things")
    stage(memory, 5)
    meanwhile(project, monkeypatch, lambda: memory.restore("account.things__base", older))
    with pytest.raises(Exception, match="another run of this model wrote at the same time, or the table was restored"):
        project.run("things")
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert ids(project) == list(range(2, 12))
    assert project.failing("ledger_balances", "things") == []


def test_staging_that_is_restored_during_a_run_is_noticed_when_its_numbers_come_again(
    project: MemoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = project.memory
    stage(memory, 4)
    meanwhile(project, monkeypatch, lambda: memory.delete("account_lake.changes", "batch = 4"))
    project.run("things")
    stage(memory, 4, first=50)
    with pytest.raises(CompilerError, match="now has another batch under this number"):
        project.run("things")


def test_a_restored_base_table_is_not_filled_from_what_staging_has_left(project: MemoryProject) -> None:
    memory = project.memory
    older = memory.version("account.things__base")
    stage(memory, 4)
    project.run("things")
    stage(memory, 5)
    project.run("things")
    memory.restore("account.things__base", older)
    memory.delete("account_lake.changes", "batch = 4 and record like '%\"id\": 9%'")
    with pytest.raises(CompilerError, match=r"batches 4 to 4 .* has 1 of the 2 records that were delivered in them"):
        project.run("things")
    project.run("things", full_refresh=True)
    assert ids(project) == [*range(2, 9), 10, 11]


# A model that needs no source macro of the package.
OWN_SELECT = """{{ config(materialized='current_state', unique_key='id') }}
select cast(get_json_object(record, '$.payload.id') as bigint) as id, 'insert' as _change_type,
    get_json_object(record, '$.uuid') as _change_sequence, get_json_object(record, '$.uuid') as _change_id,
    timestamp'2026-01-01' as _change_time, batch as _change_batch, cast(null as array<string>) as _change_columns,
    cast(null as string) as _change_error
from {{ reconcile.qualified(source('lake', 'changes')) }}"""


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ([3], "own.things__base, but own_lake.changes now has another batch under this number"),
        ([], "own.things__base, but the last batch of own_lake.changes is 2"),
        ([4], "own_lake.changes no longer has a record of this batch"),
    ],
)
def test_a_model_of_its_own_select_notices_that_staging_was_restored(
    spark: SparkSession, batches: list[int], said: str
) -> None:
    with Memory(spark) as memory:
        project = memory.project("own")
        project.source("own_lake", "changes")
        project.model("things", OWN_SELECT, {"id": "bigint"})
        for batch in (1, 2, 3):
            stage(memory, batch, lake="own_lake")
        memory.keep("own_lake.changes", memory.table("own_lake.changes"), {"reconcile.last_batch": "3"})
        project.run("things")
        assert project.run("things")["things"] == "nothing new", "what was not restored is not refused"
        memory.delete("own_lake.changes", "batch = 3")
        for batch in batches:
            stage(memory, batch, 50, "own_lake")
        with pytest.raises(CompilerError, match=said):
            project.run("things")
        project.run("things", full_refresh=True)
        assert ids(project, "own") == [2, 3, 4, 5] + [50, 51] * len(batches)


def test_a_base_table_that_is_restored_to_before_a_rebuild_gets_what_the_rebuild_had_read(
    project: MemoryProject,
) -> None:
    memory = project.memory
    whole = memory.version("account_lake.changes")
    memory.delete("account_lake.changes", "batch = 2")
    project.run("things", full_refresh=True)
    assert ids(project) == [2, 3, 6, 7]
    older = memory.version("account.things__base")
    properties = dict(memory.relation_properties("account", "things__base"))
    memory.restore("account_lake.changes", whole)
    project.run("things", full_refresh=True)
    memory.restore("account.things__base", older, properties)
    stage(memory, 4)
    assert project.run("things")["things"].startswith("REPLAY batches 1-4")
    assert ids(project) == list(range(2, 10))
    assert project.failing("ledger_balances", "things") == []


@pytest.mark.parametrize("later", ["a delete without a key", "a copy with an earlier time"])
def test_a_history_that_is_restored_to_any_version_has_all_versions_after_the_next_records(
    spark: SparkSession, later: str
) -> None:
    """A batch that only ends versions, or changes since when they are valid, leaves no record of its own."""
    staging, base = "set_back_lake.changes", "set_back.past__base"
    updated = change(1, 2, "UPDATE", 11, "b", "z")
    copied = json.dumps(json.loads(updated.text) | {"source_timestamp": "2026-01-01T00:00:00Z"})
    told = [
        [change(1, 1, "INSERT", 9, "a", "x").text, change(1, 2, "INSERT", 10, "b", "y").text, updated.text],
        [change(1, None, "DELETE", 12, "a").text if later == "a delete without a key" else copied],
        [change(1, None, "DELETE", 13, "b").text],
    ]
    with Memory(spark) as memory:
        set_back, made_anew = memory.project("set_back"), memory.project("made_anew")
        for project in (set_back, made_anew):
            project.source("set_back_lake", "changes")
            project.model(
                "past",
                "{{ config(materialized='history', unique_key=['history', 'id']) }}\n"
                f"{{{{ reconcile.datastream_oracle(source('lake', 'changes'), object='{OBJECT}') }}}}",
                COLUMNS,
            )
        kept = []
        for batch, records in enumerate(told, start=1):
            memory.stage(staging, [Staged(text, OBJECT, batch) for text in records])
            set_back.run("past")
            kept.append((memory.version(base), dict(memory.relation_properties("set_back", "past__base"))))
        for batch, (version, properties) in enumerate(kept, start=len(told) + 1):
            memory.restore(base, version, properties)
            memory.stage(staging, [Staged(change(1, batch, "INSERT", 10 + batch, "c", "w").text, OBJECT, batch)])
            set_back.run("past")
            made_anew.run("past", full_refresh=True)
            seen, right = (sorted(memory.table(name).toJSON().collect()) for name in (base, "made_anew.past__base"))
            assert seen == right
            assert set_back.failing("ledger_balances", "past") == []


def test_a_quarantine_that_was_restored_is_noticed_until_it_is_whole(project: MemoryProject) -> None:
    """Its records are not delivered again, and `no_quarantine` passes without them."""
    memory, quarantine = project.memory, "account.things__quarantine"
    empty, older = memory.version(quarantine), memory.version("account.things__base")
    for batch in (4, 5):
        bad = event("mysql", {"id": "none"}, object="things")
        memory.stage("account_lake.changes", [Staged(bad, "things", batch)])
        stage(memory, batch)
        project.run("things")
    whole = memory.version(quarantine)
    memory.restore(quarantine, empty)
    assert project.run("things")["things"] == "nothing new"
    told = "the quarantine has a different number of records"
    found = project.failing("ledger_balances", "things")
    assert [(row.first_batch, row.finding) for row in found] == [(4, told), (5, told)]
    memory.restore(quarantine, whole)
    assert project.failing("ledger_balances", "things") == []
    # What is applied again comes to quarantine again.
    memory.delete(quarantine, "_change_batch = 5")
    memory.restore("account.things__base", older)
    assert project.run("things")["things"].startswith("REPLAY batches 4-5")
    assert project.failing("ledger_balances", "things") == []
    memory.restore(quarantine, empty)
    project.run("things", full_refresh=True)
    assert project.failing("ledger_balances", "things") == []
    assert memory.table(quarantine).count() == 2


def test_a_ledger_of_before_its_rows_had_numbers_is_gone_on_with(project: MemoryProject) -> None:
    memory = project.memory
    memory.keep(LEDGER, memory.table(LEDGER).drop("entry", "last_appended_at"))
    assert project.run("things")["things"] == "nothing new"
    for batch in (4, 5):
        stage(memory, batch)
        project.run("things")
    rows = memory.table(LEDGER).orderBy("last_batch").collect()
    assert [row.entry for row in rows] == [None, None, None, 1, 2]
    assert project.failing("ledger_balances", "things") == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_ledger_that_does_not_balance_is_found(project: MemoryProject, damage: str) -> None:
    select, expected = DAMAGE[damage]
    memory = project.memory
    memory.keep(LEDGER, memory.sql("select " + select.format("`account`.`reconcile_ledger`")))
    found = {(row.first_batch, row.last_batch): row.finding for row in project.failing("ledger_balances", "things")}
    assert found.keys() == expected.keys()
    assert all(found[of].startswith(says) for of, says in expected.items()), found


def test_a_record_that_is_in_no_batch_is_found(project: MemoryProject) -> None:
    """Somebody put it into staging by hand; no range of batches ever has it."""
    memory, bad = project.memory, event("mysql", {"id": 99}, object="things")
    memory.stage("account_lake.changes", [Staged(bad, "things", batch) for batch in (-1, 0)])
    without = "select * except (batch, appended_at), nullif(batch, -1) as batch, appended_at"
    memory.keep("account_lake.changes", memory.sql(f"{without} from `account_lake`.`changes`"))
    assert project.run("things")["things"] == "nothing new"
    found = project.failing("ledger_balances", "things")
    told = "staging holds records without the number of an append, which no run reads"
    assert {(row.first_batch, row.finding) for row in found} == {(None, told), (0, told)}


def test_records_that_come_under_the_number_of_a_purged_batch_are_found(project: MemoryProject) -> None:
    """Of a purged batch staging may have fewer records than were counted, and never more."""
    memory = project.memory
    for statement in project.macros.get_purge_statements(Relation("account_lake", "changes"), "things", 2):
        memory.query(statement)
    memory.delete("account_lake.changes", "batch <= 2")
    stage(memory, 2, 20)
    assert project.failing("ledger_balances", "things") == []
    stage(memory, 2, 30)
    found = project.failing("ledger_balances", "things")
    assert [(row.first_batch, row.finding) for row in found] == [(2, "staging has a different number of records")]


def test_of_several_purges_of_an_object_the_last_one_counts(project: MemoryProject) -> None:
    staging, memory = Relation("account_lake", "changes"), project.memory
    for object_, batch in (("things", 2), ("things", 1), ("others", 3)):
        for statement in project.macros.get_purge_statements(staging, object_, batch):
            memory.query(statement)
    assert project.macros.purged_through(staging, ["things", "another"]) == {"things": 2}


# --- a model whose tables are set back and forth ----------------------------------------------------------------------


OF_ANOTHER_BATCH = "things__base has rows of another batch {} than .*: a run of this model ended before"


def die(memory: Memory, before: str, run: Callable[[], object]) -> None:
    """Run, and die before an INSERT that begins like this."""
    insert = memory._insert

    def dying(sql: str) -> Rows:
        if sql.startswith(before):
            raise KeyboardInterrupt
        return insert(sql)

    memory._insert = dying  # type: ignore[method-assign]
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        del memory._insert


class SetBack:
    """A model of which batch 2 has a record that does not fit; `wider` declares it so that it does."""

    def __init__(self, memory: Memory, materialized: str) -> None:
        self.memory, self.materialized = memory, materialized
        self.project = memory.project("set_back_things")
        self.project.source("set_back_things_lake", "changes")
        self.staging, self.base = "set_back_things_lake.changes", "set_back_things.things__base"
        self.declare(3)
        self.stage(1, {1: "a", 2: "b"})
        self.run()
        self.first = self.now()
        self.stage(2, {3: "longer", 1: "c"})
        self.run()

    def declare(self, length: int) -> None:
        self.project.model(
            "things",
            f"{{{{ config(materialized='{self.materialized}', unique_key='id') }}}}\n"
            "{{ reconcile.datastream_mysql(source('lake', 'changes'), object='things') }}",
            {"id": "bigint", "name": f"varchar({length})"},
        )

    def stage(self, batch: int, names: dict[int, str]) -> None:
        self.memory.stage(self.staging, [
            Staged(
                event("mysql", {"id": id_, "name": name}, "INSERT", object="things",
                      metadata={"log_file": "mysql-bin.000001", "log_position": 100 * batch + id_}),
                "things", batch,
            )
            for id_, name in names.items()
        ])  # fmt: skip

    def run(self, full_refresh: bool = False) -> str:
        return self.project.run("things", full_refresh=full_refresh)["things"]

    def now(self, name: str = "things__base") -> tuple[int, dict[str, str]]:
        """Return a version of a table, and its properties."""
        properties = self.memory.relation_properties("set_back_things", name)
        return self.memory.version(f"set_back_things.{name}"), dict(properties)

    def to(self, version: tuple[int, dict[str, str]], name: str = "things__base") -> None:
        self.memory.restore(f"set_back_things.{name}", *version)

    def rows(self) -> dict[int, str]:
        where = "is_current" if self.materialized == "history" else "true"
        return {row.id: row.name for row in self.memory.table("set_back_things.things").where(where).collect()}

    def dies(self, before: str, full_refresh: bool = False) -> None:
        """Run, and die before a statement that begins like this."""
        die(self.memory, before, lambda: self.run(full_refresh))

    def has(self, rows: dict[int, str]) -> None:
        """Demand these rows after one more batch, and an account that balances."""
        self.stage(9, {9: "z"})
        self.run()
        assert self.rows() == rows | {9: "z"}
        assert self.project.failing("ledger_balances", "things") == []


INSERTS_LEDGER = "insert into `set_back_things`.`reconcile_ledger`"
ALL = {1: "c", 2: "b", 3: "longer"}


@pytest.fixture(params=["current_state", pytest.param("history", marks=pytest.mark.soak)])
def set_back(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SetBack]:
    with Memory(spark) as memory:
        yield SetBack(memory, request.param)


def test_a_base_table_of_before_a_replay_that_applied_more_gets_what_was_applied(set_back: SetBack) -> None:
    set_back.declare(9)
    set_back.run()
    later = set_back.now()
    set_back.to(set_back.first)
    assert set_back.run().startswith("REPLAY batches 2-2: 2 of 2 applied")
    set_back.to(later)
    set_back.has(ALL)


def test_a_base_table_that_comes_back_after_a_rebuild_without_it_gets_what_the_rebuild_applied(
    set_back: SetBack,
) -> None:
    set_back.declare(9)
    set_back.run()
    (_, properties), rows = set_back.now(), set_back.memory.table(set_back.base)
    set_back.memory.drop(set_back.base)
    assert set_back.run().startswith("REBUILD batches 1-2: ")
    set_back.memory.drop(set_back.base)
    set_back.memory.keep(set_back.base, rows, properties)
    set_back.has(ALL)


@pytest.mark.parametrize("noted", [True, False])
def test_each_rebuild_has_a_number_of_its_own(set_back: SetBack, noted: bool) -> None:
    before, quarantine = set_back.now(), set_back.now("things__quarantine")
    whole = set_back.memory.version(set_back.staging)
    set_back.memory.delete(set_back.staging, "batch = 2")
    set_back.stage(2, {1: "c"})
    set_back.run(full_refresh=True)
    lacking = set_back.now()
    set_back.memory.restore(set_back.staging, whole)
    set_back.declare(9)
    set_back.to(before)
    set_back.to(quarantine, "things__quarantine")
    set_back.run(full_refresh=True)
    set_back.declare(3)
    set_back.run(full_refresh=True)
    set_back.to(lacking)
    if noted:
        set_back.stage(9, {9: "z"})
        with pytest.raises(CompilerError, match=r"has rows of another batch 2 than .*: the table was restored, and"):
            set_back.run()
    else:
        set_back.memory.forget_notes()
        set_back.has({1: "c", 2: "b"})


@pytest.mark.parametrize("noted", [True, False])
def test_a_full_refresh_that_dies_before_its_account_is_replayed_or_refused(set_back: SetBack, noted: bool) -> None:
    whole = set_back.memory.version(set_back.staging)
    set_back.memory.delete(set_back.staging, "batch = 2")
    set_back.stage(2, {9: "x"})
    set_back.declare(9)
    set_back.dies(INSERTS_LEDGER, full_refresh=True)
    set_back.memory.restore(set_back.staging, whole)
    if noted:
        with pytest.raises(CompilerError, match=OF_ANOTHER_BATCH.format(2)):
            set_back.run()
        set_back.run(full_refresh=True)
    else:
        set_back.memory.forget_notes()
        set_back.run()
    assert {id_: name for id_, name in set_back.rows().items() if id_ < 9} == ALL


@pytest.mark.parametrize("noted", [True, False])
def test_rows_of_a_run_that_died_are_not_kept_if_staging_has_other_records_under_their_number(
    set_back: SetBack, noted: bool
) -> None:
    before = set_back.memory.version(set_back.staging)
    set_back.stage(3, {1: "d", 5: "e"})
    set_back.dies(INSERTS_LEDGER)
    set_back.memory.restore(set_back.staging, before)
    set_back.stage(3, {1: "f"})
    if not noted:
        set_back.memory.forget_notes()
    without_record = r"things__base has 2 rows of batch 3 or later without a record in set_back"
    with pytest.raises(CompilerError, match=OF_ANOTHER_BATCH.format(3) if noted else without_record):
        set_back.run()
    set_back.run(full_refresh=True)
    assert set_back.rows() == {1: "f", 2: "b"}
    assert set_back.project.failing("ledger_balances", "things") == []


def of_spanner(second: int, kind: str, **values: str) -> str:
    at = f"2026-11-21T11:33:{second}.000000001Z"
    return data_change_record([mod({"id": "1"}, values)], kind, table_name="things", commit_timestamp=at)


def test_a_row_that_follows_from_several_records_is_not_kept_of_a_batch_that_is_another_one(
    spark: SparkSession,
) -> None:
    """Staging has a record of the row's key, so the records do not show whose it is: the note of the commit does."""
    with Memory(spark) as memory:
        project, staging = memory.project("several"), "several_lake.changes"
        project.source("several_lake", "changes")
        project.model(
            "things",
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            "{{ reconcile.spanner_change_stream(source('lake', 'changes'), object='things') }}",
            {"id": "bigint", "name": "string", "number": "bigint"},
        )

        def stage(batch: int, record: str) -> None:
            memory.stage(staging, [Staged(record, "things", batch, source="spanner")])

        def row() -> tuple[str, int]:
            (found,) = memory.table("several.things").collect()
            return found.name, found.number

        stage(1, of_spanner(10, "INSERT", name="a", number="1"))
        project.run("things")
        before = memory.version(staging)
        stage(2, of_spanner(20, "UPDATE", name="gone"))
        die(memory, INSERTS_LEDGER.replace("set_back_things", "several"), lambda: project.run("things"))
        memory.restore(staging, before)
        stage(2, of_spanner(21, "UPDATE", number="5"))
        with pytest.raises(CompilerError, match=OF_ANOTHER_BATCH.format(2)):
            project.run("things")
        assert row() == ("gone", 1)
        project.run("things", full_refresh=True)
        assert row() == ("a", 5)
        # The same batch is applied again, and accounted for, although it changes nothing.
        stage(3, of_spanner(30, "UPDATE", name="c"))
        die(memory, INSERTS_LEDGER.replace("set_back_things", "several"), lambda: project.run("things"))
        assert project.run("things")["things"].startswith("REPLAY batches 3-3")
        assert "reconcile.accounted" in memory.relation_properties("several", "things__base")
        stage(4, of_spanner(40, "UPDATE", number="7"))
        project.run("things")
        assert row() == ("c", 7)
        assert project.failing("ledger_balances", "things") == []


def test_a_run_that_died_is_finished_if_staging_has_its_records(set_back: SetBack) -> None:
    set_back.stage(3, {1: "d", 5: "e"})
    set_back.dies(INSERTS_LEDGER)
    assert set_back.run().startswith("REPLAY batches 3-3")
    set_back.has({1: "d", 2: "b", 5: "e"})


def test_a_quarantine_that_lacks_records_of_a_batch_is_found_whatever_ranges_came_later(set_back: SetBack) -> None:
    twice = set_back.now()
    set_back.to(set_back.first)
    set_back.stage(3, {4: "d"})
    set_back.run()
    set_back.to(twice)
    assert set_back.run().startswith("REPLAY batches ")
    assert set_back.project.failing("ledger_balances", "things") == []
    set_back.memory.delete("set_back_things.things__quarantine", "_change_batch = 2")
    found = set_back.project.failing("ledger_balances", "things")
    assert [row.finding for row in found] == ["the quarantine has a different number of records"]


def test_a_base_table_with_other_rows_than_its_last_run_left_is_found(set_back: SetBack) -> None:
    set_back.memory.delete(set_back.base, "id = 2")
    found = set_back.project.failing("ledger_balances", "things")
    assert [(row.first_batch, row.finding) for row in found] == [(2, ROWS)]
