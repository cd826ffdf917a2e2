"""Views that show what is staged and not merged: `fresh` ones and `current_view`; and staging that was purged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from histories import COLUMNS, COORDINATES, KEY, generate
from laws import Lakehouse, LawBroken, StagedHistories, check_same
from projects import copy_of_the_package
from pyspark.sql import SparkSession

FRESH = ", meta={'fresh': true}"


class Views(Lakehouse):
    """As a lakehouse, its `current_state` fresh, and a `current_view` of each source beside it."""

    def __init__(self, spark: SparkSession, root: Path, schema: str, staged: StagedHistories) -> None:
        super().__init__(spark, root, schema, staged, config=FRESH)
        self.view_models()

    def view_models(self, **meta: str) -> None:
        for source in self.sources:
            text = (self.project.root / "models" / f"{source}.sql").read_text()
            config = f"materialized='current_view', unique_key={list(KEY)}, meta={meta}"
            macro = text.splitlines()[1]
            self.project.model(f"{source}_view", f"{{{{ config({config}) }}}}\n{macro}", COLUMNS)

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
    return views


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
