"""A project with the capture's tables: what was delivered of it, and what dbt made of that."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs import datastream
from reconcile_jobs.staging import TableName
from tables import commits
from truth import CAPTURE, COLUMNS, KEYS, SOURCES, delivered, differences, object_of

MODELS = [(source, table) for source in SOURCES for table in COLUMNS]
COUNTS = ["delivered", "applied", "superseded", "duplicate", "quarantined", "pending"]


class Shop:
    """A project with a model for each table of each source, and what was delivered to it in one format."""

    def __init__(
        self, spark: SparkSession, root: Path, name: str, form: str, sources: Sequence[str] = SOURCES,
        materialized: str = "current_state", options: str = "", tests: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.spark, self.root, self.form, self.sources = spark, root, form, sources
        self.schema, self.lake = f"shop_{name}", f"lake_{name}"
        self.project = Project(root / "project", self.schema, threads=2)
        self.project.source(self.lake, *sources)
        for source, table in self.models:
            config = f"config(materialized='{materialized}', unique_key={KEYS[table]}{options})"
            call = f"reconcile.datastream_{source}(source('lake', '{source}'), object='{object_of(source, table)}')"
            self.project.model(
                f"{source}_{table}", f"{{{{ {config} }}}}\n{{{{ {call} }}}}\n", COLUMNS[table], data_tests=list(tests)
            )

    @property
    def models(self) -> list[tuple[str, str]]:
        return [(source, table) for source, table in MODELS if source in self.sources]

    def deliver(self, *deliveries: int, sources: Sequence[str] = (), as_: str = "first") -> None:
        """Let deliveries arrive together, and append them; `as_` another word gives them new paths."""
        for source in sources or self.sources:
            landing = self.root / "landing" / source
            for delivery in deliveries:
                shutil.copytree(CAPTURE / f"{source}_{self.form}" / str(delivery), landing / as_ / str(delivery))
            name, checkpoint = TableName.parse(f"{self.lake}.{source}"), self.root / "checkpoints" / source
            job = datastream.Job(str(landing), name, checkpoint=str(checkpoint))
            totals = datastream.run(self.spark, job)
            assert totals.records == sum(delivered(source, delivery).total() for delivery in deliveries)
            assert totals.unreadable == totals.corrupt_files == totals.ignored_files == 0

    def run(self, *arguments: str) -> None:
        self.project.dbt("run", *arguments)

    def differences(self) -> dict[str, list[Any]]:
        """Return how each model differs from the source, for those that do."""
        found = {f"{s}_{t}": differences(self.spark, f"{self.schema}.{s}_{t}", t) for s, t in self.models}
        return {model: rows[:5] for model, rows in found.items() if rows}

    def versions(self) -> dict[str, int]:
        """Return the number of commits of every table that dbt writes."""
        tables = ["reconcile_ledger"]
        tables += [f"{s}_{t}__{part}" for s, t in self.models for part in ("base", "quarantine")]
        return {table: commits(self.spark, f"{self.schema}.{table}") for table in tables}

    def ledger(self, source: str, table: str) -> list[dict[str, Any]]:
        rows = self.spark.table(f"{self.schema}.reconcile_ledger").orderBy("recorded_at")
        return [row.asDict() for row in rows.where(f"relation = '{self.schema}.{source}_{table}'").collect()]

    def changes(self, source: str, table: str) -> Any:
        return self.spark.table(f"{self.schema}.{source}_{table}__changes")
