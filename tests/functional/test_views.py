"""Views that show what is staged and not merged: `fresh` ones and `current_view`; and staging that was purged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from histories import COLUMNS, COORDINATES, KEY, generate
from laws import Lakehouse, LawBroken, StagedHistories, check_same
from projects import Project, copy_of_the_package
from pyspark.sql import SparkSession



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


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Views:
    """Forty histories of each source and 100 of Spanner, of which the first batch was merged."""
    records = {source: generate(source, 40, seed=3) for source in COORDINATES}
    records["spanner"] = generate("spanner", 100, seed=3)
    staged = StagedHistories(spark, "views_records", records, delivery=0, again=True)
    views = Views(spark, tmp_path_factory.mktemp("views") / "project", "views", staged)
    views.deliver(1)
    views.project.dbt("run")
    spark.sql("create schema views_kept")
    for source in views.sources:
        spark.sql(f"create table views_kept.{source} using delta as select * from views.{source}__base")
    return views


PURGE = """
{% macro purge(staging, objects, batch) %}
  {% set schema, name = staging.split('.') %}
  {% for object in objects %}
    {% do run_query(reconcile.get_purge_statement(api.Relation.create(schema=schema, identifier=name), object, batch)) %}
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


def definitions(views: Views) -> dict[str, str]:
    relations = [f"{source}{part}" for source in views.sources for part in ("", "_view")]
    return {name: views.spark.sql(f"show create table views.{name}").collect()[0][0] for name in relations}


def test_views_show_every_batch_before_it_is_merged_and_after(views: Views) -> None:
    views.check_views()
    for batch in (2, 3):
        views.deliver(batch)
        views.check_views()
    before = definitions(views)
    views.run(3)
    views.check_state()
    views.check_views()
    after = definitions(views)
    for source in views.sources:
        assert (before[source] == after[source], before[f"{source}_view"] == after[f"{source}_view"]) == (False, True)


def test_a_view_of_before_the_merge_still_shows_everything(views: Views) -> None:
    """As while a run has merged and not yet made the view anew: what the base knows is applied again."""
    text = definitions(views)
    for source in views.sources:
        behind = text[source].replace("_change_batch >= 4", "_change_batch >= 2")
        assert behind != text[source]
        views.spark.sql(behind.replace("CREATE VIEW", "create or replace view", 1))
    views.deliver(4)
    views.check_views()


def test_a_rebuild_from_a_base_snapshot_gives_the_rows_of_the_increments(views: Views) -> None:
    """Law 5 where staging was purged: the records are gone, and what they had come to is kept."""
    spark, names = views.spark, [*views.sources, *(f"{source}_view" for source in views.sources)]
    views.run(4)
    before = {source: views.base(source) for source in views.sources}
    quarantined = {source: spark.table(f"views.{source}__quarantine").count() for source in views.sources}
    purge(views.project, "views_staging.changes", views.sources, 1)
    spark.sql(f"delete from {views.staged.table} where batch <= 1")
    said = views.project.dbt("run", "--full-refresh", succeed=False)
    messages = {result.node.name: result.message for result in said.result.results if result.status != "success"}
    assert set(messages) == set(names)
    for name, message in messages.items():
        source = name.removesuffix("_view")
        assert f"views_staging.changes was purged of {source} up to batch 1" in message
        assert "`meta: {base_snapshot: schema.table}`" in message
    for source in views.sources:
        views.declare(source, fresh=True, base_snapshot=f"views_kept.{source}")
        views.declare(f"{source}_view", base_snapshot=f"views_kept.{source}")
    views.run(4, "--full-refresh")
    for source in views.sources:
        check_same(before[source], views.base(source), source)
        line = views.accounts[source][-1]
        assert (line.kind, line.first_batch, line.last_batch) == ("rebuild", 2, 4)
        assert spark.table(f"views.{source}__quarantine").count() == quarantined[source]
    views.project.dbt("run", "--select", *names[len(views.sources) :])
    views.check_views()
    tested = views.project.dbt("test")
    assert {result.node.name.split("_")[1] for result in tested.result.results} == {"ledger", "no", "one"}
    warned = {result.node.name for result in tested.result.results if result.status != "pass"}
    assert not [name for name in warned if "ledger_balances" in name]
    pending = [r.failures for r in tested.result.results if "no_pending_rows" in r.node.name]
    assert len(pending) == 2 and pending[0] == pending[1] > 0
