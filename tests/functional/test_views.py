"""Views that show what is staged and not merged: `fresh` ones and `current_view`; and staging that was purged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datastream import Staged, event, stage
from file_formats import file_format
from histories import COLUMNS, COORDINATES, KEY, generate
from laws import Lakehouse, LawBroken, StagedHistories, check_same
from projects import Project, package_with_planted_bug, with_planted_bug
from pyspark.sql import SparkSession
from tables import restore, tables_in, versions

pytestmark = pytest.mark.soak


class Views(Lakehouse):
    """As a lakehouse, its `current_state` fresh, and a `current_view` of each source beside it."""

    def __init__(self, spark: SparkSession, root: Path, schema: str, staged: StagedHistories) -> None:
        super().__init__(spark, root, schema, staged)
        for source in self.sources:
            self.declare(source, fresh=True)
            self.declare(f"{source}_view")

    def declare(self, model: str, **meta: Any) -> None:
        """Write a model, of the materialization that its name tells."""
        source = model.removesuffix("_view")
        macro = (self.project.root / "models" / f"{source}.sql").read_text().splitlines()[1]
        materialized = "current_state" if model == source else "current_view"
        config = f"materialized='{materialized}', unique_key={list(KEY)}, meta={meta}"
        checks = ["no_pending_rows"] if source == "spanner" else ["one_payload_per_sequence"]
        checks += ["ledger_balances"] if model == source else []
        self.project.model(
            model, f"{{{{ config({config}) }}}}\n{macro}", COLUMNS,
            data_tests=[{f"reconcile.{check}": {"config": {"severity": "warn"}}} for check in checks],
        )  # fmt: skip

    def check_views(self) -> None:
        """Both views of each source show what the fold of all that was delivered gives, and the very same rows."""
        for source in self.sources:
            fresh, view = (self.check_live(source, relation) for relation in (source, f"{source}_view"))
            assert fresh == view


CASES = [
    pytest.param((["postgresql", "spanner"], 40, 100), id="two"),
    pytest.param(([*COORDINATES, "spanner"], 100, 400), id="all", marks=pytest.mark.matrix),
]


@pytest.fixture(scope="module", params=CASES)
def views(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Views:
    """Histories of which the first batch was merged, and what they had then come to in a schema of its own."""
    sources, histories, of_spanner = request.param
    records = {source: generate(source, of_spanner if source == "spanner" else histories, seed=3) for source in sources}
    schema = f"views_{len(sources)}"
    staged = StagedHistories(spark, f"{schema}_records", records, delivery=0, again=True)
    views = Views(spark, tmp_path_factory.mktemp("views") / "project", schema, staged)
    views.deliver(1)
    views.project.dbt("run")
    spark.sql(f"create schema {schema}_kept")
    for source in sources:
        spark.sql(f"create table {schema}_kept.{source} using {file_format()} as select * from {schema}.{source}__base")
    return views


PURGE = """
{% macro purge(staging, objects, batch) %}
  {% set schema, name = staging.split('.') %}
  {% set relation = api.Relation.create(schema=schema, identifier=name) %}
  {% for object in objects %}
    {% do run_query(reconcile.get_purge_statement(relation, object, batch)) %}
  {% endfor %}
{% endmacro %}
"""


def purge(project: Project, staging: str, objects: list[str], batch: int) -> None:
    """Have the ledger say that records were deleted; deleting them is the caller's."""
    (project.root / "macros").mkdir(exist_ok=True)
    (project.root / "macros" / "purge.sql").write_text(PURGE)
    project.dbt(
        "run-operation", "purge", "--args", json.dumps({"staging": staging, "objects": objects, "batch": batch})
    )


def definition(spark: SparkSession, relation: str) -> str:
    return str(spark.sql(f"show create table {relation}").collect()[0][0])


def test_views_show_every_batch_before_it_is_merged_and_after(views: Views) -> None:
    views.check_views()
    for batch in (2, 3):
        views.deliver(batch)
        views.check_views()
    names = [f"{views.schema}.{source}" for source in views.sources]
    before = {name: definition(views.spark, name) for name in names}
    views.run(3)
    views.check_state()
    views.check_views()

    # As while a run has merged and not yet made the view anew: what the base table holds is applied again.
    views.deliver(4)
    for name in names:
        assert definition(views.spark, name) != before[name]
        views.spark.sql(before[name].replace("CREATE VIEW", "create or replace view", 1))
    views.check_views()


@pytest.mark.matrix
def test_a_rebuild_from_a_base_snapshot_gives_the_rows_of_the_increments(views: Views) -> None:
    """Law 5 where staging was purged: the records are gone, and what they had come to is kept."""
    spark, schema, names = views.spark, views.schema, [*views.sources, *(f"{source}_view" for source in views.sources)]
    views.run(4)
    before = {source: views.base(source) for source in views.sources}
    quarantined = {source: spark.table(f"{schema}.{source}__quarantine").count() for source in views.sources}
    purge(views.project, f"{schema}_staging.changes", views.sources, 1)
    spark.sql(f"delete from {views.staged.table} where batch <= 1")
    said = failures(views.project.dbt("run", "--full-refresh", succeed=False))
    assert set(said) == set(names)
    for name, message in said.items():
        assert f"{schema}_staging.changes was purged of {name.removesuffix('_view')} up to batch 1" in message
        assert "`meta: {base_snapshot: schema.table}`" in message
    for source in views.sources:
        views.declare(source, fresh=True, base_snapshot=f"{schema}_kept.{source}")
        # What a delete without a key had undone a snapshot does not tell: these histories have no such deletes.
        without = {"row_ids": False} if source == "oracle" else {}
        views.declare(f"{source}_view", base_snapshot=f"{schema}_kept.{source}", **without)
    views.run(4, "--full-refresh")
    for source in views.sources:
        check_same(before[source], views.base(source), source)
        line = views.accounts[source][-1]
        assert (line.kind, line.first_batch, line.last_batch) == ("rebuild", 2, 4)
        assert spark.table(f"{schema}.{source}__quarantine").count() == quarantined[source]
    views.project.dbt("run", "--select", *names[len(views.sources) :])
    views.check_views()
    tested = {result.node.name: result.failures for result in views.project.dbt("test").result.results}
    assert [tested[name] for name in tested if "ledger_balances" in name] == [0] * len(views.sources)
    pending = [tested[name] for name in tested if "no_pending_rows" in name]
    assert len(pending) == 2
    assert pending[0] == pending[1] > 0


# --- bugs planted into a copy of the package, each of which the checks above must find -------------------------------

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
def planted(spark: SparkSession) -> StagedHistories:
    return StagedHistories(
        spark, "planted_views", {source: generate(source, 60, seed=4) for source in ("mysql", "spanner")}, delivery=0
    )


def test_every_bug_can_be_planted() -> None:
    for file, right, wrong, *_ in BUGS.values():
        with_planted_bug(file, {right: wrong})


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=[pytest.mark.matrix] if place != 1 else []) for place, bug in enumerate(BUGS)]
)
def test_the_checks_find(spark: SparkSession, planted: StagedHistories, tmp_path: Path, bug: str) -> None:
    file, right, wrong, source, shows = BUGS[bug]
    package = package_with_planted_bug(tmp_path / "package", file, {right: wrong})
    schema = "planted_" + bug.replace(" ", "_")
    lakehouse = Lakehouse(spark, tmp_path / "project", schema, planted, package, [source], ", meta={'fresh': true}")
    lakehouse.run(1)
    lakehouse.deliver(3)
    with pytest.raises(LawBroken, match=shows):
        lakehouse.check_live(source, source)


# --- the life of a model ---------------------------------------------------------------------------------------------

LAKE = "lake_views"
THING = {"id": "bigint", "name": "string"}


def failures(outcome: Any) -> dict[str, str]:
    assert not outcome.success
    return {r.node.name: r.message for r in outcome.result.results if r.status not in ("success", "pass", "skipped")}


class Things:
    """A project with one model, and its staging table."""

    def __init__(self, spark: SparkSession, root: Path, name: str) -> None:
        self.spark, self.schema, self.staging = spark, f"things_{name}", f"{LAKE}.{name}"
        spark.sql(f"create schema if not exists {LAKE}")
        self.project = Project(root / "project", self.schema)
        self.project.source(LAKE, name)
        self.source = name

    def declare(self, materialized: str, model: str = "things", columns: Any = THING, **config: Any) -> None:
        checks = ["no_quarantine", "one_payload_per_sequence", "no_pending_rows", "ledger_balances"]
        parity = {"compare_to": f"ref('{model}')", "key": "id"}
        options = "".join(f", {name}={value!r}" for name, value in config.items())
        self.project.model(
            model,
            f"{{{{ config(materialized={materialized!r}, unique_key='id'{options}) }}}}\n"
            f"{{{{ reconcile.datastream_mysql(source('lake', '{self.source}'), object='shop.things') }}}}",
            columns,
            data_tests=[*(f"reconcile.{check}" for check in checks), {"reconcile.parity": {"arguments": parity}}],
        )

    def append(self, batch: int, names: dict[int, str | None]) -> None:
        """Stage a batch of updates; None deletes, and a name that is no text goes to quarantine."""
        stage(
            self.spark, self.staging, [
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
        return sorted(map(tuple, self.spark.table(f"{self.schema}.{relation}").collect()))

    def relations(self) -> dict[str, bool]:
        """Return what the model consists of, and whether each is a view."""
        views = {row.viewName for row in self.spark.sql(f"show views in {self.schema}").collect()}
        there = tables_in(self.spark, self.schema)
        return {name: name in views for name in there if name.startswith("things")}


@pytest.fixture
def things(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Things:
    return Things(spark, tmp_path, request.node.name.removeprefix("test_")[:60])


@pytest.mark.matrix
def test_a_current_view_lives_as_other_models_do(things: Things) -> None:
    things.declare("current_view")
    said = failures(things.project.dbt("run", "--select", "things", succeed=False))
    assert f"the staging table {things.staging} does not exist; fill it with" in said["things"]
    things.append(1, {1: "one", 2: "two"})
    hooks = {"pre_hook": "select 1", "post_hook": "select * from {{ this }}", "grants": {}}
    things.declare("current_view", persist_docs={"relation": True, "columns": True}, **hooks)
    things.project.dbt("build", "--empty", "--select", "things", "--exclude", "test_type:data")
    assert things.rows() == []
    things.project.dbt("run")
    assert things.rows() == [(1, "one"), (2, "two")]
    assert things.relations() == {"things": True, "things__changes": True, "things__quarantine": True}
    assert things.rows("reconcile_ledger") == []

    made = [definition(things.spark, f"{things.schema}.{name}") for name in things.relations()]
    things.append(2, {1: None, 2: "due", 3: "bad"})
    assert things.rows() == [(2, "due")]
    (bad,) = things.spark.table(f"{things.schema}.things__quarantine").collect()
    assert bad.asDict().keys() == {"record", "_change_error", "_change_id", "_change_batch", "origin"}
    assert bad._change_error.startswith("the record has no source_metadata")
    assert bad._change_batch == 2
    for arguments in ([], ["--empty"], ["--full-refresh"]):
        things.project.dbt("run", *arguments)
        assert [definition(things.spark, f"{things.schema}.{name}") for name in things.relations()] == made
    said = failures(things.project.dbt("test", succeed=False))
    assert sorted(name.split("_things_")[0] for name in said) == [
        "reconcile_ledger_balances", "reconcile_no_quarantine",
    ]  # fmt: skip
    assert f"{things.schema}.things is a current_view" in said["reconcile_ledger_balances_things_"]

    things.declare("current_view", columns={"id": "bigint", "name": "binary"})
    things.project.dbt("run")
    assert dict(things.spark.table(f"{things.schema}.things").dtypes)["name"] == "binary"


@pytest.mark.matrix
def test_another_materialization_begins_where_nothing_is_left_of_the_one_before(things: Things) -> None:
    things.append(1, {1: "one"})
    things.declare("current_state")
    things.project.dbt("run")
    things.declare("current_view")
    said = failures(things.project.dbt("run", "--full-refresh", succeed=False))["things"]
    drops = [f"drop table {things.schema}.things__base", f"drop table {things.schema}.things__quarantine"]
    assert f"only once nothing is left of that one; run `{'; '.join(drops)}`" in said
    assert things.relations() == {
        "things": True, "things__base": False, "things__changes": True, "things__quarantine": False,
    }  # fmt: skip
    for drop in drops:
        things.spark.sql(drop)
    things.project.dbt("run")
    things.append(2, {1: "uno"})
    assert things.rows() == [(1, "uno")]

    things.declare("current_state", meta={"fresh": True})
    said = failures(things.project.dbt("run", succeed=False))["things"]
    drop = f"drop view {things.schema}.things__quarantine"
    assert f"only once nothing is left of that one; run `{drop}`" in said
    assert things.rows() == [(1, "uno")]
    things.spark.sql(drop)
    things.project.dbt("run")
    assert things.rows() == [(1, "uno")]

    # A fresh view is made anew when something was applied, and only then.
    made = definition(things.spark, f"{things.schema}.things")
    things.project.dbt("run")
    assert definition(things.spark, f"{things.schema}.things") == made
    things.append(3, {2: "two"})
    assert things.rows() == [(1, "uno"), (2, "two")]
    things.project.dbt("run", "--empty")
    assert things.rows() == [(1, "uno"), (2, "two")]
    things.project.dbt("run")
    assert definition(things.spark, f"{things.schema}.things") != made
    things.project.dbt("test")

    # A base table that was restored shows less, until the next run.
    base = f"{things.schema}.things__base"
    restore(things.spark, base, versions(things.spark, base)[0])
    things.project.dbt("run")
    assert things.rows() == [(1, "uno"), (2, "two")]
    things.declare("current_state")
    things.project.dbt("run")
    assert "things__changes" not in definition(things.spark, f"{things.schema}.things")


@pytest.mark.matrix
def test_what_reads_staging_from_its_beginning_is_refused_once_that_was_purged(things: Things) -> None:
    things.append(1, {1: "one", 2: "two", 4: "bad"})
    things.declare("current_state")
    things.project.dbt("run")
    things.append(2, {2: None})
    things.project.dbt("run")
    things.spark.sql(f"create table {LAKE}.kept using {file_format()} as select * from {things.schema}.things__base")
    purge(things.project, things.staging, ["shop.things", "shop.others"], 2)
    things.spark.sql(f"delete from {things.staging} where batch <= 2")

    # Increments go on.
    things.project.dbt("run")
    things.append(3, {3: "three"})
    things.project.dbt("run")
    assert things.rows() == [(1, "one"), (3, "three")]
    assert set(failures(things.project.dbt("test", succeed=False))) == {"reconcile_no_quarantine_things_"}

    # What was restored to a version of before cannot be mended.
    base = f"{things.schema}.things__base"
    restore(things.spark, base, versions(things.spark, base)[0])
    said = failures(things.project.dbt("run", succeed=False))["things"]
    assert (
        f"{things.schema}.things__base lacks batch 2, and {things.staging} was purged of shop.things up to batch 2"
        in said
    )
    assert "restore a newer version of it, or declare a base snapshot and rebuild with `dbt run --full-refresh" in said

    gone = f"{things.staging} was purged of shop.things up to batch 2"
    wrong = {
        "nowhere": (f"{LAKE}.nowhere", f"its base snapshot {LAKE}.nowhere does not exist, and {gone}"),
        "narrow": (f"{LAKE}.narrow", f"its base snapshot {LAKE}.narrow has no column _change_sequence"),
        "retyped": (f"{LAKE}.retyped", f"column `id` of its base snapshot {LAKE}.retyped is string and not bigint"),
        "unnamed": ("kept", "meta base_snapshot: 'kept' is no table; write it as schema.table"),
        "undeclared": (None, f"{gone}, and these rows follow from all of its records; declare what they had come to"),
    }
    things.spark.sql(
        f"create table {LAKE}.narrow using {file_format()} as select * except (_change_sequence) from {LAKE}.kept"
    )
    retyped = f"select cast(id as string) as id, * except (id) from {LAKE}.kept"
    things.spark.sql(f"create table {LAKE}.retyped using {file_format()} as {retyped}")
    for number, (model, (snapshot, _)) in enumerate(wrong.items()):
        materialized = ("current_state", "current_view")[number % 2]
        things.declare(materialized, model, meta={"base_snapshot": snapshot})
    said = failures(things.project.dbt("run", "--select", *wrong, succeed=False))
    for model, (_, sentence) in wrong.items():
        assert sentence in said[model]
        (things.project.root / "models" / f"{model}.sql").unlink()
        (things.project.root / "models" / f"{model}.yml").unlink()

    # From a snapshot all is there again; also where nothing has come since, and in an empty run.
    kept = {"base_snapshot": f"{LAKE}.kept"}
    things.declare("current_state", meta=kept)
    things.declare("current_state", "fresh", meta={**kept, "fresh": True})
    things.declare("current_view", "seen", meta=kept)
    things.project.dbt("run", "--select", "fresh", "--empty")
    things.project.dbt("run", "--full-refresh", "--select", "things")
    things.project.dbt("run", "--select", "fresh", "seen")
    for model in ("things", "fresh", "seen"):
        assert things.rows(model) == [(1, "one"), (3, "three")], model
    assert [row.record is None for row in things.spark.table(f"{things.schema}.things__quarantine").collect()] == [
        False
    ]
    said = failures(things.project.dbt("test", succeed=False))
    assert set(said) == {"reconcile_no_quarantine_things_", "reconcile_ledger_balances_seen_"}
