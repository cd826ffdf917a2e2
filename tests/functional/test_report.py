"""report.py on a project's own views and tables: the page, the metrics, the exit code, and a ledger that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import report
from datastream import Staged, event, stage
from projects import Project
from pyspark.sql import SparkSession
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError, UsageError

SCHEMA, LAKE = "reported", "reported_lake"


def change(table: str, batch: int, id_: int, n: int) -> Staged:
    record = event("postgresql", {"id": id_, "n": n}, object=f"shop_{table}", metadata={"lsn": f"0/{batch}{id_:x}"})
    return Staged(record, f"shop_{table}", batch)


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project", SCHEMA)
    project.source(LAKE, "changes")
    spark.sql(f"create schema {LAKE}")
    stage(spark, f"{LAKE}.changes", [change("behind", 1, 1, 1), change("bad", 1, 2, 300), change("fine", 1, 3, 1)])
    for name in ("behind", "bad", "fine"):
        project.model(
            name,
            "{{ config(materialized='current_state', unique_key='id') }}\n"
            f"{{{{ reconcile.datastream_postgresql(source('lake', 'changes'), object='shop_{name}') }}}}",
            {"id": "bigint", "n": "tinyint"},
        )
    yield project
    for schema in (SCHEMA, LAKE):
        spark.sql(f"drop schema if exists {schema} cascade")


def test_the_page_and_the_metrics_are_those_of_the_tables(
    project: Project, spark: SparkSession, tmp_path: Path
) -> None:
    html, prom = tmp_path / "out" / "state.html", tmp_path / "out" / "metrics.prom"
    words = ["--status", f"{SCHEMA}.reconcile_status", "--html", str(html), "--metrics", str(prom)]
    project.run()
    stage(spark, f"{LAKE}.changes", [change("behind", 2, 4, 1), change("behind", 2, 5, 1)])
    with pytest.raises(DataError, match=r"^2 findings, the worst first; see .*state\.html\.$"):
        report.main(words, Console("report"))
    page, metrics = html.read_text(), prom.read_text()
    assert page.index("reported.bad") < page.index("reported.behind") < page.index("reported.fine")
    assert "2 in 1 batch" in page and "is not exactly a tinyint" in page
    for name, state, behind, quarantined in (("bad", "wrong", 0, 1), ("behind", "wait", 2, 0), ("fine", "right", 0, 0)):
        of = f'{{relation="{SCHEMA}.{name}"'
        assert f'reconcile_model_state{of},state="{state}"}} 1\n' in metrics
        assert f"reconcile_model_records_behind{of}}} {behind}\n" in metrics
        assert f"reconcile_model_quarantined_records{of}}} {quarantined}\n" in metrics
    assert f'reconcile_model_stored_rows{{relation="{SCHEMA}.fine"}} 1\n' in metrics
    # What is read once is read again by the next report.
    stage(spark, f"{LAKE}.changes", [change("behind", 3, 6, 1)])
    with pytest.raises(DataError):
        report.main(words, Console("report"))
    assert "3 in 2 batches" in html.read_text()
    spark.sql(f"drop table {SCHEMA}.reconcile_ledger")
    with pytest.raises(UsageError, match="reconcile_ledger`, which does not exist: restore it, or run `dbt run`"):
        report.main(words, Console("report"))
    assert "not known" in html.read_text() and "reconcile_known 0\n" in prom.read_text()
