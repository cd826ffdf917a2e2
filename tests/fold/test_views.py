"""Views that show what is staged and not merged: `fresh` ones and `current_view`; and staging that was purged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from datastream import Staged, event
from histories import COLUMNS, COORDINATES, KEY, generate
from laws import Lakehouse, LawBroken, StagedHistories, check_same
from memory import Memory, MemoryProject
from plain_dbt import Relation
from pyspark.sql import SparkSession


def purge(project: MemoryProject, staging: str, objects: Iterable[str], batch: int) -> None:
    """Have the ledger say that records were deleted; deleting them is the caller's."""
    for object_ in objects:
        for statement in project.macros.get_purge_statements(Relation(*staging.split(".")), object_, batch):
            project.memory.query(statement)


class Views(Lakehouse):
    """As a lakehouse, its `current_state` fresh, and a `current_view` of each source beside it."""

    lake: Memory
    project: MemoryProject

    def __init__(self, schema: str, staged: StagedHistories) -> None:
        super().__init__(schema, staged)
        for source in self.sources:
            self.declare(source, fresh=True)
            self.declare(f"{source}_view")

    def declare(self, model: str, **meta: Any) -> None:
        """Declare a model, of the materialization that its name tells."""
        source = model.removesuffix("_view")
        macro = "spanner_change_stream" if source == "spanner" else f"datastream_{source}"
        materialized = "current_state" if model == source else "current_view"
        config = f"materialized='{materialized}', unique_key={list(KEY)}, meta={meta}"
        sql = f"{{{{ reconcile.{macro}(source('lake', 'changes'), object='{source}') }}}}"
        self.project.model(model, f"{{{{ config({config}) }}}}\n{sql}", COLUMNS)

    def views(self) -> list[str]:
        return [f"{source}_view" for source in self.sources]

    def check_views(self) -> None:
        """Both views of each source show what the fold of all that was delivered gives, and the very same rows."""
        for source in self.sources:
            fresh, view = (self.check_live(source, relation) for relation in (source, f"{source}_view"))
            assert fresh == view


# sources, histories of each, and of Spanner
CASES = [
    pytest.param((["oracle", "spanner"], 40, 100), id="two"),
    pytest.param((["postgresql"], 40, 0), id="one", marks=pytest.mark.soak),
    pytest.param(([*COORDINATES, "spanner"], 100, 400), id="all", marks=pytest.mark.matrix),
]


@pytest.fixture(scope="module", params=CASES)
def views(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Views]:
    """Histories of which the first batch was merged, and what they had then come to in a schema of its own."""
    sources, histories, of_spanner = request.param
    records = {source: generate(source, of_spanner if source == "spanner" else histories, seed=3) for source in sources}
    with Memory(spark) as memory:
        views = Views("views", StagedHistories(memory, "views_records", records, delivery=0, again=True))
        views.run(1)
        views.project.run(*views.views())
        for source in sources:
            # Of a model that was rebuilt since the ledger does not show which batches a copy has.
            said = {"reconcile.base_snapshot": "1"}
            memory.keep(f"views_kept.{source}", memory.table(f"views.{source}__base"), said)
        yield views


def test_views_show_what_is_staged_before_it_is_merged_and_after(views: Views) -> None:
    views.deliver(3)
    views.check_views()
    before = {source: views.lake.definition(f"views.{source}") for source in views.sources}
    views.run(3)

    # As while a run has merged and not yet made the view anew: what the base table holds is applied again.
    views.deliver(4)
    for source, definition in before.items():
        views.check_live(source, source)
        assert views.lake.definition(f"views.{source}") != definition
        views.lake.view(f"views.{source}", definition)
        views.check_live(source, source)


def test_a_rebuild_from_a_base_snapshot_gives_the_rows_of_the_increments(views: Views) -> None:
    """Law 5 where staging was purged: the records are gone, and what they had come to is kept."""
    views.run(3)
    before = {source: views.base(source) for source in views.sources}
    quarantined = {source: views.lake.table(f"views.{source}__quarantine").count() for source in views.sources}
    purge(views.project, "views_staging.changes", views.sources, 1)
    views.lake.delete(views.staged.table, "batch <= 1")
    for source in views.sources:
        views.declare(source, fresh=True, base_snapshot=f"views_kept.{source}")
        # What a delete without a key had undone a snapshot does not tell: these histories have no such deletes.
        without = {"row_ids": False} if source == "oracle" else {}
        views.declare(f"{source}_view", base_snapshot=f"views_kept.{source}", **without)
    views.run(3, full_refresh=True)
    for source in views.sources:
        check_same(before[source], views.base(source), source)
        line = views.accounts[source][-1]
        assert (line.kind, line.first_batch, line.last_batch) == ("rebuild", 2, 3)
        assert views.lake.table(f"views.{source}__quarantine").count() == quarantined[source]
        assert views.project.failing("ledger_balances", source) == []
    views.project.run(*views.views())
    views.deliver(4)
    views.check_views()
    if "spanner" in views.sources:
        pending = [len(views.project.failing("no_pending_rows", model)) for model in ("spanner", "spanner_view")]
        assert pending[0] == pending[1] > 0


# --- bugs planted into the package, each of which the checks above must find -----------------------------------------

STATE = "macros/materializations/current_state"
BUGS = {
    "a batch left out": (
        f"{STATE}/fresh_rows.sql", "batch + 1, last", "batch + 2, last", "mysql", "live keys|as folded",
    ),
    "no anti join": (
        f"{STATE}/folded_rows.sql", "{{ newest }} as newest\n    on",
        "(select * from {{ newest }} where false) as newest\n    on", "mysql", "twice",
    ),
    "the staged record wins": (
        f"{STATE}/folded_rows.sql", " and newest._change_sequence <= base._change_sequence", " and false",
        "mysql", "live keys|as folded",
    ),
    "rows newer than some are skipped": (
        f"{STATE}/folded_rows.sql", "select min(_change_sequence)", "select max(_change_sequence)",
        "mysql", "live keys|as folded",
    ),
    "deleted rows shown": (f"{STATE}/live_rows.sql", "else 'not _deleted'", "else 'true'", "mysql", "live keys"),
    "partial records for whole rows": (
        f"{STATE}/folded_rows.sql", "joined.get(column, 'newest.' ~ column)",
        "'newest.' ~ column", "spanner", "live keys|as folded",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def planted(spark: SparkSession) -> Iterator[StagedHistories]:
    records = {source: generate(source, 60, seed=4) for source in ("mysql", "spanner")}
    with Memory(spark) as memory:
        staged = StagedHistories(memory, "planted_views", records, delivery=0)
        for source in records:
            fresh(staged, source).run(1)
        yield staged


def fresh(staged: StagedHistories, source: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> Lakehouse:
    return Lakehouse(f"planted_{source}", staged, [source], ", meta={'fresh': true}", replaced)


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_the_checks_find(planted: StagedHistories, bug: str) -> None:
    """Over one base table: a run with nothing to apply makes the view anew, since its SELECT is another."""
    file, right, wrong, source, shows = BUGS[bug]
    lakehouse = fresh(planted, source, {file: {right: wrong}})
    lakehouse.run(1)
    lakehouse.deliver(3)
    with pytest.raises(LawBroken, match=shows):
        lakehouse.check_live(source, source)


# --- the life of a model ---------------------------------------------------------------------------------------------

LAKE = "lake_views"
THING = {"id": "bigint", "name": "string"}


class Things:
    """A project with one model, and its staging table."""

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory, self.schema, self.staging = memory, f"things_{name}", f"{LAKE}.{name}"
        self.project, self.source = memory.project(self.schema), name
        self.project.source(LAKE, name)

    def declare(self, materialized: str, model: str = "things", columns: Any = THING, **config: Any) -> None:
        options = "".join(f", {name}={value!r}" for name, value in config.items())
        self.project.model(
            model,
            f"{{{{ config(materialized={materialized!r}, unique_key='id'{options}) }}}}\n"
            f"{{{{ reconcile.datastream_mysql(source('lake', '{self.source}'), object='shop.things') }}}}",
            columns,
        )

    def append(self, batch: int, names: dict[int, str | None]) -> None:
        """Stage a batch of updates; None deletes, and a name that is no text goes to quarantine."""
        self.memory.stage(
            self.staging, [
                Staged(
                    event(
                        "mysql", {"id": number, "name": name}, "DELETE" if name is None else "UPDATE",
                        metadata={"log_position": 1000 * batch + number}, object="shop.things",
                        without=["source_metadata"] if name == "bad" else [],
                    ), "shop.things", batch,
                )
                for number, name in names.items()
            ],
        )  # fmt: skip

    def rows(self, relation: str = "things") -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.memory.rows(f"{self.schema}.{relation}")))

    def relations(self, *models: str) -> dict[str, str]:
        """Return what models consist of, and whether each is a table or a view."""
        names = [f"{model}{part}" for model in models for part in ("", "__base", "__changes", "__quarantine")]
        kinds = {name: self.memory.relation_type(self.schema, name) for name in names}
        return {name: kind for name, kind in kinds.items() if kind}

    def definition(self, relation: str = "things") -> str:
        return self.memory.definition(f"{self.schema}.{relation}")


@pytest.fixture
def things(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Things]:
    with Memory(spark) as memory:
        yield Things(memory, request.node.name.removeprefix("test_")[:60])


def test_a_current_view_shows_what_is_staged_and_is_made_anew_only_when_it_is_declared_otherwise(
    things: Things,
) -> None:
    things.append(1, {1: "one", 2: "two"})
    things.declare("current_view")
    things.project.run("things")
    assert things.rows() == [(1, "one"), (2, "two")]
    assert things.relations("things") == dict.fromkeys(("things", "things__changes", "things__quarantine"), "view")
    assert things.rows("reconcile_ledger") == []

    made = {name: things.definition(name) for name in things.relations("things")}
    things.append(2, {1: None, 2: "due", 3: "bad"})
    assert things.rows() == [(2, "due")]
    (bad,) = things.memory.rows(f"{things.schema}.things__quarantine")
    assert bad.asDict().keys() == {"record", "_change_error", "_change_id", "_change_batch", "origin"}
    assert bad._change_error.startswith("the record has no source_metadata")
    assert bad._change_batch == 2
    things.memory.noted = []
    for flags in ({}, {"empty": True}, {"full_refresh": True}):
        assert things.project.run("things", **flags) == {"things": "nothing new"}
    assert [sql for _, sql in things.memory.noted if sql.lstrip().startswith("create or replace")] == []
    assert {name: things.definition(name) for name in things.relations("things")} == made
    assert len(things.project.failing("no_quarantine", "things")) == 1

    things.declare("current_view", columns={"id": "bigint", "name": "binary"})
    things.project.run("things")
    assert dict(things.memory.table(f"{things.schema}.things").dtypes)["name"] == "binary"


def test_a_fresh_view_is_made_anew_when_something_was_applied_and_only_then(things: Things) -> None:
    things.append(1, {1: "uno"})
    things.declare("current_state", meta={"fresh": True})
    things.project.run("things")
    made = things.definition()
    things.project.run("things")
    assert things.definition() == made
    things.append(2, {2: "two"})
    assert things.rows() == [(1, "uno"), (2, "two")]
    things.project.run("things", empty=True)
    assert things.definition() == made
    things.project.run("things")
    assert things.definition() != made
    assert things.rows() == [(1, "uno"), (2, "two")]

    # A base table that was restored shows less, until the next run.
    things.memory.restore(f"{things.schema}.things__base", 0)
    assert things.rows() == [(1, "uno")]
    things.project.run("things")
    assert things.rows() == [(1, "uno"), (2, "two")]

    things.declare("current_state")
    things.project.run("things")
    assert "things__changes" not in things.definition()
    assert things.rows() == [(1, "uno"), (2, "two")]


def test_once_staging_was_purged_increments_go_on_and_a_base_snapshot_has_what_is_gone(things: Things) -> None:
    things.append(1, {1: "one", 2: "two", 4: "bad"})
    things.declare("current_state")
    things.project.run("things")
    things.append(2, {2: None})
    things.project.run("things")
    said = {"reconcile.base_snapshot": "2"}
    things.memory.keep(f"{LAKE}.kept", things.memory.table(f"{things.schema}.things__base"), said)
    purge(things.project, things.staging, ["shop.things", "shop.others"], 2)
    things.memory.delete(things.staging, "batch <= 2")

    # Increments go on.
    things.append(3, {3: "three"})
    things.project.run("things")
    assert things.rows() == [(1, "one"), (3, "three")]
    assert things.project.failing("ledger_balances", "things") == []

    # From a snapshot all is there again; also where nothing has come since, and in an empty run.
    kept = {"base_snapshot": f"{LAKE}.kept"}
    things.declare("current_state", meta=kept)
    things.declare("current_state", "fresh", meta={**kept, "fresh": True})
    things.declare("current_view", "seen", meta=kept)
    things.project.run("fresh", empty=True)
    ledger = things.memory.rows(f"{things.schema}.reconcile_ledger")
    begun = [(row.kind, row.first_batch, row.last_batch) for row in ledger if row.relation.endswith(".fresh")]
    assert begun == [("rebuild", 3, 2)], "the next range begins after the snapshot"
    things.project.run("things", full_refresh=True)
    things.project.run("seen")
    for model in ("things", "fresh", "seen"):
        assert things.rows(model) == [(1, "one"), (3, "three")], model
    assert [row.record is None for row in things.memory.rows(f"{things.schema}.things__quarantine")] == [False]
    assert (
        things.project.failing("ledger_balances", "things") == things.project.failing("ledger_balances", "fresh") == []
    )
